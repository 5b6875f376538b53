package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"ralph"
	"ralph/store"
)

// An actor makes a change in a transaction and describes the result in one line.
type actor func(tx *store.Tx, r *http.Request) (said string, err error)

// byID makes an actor for the thing whose number is in the path.
func byID(f func(tx *store.Tx, r *http.Request, id int64) (string, error)) actor {
	return func(tx *store.Tx, r *http.Request) (string, error) {
		id, err := pathID(r)
		if err != nil {
			return "", err
		}
		return f(tx, r, id)
	}
}

// act runs an actor and redirects to the page with the form.
func (a *app) act(f actor) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var said string
		// A person's decision is carried out even if the browser has gone.
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

// answered redirects with a message on the result, or shows the error.
func (a *app) answered(w http.ResponseWriter, r *http.Request, said string, err error) {
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.flash(w, said)
	http.Redirect(w, r, local(r.PostFormValue("back")), http.StatusSeeOther)
}

// written returns the text in a field of a form, with normalized line ends.
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
	words := written(r, "option") // a button with one of the agent's options
	if words == "" {
		words = written(r, "text")
	}
	if err := tx.Answer(id, words, a.Person); err != nil {
		return "", err
	}
	return settled(tx, id)
}

// settle resolves a comment: by a decision if it needs one, otherwise by words.
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

// settled describes the status of a comment's task.
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

// unblock resolves everything that holds a task; with a number in "on" it only drops the dependency
// on that task.
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

// noReason stands where a person rejects without words and some are kept.
const noReason = "no reason was given"

// lines are the lines of a field that are not blank.
func lines(r *http.Request, name string) (list []string) {
	for l := range strings.Lines(written(r, name)) {
		if l = strings.TrimSpace(l); l != "" {
			list = append(list, l)
		}
	}
	return list
}

// textOf puts what was written of a task into it.
func textOf(r *http.Request, t *ralph.Task) error {
	t.Title, t.Description = written(r, "title"), written(r, "text")
	t.Acceptance, t.Verify = lines(r, "accept"), lines(r, "verify")
	n, err := strconv.Atoi(r.PostFormValue("priority"))
	if err != nil {
		return &ralph.FieldError{Field: "priority", Problem: "must be a number from 0 (highest) to 4 (lowest)"}
	}
	t.Priority = n
	return ralph.CheckTitle("title", t.Title)
}

func (a *app) addTask(tx *store.Tx, r *http.Request) (string, error) {
	t := ralph.Task{Feature: written(r, "feature")}
	if err := textOf(r, &t); err != nil {
		return "", err
	}
	id, err := tx.AddTask(t, "human")
	return fmt.Sprintf("TASK-%d is in the queue.", id), err
}

func (a *app) editTask(tx *store.Tx, r *http.Request, id int64) (string, error) {
	before, err := tx.Task(id)
	if err != nil {
		return "", err
	}
	t := before
	if err := textOf(r, &t); err != nil {
		return "", err
	}
	if len(ralph.Changes(before, t)) == 0 {
		return fmt.Sprintf("TASK-%d is as it was.", id), nil
	}
	if err := tx.UpdateTask(t); err != nil {
		return "", err
	}
	_, err = tx.StopForContract(before, t, false, a.Person)
	return fmt.Sprintf("TASK-%d is changed.", id), err
}

func (a *app) decideAmendment(tx *store.Tx, r *http.Request, id int64) (string, error) {
	approve, err := verdictOf(r, "approve", "reject")
	if err != nil {
		return "", err
	}
	if !approve {
		why := cmp.Or(written(r, "text"), noReason)
		return fmt.Sprintf("Amendment %d is rejected.", id), tx.RejectAmendment(id, why, a.Person)
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
		err = ralph.Conflict("%s of the task changed after amendment %d was applied, so nothing was done",
			strings.Join(conflicts, ", "), id)
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

// skip stops a session; its task goes back to the queue, behind the others.
func (a *app) skip(tx *store.Tx, r *http.Request) (string, error) {
	s, err := tx.HaltSession(r.PathValue("id"), true, a.Person)
	return fmt.Sprintf("Session %.8s is being stopped; its task goes back to the queue.", s.ID), err
}

// control sends a request to the run, like the commands do.
func (a *app) control(what string) http.HandlerFunc {
	said := map[string]string{
		ralph.ControlPause: "The run starts no further session until it is resumed.",
		ralph.ControlNone:  "The run goes on.", ralph.ControlStop: "The run ends after the session in progress.",
	}[what]
	return func(w http.ResponseWriter, r *http.Request) {
		a.answered(w, r, said, a.Control(context.WithoutCancel(r.Context()), what))
	}
}
