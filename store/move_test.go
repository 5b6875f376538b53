package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/machine"
	"ralph/internal/pgtest"
	"ralph/signals"
	"ralph/store"
)

// TestADatabaseIsMovedAndBack: from a file to PostgreSQL and into another file all tables are the same, and ids go on.
func TestADatabaseIsMovedAndBack(t *testing.T) {
	pgtest.Files(t)
	file, server, back := open(t, filepath.Join(t.TempDir(), "ralph.db")), open(t, pgtest.New(t)), open(t, filepath.Join(t.TempDir(), "ralph.db"))
	process, leave := machine.Join()
	const id = "11111111-1111-4111-8111-111111111111"
	var run ralph.Run
	write(t, file, func(tx *store.Tx) (err error) {
		for i := range 150 { // more than one statement adds
			task, err := tx.AddTask(ralph.Task{
				Title: fmt.Sprintf("Ünïcode %d \\u0000 'quoted'", i), Acceptance: []string{"a\nb", `"`}, Priority: i % 5,
			}, "human")
			if err != nil {
				return err
			}
			if _, err := tx.AddComment(ralph.Comment{TaskID: task, Body: "😀\t", Kind: ralph.Note, Author: "human", AuthorKind: ralph.ByHuman}); err != nil {
				return err
			}
		}
		if run, err = tx.StartRun(process, ralph.Limits{MaxCostUSD: 0.1}, ""); err != nil {
			return err
		}
		_, err = tx.StartSession(store.Start{ID: id, Task: 1, Run: run.ID, CostLimitUSD: 1.0 / 3})
		return err
	})
	refused := func(why string) {
		t.Helper()
		if _, err := store.Move(t.Context(), file, server); !errors.Is(err, ralph.ErrConflict) {
			t.Errorf("%s: got %v", why, err)
		}
	}
	refused("a run works on it")
	leave()
	refused("a session is open")
	write(t, file, func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		f, err := tx.Facts(id)
		if err != nil {
			return err
		}
		s.Ending, f.Ending = ralph.Lost, ralph.Lost
		return tx.Apply(s, f, signals.Decide(f))
	})
	there, err := store.Move(t.Context(), file, server)
	if err != nil {
		t.Fatal(err)
	}
	refused("the other one is not empty")
	again, err := store.Move(t.Context(), server, back)
	if err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	for i, m := range there {
		if again[i] != m {
			t.Errorf("%+v came back as %+v", m, again[i])
		}
		rows += m.Rows
	}
	if rows < 300 {
		t.Errorf("only %d rows were moved", rows)
	}
	for _, db := range []*store.DB{server, back} {
		write(t, db, func(tx *store.Tx) error {
			task, err := tx.AddTask(ralph.Task{Title: "The next"}, "human")
			if task != 151 {
				t.Errorf("%s: the next task is %d", db.Path(), task)
			}
			return err
		})
		if problems, err := db.Examine(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("%s: %v, %v", db.Path(), problems, err)
		}
	}
}

// TestAMoveThatChangesARowIsRefused: the other database changes what it is given, and nothing is moved.
func TestAMoveThatChangesARowIsRefused(t *testing.T) {
	pgtest.Files(t)
	path := filepath.Join(t.TempDir(), "ralph.db")
	from, to := open(t, filepath.Join(t.TempDir(), "ralph.db")), open(t, path)
	write(t, from, func(tx *store.Tx) error {
		_, err := tx.AddTask(ralph.Task{Title: "As it is"}, "human")
		return err
	})
	raw, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = raw.ExecContext(t.Context(), `CREATE TRIGGER changed AFTER INSERT ON tasks
		BEGIN UPDATE tasks SET title = 'another' WHERE id = NEW.id; END`)
	if err := errors.Join(err, raw.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Move(t.Context(), from, to); err == nil || !strings.Contains(err.Error(), "tasks is not the same in both") {
		t.Errorf("got %v", err)
	}
	tasks, err := store.Read(t.Context(), to, func(tx *store.Tx) (int, error) {
		list, err := tx.Tasks(store.TaskFilter{})
		return len(list), err
	})
	if err != nil || tasks != 0 {
		t.Errorf("%d tasks were moved, %v", tasks, err)
	}
}
