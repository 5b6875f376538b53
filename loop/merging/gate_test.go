package merging

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/loop/check"
	"ralph/loop/gate"
	"ralph/loop/gate/gatetest"
	"ralph/signals"
	"ralph/store"
)

// A runner runs commands on fresh checkouts, and reads the names of their tests.
type runner struct {
	*yard
	ran     int    // commits that were checked out
	modules string // for node_modules; "" for none
}

// Verify implements Integration.
func (r *runner) Verify(ctx context.Context, commit string, commands []string) (list []check.Outcome, err error) {
	r.ran++
	dir := r.t.TempDir()
	archive := exec.CommandContext(ctx, "sh", "-c", "git archive "+commit+" | tar x -C '"+dir+"'")
	archive.Dir = r.dir
	if out, err := archive.CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	if r.modules != "" {
		r.no(os.Symlink(r.modules, filepath.Join(dir, "node_modules")))
	}
	rules := check.Rules{
		Timeout: cmp.Or(r.Check.Timeout, 5*time.Minute), Env: append(os.Environ(), "GOFLAGS=-vet=off", "PYTHONDONTWRITEBYTECODE=1"),
	}
	return rules.Run(ctx, check.Round{Dir: dir, Session: dir, Log: filepath.Join(r.t.TempDir(), "log")}, commands)
}

// TestGateOfRealProjects plays changes of real projects: cheats, and honest ones without findings. Lost, loosened,
// changed, refused or guarded tests wait for a person, or are refused (signals.TestVerdictsOfAGate).
func TestGateOfRealProjects(t *testing.T) {
	t.Parallel()
	projects, err := gatetest.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range projects {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			playGate(t, p)
		})
	}
}

// playGate plays the changes of a project.
func playGate(t *testing.T, p gatetest.Project) {
	if _, err := exec.LookPath(p.Needs); err != nil {
		t.Skip(p.Needs + " is not installed")
	}
	y := newYard(t, p.Command)
	for name, text := range p.Files {
		y.write(name, text)
	}
	y.git("add", "-A")
	y.git("commit", "--quiet", "-m", "Project")
	r := &runner{yard: y}
	if len(p.Packages) > 0 {
		modules, err := p.Modules(t.Context())
		if err != nil {
			t.Skip("skipped without the packages: ", err)
		}
		r.modules = modules
	}
	y.Workspace, y.Check.Tests, y.Check.Trial = r, []string{gate.Auto}, check.TrialAuto
	tip := y.git("rev-parse", "main")
	list, err := y.said(t.Context(), tip, y.git("rev-parse", "main^{tree}"), []string{p.Command})
	if err != nil || failed(list) {
		t.Fatal(err, list) // a run verifies the target before its first session
	}
	for _, c := range p.Cases {
		for name, text := range c.Files {
			y.write(name, text)
		}
		for _, name := range c.Removes {
			y.no(os.Remove(filepath.Join(y.dir, name)))
		}
		y.git("add", "-A")
		y.git("commit", "--quiet", "-m", "Change")
		head := y.git("rev-parse", "main")
		y.git("reset", "--quiet", "--hard", tip)
		change := y.changed(tip, head, c.Allows...)
		tried, err := y.Try(t.Context(), change)
		y.no(err)
		y.Leave(t.Context(), change.SessionID)
		if tried.Refused != "" || tried.Conflict != "" {
			t.Errorf("%s %s: its check does not pass: %s%s\n%s", c.ID, c.Name, tried.Refused, tried.Conflict, tried.Checks[0].Tail)
			continue
		}
		r.ran = 0
		g, err := y.Gate(t.Context(), change, tried.Built, tried.Checks, nil)
		y.no(err)
		got := found(g)
		if c.Found == "" && len(got) > 0 || c.Found != "" && !slices.Contains(got, c.Found) {
			t.Errorf("%s %s: %q, want %q (%+v)", c.ID, c.Name, got, c.Found, g)
		}
		if c.Found == "" && r.ran > c.Runs || r.ran > 40 {
			t.Errorf("%s %s: %d commits verified, want at most %d", c.ID, c.Name, r.ran, c.Runs)
		}
		if len(c.Allows) > 0 && len(g.Allowed) == 0 {
			t.Errorf("%s %s: what the task allows is not in the receipt", c.ID, c.Name)
		}
		// The findings are stored: the second time nothing runs.
		r.ran = 0
		if again, err := y.Gate(t.Context(), change, tried.Built, tried.Checks, nil); err != nil || len(again.Weakened) != len(g.Weakened) || r.ran > 0 {
			t.Errorf("%s %s: again: %d commits verified, %v, %+v", c.ID, c.Name, r.ran, err, again)
		}
	}
}

// changed returns a change of a session from one commit to another, of a task that allows something.
func (y *yard) changed(base, head string, allow ...string) ralph.Change {
	y.t.Helper()
	y.n++
	c := ralph.Change{
		SessionID: fmt.Sprintf("00000000-0000-4000-8000-%012d", y.n), Base: base, Head: head, Tree: y.git("rev-parse", head+"^{tree}"),
	}
	y.no(y.Store.Tx(y.t.Context(), func(tx *store.Tx) (err error) {
		c.TaskID, err = tx.AddTask(ralph.Task{Title: "Change", Priority: 2, Allow: allow}, "human")
		return err
	}))
	return y.start("", c)
}

// found names a gate's findings.
func found(g ralph.Gate) (list []string) {
	for _, w := range g.Weakened {
		list = append(list, string(w.Kind)+" "+w.Name())
	}
	for _, b := range g.Guarded {
		list = append(list, "guarded "+b.Path)
	}
	if g.Refused != "" || len(g.Trial.Neutralised) > 0 {
		list = append(list, "refused")
	}
	return list
}

// TestGateOfHistory replays the last commits of a project as changes of sessions without a reason, if they and their
// parents are green, and lists the findings: the false alarms of docs/gate.md. RALPH_TEST_HISTORY is a repository,
// RALPH_TEST_HISTORY_CHECK the command that verifies it, with its set-up, and RALPH_TEST_HISTORY_CHANGES the number of
// commits.
func TestGateOfHistory(t *testing.T) {
	t.Parallel()
	history, command := os.Getenv("RALPH_TEST_HISTORY"), os.Getenv("RALPH_TEST_HISTORY_CHECK")
	if history == "" {
		t.Skip("RALPH_TEST_HISTORY names no repository")
	}
	wanted := 30
	if n := os.Getenv("RALPH_TEST_HISTORY_CHANGES"); n != "" {
		_, err := fmt.Sscan(n, &wanted)
		if err != nil {
			t.Fatal(err)
		}
	}
	y := newYard(t, command)
	r := &runner{yard: y}
	y.Workspace, y.Check.Tests, y.Check.Trial = r, []string{gate.Auto}, check.TrialAlways
	y.Check.Timeout, y.Timeout = 10*time.Minute, 10*time.Minute
	y.git("fetch", "--quiet", history, "HEAD:refs/heads/history")
	counts := map[string]int{}
	for _, commit := range strings.Fields(y.git("rev-list", "--no-merges", "--min-parents=1", "history")) {
		if counts["changes"] == wanted {
			break
		}
		parent := y.git("rev-parse", commit+"^")
		y.git("reset", "--quiet", "--hard", parent)
		list, err := y.said(t.Context(), parent, y.git("rev-parse", parent+"^{tree}"), []string{command})
		y.no(err)
		if failed(list) {
			continue
		}
		change := y.changed(parent, commit)
		tried, err := y.Try(t.Context(), change)
		y.no(err)
		y.Leave(t.Context(), change.SessionID)
		if tried.Refused != "" || tried.Conflict != "" {
			continue
		}
		g, err := y.Gate(t.Context(), change, tried.Built, tried.Checks, nil)
		y.no(err)
		got, worst := found(g), "nothing"
		for _, kind := range []string{"guarded", "changed", "loosened", "lost", "refused"} {
			if slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, kind) }) {
				worst = kind
			}
		}
		counts["changes"]++
		counts[worst]++
		t.Logf("%s %s %q%s", y.git("log", "-1", "--format=%h %cs %s", commit), worst, got, g.Refused+fmt.Sprint(g.Trial))
	}
	t.Log(counts)
}

// TestTestsOfTheSameFeature: that sessions change the tests of their own feature is noted until a person has seen them.
func TestTestsOfTheSameFeature(t *testing.T) {
	t.Parallel()
	y := newYard(t, "for t in tests/*.sh; do sh $t || exit 1; done")
	y.Check.Tests = []string{gate.Auto}
	answers := func(n string) map[string]string {
		return map[string]string{"answer.sh": "echo " + n + "\n", "tests/answer.sh": "test $(sh answer.sh) = " + n + "\n"}
	}
	one, two := answers("1"), answers("2")
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error {
		for _, name := range []string{"sums", "texts"} {
			if err := tx.PutFeature(ralph.Feature{Name: name}); err != nil {
				return err
			}
		}
		return nil
	}))
	y.write("tests/true.sh", "true\n")
	y.git("add", "-A")
	y.git("commit", "--quiet", "-m", "Project")
	// made is a change of a task of a feature at the tip, in its session.
	made := func(feature string, files map[string]string) ralph.Change {
		t.Helper()
		tip, err := y.Tip(t.Context())
		y.no(err)
		c := y.made(tip, "Answer", files)
		y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) (err error) {
			c.TaskID, err = tx.AddTask(ralph.Task{Title: "Answer", Priority: 2, Feature: feature}, "human")
			return err
		}))
		return c
	}
	// unseen returns the gate's finding on the only changed test.
	unseen := func(feature string, files map[string]string) (bool, ralph.Gate) {
		t.Helper()
		c := y.start("", made(feature, files))
		tried, err := y.Try(t.Context(), c)
		y.no(err)
		y.Leave(t.Context(), c.SessionID)
		g, err := y.Gate(t.Context(), c, tried.Built, tried.Checks, nil)
		y.no(err)
		if len(g.Weakened) != 1 || g.Weakened[0].Kind != ralph.TestChanged {
			t.Fatalf("found %+v (%+v)", g, tried)
		}
		return g.Weakened[0].Unseen, g
	}
	want := func(who string, want bool, feature string, files map[string]string) {
		t.Helper()
		if got, g := unseen(feature, files); got != want {
			t.Errorf("%s: unseen is %t: %+v", who, got, g)
		}
	}
	c := y.queue("", made("sums", one))
	y.merge()
	y.merged(c)
	is, g := unseen("sums", two)
	if !is {
		t.Errorf("the same feature: %+v", g)
	}
	want("another feature", false, "texts", two)
	want("no feature", false, "", two)
	two["tests/true.sh"] = "exit 0\n"
	want("a person's test beside it", false, "sums", two)
	delete(two, "tests/true.sh")

	c = y.start("", made("sums", two))
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error {
		s, err := tx.Session(c.SessionID)
		if err != nil {
			return err
		}
		s.Change, s.Ending = &c, ralph.Finished
		return tx.Apply(s, signals.Facts{}, signals.Decision{
			Status: ralph.NeedsInput, Mover: ralph.Verdict, StatusReason: "waits", Attempts: 1, Outcome: ralph.OutcomeSuccess,
			Approval: &ralph.Approval{Change: c.Head, Weakened: g.Weakened, Files: g.Files},
		})
	}))
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.Approve(1, "", "Ann") }))
	y.merge()
	want("a person has approved it", false, "sums", one)
	c = y.queue("", made("sums", answers("3")))
	y.merge()
	y.merged(c)
	want("a session has changed it after that", true, "sums", one)

	tip, err := y.Tip(t.Context())
	y.no(err)
	y.git("reset", "--quiet", "--hard", tip)
	for name, text := range answers("4") {
		y.write(name, text)
	}
	y.git("commit", "--quiet", "-am", "A person's")
	want("a person has changed it", false, "sums", one)

	y.git("reset", "--quiet", "--hard", tip)
	c = made("sums", answers("5"))
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.StartSession(store.Start{ID: c.SessionID, Task: c.TaskID, Origin: ralph.FromHuman, Worker: "Ann"})
		return err
	}))
	c = y.end("", c)
	y.merge()
	y.merged(c)
	want("a person's session has changed it", false, "sums", one)
}
