package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"ralph/internal/files"
)

// ClientFile is the file in which clients such as Claude Code find a project's MCP servers.
const ClientFile = ".mcp.json"

// A clientEntry is a server's entry in that file.
type clientEntry struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// ownEntry returns the command for a client to start ralph: just its name if PATH leads to this program, so that the
// file can be shared.
func ownEntry() (clientEntry, error) {
	self, err := os.Executable()
	if err != nil {
		return clientEntry{}, err
	}
	e := clientEntry{Command: self, Args: []string{"mcp", "--profile", "chat"}}
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

// Register adds ralph to the project's .mcp.json, and changes only white space elsewhere. It refuses a file that is not
// JSON.
func Register(root string) (changed bool, err error) {
	path := filepath.Join(root, ClientFile)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // keep the link
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
	return true, files.Write(path, written, mode)
}

// addServer adds the entry to the content of a client's file, or updates it.
func addServer(text []byte, entry clientEntry) ([]byte, error) {
	if !json.Valid(text) || !gjson.ParseBytes(text).IsObject() {
		return nil, errors.New("is not a JSON object: correct it, or move it away")
	}
	servers := gjson.GetBytes(text, "mcpServers")
	if servers.Exists() && !servers.IsObject() {
		return nil, errors.New(`has a key "mcpServers" that is not an object: correct it, or move it away`)
	}
	var there clientEntry
	if own := servers.Get("ralph"); own.IsObject() && json.Unmarshal([]byte(own.Raw), &there) == nil &&
		there.Command == entry.Command && strings.Join(there.Args, "\x00") == strings.Join(entry.Args, "\x00") {
		return text, nil
	}
	// Other keys of an existing entry, such as env, are kept.
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

// indentOf returns the indentation of a file.
func indentOf(text []byte) string {
	_, after, ok := strings.Cut(string(text), "\n")
	by := after[:len(after)-len(strings.TrimLeft(after, " \t"))]
	if !ok || by == "" {
		return "  "
	}
	return by
}

// Registered reports whether the project's .mcp.json has an entry for ralph.
func (c *Chats) Registered() bool {
	text, err := os.ReadFile(filepath.Join(c.Root, ClientFile))
	return err == nil && gjson.GetBytes(text, "mcpServers.ralph").Exists()
}
