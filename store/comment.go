package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"ralph"
	"ralph/signals"
)

var commentRows = reads("task_comments c", func(c *ralph.Comment) []field {
	return []field{
		{"c.id", &c.ID},
		{"c.task_id", &c.TaskID},
		{"coalesce(c.session_id, '')", &c.SessionID},
		{"c.author", &c.Author},
		{"c.author_kind", &c.AuthorKind},
		{"coalesce(c.kind, '')", &c.Kind},
		{"coalesce(c.signal_verb, '')", &c.Verb},
		{"coalesce(c.signal_payload, 'null')", column(&c.Payload)},
		{"c.signal_answered", &c.Answer},
		{"c.body", &c.Body},
		{"c.parent_id", &c.ParentID},
		{"c.created", &c.Created},
		{"c.resolved_at", &c.ResolvedAt},
		{"c.resolved_by", &c.ResolvedBy},
		{"c.decision", &c.Decision},
		{"c.rationale", &c.Rationale},
		{"c.holding", &c.Holding},
		{"c.hold_reason", &c.HoldReason},
		{"c.delivered_at", &c.Delivered},
		{"c.delivered_to", &c.DeliveredTo},
	}
})

// Comment returns one comment or signal.
func (tx *Tx) Comment(id int64) (ralph.Comment, error) {
	return commentRows.one(tx, fmt.Sprintf("comment %d", id), ralph.ListComments, `WHERE c.id = $1`, id)
}

// A CommentFilter narrows a timeline; the zero value selects all of a task's comments.
type CommentFilter struct {
	Verbs      []ralph.Verb // only these signals
	Session    string       // only comments made by, or delivered to, this session
	NoSignals  bool         // leave signals out
	NoComments bool         // only signals
	Open       bool         // only unresolved ones: questions, blockers, flags, proposals
	Limit      int          // only the newest; 0 is no limit
	Skip       int          // leave out this many of the newest; needs Limit
}

// Timeline lists a task's comments and signals, oldest first.
func (tx *Tx) Timeline(task int64, f CommentFilter) ([]ralph.Comment, error) {
	var by filter
	by.and("c.task_id = ?", task)
	in(&by, "c.signal_verb", f.Verbs)
	if f.Session != "" {
		by.and("(c.session_id = ? OR c.delivered_to = ?)", f.Session, f.Session)
	}
	if f.NoSignals {
		by.and("c.signal_verb IS NULL")
	}
	if f.NoComments {
		by.and("c.signal_verb IS NOT NULL")
	}
	if f.Open {
		by.and(`(c.holding = 1 OR c.signal_verb = 'ask' AND c.signal_answered IS NULL
			OR (c.kind IN ('question', 'nack') OR c.signal_verb = 'suggest'
				OR c.signal_verb = 'flag' AND c.severity <> 'info') AND c.resolved_at = '')`)
	}
	where := by.where()
	if f.Limit == 0 {
		return commentRows.all(tx, where+` ORDER BY c.created, c.id`, by.args...)
	}
	page := by.page(f.Limit, f.Skip)
	latest, err := commentRows.all(tx, where+` ORDER BY c.created DESC, c.id DESC`+page, by.args...)
	slices.Reverse(latest)
	return latest, err
}

// Said counts a task's signals by verb; its other comments are counted under "".
func (tx *Tx) Said(task int64) (map[ralph.Verb]int, error) {
	// Every comment has a time. With this condition SQLite reads only idx_task_comments_timeline, and no row.
	return byKey[ralph.Verb, int](tx, `
		SELECT coalesce(signal_verb, ''), count(*) FROM task_comments
		WHERE task_id = $1 AND created >= '' GROUP BY coalesce(signal_verb, '')`, task)
}

// Say stores one signal of a session in a transaction of its own: once it returns, the signal
// survives a crash. The error wraps [ralph.ErrNotFound] for an unknown session and
// [ralph.ErrConflict] for one that has been answered.
func (db *DB) Say(
	ctx context.Context, task int64, session, author string, p signals.Payload,
) (id int64, err error) {
	err = db.Tx(ctx, func(tx *Tx) (err error) {
		id, err = tx.say(task, session, author, p)
		return err
	})
	return id, err
}

// say stores one signal of a session in progress.
func (tx *Tx) say(task int64, session, author string, p signals.Payload) (id int64, err error) {
	if err := tx.CheckAdding(task, session, p.Verb().Closes()); err != nil {
		return 0, err
	}
	return tx.signal(task, session, author, p)
}

// signal stores one signal of a session.
func (tx *Tx) signal(task int64, session, author string, p signals.Payload) (id int64, err error) {
	payload, err := json.Marshal(p)
	if err != nil {
		return 0, err
	}
	created, err := tx.after(session)
	if err != nil {
		return 0, err
	}
	id, err = tx.add("task_comments", cells{
		"task_id":        task,
		"session_id":     session,
		"author":         author,
		"author_kind":    ralph.ByAgent,
		"signal_verb":    p.Verb(),
		"signal_payload": string(payload),
		"body":           p.Body(),
		"created":        created,
	})
	if err != nil {
		return 0, err
	}
	return id, tx.record(ralph.Event{TaskID: task, SessionID: session},
		ralph.SignalGiven{Verb: p.Verb(), CommentID: id, Payload: payload})
}

// after returns the time of a session's next signal. It is never before the session's previous
// signal, even if the clock was set back: the last signal counts.
func (tx *Tx) after(session string) (ralph.Time, error) {
	last, err := value[ralph.Time](tx, `
		SELECT created FROM task_comments
		WHERE session_id = $1 AND signal_verb IS NOT NULL ORDER BY id DESC LIMIT 1`, session)
	if ok, err := found(err); !ok || !last.After(tx.Now().Time) {
		return tx.Now(), err
	}
	return last, nil
}

// SessionSignals lists a session's signals in the order in which they were given.
func (tx *Tx) SessionSignals(session string) ([]signals.Said, error) {
	comments, err := commentRows.all(tx, `
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

// OpenFlags lists the unresolved flags of a filter's sessions, oldest first.
func (tx *Tx) OpenFlags(f SessionFilter) ([]ralph.Comment, error) {
	by := f.matching()
	return commentRows.all(tx, `WHERE c.signal_verb = 'flag' AND c.resolved_at = ''
		AND c.session_id IN (SELECT s.id FROM sessions s `+by.where()+`) ORDER BY c.created, c.id`, by.args...)
}

// AddComment adds a comment that is not a signal. A person's comment resets the task's failure
// counters ([Tx.Renew]). A blocker holds the task until it is resolved. Replies go one level deep
// and stay on their parent's task.
func (tx *Tx) AddComment(c ralph.Comment) (int64, error) {
	if _, err := tx.Task(c.TaskID); err != nil {
		return 0, err
	}
	if err := tx.checkComment(c); err != nil {
		return 0, err
	}
	if c.Kind == ralph.Blocker {
		if err := tx.roomForBlocker(c); err != nil {
			return 0, err
		}
	}
	id, err := tx.add("task_comments", cells{
		"task_id":     c.TaskID,
		"session_id":  null(c.SessionID),
		"author":      c.Author,
		"author_kind": c.AuthorKind,
		"kind":        c.Kind,
		"rationale":   c.Rationale,
		"body":        c.Body,
		"parent_id":   c.ParentID,
		"holding":     c.Kind == ralph.Blocker,
		"created":     tx.Now(),
	})
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

// roomForBlocker refuses an author's fourth open blocker on a task. It runs in the transaction that
// adds the blocker, and writing transactions are serialized.
func (tx *Tx) roomForBlocker(c ralph.Comment) error {
	n, err := value[int](tx, `
		SELECT count(*) FROM task_comments
		WHERE task_id = $1 AND author = $2 AND kind = 'blocker' AND resolved_at = ''`, c.TaskID, c.Author)
	if err == nil && n >= ralph.MaxOpenBlockers {
		err = fmt.Errorf("%w: %s has %d open blockers on TASK-%d already; resolve one, or propose an amendment",
			ralph.ErrInvariant, c.Author, n, c.TaskID)
	}
	return err
}

func (tx *Tx) checkComment(c ralph.Comment) error {
	known := false
	accepted := make([]string, len(ralph.CommentKinds))
	for i, k := range ralph.CommentKinds {
		known, accepted[i] = known || k == c.Kind, string(k)
	}
	if !known {
		return &ralph.FieldError{Field: fmt.Sprintf("kind %q",
			c.Kind), Problem: "is not one of the accepted values", Accepted: accepted}
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
		return ralph.Conflict("comment %d is not on TASK-%d", parent.ID, c.TaskID)
	case parent.ParentID != nil:
		return fmt.Errorf("comment %d is a reply itself, and replies go one level deep; propose an amendment instead: %w",
			parent.ID, ralph.ErrInvariant)
	}
	return nil
}

// Answer stores a person's answer to an agent's question and adds it as a reply.
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
		return refused(ralph.ResolveComment, comment, "comment %d is not a question, but holds TASK-%d back",
			comment, c.TaskID)
	}
	if c.Verb != ralph.VerbAsk {
		return refused(ralph.ReplyToTask, c.TaskID, "comment %d is not a question of an agent", comment)
	}
	if c.Answer != nil {
		return c.Settled()
	}
	if err := tx.set("task_comments", comment, cells{
		"signal_answered": answer, "answered_at": tx.Now(), "answered_by": author, "holding": false,
	}); err != nil {
		return err
	}
	return tx.note(c.TaskID, answer, author, &comment)
}

// note adds a person's comment.
func (tx *Tx) note(task int64, body, by string, parent *int64) error {
	_, err := tx.AddComment(ralph.Comment{
		TaskID: task, Author: by, AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: body, ParentID: parent,
	})
	return err
}

// Resolve answers a blocker, a flag, a question or a suggestion with a person's decision. Without words, a flag is
// noted as seen.
func (tx *Tx) Resolve(comment int64, decision, by string) error {
	c, err := tx.Comment(comment)
	if err != nil {
		return err
	}
	if c.Verb == ralph.VerbFlag {
		decision = cmp.Or(decision, "seen")
	}
	if err := ralph.CheckText("decision", decision, true); err != nil {
		return err
	}
	switch {
	case c.Verb == ralph.VerbAsk:
		return refused(ralph.AnswerQuestion, comment, "comment %d is a question of an agent", comment)
	case !c.ResolvedAt.IsZero():
		return c.Settled()
	case !c.Holding && (c.Verb.Closes() || c.Verb == ralph.VerbLearned):
		return refused(ralph.ShowInbox, 0, "comment %d of TASK-%d (%s) needs no decision", comment, c.TaskID, c.Verb)
	}
	if err := tx.answerComment(c, decision, by); err != nil {
		return err
	}
	if c.Holding {
		if err := tx.Renew(c.TaskID); err != nil {
			return err
		}
	}
	return tx.Derive(c.TaskID)
}

// answerComment marks a comment as resolved; it no longer holds its task.
func (tx *Tx) answerComment(c ralph.Comment, decision, by string) error {
	if err := tx.set("task_comments", c.ID, cells{
		"resolved_at": tx.Now(), "resolved_by": by, "decision": decision, "holding": false,
	}); err != nil {
		return err
	}
	return tx.record(ralph.Event{TaskID: c.TaskID},
		ralph.CommentResolved{TaskID: c.TaskID, CommentID: c.ID, Decision: decision})
}

// HoldForPrompt holds a task until its prompt has room for all mandatory parts, or a person
// resolves the blocker.
func (tx *Tx) HoldForPrompt(task int64, why string) error {
	id, err := tx.AddComment(ralph.Comment{
		TaskID: task, Author: "ralph", AuthorKind: ralph.ByAgent, Kind: ralph.Blocker, Body: why,
		Rationale: "An agent must not begin without them. Shorten the task or resolve the flags; " +
			"resolve this to begin with the long prompt.",
	})
	if err == nil {
		err = tx.set("task_comments", id, cells{
			"hold_reason": "no session begins until the prompt has room", "released_by": "prompt",
		})
	}
	return err
}

// HeldForPrompt lists the open blockers of [Tx.HoldForPrompt].
func (tx *Tx) HeldForPrompt() ([]ralph.Comment, error) {
	return commentRows.all(tx, `WHERE c.holding = 1 AND c.released_by = 'prompt' ORDER BY c.id`)
}

// BeginsLong reports whether, since the task's last session began, a person has allowed a session
// with a prompt that is too long.
func (tx *Tx) BeginsLong(task int64) (bool, error) {
	began, err := tx.LastSessionStart(task)
	if err != nil {
		return false, err
	}
	return value[bool](tx, `SELECT EXISTS (
		SELECT 1 FROM task_comments c
		WHERE c.task_id = $1 AND c.released_by = 'prompt' AND c.resolved_by <> '' AND c.resolved_at >= $2)`,
		task, began)
}

// ReleaseForPrompt resolves a blocker of [Tx.HoldForPrompt], because the prompt has room now.
func (tx *Tx) ReleaseForPrompt(c ralph.Comment) error {
	if err := tx.answerComment(c, "the prompt has room now", ""); err != nil {
		return err
	}
	return tx.Derive(c.TaskID)
}

// ResolveAsAgent is [Tx.Resolve] by an agent. Comments that only people may answer are refused with
// an error that wraps [ralph.ErrConflict]: signals, approvals of changes, ralph's own
// blockers, proposals to cancel, and people's comments (decision 9).
func (tx *Tx) ResolveAsAgent(comment int64, decision, by string) error {
	c, err := tx.Comment(comment)
	if err != nil {
		return err
	}
	approval, err := tx.Approval(comment)
	if err != nil {
		return err
	}
	if c.Verb != "" || c.Kind == ralph.Nack || c.AuthorKind == ralph.ByHuman || approval.Kind() != "" ||
		c.HoldReason != "" {
		return ralph.Conflict("comment %d is for a person to answer", comment)
	}
	return tx.Resolve(comment, decision, by)
}

// Blockers lists the open blockers of a task.
func (tx *Tx) Blockers(task int64) ([]ralph.Comment, error) {
	return commentRows.all(tx, `
		WHERE c.task_id = $1 AND c.holding = 1 AND coalesce(c.signal_verb, '') <> 'ask' AND c.review = ''
		ORDER BY c.id`, task)
}

// Undelivered lists people's comments on a task since a time, oldest first, that no session has been given yet.
func (tx *Tx) Undelivered(task int64, since ralph.Time) ([]ralph.Comment, error) {
	return commentRows.all(tx, `
		WHERE c.task_id = $1 AND c.created >= $2 AND `+undelivered+`
		ORDER BY c.id`, task, since)
}

// MarkDelivered records that a session was handed a comment.
func (tx *Tx) MarkDelivered(comment int64, session string) error {
	return tx.set("task_comments", comment, cells{"delivered_at": tx.Now(), "delivered_to": session})
}

// Decidable reports whether a comment is answered by yes or no ([Tx.Decide]); any other is resolved
// with words ([Tx.Resolve]).
func (tx *Tx) Decidable(comment int64) (bool, error) {
	c, err := tx.Comment(comment)
	if err != nil {
		return false, err
	}
	approval, err := tx.Approval(comment)
	return c.Kind == ralph.Nack || approval.Kind() != "", err
}

// Approval returns the approval that a comment asks for; its kind is "" for any other comment.
func (tx *Tx) Approval(comment int64) (a ralph.Approval, err error) {
	err = tx.row(`SELECT coalesce(nullif(review, ''), '{}') FROM task_comments WHERE id = $1`, comment).Scan(column(&a))
	if err != nil {
		return a, fmt.Errorf("approval of comment %d: %w", comment, err)
	}
	return a, nil
}
