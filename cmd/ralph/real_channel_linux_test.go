package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ralph/internal/tools/messagesapi"
	"ralph/loop/agent/claude"
)

// TestRealWithoutState: an agent that cannot see ralph's state works, and none of its
// processes has it open or is told where it is. Signals, phases, permissions and the rule
// that a phase comes first all go through its channel.
func TestRealWithoutState(t *testing.T) {
	t.Parallel()
	program := realClaude(t)
	files, script := make(chan string, 2), make(chan string, 2)
	const look = `for e in $(grep -lzs "^RALPH_SESSION_ID=$RALPH_SESSION_ID" /proc/[0-9]*/environ); do
		p=${e%%/environ}
		echo "process $(tr '\0' ' ' <$p/cmdline | cut -c1-500)"
		cat $p/environ $p/cmdline | tr '\0' '\n' | grep -aE '%[1]s($|[^/]|/[^w])' && echo "NAMED"
		ls -l $p/fd | grep -E '%[1]s($|[^/]|/[^w])' && echo "OPEN"
	done; echo "files:" $(ls $(printf %%s '%[1]s' | tr -d '[]'))`
	s := newStage(t, func(n int, _ messagesapi.Request) messagesapi.Turn {
		switch n {
		case 0, 2: // a script, since a command that names ralph's files is denied
			return tools(messagesapi.Tool{Name: "Write", Input: map[string]any{"file_path": <-files, "content": <-script}})
		case 1:
			return tools(messagesapi.Tool{Name: claude.StateTool, Input: map[string]any{"state": "implementing"}})
		case 3:
			return tools(messagesapi.Tool{Name: "Bash", Input: map[string]any{"command": "sudo true", "description": "more"}})
		case 4:
			return tools(messagesapi.Tool{Name: "Bash", Input: map[string]any{"command": "sh ./made.txt", "description": "look"}})
		case 5:
			return tools(say("done", map[string]any{"summary": "made it"}))
		}
		return messagesapi.Turn{Text: "Finished."}
	})
	files <- filepath.Join(s.workspace(), "made.txt")
	files <- filepath.Join(s.workspace(), "made.txt")
	s.run(0, "task", "add", "Make", "--verify", "test -f made.txt")
	home := stateOf(t, s.dir, s.command().Env)
	last := len(home) - 1
	for range 2 {
		script <- fmt.Sprintf(look, home[:last]+"["+home[last:]+"]") // which is not itself what it looks for
	}
	hide := []string{"unshare", "-rm", "sh", "-c", `
		mkdir -p "$0/workspaces" /tmp/ralph-workspaces && mount -t tmpfs none /tmp/ralph-workspaces && mkdir /tmp/ralph-workspaces/kept &&
		mount --rbind "$0/workspaces" /tmp/ralph-workspaces/kept && mount -t tmpfs none "$0" && mkdir "$0/workspaces" &&
		mount --rbind /tmp/ralph-workspaces/kept "$0/workspaces" && cd "$PWD" && exec "$@"`, home}
	if out, err := exec.CommandContext(t.Context(), hide[0], append(hide[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("a folder cannot be hidden here: %v: %s", err, out)
	}
	var command []string
	for _, word := range append(hide, program) {
		command = append(command, fmt.Sprintf("%q", word))
	}
	s.write(map[string]string{"ralph.yaml": "agent: {command: [" + strings.Join(command, ", ") +
		"]}\n#test: {exit_grace: 5s}\nsessions: {enforce: true}\nsandbox: off\n"})
	s.has(s.run(0, "run"), "TASK-1 merged")
	requests := s.api.Requests()
	s.has(requests[1].Text, "Report your phase before you change files")
	s.has(requests[4].Text, "denied by ralph (root)")
	seen := requests[5].Text
	s.has(seen, "process "+program, "/ralph mcp", "files: workspaces")
	for _, never := range []string{"NAMED", "OPEN"} {
		if strings.Contains(seen, never+"\n") {
			t.Errorf("the agent can see the state:\n%s", seen)
		}
	}
	s.has(s.run(0, "session", "show", "--json"), `"implementing"`)
}
