package store_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// older writes a database of an older design.
func older(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ralph.db")
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

const olderTables = `
	CREATE TABLE features (id INTEGER PRIMARY KEY, name TEXT, description TEXT);
	CREATE TABLE disciplines (id INTEGER PRIMARY KEY, name TEXT, system_prompt TEXT);
	CREATE TABLE tasks (id INTEGER PRIMARY KEY AUTOINCREMENT, feature_id INTEGER, discipline_id INTEGER, title TEXT NOT NULL, description TEXT, status TEXT, priority TEXT, acceptance_criteria TEXT, created TEXT);
	CREATE TABLE task_dependencies (task_id INTEGER, depends_on_task_id INTEGER);
	CREATE TABLE task_comments (id INTEGER PRIMARY KEY AUTOINCREMENT, task_id INTEGER, author TEXT, body TEXT, created TEXT);
	CREATE INDEX idx_task_comments_task ON task_comments(task_id);
	CREATE TABLE something_else (id INTEGER);
	INSERT INTO features VALUES (3, 'bookmarks', 'b');
	INSERT INTO disciplines VALUES (2, 'frontend', 'be kind');
	INSERT INTO tasks VALUES (4, 3, 2, 'Test the URLs', 'all', 'done', 'high', '["a", "b"]', '2026-02-10 09:00:00'), (5, NULL, NULL, 'Open', '', 'pending', '1', '', '2026-02-10 09:00:01');
	INSERT INTO task_dependencies VALUES (5, 4);
	INSERT INTO task_comments VALUES (101, 4, 'human', 'Also test unicode URLs please.', '2026-02-11 10:23:15'), (104, 4, 'human', 'Reject with error — bookmarks without URLs are meaningless.', '2026-02-11 10:28:03');
`

const flatTable = `CREATE TABLE task_signals (id INTEGER PRIMARY KEY AUTOINCREMENT, task_id INTEGER, discipline_id INTEGER, session_id TEXT, verb TEXT, summary TEXT, remaining TEXT, reason TEXT,
	question TEXT, options TEXT, preferred TEXT, blocking INTEGER, what TEXT, severity TEXT, category TEXT, kind TEXT, scope TEXT, text TEXT, rationale TEXT, why TEXT, feature_id INTEGER, "on" TEXT, detail TEXT, answer TEXT, created TEXT);
	INSERT INTO task_signals (task_id, discipline_id, session_id, verb, what, severity, category, created) VALUES (4, 2, 'sess-001', 'flag', 'Unicode URLs cause double-encoding in localStorage keys', 'blocking', 'bug', '2026-02-11 10:25:42');
	INSERT INTO task_signals (task_id, discipline_id, session_id, verb, question, blocking, preferred, options, answer, created)
		VALUES (4, 2, 'sess-001', 'ask', 'Should empty URL strings be treated as validation errors or silently skipped?', 1, 'Reject with error', 'Reject with error' || char(10) || 'Skip silently', 'Reject with error', '2026-02-11 10:26:10');
	INSERT INTO task_signals (task_id, session_id, verb, summary, created) VALUES (4, 'sess-001', 'done', 'Added validation.', '2026-02-11 10:35:21');
	INSERT INTO task_signals (task_id, discipline_id, session_id, verb, question, blocking, created) VALUES (5, 2, 'sess-002', 'ask', 'Which port?', 1, '2026-02-12 10:00:00');
	INSERT INTO task_signals (task_id, session_id, verb, what, kind, why, feature_id, created) VALUES (5, 'sess-002', 'suggest', 'Split it', 'split', 'it is big', 3, '2026-02-12 10:00:01');
	INSERT INTO task_signals (task_id, session_id, verb, severity, created) VALUES (5, 'sess-002', 'flag', 'terrible', '2026-02-12 10:00:02');
	INSERT INTO task_signals (task_id, session_id, verb, summary, created) VALUES (99, NULL, 'done', 'of a task that is gone', '2026-02-12 10:00:03');`

const payloadTable = `CREATE TABLE task_signals (id INTEGER PRIMARY KEY, task_id INTEGER, session_id TEXT, verb TEXT, payload TEXT, created_at TEXT);
	INSERT INTO task_signals (task_id, session_id, verb, payload, created_at) VALUES
	(4, 'sess-001', 'flag', '{"what": "Unicode URLs cause double-encoding in localStorage keys", "severity": "blocking", "category": "bug"}', '2026-02-11T10:25:42Z'),
	(4, 'sess-001', 'done', '{"summary": "Added validation."}', '2026-02-11T10:35:21Z'), (5, 'sess-002', 'done', 'not JSON', '2026-02-12T10:00:00Z');`

func bodies(t *testing.T, db *store.DB, task int64) (list []string) {
	t.Helper()
	err := db.View(t.Context(), func(tx *store.Tx) error {
		comments, err := tx.Timeline(task, store.CommentFilter{})
		for _, c := range comments {
			first, _, _ := strings.Cut(c.Body, "\n")
			list = append(list, c.Author+": "+first)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestADatabaseWithASignalsTableIsTakenOver uses the example thread of the design that put signals
// and comments into one table, in both older forms.
func TestADatabaseWithASignalsTableIsTakenOver(t *testing.T) {
	path := older(t, olderTables, flatTable)
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want := []string{
		"human: Also test unicode URLs please.",
		"frontend: 🚩 **Flag (blocking):** Unicode URLs cause double-encoding in localStorage keys",
		"frontend: ❓ **Ask (blocking):** Should empty URL strings be treated as validation errors or silently skipped?",
		"human: Reject with error — bookmarks without URLs are meaningless.",
		"agent: ✓ **Done:** Added validation.",
	}
	if got := bodies(t, db, 4); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := bodies(t, db, 5); len(got) != 3 || !strings.HasPrefix(got[2], "agent: A signal of an older database that cannot be read") {
		t.Errorf("got %q", got)
	}
	if got := bodies(t, db, 99); len(got) != 1 {
		t.Errorf("what was said of a task that is gone is lost: %q", got)
	}
	err = db.View(t.Context(), func(tx *store.Tx) error {
		ask, err := tx.SessionSignals("sess-001")
		if err != nil {
			return err
		}
		if a, ok := ask[1].Payload.(signals.Ask); !ok || !slices.Equal(a.Options, []string{"Reject with error", "Skip silently"}) || !ask[1].Answered || !a.IsBlocking() {
			t.Errorf("got %+v", ask[1])
		}
		done, err := tx.Task(4)
		if err != nil || done.Status != ralph.Completed || done.Feature != "bookmarks" || done.Discipline != "frontend" || !slices.Equal(done.Acceptance, []string{"a", "b"}) {
			t.Errorf("got %+v, %v", done, err)
		}
		open, err := tx.Task(5)
		if err != nil || open.Status != ralph.NeedsInput || open.Priority != 1 || !slices.Equal(open.DependsOn, []int64{4}) {
			t.Errorf("got %+v, %v", open, err)
		}
		flat := 0
		row := tx.QueryRowContext(t.Context(), `SELECT count(*) FROM task_signals WHERE verb IN ('flag', 'ask', 'done', 'suggest')`)
		if err := row.Scan(&flat); err != nil || flat != 6 {
			t.Errorf("the view has %d signals, %v", flat, err)
		}
		row = tx.QueryRowContext(t.Context(), `SELECT count(*) FROM sqlite_master WHERE name LIKE 'legacy%' OR name = 'task_signals' AND type = 'table'`)
		if err := row.Scan(&flat); err != nil || flat != 0 {
			t.Errorf("%d old tables are left, %v", flat, err)
		}
		row = tx.QueryRowContext(t.Context(), `SELECT count(*) FROM something_else`)
		return row.Scan(&flat)
	})
	if err != nil {
		t.Error(err)
	}
	if backups, err := os.ReadDir(filepath.Join(filepath.Dir(path), "backups")); err != nil || len(backups) != 1 {
		t.Errorf("backups: %v, %v", backups, err)
	}
	again, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := bodies(t, again, 4); !slices.Equal(got, want) {
		t.Errorf("opened again: got %q", got)
	}
}

func TestTheOtherShapeIsTakenOverToo(t *testing.T) {
	db, err := store.Open(t.Context(), older(t, olderTables, payloadTable), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got := bodies(t, db, 4); len(got) != 4 || got[1] != "agent: 🚩 **Flag (blocking):** Unicode URLs cause double-encoding in localStorage keys" {
		t.Errorf("got %q", got)
	}
	if got := bodies(t, db, 5); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

// TestCommentsWithoutATableOfSignalsAreTakenOver: the oldest design had only comments; the newest
// of the old designs had signals among them.
func TestCommentsWithoutATableOfSignalsAreTakenOver(t *testing.T) {
	const unified = `
		ALTER TABLE task_comments ADD COLUMN session_id TEXT; ALTER TABLE task_comments ADD COLUMN signal_verb TEXT;
		ALTER TABLE task_comments ADD COLUMN signal_payload TEXT; ALTER TABLE task_comments ADD COLUMN signal_answered TEXT;
		INSERT INTO task_comments (id, task_id, session_id, author, signal_verb, signal_payload, body, created) VALUES
		(105, 4, 'sess-001', 'frontend', 'done', '{"summary": "Added validation."}', 'stale', '2026-02-11 10:35:21');`
	people := []string{"human: Also test unicode URLs please.", "human: Reject with error — bookmarks without URLs are meaningless."}
	for _, tt := range []struct {
		name, more string
		want       []string
	}{
		{"comments alone", "", people},
		{
			"a discipline's", `ALTER TABLE task_comments ADD COLUMN discipline TEXT;
			INSERT INTO task_comments (id, task_id, discipline, body, created) VALUES (106, 4, 'frontend', 'Looked.', '2026-02-11 10:36:00');`,
			append(slices.Clone(people), "frontend: Looked."),
		},
		{"signals among them", unified, append(slices.Clone(people), "frontend: ✓ **Done:** Added validation.")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := older(t, olderTables, tt.more)
			for range 2 { // the second time it is ralph's own
				db, err := store.Open(t.Context(), path, store.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if got := bodies(t, db, 4); !slices.Equal(got, tt.want) {
					t.Errorf("got %q", got)
				}
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestAnOlderDatabasesContentsAreKept: learnings of old sessions reach later prompts, and a task's
// open question still waits for a person.
func TestAnOlderDatabasesContentsAreKept(t *testing.T) {
	db, err := store.Open(t.Context(), older(t, olderTables, payloadTable+`
		UPDATE tasks SET status = 'blocked' WHERE id = 5;
		INSERT INTO task_signals (task_id, session_id, verb, payload, created_at) VALUES
		(4, 's1', 'learned', '{"text": "Tests need Redis on port 6379", "kind": "convention", "scope": "project"}', '2026-02-11T10:00:00Z'),
		(5, 's2', 'learned', '{"text": "tests need redis on port 6379.", "kind": "convention", "scope": "project"}', '2026-02-12T11:00:00Z'),
		(4, 's1', 'learned', '{"text": "URLs are checked once", "kind": "decision", "rationale": "twice is slow"}', '2026-02-11T10:01:00Z'),
		(5, 's2', 'blocked', '{"on": "the key", "kind": "external"}', '2026-02-12T11:00:01Z');`), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(t.Context(), func(tx *store.Tx) error {
		list, err := tx.Learnings(store.LearningFilter{})
		if err != nil {
			return err
		}
		var got []string
		for _, l := range list {
			got = append(got, fmt.Sprintf("%s (%s, %s, %d×, %s to %s, %d signals)", l.Text, l.Scope, l.Rationale, l.TimesSeen, l.Created, l.LastSeen, len(l.Comments)))
		}
		want := []string{
			"Tests need Redis on port 6379 (project, , 2×, 2026-02-11T10:00:00.000Z to 2026-02-12T11:00:00.000Z, 2 signals)",
			"URLs are checked once (feature, twice is slow, 1×, 2026-02-11T10:01:00.000Z to 2026-02-11T10:01:00.000Z, 1 signals)",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		inbox, err := tx.Inbox()
		if len(inbox) != 2 || inbox[0].Kind != "flag" || inbox[1].Kind != "blocker" || inbox[1].TaskID != 5 {
			t.Errorf("waiting: %+v", inbox)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestASignalsTableInPlaceOfTheView: only the old table is taken over if all others are ralph's
// own.
func TestASignalsTableInPlaceOfTheView(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ralph.db")
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.AddTask(ralph.Task{Title: "One", Priority: 2}, "human")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.ExecContext(t.Context(), `DROP VIEW task_signals; `+strings.ReplaceAll(payloadTable, "(4,", "(1,")); err != nil {
		t.Fatal(err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = store.Open(t.Context(), path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got := bodies(t, db, 1); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}
