package store

import (
	"database/sql"
	"encoding/json"
	"errors"
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
	text, err := text(results)
	if err != nil {
		return err
	}
	_, err = tx.exec(`INSERT INTO baselines (task_id, results, created) VALUES ($1, $2, $3) ON CONFLICT (task_id) DO UPDATE SET results = excluded.results`, task, text, tx.now.String())
	return err
}

// Verification reads the newest result of a command for a state of the work tree;
// ok is false if there is none.
func (tx *Tx) Verification(content, command string, result any) (ok bool, err error) {
	return found(tx.row(`SELECT result FROM verifications WHERE content = $1 AND command = $2`, content, command).Scan(column(result)))
}

// KeepVerification keeps the result of a command for a state of the work tree,
// and forgets the oldest ones.
func (tx *Tx) KeepVerification(content, command string, result any) error {
	text, err := text(result)
	if err != nil {
		return err
	}
	if _, err := tx.exec(`
		INSERT INTO verifications (content, command, result, created) VALUES ($1, $2, $3, $4)
		ON CONFLICT (content, command) DO UPDATE SET result = excluded.result, created = excluded.created`,
		content, command, text, tx.now.String()); err != nil {
		return err
	}
	_, err = tx.exec(`DELETE FROM verifications WHERE created < (SELECT created FROM verifications ORDER BY created DESC LIMIT 1 OFFSET $1)`, verificationsKept)
	return err
}

// found turns the error of a row that is not there into false.
func found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// A ProtectedFile is a file that sessions must not change (pipeline,
// "Verification"). Digests are of its content; "" means that there is no such file.
type ProtectedFile struct {
	Path     string // slash-separated, relative to the project's root
	Approved string // as people left it
	Seen     string // as the last session left it
}

// ProtectedFiles are all that are known, by path.
func (tx *Tx) ProtectedFiles() (map[string]ProtectedFile, error) {
	list, err := all(tx, func(row scanner) (p ProtectedFile, err error) {
		err = row.Scan(&p.Path, &p.Approved, &p.Seen)
		return p, err
	}, `SELECT path, approved, seen FROM protected_files ORDER BY path`)
	files := make(map[string]ProtectedFile, len(list))
	for _, p := range list {
		files[p.Path] = p
	}
	return files, err
}

// KeepProtectedFiles writes what is known of protected files.
func (tx *Tx) KeepProtectedFiles(files []ProtectedFile) error {
	for _, p := range files {
		if _, err := tx.exec(`
			INSERT INTO protected_files (path, approved, seen) VALUES ($1, $2, $3)
			ON CONFLICT (path) DO UPDATE SET approved = excluded.approved, seen = excluded.seen`, p.Path, p.Approved, p.Seen); err != nil {
			return err
		}
	}
	return nil
}

// addReview puts changed protected files up for a person's approval.
func (tx *Tx) addReview(s ralph.Session, files []string) error {
	list, err := text(files)
	if err != nil {
		return err
	}
	body := "The session's work holds, but it changed protected files:\n"
	for _, f := range files {
		body += "\n- `" + f + "`"
	}
	id, err := tx.insert(`
		INSERT INTO task_comments (task_id, session_id, author, author_kind, kind, body, holding, review, created)
		VALUES ($1, $2, 'ralph', 'agent', 'question', $3, 1, $4, $5) RETURNING id`, s.TaskID, s.ID, body, list, tx.now.String())
	if err != nil {
		return err
	}
	return tx.record(ralph.Event{TaskID: s.TaskID, SessionID: s.ID},
		ralph.CommentAdded{TaskID: s.TaskID, CommentID: id, Kind: ralph.Question, AuthorKind: ralph.ByAgent, Author: "ralph"})
}

// Review are the protected files that a comment puts up for approval; none if it
// is another comment.
func (tx *Tx) Review(comment int64) ([]string, error) {
	var list string
	if err := tx.row(`SELECT review FROM task_comments WHERE id = $1`, comment).Scan(&list); err != nil || list == "" {
		return nil, err
	}
	var files []string
	if err := json.Unmarshal([]byte(list), &files); err != nil {
		return nil, fmt.Errorf("comment %d: %w", comment, err)
	}
	return files, nil
}

// UnderReview are the protected files that wait for a person's approval.
func (tx *Tx) UnderReview() (map[string]bool, error) {
	lists, err := all(tx, func(row scanner) (files []string, err error) {
		err = row.Scan(column(&files))
		return files, err
	}, `SELECT review FROM task_comments WHERE holding = 1 AND review <> ''`)
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
		if _, err := tx.exec(`UPDATE protected_files SET approved = seen WHERE path = $1`, f); err != nil {
			return err
		}
	}
	if err := tx.Move(c.TaskID, ralph.Completed, ralph.Person, "done; the change of protected files was approved by "+by); err != nil {
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
	if _, err := tx.AddComment(ralph.Comment{TaskID: c.TaskID, Author: by, AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: note, ParentID: &comment}); err != nil {
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
