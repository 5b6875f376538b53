package web_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ralph"
	"ralph/store"
)

// Sizes of a large project.
const (
	manyTasks    = 10_000
	manyComments = 2_000  // of one task
	manyEvents   = 50_000 // of one session
)

// newLargeSite returns a project with many tasks and a full inbox, and a long session.
func newLargeSite(b *testing.B) *site {
	b.Helper()
	s := newSite(b)
	statuses := []ralph.Status{ralph.Pending, ralph.Proposed, ralph.Pending, ralph.Failed, ralph.Completed}
	s.write(func(tx *store.Tx) error {
		for i := range manyTasks {
			t := ralph.Task{Title: fmt.Sprintf("Task %d of many", i), Description: "A text.\n\nWith **marks**.", Priority: i % 5}
			if statuses[i%5] == ralph.Proposed {
				t.Status = ralph.Proposed
			}
			id, err := tx.AddTask(t, "human")
			if err != nil {
				return err
			}
			if to := statuses[i%5]; to == ralph.Failed || to == ralph.Completed {
				if err := tx.Move(id, to, ralph.Importer, "imported"); err != nil {
					return err
				}
			}
		}
		for i := range manyComments {
			if _, err := tx.AddComment(ralph.Comment{TaskID: 1, Author: "ada", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: fmt.Sprintf("Comment **%d**", i)}); err != nil {
				return err
			}
		}
		return nil
	})
	s.start(1, session)
	s.files[session+"/transcript"] = longTranscript(manyEvents)
	return s
}

// longTranscript has so many events: words, calls of tools and answers.
func longTranscript(n int) string {
	var b strings.Builder
	b.WriteString(`{"type":"system","subtype":"init","claude_code_version":"2.1.197","model":"opus","cwd":"/p"}` + "\n")
	for i := range n / 2 {
		text, _ := json.Marshal(fmt.Sprintf("Word %d: %s", i, strings.Repeat("and so on ", 20)))
		fmt.Fprintf(&b, `{"type":"assistant","message":{"content":[{"type":"text","text":%s}],"usage":{"input_tokens":10}}}`+"\n", text)
		fmt.Fprintf(&b, `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t%d","name":"Bash","input":{"command":"go test ./... -run %d"}}]}}`+"\n", i, i)
		fmt.Fprintf(&b, `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t%d","content":%s}]}}`+"\n", i, text)
	}
	return b.String()
}

// BenchmarkPages measures every page of a large project.
func BenchmarkPages(b *testing.B) {
	s := newLargeSite(b)
	browser := s.browser().signIn()
	for name, path := range map[string]string{
		"overview": "/", "board": "/board", "tasks": "/tasks", "tasks by status": "/tasks?status=merged&page=30", "tasks by words": "/tasks?q=999", "task": "/tasks/1", "an old page of its timeline": "/tasks/1?page=35",
		"inbox": "/inbox", "sessions": "/sessions", "session": "/sessions/" + session, "the middle of a session": "/sessions/" + session + "?before=25000", "learnings": "/learnings", "runs": "/runs", "charts": "/charts",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				browser.get(path)
			}
			b.ReportMetric(float64(len(browser.get(path))), "bytes")
		})
	}
}
