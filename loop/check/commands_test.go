package check

import (
	"slices"
	"testing"

	"ralph"
	"ralph/internal/testresult"
	"ralph/store"
)

// TestCommandsOfATask: a task's own commands check it in addition to the project's and its feature's. Earlier failures
// never excuse failures of its own commands, even if the project has the same command.
func TestCommandsOfATask(t *testing.T) {
	db, err := store.OpenEmpty(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var c Commands
	err = db.Tx(t.Context(), func(tx *store.Tx) error {
		if err := tx.PutFeature(ralph.Feature{Name: "login", Verify: []string{"feature", "both"}}); err != nil {
			return err
		}
		id, err := tx.AddTask(ralph.Task{Title: "A task", Feature: "login", Verify: []string{"own", "both"}}, "human")
		if err != nil {
			return err
		}
		task, err := tx.Task(id)
		if err != nil {
			return err
		}
		r := Rules{Commands: []string{"project", "both"}, Hidden: []ralph.Hidden{{Command: "hidden"}}}
		c, err = r.Of(tx, task)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"project", "feature"}; !slices.Equal(c.Shared, want) {
		t.Errorf("shared are %q, want %q", c.Shared, want)
	}
	if want := []string{"own", "both"}; !slices.Equal(c.Own, want) {
		t.Errorf("its own are %q, want %q", c.Own, want)
	}
	if want := []string{"project", "feature", "own", "both"}; !slices.Equal(c.All(), want) || len(c.Hidden) != 1 {
		t.Errorf("all are %q, and %d hidden, want %q and one", c.All(), len(c.Hidden), want)
	}
	red := Outcome{
		Check: ralph.Check{Command: "both", Exit: 1},
		Tests: &testresult.Results{Tests: map[string]testresult.Status{"T": testresult.Failed}},
	}
	if Compare(red, []Outcome{red}, c, false).Passed {
		t.Error("a failure of its own command is excused, since it failed before")
	}
}
