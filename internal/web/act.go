package web

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/exchange"
	"ralph/internal/inbox"
	"ralph/store"
)

// An actor makes a change in a transaction and describes the result in one line.
type actor func(tx *store.Tx, r *http.Request) (said string, err error)

// byID makes an actor for a number in the path.
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

// answered redirects with the result as a message, or shows the error.
func (a *app) answered(w http.ResponseWriter, r *http.Request, said string, err error) {
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.flash(w, said)
	http.Redirect(w, r, local(r.PostFormValue("back")), http.StatusSeeOther)
}

// undo undoes a task's merged changes.
func (a *app) undo(w http.ResponseWriter, r *http.Request) {
	id, err := pathID(r)
	why, said := written(r, "why"), ""
	if err == nil {
		err = ralph.CheckText("the reason", why, false)
	}
	if err == nil {
		to := ralph.Status(r.PostFormValue("to"))
		said, err = a.Undo(context.WithoutCancel(r.Context()), id, to, why, r.PostFormValue("agent") != "")
	}
	a.answered(w, r, said, err)
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
	return becomes(tx, id)
}

// resolve resolves a comment: by a decision if it needs one, otherwise by words.
func (a *app) resolve(tx *store.Tx, r *http.Request, id int64) (string, error) {
	c, err := tx.Comment(id)
	if err != nil {
		return "", err
	}
	decidable, err := tx.Decidable(id)
	if err != nil {
		return "", err
	}
	i := store.InboxItem{Kind: "review", TaskID: c.TaskID, Ref: store.Reference{Of: store.OfComment, ID: id}}
	if !decidable {
		i.Kind, i.Action = "suggestion", r.PostFormValue("verdict")
	}
	switch {
	case decidable:
		return a.decide(tx, r, i, "approve", "refuse")
	case i.Action == "task":
		made, err := tx.TaskOf(id, written(r, "title"), a.Person)
		return fmt.Sprintf("TASK-%d was made of it.", made), err
	case i.Action == "adopt", c.Verb == ralph.VerbSuggest:
		return a.decided(tx, r, i, i.Action == "adopt")
	}
	if err := tx.Resolve(id, written(r, "text"), a.Person); err != nil {
		return "", err
	}
	return becomes(tx, id)
}

// decide calls decided with the verdict of the form.
func (a *app) decide(tx *store.Tx, r *http.Request, i store.InboxItem, yes, no string) (string, error) {
	approve, err := verdictOf(r, yes, no)
	if err != nil {
		return "", err
	}
	return a.decided(tx, r, i, approve)
}

// decided approves or rejects an item like `ralph approve` and `ralph reject`, with their messages.
func (a *app) decided(tx *store.Tx, r *http.Request, i store.InboxItem, approve bool) (string, error) {
	said, err := inbox.Decide(tx, i, approve, written(r, "text"), a.Person)
	return sentence(said), err
}

// sentence turns a line of a command's output into a sentence.
func sentence(said string) string {
	return strings.ToUpper(said[:min(len(said), 1)]) + said[min(len(said), 1):] + "."
}

// becomes describes the status of a comment's task.
func becomes(tx *store.Tx, comment int64) (string, error) {
	c, err := tx.Comment(comment)
	if err != nil {
		return "", err
	}
	said, err := inbox.Becomes(tx, c.TaskID)
	return fmt.Sprintf("Answered. %s.", strings.ReplaceAll(said, "_", " ")), err
}

func (a *app) retry(tx *store.Tx, r *http.Request, id int64) (string, error) {
	retry := tx.Retry
	if r.FormValue("again") != "" {
		retry = tx.RetryCompleted
	}
	return fmt.Sprintf("TASK-%d is back in the queue.", id), retry(id, "retried by "+a.Person)
}

func (a *app) cancel(tx *store.Tx, _ *http.Request, id int64) (string, error) {
	stopping, err := tx.Cancel(id, a.Person)
	if stopping {
		return fmt.Sprintf("The session on TASK-%d is being stopped; then it is cancelled.", id), err
	}
	return fmt.Sprintf("TASK-%d is cancelled.", id), err
}

// unblock resolves everything that blocks a task. With a number in "on" it only removes the
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

// proposal decides on a suggested task.
func (a *app) proposal(approve bool) actor {
	return byID(func(tx *store.Tx, r *http.Request, id int64) (string, error) {
		return a.decided(tx, r, store.InboxItem{Kind: "proposal", TaskID: id}, approve)
	})
}

// lines returns the lines of a field that are not blank.
func lines(r *http.Request, name string) (list []string) {
	for l := range strings.Lines(written(r, name)) {
		if l = strings.TrimSpace(l); l != "" {
			list = append(list, l)
		}
	}
	return list
}

// textOf copies the written fields of a task into it.
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

// split splits a task into the parts of a form; comment is the suggestion that it answers, or 0.
func (a *app) split(tx *store.Tx, r *http.Request, task, comment int64) (string, error) {
	parts, err := exchange.ParseParts(written(r, "text"))
	if err != nil {
		return "", ralph.Usage(err)
	}
	ids, err := inbox.Split(tx, task, comment, parts, a.Person)
	var names []string
	for _, id := range ids {
		names = append(names, fmt.Sprintf("TASK-%d", id))
	}
	return fmt.Sprintf("TASK-%d is split into %s.", task, strings.Join(names, ", ")), err
}

func (a *app) splitTask(tx *store.Tx, r *http.Request, id int64) (string, error) {
	return a.split(tx, r, id, 0)
}

func (a *app) splitAsSuggested(tx *store.Tx, r *http.Request, comment int64) (string, error) {
	c, _, err := tx.Suggestion(comment)
	if err != nil {
		return "", err
	}
	return a.split(tx, r, c.TaskID, comment)
}

// moveTask moves a task in the queue, next to another one.
func (a *app) moveTask(tx *store.Tx, r *http.Request, id int64) (string, error) {
	name, after := "before", false
	if r.PostFormValue(name) == "" {
		name, after = "after", true
	}
	other, err := ralph.ParseTaskID(written(r, name))
	if err != nil {
		return "", &ralph.FieldError{Field: name, Problem: "must be the number of a task"}
	}
	return fmt.Sprintf("TASK-%d goes %s TASK-%d.", id, name, other), tx.MoveRank(id, other, after)
}

// putFeature adds a feature, or changes the one named in the form.
func (a *app) putFeature(tx *store.Tx, r *http.Request) (string, error) {
	f, said := ralph.Feature{Name: written(r, "name")}, "added"
	if r.PostFormValue("change") != "" {
		var err error
		if f, err = tx.Feature(f.Name); err != nil {
			return "", err
		}
		if err := unseen(r, "Feature "+f.Name, f); err != nil {
			return "", err
		}
		said = "changed"
	}
	f.Description, f.Learnings, f.Verify = written(r, "text"), written(r, "learnings"), lines(r, "verify")
	return fmt.Sprintf("Feature %s is %s.", f.Name, said), tx.PutFeature(f)
}

// edition returns a digest of the fields of a task or a feature that its form shows.
func edition(of any) string {
	var shown []byte
	switch v := of.(type) {
	case ralph.Task:
		shown = fmt.Appendf(nil, "%q %q %q %q %d", v.Title, v.Description, v.Acceptance, v.Verify, v.Priority)
	case ralph.Feature:
		shown = fmt.Appendf(nil, "%q %q %q", v.Description, v.Learnings, v.Verify)
	}
	return fmt.Sprintf("%x", sha256.Sum256(shown))
}

// unseen returns an error if the task or feature has changed since its form was shown. It accepts a second try, as the
// person has been told.
func unseen(r *http.Request, name string, of any) error {
	was := r.PostFormValue("was")
	if was == "" || was == edition(of) {
		return nil
	}
	r.PostForm.Del("was")
	return ralph.Conflict("%s was changed while you edited it, so yours is not saved: look at it again. "+
		"Trying again overwrites that change", name)
}

func (a *app) addTask(tx *store.Tx, r *http.Request) (string, error) {
	t := ralph.Task{Feature: written(r, "feature")}
	if err := textOf(r, &t); err != nil {
		return "", err
	}
	same, found, err := tx.Same(t)
	if err != nil || found && slices.Equal(same.Acceptance, t.Acceptance) { // the form was sent twice
		return fmt.Sprintf("TASK-%d has this title and %s.", same.ID, same.Is()), err
	}
	id, err := tx.AddTask(t, "human")
	return fmt.Sprintf("TASK-%d is in the queue.", id), err
}

func (a *app) editTask(tx *store.Tx, r *http.Request, id int64) (string, error) {
	before, err := tx.Task(id)
	if err != nil {
		return "", err
	}
	if err := unseen(r, fmt.Sprintf("TASK-%d", id), before); err != nil {
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
	m, err := tx.Amendment(id)
	if err != nil {
		return "", err
	}
	i := store.InboxItem{Kind: "amendment", TaskID: m.TaskID, Ref: store.Reference{Of: store.OfAmendment, ID: id}}
	return a.decide(tx, r, i, "approve", "reject")
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
	i := store.InboxItem{Kind: "permission", Ref: store.Reference{Of: store.OfPermission, ID: id}}
	return a.decide(tx, r, i, "allow", "deny")
}

// skip stops a session; its task goes back to the queue, behind the others.
func (a *app) skip(tx *store.Tx, r *http.Request) (string, error) {
	s, err := tx.HaltSession(r.PathValue("id"), true, a.Person)
	return fmt.Sprintf("Session %.8s is being stopped; its task goes back to the queue.", s.ID), err
}

func (a *app) resumeMerging(tx *store.Tx, _ *http.Request) (string, error) {
	return "Changes are merged again.", tx.ResumeMerging(a.Person)
}

// start starts a run like `ralph run`.
func (a *app) start(w http.ResponseWriter, r *http.Request) {
	said, err := a.Start(context.WithoutCancel(r.Context()))
	a.answered(w, r, said, err)
}

// control sends a request to the run like the commands.
func (a *app) control(what string) http.HandlerFunc {
	said := map[string]string{
		ralph.ControlPause: "The run starts no further session until it is resumed.",
		ralph.ControlNone:  "The run goes on.", ralph.ControlStop: "The run ends after the session in progress.",
		ralph.ControlStopNow: "The run ends now; the tasks of its sessions go back to the queue.",
	}[what]
	return func(w http.ResponseWriter, r *http.Request) {
		a.answered(w, r, said, a.Control(context.WithoutCancel(r.Context()), what))
	}
}
