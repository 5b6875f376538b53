package store

import (
	"fmt"
	"strings"

	"ralph"
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
	return tx.put("baselines", "task_id", cells{"task_id": task, "results": asJSON(results), "created": tx.now})
}

// Verification reads the newest result of a command for a state of the work tree; ok is false if
// there is none.
func (tx *Tx) Verification(content, command string, result any) (ok bool, err error) {
	return found(tx.row(`SELECT result FROM verifications WHERE content = $1 AND command = $2`, content, command).
		Scan(column(result)))
}

// PutVerification stores the result of a command for a state of the work tree, and deletes the
// oldest ones.
func (tx *Tx) PutVerification(content, command string, result any) error {
	if err := tx.put("verifications", "content, command", cells{
		"content": content, "command": command, "result": asJSON(result), "created": tx.now,
	}); err != nil {
		return err
	}
	_, err := tx.exec(`
		DELETE FROM verifications
		WHERE created < (SELECT created FROM verifications ORDER BY created DESC LIMIT 1 OFFSET $1)`, verificationsKept)
	return err
}

// addReview asks a person to approve changed files: protected ones, and those that configure runs or steer agents.
func (tx *Tx) addReview(s ralph.Session, files []string) error {
	body := "The session's work holds, but it changed files on which you decide:\n"
	for _, f := range files {
		body += "\n- `" + f + "`"
	}
	return tx.ownComment(s.TaskID, s.ID, ralph.Question, cells{"body": body, "review": asJSON(files)})
}

// Review returns the files that a comment asks to approve; none for any other comment.
func (tx *Tx) Review(comment int64) ([]string, error) {
	var files []string
	err := tx.row(`SELECT coalesce(nullif(review, ''), '[]') FROM task_comments WHERE id = $1`, comment).
		Scan(column(&files))
	if err != nil {
		return nil, fmt.Errorf("files of comment %d: %w", comment, err)
	}
	return files, nil
}

// ApproveReview approves a change of files that was put up for approval, and queues the change for merging.
func (tx *Tx) ApproveReview(comment int64, decision, by string) error {
	c, files, err := tx.openReview(comment)
	if err != nil {
		return err
	}
	why := "done; its change of " + strings.Join(files, ", ") + " was approved by " + by
	to := ralph.Completed
	if change, ok, err := tx.OpenChange(c.TaskID); err != nil {
		return err
	} else if ok { // it was made in a slot, and is not in the target yet
		to = ralph.Merging
		t, err := tx.Task(c.TaskID)
		if err != nil {
			return err
		}
		if err := tx.requeue(t, change); err != nil {
			return err
		}
	}
	if err := tx.Move(c.TaskID, to, ralph.Person, why); err != nil {
		return err
	}
	return tx.Resolve(comment, words("approved", decision), by)
}

// RefuseReview refuses a change of files that was put up for approval and sends the task back with the person's words.
func (tx *Tx) RefuseReview(comment int64, decision, by string) error {
	c, files, err := tx.openReview(comment)
	if err != nil {
		return err
	}
	note := "The change of these files is refused; put them back as they were:"
	for _, f := range files {
		note += "\n- `" + f + "`"
	}
	if decision != "" {
		note += "\n\n" + decision
	}
	if err := tx.note(c.TaskID, note, by, &comment); err != nil {
		return err
	}
	return tx.Resolve(comment, words("refused", decision), by)
}

func words(verdict, decision string) string {
	if decision == "" {
		return verdict
	}
	return verdict + ": " + decision
}

func (tx *Tx) openReview(comment int64) (c ralph.Comment, files []string, err error) {
	if c, err = tx.Comment(comment); err != nil {
		return c, nil, err
	}
	if files, err = tx.Review(comment); err != nil {
		return c, nil, err
	}
	if len(files) == 0 {
		return c, nil, ralph.Conflict("comment %d puts nothing up for approval", comment)
	}
	if !c.ResolvedAt.IsZero() {
		return c, nil, ralph.Conflict("comment %d is resolved already (%q)", comment, c.Decision)
	}
	return c, files, nil
}
