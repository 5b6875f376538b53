package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// foundOfKind is the maximum number of shown results of a kind.
const foundOfKind = 12

// A searchView has the results of a search, by kind.
type searchView struct {
	Text   string
	Groups []foundGroup
}

// A foundGroup has the results of one kind.
type foundGroup struct {
	Name string
	Rows []foundRow
}

// A foundRow is a result and its page.
type foundRow struct {
	store.Hit
	To, Line string
	Look     look
}

// foundNames has the headings of the kinds of results.
var foundNames = map[string]string{
	"task": "Tasks", "comment": "Said", "learning": "Learnings", "session": "Sessions",
	"commit": "Commits", "file": "Files",
}

// search finds a text everywhere. A number leads to its task.
func (a *app) search(tx *store.Tx, r *http.Request) (view, error) {
	v := searchView{Text: text.Line(r.URL.Query().Get("q"), ralph.MaxTitle)}
	page := view{title: "Find", name: "search", nav: "/search", body: &v}
	if v.Text == "" {
		return page, nil
	}
	found, err := tx.Search(v.Text, foundOfKind)
	if id, perr := ralph.ParseTaskID(v.Text); perr == nil && err == nil {
		if t, terr := tx.Task(id); terr == nil {
			found = append([]store.Hit{{Kind: "task", TaskID: id, Text: t.Title, At: t.Updated}}, found...)
		}
	}
	for _, f := range found {
		if n := len(v.Groups); n == 0 || v.Groups[n-1].Name != foundNames[f.Kind] {
			v.Groups = append(v.Groups, foundGroup{Name: foundNames[f.Kind]})
		}
		g := &v.Groups[len(v.Groups)-1]
		g.Rows = append(g.Rows, rowOf(f, v.Text))
	}
	return page, err
}

// rowOf makes a row from a result.
func rowOf(f store.Hit, asked string) foundRow {
	row := foundRow{Hit: f, To: fmt.Sprintf("/tasks/%d", f.TaskID), Line: text.Line(f.Text, 160), Look: look{Icon: "☰"}}
	switch f.Kind {
	case "comment":
		row.Look = verbLook(f.Verb)
		if _, said, ok := strings.Cut(f.Text, ":** "); ok && f.Verb != "" { // the row shows the verb
			row.Line = text.Line(strings.ReplaceAll(said, "**", ""), 160)
		}
		row.To += fmt.Sprintf("#c%d", f.Ref)
	case "learning":
		row.To, row.Look = fmt.Sprintf("/learnings#l%d", f.Ref), look{Icon: "💡"}
	case "session":
		row.To, row.Look = "/sessions/"+f.Session, look{Icon: "◷"}
		row.Line = text.Head(f.Session, 8) + " " + row.Line
	case "commit":
		row.To += "#diff-h"
		row.Line, row.Look = ralph.ShortID(f.Text), look{Icon: "✓"}
	case "file":
		row.To += "#diff-h"
		row.Line, row.Look = fileIn(f.Text, asked), look{Icon: "✎"}
	}
	return row
}

// fileIn returns the first file of a JSON list whose path contains a text.
func fileIn(list, asked string) string {
	var files []ralph.FileChange
	if json.Unmarshal([]byte(list), &files) == nil {
		for _, f := range files {
			if strings.Contains(strings.ToLower(f.Path), strings.ToLower(asked)) {
				return text.Line(f.Path, 160)
			}
		}
	}
	return "its files"
}
