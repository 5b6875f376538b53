package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ralph"
	"ralph/signals"
)

const commentColumns = `
	c.id, c.task_id, coalesce(c.session_id, ''), c.author, c.author_kind, coalesce(c.kind, ''), coalesce(c.signal_verb, ''),
	coalesce(c.signal_payload, 'null'), c.signal_answered, c.body, c.parent_id, c.created, c.resolved_at, c.resolved_by,
	c.decision, c.rationale, c.holding, c.hold_reason, c.delivered_at`

func scanComment(row scanner) (ralph.Comment, error) {
	var c ralph.Comment
	var holding int
	err := row.Scan(&c.ID, &c.TaskID, &c.SessionID, &c.Author, &c.AuthorKind, &c.Kind, &c.Verb,
		column(&c.Payload), &c.Answer, &c.Body, &c.ParentID, &c.Created, &c.ResolvedAt, &c.ResolvedBy,
		&c.Decision, &c.Rationale, &holding, &c.HoldReason, &c.Delivered)
	c.Holding = holding == 1
	return c, err
}

// Comment is one comment or signal.
func (tx *Tx) Comment(id int64) (ralph.Comment, error) {
	c, err := scanComment(tx.row(`SELECT `+commentColumns+` FROM task_comments c WHERE c.id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return c, fmt.Errorf("comment %d: %w", id, ralph.ErrNotFound)
	}
	return c, err
}

// A CommentFilter narrows a timeline; the zero value is all of a task's.
type CommentFilter struct {
	Verbs      []ralph.Verb // only these signals
	Session    string       // only this session's
	NoSignals  bool         // only what is no signal
	NoComments bool         // only signals
	Open       bool         // only what waits for a person: questions, blockers, flags, proposals
	Limit      int          // only the latest so many; 0 is no limit
	Skip       int          // so many of the latest are left out; only with a limit
}

// Timeline is a task's comments and signals, oldest first.
func (tx *Tx) Timeline(task int64, f CommentFilter) ([]ralph.Comment, error) {
	where, args := []string{"c.task_id = $1"}, []any{task}
	if len(f.Verbs) > 0 {
		marks := make([]string, len(f.Verbs))
		for i, v := range f.Verbs {
			args = append(args, string(v))
			marks[i] = fmt.Sprintf("$%d", len(args))
		}
		where = append(where, "c.signal_verb IN ("+strings.Join(marks, ", ")+")")
	}
	if f.Session != "" {
		args = append(args, f.Session)
		where = append(where, fmt.Sprintf("c.session_id = $%d", len(args)))
	}
	if f.NoSignals {
		where = append(where, "c.signal_verb IS NULL")
	}
	if f.NoComments {
		where = append(where, "c.signal_verb IS NOT NULL")
	}
	if f.Open {
		where = append(where, `(c.holding = 1 OR c.signal_verb = 'ask' AND c.signal_answered IS NULL
			OR (c.kind IN ('question', 'nack') OR c.signal_verb = 'suggest'
				OR c.signal_verb = 'flag' AND json_extract(c.signal_payload, '$.severity') <> 'info') AND c.resolved_at = '')`)
	}
	query := `SELECT ` + commentColumns + ` FROM task_comments c WHERE ` + strings.Join(where, " AND ")
	if f.Limit == 0 {
		return all(tx, scanComment, query+` ORDER BY c.created, c.id`, args...)
	}
	args = append(args, f.Limit, f.Skip)
	latest, err := all(tx, scanComment, fmt.Sprintf(`%s ORDER BY c.created DESC, c.id DESC LIMIT $%d OFFSET $%d`, query, len(args)-1, len(args)), args...)
	slices.Reverse(latest)
	return latest, err
}

// Said counts what was said on a task: its signals by verb, and under "" what is no
// signal.
func (tx *Tx) Said(task int64) (map[ralph.Verb]int, error) {
	type count struct {
		verb ralph.Verb
		n    int
	}
	list, err := all(tx, func(row scanner) (c count, err error) { return c, row.Scan(&c.verb, &c.n) },
		`SELECT coalesce(signal_verb, ''), count(*) FROM task_comments WHERE task_id = $1 GROUP BY coalesce(signal_verb, '')`, task)
	counts := map[ralph.Verb]int{}
	for _, c := range list {
		counts[c.verb] = c.n
	}
	return counts, err
}

// Say stores one signal of a session, in a transaction of its own: when it
// returns, the signal survives a crash. The error wraps [ralph.ErrNotFound] for
// an unknown session and [ralph.ErrConflict] for one that has been settled.
func (db *DB) Say(ctx context.Context, task int64, session, author, agentTask string, p signals.Payload) (id int64, err error) {
	payload, err := json.Marshal(p)
	if err != nil {
		return 0, err
	}
	err = db.Tx(ctx, func(tx *Tx) error {
		if err := tx.CheckSession(task, session); err != nil {
			return err
		}
		created, err := tx.after(session)
		if err != nil {
			return err
		}
		id, err = tx.insert(`
			INSERT INTO task_comments (task_id, session_id, author, author_kind, agent_task_id, signal_verb, signal_payload, body, created)
			VALUES ($1, $2, $3, 'agent', $4, $5, $6, $7, $8) RETURNING id`,
			task, session, author, agentTask, string(p.Verb()), string(payload), p.Body(), created.String())
		if err != nil {
			return err
		}
		return tx.record(ralph.Event{TaskID: task, SessionID: session},
			ralph.SignalGiven{Verb: p.Verb(), CommentID: id, Payload: payload})
	})
	return id, err
}

// after is the time of a session's next signal: never before the one before it,
// also where the clock has been set back, or the last would not be the last.
func (tx *Tx) after(session string) (ralph.Time, error) {
	var last ralph.Time
	err := tx.row(`SELECT created FROM task_comments WHERE session_id = $1 AND signal_verb IS NOT NULL ORDER BY id DESC LIMIT 1`, session).Scan(&last)
	if errors.Is(err, sql.ErrNoRows) {
		return tx.now, nil
	}
	if last.After(tx.now.Time) {
		return last, err
	}
	return tx.now, err
}

// CheckSession reports why a session takes no signals: it is unknown, another
// task's, or settled.
func (tx *Tx) CheckSession(task int64, session string) error {
	var owner int64
	var completed string
	err := tx.row(`SELECT task_id, completed_at FROM sessions WHERE id = $1`, session).Scan(&owner, &completed)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("session %s: %w", session, ralph.ErrNotFound)
	case err != nil:
		return err
	case owner != task:
		return fmt.Errorf("session %s of TASK-%d: %w", session, task, ralph.ErrNotFound)
	case completed != "":
		return fmt.Errorf("session %s has ended and takes no more signals: %w", session, ralph.ErrConflict)
	}
	return nil
}

// SessionSignals are a session's signals in the order in which they were given.
func (tx *Tx) SessionSignals(session string) ([]signals.Said, error) {
	comments, err := all(tx, scanComment, `
		SELECT `+commentColumns+` FROM task_comments c
		WHERE c.session_id = $1 AND c.signal_verb IS NOT NULL ORDER BY c.created, c.id`, session)
	if err != nil {
		return nil, err
	}
	said := make([]signals.Said, 0, len(comments))
	for _, c := range comments {
		p, err := signals.Parse(c.Verb, c.Payload)
		if err != nil {
			return nil, fmt.Errorf("comment %d: %w", c.ID, err)
		}
		said = append(said, signals.Said{ID: c.ID, Payload: p, Answered: c.Answer != nil, Resolved: !c.ResolvedAt.IsZero()})
	}
	return said, nil
}

// AddComment adds a comment that is no signal. A person's comment is new
// information for its task. A blocker holds the task back until it is resolved.
// Replies go one level deep and stay on their parent's task.
func (tx *Tx) AddComment(c ralph.Comment) (int64, error) {
	if _, err := tx.Task(c.TaskID); err != nil {
		return 0, err
	}
	if err := tx.checkComment(c); err != nil {
		return 0, err
	}
	holding := 0
	if c.Kind == ralph.Blocker {
		holding = 1
		if err := tx.roomForBlocker(c); err != nil {
			return 0, err
		}
	}
	var session any
	if c.SessionID != "" {
		session = c.SessionID
	}
	id, err := tx.insert(`
		INSERT INTO task_comments (task_id, session_id, author, author_kind, kind, rationale, body, parent_id, holding, created)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id`,
		c.TaskID, session, c.Author, string(c.AuthorKind), string(c.Kind), c.Rationale, c.Body, c.ParentID, holding, tx.now.String())
	if err != nil {
		return 0, err
	}
	if err := tx.record(ralph.Event{TaskID: c.TaskID, SessionID: c.SessionID}, ralph.CommentAdded{
		TaskID: c.TaskID, CommentID: id, Kind: c.Kind, AuthorKind: c.AuthorKind, Author: c.Author,
	}); err != nil {
		return 0, err
	}
	if c.AuthorKind == ralph.ByHuman {
		if err := tx.Renew(c.TaskID); err != nil {
			return 0, err
		}
	}
	return id, tx.Derive(c.TaskID)
}

// roomForBlocker refuses the fourth open blocker of an author on a task. It is
// asked in the transaction that adds the blocker, and transactions that write come
// one after the other.
func (tx *Tx) roomForBlocker(c ralph.Comment) error {
	var n int
	if err := tx.row(`SELECT count(*) FROM task_comments WHERE task_id = $1 AND author = $2 AND kind = 'blocker' AND resolved_at = ''`, c.TaskID, c.Author).Scan(&n); err != nil {
		return err
	}
	if n >= ralph.MaxOpenBlockers {
		return fmt.Errorf("%w: %s has %d open blockers on TASK-%d already; resolve one, or propose an amendment", ralph.ErrInvariant, c.Author, n, c.TaskID)
	}
	return nil
}

func (tx *Tx) checkComment(c ralph.Comment) error {
	known := false
	accepted := make([]string, len(ralph.CommentKinds))
	for i, k := range ralph.CommentKinds {
		known, accepted[i] = known || k == c.Kind, string(k)
	}
	if !known {
		return &ralph.FieldError{Field: fmt.Sprintf("kind %q", c.Kind), Problem: "is not one of the accepted values", Accepted: accepted}
	}
	if err := ralph.CheckText("text", c.Body, true); err != nil {
		return err
	}
	if err := ralph.CheckText("rationale", c.Rationale, c.Kind.NeedsRationale()); err != nil {
		return err
	}
	if c.ParentID == nil {
		return nil
	}
	parent, err := tx.Comment(*c.ParentID)
	switch {
	case err != nil:
		return err
	case parent.TaskID != c.TaskID:
		return fmt.Errorf("comment %d is not on TASK-%d: %w", parent.ID, c.TaskID, ralph.ErrConflict)
	case parent.ParentID != nil:
		return fmt.Errorf("comment %d is a reply itself, and replies go one level deep; propose an amendment instead: %w", parent.ID, ralph.ErrInvariant)
	}
	return nil
}

// Answer stores a person's answer to an ask and adds it as a reply below.
func (tx *Tx) Answer(comment int64, answer, author string) error {
	if err := ralph.CheckText("answer", answer, true); err != nil {
		return err
	}
	c, err := tx.Comment(comment)
	if err != nil {
		return err
	}
	decidable, err := tx.Decidable(comment)
	if err != nil {
		return err
	}
	if c.Kind == ralph.Question && c.ParentID == nil && !decidable {
		return tx.Resolve(comment, answer, author)
	}
	if c.Verb != ralph.VerbAsk && c.Holding {
		return fmt.Errorf("comment %d is no question but holds TASK-%d back; settle it with `ralph resolve %d DECISION`: %w", comment, c.TaskID, comment, ralph.ErrConflict)
	}
	if c.Verb != ralph.VerbAsk {
		return fmt.Errorf("comment %d is not a question of an agent; reply to it with `ralph comment %d TEXT`: %w", comment, c.TaskID, ralph.ErrConflict)
	}
	if c.Answer != nil {
		return fmt.Errorf("comment %d is answered already (%q): %w", comment, *c.Answer, ralph.ErrConflict)
	}
	if _, err := tx.exec(`UPDATE task_comments SET signal_answered = $1, answered_at = $2, answered_by = $3, holding = 0 WHERE id = $4`,
		answer, tx.now.String(), author, comment); err != nil {
		return err
	}
	_, err = tx.AddComment(ralph.Comment{TaskID: c.TaskID, Author: author, AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: answer, ParentID: &comment})
	return err
}

// Resolve settles a blocker, a question or a suggestion with a person's words.
func (tx *Tx) Resolve(comment int64, decision, by string) error {
	if err := ralph.CheckText("decision", decision, true); err != nil {
		return err
	}
	c, err := tx.Comment(comment)
	if err != nil {
		return err
	}
	switch {
	case c.Verb == ralph.VerbAsk:
		return fmt.Errorf("comment %d is a question of an agent: answer it with `ralph answer %d TEXT`: %w", comment, comment, ralph.ErrConflict)
	case !c.ResolvedAt.IsZero():
		return fmt.Errorf("comment %d is resolved already (%q): %w", comment, c.Decision, ralph.ErrConflict)
	}
	if _, err := tx.exec(`UPDATE task_comments SET resolved_at = $1, resolved_by = $2, decision = $3, holding = 0 WHERE id = $4`,
		tx.now.String(), by, decision, comment); err != nil {
		return err
	}
	if err := tx.record(ralph.Event{TaskID: c.TaskID},
		ralph.CommentResolved{TaskID: c.TaskID, CommentID: comment, Decision: decision}); err != nil {
		return err
	}
	if c.Holding {
		if err := tx.Renew(c.TaskID); err != nil {
			return err
		}
	}
	return tx.Derive(c.TaskID)
}

// promptTooLong marks the blockers by which ralph holds tasks back whose prompt has
// no room for what must not be left out of it.
const promptTooLong = "no session begins until the prompt has room"

// HoldForPrompt holds a task back until its prompt has room for all that must not be
// left out of it, or a person resolves the blocker that says so.
func (tx *Tx) HoldForPrompt(task int64, why string) error {
	id, err := tx.AddComment(ralph.Comment{
		TaskID: task, Author: "ralph", AuthorKind: ralph.ByAgent, Kind: ralph.Blocker, Body: why,
		Rationale: "An agent must not begin without them. Raise prompt.max_tokens in ralph.yaml, shorten the task, or resolve the flags; resolve this to begin with the long prompt.",
	})
	if err == nil {
		_, err = tx.exec(`UPDATE task_comments SET hold_reason = $1 WHERE id = $2`, promptTooLong, id)
	}
	return err
}

// HeldForPrompt are the blockers of [Tx.HoldForPrompt] that are open.
func (tx *Tx) HeldForPrompt() ([]ralph.Comment, error) {
	return all(tx, scanComment, `SELECT `+commentColumns+` FROM task_comments c WHERE c.holding = 1 AND c.hold_reason = $1 ORDER BY c.id`, promptTooLong)
}

// BeginsLong reports whether a person has said since the task's last session that one
// begins although its prompt is too long.
func (tx *Tx) BeginsLong(task int64) (bool, error) {
	began, err := tx.LastSessionStart(task)
	if err != nil {
		return false, err
	}
	var n int
	err = tx.row(`SELECT count(*) FROM task_comments c WHERE c.task_id = $1 AND c.hold_reason = $2 AND c.resolved_by <> '' AND c.resolved_at >= $3`,
		task, promptTooLong, began.String()).Scan(&n)
	return n > 0, err
}

// ReleaseForPrompt takes back a blocker of [Tx.HoldForPrompt]: there is room now.
func (tx *Tx) ReleaseForPrompt(c ralph.Comment) error {
	if _, err := tx.exec(`UPDATE task_comments SET resolved_at = $1, decision = 'the prompt has room now', holding = 0 WHERE id = $2`,
		tx.now.String(), c.ID); err != nil {
		return err
	}
	if err := tx.record(ralph.Event{TaskID: c.TaskID},
		ralph.CommentResolved{TaskID: c.TaskID, CommentID: c.ID, Decision: "the prompt has room now"}); err != nil {
		return err
	}
	return tx.Derive(c.TaskID)
}

// ResolveAsAgent is [Tx.Resolve] by an agent. What is for people to settle is
// refused, and the error wraps [ralph.ErrConflict]: signals, questions whether
// protected files may change, ralph's own blockers, proposals to cancel, and what
// people said (decision 9).
func (tx *Tx) ResolveAsAgent(comment int64, decision, by string) error {
	c, err := tx.Comment(comment)
	if err != nil {
		return err
	}
	review, err := tx.Review(comment)
	if err != nil {
		return err
	}
	if c.Verb != "" || c.Kind == ralph.Nack || c.AuthorKind == ralph.ByHuman || len(review) > 0 || c.HoldReason != "" {
		return fmt.Errorf("comment %d is for a person to settle: %w", comment, ralph.ErrConflict)
	}
	return tx.Resolve(comment, decision, by)
}

// Blockers are the open blockers of a task.
func (tx *Tx) Blockers(task int64) ([]ralph.Comment, error) {
	return all(tx, scanComment, `
		SELECT `+commentColumns+` FROM task_comments c
		WHERE c.task_id = $1 AND c.holding = 1 AND coalesce(c.signal_verb, '') <> 'ask' AND c.review = '' ORDER BY c.id`, task)
}

// Undelivered are what people said on a task after a moment and no session was
// handed yet, oldest first.
func (tx *Tx) Undelivered(task int64, since ralph.Time) ([]ralph.Comment, error) {
	return all(tx, scanComment, `
		SELECT `+commentColumns+` FROM task_comments c
		WHERE c.task_id = $1 AND c.delivered_at = '' AND c.signal_verb IS NULL AND c.author_kind = 'human' AND c.created >= $2
		ORDER BY c.id`, task, since.String())
}

// MarkDelivered notes that a session was handed a comment.
func (tx *Tx) MarkDelivered(comment int64, session string) error {
	_, err := tx.exec(`UPDATE task_comments SET delivered_at = $1, session_id = coalesce(session_id, $2) WHERE id = $3`, tx.now.String(), session, comment)
	return err
}
