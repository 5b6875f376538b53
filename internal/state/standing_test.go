package state

import (
	"errors"
	"io/fs"
	"testing"

	"ralph/store"
)

// TestKindsOfStateFolders: a former queue is never taken for a new one.
func TestKindsOfStateFolders(t *testing.T) {
	t.Parallel()
	none := fs.ErrNotExist
	mark := store.Mark{Database: "a", Commits: 9}
	life := []string{"sessions", lockName}
	sound := store.Found{Size: 4096, Mark: mark, Tables: true, Name: "a", Commits: 9, Tasks: true}
	with := func(change func(f *store.Found)) store.Found {
		f := sound
		change(&f)
		return f
	}
	for _, c := range []struct {
		name string
		f    Folder
		want Standing
	}{
		{"nothing", Folder{Found: store.Found{Size: -1, MarkErr: none}}, New},
		{"an empty database that was just made", Folder{Found: store.Found{MarkErr: none}}, New},
		{"made, and its database is not", Folder{Beginning: true, Traces: []string{recordName}, Found: store.Found{Size: -1, MarkErr: none}}, New},
		{"made, and its database has no tables yet", Folder{Beginning: true, Traces: []string{recordName}, Found: store.Found{Size: 4096, MarkErr: none}}, New},
		{"made, and a database was brought there", Folder{Beginning: true, Found: store.Found{Size: 4096, MarkErr: none, Tables: true, Name: "a", Commits: 3, Tasks: true}}, Sound},
		{"made, and lost after that", Folder{Beginning: true, Traces: life, Found: store.Found{Size: -1, Mark: mark}}, Lost},
		{"gone before the first run", Folder{Traces: []string{recordName}, Found: store.Found{Size: -1, MarkErr: none}}, Lost},
		{"gone", Folder{Traces: life, Found: store.Found{Size: -1, Mark: mark}}, Lost},
		{"empty", Folder{Traces: life, Found: store.Found{Mark: mark}}, Lost},
		{"no tables", Folder{Traces: life, Found: store.Found{Size: 4096, Mark: mark}}, Lost},
		{"no tables and no mark", Folder{Traces: life, Found: store.Found{Size: 4096, MarkErr: none}}, Lost},
		{"as it was left", Folder{Traces: life, Found: sound}, Sound},
		{"ahead of its mark, after a power cut", Folder{Traces: life, Found: with(func(f *store.Found) { f.Commits = 12 })}, Sound},
		{"an older copy, or its log is gone", Folder{Traces: life, Found: with(func(f *store.Found) { f.Commits = 8 })}, Lost},
		{"another database", Folder{Traces: life, Found: with(func(f *store.Found) { f.Name = "b" })}, Lost},
		{"a former database in its place", Folder{Traces: life, Found: with(func(f *store.Found) { f.Name, f.Commits = "", 0 })}, Lost},
		{"damaged", Folder{Traces: life, Found: with(func(f *store.Found) { f.Damage = "x" })}, Damaged},
		{"damaged while it was made", Folder{Beginning: true, Found: store.Found{Size: 4096, MarkErr: none, Damage: "x"}}, Damaged},
		{"its mark is gone", Folder{Traces: life, Found: with(func(f *store.Found) { f.Mark, f.MarkErr = store.Mark{}, none })}, Damaged},
		{"its mark cannot be read", Folder{Traces: life, Found: with(func(f *store.Found) { f.Mark, f.MarkErr = store.Mark{}, errors.New("x") })}, Damaged},
		{"its rows were removed", Folder{Traces: life, Found: with(func(f *store.Found) { f.Tasks, f.Had = false, true })}, Lost},
		{"no task yet", Folder{Traces: life, Found: with(func(f *store.Found) { f.Tasks = false })}, Sound},
		{"of a former version", Folder{Traces: life, Found: store.Found{Size: 4096, MarkErr: none, Tables: true, Tasks: true}}, Sound},
		{"of a former version, without tasks", Folder{Traces: life, Found: store.Found{Size: 4096, MarkErr: none, Tables: true}}, Lost},
		{"a run has lost it", Folder{Note: "a run ended", Found: sound}, Lost},
	} {
		if got, why := c.f.Standing(); got != c.want || (why == "") != (got == New || got == Sound) {
			t.Errorf("%s: %s (%s), want %s", c.name, got, why, c.want)
		}
	}
}
