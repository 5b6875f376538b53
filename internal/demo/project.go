package demo

import (
	"embed"
	"fmt"
	"path/filepath"

	"ralph"
)

// tasks is the queue of the demo: the tasks, their expected results with the scripted agent, and
// the reasons.
var tasks = []struct {
	title  string
	args   []string
	status ralph.Status
	story  string
}{
	{
		"Write the manual",
		[]string{
			"-d", "Write MANUAL with a line for each operation, multiplication too: it must exist first.",
			"--verify", "grep mul MANUAL",
		},
		ralph.Completed, "waited for multiplication, then passed",
	},
	{
		"Add multiplication",
		[]string{
			"-d", "calc.sh mul A B prints the product.",
			"--verify", `test "$(sh calc.sh mul 6 7)" = 42`,
		},
		ralph.Completed, "done at once",
	},
	{
		"Add subtraction",
		[]string{
			"-d", "calc.sh sub A B prints the difference.",
			"--verify", `test "$(sh calc.sh sub 9 2)" = 7`,
		},
		ralph.Completed, "failed its test, then fixed in the same session",
	},
	{
		"Add division",
		[]string{
			"-d", "calc.sh div A B prints the quotient. Ask what division by zero shall do.",
			"--verify", `test "$(sh calc.sh div 8 2)" = 4`,
		},
		ralph.Completed, "asked a question, and used your answer",
	},
	{
		"Add square root",
		[]string{
			"-d", "calc.sh sqrt A prints the square root.",
			"--verify", `test "$(sh calc.sh sqrt 9)" = 3`,
		},
		ralph.Failed, "the agent said \"done\" in three sessions; its check failed",
	},
}

// answer is the answer to the question about division. The script expects it in the prompt of the
// second session.
const answer = "Write an error to stderr and exit with status 3."

// Files of the project, and the script of its agent.
//
//go:embed calc.sh test.sh agent.script
var files embed.FS

// configuration returns the ralph.yaml of a demo with a verification command and a maximum number of
// sessions for each task. JSON strings are valid YAML strings.
func configuration(d *demo, verify string, attempts int) string {
	agent := fmt.Sprintf("agent: {use: %[1]s}\nagents: {%[1]s: {}}\n", d.agent)
	if d.agent == Scripted {
		agent = fmt.Sprintf("agent:\n  command: [%q, scripted-agent]\n  env:\n    RALPH_SCRIPT: %q\n"+
			"permissions:\n  writable: [%q] # where it counts its sessions\n", d.self, d.script(), filepath.Dir(d.script()))
	}
	return agent + fmt.Sprintf(`verify: [%s]
limits:
  attempts: %d
  max_sessions: 100
  max_duration: 30m
  max_cost_usd: 5
  session_timeout: 5m
  session_cost_usd: 1
`, verify, attempts)
}
