package demo

import (
	"fmt"
	"strings"

	"ralph"
)

// tasks is the queue of the demo: what is in it, what becomes of it with the
// scripted agent, and why.
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
		ralph.Completed, "waited for multiplication, and went on by itself",
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
		ralph.Completed, "refused by its test, and mended in the same session",
	},
	{
		"Add division",
		[]string{
			"-d", "calc.sh div A B prints the quotient. Ask what division by zero shall do.",
			"--verify", `test "$(sh calc.sh div 8 2)" = 4`,
		},
		ralph.Completed, "asked, was parked while others went on, and had your answer",
	},
	{
		"Add square root",
		[]string{
			"-d", "calc.sh sqrt A prints the square root.",
			"--verify", `test "$(sh calc.sh sqrt 9)" = 3`,
		},
		ralph.Failed, "said in three sessions that it was done, and was not",
	},
}

// answer answers the question about division. The script wants to see it in
// the prompt of the second session.
const answer = "Write an error to stderr and exit with status 3."

const calc = `#!/bin/sh
# A calculator: calc.sh OPERATION A B
op=$1 a=$2 b=$3
case $op in
add) echo $((a + b)) ;;
# more operations go here
*) echo "unknown operation $op" >&2; exit 2 ;;
esac
`

const test = `#!/bin/sh
# What works must go on working.
test "$(sh calc.sh add 2 3)" = 5
`

// configuration is the ralph.yaml of the demo. Strings of JSON are strings of YAML.
func configuration(d *demo) string {
	agent := "agent:\n  command: [claude]\n"
	if !d.real {
		agent = fmt.Sprintf("agent:\n  command: [%q, scripted-agent]\n  env:\n    RALPH_SCRIPT: %q\n", d.self, d.script())
	}
	return agent + `verify:
  commands: [sh test.sh]
  in_session_retries: 2
max_verify_failures: 3
limits:
  max_sessions: 12
  max_duration: 30m
  max_cost_usd: 5
  session_timeout: 5m
  session_cost_usd: 1
`
}

// script is what the scripted agent does.
var script = strings.TrimSpace(`
# What the agent of the demo does; see the documentation of ralph's package scripted.

task Write the manual
session 1
say There is no multiplication yet, so the manual would be wrong.
blocked {"on":"Add multiplication","kind":"upstream_task","detail":"The manual must describe it."}
partial {"summary":"Read calc.sh.","remaining":"Write MANUAL when there is a multiplication."}

task Write the manual
write MANUAL "add A B  the sum\nmul A B  the product\n"
run git add MANUAL && git commit -q -m "Write the manual"
done {"summary":"Wrote MANUAL."}
say The manual is written.

task Add multiplication
run awk '/^# more/ { print "mul) echo $((a * b)) ;;" } 1' calc.sh >calc.new && mv calc.new calc.sh
run git commit -q -a -m "Add multiplication"
learned {"text":"Operations of calc.sh are cases above the line that begins with # more.","kind":"convention","scope":"project"}
done {"summary":"Added mul."}
say Multiplication works.

task Add subtraction
run awk '/^# more/ { print "sub) echo $((a + b)) ;;" } 1' calc.sh >calc.new && mv calc.new calc.sh
run git commit -q -a -m "Add subtraction"
done {"summary":"Added sub."}
say Subtraction works.
turn
say The test is right: I had written a plus.
run sed '/^sub/s|+|-|' calc.sh >calc.new && mv calc.new calc.sh
run git commit -q -a -m "Subtract instead of adding"
done {"summary":"Added sub, with the right sign."}
say Now subtraction works.

task Add division
when exit with status 3
run awk '/^# more/ { print "div) [ $b != 0 ] || { echo division by zero >&2; exit 3; }; echo $((a / b)) ;;" } 1' calc.sh >calc.new && mv calc.new calc.sh
run git commit -q -a -m "Add division"
done {"summary":"Added div; division by zero is an error, as was answered."}
say Division works.

task Add division
ask {"question":"What shall calc.sh div do when B is 0?","options":["print an error","print 0"],"preferred":"print an error","blocking":true}
partial {"summary":"Read calc.sh.","remaining":"Add div when it is known what division by zero does."}
say I wait for an answer.

task Add square root
run echo '# sqrt: see later' >>calc.sh
run git commit -q -a -m "Add square root"
done {"summary":"Added sqrt."}
say Square roots work.
turn
done {"summary":"Added sqrt, really."}
say I am sure that it works.
turn
done {"summary":"Added sqrt. The test must be wrong."}
say It works for me.
`) + "\n"
