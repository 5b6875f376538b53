package loop_test

import (
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
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// A turn is an agent's part in a turn: the files that it writes and removes, its git commands, and its signals.
type turn struct {
	write, remove []string
	git           string // separated by semicolons
	say           signals.Payload
	answer        string // a part of the answer to the turn; "over" for the end, "" for none
}

// A speech is an agent that plays these turns, and asks after each how to go on.
type speech struct {
	b      *workshop
	turns  []turn
	ending ralph.Ending
}

func (p *speech) Work(ctx context.Context, a agent.Assignment) (agent.Report, error) {
	for i, now := range p.turns {
		for _, name := range now.write {
			if err := os.WriteFile(filepath.Join(a.Dir, name), []byte{byte('a' + i)}, 0o600); err != nil {
				return agent.Report{}, err
			}
		}
		for _, name := range now.remove {
			if err := os.Remove(filepath.Join(a.Dir, name)); err != nil {
				return agent.Report{}, err
			}
		}
		for command := range strings.SplitSeq(now.git, ";") {
			if words := strings.Fields(command); len(words) > 0 {
				if _, err := p.b.tryGit(a.Dir, words...); err != nil {
					p.b.t.Error(err)
					return agent.Report{}, err
				}
			}
		}
		if now.say != nil {
			if _, err := p.b.db.Say(ctx, a.TaskID, a.SessionID, "agent", now.say); err != nil {
				return agent.Report{}, err
			}
		}
		answer := a.TurnEnded(ctx, agent.Turn{})
		if over := now.answer == "over"; answer.Over != over || answer.Wait || !over && !strings.Contains(answer.Text, now.answer) || now.answer == "" && answer.Text != "" {
			p.b.t.Errorf("turn %d: it is told %+v, want %q", i+1, answer, now.answer)
		}
	}
	return agent.Report{Ending: p.ending, Reason: "it ended", CostKnown: true}, nil
}

func (*speech) Salvage(string, agent.Death) (agent.Report, error) { return agent.Report{}, nil }

// repository is [workshop.tree] in a git repository with one commit.
func (b *workshop) repository(verify ...string) *loop.Loop {
	b.t.Helper()
	dir := b.t.TempDir()
	return b.at(dir, verify...)
}

// git is tryGit, for the test's own goroutine: in an agent's the run would wait for its session for ever.
func (b *workshop) git(dir string, args ...string) string {
	b.t.Helper()
	out, err := b.tryGit(dir, args...)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *workshop) tryGit(dir string, args ...string) (string, error) {
	git := exec.CommandContext(b.t.Context(), "git", append([]string{"-c", "user.name=Ann", "-c", "user.email=ann@example.org"}, args...)...)
	git.Dir = dir
	out, err := git.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %q: %w\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// once runs the queue for one session and returns it.
func (b *workshop) once(l *loop.Loop, agent agent.Agent) (loop.Result, ralph.Session) {
	b.t.Helper()
	return b.onceWithin(b.t.Context(), l, agent)
}

func (b *workshop) onceWithin(ctx context.Context, l *loop.Loop, agent agent.Agent) (loop.Result, ralph.Session) {
	b.t.Helper()
	l.Agent, l.OnRed = agent, loop.RedGo
	l.Limits = ralph.Limits{
		MaxSessions: 1, MaxTasks: 20, MaxSeconds: 3600, MaxCostUSD: 100, MaxDayCostUSD: 100, MaxMonthCostUSD: 100, SessionSeconds: 3600, IdleSeconds: 3600,
		SessionTurns: 10, SessionCostUSD: 10, Attempts: 10, StagnantMaximum: 1,
	}
	result, err := l.Run(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	return result, b.last()
}

// last returns the session that began last.
func (b *workshop) last() ralph.Session {
	b.t.Helper()
	var list []ralph.Session
	var s ralph.Session
	b.tx(func(tx *store.Tx) (err error) {
		if list, err = tx.Sessions(store.SessionFilter{Limit: 1}); err == nil {
			s, err = tx.Session(list[0].ID)
		}
		return err
	})
	return s
}

// TestResultsOfSessions checks the replies to the agent after each turn, the findings, and the decision.
func TestResultsOfSessions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		verify   []string
		turns    []turn
		want     ralph.Status
		reason   string // a part of the reason
		files    string // files that it changed, separated by spaces
		refused  int
		stagnant bool
	}{
		{"a done that holds", []string{"test -e made"}, []turn{
			{write: []string{"made"}, say: finish, answer: "over"},
		}, ralph.Completed, "done and verified", "made", 0, false},
		{"it is reminded to close, once", nil, []turn{
			{answer: "without a closing signal"},
			{write: []string{"made"}, say: finish, answer: "over"},
		}, ralph.Completed, "done (nothing is configured", "made", 0, false},
		{"and then left alone", nil, []turn{{answer: "without a closing signal"}, {}}, ralph.Pending, "without a verdict", "", 0, true},
		{"a partial is not checked", []string{"false"}, []turn{{write: []string{"made"}, say: halt}}, ralph.Pending, "partial: the rest", "made", 0, false},
		{"what fails is told, and mended", []string{"test -e made"}, []turn{
			{say: finish, answer: "does not hold"},
			{write: []string{"made"}, say: finish, answer: "over"},
		}, ralph.Completed, "done and verified", "made", 0, false},
		{"twice, and then it is over", []string{"false"}, []turn{
			{say: finish, answer: "does not hold"},
			{say: finish, answer: "does not hold"},
			{say: finish, answer: "over"},
		}, ralph.Pending, "done was refused: `false` exits 1", "", 1, true},
		{"what moves after a done that held is looked at again", []string{"test -e made"}, []turn{
			{write: []string{"made"}, say: finish, answer: "over"},
			{write: []string{"more"}, remove: []string{"made"}, say: halt},
		}, ralph.Pending, "partial: the rest", "more", 0, false},
		{"and checked again", []string{"test -e made"}, []turn{
			{write: []string{"made"}, say: finish, answer: "over"},
			{write: []string{"more"}, remove: []string{"made"}, say: finish, answer: "does not hold"},
		}, ralph.Pending, "done was refused", "more", 1, false},
		{"a done without any change is asked about", nil, []turn{
			{say: finish, answer: "nothing in the work tree has changed"},
			{say: finish, answer: "over"},
		}, ralph.Completed, "done (nothing is configured to verify it; no changes", "", 0, true},
		{"and has to be said again", nil, []turn{
			{say: finish, answer: "nothing in the work tree has changed"},
			{answer: "over"},
		}, ralph.Pending, "done without any change, and not confirmed", "", 0, true},
		{"what shows it without a change is a check that failed before", []string{
			`test -e "$RALPH_ROOT/mended" || { : > "$RALPH_ROOT/mended"; false; }`,
		}, []turn{{say: finish, answer: "over"}}, ralph.Completed, "no changes): made it", "", 0, true},
		{"one that passed before shows nothing: a person decides on its reason", []string{"true"}, []turn{
			{say: finish, answer: "all commands that check the task passed before your session: they prove nothing"},
			{say: finish, answer: "over"},
		}, ralph.NeedsInput, "waits for approval of an empty change", "", 0, true},
		{"what was changed before a check, and taken back after it, was a change", []string{"false"}, []turn{
			{write: []string{"made"}, say: finish, answer: "does not hold"},
			{remove: []string{"made"}, say: halt},
		}, ralph.Pending, "partial: the rest", "", 0, false},
		{"where it is to be elsewhere, that is asked about", nil, []turn{
			{write: []string{"made"}, git: "checkout -q -b x; add made; commit -q -m x; checkout -q -", say: finish, answer: "Your commits are on other branches"},
			{say: finish, answer: "over"},
		}, ralph.Completed, "1 commit on x is not part of the work, so it was not verified", "", 0, true},
		{"and a person decides, if what checks it passed before", []string{"true"}, []turn{
			{write: []string{"made"}, git: "checkout -q -b x; add made; commit -q -m x; checkout -q -", say: finish, answer: "Your commits are on other branches"},
			{say: finish, answer: "over"},
		}, ralph.NeedsInput, "1 commit on x is not part of the work, so it was not verified", "", 0, true},
		{"a protected file is not to be changed", []string{"true"}, []turn{
			{write: []string{"a.golden"}, say: finish, answer: "These files are protected"},
			{write: []string{"made"}, remove: []string{"a.golden"}, say: finish, answer: "over"},
		}, ralph.Completed, "done and verified", "made", 0, false},
		{"nor by the check", []string{"test ! -e made || echo x > a.golden", "echo x >> b"}, []turn{
			{write: []string{"made"}, say: finish, answer: "a.golden is protected and was changed while `test ! -e made || echo x > a.golden` ran"},
			{say: finish, answer: "a.golden is protected and was changed while"}, // its result is known, and so is that
		}, ralph.Pending, "done was refused: a.golden is protected and was changed while", "made", 1, false},
		{"what the check runs is named", []string{"test -e made || sh made"}, []turn{
			{write: []string{"made"}, say: finish, answer: "over"},
		}, ralph.Completed, "changed made, which `test -e made || sh made` runs", "made", 0, false},
		{"what it does to git's index blinds nobody", []string{"true"}, []turn{
			{write: []string{"made", ".git/index"}, say: finish, answer: "over"},
		}, ralph.Completed, "done and verified", "made", 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.repository(tt.verify...)
			l.Rules.Reminders, l.Check.Protect = 1, []string{"*.golden"}
			id := b.add(ralph.Task{Title: "A"})
			_, s := b.once(l, &speech{b: b, turns: tt.turns, ending: ralph.Finished})
			task := b.task(id)
			if task.Status != tt.want || !strings.Contains(task.StatusReason, tt.reason) || task.VerifyFailures != tt.refused {
				t.Errorf("TASK-%d is %s (%d refused): %s", id, task.Status, task.VerifyFailures, task.StatusReason)
			}
			var files []string
			for _, f := range s.Files {
				files = append(files, f.Path)
			}
			if got := strings.Join(files, " "); got != tt.files {
				t.Errorf("it changed %q, want %q", got, tt.files)
			}
			if got := len(s.Unchanged) == 4; got != tt.stagnant {
				t.Errorf("unchanged are %q", s.Unchanged)
			}
			if left, err := filepath.Glob(filepath.Join(l.Pool.Dir, "1", "git", "scratch*")); len(left) > 0 || err != nil {
				t.Errorf("the objects of its snapshots are still there: %q, %v", left, err)
			}
		})
	}
}

// TestEvidenceIsBounded: ralph keeps the first hundred entries of each list, and does not attribute a change by one
// verification command to the next.
func TestEvidenceIsBounded(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	var made []string
	for i := range 101 {
		made = append(made, fmt.Sprintf("f%d", i))
	}
	// They change nothing before there is something to check.
	first := "test ! -e f0 || for i in $(seq 100 159); do echo x > $i.golden; done # " + strings.Join(made, " ")
	second := "test ! -e f0 || for i in $(seq 100 200); do echo x > d$i; test $i -lt 160 || echo x > $i.golden; done"
	l := b.repository(first, second)
	l.Rules.Retries, l.Check.Protect = 0, []string{"*.golden"}
	b.add(ralph.Task{Title: "A"})
	_, s := b.once(l, &speech{b: b, turns: []turn{{write: made, say: finish, answer: "over"}}, ending: ralph.Finished})
	d, err := store.Decided(s)
	if err != nil {
		t.Fatal(err)
	}
	e := d.Evidence
	if len(e.Drives) != 100 || len(e.Rewritten) != 100 {
		t.Fatalf("%d files drive the check, %d are rewritten", len(e.Drives), len(e.Rewritten))
	}
	for i, want := range map[int]ralph.Touch{59: {File: "159.golden", Command: first}, 60: {File: "160.golden", Command: second}, 99: {File: "199.golden", Command: second}} {
		if e.Rewritten[i] != want {
			t.Errorf("rewritten %d is %+v", i, e.Rewritten[i])
		}
	}
}

// TestADoneOfAWorkerIsCheckedWhereItWorked: people are told that its agent was free to go on.
func TestADoneOfAWorkerIsCheckedWhereItWorked(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.repository("true")
	id := b.add(ralph.Task{Title: "A"})
	c := b.claim(l, id, "ann")
	write(t, filepath.Join(workspaceOf(c), "made"), "x")
	b.say(c, finish)
	if again, _, err := c.Close(t.Context()); again != "" || err != nil {
		t.Errorf("it is told %q, %v", again, err)
	}
	if task := b.task(id); task.Status != ralph.Completed || !strings.Contains(task.StatusReason, "agent not contained") {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
}

// promises records how long the loop announces to be silent.
type promises []time.Duration

func (p *promises) Beat(within time.Duration) { *p = append(*p, within) }
func (*promises) Status(string)               {}

// TestACheckIsGivenItsTime by a daemon's watchdog: all of its commands may use their full timeouts.
func TestACheckIsGivenItsTime(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree("true", "test -e made")
	b.add(ralph.Task{Title: "A"})
	var said promises
	l.Heart = &said
	b.once(l, &speech{b: b, turns: []turn{{write: []string{"made"}, say: finish, answer: "over"}}, ending: ralph.Finished})
	if longest := slices.Max(said); longest != slices.Min(said)+2*l.Check.Timeout {
		t.Errorf("it promised %s", said)
	}
}

// TestTheCurrentCheckIsShown, and only during the check.
func TestTheCurrentCheckIsShown(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree("sleep 1.2")
	b.add(ralph.Task{Title: "A"})
	_, s := b.once(l, &speech{b: b, turns: []turn{{write: []string{"a"}, say: signals.Done{Summary: "made it"}, answer: "over"}}, ending: ralph.Finished})
	if s.Checking != "" {
		t.Errorf("it still waits for %q", s.Checking)
	}
	shown := 0
	b.tx(func(tx *store.Tx) error {
		list, err := tx.Events(0, 1000)
		for _, e := range list {
			if e.Type == "verifying" && e.SessionID == s.ID && strings.Contains(string(e.Payload), `"sleep 1.2"`) {
				shown++
			}
		}
		return err
	})
	if shown != 1 {
		t.Errorf("it was shown %d times", shown)
	}
}

// TestASessionsDifferenceIsSaved: line by line, beside its transcript.
func TestASessionsDifferenceIsSaved(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.repository()
	b.add(ralph.Task{Title: "A"})
	_, s := b.once(l, &speech{b: b, turns: []turn{{write: []string{"made"}, say: signals.Done{Summary: "made it"}, answer: "over"}}, ending: ralph.Finished})
	saved, err := os.ReadFile(filepath.Join(l.Here.Folder(s.ID), workspace.DiffsFile))
	if err != nil || !strings.Contains(string(saved), `"made"`) {
		t.Errorf("saved is %s, %v", saved, err)
	}
	if len(s.Commits) != 1 {
		t.Errorf("its commits are %q", s.Commits)
	}
}

// TestACommittedSecretIsNotMerged: a file that the person has untracked, committed by the session itself or by an earlier
// one of the task.
func TestACommittedSecretIsNotMerged(t *testing.T) {
	t.Parallel()
	leak := func(say signals.Payload, answer string) turn {
		return turn{write: []string{".env"}, git: "add .env;commit -qm env", say: say, answer: answer}
	}
	made := signals.Done{Summary: "made it"}
	for name, sessions := range map[string][]turn{
		"by itself": {leak(made, "over")},
		"before": {
			leak(signals.Partial{Summary: "a part", Remaining: "the rest"}, ""),
			{write: []string{"made"}, say: made, answer: "over"},
		},
	} {
		b := newWorkshop(t)
		l := b.repository()
		l.Rules.Retries = 0
		write(t, filepath.Join(l.Here.Dir, ".env"), "x")
		id := b.add(ralph.Task{Title: "A"})
		for i := range sessions {
			b.once(l, &speech{b: b, turns: sessions[i : i+1], ending: ralph.Finished})
		}
		if got := b.task(id); got.Status != ralph.Pending || !strings.Contains(got.StatusReason, ".env looks like a secret") {
			t.Errorf("%s: it is %s: %s", name, got.Status, got.StatusReason)
		}
	}
}

// TestATaskForAnAgentThatIsNotConfiguredFails, and the run goes on with the others.
func TestATaskForAnAgentThatIsNotConfiguredFails(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	id := b.add(ralph.Task{Title: "A", Agent: "nobody"})
	next := b.add(ralph.Task{Title: "B"})
	result, agent := b.run(b.tree(), func() {})
	if task := b.task(id); task.Status != ralph.Failed || !strings.Contains(task.StatusReason, `it is for the agent "nobody"`) {
		t.Errorf("it is %s: %s", task.Status, task.StatusReason)
	}
	if !slices.Equal(agent.tasks, []int64{next}) || result.Status != ralph.ExitFailed {
		t.Errorf("the sessions were on %v, and it ended with %d, %q", agent.tasks, result.Status, result.Reasons)
	}
}
