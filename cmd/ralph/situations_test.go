package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ralph/internal/messagesapi"
)

// A situation is one in which loops that match text or exit statuses are wrong.
// Each is played by the scripted agent, and by the real claude where it is there.
type situation struct {
	name     string
	sentence string // that ralph prints; docs/situations.md quotes it
	task     string // the task's status afterwards
	exit     int    // of `ralph run`

	script string                                              // of the scripted agent
	model  func(n int, r messagesapi.Request) messagesapi.Turn // of the real one
	args   []string                                            // of `ralph run`
	exits0 bool                                                // the agent's program ends with 0 whatever happens
	key    string                                              // what the real one is signed in with, if it matters
}

const gate = "test -f made.txt"

// limited is a subscription whose window is used up.
func limited(int, messagesapi.Request) messagesapi.Turn {
	return messagesapi.Turn{Status: 429, Kind: "rate_limit_error", Text: "This request would exceed your account's rate limit.", Headers: map[string]string{
		"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10),
		"anthropic-ratelimit-unified-representative-claim": "five_hour", "anthropic-ratelimit-unified-overage-status": "rejected",
	}}
}

func situations(escape string) []situation {
	oauth := "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-fake"
	promise := "<promise>COMPLETE</promise>"
	again := func(list ...messagesapi.Turn) func(int, messagesapi.Request) messagesapi.Turn {
		return func(n int, _ messagesapi.Request) messagesapi.Turn { return list[n%len(list)] }
	}
	return []situation{
		{
			name: "an honest agent", task: "completed", exit: 0, sentence: "done and verified: made it",
			script: "run echo x > made.txt\ndone {\"summary\": \"made it\"}",
			model:  turns(bash("echo x > made.txt"), done("made it")),
		},
		{
			name: "a liar with a red gate", task: "failed", exit: 3, sentence: "done was refused: `" + gate + "` exits 1; refused 3 times",
			script: "done {\"summary\": \"made it\"}\nturn\ndone {\"summary\": \"really\"}\nturn\ndone {\"summary\": \"believe me\"}",
			model:  again(done("made it"), finished),
		},
		{
			name: "a promise quoted in a tool result", task: "failed", exit: 3, sentence: "stuck: session ended without closing signal (stuck 3 times)",
			script: "run echo '" + promise + "'\nsay " + promise,
			model:  again(bash("echo '"+promise+"'"), messagesapi.Turn{Text: promise}, messagesapi.Turn{Text: promise}),
		},
		{
			name: "a silent agent", task: "failed", exit: 3, sentence: "stuck: session ended without closing signal (stuck 3 times)",
			script: "run true", model: again(bash("true"), messagesapi.Turn{Text: "."}, messagesapi.Turn{Text: "."}),
		},
		{
			name: "a usage limit as text", task: "failed", exit: 3, sentence: "stuck: session ended without closing signal (stuck 3 times)",
			script: "run true\nsay You've hit your limit · resets 3am", args: []string{"--no-wait"},
			model: again(bash("true"), messagesapi.Turn{Text: "Claude AI usage limit reached|1795213319"}, messagesapi.Turn{Text: "You've hit your limit"}),
		},
		{
			name: "a usage limit as an event, exit status 1", task: "pending", exit: 6, sentence: "rate limit: You've hit your",
			script: "ratelimit 3600", model: limited, args: []string{"--no-wait"}, key: oauth,
		},
		{
			name: "a usage limit as an event, exit status 0", task: "pending", exit: 6, sentence: "rate limit: You've hit your",
			script: "ratelimit 3600", model: limited, args: []string{"--no-wait"}, key: oauth, exits0: true,
		},
		{
			name: "an error with exit status 0", task: "pending", exit: 6, sentence: "the agent's credentials were refused",
			script: "error authentication_failed", exits0: true,
			model: again(messagesapi.Turn{Status: 401, Kind: "authentication_error", Text: "invalid token"}),
		},
		{
			name: "a hang after output", task: "failed", exit: 3, sentence: "stuck: timed out after",
			script: "say I am on it.\nhang", args: []string{"--session-timeout", "4s"},
			model: again(bash("echo on it"), messagesapi.Turn{Hang: true}),
		},
		{
			name: "children that setsid", task: "completed", exit: 0, sentence: "done and verified: made it",
			script: "spawn exec " + escape + "\nrun echo x > made.txt\ndone {\"summary\": \"made it\"}",
			model:  turns(bash("setsid "+escape+" >/dev/null 2>&1 & echo x > made.txt"), done("made it")),
		},
	}
}

// TestTenSituations: the verdict, the exit status and the sentence of each, as
// docs/situations.md has them.
func TestTenSituations(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/situations.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range situations("sleep 1") {
		if row := fmt.Sprintf("| %d | %s | `%s` | %d | %s |", i+1, tt.name, tt.task, tt.exit, strings.ReplaceAll(tt.sentence, "|", `\|`)); !strings.Contains(string(page), row) {
			t.Errorf("docs/situations.md lacks the row\n%s", row)
		}
	}
	t.Run("scripted", func(t *testing.T) { playSituations(t, false) })
	t.Run("claude", func(t *testing.T) { playSituations(t, true) })
}

func playSituations(t *testing.T, real bool) {
	escape := func(i int) string { return fmt.Sprintf("sleep 5%d.%d", i, os.Getpid()) }
	claude := "ralph scripted-agent"
	if real {
		claude = realClaude(t)
		escape = func(i int) string { return fmt.Sprintf("sleep 6%d.%d", i, os.Getpid()) }
	}
	for i := range situations("") {
		tt := situations(escape(i))[i]
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, tt.model)
			if tt.key != "" {
				s.key = tt.key
			}
			agent := "exec " + claude + ` "$@"`
			if tt.exits0 {
				agent = claude + ` "$@"; exit 0`
			}
			files := map[string]string{
				"agent.sh": "#!/bin/sh\n" + agent + "\n", "claude.script": "task *\n" + tt.script + "\n",
				"ralph.yaml": "agent: {command: ['" + filepath.Join(s.dir, "agent.sh") + "'], exit_grace: 5s, allowed_tools: [Bash]}\n",
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			s.run(0, "task", "add", "Make it", "--verify", gate)
			s.has(s.run(tt.exit, append([]string{"run"}, tt.args...)...), tt.sentence, "exit status "+strconv.Itoa(tt.exit))
			s.has(s.run(0, "task", "list", "--json"), `"status": "`+tt.task+`"`)
			wantGone(t, escape(i))
			var exit *exec.ExitError
			if err := exec.CommandContext(t.Context(), "pgrep", "-f", s.dir).Run(); !errors.As(err, &exit) {
				t.Error("something of the project is alive")
			}
		})
	}
}
