package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/tools/messagesapi"
)

// A crowd is a project of twelve tasks. Four of them insert at the same place of one file, and two pass alone and fail
// when both are merged: one renames a function that the other one calls.
type crowd struct {
	*scriptedProject
	tasks int // that were added
}

// chores are the commands of agent.sh for the tasks of a crowd, by title.
var chores = map[string]string{
	"Insert ant": "ant", "Insert bee": "bee", "Insert cat": "cat", "Insert dog": "dog", "Rename": "rename", "Call": "call",
	"Own 0": "own0", "Own 1": "own1", "Own 2": "own2", "Own 3": "own3", "Own 4": "own4", "Own 5": "own5",
}

// crowdFiles are the files of the benchmark.
const crowdFiles = "../../internal/tools/bench/testdata/crowd"

func newCrowd(t *testing.T, sleep string, resolves bool, config string, stubborn ...string) *crowd {
	t.Helper()
	c := &crowd{scriptedProject: newScriptedProject(t, crowdScript(sleep, resolves, stubborn...), config)}
	c.gather("sandbox: off\n")
	return c
}

// crowdScript returns the script of a crowd's agents.
func crowdScript(sleep string, resolves bool, stubborn ...string) string {
	var script strings.Builder
	for title, chore := range chores {
		if slices.Contains(stubborn, chore) {
			chore += " stubborn"
		}
		done := fmt.Sprintf("  done {\"summary\": %q}\n", title)
		fmt.Fprintf(&script, "task %s\n  run sh agent.sh %s %s\n%s", title, sleep, chore, done)
		for range 8 {
			if resolves {
				fmt.Fprintf(&script, "turn\n  run sh agent.sh merge %s\n%s", chore, done)
			} else {
				fmt.Fprint(&script, "turn\n  say I am not sure how to resolve this.\n  partial {\"summary\": \"a conflict\", \"remaining\": \"all\"}\n")
			}
		}
	}
	return script.String()
}

// gather makes the project and its tasks.
func (c *crowd) gather(config string) {
	c.t.Helper()
	c.configure(config + "permissions: {guards: false}\nverify: [sh verify.sh]\n")
	texts := map[string]string{
		"list.txt": "animals\nplants\n", "lib.sh": "greet_old() { :; }\n", "use_first.sh": "greet_old\n", "notes.txt": "notes\n",
	}
	for _, name := range []string{"agent.sh", "verify.sh"} {
		text, err := os.ReadFile(filepath.Join(crowdFiles, name))
		if err != nil {
			c.t.Fatal(err)
		}
		texts[name] = string(text)
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	c.git("add", "-A")
	c.git("commit", "-qm", "first")
	c.add()
}

// add adds the twelve; when they are done, those again that change something then, too.
func (c *crowd) add() {
	c.t.Helper()
	again := c.tasks > 0
	for title := range chores {
		if again && (title == "Rename" || title == "Call") {
			continue // a done that changes nothing waits for a person
		}
		c.tasks++
		c.ralph(0, "task", "add", title)
	}
}

// red returns the commits on the first-parent line on which the verification fails.
func (c *crowd) red() (list []string) {
	c.t.Helper()
	dir := c.t.TempDir()
	empty := strings.TrimSpace(c.git("rev-list", "--max-parents=0", "HEAD")) // before there was anything to verify
	for _, id := range strings.Fields(c.git("log", "--first-parent", "--format=%H", "HEAD", "^"+empty)) {
		at := filepath.Join(dir, id)
		cmd := exec.CommandContext(c.t.Context(), "sh", "-c",
			`git -C "$1" archive "$2" --prefix="$2/" | tar -x -C "$3" && cd "$3/$2" && sh verify.sh`, "sh", c.dir, id, dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			list = append(list, fmt.Sprintf("%.10s: %v %s", id, err, out))
		}
		if err := os.RemoveAll(at); err != nil {
			c.t.Fatal(err)
		}
	}
	return list
}

// TestACrowdOfSessionsBesideAPerson: all their work is merged although it conflicts, every state of the target was
// verified, and the person keeps all that is theirs.
func TestACrowdOfSessionsBesideAPerson(t *testing.T) {
	long(t)
	t.Parallel()
	c := newCrowd(t, "0.5", true, "")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("notes.txt", "notes\nof mine\n")
	write(".env", "SECRET=1\n")
	began := time.Now()
	run := c.command("run", "--parallel", "4")
	log := filepath.Join(t.TempDir(), "run.log")
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	run.Stdout, run.Stderr = out, out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	for merged := false; !merged; { // in the middle
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		case <-time.After(50 * time.Millisecond):
			b, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			merged = strings.Contains(string(b), "merged into")
		}
	}
	write("person.txt", "mine\n")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "until git add person.txt && git commit -qm person person.txt; do sleep 0.01; done")
	cmd.Dir, cmd.Env = c.dir, c.env
	wantStatus(t, cmd, 0)
	err = <-ended
	took := time.Since(began)
	b, rerr := os.ReadFile(log)
	if err != nil || rerr != nil {
		t.Fatalf("%v, %v\n%s", err, rerr, b)
	}
	t.Logf("twelve tasks in %s", took.Round(100*time.Millisecond))
	c.sound(string(b))
	for name, want := range map[string]string{"notes.txt": "notes\nof mine\n", ".env": "SECRET=1\n", "person.txt": "mine\n"} {
		if got, err := os.ReadFile(filepath.Join(c.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
	if got := c.git("log", "--format=%s"); !strings.Contains(got, "person\n") {
		t.Errorf("the person's commit is not there:\n%s", got)
	}
	for _, name := range []string{"ant", "bee", "cat", "dog"} {
		if got := c.git("show", "HEAD:list.txt"); !strings.Contains(got, name) {
			t.Errorf("no %s in\n%s", name, got)
		}
	}
	if got := c.git("status", "--porcelain"); got != " M notes.txt\n?? .env\n" {
		t.Errorf("the work tree is\n%s", got)
	}
	if got := c.git("branch", "--list") + c.git("stash", "list") + c.git("worktree", "list"); strings.Count(got, "\n") != 2 {
		t.Errorf("there is left:\n%s", got)
	}
}

// TestACrowdThatKnowsNoGit only edits files. One of the four agents with conflicts leaves the conflict markers in at
// each try, and says done again: it begins again until its work fits, and nobody is asked.
func TestACrowdThatKnowsNoGit(t *testing.T) {
	long(t)
	t.Parallel()
	c := newCrowd(t, "0.2", true, "", "dog")
	out := c.ralph(0, "run", "--parallel", "4")
	c.sound(out)
	got := c.git("show", "HEAD:list.txt")
	for _, name := range []string{"ant", "bee", "cat", "dog"} {
		if strings.Count(got, "\n"+name) != 1 {
			t.Errorf("%s is not there once:\n%s", name, got)
		}
	}
	if strings.Contains(got, "<<<") {
		t.Errorf("conflict marks were merged:\n%s", got)
	}
	if got := c.ralph(0, "inbox"); !strings.Contains(got, "nothing waits") {
		t.Errorf("somebody is asked:\n%s", got)
	}
}

// sound wants all tasks done once, all merged work verified, nothing left over, no two sessions with one number, and
// never a session too many.
func (c *crowd) sound(out string) {
	c.t.Helper()
	if n := strings.Count(c.ralph(0, "task", "list", "--status", "merged", "--limit", "10000"), "TASK-"); n != c.tasks {
		c.t.Errorf("%d of %d tasks are completed\n%s", n, c.tasks, out)
	}
	for _, red := range c.red() {
		c.t.Errorf("red on the target: %s\n%s", red, out)
	}
	c.ralph(0, "db", "check")
	wantDeserted(c.t, c.state())
	for _, s := range c.sessions() {
		if s.Number > 4 {
			c.t.Errorf("session %s is number %d of 4", s.ID, s.Number)
		}
	}
}

func (c *crowd) sessions() (list []ralph.Session) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.ralph(0, "session", "list", "--limit", "10000", "--json")), &list); err != nil {
		c.t.Fatal(err)
	}
	return list
}

// withinMoney wants that no session began when the spent money, and the money that sessions in progress could spend,
// had reached a limit.
func (c *crowd) withinMoney(limit float64) {
	c.t.Helper()
	list := c.sessions()
	for _, s := range list {
		var spent float64
		for _, o := range list {
			if o.StartedAt.Before(s.StartedAt.Time) && !o.CompletedAt.IsZero() && o.CompletedAt.Before(s.StartedAt.Time) {
				spent += o.CostUSD
			}
		}
		if spent >= limit {
			c.t.Errorf("session %s began when $%.2f of $%.2f were spent", s.ID, spent, limit)
		}
	}
}

// killed has the crowd be killed so often, at random moments up to one, and then come to its
// end. The day's money runs out on the way, and people raise it.
func (c *crowd) killed(kills int, upTo time.Duration) {
	c.t.Helper()
	random, limit, reached := chance(c.t), 0.5, 0
	for n := 0; ; {
		run := c.command("run", "--parallel", "4")
		run.Env = append(run.Env, fmt.Sprintf("RALPH_LIMITS_MAX_COST_PER_DAY_USD=%g", limit))
		var out bytes.Buffer
		run.Stdout, run.Stderr = &out, &out
		if err := run.Start(); err != nil {
			c.t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = run.Wait(); close(ended) }() // its exit status says it
		var moment <-chan time.Time
		if n < kills {
			moment = time.After(200*time.Millisecond + time.Duration(random.Int64N(int64(upTo))))
		}
		select {
		case <-moment:
			if err := run.Process.Kill(); err != nil {
				c.t.Fatal(err)
			}
			n++
			<-ended
			continue
		case <-ended:
		}
		switch status := run.ProcessState.ExitCode(); {
		case status == ralph.ExitWaiting:
			c.retryLost()
		case status == ralph.ExitLimit:
			c.withinMoney(limit)
			limit, reached = limit*1.5, reached+1
		case status != ralph.ExitOK:
			c.t.Fatalf("exit status %d\n%s", status, out.String())
		case n < kills:
			c.add()
		default:
			c.t.Logf("%d kills, %d tasks; the day's money was spent %d times", n, c.tasks, reached)
			return
		}
	}
}

// manyKills has nothing but the kills and the day's money end a run of a crowd.
const manyKills = "limits: {attempts: 1000, stagnant_sessions: 1000, max_sessions: 10000, max_tasks: 10000, session_cost_usd: 0.4}\n" +
	"#test: {refused: 1000, sent_back: 1000, session_min_usd: 0.05}\n"

// TestACrowdThatIsKilled again and again in the middle is merged all the same: the next run
// decides on every session of the one before, and nothing goes on that belongs to none.
// RALPH_TEST_KILLS says how often.
func TestACrowdThatIsKilled(t *testing.T) {
	long(t)
	t.Parallel()
	c := newCrowd(t, "0.5", true, manyKills)
	c.killed(testNumber(t, "RALPH_TEST_KILLS", 3), 3*time.Second)
	c.sound("")
	subjects := c.git("log", "--format=%s")
	for i := range 12 {
		if !strings.Contains(subjects, fmt.Sprintf("TASK-%d", i+1)) {
			t.Errorf("TASK-%d has not been merged:\n%s", i+1, subjects)
		}
	}
	if got := c.git("status", "--porcelain"); got != "" {
		t.Errorf("the work tree is\n%s", got)
	}
}

// yourTask finds the title in a prompt.
var yourTask = regexp.MustCompile(`Your task: TASK-\d+ ([A-Za-z0-9 ]+)`)

// TestRealACrowdThatIsKilled is that with four real CLIs at once, in `make storm`. RALPH_TEST_REAL_KILLS
// says how often they are killed.
func TestRealACrowdThatIsKilled(t *testing.T) {
	if os.Getenv("RALPH_TEST_REAL_KILLS") == "" {
		t.Skip("skipped: RALPH_TEST_REAL_KILLS is not set")
	}
	t.Parallel()
	st := newStage(t, func(_ int, r messagesapi.Request) messagesapi.Turn {
		title := ""
		if m := yourTask.FindStringSubmatch(r.Text); m != nil {
			title = m[1]
		}
		switch n := answered(t, r); {
		case n > 40 || title == "":
			return finished
		case n == 0:
			return bash("sh agent.sh 0.5 " + chores[title])
		case n%2 == 0:
			return bash("sh agent.sh merge " + chores[title])
		}
		return done("did " + title)
	})
	c := &crowd{scriptedProject: &scriptedProject{t: t, dir: st.dir, env: st.command().Env}}
	c.gather(manyKills)
	c.killed(testNumber(t, "RALPH_TEST_REAL_KILLS", 1), 12*time.Second)
	c.sound("")
}

// TestACrowdThatDeclinesToResolve: unresolved conflicts are never committed and never counted, and everything else is
// merged.
func TestACrowdThatDeclinesToResolve(t *testing.T) {
	long(t)
	t.Parallel()
	c := newCrowd(t, "0.2", false, "limits: {attempts: 2}\n")
	out, err := c.command("run", "--parallel", "4").CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if n := strings.Count(c.ralph(0, "task", "list", "--status", "merged"), "Own "); n != 6 {
		t.Errorf("%d of the 6 that conflict with nobody are completed\n%s", n, out)
	}
	for _, red := range c.red() {
		t.Errorf("red on the target: %s\n%s", red, out)
	}
	if got := c.git("show", "HEAD:list.txt"); strings.Contains(got, "<<<<") {
		t.Errorf("the conflict was committed:\n%s", got)
	}
}
