package main

import (
	"strings"
	"testing"

	"ralph/internal/tools/messagesapi"
	"ralph/loop/agent/claude"
)

// TestRealReview: claude works and codex reviews. An objection reaches claude in the same conversation, codex reviews
// the fixed change in a conversation of its own, and the merge names both.
func TestRealReview(t *testing.T) {
	t.Parallel()
	said := func(tool string, input map[string]any) messagesapi.Turn {
		return tools(messagesapi.Tool{Name: claude.Profile.Tool(tool), Input: input})
	}
	author := turns(
		bash("echo 'echo $(($1 - $2))' > add.sh"), done("it adds"), finished, bash("echo 'echo $(($1 + $2))' > add.sh"),
		done("it adds now"), finished,
	)
	reviewer := turns(
		bash("sh add.sh 2 1; touch sneaked; git add -A; git -c user.name=x -c user.email=x commit -qm sneaked"),
		said("review.object", map[string]any{"file": "add.sh", "line": 7, "what": "no such line", "why": "so", "severity": "blocking"}),
		said("review.object", map[string]any{
			"file": "add.sh", "line": 1, "what": "it subtracts", "why": "2 and 1 is 3", "severity": "blocking",
		}), finished,
		bash("sh add.sh 2 1"), said("review.approve", map[string]any{"checked": "added 2 and 1"}), finished,
	)
	worked, reviewed := 0, 0
	s := newStage(t, func(_ int, r messagesapi.Request) messagesapi.Turn {
		if r.Path == "/v1/messages" {
			worked++
			return author(worked-1, r)
		}
		reviewed++
		return reviewer(reviewed-1, r)
	})
	s.codexHome()
	s.configure("agents:\n" + codexAgent(realCodex(t)) + "review: [{agent: codex}]")
	s.commit()
	s.run(0, "task", "add", "Add two numbers", "--verify", "sh add.sh 1 1")
	s.has(s.run(0, "run"), "refused: codex (gpt-5.5) objects: add.sh:1: it subtracts", "TASK-1 merged into main")
	s.has(s.git("show", "main:add.sh"), "$1 + $2")
	if files := s.git("ls-tree", "-r", "--name-only", "main"); strings.Contains(files, "sneaked") {
		t.Errorf("the reviewer's file was merged:\n%s", files)
	}

	s.has(s.run(0, "task", "show", "1"), "approved by codex (gpt-5.5): added 2 and 1")
	s.has(s.run(0, "report", "-v"), "codex (gpt-5.5): added 2 and 1", "claude "+claudeVersion, "codex "+codexVersion)
	sessions := s.run(0, "session", "list", "--json")
	s.has(sessions, `"agent": "claude"`, `"agent": "codex"`, `"wrote": true`)
	if n := strings.Count(sessions, `"role": "review"`); n != 2 || strings.Count(sessions, `"role": "work"`) != 1 {
		t.Errorf("claude worked in other than one session, or codex reviewed in %d:\n%s", n, sessions)
	}
	var told, astray bool
	for i, r := range s.api.Requests() {
		if r.Path == "/v1/messages" {
			told = told || strings.Contains(r.Text, "add.sh:1: it subtracts")
			continue
		}
		astray = astray || strings.Contains(r.Text, "the change has no line 7 of add.sh")
		if strings.Contains(r.Text, "echo 'echo") {
			t.Errorf("request %d: the reviewer is shown the author's conversation", i)
		}
	}
	if !told || !astray {
		t.Errorf("the author is told of the objection: %t; the reviewer that there is no such line: %t", told, astray)
	}

	// A person undoes work on which two agents agreed.
	s.has(s.run(0, "undo", "1", "--reason", "no scripts, please"), "undone: TASK-1, commit")
	s.has(s.run(0, "prompt", "1"), "no scripts, please")
}
