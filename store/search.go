package store

import (
	"fmt"
	"strings"

	"ralph"
)

// A Hit is a place where a text was found.
type Hit struct {
	Kind    string // task, comment, learning, session, commit or file
	TaskID  int64  // 0 for a learning
	Ref     int64  // the number of a comment or learning
	Session string // of a session
	Verb    ralph.Verb
	Text    string // the title of a task, the words of a comment, the path of a file
	At      ralph.Time
}

// searches has a query for each kind, with the columns of [Hit] in order. before is "%" to match within a text, "" to
// match only its beginning.
var searches = []struct{ kind, before, query string }{
	{"task", "%", `SELECT t.id, 0, '', '', t.title, t.updated FROM tasks t
		WHERE lower(t.title) LIKE $1 ESCAPE '\' OR lower(t.description) LIKE $1 ESCAPE '\'
		ORDER BY CASE WHEN lower(t.title) LIKE $1 ESCAPE '\' THEN 0 ELSE 1 END, t.id DESC`},
	{"comment", "%", `SELECT c.task_id, c.id, coalesce(c.session_id, ''), coalesce(c.signal_verb, ''),
			c.body, c.created FROM task_comments c
		WHERE lower(c.body) LIKE $1 ESCAPE '\' ORDER BY c.id DESC`},
	{"learning", "%", `SELECT 0, l.id, '', '', l.text, l.last_seen FROM learnings l
		WHERE l.status = 'active' AND lower(l.text) LIKE $1 ESCAPE '\' ORDER BY l.id DESC`},
	{"session", "", `SELECT s.task_id, 0, s.id, '', s.outcome_reason, s.started_at FROM sessions s
		WHERE s.id LIKE $1 ESCAPE '\' ORDER BY s.started_at DESC`},
	{"commit", "", `SELECT c.task_id, 0, c.session_id, '', c.own_commit, c.updated FROM changes c
		WHERE c.own_commit LIKE $1 ESCAPE '\' ORDER BY c.updated DESC`},
	{"file", "%", `SELECT c.task_id, 0, c.session_id, '', c.files, c.updated FROM changes c
		WHERE lower(c.files) LIKE $1 ESCAPE '\' ORDER BY c.updated DESC`},
}

// Search returns where a text occurs, ignoring case: at most limit of each kind, newest first. The text of a file
// is the JSON of all files of its change.
func (tx *Tx) Search(text string, limit int) (list []Hit, err error) {
	text = escapeLike.Replace(strings.ToLower(text))
	for _, s := range searches {
		found, err := all(tx, func(row scanner) (Hit, error) {
			f := Hit{Kind: s.kind}
			return f, row.Scan(&f.TaskID, &f.Ref, &f.Session, &f.Verb, &f.Text, &f.At)
		}, fmt.Sprintf("%s LIMIT %d", s.query, limit), s.before+text+"%")
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}
