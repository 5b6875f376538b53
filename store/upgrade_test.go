package store_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/web/webtest"
	"ralph/store"
)

// newest is the release whose database -update writes.
const newest = "0.1.0"

// present are the rows that keep writes.
var present = map[string]int{
	"task blocked": 2, "task cancelled": 1, "task completed": 30, "task failed": 15, "task in_progress": 2, "task merging": 2,
	"task needs_input": 2, "task pending": 14, "task proposed": 8, "task rejected": 1,
	"change dropped": 10, "change held": 7, "change merged": 29, "change verifying": 2,
	"session ": 2, "session failure": 45, "session success": 35, "sessions": 82, "runs": 2, "events": 864,
	"ask": 1, "done": 48, "flag": 6, "learned": 1, "nack": 2, "note": 1, "partial": 1, "stuck": 21, "suggest": 3,
	"question": 3, "question with an answer": 1, "inbox": 36, "permissions": 1, "amendments": 2,
	"features": 3, "disciplines": 1, "learnings": 2, "issues": 1, "pull requests": 1,
}

// TestUpgrade opens the database of each release, kept as compressed SQL in testdata. It gets the present schema, and
// every kind of row can be read. `go test ./store -run TestUpgrade -update` writes that of the newest release.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	if *update {
		keep(t, filepath.Join("testdata", newest+".sql.gz"))
		return // the run in it counts as killed once this process has ended
	}
	want := schemaOf(t, file(t))
	kept, err := filepath.Glob(filepath.Join("testdata", "*.sql.gz"))
	if err != nil || len(kept) == 0 {
		t.Fatal("no release is kept: ", err)
	}
	for _, path := range kept {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			db := handle(t, restored(t, path), store.Options{})
			if err := db.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := schemaOf(t, db); !maps.Equal(got, want) {
				for name, text := range want {
					if got[name] != text {
						t.Errorf("%s: the upgraded database has\n%s\na new one has\n%s", name, got[name], text)
					}
				}
				t.Errorf("a migration that was released has changed: add one instead (before %s is released: -update)", newest)
			}
			if got := counts(t, db); !maps.Equal(got, present) {
				t.Errorf("it has %v, want %v", got, present)
			}
			write(t, db, func(tx *store.Tx) error {
				_, err := tx.AddTask(ralph.Task{Title: "The next"}, "human")
				return err
			})
		})
	}
}

// counts reads each kind of row and counts them.
func counts(t *testing.T, db *store.DB) map[string]int {
	t.Helper()
	got := map[string]int{}
	write(t, db, func(tx *store.Tx) error {
		tasks, err := tx.Tasks(store.TaskFilter{})
		for _, task := range tasks {
			got["task "+string(task.Status)]++
			changes, cerr := tx.Changes(task.ID, 0)
			for _, c := range changes {
				got["change "+string(c.State)]++
			}
			said, serr := tx.Timeline(task.ID, store.CommentFilter{})
			for _, c := range said {
				kind := cmp.Or(string(c.Kind), string(c.Verb))
				got[kind]++
				if c.Answer != nil || c.Decision != "" {
					got[kind+" with an answer"]++
				}
			}
			err = errors.Join(err, cerr, serr)
		}
		sessions, serr := tx.Sessions(store.SessionFilter{})
		for _, s := range sessions {
			got["session "+string(s.Outcome)]++
		}
		list := func(kind string, n int, lerr error) {
			got[kind] += n
			err = errors.Join(err, lerr)
		}
		list("sessions", len(sessions), serr)
		runs, rerr := tx.Runs(ralph.Time{}, 100, 0)
		list("runs", len(runs), rerr)
		features, ferr := tx.Features()
		list("features", len(features), ferr)
		disciplines, derr := tx.Disciplines()
		list("disciplines", len(disciplines), derr)
		learnings, lerr := tx.Learnings(store.LearningFilter{})
		list("learnings", len(learnings), lerr)
		amendments, aerr := tx.Amendments(store.AmendmentFilter{})
		list("amendments", len(amendments), aerr)
		permissions, perr := tx.Permissions("")
		list("permissions", len(permissions), perr)
		inbox, ierr := tx.Inbox()
		list("inbox", len(inbox), ierr)
		events, eerr := tx.Events(0, 10000)
		list("events", len(events), eerr)
		issues, gerr := tx.ForgeIssues()
		list("issues", len(issues), gerr)
		pulls, uerr := tx.ForgePulls()
		list("pull requests", len(pulls), uerr)
		return err
	})
	return got
}

// schemaOf returns the statements of a database, by the names of the created objects.
func schemaOf(t *testing.T, db *store.DB) map[string]string {
	t.Helper()
	schema := map[string]string{}
	for _, r := range rows(t, rawly(t, db), `SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL`) {
		schema[fmt.Sprint(r[0])] = fmt.Sprint(r[1])
	}
	return schema
}

// keep writes a database with every kind of row as SQL.
func keep(t *testing.T, path string) {
	t.Helper()
	night := &webtest.Night{Morning: time.Date(2026, 11, 28, 7, 0, 0, 0, time.UTC)}
	db := handle(t, filepath.Join(t.TempDir(), "ralph.db"), store.Options{Now: night.Now})
	if err := errors.Join(night.Fill(t.Context(), db), night.Plan()); err != nil {
		t.Fatal(err)
	}
	write(t, db, func(tx *store.Tx) error {
		at := ralph.At(night.Morning)
		task := func() int64 {
			id, err := tx.AddTask(ralph.Task{Title: "Called off"}, "human")
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		_, err := tx.Cancel(task(), "ada")
		proposed, perr := tx.Tasks(store.TaskFilter{Statuses: []ralph.Status{ralph.Proposed}, Limit: 2})
		if err = errors.Join(err, perr); err != nil {
			return err
		}
		question, err := tx.AddComment(ralph.Comment{TaskID: proposed[1].ID, Author: "ada", AuthorKind: ralph.ByHuman, Kind: ralph.Question, Body: "By month?"})
		if err == nil {
			err = tx.Resolve(question, "by month", "ada")
		}
		if err != nil {
			return err
		}
		_, err = tx.AddCheckpoint(ralph.Checkpoint{SessionID: night.Running[0], Source: "reported", Note: "half of it"})
		return errors.Join(err,
			tx.SetTrouble(store.Trouble{Kind: store.TroubleAfter, What: "make deploy failed"}),
			tx.RejectProposal(proposed[0].ID, "not now", "ada"),
			tx.PutDiscipline(ralph.Discipline{Name: "api"}),
			tx.FollowForge("ada/my-app", "1a2b3c4d"), tx.SetForgeSince(at),
			tx.PutForgeIssue(store.ForgeIssue{Number: 7, TaskID: 2, Wanted: true, ReadTo: at}),
			tx.PutForgePull(store.ForgePull{Number: 8, TaskID: night.Merged[0], ChangeID: 1, Branch: "ralph/1", Open: true}),
		)
	})
	var text bytes.Buffer
	zip, err := gzip.NewWriterLevel(&text, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	raw := rawly(t, db)
	for _, r := range rows(t, raw, `SELECT sql || ';' FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid`) {
		fmt.Fprintln(zip, r[0])
	}
	for _, table := range rows(t, raw, `SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid`) {
		var names, values []string
		for _, c := range rows(t, raw, fmt.Sprintf(`SELECT name FROM pragma_table_info('%s') ORDER BY cid`, table[0])) {
			names, values = append(names, fmt.Sprint(c[0])), append(values, fmt.Sprintf("quote(%q)", c[0]))
		}
		for _, r := range rows(t, raw, fmt.Sprintf(`SELECT %s FROM %s ORDER BY rowid`, strings.Join(values, " || ',' || "), table[0])) {
			fmt.Fprintf(zip, "INSERT INTO %s (%s) VALUES (%s);\n", table[0], strings.Join(names, ","), r[0])
		}
	}
	for _, r := range rows(t, raw, `SELECT sql || ';' FROM sqlite_master WHERE type <> 'table' AND sql IS NOT NULL ORDER BY rowid`) {
		fmt.Fprintln(zip, r[0])
	}
	if err := errors.Join(zip.Close(), os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// restored makes a database of SQL that was kept, and returns its path.
func restored(t *testing.T, kept string) string {
	t.Helper()
	f, err := os.Open(kept)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ralph.db")
	raw, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.ExecContext(t.Context(), "BEGIN;\n"+string(text)+"COMMIT;"); err != nil {
		t.Fatal(err)
	}
	return path
}

// rows returns the values that a query selects.
func rows(t *testing.T, db *sql.DB, query string) (list [][]any) {
	t.Helper()
	found, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(query, ": ", err)
	}
	defer func() { _ = found.Close() }()
	columns, err := found.Columns()
	for err == nil && found.Next() {
		row := make([]any, len(columns))
		to := make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		err = found.Scan(to...)
		list = append(list, slices.Clone(row))
	}
	if err = errors.Join(err, found.Err()); err != nil {
		t.Fatal(query, ": ", err)
	}
	return list
}
