package merging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/internal/worktree"
	"ralph/loop/check"
	"ralph/signals"
	"ralph/store"
)

// A yard is a repository with a queue, and with sessions that worked in clones of it.
type yard struct {
	*Merger
	t       *testing.T
	dir     string
	checked []string // commits in the order of their verification
	during  func()   // called once, while a commit is verified
	n       int
}

// TestMain hides the user's own configuration.
func TestMain(m *testing.M) {
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		if err := os.Setenv(name, os.DevNull); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// newYard returns a yard with a branch main that has the files a, b and c,
// of ten lines each, and ignores *.env.
func newYard(t *testing.T, commands ...string) *yard {
	t.Helper()
	y := &yard{t: t, dir: t.TempDir()}
	y.git("init", "--quiet", "--initial-branch=main")
	y.git("config", "user.name", "Ann")
	y.git("config", "user.email", "ann@example.org")
	for _, name := range []string{"a", "b", "c"} {
		y.write(name, lines(name))
	}
	y.write(".gitignore", "*.env\n")
	y.git("add", ".")
	y.git("commit", "--quiet", "-m", "Begin")
	y.open(commands)
	return y
}

// open opens the repository and a database.
func (y *yard) open(commands []string) {
	y.t.Helper()
	state := y.t.TempDir()
	db, err := store.Open(y.t.Context(), pgtest.Path(y.t, filepath.Join(state, "ralph.db")), store.Options{})
	y.no(err)
	y.t.Cleanup(func() { y.no(db.Close()) })
	tree, err := worktree.Open(y.t.Context(), y.dir)
	y.no(err)
	y.Merger = &Merger{
		Rules: Rules{
			Into: "main", MaxSentBack: 2, Timeout: time.Minute, State: state, AfterEnv: os.Environ(), Message: "{task}: {title}",
		},
		Store: db, Tree: tree, Workspace: y, Links: &Links{}, Log: slog.New(slog.DiscardHandler),
		Check: check.Rules{Commands: commands, Timeout: time.Minute},
	}
}

func lines(name string) (text string) {
	for i := range 10 {
		text += fmt.Sprintf("%s %d\n", name, i)
	}
	return text
}

func (y *yard) no(err error) {
	y.t.Helper()
	if err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) git(args ...string) string {
	y.t.Helper()
	return y.in(y.dir, args...)
}

func (y *yard) in(dir string, args ...string) string {
	y.t.Helper()
	out, err := y.try(dir, args...)
	if err != nil {
		y.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (y *yard) try(dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(y.t.Context(), "git", append([]string{"-c", "protocol.file.allow=always", "-c", "core.hooksPath=/dev/null"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (y *yard) write(name, text string) {
	y.t.Helper()
	path := filepath.Join(y.dir, name)
	y.no(os.MkdirAll(filepath.Dir(path), 0o755))
	y.no(os.WriteFile(path, []byte(text), 0o644))
}

func (y *yard) read(name string) string {
	b, err := os.ReadFile(filepath.Join(y.dir, name))
	if err != nil {
		return "(" + filepath.Base(name) + " is not there)"
	}
	return string(b)
}

// Verify implements Integration with a fresh checkout.
func (y *yard) Verify(ctx context.Context, commit string, commands []string) (list []check.Outcome, err error) {
	y.checked = append(y.checked, commit)
	if during := y.during; during != nil {
		y.during = nil
		during()
	}
	dir := y.t.TempDir()
	y.git("--work-tree="+dir, "-c", "core.bare=false", "read-tree", "--index-output="+filepath.Join(dir, "../index"), commit)
	archive := exec.CommandContext(ctx, "sh", "-c", "git archive "+commit+" | tar x -C "+dir)
	archive.Dir = y.dir
	if out, err := archive.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	for _, command := range commands {
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		o := check.Outcome{Check: ralph.Check{Command: command, Passed: err == nil, Tail: string(out)}}
		if err != nil {
			o.Check.Exit = cmd.ProcessState.ExitCode()
		}
		list = append(list, o)
	}
	return list, nil
}

// edit changes one line of a text.
func edit(text string, line int, to string) string {
	list := strings.SplitAfter(text, "\n")
	list[line] = to + "\n"
	return strings.Join(list, "")
}

// work queues the change of a session that writes some files at the tip and signals done.
func (y *yard) work(title string, files map[string]string) ralph.Change {
	y.t.Helper()
	tip, err := y.Tip(y.t.Context())
	y.no(err)
	return y.workOn(tip, title, files)
}

func (y *yard) workOn(base, title string, files map[string]string) ralph.Change {
	y.t.Helper()
	return y.queue(title, y.made(base, title, files))
}

// again has a task's next session do something on the tip.
func (y *yard) again(task int64, files map[string]string) ralph.Change {
	y.t.Helper()
	tip, err := y.Tip(y.t.Context())
	y.no(err)
	c := y.made(tip, "Again", files)
	c.TaskID = task
	return y.queue("", c)
}

// made returns the change of a session that writes files on a base.
func (y *yard) made(base, title string, files map[string]string) ralph.Change {
	y.t.Helper()
	y.n++
	clone := y.t.TempDir()
	y.in(clone, "clone", "--quiet", "--shared", "--no-checkout", y.dir, ".")
	y.in(clone, "checkout", "--quiet", "--detach", base)
	for name, text := range files {
		y.no(os.MkdirAll(filepath.Dir(filepath.Join(clone, name)), 0o755))
		y.no(os.WriteFile(filepath.Join(clone, name), []byte(text), 0o644))
	}
	y.in(clone, "add", "-A")
	y.in(clone, "-c", "user.name=Agent", "-c", "user.email=agent@example.org", "commit", "--quiet", "-m", title)
	head := y.in(clone, "rev-parse", "HEAD")
	c := ralph.Change{
		SessionID: fmt.Sprintf("00000000-0000-4000-8000-%012d", y.n), Base: base, Head: head, Tree: y.in(clone, "rev-parse", "HEAD^{tree}"),
	}
	y.git("fetch", "--quiet", clone, head+":"+c.Ref())
	return c
}

// queue adds a task whose session just finished with a change.
func (y *yard) queue(title string, c ralph.Change) ralph.Change {
	y.t.Helper()
	return y.end(title, y.start(title, c))
}

// start begins the session of a change, for a new task unless the change has one.
func (y *yard) start(title string, c ralph.Change) ralph.Change {
	y.t.Helper()
	y.no(y.Store.Tx(y.t.Context(), func(tx *store.Tx) (err error) {
		if c.TaskID == 0 {
			if c.TaskID, err = tx.AddTask(ralph.Task{Title: title, Priority: 2}, "human"); err != nil {
				return err
			}
		}
		_, err = tx.StartSession(store.Start{ID: c.SessionID, Task: c.TaskID, Origin: ralph.FromLoop})
		return err
	}))
	return c
}

// end ends the session of a change, which is in the queue then.
func (y *yard) end(title string, c ralph.Change) ralph.Change {
	y.t.Helper()
	y.no(y.Store.Tx(y.t.Context(), func(tx *store.Tx) error {
		s, err := tx.Session(c.SessionID)
		if err != nil {
			return err
		}
		s.Change, s.Ending = &c, ralph.Finished
		return tx.Apply(s, signals.Facts{}, signals.Decision{
			Accepted: true, Status: ralph.Merging, Mover: ralph.Verdict, StatusReason: "done and verified: " + title, Attempts: 1,
			Outcome: ralph.OutcomeSuccess,
		})
	}))
	y.no(y.Store.View(y.t.Context(), func(tx *store.Tx) (err error) {
		c, _, err = tx.ChangeOf(c.TaskID)
		return err
	}))
	return c
}

func (y *yard) merge() string {
	y.t.Helper()
	waits, err := y.Merge(y.t.Context())
	y.no(err)
	return waits.Why
}

func (y *yard) task(id int64) (t ralph.Task) {
	y.t.Helper()
	y.no(y.Store.View(y.t.Context(), func(tx *store.Tx) (err error) { t, err = tx.Task(id); return err }))
	return t
}

func (y *yard) change(id int64) (c ralph.Change) {
	y.t.Helper()
	y.no(y.Store.View(y.t.Context(), func(tx *store.Tx) (err error) { c, err = tx.Change(id); return err }))
	return c
}

func (y *yard) state() (q store.MergeQueue) {
	y.t.Helper()
	y.no(y.Store.View(y.t.Context(), func(tx *store.Tx) (err error) { q, err = tx.MergeQueue(); return err }))
	return q
}

// merged fails the test unless a change is in the target, once, and its task is completed.
func (y *yard) merged(c ralph.Change) {
	y.t.Helper()
	c = y.change(c.ID)
	if t := y.task(c.TaskID); t.Status != ralph.Completed || c.State != ralph.Merged {
		y.t.Fatalf("TASK-%d is %s (%s), its change %s (%s)", t.ID, t.Status, t.StatusReason, c.State, c.Reason)
	}
	target := y.git("rev-parse", PointRef("main"))
	subjects := strings.Split(y.git("log", "--format=%s", target), "\n")
	want := fmt.Sprintf("TASK-%d: %s", c.TaskID, y.task(c.TaskID).Title)
	if n := len(slices.DeleteFunc(subjects, func(s string) bool { return s != want })); n != 1 {
		y.t.Fatalf("%s is %d times in the target:\n%s", want, n, y.git("log", "--graph", "--oneline", target))
	}
	y.git("merge-base", "--is-ancestor", c.To, target)
}

func TestAChangeIsMerged(t *testing.T) {
	t.Parallel()
	y := newYard(t, "test -s a")
	c := y.work("Edit a", map[string]string{"a": edit(lines("a"), 1, "changed")})
	if why := y.merge(); why != "" {
		t.Fatal(why)
	}
	y.merged(c)
	if y.read("a") != edit(lines("a"), 1, "changed") || y.git("status", "--porcelain") != "" {
		t.Errorf("the checkout did not follow:\n%s", y.git("status", "--porcelain"))
	}
	got := y.git("log", "-1", "--format=%an <%ae>%n%P%n%B", "main")
	first := y.git("rev-parse", "main^1")
	want := fmt.Sprintf("Ann <ann@example.org>\n%s %s\nTASK-1: Edit a\n\nTask: TASK-1\nSession: %s", first, c.Head, c.SessionID)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(y.checked) != 1 {
		t.Errorf("verified %d times", len(y.checked))
	}
}

// TestRefsOfChangesAreBounded: the ref of a merged change goes with the merge. Refs of unmerged changes are kept as
// long as transcripts, and so are those of squashed changes, whose commits no branch has.
func TestRefsOfChangesAreBounded(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	base := y.git("rev-parse", "main")
	merged := y.workOn(base, "First", map[string]string{"a": "first\n"})
	sentBack := y.workOn(base, "Second", map[string]string{"a": "second\n"})
	y.merge()
	y.merged(merged)
	refs := func() string { return y.git("for-each-ref", "--format=%(refname)", ralph.ChangeRefs) }
	if got := refs(); got != sentBack.Ref() {
		t.Errorf("after the merge: %q", got)
	}
	y.git("update-ref", merged.Ref(), merged.Head) // as if ralph had been killed before
	y.Squash = true
	squashed := y.work("Third", map[string]string{"b": "third\n"})
	y.merge()
	y.merged(squashed)
	y.Squash = false
	y.git("pack-refs", "--all")
	y.no(y.Forget(t.Context(), time.Now().Add(-time.Hour)))
	if got, want := refs(), sentBack.Ref()+"\n"+squashed.Ref(); got != want {
		t.Errorf("within the retention: got %q, want %q", got, want)
	}
	y.no(y.Forget(t.Context(), time.Now().Add(time.Hour)))
	if got := refs(); got != sentBack.Ref() { // its task has not ended
		t.Errorf("after the retention: %q", got)
	}
}

// TestAQuietTargetIsVerifiedOnce: a change that was tried during its
// session is merged without another verification.
func TestAQuietTargetIsVerifiedOnce(t *testing.T) {
	t.Parallel()
	y := newYard(t, "test -s a")
	c := y.start("Edit a", y.made(y.git("rev-parse", "main"), "Edit a", map[string]string{"a": "x\n"}))
	a, err := y.Try(t.Context(), c)
	if err != nil || a.Refused != "" || a.Conflict != "" || len(a.Checks) != 1 || len(y.checked) != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	c = y.end("Edit a", c)
	y.merge()
	y.merged(c)
	if len(y.checked) != 1 {
		t.Errorf("verified %d times", len(y.checked))
	}
}

// TestABatch: all queued changes are verified and merged as a single commit of the target, with a
// commit for each below it. A change that conflicts with another one waits for the next batch.
func TestABatch(t *testing.T) {
	t.Parallel()
	y := newYard(t, "test -s a")
	base := y.git("rev-parse", "main")
	one := y.workOn(base, "One", map[string]string{"a": edit(lines("a"), 1, "one")})
	two := y.workOn(base, "Two", map[string]string{"a": edit(lines("a"), 8, "two")})
	clash := y.workOn(base, "Clash", map[string]string{"a": edit(lines("a"), 8, "clash")})
	three := y.workOn(base, "Three", map[string]string{"b": "three\n"})
	y.merge()
	for _, c := range []ralph.Change{one, two, three} {
		y.merged(c)
		c = y.change(c.ID) // what it did alone, and none of the others
		want := y.git("diff", "--numstat", c.Commit+"^1", c.Commit)
		if f := c.Files; len(f) != 1 || fmt.Sprintf("%d\t%d\t%s", f[0].Added, f[0].Removed, f[0].Path) != want || c.Commit == c.To {
			t.Errorf("TASK-%d changed %+v by %.10s, and git says %q", c.TaskID, f, c.Commit, want)
		}
	}
	if c := y.change(clash.ID); c.State != ralph.SentBack || c.Reason != "main has moved, and the change conflicts in a with TASK-2, TASK-1" {
		t.Errorf("%s: %s", c.State, c.Reason)
	}
	want := fmt.Sprintf("Merge TASK-1, TASK-2, TASK-4\n\n- TASK-1: One\n- TASK-2: Two\n- TASK-4: Three\n\nTask: TASK-1\nSession: %s\nTask: TASK-2\nSession: %s\nTask: TASK-4\nSession: %s",
		one.SessionID, two.SessionID, three.SessionID)
	if got := y.git("log", "-1", "--format=%B", "main"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := y.git("log", "--first-parent", "--format=%s", "main"); !strings.HasSuffix(got, "\nBegin") || strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
	if y.read("a") != edit(edit(lines("a"), 1, "one"), 8, "two") || y.read("b") != "three\n" || len(y.checked) != 1 {
		t.Errorf("verified %d times: %q", len(y.checked), y.read("a"))
	}
}

// TestLeftOutChangesAreNext, before later ones: otherwise they would wait as long as others come.
func TestLeftOutChangesAreNext(t *testing.T) {
	t.Parallel()
	y := newYard(t, "test -s a")
	base := y.git("rev-parse", "main")
	y.workOn(base, "One", map[string]string{"a": edit(lines("a"), 1, "one")})
	clash := y.workOn(base, "Clash", map[string]string{"a": edit(lines("a"), 1, "clash")})
	y.during = func() {
		y.workOn(base, "Later", map[string]string{"b": "later\n"})
		y.during = func() {
			if state := y.change(clash.ID).State; state != ralph.SentBack {
				t.Errorf("it is %s while what came later is verified", state)
			}
		}
	}
	y.merge()
	if len(y.checked) != 2 {
		t.Errorf("verified %d times", len(y.checked))
	}
}

// TestABatchIsHalved until the faulty change is found: it is sent back, and the others are merged.
func TestABatchIsHalved(t *testing.T) {
	t.Parallel()
	y := newYard(t, "! test -e bad")
	base := y.git("rev-parse", "main")
	var all []ralph.Change
	for n := range 8 {
		name := fmt.Sprintf("f%d", n)
		if n == 2 {
			name = "bad"
		}
		all = append(all, y.workOn(base, name, map[string]string{name: "x\n"}))
	}
	y.merge()
	for n, c := range all {
		if n == 2 {
			if c = y.change(c.ID); c.State != ralph.SentBack || y.task(c.TaskID).TimesSentBack != 1 {
				t.Errorf("%s: %s", c.State, c.Reason)
			}
			continue
		}
		y.merged(c)
	}
	// 8 and 4 are refused, 2 pass, 1 is refused, twice with the tip, and 5 pass.
	if len(y.checked) > 7 {
		t.Errorf("verified %d times", len(y.checked))
	}
	for _, commit := range strings.Split(y.git("rev-list", "--first-parent", "main"), "\n") {
		if _, err := y.try(y.dir, "cat-file", "-e", commit+":bad"); err == nil {
			t.Errorf("%s is red", commit)
		}
	}
}

// TestOneOfABatchIsWithdrawn during the verification: the others are merged without it.
func TestOneOfABatchIsWithdrawn(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	one := y.work("One", map[string]string{"a": "x\n"})
	two := y.work("Two", map[string]string{"b": "x\n"})
	y.during = func() {
		y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error { _, err := tx.Cancel(one.TaskID, "ann"); return err }))
	}
	y.merge()
	y.merged(two)
	if y.read("a") != lines("a") || y.task(one.TaskID).Status != ralph.Cancelled {
		t.Error(y.task(one.TaskID).Status)
	}
}

// TestAStepThatIsAlwaysRefused ends with an error that names the task: its status does not fit its change, and no look
// at the queue mends that.
func TestAStepThatIsAlwaysRefused(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	c := y.work("One", map[string]string{"a": "x\n"})
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error {
		return tx.Move(c.TaskID, ralph.Pending, ralph.Merger, "by mistake")
	}))
	_, err := y.Merge(t.Context())
	if err == nil || errors.Is(err, ralph.ErrConflict) ||
		!strings.Contains(err.Error(), fmt.Sprintf("cannot merge TASK-%d, tried 21 times: ", c.TaskID)) {
		t.Error(err)
	}
}

func TestSquash(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.Squash, y.Message = true, "{title} ({task})"
	y.work("Edit a", map[string]string{"a": "x\n"})
	y.merge()
	if got := y.git("log", "--format=%s|%p", "main"); got != "Edit a (TASK-1)|"+y.git("rev-parse", "--short", "main^")+"\nBegin|" {
		t.Error(got)
	}
}

// TestKilledWhileMerging: if the process is killed at any point, each change is merged once.
func TestKilledWhileMerging(t *testing.T) {
	t.Parallel()
	for n, point := range []string{"stored", "moved", "completed", "stored", "moved", "completed"} {
		y := newYard(t, "true")
		var one, two ralph.Change
		if n < 3 { // verified and merged together
			one, two = y.work("One", map[string]string{"a": "x\n"}), y.work("Two", map[string]string{"b": "x\n"})
		} else {
			one, two = y.passed("One", map[string]string{"a": "x\n"}), y.passed("Two", map[string]string{"b": "x\n"})
			one, two = y.end("", one), y.end("", two)
		}
		y.after = func(at string) {
			if at == point {
				panic("killed")
			}
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("it was not killed at %s", point)
				}
			}()
			_, _ = y.Merge(t.Context())
		}()
		y.after, y.Links = nil, &Links{}
		if why := y.merge(); why != "" {
			t.Fatal(why)
		}
		y.merged(one)
		y.merged(two)
		if want := 1 + n/3; len(y.checked) != want {
			t.Errorf("killed at %s: verified %d times, want %d", point, len(y.checked), want)
		}
	}
}

// TestARemoteThatRefuses several changes together pauses the queue; none of them is merged or lost.
func TestARemoteThatRefuses(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	remote := t.TempDir()
	y.in(remote, "init", "-q", "--bare", "--initial-branch=main")
	y.git("remote", "add", "origin", remote)
	y.git("push", "-q", "origin", "main")
	y.Push = "origin"
	hook := filepath.Join(remote, "hooks", "pre-receive")
	y.no(os.WriteFile(hook, []byte("#!/bin/sh\necho no; exit 1\n"), 0o700))
	var list []ralph.Change
	for i := range 3 {
		list = append(list, y.passed(fmt.Sprint("Task ", i), file(fmt.Sprint("f", i))))
	}
	for i, c := range list {
		list[i] = y.end("", c)
	}
	if why := y.merge(); !strings.HasPrefix(why, "merging is paused: origin refuses main: ") {
		t.Errorf("it waits for %q", why)
	}
	for _, c := range list {
		if c = y.change(c.ID); c.State != ralph.Queued || c.From+c.To+c.Commit != "" {
			t.Errorf("the change is %+v", c)
		}
	}
	y.no(os.Remove(hook))
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.ResumeMerging("ann") }))
	y.merge()
	for _, c := range list {
		if c = y.change(c.ID); c.State != ralph.Merged {
			t.Errorf("the change is %s", c.State)
		}
	}
	if len(y.checked) != 3 {
		t.Errorf("verified %d times", len(y.checked))
	}
}

// TestATargetThatIsMovedMeanwhile, between the decision and the move,
// keeps the new commits, and the change is built again on top of them.
func TestATargetThatIsMovedMeanwhile(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	one := y.work("One", map[string]string{"a": "x\n"})
	y.merge()
	two := y.work("Two", map[string]string{"b": "x\n"})
	theirs := ""
	y.after = func(at string) {
		if at == "stored" && theirs == "" {
			tip := y.git("rev-parse", PointRef("main"))
			theirs = y.git("commit-tree", "-p", tip, "-m", "Theirs", tip+"^{tree}")
			y.git("update-ref", PointRef("main"), theirs)
		}
	}
	if why := y.merge(); why != "" {
		t.Fatal(why)
	}
	y.merged(one)
	y.merged(two)
	y.git("merge-base", "--is-ancestor", theirs, PointRef("main"))
}

// TestConflictsAreSentBack: the task is worked on again and told of the conflicting files.
// Once it was sent back often it is merged alone; if that does not help, a person has to look.
func TestConflictsAreSentBack(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	base := y.git("rev-parse", "main")
	first := y.workOn(base, "First", map[string]string{"a": "first\n"})
	second := y.workOn(base, "Second", map[string]string{"a": "second\n"})
	y.merge()
	y.merged(first)
	task := y.task(second.TaskID)
	c := y.change(second.ID)
	if task.Status != ralph.Pending || task.TimesSentBack != 1 || c.State != ralph.SentBack || !slices.Equal(c.Conflicts, []string{"a"}) ||
		c.Reason != "main has moved, and the change conflicts in a with TASK-1" {
		t.Fatalf("%s, sent back %d times; %+v", task.Status, task.TimesSentBack, c)
	}
	y.git("rev-parse", "--verify", c.Ref()) // it is still there
	again := func() {                       // and people commit what conflicts
		y.again(second.TaskID, map[string]string{"a": fmt.Sprintf("second %d\n", y.n)})
		y.write("a", fmt.Sprintf("people %d\n", y.n))
		y.git("commit", "--quiet", "-am", "Theirs")
	}
	again()
	y.merge()
	if task = y.task(second.TaskID); task.Status != ralph.Pending || task.TimesSentBack != 2 {
		t.Fatalf("%s, sent back %d times", task.Status, task.TimesSentBack)
	}
	other := y.work("Other", map[string]string{"b": "x\n"})
	if why := y.merge(); why != "TASK-2 is to be merged alone, and a session is working on it" {
		t.Error(why)
	}
	again()
	y.merge()
	y.merged(other) // the task that the others waited for is blocked
	if task = y.task(second.TaskID); task.Status != ralph.Blocked || task.TimesSentBack != 3 {
		t.Fatalf("%s, sent back %d times", task.Status, task.TimesSentBack)
	}
}

// TestRefusedOnceMerged: each change passes alone, but not both together.
func TestRefusedOnceMerged(t *testing.T) {
	t.Parallel()
	y := newYard(t, "! { grep -q new a && grep -q new b; }")
	base := y.git("rev-parse", "main")
	one := y.workOn(base, "One", map[string]string{"a": "new\n"})
	two := y.workOn(base, "Two", map[string]string{"b": "new\n"})
	y.merge()
	y.merged(one)
	task := y.task(two.TaskID)
	if c := y.change(two.ID); task.Status != ralph.Pending || c.State != ralph.SentBack || !strings.Contains(c.Reason, "merged, it is refused: `!") {
		t.Errorf("%s: %+v", task.Status, c)
	}
	if got := y.git("log", "--first-parent", "--format=%s", "main"); got != "TASK-1: One\nBegin" {
		t.Error(got)
	}
}

// TestTheTipFails: if the tip fails although it passed before, nobody is
// at fault, and the queue is paused until a person has looked.
func TestTheTipFails(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "broken")
	y := newYard(t, "! test -e "+broken)
	y.work("One", map[string]string{"a": "x\n"})
	y.merge()
	y.no(os.WriteFile(broken, nil, 0o600))
	two := y.work("Two", map[string]string{"b": "x\n"})
	if why := y.merge(); !strings.HasPrefix(why, "merging is paused: `! test -e") {
		t.Error(why)
	}
	if task := y.task(two.TaskID); task.Status != ralph.Merging {
		t.Error(task.Status)
	}
	y.no(os.Remove(broken))
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.ResumeMerging("ann") }))
	y.merge()
	y.merged(two)
}

func TestTheTargetIsGone(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	c := y.work("One", map[string]string{"a": "x\n"})
	y.git("checkout", "--quiet", "-b", "other")
	y.git("branch", "-D", "main")
	y.merge()
	if task := y.task(c.TaskID); task.Status != ralph.Blocked || !strings.Contains(task.StatusReason, "blocker") {
		t.Fatalf("%s: %s", task.Status, task.StatusReason)
	}
	y.git("branch", "main")
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.RetryChange(c.TaskID, "ann") }))
	y.merge()
	y.merged(c)
}

func TestABranchForEachTask(t *testing.T) {
	t.Parallel()
	y := newYard(t, "true")
	seen := filepath.Join(t.TempDir(), "seen")
	y.Branch, y.After = true, []string{"echo $RALPH_BRANCH >" + seen + "; cat \"$RALPH_RECEIPT\" >>" + seen}
	c := y.work("Edit the file a!", map[string]string{"a": "x\n"})
	y.merge()
	if task := y.task(c.TaskID); task.Status != ralph.Completed {
		t.Fatalf("%s: %s", task.Status, task.StatusReason)
	}
	if y.git("log", "--format=%s", "main") != "Begin" {
		t.Error("the target has moved")
	}
	y.git("merge-base", "--is-ancestor", c.Head, "ralph/TASK-1-edit-the-file-a")
	missing := func() int {
		list, err := y.Missing(t.Context())
		y.no(err)
		return len(list)
	}
	if n := missing(); n != 0 {
		t.Errorf("%d changes are missed", n)
	}

	// Tasks that depend on it start from its branch until the target has it.
	var next int64
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) (err error) {
		next, err = tx.AddTask(ralph.Task{Title: "Next", DependsOn: []int64{c.TaskID}, Priority: 2}, "human")
		return err
	}))
	base := func() string {
		commit, err := y.Base(t.Context(), next)
		y.no(err)
		return commit
	}
	if got := base(); got != y.change(c.ID).To {
		t.Errorf("it begins with %s, and not with %s", got, y.change(c.ID).To)
	}
	y.write("b", "mine\n")
	y.git("commit", "-qam", "Mine")
	if got := base(); y.git("show", got+":a") != "x" || y.git("show", got+":b") != "mine" {
		t.Errorf("it begins without the one or the other:\n%s", y.git("log", "--graph", "--oneline", got))
	}

	y.git("branch", "-D", "ralph/TASK-1-edit-the-file-a")
	if n := missing(); n != 1 {
		t.Errorf("%d changes are missed of a branch that is gone", n)
	}
	y.git("merge", "-q", y.change(c.ID).To)
	if got := base(); got != y.git("rev-parse", "main") {
		t.Errorf("it begins with %s, though main has it", got)
	}
	if n := missing(); n != 0 {
		t.Errorf("%d changes are missed that were merged", n)
	}
	text, err := os.ReadFile(seen)
	if err != nil || !strings.HasPrefix(string(text), "ralph/TASK-1-edit-the-file-a\nTASK-1: Edit the file a!\n") {
		t.Errorf("%q, %v", text, err)
	}

	// A run was killed while the commands ran: they do not run again.
	c = y.work("Edit b", map[string]string{"b": "y\n"})
	y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) error {
		if first, err := tx.BeginAfter(c.ID); err != nil || !first {
			t.Errorf("%t, %v", first, err)
		}
		return nil
	}))
	y.merge()
	if again, err := os.ReadFile(seen); err != nil || string(again) != string(text) {
		t.Errorf("%q, %v", again, err)
	}
	if task := y.task(c.TaskID); task.Status != ralph.Completed {
		t.Errorf("%s: %s", task.Status, task.StatusReason)
	}
}

// TestOthersAreMergedBeforeATaskMergedAlone: finished changes that fit do not wait for its next session.
func TestOthersAreMergedBeforeATaskMergedAlone(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.MaxSentBack = 1
	clash := y.work("Clash", map[string]string{"a": "clash\n"})
	left := y.work("Left out too", map[string]string{"a": "left\n"})
	fits := y.work("Fits", map[string]string{"b": "x\n"})
	y.write("a", "people\n")
	y.git("commit", "--quiet", "-am", "Theirs")
	if why := y.merge(); why != "TASK-1 is to be merged alone, and a session is working on it" {
		t.Error(why)
	}
	y.merged(fits)
	if c, next := y.change(clash.ID), y.change(left.ID); c.State != ralph.SentBack || next.State != ralph.Queued {
		t.Errorf("the first is %s, and the next %s", c.State, next.State)
	}
}

// TestTwoThatAreMergedAlone: a change that conflicts with another one that was merged alone has not
// sent back alone, and no person has to look.
func TestTwoThatAreMergedAlone(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	base := y.git("rev-parse", "main")
	a := func(text string) map[string]string { return map[string]string{"a": text + "\n"} }
	first, second, third := y.workOn(base, "First", a("1")), y.workOn(base, "Second", a("2")), y.workOn(base, "Third", a("3"))
	y.merge()
	y.merged(first)
	y.MaxSentBack = 1 // as often as both have been sent back
	second, third = y.again(second.TaskID, a("2 again")), y.again(third.TaskID, a("3 again"))
	y.merge()
	y.merged(second)
	if task := y.task(third.TaskID); task.Status != ralph.Pending || task.TimesSentBack != 2 {
		t.Fatalf("%s after sent back %d times: %s", task.Status, task.TimesSentBack, task.StatusReason)
	}
	third = y.again(third.TaskID, a("3 at last"))
	y.merge()
	y.merged(third)
}

// TestATestIsFlakyInTheQueue: a command that fails and then passes on the commit that is merged, or on the tip, counts
// as flaky, as one of a session's done does.
func TestATestIsFlakyInTheQueue(t *testing.T) {
	for _, tt := range []struct {
		name, fails string
		becomes     ralph.Status
	}{
		{"on the merge", "1", ralph.Completed},
		{"on the tip", "2 3 5", ralph.Pending}, // which passed before; the merge fails twice
	} {
		t.Run(tt.name, func(t *testing.T) {
			runs := filepath.Join(t.TempDir(), "runs")
			command := fmt.Sprintf("echo x >> %s; n=$(($(wc -l < %s))); case ' %s ' in *\" $n \"*) exit 1;; esac", runs, runs, tt.fails)
			y := newYard(t, command)
			y.Check.Retry = true
			if tt.name == "on the tip" {
				y.work("First", map[string]string{"a": "first\n"})
				y.merge()
			}
			c := y.work("Second", map[string]string{"b": "second\n"})
			y.merge()
			if got := y.task(c.TaskID).Status; got != tt.becomes {
				t.Errorf("the task is %s", got)
			}
			y.no(y.Store.View(t.Context(), func(tx *store.Tx) error {
				list, err := tx.Flaky(ralph.Time{})
				if err == nil && (len(list) != 1 || list[0].Command != command || list[0].Times != 1) {
					t.Errorf("flaky tests: %v", list)
				}
				s, err := tx.Session(c.SessionID)
				if len(ralph.FlakyOf(s.Verify)) != 1 {
					t.Errorf("its receipt says %v", s.Verify)
				}
				return err
			}))
		})
	}
}
