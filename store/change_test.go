package store_test

import (
	"errors"
	"testing"

	"ralph"
	"ralph/store"
)

// TestAChangeThatIsInAnotherState is not taken by who read it before: two who merge cannot both have it.
func TestAChangeThatIsInAnotherState(t *testing.T) {
	db, s := working(t)
	var id int64
	write(t, db, func(tx *store.Tx) (err error) {
		id, err = tx.AddChange(ralph.Change{TaskID: s.TaskID, SessionID: s.ID, Base: "a", Head: "b", Tree: "c", State: ralph.Queued})
		return err
	})
	write(t, db, func(tx *store.Tx) error { return tx.SetChange(id, ralph.Queued, ralph.Held) })
	err := db.Tx(t.Context(), func(tx *store.Tx) error { return tx.SetChange(id, ralph.Queued, ralph.Moving) })
	if !errors.Is(err, ralph.ErrConflict) {
		t.Errorf("it was taken: %v", err)
	}
	write(t, db, func(tx *store.Tx) error {
		c, err := tx.Change(id)
		if c.State != ralph.Held {
			t.Errorf("it is %s", c.State)
		}
		return err
	})
}
