package store

import (
	"fmt"

	"ralph"
)

// verificationsKept is how many results are kept for later baselines: some for
// each of the latest states of the work tree.
const verificationsKept = 200

// Baseline reads what a task's verification said before its first session into
// results; ok is false if that is not known.
func (tx *Tx) Baseline(task int64, results any) (ok bool, err error) {
	return found(tx.row(`SELECT results FROM baselines WHERE task_id = $1`, task).Scan(column(results)))
}

// SetBaseline keeps it.
func (tx *Tx) SetBaseline(task int64, results any) error {
	return tx.put("baselines", "task_id", cells{"task_id": task, "results": asJSON(results), "created": tx.now})
}

// Verification reads the newest result of a command for a state of the work tree;
// ok is false if there is none.
func (tx *Tx) Verification(content, command string, result any) (ok bool, err error) {
	return found(tx.row(`SELECT result FROM verifications WHERE content = $1 AND command = $2`, content, command).
		Scan(column(result)))
}

// KeepVerification keeps the result of a command for a state of the work tree,
// and forgets the oldest ones.
func (tx *Tx) KeepVerification(content, command string, result any) error {
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

// ProtectedFiles are all that are known of a place, by path; and what sessions have left
// in others, without that people approved it.
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

// KeepProtectedFiles writes what is known of protected files.
func (tx *Tx) KeepProtectedFiles(files []ProtectedFile) error {
	for _, p := range files {
		if err := tx.put("protected_files", "place, path", cells{
			"place": p.Place, "path": p.Path, "approved": p.Approved, "seen": p.Seen,
		}); err != nil {
			return err
		}
	}
	return nil
}

// addReview puts changed protected files up for a person's approval.
func (tx *Tx) addReview(s ralph.Session, files []string) error {
	body := "The session's work holds, but it changed protected files:\n"
	for _, f := range files {
		body += "\n- `" + f + "`"
	}
	return tx.ownComment(s.TaskID, s.ID, ralph.Question, cells{"body": body, "review": asJSON(files)})
}

// Review are the protected files that a comment puts up for approval; none if it
// is another comment.
func (tx *Tx) Review(comment int64) ([]string, error) {
	var files []string
	err := tx.row(`SELECT coalesce(nullif(review, ''), '[]') FROM task_comments WHERE id = $1`, comment).
		Scan(column(&files))
	if err != nil {
		return nil, fmt.Errorf("files of comment %d: %w", comment, err)
	}
	return files, nil
}

// UnderReview are the protected files of a place that wait for a person's approval.
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

// ApproveReview accepts a change of protected files: the files are as people want
// them from now on, and the task that waited for it is completed.
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
	if err := tx.Move(c.TaskID, ralph.Completed, ralph.Person, why); err != nil {
		return err
	}
	return tx.Resolve(comment, words("approved", decision), by)
}

// RefuseReview sends the task back with a person's words.
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
		return c, nil, fmt.Errorf("comment %d puts nothing up for approval: %w", comment, ralph.ErrConflict)
	}
	if !c.ResolvedAt.IsZero() {
		return c, nil, fmt.Errorf("comment %d is resolved already (%q): %w", comment, c.Decision, ralph.ErrConflict)
	}
	return c, files, nil
}
