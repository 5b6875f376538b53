package session

import (
	"context"

	"ralph/internal/worktree"
	"ralph/store"
)

// hashes are what a session can leave behind, one digest per part, so that ralph
// can say what did not change (pipeline, "Stagnation").
type hashes struct {
	Definitions string `json:"definitions"` // of the session's task and its feature, less people's edits
	Files       string `json:"files"`       // those that the configuration lists
	Head        string `json:"head"`
	WorkTree    string `json:"work_tree"` // content, uncommitted and untracked included, ignored left out

	// No digest: places of protected files that could not be read when the session began.
	Hidden []string `json:"hidden,omitempty"`
}

// parts says which of the digests differ.
type parts struct{ definitions, files, head, workTree bool }

func (h hashes) differ(from hashes) parts {
	return parts{
		definitions: h.Definitions != from.Definitions, files: h.Files != from.Files,
		head: h.Head != from.Head, workTree: h.WorkTree != from.WorkTree,
	}
}

func (p parts) or(q parts) parts {
	return parts{p.definitions || q.definitions, p.files || q.files, p.head || q.head, p.workTree || q.workTree}
}

func (p parts) any() bool { return p != parts{} }

// missing names the parts that did not change, for people.
func (p parts) missing() []string {
	names := []string{}
	for _, part := range []struct {
		changed bool
		name    string
	}{{p.definitions, "definitions"}, {p.files, "files"}, {p.head, "head"}, {p.workTree, "work_tree"}} {
		if !part.changed {
			names = append(names, part.name)
		}
	}
	return names
}

// hash takes the digests of a task's session at this moment; files are those of
// [place.Place.Files], for which a transaction is no place.
func hash(tx *store.Tx, task int64, snapshot worktree.Snapshot, files string) (h hashes, err error) {
	h.Head, h.WorkTree, h.Files = snapshot.Head, snapshot.Digest(), files
	h.Definitions, err = tx.Definitions(task)
	return h, err
}

// now takes the digests of this moment. A change by people is not the session's.
func (s *Session) now(ctx context.Context, snapshot worktree.Snapshot) (h hashes, err error) {
	files := s.Place.Files()
	s.left, err = store.Read(ctx, s.Store, func(tx *store.Tx) (hashes, error) {
		if h, err = hash(tx, s.Row.TaskID, snapshot, files); err != nil {
			return h, err
		}
		edited, err := tx.PeopleEdited(s.Row.ID)
		if edited {
			h.Definitions = s.reference.Definitions
		}
		return h, err
	})
	return s.left, err
}
