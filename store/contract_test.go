package store_test

import (
	"path/filepath"
	"testing"

	"ralph"
	"ralph/store"
)

// A person's edit of a task does not count as a change by its session, and stops the session only
// if the task has a new contract.
func TestPeopleChangeATaskThatIsWorkedOn(t *testing.T) {
	amend := func(p ralph.Patch) func(tx *store.Tx) error {
		return func(tx *store.Tx) error {
			id, err := tx.Propose(ralph.Amendment{TaskID: 1, Author: "agent", AuthorKind: ralph.ByAgent, Patch: p, Rationale: "r"})
			if err == nil {
				_, err = tx.ApproveAmendment(id, "", "ann")
			}
			return err
		}
	}
	text, same, first := "B", "A", 0
	for _, tt := range []struct {
		name    string
		happens func(tx *store.Tx) error
		stops   bool
	}{
		{"another place in the queue", func(tx *store.Tx) error { return tx.MoveRank(1, 2, false) }, false},
		{"another priority", amend(ralph.Patch{Priority: &first}), false},
		{"another title", amend(ralph.Patch{Title: &text}), false},
		{"another description", amend(ralph.Patch{Description: &text}), true},
		{"other criteria", amend(ralph.Patch{Contracts: &ralph.Contract{Acceptance: &[]string{"it works"}}}), true},
		{"the same title", amend(ralph.Patch{Title: &same}), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const session = "11111111-1111-4111-8111-111111111111"
			db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
			write(t, db, func(tx *store.Tx) error {
				for _, task := range []ralph.Task{{Title: "A", Priority: 2}, {Title: "Other", Priority: 1}} {
					if _, err := tx.AddTask(task, "human"); err != nil {
						return err
					}
				}
				_, err := tx.StartSession(store.Start{ID: session, Task: 1})
				return err
			})
			write(t, db, tt.happens)
			write(t, db, func(tx *store.Tx) error {
				s, err := tx.Session(session)
				stops := s.StopRequest == "contract" && s.StopBy == "ann"
				if !s.PeopleEdited || stops != tt.stops || !stops && s.StopRequest != "" {
					t.Errorf("people's change: %t; stopped for %q by %q", s.PeopleEdited, s.StopRequest, s.StopBy)
				}
				return err
			})
		})
	}
}
