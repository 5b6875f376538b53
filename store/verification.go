package store

import (
	"fmt"

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

// A ProtectedFile is a file that sessions must not change (pipeline,
// "Verification"). Digests are of its content; "" means that there is no such file.
type ProtectedFile struct {
	Place    string // the folder where sessions work
	Path     string // slash-separated, relative to it
	Approved string // as people left it
	Seen     string // as the last session left it
}

// ProtectedFiles returns the protected files of a place by path, and those of other places that
// sessions have changed without a person's approval.
func (tx *Tx) ProtectedFiles(place string) (files map[string]ProtectedFile, elsewhere []ProtectedFile, err error) {
	list, err := all(tx, func(row scanner) (p ProtectedFile, err error) {
		return p, row.Scan(&p.Place, &p.Path, &p.Approved, &p.Seen)
	}, `SELECT place, path, approved, seen FROM protected_files ORDER BY path, place`)
	files = make(map[string]ProtectedFile, len(list))
	for _, p := range list {
		if p.Place == place {
			files[p.Path] = p
		} else if p.Approved != p.Seen {
			elsewhere = append(elsewhere, p)
		}
	}
	return files, elsewhere, err
}

// PutProtectedFiles stores the given protected files.
func (tx *Tx) PutProtectedFiles(files []ProtectedFile) error {
	for _, p := range files {
		if err := tx.put("protected_files", "place, path", cells{
			"place": p.Place, "path": p.Path, "approved": p.Approved, "seen": p.Seen,
		}); err != nil {
			return err
		}
	}
	return nil
}

// addReview asks a person to approve changed protected files.
func (tx *Tx) addReview(s ralph.Session, files []string) error {
	body := "The session's work holds, but it changed protected files:\n"
	for _, f := range files {
		body += "\n- `" + f + "`"
	}
	return tx.ownComment(s.TaskID, s.ID, ralph.Question, cells{"body": body, "review": asJSON(files)})
}

// Review returns the protected files that a comment asks to approve; none for any other comment.
func (tx *Tx) Review(comment int64) ([]string, error) {
	var files []string
	err := tx.row(`SELECT coalesce(nullif(review, ''), '[]') FROM task_comments WHERE id = $1`, comment).
		Scan(column(&files))
	if err != nil {
		return nil, fmt.Errorf("files of comment %d: %w", comment, err)
	}
	return files, nil
}

// UnderReview returns the protected files of a place that wait for a person's approval.
func (tx *Tx) UnderReview(place string) (map[string]bool, error) {
	lists, err := all(tx, func(row scanner) (files []string, err error) {
		return files, row.Scan(column(&files))
	}, `
		SELECT c.review FROM task_comments c JOIN sessions s ON s.id = c.session_id
		WHERE c.holding = 1 AND c.review <> '' AND s.dir = $1`, place)
	waiting := map[string]bool{}
	for _, files := range lists {
		for _, f := range files {
			waiting[f] = true
		}
	}
	return waiting, err
}

// ApproveReview approves a change of protected files and completes the task, or queues its change
// for merging.
func (tx *Tx) ApproveReview(comment int64, decision, by string) error {
	c, files, err := tx.openReview(comment)
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := tx.exec(`
			UPDATE protected_files SET approved = seen
			WHERE path = $1 AND place = (SELECT dir FROM sessions WHERE id = $2)`, f, c.SessionID); err != nil {
			return err
		}
	}
	why := "done; the change of protected files was approved by " + by
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
	if to == ralph.Completed {
		if err := tx.set("sessions", c.SessionID, cells{"commit_due": true}); err != nil {
			return err
		}
	}
	return tx.Resolve(comment, words("approved", decision), by)
}

// CommitDue are the sessions whose work a person's approval completed, as long as nobody
// has committed it.
func (tx *Tx) CommitDue() ([]ralph.Session, error) {
	return sessions.all(tx, `WHERE s.commit_due = 1 ORDER BY s.started_at`)
}

// Committed notes that nothing of a session is to be committed any more.
func (tx *Tx) Committed(session string) error {
	return tx.set("sessions", session, cells{"commit_due": false})
}

// RefuseReview refuses a change of protected files and sends the task back with the person's words.
func (tx *Tx) RefuseReview(comment int64, decision, by string) error {
	c, files, err := tx.openReview(comment)
	if err != nil {
		return err
	}
	note := "The change of protected files is refused; put them back as they were:"
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

// ApprovedBytes returns the path and digest of every protected file that people left or approved.
func (tx *Tx) ApprovedBytes() (map[[2]string]bool, error) {
	list, err := all(tx, func(row scanner) (f [2]string, err error) {
		return f, row.Scan(&f[0], &f[1])
	}, `SELECT path, approved FROM protected_files`)
	files := map[[2]string]bool{}
	for _, f := range list {
		files[f] = true
	}
	return files, err
}
