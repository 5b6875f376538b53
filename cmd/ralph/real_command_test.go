package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandAgent: a program that knows nothing of ralph's tools but the command in its prompt does a task, is refused
// once, and does it in another session. Its cost is unknown.
func TestCommandAgent(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	program := filepath.Join(s.dir, "agent.sh")
	s.file(program, `#!/bin/sh
[ "$1" = --version ] && echo mine 1.2.3 && exit 0
cat > $TMPDIR/prompt
grep -q "ralph signal TICKET VERB" $TMPDIR/prompt || exit 9
ticket=$(sed -n 's/^Your ticket is \([A-Z0-9]*\)\..*/\1/p' $TMPDIR/prompt)
say() { # it keeps the ticket that it is answered
	ralph signal $ticket "$@" > $TMPDIR/answer
	status=$?
	ticket=$(sed -n 's/^Ticket for your next signal: //p' $TMPDIR/answer)
	return $status
}
say done && echo "a done without a summary was taken"
test -e half && touch whole || touch half
first=$ticket
say learned text="it takes two" kind=discovery
ralph signal $first learned text="with a spent ticket" kind=discovery && echo "a ticket was taken twice"
ralph signal NONE flag what="without a ticket" severity=blocking category=bug && echo "a guess was taken"
say done summary="it's done = really"
`)
	s.replace("agent: {", "agent: {use: mine, ")
	s.configure("agents: {mine: {kind: command, command: [" + program + "]}}\nlimits: {session_cost_usd: 2}")
	s.run(0, "task", "add", "Make", "--verify", "test -f whole")
	s.has(s.run(0, "run"), "by mine", "refused: `test -f whole` exits 1", "TASK-1 merging: done and verified", "about $0.80")
	sessions := s.run(0, "session", "list", "--json")
	s.has(sessions, `"agent": "mine"`, `"agent_version": "mine 1.2.3"`, `"cost_known": false`)
	if strings.Contains(sessions, " taken") {
		t.Errorf("what lacks a field, or has no ticket, was taken:\n%s", sessions)
	}
	s.has(s.run(0, "learning", "list"), "it takes two")
	s.has(s.run(0, "task", "show", "1", "--json"), `"strangers": 4`)
	// Without a sandbox nothing would hold it.
	s.configure("sandbox: off")
	s.run(0, "task", "add", "More")
	s.has(s.run(2, "run"), "agents.mine asks nobody what it may do")
}

// TestCommandAgentByMCP: a program that has servers of tools in settings of its own has ralph's by
// `ralph mcp` there, with the ticket of its prompt.
func TestCommandAgentByMCP(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil)
	program := filepath.Join(s.dir, "agent.sh")
	call := func(id int, method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
	}
	s.file(program, "#!/bin/sh\n[ \"$1\" = --version ] && exit\ncat > told\nRALPH_TICKET=$(sed -n 's/^Your ticket is \\([A-Z0-9]*\\)\\..*/\\1/p' told)\nexport RALPH_TICKET\ntouch whole\n{ cat <<'EOF'\n"+
		call(1, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"mine","version":"1"}}`)+
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+call(2, "tools/list", `{}`)+
		call(3, "tools/call", `{"name":"ralph.signal.done","arguments":{"summary":"by a tool"}}`)+"EOF\nuntil grep -q '\"id\":3' answers; do sleep 0.05; done; } | ralph mcp > answers\n")
	s.replace("agent: {", "agent: {use: mine, ")
	s.configure("agents: {mine: {kind: command, command: [" + program + "]}}")
	s.run(0, "task", "add", "Make", "--verify", "test -f whole")
	s.has(s.run(0, "run"), "TASK-1 merging: done and verified", "by a tool")
}
