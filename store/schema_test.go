package store_test

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

// TestTheTableOfCommentsIsAsDesigned: people query the table and other programs may write to it, so
// its columns, types and indexes are an interface. TestTheTableOfCommentsRefuses tests its
// constraints.
func TestTheTableOfCommentsIsAsDesigned(t *testing.T) {
	pgtest.Files(t)
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	type column struct {
		kind     string
		required bool
		key      bool
	}
	want := map[string]column{
		"id":              {"INTEGER", false, true},
		"task_id":         {"INTEGER", true, false},
		"session_id":      {"TEXT", false, false},
		"author":          {"TEXT", true, false},
		"signal_verb":     {"TEXT", false, false},
		"signal_payload":  {"TEXT", false, false},
		"signal_answered": {"TEXT", false, false},
		"body":            {"TEXT", true, false},
		"created":         {"TEXT", true, false},
	}
	err := db.View(t.Context(), func(tx *store.Tx) error {
		rows, err := tx.QueryContext(t.Context(), `SELECT name, type, "notnull", pk FROM pragma_table_info('task_comments')`)
		if err != nil {
			return err
		}
		for rows.Next() {
			var name string
			var c column
			if err := rows.Scan(&name, &c.kind, &c.required, &c.key); err != nil {
				return errors.Join(err, rows.Close())
			}
			if w, ok := want[name]; ok && w != c {
				t.Errorf("%s is %+v, want %+v", name, c, w)
			}
			delete(want, name)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		for name := range want {
			t.Errorf("there is no column %s", name)
		}
		for name, columns := range map[string]string{
			"idx_task_comments_task": "(task_id)", "idx_task_comments_session": "(session_id)", "idx_task_comments_verb": "(signal_verb)",
		} {
			var ddl string
			if err := tx.QueryRowContext(t.Context(), `SELECT sql FROM sqlite_master WHERE type = 'index' AND name = $1`, name).Scan(&ddl); err != nil || !strings.HasSuffix(ddl, columns) {
				t.Errorf("index %s is %q (%v)", name, ddl, err)
			}
		}
		if ddl := declared(t, tx); !strings.Contains(ddl, "AUTOINCREMENT") || !strings.HasSuffix(ddl, ") STRICT") {
			t.Errorf("the table is declared so: %s", ddl)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// declared returns the current declaration of the table of comments.
func declared(t *testing.T, tx *store.Tx) (ddl string) {
	t.Helper()
	if err := tx.QueryRowContext(t.Context(), `SELECT sql FROM sqlite_master WHERE name = 'task_comments'`).Scan(&ddl); err != nil {
		t.Fatal(err)
	}
	return ddl
}

// payloads are minimal payloads of each verb that the table accepts.
var payloads = map[ralph.Verb]string{
	ralph.VerbDone:    `{"summary":"a"}`,
	ralph.VerbPartial: `{"summary":"a","remaining":"b"}`,
	ralph.VerbStuck:   `{"reason":"a"}`,
	ralph.VerbAsk:     `{"question":"a","blocking":false}`,
	ralph.VerbFlag:    `{"what":"a","severity":"info","category":"bug"}`,
	ralph.VerbLearned: `{"text":"a","kind":"decision"}`,
	ralph.VerbSuggest: `{"what":"a","kind":"split","why":"b"}`,
	ralph.VerbBlocked: `{"on":"a","kind":"external"}`,
}

// TestTheTableOfCommentsRefuses has a row for each rule that the database itself enforces.
func TestTheTableOfCommentsRefuses(t *testing.T) {
	db, s := working(t)
	raw := rawly(t, db)
	type row map[string]any
	insert := func(r row) (sql.Result, error) {
		full := row{"task_id": s.TaskID, "author": "agent", "body": "x"}
		maps.Copy(full, r)
		names := slices.Sorted(maps.Keys(full))
		values, marks := make([]any, len(names)), make([]string, len(names))
		for i, n := range names {
			values[i], marks[i] = full[n], fmt.Sprint("$", i+1)
		}
		return raw.ExecContext(t.Context(), fmt.Sprintf(`INSERT INTO task_comments (%s) VALUES (%s)`, strings.Join(names, ", "), strings.Join(marks, ", ")), values...)
	}
	signal := func(verb ralph.Verb, payload string) row {
		return row{"session_id": s.ID, "signal_verb": string(verb), "signal_payload": payload}
	}
	with := func(r row, name string, value any) row {
		r = maps.Clone(r)
		r[name] = value
		return r
	}
	note := row{"kind": "note"}
	done := signal(ralph.VerbDone, payloads[ralph.VerbDone])

	taken := map[string]row{
		"a comment": note, "a blocker with its reason": {"kind": "blocker", "rationale": "x"}, "a nack with its reason": {"kind": "nack", "rationale": "x"},
		"an answered ask":        with(signal(ralph.VerbAsk, payloads[ralph.VerbAsk]), "signal_answered", "yes"),
		"an ask with all fields": signal(ralph.VerbAsk, `{"question":"a","blocking":true,"options":["x"],"preferred":"x"}`),
		"all of a learned":       signal(ralph.VerbLearned, `{"text":"a","kind":"decision","rationale":"b","scope":"task"}`),
		"all of a suggest":       signal(ralph.VerbSuggest, `{"what":"a","kind":"new_task","why":"b","feature":"c"}`),
		"all of a blocked":       signal(ralph.VerbBlocked, `{"on":"a","kind":"upstream_task","detail":"b"}`),
	}
	for _, verb := range ralph.Verbs {
		taken["a "+string(verb)] = signal(verb, payloads[verb])
	}
	for name, r := range taken {
		if _, err := insert(r); err != nil {
			t.Errorf("%s was refused: %v", name, err)
		}
	}

	refused := []struct {
		rule string // what the message names
		also string // what PostgreSQL's message names, if it is another one
		rows []row
	}{
		{"NOT NULL constraint failed: task_comments.task_id", `null value in column "task_id"`, []row{with(note, "task_id", nil)}},
		{"NOT NULL constraint failed: task_comments.author", `null value in column "author"`, []row{with(note, "author", nil)}},
		{"NOT NULL constraint failed: task_comments.body", `null value in column "body"`, []row{with(note, "body", nil)}},
		{"NOT NULL constraint failed: task_comments.created", `null value in column "created"`, []row{with(note, "created", nil)}},
		{"FOREIGN KEY constraint failed", "violates foreign key constraint", []row{with(note, "task_id", s.TaskID+1), with(note, "parent_id", 99)}},
		{"cannot store TEXT value in INTEGER column", "invalid input syntax for type bigint", []row{with(note, "task_id", "x")}},
		{"signal_verb IN", "task_comments_signal_verb_check", []row{signal("shout", `{}`), signal("Done", payloads[ralph.VerbDone])}},
		{"kind IN", "task_comments_kind_check", []row{{"kind": "shout"}, {"kind": "done"}}},
		{"author_kind IN", "task_comments_author_kind_check", []row{with(note, "author_kind", "robot")}},
		{"holding IN", "task_comments_holding_check", []row{with(note, "holding", 2)}},
		{"comment_or_signal", "", []row{{}, with(done, "kind", "note")}},
		{"payload_with_verb", "", []row{with(done, "signal_payload", nil), with(note, "signal_payload", `{}`)}},
		{"payload_is_object", "", []row{signal(ralph.VerbDone, `not json`), signal(ralph.VerbDone, `["summary"]`), signal(ralph.VerbDone, `"x"`)}},
		{"only_asks_are_answered", "", []row{with(done, "signal_answered", "yes"), with(note, "signal_answered", "yes")}},
		{"signal_has_session", "", []row{with(done, "session_id", nil)}},
		{"rationale_given", "", []row{{"kind": "blocker"}, {"kind": "nack", "rationale": " "}}},
	}
	tried := map[string]bool{}
	for _, rule := range refused {
		tried[rule.rule] = true
		for _, r := range rule.rows {
			want := rule.rule
			if pgtest.Used() {
				want = cmp.Or(rule.also, want)
			}
			if _, err := insert(r); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: got %v, want a refusal by %s", r, err, want)
			}
		}
	}
	ddl := ""
	if err := db.View(t.Context(), func(tx *store.Tx) error {
		if !pgtest.Used() {
			ddl = declared(t, tx)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`CONSTRAINT (\w+)`).FindAllStringSubmatch(ddl, -1) {
		if !tried[m[1]] {
			t.Errorf("no row above breaks the rule %s", m[1])
		}
	}

	t.Run("a row is dated by itself", func(t *testing.T) {
		if _, err := insert(note); err != nil {
			t.Fatal(err)
		}
		var created string
		if err := raw.QueryRowContext(t.Context(), `SELECT created FROM task_comments ORDER BY id DESC LIMIT 1`).Scan(&created); err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(created) {
			t.Errorf("created is %q", created)
		}
	})
	t.Run("the view has what the flat columns had", func(t *testing.T) {
		flat := []string{
			"summary", "remaining", "reason", "question", "preferred", "blocking", "what", "severity", "category", "kind", "scope", "text", "rationale", "why", "on", "detail",
		}
		same := `v.session_id = c.session_id AND v.task_id = c.task_id AND v.verb = c.signal_verb AND v.answer IS NOT DISTINCT FROM c.signal_answered AND v.created = c.created`
		for _, name := range flat {
			same += fmt.Sprintf(` AND v."%s" IS NOT DISTINCT FROM json_extract(c.signal_payload, '$.%[1]s')`, name)
		}
		for column, name := range map[string]string{
			"summary": "summary", "question": "question", "what": "what", "severity": "severity", "category": "category",
			"signal_kind": "kind", "why": "why", "waits_for": "on", "detail": "detail",
		} {
			same += fmt.Sprintf(` AND c.%s IS NOT DISTINCT FROM v."%s"`, column, name)
		}
		var n, right int
		if err := raw.QueryRowContext(t.Context(), `SELECT count(*), count(CASE WHEN `+same+` THEN 1 END) FROM task_signals v JOIN task_comments c ON c.id = v.id`).Scan(&n, &right); err != nil {
			t.Fatal(err)
		}
		if n != len(taken)-3 || right != n { // less the three comments
			t.Errorf("the view has %d signals, %d of them right", n, right)
		}
	})
	t.Run("comments go with their task", func(t *testing.T) {
		if _, err := raw.ExecContext(t.Context(), `DELETE FROM sessions; DELETE FROM tasks`); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := raw.QueryRowContext(t.Context(), `SELECT count(*) FROM task_comments`).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d comments are left (%v)", n, err)
		}
	})
}

// rawly opens the database like another program.
func rawly(t *testing.T, db *store.DB) *sql.DB {
	t.Helper()
	driver, name := "sqlite3", "file:"+db.Path()+"?_foreign_keys=1"
	if store.IsURL(db.Path()) {
		driver, name = "pgx", db.Path()
	}
	raw, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	return raw
}
