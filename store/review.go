package store

import (
	"errors"
	"slices"

	"ralph"
	"ralph/signals"
)

// StartReview opens a session that reviews the change of session of, on the same task.
func (tx *Tx) StartReview(s Start, of ralph.Session) (ralph.Session, error) {
	if err := tx.CheckSession(of.TaskID, of.ID); err != nil {
		return ralph.Session{}, err
	}
	t, err := tx.Task(of.TaskID)
	if err != nil {
		return ralph.Session{}, err
	}
	if err := tx.insertSession(s, t, of.Attempt, ralph.RoleReview); err != nil {
		return ralph.Session{}, err
	}
	checking := cells{"checking": "review by " + s.Agent, "checking_since": tx.Now()}
	if err := tx.set("sessions", of.ID, checking); err != nil {
		return ralph.Session{}, err
	}
	if _, err := tx.ObserveState(of.ID, ralph.PhaseReviewing, tx.Now()); err != nil {
		return ralph.Session{}, err
	}
	r, err := tx.Session(s.ID)
	if err != nil {
		return r, err
	}
	return r, tx.record(during(r), ralph.ReviewStarted{Agent: s.Agent, Model: s.Model})
}

// EndReview stores the result of a review, and the cost of its session. Remarks become flags of the task.
func (tx *Tx) EndReview(s ralph.Session, r ralph.Review) error {
	outcome, state := ralph.OutcomeSuccess, ralph.PhaseDone
	if r.None != "" {
		outcome, state = ralph.OutcomeFailure, ralph.PhaseFailed
	}
	for _, o := range r.Remarks() {
		if _, err := tx.say(s.TaskID, s.ID, s.Agent, remark(o)); err != nil {
			return err
		}
	}
	notes := []string{}
	if r.Strangers > 0 {
		notes = append(notes, ralph.StrangersRefused(r.Strangers))
	}
	history, _, _, err := tx.states(s.ID)
	if err != nil {
		return err
	}
	s.History = append(history, ralph.PhaseChange{State: state, Timestamp: tx.Now(), Source: ralph.Observed})
	more := cells{"review": asJSON(r), "notes": asJSON(notes)}
	if err := tx.endSession(s, state, outcome, r.String(), more); err != nil {
		return err
	}
	if err := tx.closePermissions(s.ID); err != nil {
		return err
	}
	return tx.record(during(s), ralph.ReviewEnded{
		Agent: s.Agent, Said: r.String(), Approved: r.None == "" && len(r.Blocking()) == 0, CostUSD: s.CostUSD,
	})
}

// remark turns a reviewer's remark into a flag of the task.
func remark(o ralph.Objection) signals.Flag {
	what := o.At() + ": " + o.What
	if o.Why != "" {
		what += " (" + o.Why + ")"
	}
	return signals.Flag{What: what, Severity: "warning", Category: "bug"}
}

// LostReviews lists the reviews that lost runs left open.
func (tx *Tx) LostReviews() ([]ralph.Session, error) { return tx.lost(`s.role = 'review'`) }

// OpenReviewsOf lists the open reviews of a task.
func (tx *Tx) OpenReviewsOf(task int64) ([]ralph.Session, error) {
	return sessionRows.all(tx, `WHERE s.completed_at = '' AND s.role = 'review' AND s.task_id = $1`, task)
}

// ReviewsOf lists the reviews of a task since a person last decided on one of its changes, oldest first. Earlier ones
// no longer count.
func (tx *Tx) ReviewsOf(task int64) ([]ralph.Review, error) {
	return tx.reviews(`
		WHERE s.task_id = $1 AND s.role = 'review' AND s.review <> '' AND s.started_at > coalesce((
			SELECT max(c.resolved_at) FROM task_comments c WHERE c.task_id = $1 AND c.review <> '' AND c.resolved_by <> ''), '')
			AND s.started_at > coalesce((SELECT max(u.started_at) FROM sessions u JOIN changes c ON c.session_id = u.id
				WHERE c.task_id = $1 AND c.undo <> ''), '')
		ORDER BY s.started_at, s.id`, task)
}

// ReviewsSince lists the reviews of a task that began after one of its signals, oldest first.
func (tx *Tx) ReviewsSince(task, signal int64) ([]ralph.Review, error) {
	return tx.reviews(`
		WHERE s.task_id = $1 AND s.role = 'review' AND s.review <> ''
			AND s.started_at >= (SELECT c.created FROM task_comments c WHERE c.id = $2)
		ORDER BY s.started_at, s.id`, task, signal)
}

func (tx *Tx) reviews(which string, args ...any) (list []ralph.Review, err error) {
	rows, err := sessionRows.all(tx, which, args...)
	for _, s := range rows {
		list = append(list, *s.Review)
	}
	return list, err
}

// TakenBack reports whether a person has undone a merged change of a task.
func (tx *Tx) TakenBack(task int64) (bool, error) {
	return value[bool](tx, `SELECT EXISTS (
		SELECT 1 FROM changes WHERE task_id = $1 AND undo <> '' AND state = 'merged')`, task)
}

// SaidOf returns the reviews of a session's candidates and the session's own summary, in Markdown; "" if no review was
// asked for.
func (tx *Tx) SaidOf(session string) (string, error) {
	s, err := tx.Session(session)
	if err != nil {
		return "", err
	}
	rows, err := sessionRows.all(tx, `
		WHERE s.task_id = $1 AND s.role = 'review' AND s.review <> '' AND s.started_at >= $2
			AND ($3 = '' OR s.started_at <= $3)
		ORDER BY s.started_at, s.id`, s.TaskID, s.StartedAt, s.CompletedAt)
	if err != nil {
		return "", err
	}
	d, err := Decided(s)
	if err != nil && !errors.Is(err, ralph.ErrConflict) {
		return "", err
	}
	known := func(r ralph.Review) func(o ralph.Session) bool {
		return func(o ralph.Session) bool { return o.ID == r.Session }
	}
	var reviews []ralph.Review
	for _, r := range d.Evidence.Reviews { // earlier reviews of the same candidate
		if !slices.ContainsFunc(rows, known(r)) {
			reviews = append(reviews, r)
		}
	}
	for _, row := range rows {
		reviews = append(reviews, *row.Review)
	}
	if len(reviews) == 0 {
		return "", nil
	}
	said, err := tx.SessionSignals(s.ID)
	if err != nil {
		return "", err
	}
	done, _ := signals.Closing(said).Payload.(signals.Done)
	words := ralph.BothSides(reviews, done.Summary)
	if why := d.Evidence.Gate.Reason; why != "" {
		words += "\n\nIt says why tests are changed: " + ralph.Quoted(why, "")
	}
	return words, nil
}
