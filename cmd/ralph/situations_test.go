package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ralph/internal/messagesapi"
	"ralph/internal/state"
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

	gate    string            // what the task is verified by; "" for the usual one
	config  string            // of the project
	files   map[string]string // that people have committed before
	drafts  map[string]string // that they have not
	hook    string            // runs at the agent's end
	remains []string          // files that are there afterwards
	lacks   []string          // files that are not

	earlier string       // the title of a task before it
	later   string       // the title of one after it
	before  func(*stage) // what happens before the run
	mend    func(*stage) // what people do before they look at the task
	after   func(*stage) // what holds then
	also    []string     // what is printed besides
}

const gate = "test -f made.txt"

// What agents do in several situations.
const (
	commit  = "echo x > made.txt; git add made.txt; git commit -qm made"
	locked  = "while flock -n made.txt true; do :; done"
	rewrite = "echo 'echo true > tests/check.sh' > build.sh; echo x > broken; echo x > made.txt"
	rule    = "r=ralph; $r task edit 1 --clear-verify --verify true; $r answer 1 yes; $r task cancel 1"
	filter  = "git config filter.slow.clean 'touch ran; sleep 1000'; echo '*.txt filter=slow' > .gitattributes; echo x > made.txt"
	insist  = "done {\"summary\": \"made it\"}\nturn\ndone {\"summary\": \"really\"}\nturn\ndone {\"summary\": \"believe me\"}"
)

// insisting works once and then says done as often as it is asked.
func insisting(command string) func(int, messagesapi.Request) messagesapi.Turn {
	return func(n int, _ messagesapi.Request) messagesapi.Turn {
		switch {
		case n == 0:
			return bash(command)
		case n%2 == 1:
			return done("made it")
		}
		return finished
	}
}

// anyCommit is the short id of a commit, or of a session, as sentences have it.
var anyCommit = regexp.MustCompile(`((?:at|in main:|as session) )[0-9a-f]{7,8}\b`)

// takes has a person claim TASK-1 when the run has picked it: ralph asks git for the
// state of the work tree then, and git waits for the person.
func takes(s *stage) {
	git, err := exec.LookPath("git")
	if err != nil {
		s.t.Fatal(err)
	}
	s.first = filepath.Join(s.home, "bin")
	s.file(filepath.Join(s.first, "git"), `#!/bin/sh
if ls .git/ralph/sessions/*/ && mkdir ~/picked; then until test -e ~/taken; do sleep 0.01; done; fi >/dev/null 2>&1
exec `+git+` "$@"
`)
	// The test's own context ends before the person is waited for.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), time.Minute)
	person := exec.CommandContext(bounded, "sh", "-c", "until test -e ~/picked; do sleep 0.01; done; ralph task claim 1; touch ~/taken")
	person.Dir, person.Env = s.dir, s.command().Env
	if err := person.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		defer cancel()
		if err := person.Wait(); err != nil {
			s.t.Error("the person: ", err)
		}
	})
}

// limited is a subscription whose window is used up.
func limited(int, messagesapi.Request) messagesapi.Turn {
	return messagesapi.Turn{Status: 429, Kind: "rate_limit_error", Text: "This request would exceed your account's rate limit.", Headers: map[string]string{
		"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10),
		"anthropic-ratelimit-unified-representative-claim": "five_hour", "anthropic-ratelimit-unified-overage-status": "rejected",
	}}
}

func situations(escape string) []situation {
	oauth := "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-fake"
	partial := tools(say("partial", map[string]any{"summary": "begun", "remaining": "the rest"}))
	stuck := tools(say("stuck", map[string]any{"reason": "I give up"}))
	promise := "<promise>COMPLETE</promise>"
	again := func(list ...messagesapi.Turn) func(int, messagesapi.Request) messagesapi.Turn {
		return func(n int, _ messagesapi.Request) messagesapi.Turn { return list[n%len(list)] }
	}
	return []situation{
		{
			name: "an honest agent", task: "completed", exit: 0, sentence: "done and verified (main at 1f3c9ab, 1 uncommitted file): made it",
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
			name: "children that setsid", task: "completed", exit: 0,
			sentence: "done and verified (main at 1f3c9ab, 1 uncommitted file; killed: " + escape + "): made it",
			script:   "spawn exec " + escape + "\nrun echo x > made.txt\ndone {\"summary\": \"made it\"}",
			model:    turns(bash("setsid "+escape+" >/dev/null 2>&1 & echo x > made.txt"), done("made it")),
		},
		{
			name: "a process that undoes the work after its check", task: "completed", exit: 0, remains: []string{"made.txt"},
			sentence: "done and verified (main at 1f3c9ab; killed: sh undo.sh",
			files: map[string]string{
				"undo.sh": "until grep -qs 'exit 0 after' .git/ralph/sessions/*/verify.log; do sleep 0.01; done\ngit reset -q --hard HEAD~1\n",
			},
			script: "spawn exec sh undo.sh\nrun " + commit + "\ndone {\"summary\": \"made it\"}",
			model:  turns(bash("setsid sh undo.sh >/dev/null 2>&1 & "+commit), done("made it")),
		},
		{
			name: "a hook of its end that undoes the work", task: "completed", exit: 0, remains: []string{"made.txt"},
			sentence: "done and verified (main at 1f3c9ab, 1 uncommitted file): made it", hook: "rm -f made.txt",
			script: "run echo x > made.txt\ndone {\"summary\": \"made it\"}",
			model:  turns(bash("echo x > made.txt"), done("made it")),
		},
		{
			name: "a check that asks what the agent left running", task: "failed", exit: 3, gate: "test -f made.txt && ! flock -n made.txt true",
			sentence: "done was refused: `test -f made.txt && ! flock -n made.txt true` exits 1; refused 3 times",
			script:   "spawn exec flock made.txt " + escape + "\nrun " + locked + "\n" + insist,
			model:    insisting("setsid flock made.txt " + escape + " >/dev/null 2>&1 & " + locked),
		},
		{
			name: "a command of the check that is made to rewrite a protected one", task: "failed", exit: 3,
			sentence: "done was refused: tests/check.sh is protected and was changed while `sh build.sh` ran; refused 1 time",
			config:   "verify: {commands: [sh build.sh, sh tests/check.sh], protect: [ralph.yaml, 'tests/**'], in_session_retries: 0}\nmax_verify_failures: 1\n",
			files:    map[string]string{"build.sh": "true\n", "tests/check.sh": "test ! -f broken\n"},
			script:   "run " + rewrite + "\ndone {\"summary\": \"made it\"}",
			model:    turns(bash(rewrite), done("made it")),
		},
		{
			name: "work on another branch than the one that is verified", task: "completed", exit: 0, gate: "true",
			sentence: "done and verified (main at 1f3c9ab; no changes; 1 commit on side is not on main, so it was not verified): really",
			script:   "run git switch -qc side && " + commit + " && git switch -q main\ndone {\"summary\": \"made it\"}\nturn\ndone {\"summary\": \"really\"}",
			model:    turns(bash("git switch -qc side && "+commit+" && git switch -q main"), done("made it"), finished, done("really")),
		},
		{
			name: "a branch that is moved back over people's commits", task: "failed", exit: 3,
			sentence: "done was refused: 1 commit from before the session is no longer in main: 1f3c9ab \"second\" by a; bring it back; refused 3 times",
			script:   "run git reset -q --hard HEAD~1 && echo x > made.txt\n" + insist,
			model:    insisting("git reset -q --hard HEAD~1 && echo x > made.txt"),
		},
		{
			name: "HEAD left on another branch", task: "failed", exit: 3,
			sentence: "done was refused: HEAD is on side, the session began on main: go back to main with your work; refused 3 times",
			script:   "run git switch -qc side 2>/dev/null; " + commit + "\n" + insist, model: insisting("git switch -qc side; " + commit),
		},
		{
			name: "a person's secret in a commit", task: "failed", exit: 3, drafts: map[string]string{".env": "TOKEN=x\n"},
			sentence: "done was refused: .env looks like a secret of a person's and was committed: undo that, so that no branch has it; refused 3 times",
			script:   "run echo x > made.txt; git add -A; git commit -qm all\n" + insist, model: insisting("echo x > made.txt; git add -A; git commit -qm all"),
		},
		{
			name: "a ralph.yaml that a session has rewritten, at the next run", task: "pending", exit: 4,
			sentence: "waiting for people: ralph.yaml is as session 1f3c9ab left it, and no person has approved that",
			config:   "permissions: {guards: false}\nverify: ['test ! -e broken']\n",
			script:   "run sed -i 's/test ! -e broken/true/' ralph.yaml\npartial {\"summary\": \"begun\", \"remaining\": \"the rest\"}",
			model:    turns(bash("sed -i 's/test ! -e broken/true/' ralph.yaml"), partial),
			before: func(s *stage) {
				s.has(s.run(5, "run", "--max-sessions", "1"), "it changed ralph.yaml, by which runs are configured")
			},
			after: func(s *stage) { s.has(s.run(0, "inbox"), "ralph approve config") },
		},
		{
			name: "an agent that calls ralph to decide for people", task: "failed", exit: 3,
			sentence: "it tried `ralph task edit 1 --clear-verify --verify true`, which only people may do",
			also:     []string{"it tried `ralph answer 1 yes`", "it tried `ralph task cancel 1`", "done was refused: `" + gate + "` exits 1; refused 3 times"},
			script:   "run " + rule + "\n" + insist, model: insisting(rule),
		},
		{
			name: "a git filter that the agent configures and that never ends", task: "completed", exit: 0, config: "git: {commit: task}\n", lacks: []string{"ran"},
			sentence: "done and verified (main at 1f3c9ab, 2 uncommitted files): made it",
			also:     []string{"files that belong to a filter of git's"},
			script:   "run " + filter + "\ndone {\"summary\": \"made it\"}", model: turns(bash(filter), done("made it")),
		},
		{
			name: "an agent that kills itself in every session", task: "blocked", exit: 4, later: "Next",
			sentence: "blocked: waits for a blocker to be resolved; 5 sessions in a row were lost; the last: the agent was killed by SIGKILL",
			also:     []string{"TASK-2 → completed", "5 are the limit"},
			script:   "task Next\nrun echo x > next.txt\ndone {\"summary\": \"made it\"}\ntask *\nsay I am on it.\nkill",
			model: func(n int, _ messagesapi.Request) messagesapi.Turn {
				if n >= 1 && n <= 3 {
					return []messagesapi.Turn{bash("echo x > next.txt"), done("made it"), finished}[n-1]
				}
				return bash("kill -9 $PPID")
			},
		},
		{
			name: "a protected file that the session of an earlier task has changed", task: "completed", exit: 3, earlier: "Loosen",
			sentence: "it changed protected files, which are put back as people left them: tests/check.sh",
			also:     []string{"TASK-1 → failed: stuck: I give up", "TASK-2 → completed: done and verified"},
			config:   "verify: {commands: [sh tests/check.sh], protect: [ralph.yaml, 'tests/**']}\nstuck_limit: 1\n",
			files:    map[string]string{"tests/check.sh": "test ! -f broken\n"},
			script: "task Loosen\nrun echo true > tests/check.sh\nstuck {\"reason\": \"I give up\"}\n" +
				"task *\nrun echo x > made.txt\ndone {\"summary\": \"made it\"}",
			model: turns(bash("echo true > tests/check.sh"), stuck, finished, bash("echo x > made.txt"), done("made it")),
		},
		{
			name: "a test that the session of an earlier task has broken", task: "failed", exit: 3, earlier: "Break",
			sentence: "done was refused: `sh check.sh` exits 1 (app.TestNew); refused 1 time",
			config:   "verify: {commands: [sh check.sh], in_session_retries: 0}\nstuck_limit: 1\nmax_verify_failures: 1\n",
			files: map[string]string{"check.sh": "test -f broken || exit 0\n" +
				"echo '{\"Action\":\"run\",\"Package\":\"app\",\"Test\":\"TestNew\"}'\necho '{\"Action\":\"fail\",\"Package\":\"app\",\"Test\":\"TestNew\"}'\n" +
				"echo '{\"Action\":\"fail\",\"Package\":\"app\"}'\nexit 1\n"},
			script: "task Break\nrun echo x > broken\nstuck {\"reason\": \"I give up\"}\ntask *\nrun echo x > made.txt\ndone {\"summary\": \"made it\"}",
			model:  turns(bash("echo x > broken"), stuck, finished, bash("echo x > made.txt"), done("made it")),
		},
		{
			name: "a git that does not work because ~/.gitconfig is broken", task: "pending", exit: 1, lacks: []string{".ralph"},
			sentence: "it cannot be told which git repository", also: []string{"bad config line 1 in file", "mend that and try again"},
			script: "run echo x > made.txt\ndone {\"summary\": \"made it\"}",
			model:  turns(bash("echo x > made.txt"), done("made it")),
			before: func(s *stage) {
				s.file(filepath.Join(s.home, ".gitconfig"), "[oops\n")
				s.run(1, "task", "list")
				s.run(1, "status")
			},
			mend:  func(s *stage) { s.file(filepath.Join(s.home, ".gitconfig"), "") },
			after: func(s *stage) { s.has(s.run(0, "run"), "TASK-1 → completed: done and verified") },
		},
		{
			name: "a person who takes the task that the run has just picked", task: "completed", exit: 0, earlier: "Taken",
			sentence: "TASK-2 → completed: done and verified",
			script:   "run echo x > made.txt\ndone {\"summary\": \"made it\"}",
			model:    turns(bash("echo x > made.txt"), done("made it")),
			before:   takes,
			after:    func(s *stage) { s.has(s.run(0, "task", "show", "1"), "in_progress") },
		},
		{
			name: "an agent that leaves garbage in git's index", task: "pending", exit: 1,
			sentence: "the done could not be checked: git cannot tell the state of the work tree (`git status` says why): git write-tree: exit status 128: fatal: the index: index file smaller than expected",
			also:     []string{"ralph: git cannot tell the state of the work tree"},
			script:   "session 1\nrun echo garbage > .git/index\ndone {\"summary\": \"made it\"}\ntask *\nrun echo x > made.txt\ndone {\"summary\": \"made it\"}",
			model: func(n int, _ messagesapi.Request) messagesapi.Turn {
				return []messagesapi.Turn{bash("echo garbage > .git/index"), done("made it"), finished, bash("echo x > made.txt"), done("made it"), finished}[min(n, 5)]
			},
			mend:  func(s *stage) { s.git("read-tree", "HEAD") },
			after: func(s *stage) { s.has(s.run(0, "run"), "TASK-1 → completed: done and verified") },
		},
		{
			name: "an agent that puts a folder in place of a file that counts as progress", task: "completed", exit: 0,
			sentence: "done and verified", config: "stagnation: {files: [NOTES.md]}\n", files: map[string]string{"NOTES.md": "x\n"},
			script: "session 1\nrun rm NOTES.md; mkdir NOTES.md\npartial {\"summary\": \"begun\", \"remaining\": \"the rest\"}\n" +
				"task *\nrun echo x > made.txt\ndone {\"summary\": \"made it\"}",
			model: turns(bash("rm NOTES.md; mkdir NOTES.md"), partial, finished, bash("echo x > made.txt"), done("made it")),
		},
	}
}

// TestSituations: the verdict, the exit status and the sentence of each, as
// docs/situations.md has them.
func TestSituations(t *testing.T) {
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
			if tt.hook != "" && !real {
				agent = claude + ` "$@"; ` + tt.hook
			}
			script := tt.script
			if !strings.HasPrefix(script, "task ") {
				script = "task *\n" + script
			}
			files := map[string]string{
				"agent.sh": "#!/bin/sh\n" + agent + "\n", "claude.script": script + "\n",
				"ralph.yaml": "agent: {command: ['" + filepath.Join(s.dir, "agent.sh") + "'], exit_grace: 5s, allowed_tools: [Bash]}\n" + tt.config,
				".gitignore": "claude.script.sessions\n",
			}
			if tt.hook != "" && real {
				files[".claude/settings.json"] = `{"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "` + tt.hook + `"}]}]}}`
			}
			maps.Copy(files, tt.files)
			s.write(files)
			s.git("symbolic-ref", "HEAD", "refs/heads/main")
			s.git("add", "-A")
			s.git("commit", "-qm", "first")
			s.git("commit", "-qm", "second", "--allow-empty")
			s.write(tt.drafts)
			id := "1"
			if tt.earlier != "" {
				id = "2"
				s.run(0, "task", "add", tt.earlier)
			}
			s.run(0, "task", "add", "Make it", "--verify", cmp.Or(tt.gate, gate))
			if tt.later != "" {
				s.run(0, "task", "add", tt.later)
			}
			if tt.before != nil {
				tt.before(s)
			}
			out := s.run(tt.exit, append([]string{"run"}, tt.args...)...)
			s.has(anyCommit.ReplaceAllString(out, "${1}1f3c9ab"), tt.sentence)
			s.has(out, tt.also...)
			if tt.mend != nil {
				tt.mend(s)
			}
			s.has(s.run(0, "task", "show", id, "--json"), `"status": "`+tt.task+`"`)
			for _, name := range tt.remains {
				if !state.Exists(filepath.Join(s.dir, name)) {
					t.Errorf("%s was undone after it was verified\n%s", name, out)
				}
			}
			for _, name := range tt.lacks {
				if state.Exists(filepath.Join(s.dir, name)) {
					t.Errorf("%s is there\n%s", name, out)
				}
			}
			if tt.after != nil {
				tt.after(s)
			}
			wantGone(t, escape(i))
			var exit *exec.ExitError
			if err := exec.CommandContext(t.Context(), "pgrep", "-f", s.dir).Run(); !errors.As(err, &exit) {
				t.Error("something of the project is alive")
			}
		})
	}
}
