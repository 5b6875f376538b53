package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/migrations"
	"ralph/signals"
)

// Older designs kept signals in a table of their own, task_signals: with flat columns, or with verb, payload and
// created_at. The designs before had task_comments without signals, the designs after have them there. Such a database
// is converted when it is first opened, in three steps that a crash may separate: its tables are renamed with the
// prefix "legacy_", the current tables are created, and the rows are copied.

// legacyTables are the tables of the older designs, in the order in which they are copied.
var legacyTables = []string{"features", "disciplines", "tasks", "task_dependencies", "task_comments", "task_signals"}

const legacyPrefix = "legacy_"

// isLegacy reports whether the database has rows of an older design.
func (db *DB) isLegacy(ctx context.Context) (bool, error) {
	there := map[string]bool{}
	for _, table := range legacyTables {
		for _, name := range []string{table, legacyPrefix + table} {
			ok, err := tableExists(ctx, db.write, name)
			if err != nil {
				return false, err
			}
			there[name] = ok
			if ok && name != table {
				return true, nil // a crash interrupted an earlier conversion
			}
		}
	}
	ours, err := tableExists(ctx, db.write, "schema_migrations")
	return there["task_signals"] || !ours && there["tasks"] && there["task_comments"], err
}

// makeRoom is the first step: it renames the old tables. In a database that ralph's migrations have
// already made, it renames only task_signals.
func (db *DB) makeRoom(ctx context.Context) error {
	ours, err := tableExists(ctx, db.write, "schema_migrations")
	if err != nil {
		return err
	}
	names := legacyTables
	if ours {
		names = []string{"task_signals"}
	}
	return db.Tx(ctx, func(tx *Tx) error {
		for _, name := range names {
			ok, err := tableExists(ctx, tx, name)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			indexes, err := values[string](tx, `
				SELECT name FROM sqlite_master
				WHERE tbl_name = $1 AND type IN ('index', 'trigger') AND sql IS NOT NULL`, name)
			if err != nil {
				return err
			}
			for _, index := range indexes {
				for _, kind := range []string{"INDEX", "TRIGGER"} {
					if err := tx.do(`DROP ` + kind + ` IF EXISTS ` + quote(index)); err != nil && kind == "INDEX" {
						return err
					}
				}
			}
			if err := tx.do(`ALTER TABLE ` + quote(name) + ` RENAME TO ` + quote(legacyPrefix+name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// quote quotes an identifier.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// takeOver is the third step: it copies every row and drops the old tables.
func (db *DB) takeOver(ctx context.Context) error {
	return db.Tx(ctx, func(tx *Tx) error {
		l := &legacy{Tx: tx}
		var err error
		if l.known, err = tx.Learnings(LearningFilter{}); err != nil {
			return err
		}
		for _, step := range []struct {
			table string
			copy  func(r oldRow) error
		}{
			{"features", l.feature},
			{"disciplines", l.discipline},
			{"tasks", l.task},
			{"task_dependencies", l.dependency},
			{"task_comments", l.comment},
			{"task_signals", l.signal},
		} {
			if err := l.each(step.table, step.copy); err != nil {
				return fmt.Errorf("take over %s: %w", step.table, err)
			}
		}
		waiting, err := values[int64](tx, `
			SELECT id FROM tasks WHERE status IN ('pending', 'blocked', 'needs_input') ORDER BY id`)
		if err != nil {
			return err
		}
		for _, id := range waiting {
			if err := tx.Derive(id); err != nil {
				return err
			}
		}
		for _, table := range slices.Backward(legacyTables) {
			if err := tx.do(`DROP TABLE IF EXISTS ` + quote(legacyPrefix+table)); err != nil {
				return err
			}
		}
		view, err := migrations.SignalsView()
		if err != nil {
			return err
		}
		err = tx.do(view)
		return err
	})
}

// legacy copies the rows of an older database.
type legacy struct {
	*Tx
	inPlace bool             // the rows come from task_comments and keep their ids
	known   []ralph.Learning // the learnings copied so far
}

// An oldRow is a row of an old table, by column.
type oldRow map[string]any

// each copies the rows of a table in chronological order.
func (l *legacy) each(table string, copy func(oldRow) error) error {
	name := legacyPrefix + table
	if ok, err := tableExists(l.ctx, l, name); !ok || err != nil {
		return err
	}
	rows, err := l.QueryContext(l.ctx, `SELECT * FROM `+quote(name)+` ORDER BY rowid`)
	if err != nil {
		return err
	}
	list, err := records(rows)
	if err != nil {
		return err
	}
	slices.SortStableFunc(list, func(a, b oldRow) int { return a.time().Compare(b.time().Time) })
	for _, r := range list {
		if err := copy(r); err != nil {
			return fmt.Errorf("row %v: %w", r["id"], err)
		}
	}
	return nil
}

func records(rows *sql.Rows) (list []oldRow, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			return nil, err
		}
		r := oldRow{}
		for i, c := range columns {
			r[c] = *values[i].(*any)
			if b, ok := r[c].([]byte); ok {
				r[c] = string(b)
			}
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// text returns the first non-empty value among some columns.
func (r oldRow) text(columns ...string) string {
	for _, c := range columns {
		switch v := r[c].(type) {
		case string:
			if v != "" {
				return v
			}
		case int64:
			return strconv.FormatInt(v, 10)
		case float64:
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	return ""
}

func (r oldRow) number(column string) (int64, bool) {
	n, err := strconv.ParseInt(r.text(column), 10, 64)
	return n, err == nil
}

// time returns when the row was created; it accepts all formats of SQLite's date functions.
func (r oldRow) time() ralph.Time {
	text := r.text("created", "created_at", "timestamp")
	for _, layout := range []string{
		time.RFC3339Nano, time.DateTime, "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", time.DateOnly,
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return ralph.At(t)
		}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return ralph.At(time.Unix(n, 0))
	}
	return ralph.At(time.Unix(0, 0))
}

func (l *legacy) feature(r oldRow) error {
	_, err := l.add("features", cells{
		"id":          r["id"],
		"name":        r.name("feature"),
		"description": r.text("description"),
		"learnings":   r.text("learnings"),
		"created":     r.time(),
		"updated":     r.time(),
	})
	return err
}

func (l *legacy) discipline(r oldRow) error {
	_, err := l.add("disciplines", cells{
		"id":           r["id"],
		"name":         r.name("discipline"),
		"instructions": r.text("instructions", "system_prompt", "prompt"),
		"model":        r.text("model"),
		"created":      r.time(),
		"updated":      r.time(),
	})
	return err
}

// name returns a row's name, or one made of its id.
func (r oldRow) name(kind string) string {
	if name := strings.TrimSpace(r.text("name", "display_name", "title")); name != "" {
		return name
	}
	return kind + "-" + r.text("id")
}

// legacyStatuses maps the statuses of older designs that have been renamed.
var legacyStatuses = map[string]ralph.Status{
	"done": ralph.Completed, "complete": ralph.Completed, "closed": ralph.Completed,
	"skipped": ralph.Cancelled, "archived": ralph.Cancelled, "draft": ralph.Proposed,
}

func (l *legacy) task(r oldRow) error {
	status := ralph.Status(strings.ToLower(r.text("status")))
	if s, ok := legacyStatuses[string(status)]; ok {
		status = s
	}
	// No session of the old database is still running.
	if !slices.Contains(ralph.Statuses, status) || status == ralph.InProgress {
		status = ralph.Pending
	}
	priority := int64(ralph.DefaultPriority)
	if n, ok := r.number("priority"); ok && n >= 0 && n <= 4 {
		priority = n
	}
	var acceptance []string
	text := r.text("acceptance_criteria", "acceptance")
	if text != "" && json.Unmarshal([]byte(text), &acceptance) != nil {
		acceptance = []string{text}
	}
	title := strings.TrimSpace(r.text("title", "name"))
	if title == "" {
		title = "Task " + r.text("id")
	}
	var completed ralph.Time
	if status == ralph.Completed {
		completed = r.time()
		if at := (oldRow{"created": r["completed_at"]}).time(); at.Unix() > 0 {
			completed = at
		}
	}
	origin := ralph.ByHuman
	if strings.EqualFold(r.text("origin"), string(ralph.ByAgent)) {
		origin = ralph.ByAgent
	}
	_, err := l.add("tasks", cells{
		"id":            r["id"],
		"feature_id":    l.reference(r, "feature"),
		"discipline_id": l.reference(r, "discipline"),
		"title":         title,
		"normal_title":  signals.NormalTitle(title),
		"description":   r.text("description"),
		"acceptance":    asJSON(acceptance),
		"priority":      priority,
		"status":        status,
		"status_reason": r.text("status_reason"),
		"created":       r.time(),
		"updated":       r.time(),
		"completed_at":  completed,
		"origin":        origin,
	})
	return err
}

// reference returns the id of the feature or discipline that a row names by id or by name; nil if
// there is none.
func (l *legacy) reference(r oldRow, kind string) any {
	id, err := value[int64](l.Tx, `SELECT id FROM `+kind+`s WHERE id = $1 OR name = $2`,
		r.text(kind+"_id"), r.text(kind, kind+"_name"))
	if err != nil {
		return nil // a reference to something that is gone is dropped
	}
	return id
}

func (l *legacy) dependency(r oldRow) error {
	task, ok := r.number("task_id")
	on, okOn := r.number("depends_on")
	for _, column := range []string{"depends_on_id", "depends_on_task_id", "dependency_id"} {
		if !okOn {
			on, okOn = r.number(column)
		}
	}
	if !ok || !okOn {
		return errors.New("it names no two tasks")
	}
	_, err := l.exec(`
		INSERT INTO task_dependencies (task_id, depends_on, source, created) VALUES ($1, $2, 'import', $3)
		ON CONFLICT DO NOTHING`, task, on, r.time())
	return err
}

// comment copies a comment; in the newest of the older designs it may be a signal.
func (l *legacy) comment(r oldRow) error {
	l.inPlace = true
	defer func() { l.inPlace = false }()
	if r.text("signal_verb") != "" {
		r["verb"], r["payload"], r["answer"] = r["signal_verb"], r["signal_payload"], r["signal_answered"]
		return l.signal(r)
	}
	kind := ralph.ByHuman
	author := r.text("author", "author_id")
	if r.text("session_id", "discipline", "discipline_id") != "" || r.text("author_kind", "author_type") == "agent" {
		kind = ralph.ByAgent
		author = cmp.Or(author, l.author(r))
	}
	author = cmp.Or(author, string(kind))
	return l.addComment(r, author, kind, r.text("body", "text", "content"))
}

func (l *legacy) addComment(r oldRow, author string, kind ralph.Origin, body string) error {
	task, err := l.taskOf(r)
	if err != nil {
		return err
	}
	if body == "" {
		body = "(empty)"
	}
	_, err = l.add("task_comments", cells{
		"id":          l.id(r),
		"task_id":     task,
		"session_id":  null(r.text("session_id")),
		"author":      author,
		"author_kind": kind,
		"kind":        ralph.Note,
		"body":        body,
		"created":     r.time(),
	})
	return err
}

// id returns the comment's id if the comment keeps it, else nil for a new one.
func (l *legacy) id(r oldRow) any {
	if !l.inPlace {
		return nil
	}
	return r["id"]
}

// taskOf returns the task of a row. A task that no longer exists is recreated as cancelled, so that
// its comments are kept.
func (l *legacy) taskOf(r oldRow) (int64, error) {
	id, ok := r.number("task_id")
	if !ok {
		return 0, errors.New("it names no task")
	}
	there, err := value[bool](l.Tx, `SELECT EXISTS (SELECT 1 FROM tasks WHERE id = $1)`, id)
	if err != nil || there {
		return id, err
	}
	title := fmt.Sprintf("Task %d of an older database", id)
	_, err = l.add("tasks", cells{
		"id":            id,
		"title":         title,
		"normal_title":  signals.NormalTitle(title),
		"status":        ralph.Cancelled,
		"status_reason": "it was not there any more",
		"created":       r.time(),
		"updated":       r.time(),
	})
	return id, err
}

// signal copies a signal of either design. One that cannot be parsed is kept as a comment with the
// original row.
func (l *legacy) signal(r oldRow) error {
	author := l.author(r)
	payload, err := l.payload(r)
	var p signals.Payload
	if err == nil {
		p, err = signals.Parse(ralph.Verb(r.text("verb")), payload)
	}
	if err != nil {
		raw, merr := json.MarshalIndent(r, "", "  ")
		if merr != nil {
			return merr
		}
		return l.addComment(r, author, ralph.ByAgent,
			fmt.Sprintf("A signal of an older database that cannot be read (%v):\n\n```json\n%s\n```", err, raw))
	}
	task, err := l.taskOf(r)
	if err != nil {
		return err
	}
	session := r.text("session_id", "agent_task_id")
	if session == "" {
		session = "unknown"
	}
	t, err := l.Task(task)
	if err != nil {
		return err
	}
	var answer any
	holding := false
	switch p := p.(type) {
	case signals.Ask:
		answer = null(r.text("answer", "answered", "signal_answered"))
		waiting := t.Status == ralph.Pending || t.Status == ralph.NeedsInput || t.Status == ralph.Blocked
		holding = p.IsBlocking() && answer == nil && waiting
	case signals.Blocked:
		// A task that it waited for became a dependency in those designs, too.
		holding = p.Kind == "external" && t.Status == ralph.Blocked
	}
	id, err := l.add("task_comments", cells{
		"id":              l.id(r),
		"task_id":         task,
		"session_id":      session,
		"author":          author,
		"author_kind":     ralph.ByAgent,
		"signal_verb":     p.Verb(),
		"signal_payload":  asJSON(p),
		"signal_answered": answer,
		"body":            p.Body(),
		"holding":         holding,
		"created":         r.time(),
	})
	if err != nil || p.Verb() != ralph.VerbLearned {
		return err
	}
	return l.learned(t, author, signals.Said{ID: id, Payload: p}, r.time())
}

// learned turns a signal into a learning, or counts a repetition, by the same rules as answering a
// session does.
func (l *legacy) learned(t ralph.Task, author string, said signals.Said, at ralph.Time) error {
	facts := signals.Facts{Task: signals.TaskOf(t), Said: []signals.Said{said}, Known: l.known}
	for _, learn := range signals.Decide(facts).Learn {
		if err := l.learn(t, ralph.Session{}, author, learn); err != nil {
			return err
		}
	}
	id, err := value[int64](l.Tx, `SELECT learning_id FROM learning_comments WHERE comment_id = $1`, said.ID)
	if err != nil {
		return err
	}
	k, err := l.Learning(id)
	if err != nil {
		return err
	}
	times := cells{"last_seen": at}
	if i := slices.IndexFunc(l.known, func(o ralph.Learning) bool { return o.ID == id }); i >= 0 {
		l.known[i] = k
	} else {
		l.known = append(l.known, k)
		times["created"] = at
	}
	return l.set("learnings", id, times)
}

// author returns the name under which a session signalled.
func (l *legacy) author(r oldRow) string {
	if a := r.text("author", "discipline"); a != "" && a != "human" {
		return a
	}
	name, err := value[string](l.Tx, `SELECT name FROM disciplines WHERE id = $1`, r.text("discipline_id"))
	if err != nil || name == "" {
		return "agent"
	}
	return name
}

// legacyFields are the text columns of each verb.
var legacyFields = map[ralph.Verb][]string{
	ralph.VerbDone:    {"summary"},
	ralph.VerbPartial: {"summary", "remaining"},
	ralph.VerbStuck:   {"reason"},
	ralph.VerbAsk:     {"question", "preferred"},
	ralph.VerbFlag:    {"what", "severity", "category"},
	ralph.VerbLearned: {"text", "kind", "scope", "rationale"},
	ralph.VerbSuggest: {"what", "kind", "why"},
	ralph.VerbBlocked: {"on", "kind", "detail"},
}

// payload returns a signal's input in the form of today's tools.
func (l *legacy) payload(r oldRow) (json.RawMessage, error) {
	if text := r.text("payload"); text != "" {
		return json.RawMessage(text), nil
	}
	verb := ralph.Verb(r.text("verb"))
	fields := map[string]any{}
	for _, f := range legacyFields[verb] {
		if text := r.text(f); text != "" {
			fields[f] = text
		}
	}
	switch verb {
	case ralph.VerbAsk:
		if n, ok := r.number("blocking"); ok {
			fields["blocking"] = n != 0
		}
		if options := strings.FieldsFunc(r.text("options"), func(c rune) bool { return c == '\n' }); len(options) > 0 {
			fields["options"] = options
		}
	case ralph.VerbLearned:
		if fields["text"] == nil {
			fields["text"] = r.text("what", "summary")
		}
	case ralph.VerbSuggest:
		feature, err := value[string](l.Tx, `SELECT name FROM features WHERE id = $1`, r.text("feature_id"))
		if err == nil {
			fields["feature"] = feature
		}
	}
	return json.Marshal(fields)
}
