package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestGauge: a workspace is over its bound with its own files and the temporary ones of its commands together. Holes in
// files, and other names of a file, take nothing.
func TestGauge(t *testing.T) {
	for _, c := range []struct {
		name  string
		most  int64
		make  func(folder, temp string) error
		wants bool
	}{
		{"nothing", 1 << 20, func(string, string) error { return nil }, false},
		{"a large file", 1 << 20, func(folder, _ string) error {
			return os.WriteFile(filepath.Join(folder, "a"), make([]byte, 2<<20), 0o600)
		}, true},
		{"a large temporary file", 1 << 20, func(_, temp string) error {
			return os.WriteFile(filepath.Join(temp, "a"), make([]byte, 2<<20), 0o600)
		}, true},
		{"a hole", 1 << 20, func(folder, _ string) error {
			if err := os.WriteFile(filepath.Join(folder, "a"), nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(filepath.Join(folder, "a"), 1<<40)
		}, false},
		{"many names", 1 << 20, func(folder, _ string) error {
			err := os.WriteFile(filepath.Join(folder, "a"), make([]byte, 600<<10), 0o600)
			if err == nil {
				err = os.Link(filepath.Join(folder, "a"), filepath.Join(folder, "b"))
			}
			return err
		}, false},
		{"no bound", 0, func(folder, _ string) error {
			return os.WriteFile(filepath.Join(folder, "a"), make([]byte, 2<<20), 0o600)
		}, false},
	} {
		folder, temp := t.TempDir(), t.TempDir()
		if err := c.make(folder, temp); err != nil {
			t.Fatal(err)
		}
		p := &Pool{MaxSize: c.most, Temps: func(string) []string { return []string{temp} }}
		w := &Workspace{Clone: &Clone{Number: 1, pool: p, folder: folder}}
		if got := w.Gauge().Over(); got != c.wants {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if got := Bound(t.TempDir(), 7); got != 7 {
		t.Errorf("a bound of 7: %d", got)
	}
}

// TestLinksOfSetUp: the links that set-up made are known, with their targets, and no others.
func TestLinksOfSetUp(t *testing.T) {
	folder, person := t.TempDir(), t.TempDir()
	tree := filepath.Join(folder, "tree")
	link := func(to, at string) {
		t.Helper()
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(tree, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	link("/elsewhere", filepath.Join(person, "data"))
	link(filepath.Join(person, "data"), filepath.Join(tree, "data"))
	link("data", filepath.Join(tree, "within"))
	link(filepath.Join(person, "no"), filepath.Join(tree, ".git", "no"))
	w := &Workspace{Dir: tree, Clone: &Clone{Number: 1, folder: folder}}
	if err := w.noteLinks(folder, tree, tree, nil, time.Time{}); err != nil {
		t.Fatal(err)
	}
	want := "/elsewhere " + filepath.Join(person, "data")
	if got := Linked(folder); len(got) != 2 || got[0]+" "+got[1] != want {
		t.Errorf("%q, want %q", got, want)
	}
	link(filepath.Join(person, "later"), filepath.Join(tree, "later")) // by a session
	if err := w.noteLinks(folder, tree, tree, nil, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := Linked(folder); len(got) != 2 {
		t.Errorf("with a link of a session: %q", got)
	}
	if _, known := Ignored(folder); known {
		t.Error("what git ignores is known")
	}
}
