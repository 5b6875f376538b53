package claude

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ralph/internal/lazy"
	"ralph/loop/agent"
)

// A Use is how full the context of an agent's model was when it was last reported.
type Use struct {
	Tokens int64
	Model  string
}

// windows are the numbers of bytes to read from a transcript's end, one after the other.
// The first is usually enough.
var windows = []int64{256 << 10, 8 << 20, 64 << 20}

// LastUse reads the end of a transcript, of a session or of a chat in Claude Code's own
// format. ok is false if there is no transcript, or the agent reported nothing.
// Sub-agents do not count, because they have separate contexts.
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
		if use, ok = useIn(end); ok || start == 0 {
			return use, ok, nil
		}
	}
	return use, false, nil
}

// useIn searches the lines from the last one backwards. The first may be incomplete.
func useIn(lines []byte) (Use, bool) {
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

// notInName matches the characters that Claude Code replaces in a project folder's name.
var notInName = lazy.Regexp(`[^A-Za-z0-9]`)

// OfChat returns the transcript of Claude Code's chat in a folder: the last one written
// at or after the given time; "" if there is none. config is Claude's folder, "" for the
// one in the home directory.
func OfChat(config, home, dir string, since time.Time) string {
	if config == "" {
		config = filepath.Join(home, ".claude")
	}
	folder := filepath.Join(config, "projects", notInName().ReplaceAllString(dir, "-"))
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "" // another client, or one that writes elsewhere
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
