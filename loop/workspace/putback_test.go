package workspace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestWhatWasTouchedIsPutBack: whatever a check did to a folder, the next one finds it as it was kept.
func TestWhatWasTouchedIsPutBack(t *testing.T) {
	tests := map[string]struct {
		do     func(dir string) error
		forged bool
	}{
		"nothing":   {do: func(string) error { return nil }},
		"written":   {do: func(dir string) error { return os.WriteFile(filepath.Join(dir, "a/run.sh"), []byte("exit 0\n"), 0o700) }},
		"removed":   {do: func(dir string) error { return os.RemoveAll(filepath.Join(dir, "a")) }},
		"new":       {do: func(dir string) error { return os.WriteFile(filepath.Join(dir, "a/new"), nil, 0o600) }},
		"a folder":  {do: func(dir string) error { return os.MkdirAll(filepath.Join(dir, "b/c"), 0o700) }},
		"no rights": {do: func(dir string) error { return os.Chmod(filepath.Join(dir, "a"), 0) }},
		"linked": {do: func(dir string) error {
			if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
				return err
			}
			return os.Symlink("/etc", filepath.Join(dir, "a"))
		}},
		"same size and time": {do: func(dir string) error { return rewrite(filepath.Join(dir, "a/run.sh")) }},
		"by its contents":    {forged: true, do: func(dir string) error { return rewrite(filepath.Join(dir, "a/run.sh")) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
			if err := os.MkdirAll(filepath.Join(from, "a"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(from, "a/run.sh"), []byte("exit 1\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("run.sh", filepath.Join(from, "a/link")); err != nil {
				t.Fatal(err)
			}
			m := mirror{from: from, to: to, marks: to + ".marks", forged: test.forged}
			if err := m.putBack(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := test.do(to); err != nil {
				t.Fatal(err)
			}
			if test.forged { // as if the clock had been set as well
				m.mark(t, "a/run.sh")
			}
			if err := m.putBack(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(to, "a/run.sh")); err != nil || string(got) != "exit 1\n" {
				t.Errorf("run.sh is %q, %v", got, err)
			}
			if got, err := os.Readlink(filepath.Join(to, "a/link")); err != nil || got != "run.sh" {
				t.Errorf("the link leads to %q, %v", got, err)
			}
			if left, _ := filepath.Glob(filepath.Join(to, "*", "*")); len(left) != 2 || exists(filepath.Join(to, "b")) {
				t.Errorf("there are %v", left)
			}
		})
	}
}

// rewrite replaces a file's text by another one of its length, and sets its time back.
func rewrite(path string) error {
	info, err := os.Stat(path)
	if err == nil {
		err = os.WriteFile(path, []byte("exit 0\n"), 0o700)
	}
	if err == nil {
		err = os.Chtimes(path, time.Time{}, info.ModTime())
	}
	return err
}

// mark makes a file's present state the one that is known.
func (m mirror) mark(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(m.marks)
	if err != nil {
		t.Fatal(err)
	}
	var known map[string]mark
	if err := json.Unmarshal(text, &known); err != nil {
		t.Fatal(err)
	}
	if known[name], err = marked(filepath.Join(m.to, name)); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(known); err == nil {
		err = os.WriteFile(m.marks, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
