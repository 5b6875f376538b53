package session

import (
	"context"

	"ralph/internal/worktree"
	"ralph/store"
)

// hashes has one digest for each part that a session can change, so that ralph can name the unchanged parts (pipeline,
// "Stagnation").
type hashes struct {
	Definitions string `json:"definitions"` // definitions of its task and feature, without people's edits
	Files       string `json:"files"`       // of the files that the configuration lists
	Head        string `json:"head"`
	WorkTree    string `json:"work_tree"` // content, with uncommitted and untracked files, without ignored ones
}

// parts names the digests that differ.
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

// now computes the current digests. Changes by people are left out.
func (s *Session) now(ctx context.Context, snapshot worktree.Snapshot) (h hashes, err error) {
	h.Head, h.WorkTree, h.Files = snapshot.Head, snapshot.Content, s.Workspace.Files()
	err = s.Store.View(ctx, func(tx *store.Tx) error {
		row, err := tx.Session(s.Row.ID)
		if h.Definitions = s.reference.Definitions; err == nil && !row.PeopleEdited {
			h.Definitions, err = tx.Definitions(s.Row.TaskID)
		}
		return err
	})
	return h, err
}
