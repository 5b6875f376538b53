package store

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/text"
)

// verificationsKept is the number of results that are kept for later baselines: some for each of
// the latest states of the work tree.
const verificationsKept = 200

// Baseline reads the results of a task's verification before its first session; ok is false if
// there are none.
func (tx *Tx) Baseline(task int64, results any) (ok bool, err error) {
	return found(tx.row(`SELECT results FROM baselines WHERE task_id = $1`, task).Scan(column(results)))
}

// SetBaseline stores the results that [Tx.Baseline] reads.
func (tx *Tx) SetBaseline(task int64, results any) error {
	return tx.put("baselines", "task_id", cells{"task_id": task, "results": asJSON(results), "created": tx.Now()})
}

// Verification reads the newest result of a command for a state of the work tree; ok is false if
// there is none.
func (tx *Tx) Verification(content, command string, result any) (ok bool, err error) {
	return found(tx.row(`SELECT result FROM verifications WHERE content = $1 AND command = $2`, content, keyOf(command)).
		Scan(column(result)))
}

// keyOf returns a command, or its digest if it is too long for an index of PostgreSQL.
func keyOf(command string) string {
	if len(command) > 2000 {
		return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(command)))
	}
	return command
}

// PutVerification stores the result of a command for a state of the work tree, and deletes the
// oldest ones.
func (tx *Tx) PutVerification(content, command string, result any) error {
	if err := tx.put("verifications", "content, command", cells{
		"content": content, "command": keyOf(command), "result": asJSON(result), "created": tx.Now(),
	}); err != nil {
		return err
	}
	err := tx.do(`
		DELETE FROM verifications
		WHERE created < (SELECT created FROM verifications ORDER BY created DESC LIMIT 1 OFFSET $1)`, verificationsKept)
	return err
}

// askApproval asks a person to approve a change before it is merged.
func (tx *Tx) askApproval(s ralph.Session, a ralph.Approval) error {
	return tx.ownComment(s.TaskID, s.ID, ralph.Question, cells{
		"body": approvalText(a), "review": asJSON(a), "hold_reason": a.Kind(),
	})
}

// approvalText says what there is to approve, in Markdown.
func approvalText(a ralph.Approval) string {
	var b strings.Builder
	b.WriteString("Passed its checks. You decide whether it is merged.\n")
	if a.Reason != "" {
		b.WriteString("\nThe agent: " + ralph.Quoted(a.Reason, "") + "\n")
	}
	if a.Says != "" {
		b.WriteString("\n" + a.Says + "\n")
	}
	if said := ralph.BothSides(slices.Concat(a.Objected, a.Unreviewed), a.Summary); said != "" {
		b.WriteString("\n" + said + "\n")
	}
	list := func(what string, lines []string) {
		if len(lines) > 0 {
			b.WriteString("\n" + what + ":\n- " + strings.Join(lines, "\n- ") + "\n")
		}
	}
	var tests []string
	for _, w := range a.Weakened {
		tests = append(tests, fmt.Sprintf("%s (%s): %s", w.Name(), w.Kind, w.Why))
	}
	list("Changed tests that pass on your branch", tests)
	names := func(blobs []ralph.Blob) (names []string) {
		for _, f := range blobs {
			names = append(names, "`"+f.Path+"`")
		}
		return names
	}
	list("Changed files behind these tests", names(a.Files))
	list("Changed files that run for people, steer agents or runs, or are outside of the project", names(a.Guarded))
	if len(a.Outside) > 0 {
		list("It "+ralph.Beyond(a.Outside, a.Scope), names(a.Outside))
	}
	var depends []string
	for _, d := range a.Depends {
		depends = append(depends, "`"+text.Line(d.String(), 400)+"`, in `"+d.File+"`")
	}
	list("It changes dependencies", depends)
	var protected []string
	for _, f := range a.Protected {
		protected = append(protected, "`"+f+"`")
	}
	list("Changed protected files", protected)
	if a.Unchanged {
		b.WriteString("\nIt changed nothing, and all commands passed before the session, so they prove nothing.\n")
	}
	return strings.TrimSpace(b.String())
}

// ApprovalOf returns the newest approval that was asked for a task, and its comment; 0 if there is none. open says
// whether it still waits.
func (tx *Tx) ApprovalOf(task int64) (comment int64, a ralph.Approval, open bool, err error) {
	type asked struct {
		comment int64
		a       ralph.Approval
		by      string
	}
	list, err := all(tx, func(row scanner) (one asked, err error) {
		return one, row.Scan(&one.comment, column(&one.a), &one.by)
	}, `SELECT c.id, c.review, c.resolved_by FROM task_comments c
		WHERE c.task_id = $1 AND c.kind = 'question' AND c.review <> '' ORDER BY c.id DESC LIMIT 1`, task)
	if err != nil || len(list) == 0 {
		return 0, a, false, err
	}
	return list[0].comment, list[0].a, list[0].by == "", nil
}

// approvals lists people's approvals on a task.
func (tx *Tx) approvals(task int64) ([]ralph.Approval, error) {
	return tx.approved(`c.task_id = $1`, task)
}

// ApprovedFor lists people's approvals on the tasks of a feature.
func (tx *Tx) ApprovedFor(feature string) ([]ralph.Approval, error) {
	return tx.approved(`c.task_id IN (`+tasksOfFeature+`)`, feature)
}

func (tx *Tx) approved(which string, of any) ([]ralph.Approval, error) {
	return all(tx, func(row scanner) (a ralph.Approval, err error) { return a, row.Scan(column(&a)) }, `
		SELECT c.review FROM task_comments c
		WHERE `+which+` AND c.review <> '' AND c.resolved_by <> '' AND c.decision LIKE 'approved%' ORDER BY c.id`, of)
}

// Approve approves the open parts of a change and queues it for merging, or completes the task if there is no change.
// It approves the change that was shown.
func (tx *Tx) Approve(comment int64, decision, by string) error {
	c, a, err := tx.openApproval(comment)
	if err != nil {
		return err
	}
	why := "done; " + a.Kind() + ", which " + by + " approved"
	to := ralph.Completed
	if change, ok, err := tx.OpenChange(c.TaskID); err != nil {
		return err
	} else if ok && a.Change != "" && change.Head != a.Change {
		return ralph.Conflict("TASK-%d has another change now than comment %d shows", c.TaskID, comment)
	} else if ok { // it was made in a workspace, and is not in the target yet
		to = ralph.Merging
		t, err := tx.Task(c.TaskID)
		if err != nil {
			return err
		}
		if err := tx.readmit(t, change); err != nil {
			return err
		}
	}
	if err := tx.Move(c.TaskID, to, ralph.Person, why); err != nil {
		return err
	}
	return tx.Resolve(comment, verdictText("approved", decision), by)
}

// Refuse refuses the approval of a change and sends the task back with the person's words.
func (tx *Tx) Refuse(comment int64, decision, by string) error {
	c, a, err := tx.openApproval(comment)
	if err != nil {
		return err
	}
	var note strings.Builder
	note.WriteString("This is refused: " + a.Kind() + ".")
	back := a
	back.Objected = nil // the next session answers reviewers' objections
	if paths := back.Paths(); len(paths) > 0 {
		note.WriteString(" Put these files back as they were:\n- `" + strings.Join(paths, "`\n- `") + "`")
	}
	parts := []string{note.String(), ralph.BothSides(a.Objected, ""), decision}
	body := strings.TrimSpace(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n\n"))
	if err := tx.note(c.TaskID, body, by, &comment); err != nil {
		return err
	}
	return tx.Resolve(comment, verdictText("refused", decision), by)
}

func verdictText(verdict, decision string) string {
	if decision == "" {
		return verdict
	}
	return verdict + ": " + decision
}

func (tx *Tx) openApproval(comment int64) (c ralph.Comment, a ralph.Approval, err error) {
	if c, err = tx.Comment(comment); err != nil {
		return c, a, err
	}
	if a, err = tx.Approval(comment); err != nil {
		return c, a, err
	}
	if a.Kind() == "" {
		return c, a, ralph.Conflict("comment %d puts nothing up for approval", comment)
	}
	if !c.ResolvedAt.IsZero() {
		return c, a, c.Settled()
	}
	return c, a, nil
}
