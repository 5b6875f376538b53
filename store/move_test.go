package store_test

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/machine"
	"ralph/internal/pgtest"
	"ralph/internal/web/webtest"
	"ralph/signals"
	"ralph/store"
)

// file opens a database in a file, also if the tests use a server.
func file(t *testing.T) *store.DB {
	t.Helper()
	return handle(t, filepath.Join(t.TempDir(), "ralph.db"), store.Options{})
}

// odd are texts that a database may change.
var odd = []string{
	"", " ", "a\x00b", "\xff\xfe", `\u0000`, `{"a": "\u0000\ud800"}`, "👩‍👩‍👧 é e\u0301 \u202e \ufeff", "'quoted' \\ $1 %s", "\r\n\t\v",
	strings.Repeat("5 MB ", 1<<20),
}

// TestADatabaseIsMovedAndBack: from a file to PostgreSQL and into another file all tables are the same, odd texts
// included, and ids continue.
func TestADatabaseIsMovedAndBack(t *testing.T) {
	t.Parallel()
	night := &webtest.Night{}
	file, server, back := handle(t, filepath.Join(t.TempDir(), "ralph.db"), store.Options{Now: night.Now}), handle(t, pgtest.New(t), store.Options{}), file(t)
	if err := errors.Join(night.Fill(t.Context(), file), night.Plan()); err != nil {
		t.Fatal(err)
	}
	write(t, file, func(tx *store.Tx) error { // open sessions there end
		_, err := tx.ExecContext(t.Context(), `UPDATE runs SET ended_at = started_at`)
		if err == nil {
			_, err = tx.ExecContext(t.Context(), `UPDATE sessions SET completed_at = updated_at WHERE completed_at = ''`)
		}
		return err
	})
	process, leave := machine.Join()
	const id = "11111111-1111-4111-8111-111111111111"
	var run ralph.Run
	var first, last int64
	write(t, file, func(tx *store.Tx) (err error) {
		for i := range 150 { // more than one statement adds
			last, err = tx.AddTask(ralph.Task{Title: fmt.Sprintf("Ünïcode %d \\u0000 'quoted'", i), Acceptance: []string{"a\nb", `"`}, Priority: i % 5}, "human")
			if first = cmp.Or(first, last); err != nil {
				return err
			}
		}
		for i, text := range odd {
			name := fmt.Sprint("odd ", i)
			if err := tx.PutFeature(ralph.Feature{Name: name}); err != nil {
				return err
			}
			if _, err := tx.ExecContext(t.Context(), `UPDATE features SET description = $1, learnings = $1 WHERE name = $2`, text, name); err != nil {
				return err
			}
		}
		if run, err = tx.StartRun(process, ralph.Limits{MaxCostUSD: 0.1}, ""); err != nil {
			return err
		}
		if _, err = tx.StartSession(store.Start{ID: id, Task: first, Run: run.ID, CostLimitUSD: 1.0 / 3}); err != nil {
			return err
		}
		_, err = tx.ExecContext(t.Context(), `DELETE FROM tasks WHERE id = $1 OR id = $2`, last-20, last) // gaps
		return err
	})
	refused := func(why string) {
		t.Helper()
		if _, err := store.Move(t.Context(), file, server); !errors.Is(err, ralph.ErrConflict) || strings.Contains(err.Error(), "\n") {
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
	write(t, server, func(tx *store.Tx) error { return tx.PutDiscipline(ralph.Discipline{Name: "ui"}) })
	refused("the other one has a discipline and no task")
	write(t, server, func(tx *store.Tx) error {
		_, err := tx.ExecContext(t.Context(), `DELETE FROM disciplines`)
		return err
	})
	write(t, server, func(tx *store.Tx) error { // a table of others, without a key and with columns that SQLite lacks
		_, err := tx.ExecContext(t.Context(), `CREATE TABLE others (a int[])`)
		return err
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
	if !slices.Equal(there, again) {
		t.Errorf("%+v came back as %+v", there, again)
	}
	rows := int64(0)
	for _, m := range there {
		rows += m.Rows
	}
	if rows < 1000 {
		t.Errorf("only %d rows were moved", rows)
	}
	for _, db := range []*store.DB{server, back} {
		write(t, db, func(tx *store.Tx) error {
			task, err := tx.AddTask(ralph.Task{Title: "The next"}, "human")
			if task != last+1 {
				t.Errorf("%s: the next task is %d", db.Path(), task)
			}
			return err
		})
	}
}

// TestAMoveTakesItsTime: each database waits for the other, for any time. A lost database is noticed, unless everything
// was copied by then.
func TestAMoveTakesItsTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, at, what string }{
		{"the file is slow", "SELECT", `SELECT pg_sleep(0.05) FROM pg_stat_activity WHERE datname = current_database() AND
			pid <> pg_backend_pid() AND state = 'idle in transaction' AND state_change > now() - interval '4s'`},
		{"the server is lost before the commit", "SELECT", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`},
		{"the server is lost at the commit", "COMMIT", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			name := pgtest.New(t)
			from, raw, copied, played := handle(t, name, store.Options{}), pgtest.Raw(t, name), false, 0
			write(t, from, func(tx *store.Tx) error { _, err := tx.AddTask(ralph.Task{Title: "A"}, "human"); return err })
			to := handle(t, filepath.Join(t.TempDir(), "ralph.db"), store.Options{Statement: func(query string) {
				copied = copied || strings.HasPrefix(query, "INSERT INTO events")
				if !copied || played > 0 && tt.at == "SELECT" || !strings.HasPrefix(query, tt.at) {
					return
				}
				for played++; ; {
					result, err := raw.ExecContext(t.Context(), tt.what)
					if err != nil {
						t.Error(err)
					}
					if n, err := result.RowsAffected(); err != nil || n == 0 {
						return
					}
				}
			}})
			if moved, err := store.Move(t.Context(), from, to); err != nil || len(moved) == 0 || played != 1 {
				t.Errorf("%v, %v, %d", moved, err, played)
			}
			tasks, err := store.Read(t.Context(), to, func(tx *store.Tx) ([]ralph.Task, error) { return tx.Tasks(store.TaskFilter{}) })
			if err != nil || len(tasks) != 1 {
				t.Errorf("%d tasks were moved, %v", len(tasks), err)
			}
		})
	}
}

// TestAMoveThatChangesARowIsRefused: the other database changes a value, and nothing is moved.
func TestAMoveThatChangesARowIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ralph.db")
	from, to := file(t), handle(t, path, store.Options{})
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

// TestAMoveNamesUnmovableValues: another program has written values that PostgreSQL refuses.
func TestAMoveNamesUnmovableValues(t *testing.T) {
	t.Parallel()
	from, to := file(t), handle(t, pgtest.New(t), store.Options{})
	write(t, from, func(tx *store.Tx) error {
		_, err := tx.AddTask(ralph.Task{Title: "A"}, "human")
		if err == nil {
			_, err = tx.ExecContext(t.Context(), `UPDATE tasks SET description = 'a' || char(0)`)
		}
		return err
	})
	if _, err := store.Move(t.Context(), from, to); err == nil || !strings.Contains(err.Error(), "copy tasks: description of the row 1 has a NUL") {
		t.Errorf("got %v", err)
	}
}
