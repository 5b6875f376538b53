package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ralph/store"
)

// A Standing is the condition of a state folder.
type Standing string

// Conditions of a state folder.
const (
	New     Standing = "new"     // no queue has begun in it
	Sound   Standing = "sound"   // its queue is as ralph left it
	Lost    Standing = "lost"    // the queue of the folder is missing, replaced, or incomplete
	Damaged Standing = "damaged" // its database is there and cannot be trusted
)

// A Folder has the contents of a state folder.
type Folder struct {
	Note      string   // a run's note about the loss of its database; "" if there is none
	Traces    []string // files that show that a queue had begun
	Beginning bool     // the making of the queue was not completed
	store.Found
}

// Standing returns the folder's condition, and the reason if it is lost or damaged. Commands use only queues that are
// new or sound.
func (f Folder) Standing() (standing Standing, why string) {
	began := "what it belongs to is there (" + strings.Join(f.Traces, ", ") + ")"
	marked := f.MarkErr == nil
	switch {
	case f.Note != "":
		return Lost, f.Note
	case f.Size <= 0 && (len(f.Traces) == 0 || f.Beginning && !marked):
		return New, ""
	case f.Size < 0:
		return Lost, "the database is gone, but " + began
	case f.Size == 0:
		return Lost, "the database is empty, but " + began
	case f.Damage != "":
		return Damaged, f.Damage
	case f.Beginning && !marked && !f.Tasks:
		return New, ""
	case f.Beginning && !marked:
		return Sound, "" // it was brought here
	case !f.Tables:
		return Lost, "the database has no tables, but " + began
	}
	return f.history(began)
}

// history tells whether a readable database is the former one, in its latest state.
func (f Folder) history(began string) (standing Standing, why string) {
	marked := f.MarkErr == nil
	switch {
	case f.Name == "" && marked:
		return Lost, "this is another database, of a former version of ralph"
	case f.Name == "" && !f.Tasks && len(f.Traces) > 0:
		return Lost, "there is no task in it, but " + began
	case f.Name == "":
		return Sound, ""
	case !marked && f.Commits == 0:
		return Sound, "" // it was made a moment ago
	case !marked:
		return Damaged, fmt.Sprintf(
			"the file that says how far it had got cannot be used (%v), so that a loss could not be noticed",
			f.MarkErr)
	case f.Name != f.Mark.Database:
		return Lost, "this is another database than the one that was there"
	case f.Commits < f.Mark.Commits:
		return Lost, fmt.Sprintf(
			"it has %d of %d changes: it is an older copy, or its write-ahead log was removed or damaged",
			f.Commits, f.Mark.Commits)
	case f.Had:
		return Lost, "there is no task in it, but it tells of some"
	}
	return Sound, ""
}

// folder looks at a state folder, except for its database.
func (h *Home) folder() (f Folder, err error) {
	note, err := os.ReadFile(h.File(Gone))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f, fmt.Errorf("cannot tell whether the queue exists: %w", err)
	}
	if err == nil {
		f.Note = strings.TrimSpace(string(note)) + "; where all is as it should be, remove " + h.File(Gone)
	}
	if f.Beginning, err = present(h.File(beginning)); err != nil {
		return f, err
	}
	f.Traces, err = tracesIn(h.State, slices.Concat(
		[]string{recordName, store.MarkFile(Database), Database + ".turn"}, traces))
	if packages, perr := present(filepath.Join(h.State, packagesName)); perr != nil || packages {
		// The record may be for the packages alone.
		f.Traces = slices.DeleteFunc(f.Traces, func(name string) bool { return name == recordName })
		err = errors.Join(err, perr)
	}
	if h.State != h.base && Exists(h.State) {
		f.Traces = append(f.Traces, "the folder of a package")
	}
	return f, err
}

// sizeOf returns the size of a file in bytes, -1 if there is none.
func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return -1, fmt.Errorf("cannot tell whether the queue exists: %w", err)
	}
	return info.Size(), nil
}

// complete notes that the folder's database is complete.
func (h *Home) complete() error {
	if there, err := present(h.File(beginning)); err != nil || !there {
		return err
	}
	return os.Remove(h.File(beginning))
}

// Restored notes that a copy was put in the place of the database.
func (h *Home) Restored() error {
	for _, note := range []string{Gone, onServer} {
		if err := os.Remove(h.File(note)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return h.complete()
}
