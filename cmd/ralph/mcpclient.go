package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// clientFile is where clients such as Claude Code find a project's MCP servers.
const clientFile = ".mcp.json"

func newInitMCP(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "init-mcp", Short: "Register ralph's tools for chats in this project's .mcp.json",
		Long: `Write or update .mcp.json in the project's root, so that a chat there has ralph's
tools (docs/human.md). Other servers in it are not touched.`,
		Example: "  ralph init-mcp", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.project(cmd.Context())
			if err != nil {
				return err
			}
			changed, err := registerMCP(p.root)
			if err != nil {
				return usage(err)
			}
			path := filepath.Join(p.root, clientFile)
			return a.print(map[string]any{"file": path, "changed": changed}, func(w io.Writer) error {
				what := "has ralph's tools already; it was not changed"
				if changed {
					what = "has ralph's tools now; a chat that is open must be restarted"
				}
				_, err := fmt.Fprintf(w, "%s %s\n", path, what)
				return err
			})
		},
	}
}

// An mcpEntry is a server as clients know it.
type mcpEntry struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// ownEntry is how a client starts ralph: by its name if that is this program, so
// that the file can be shared.
func ownEntry() (mcpEntry, error) {
	self, err := os.Executable()
	if err != nil {
		return mcpEntry{}, err
	}
	e := mcpEntry{Command: self, Args: []string{"mcp", "--profile", "human"}}
	found, err := exec.LookPath("ralph")
	if err == nil && sameFile(found, self) {
		e.Command = "ralph"
	}
	return e, nil
}

func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// registerMCP writes ralph into the project's .mcp.json. Nothing else in it changes
// but white space; a file that is no JSON is left alone.
func registerMCP(root string) (changed bool, err error) {
	path := filepath.Join(root, clientFile)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link stays one
	}
	mode, text := fs.FileMode(0o644), []byte("{}")
	switch info, err := os.Stat(path); {
	case err == nil:
		mode = info.Mode().Perm()
		if text, err = os.ReadFile(path); err != nil {
			return false, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	entry, err := ownEntry()
	if err != nil {
		return false, err
	}
	written, err := addServer(text, entry)
	if err != nil {
		return false, fmt.Errorf("%s %w; it was not changed", path, err)
	}
	if string(written) == string(text) {
		return false, nil
	}
	return true, writeWhole(path, written, mode)
}

// addServer adds the entry to a client's file, or updates it there.
func addServer(text []byte, entry mcpEntry) ([]byte, error) {
	if !json.Valid(text) || !gjson.ParseBytes(text).IsObject() {
		return nil, errors.New("is no JSON object: mend it, or move it away")
	}
	servers := gjson.GetBytes(text, "mcpServers")
	if servers.Exists() && !servers.IsObject() {
		return nil, errors.New(`has a key "mcpServers" that is no object: mend it, or move it away`)
	}
	var there mcpEntry
	if own := servers.Get("ralph"); own.IsObject() && json.Unmarshal([]byte(own.Raw), &there) == nil &&
		there.Command == entry.Command && strings.Join(there.Args, "\x00") == strings.Join(entry.Args, "\x00") {
		return text, nil
	}
	// Of an entry that is there other keys, such as env, stay.
	out, err := sjson.SetBytes(text, "mcpServers.ralph.command", entry.Command)
	if err != nil {
		return nil, err
	}
	if out, err = sjson.SetBytes(out, "mcpServers.ralph.args", entry.Args); err != nil {
		return nil, err
	}
	var b strings.Builder
	if err := indent(&b, out, indentOf(text)); err != nil {
		return nil, err
	}
	return []byte(b.String()), nil
}

func indent(b *strings.Builder, text []byte, by string) error {
	var raw json.RawMessage = text
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	e.SetIndent("", by)
	return e.Encode(raw)
}

// indentOf is what the lines of a file are indented with.
func indentOf(text []byte) string {
	_, after, ok := strings.Cut(string(text), "\n")
	by := after[:len(after)-len(strings.TrimLeft(after, " \t"))]
	if !ok || by == "" {
		return "  "
	}
	return by
}

// registered reports whether the project's .mcp.json has ralph.
func registered(p *project) bool {
	text, err := os.ReadFile(filepath.Join(p.root, clientFile))
	return err == nil && gjson.GetBytes(text, "mcpServers.ralph").Exists()
}
