package claude

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"ralph/loop/agent"
)

// A Use is how full the context of an agent's model was when it was told last.
type Use struct {
	Tokens int64
	Model  string
}

// windows are how much of a transcript's end is looked at, in bytes: in most cases
// the first is enough.
var windows = []int64{256 << 10, 8 << 20, 64 << 20}

// LastUse reads the end of a transcript: that of a session, or the one that Claude Code
// keeps of a chat. ok is false if the agent has told nothing, or there
// is no transcript. Sub-agents have contexts of their own, and do not count.
func LastUse(path string) (use Use, ok bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return use, false, nil
	}
	if err != nil {
		return use, false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return use, false, err
	}
	for _, window := range windows {
		start := max(0, size-window)
		end := make([]byte, size-start)
		if _, err := f.ReadAt(end, start); err != nil && !errors.Is(err, io.EOF) {
			return use, false, err
		}
		if use, ok = lastUse(end); ok || start == 0 {
			return use, ok, nil
		}
	}
	return use, false, nil
}

// lastUse goes through lines from the last one on; the first may be cut.
func lastUse(lines []byte) (Use, bool) {
	for len(lines) > 0 {
		at := bytes.LastIndexByte(lines, '\n')
		line := lines[at+1:]
		lines = lines[:max(at, 0)]
		if !bytes.Contains(line, []byte(`"assistant"`)) {
			continue
		}
		for _, e := range NewReader().Line(line) {
			if e.Kind == agent.Used {
				return Use{e.Context, e.Model}, true
			}
		}
	}
	return Use{}, false
}

// notInName are the characters that Claude Code replaces in the name of a project's folder.
var notInName = regexp.MustCompile(`[^A-Za-z0-9]`)

// OfChat is the transcript of the chat that Claude Code has in a folder: the one
// that was written to last, if that was at or after a moment; "" if there is none.
// config is Claude's folder, "" for the one in the home directory.
func OfChat(config, home, dir string, since time.Time) string {
	if config == "" {
		config = filepath.Join(home, ".claude")
	}
	folder := filepath.Join(config, "projects", notInName.ReplaceAllString(dir, "-"))
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "" // another client, or none that writes here
	}
	last, newest := "", since
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || filepath.Ext(e.Name()) != ".jsonl" || info.ModTime().Before(newest) {
			continue
		}
		last, newest = filepath.Join(folder, e.Name()), info.ModTime()
	}
	return last
}
