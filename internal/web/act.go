package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"ralph"
	"ralph/store"
)

// An actor changes something in a transaction and says in a line what came of it.
type actor func(tx *store.Tx, r *http.Request) (said string, err error)

// byID makes an actor of one for the thing whose number is in the path.
func byID(f func(tx *store.Tx, r *http.Request, id int64) (string, error)) actor {
	return func(tx *store.Tx, r *http.Request) (string, error) {
		id, err := pathID(r)
		if err != nil {
			return "", err
		}
		return f(tx, r, id)
	}
}

// act changes something and leads back to where the form was.
func (a *app) act(f actor) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var said string
		// What a person decided is carried out although the browser may have gone.
		ctx := context.WithoutCancel(r.Context())
		err := a.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			said, err = f(tx, r)
			return err
		})
		if err == nil && a.Settle != nil {
			err = a.Settle(ctx)
		}
		a.answered(w, r, said, err)
	}
}

// answered leads back with a word on what was done, or says why nothing was.
func (a *app) answered(w http.ResponseWriter, r *http.Request, said string, err error) {
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.flash(w, said)
	http.Redirect(w, r, local(r.PostFormValue("back")), http.StatusSeeOther)
}

// written is what was written in a field of a form, with the ends of lines as
// everywhere else.
func written(r *http.Request, name string) string {
	return strings.TrimSpace(strings.ReplaceAll(r.PostFormValue(name), "\r\n", "\n"))
}

func (a *app) comment(tx *store.Tx, r *http.Request, task int64) (string, error) {
	c := ralph.Comment{
		TaskID: task, Author: a.Person, AuthorKind: ralph.ByHuman, Kind: ralph.CommentKind(r.PostFormValue("kind")),
		Body: written(r, "text"), Rationale: written(r, "rationale"),
	}
	if c.Kind == "" {
		c.Kind = ralph.Note
	}
	id, err := tx.AddComment(c)
	if err != nil {
		return "", err
	}
	t, err := tx.Task(task)
	said := fmt.Sprintf("Comment %d is on TASK-%d.", id, task)
	if t.Status == ralph.InProgress {
		said += " The session that works on it is told at once."
	}
	return said, err
}

func (a *app) reply(tx *store.Tx, r *http.Request, parent int64) (string, error) {
	c, err := tx.Comment(parent)
	if err != nil {
		return "", err
	}
	id, err := tx.AddComment(ralph.Comment{
		TaskID: c.TaskID, Author: a.Person, AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: written(r, "text"),
		ParentID: &parent,
	})
	return fmt.Sprintf("Comment %d is below comment %d.", id, parent), err
}

func (a *app) answer(tx *store.Tx, r *http.Request, id int64) (string, error) {
	words := written(r, "option") // a button with one of the agent's own answers
	if words == "" {
		words = written(r, "text")
	}
	if err := tx.Answer(id, words, a.Person); err != nil {
		return "", err
	}
	return settled(tx, id)
}

// settle resolves a comment: with words, or with a verdict where it waits for one.
func (a *app) settle(tx *store.Tx, r *http.Request, id int64) (string, error) {
	decidable, err := tx.Decidable(id)
	if err != nil {
		return "", err
	}
	words := written(r, "text")
	switch verdict := r.PostFormValue("verdict"); {
	case decidable:
		var approve bool
		if approve, err = verdictOf(r, "approve", "refuse"); err == nil {
			err = tx.Decide(id, approve, words, a.Person)
		}
	case verdict == "adopt":
		_, err = tx.Adopt(id, a.Person)
	case verdict == "task":
		made, err := tx.TaskOf(id, written(r, "title"), a.Person)
		return fmt.Sprintf("TASK-%d was made of it.", made), err
	default:
		err = tx.Resolve(id, words, a.Person)
	}
	if err != nil {
		return "", err
	}
	return settled(tx, id)
}

// settled says what became of a comment's task.
func settled(tx *store.Tx, comment int64) (string, error) {
	c, err := tx.Comment(comment)
	if err != nil {
		return "", err
	}
	t, err := tx.Task(c.TaskID)
	return fmt.Sprintf("Settled. TASK-%d is %s.", t.ID, strings.ReplaceAll(string(t.Status), "_", " ")), err
}

func (a *app) retry(tx *store.Tx, _ *http.Request, id int64) (string, error) {
	return fmt.Sprintf("TASK-%d is back in the queue.", id), tx.Retry(id, "retried by "+a.Person)
}

func (a *app) cancel(tx *store.Tx, _ *http.Request, id int64) (string, error) {
	stopping, err := tx.Cancel(id, a.Person)
	if stopping {
		return fmt.Sprintf("The session on TASK-%d is being stopped; then it is cancelled.", id), err
	}
	return fmt.Sprintf("TASK-%d is cancelled.", id), err
}

// unblock resolves what holds a task back; with a number in "on" it only drops the
// dependency on that task.
func (a *app) unblock(tx *store.Tx, r *http.Request, id int64) (string, error) {
	if on := r.PostFormValue("on"); on != "" {
		other, err := ralph.ParseTaskID(on)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("TASK-%d no longer waits for TASK-%d.", id, other), tx.DropDependency(id, other)
	}
	return fmt.Sprintf("TASK-%d is unblocked.", id), tx.Unblock(id, a.Person)
}

func (a *app) approveTask(tx *store.Tx, _ *http.Request, id int64) (string, error) {
	return fmt.Sprintf("TASK-%d is in the queue.", id), tx.ApproveProposal(id, a.Person)
}

func (a *app) rejectTask(tx *store.Tx, r *http.Request, id int64) (string, error) {
	return fmt.Sprintf("TASK-%d is rejected.", id), tx.RejectProposal(id, written(r, "text"), a.Person)
}

func (a *app) decideAmendment(tx *store.Tx, r *http.Request, id int64) (string, error) {
	approve, err := verdictOf(r, "approve", "reject")
	if err != nil {
		return "", err
	}
	if !approve {
		return fmt.Sprintf("Amendment %d is rejected.", id), tx.RejectAmendment(id, written(r, "text"), a.Person)
	}
	dropped, err := tx.ApproveAmendment(id, written(r, "text"), a.Person)
	said := fmt.Sprintf("Amendment %d is applied.", id)
	if dropped {
		said += " The session that works on the task is being stopped; its work stays, " +
			"and the next one begins with the amendment."
	}
	return said, err
}

func (a *app) rollBack(tx *store.Tx, _ *http.Request, id int64) (string, error) {
	conflicts, err := tx.RollBack(id, a.Person)
	if err == nil && len(conflicts) > 0 {
		err = fmt.Errorf("%s of the task changed after amendment %d was applied, so nothing was done: %w",
			strings.Join(conflicts, ", "), id, ralph.ErrConflict)
	}
	return fmt.Sprintf("Amendment %d is rolled back.", id), err
}

func (a *app) decidePermission(tx *store.Tx, r *http.Request, id int64) (string, error) {
	allow, err := verdictOf(r, "allow", "deny")
	if err != nil {
		return "", err
	}
	if allow {
		return "Allowed; the session goes on.", tx.AnswerPermission(id, true, "", a.Person)
	}
	return "Denied; the session goes on without.", tx.AnswerPermission(id, false, written(r, "text"), a.Person)
}

// skip stops a session; its task goes back to the queue, behind others.
func (a *app) skip(tx *store.Tx, r *http.Request) (string, error) {
	s, err := tx.HaltSession(r.PathValue("id"), true, a.Person)
	return fmt.Sprintf("Session %.8s is being stopped; its task goes back to the queue.", s.ID), err
}

// control asks something of the run, as the commands do.
func (a *app) control(what string) http.HandlerFunc {
	said := map[string]string{
		ralph.ControlPause: "The run starts no further session until it is resumed.",
		ralph.ControlNone:  "The run goes on.", ralph.ControlStop: "The run ends after the session in progress.",
	}[what]
	return func(w http.ResponseWriter, r *http.Request) {
		a.answered(w, r, said, a.Control(context.WithoutCancel(r.Context()), what))
	}
}
