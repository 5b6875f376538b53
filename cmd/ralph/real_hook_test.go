package main

import (
	"fmt"
	"os"
	"testing"

	"ralph/internal/tools/messagesapi"
)

// TestRealHooksBeforeReady: processes that hooks started before the agent was ready do not belong to it. ralph kills
// and names them before the check.
func TestRealHooksBeforeReady(t *testing.T) {
	t.Parallel()
	for i, tt := range []struct{ name, settings, hook string }{
		{"a daemon", "", "setsid flock made.txt %s >/dev/null 2>&1 &"},
		{"a hook that goes on", `"async": true, `, "flock made.txt %s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			escape := fmt.Sprintf("sleep 7654%d.%d", 6+i, os.Getpid())
			s := newStage(t, func(n int, _ messagesapi.Request) messagesapi.Turn {
				switch n {
				case 0:
					return tools(messagesapi.Tool{Name: "Bash", Input: map[string]any{"command": "while flock -n made.txt true; do sleep 0.1; done", "description": "wait"}})
				case 1, 3:
					return tools(say("done", map[string]any{"summary": "made it"}))
				}
				return messagesapi.Turn{Text: "Finished."}
			})
			s.configure("#test: {retries: 1, refused: 1}")
			s.write(map[string]string{".claude/settings.json": `{"hooks": {"SessionStart": [{"hooks": [{` + tt.settings + `"type": "command", "command": "` +
				fmt.Sprintf(tt.hook, escape) + `"}]}]}}`})
			s.commit()
			s.run(0, "task", "add", "Make", "--verify", "! flock -n made.txt true")
			s.has(s.run(3, "run"), "refused: `! flock -n made.txt true` exits 1")
			s.has(s.run(0, "session", "show"), escape)
			s.has(s.api.Requests()[3].Text, "ralph killed the processes that you had left running", escape)
			wantGone(t, escape)
		})
	}
}
