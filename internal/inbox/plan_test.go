package inbox

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"ralph"
	"ralph/store"
)

// TestAPlanIsDecidedOnAsItWasShown: after others' changes nothing is decided, and the person learns of them.
func TestAPlanIsDecidedOnAsItWasShown(t *testing.T) {
	t.Parallel()
	add := func(tx *store.Tx, name string) error {
		_, err := tx.AddTask(ralph.PlannedTask{Name: name, Title: "Do " + name}.Task("files"), "agent")
		return err
	}
	for _, tt := range []struct {
		name  string
		names []string
		while func(tx *store.Tx) error
		want  string // the error; "" for none
	}{
		{"as it was", nil, nil, ""},
		{"a part as it was", []string{"one"}, nil, ""},
		{"decided", nil, func(tx *store.Tx) error { return tx.ApproveProposal(1, "ada") }, "decided: TASK-1"},
		{
			"decided, and planned again", nil,
			func(tx *store.Tx) error {
				return errors.Join(tx.ApproveProposal(1, "ada"), tx.RejectProposal(2, "no", "ada"), add(tx, "three"))
			}, "decided: TASK-1, TASK-2; added: TASK-3",
		},
		{
			"edited",
			[]string{"two"},
			func(tx *store.Tx) error {
				one, err := tx.Task(2)
				one.Title = "Do something else"
				return errors.Join(err, tx.UpdateTask(one))
			}, "a text in it is another one",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ralph.db"), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var shown Plan
			if err := db.Tx(t.Context(), func(tx *store.Tx) (err error) {
				err = errors.Join(tx.PutFeature(ralph.Feature{Name: "files"}), add(tx, "one"), add(tx, "two"))
				if err == nil {
					shown, err = ReadPlan(tx, "files")
				}
				if err == nil && tt.while != nil {
					err = tt.while(tx)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			var said []string
			err = db.Tx(t.Context(), func(tx *store.Tx) (err error) {
				said, err = shown.Decide(tx, tt.names, true, "", "me")
				return err
			})
			switch {
			case tt.want == "" && (err != nil || len(said) == 0):
				t.Errorf("%q, %v", said, err)
			case tt.want != "" && (err == nil || !strings.HasSuffix(err.Error(), "nothing is decided: "+tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
