package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

// crashScript has every kind of effect: learnings, a proposal, files, commands, a
// verification that refuses once, a question that is informational.
const crashScript = `task *
  learned {"text": "the cache lives in /var/cache", "kind": "discovery", "scope": "project"}
  suggest {"what": "Clean the cache", "kind": "new_task", "why": "it grows"}
  ask {"question": "is that right?", "blocking": false}
  spawn exec sleep ESCAPE
  run echo x > begun-$(date +%s%N).txt; touch LOOKOUT/agent
  done {"summary": "claimed"}
turn
  run echo x > made.txt; echo x > made-$(date +%s%N).txt; touch LOOKOUT/agent
  done {"summary": "made"}
`

// TestKilledAtAnyMoment kills ralph with SIGKILL at random moments, every third time while the agent is frozen for the
// check. Afterwards confirmed signals are stored, every signal had its effect once, every task was merged once, no task
// is stuck and no process is alive. RALPH_TEST_KILLS is the number of kills; RALPH_TEST_SEED repeats a run.
func TestKilledAtAnyMoment(t *testing.T) {
	long(t)
	t.Parallel()
	random, kills, frozen := chance(t), testNumber(t, "RALPH_TEST_KILLS", 12), 0
	for done := 0; done < kills; {
		n, ofThem := killProject(t, random, min(kills-done, 25))
		done, frozen = done+n, frozen+ofThem
	}
	t.Logf("%d kills, %d of them while the agent was frozen", kills, frozen)
}

// testNumber is how much of something a test does, which a variable may say.
func testNumber(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	s := os.Getenv(variable)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// chance draws the moments of a test; RALPH_TEST_SEED repeats it.
func chance(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("RALPH_TEST_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("RALPH_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestAMoveThatIsKilled at any moment, to a server or back, is made again: the queue is whole where it was, and all or
// none of it is where it goes.
func TestAMoveThatIsKilled(t *testing.T) {
	long(t)
	t.Parallel()
	random, kills, server := chance(t), testNumber(t, "RALPH_TEST_KILLS", 4), pgtest.New(t)
	s := newScriptedProject(t, "task *\n", "")
	s.env = append(s.env, "RALPH_DATABASE=")
	s.ralph(0, "task", "add", "One")
	db, err := store.Open(t.Context(), filepath.Join(s.state(), "ralph.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Tx(t.Context(), func(tx *store.Tx) (err error) {
		for i := 0; i < 1000 && err == nil; i++ {
			_, err = tx.AddTask(ralph.Task{Title: fmt.Sprint("Task ", i), Description: strings.Repeat("text ", i)}, "human")
		}
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	moveBy := func(ctx context.Context, from, to string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "ralph", "db", "move", to, "--json")
		cmd.Dir, cmd.Env = s.dir, append(s.env, "RALPH_DATABASE="+from)
		return cmd
	}
	move := func(from, to string) *exec.Cmd { return moveBy(t.Context(), from, to) }
	begun := time.Now()
	tables := wantStatus(t, move("", server), 0)
	took := time.Since(begun)
	ended := map[bool]int{}
	for i := range 2 * kills {
		from, to := "", pgtest.New(t)
		if i%2 > 0 {
			from, to = server, "file"
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(took))))
		ended[moveBy(ctx, from, to).Run() == nil]++
		cancel()
		out, err := move(from, to).CombinedOutput()
		if to != "file" && err != nil && strings.Contains(string(out), "is not empty") { // all had been copied
			out, err = move(to, "file").CombinedOutput()
		}
		if err != nil || string(out) != tables {
			t.Fatalf("a move to %s: %v\n%s\ninstead of\n%s", to, err, out, tables)
		}
	}
	t.Logf("%v of %d ended by themselves, in %s", ended[true], 2*kills, took)
	s.wantTidy("")
	s.ralph(0, "task", "show", "1001")
}

// A lookout notices a check of a session's done, with its agent frozen.
type lookout struct {
	dir     string        // that agents and checks write to
	agent   string        // a file in it, which agents make before they say done
	command string        // of the verification; it takes a moment if there is an agent
	frozen  chan struct{} // receives when such a check has begun
}

func newLookout(t *testing.T) *lookout {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "checks")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // so that nobody waits for the other
	if err != nil {
		t.Fatal(err)
	}
	l := &lookout{dir: dir, agent: filepath.Join(dir, "agent"), frozen: make(chan struct{})}
	l.command = fmt.Sprintf("if rm %s 2>/dev/null; then echo >%s; sleep 0.2; fi", l.agent, path)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := f.Read(make([]byte, 1)); err != nil {
				return // the test is over
			}
			select {
			case l.frozen <- struct{}{}:
			default: // this one is not waited for
			}
		}
	}()
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return l
}

// kill runs a command that is killed within a time, or not if it ends by itself
// before; or else while an agent of its is frozen, which must be gone soon then.
func (l *lookout) kill(t *testing.T, cmd *exec.Cmd, random *rand.Rand, within time.Duration, frozen bool) (killed bool, err error) {
	t.Helper()
	if err := os.Remove(l.agent); err != nil && !os.IsNotExist(err) {
		t.Fatal(err) // an agent that was killed before its check has left it
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if frozen {
		select {
		case <-l.frozen:
			within = 200 * time.Millisecond
		case err = <-ended:
			return false, err
		}
	}
	select {
	case <-time.After(time.Duration(random.Int64N(int64(within)))):
	case err = <-ended:
		return false, err
	}
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	if err = <-ended; cmd.ProcessState.Exited() {
		return false, err // it was faster
	}
	if frozen {
		wantDeserted(t, cmd.Dir)
	}
	return true, nil
}

// wantDeserted waits until no process works in a folder, and fails after some seconds.
func wantDeserted(t *testing.T, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for there := worksIn(t, dir); len(there) > 0; there = worksIn(t, dir) {
		if ctx.Err() != nil {
			t.Fatalf("alive in %s 10 s after ralph was killed: %q", dir, there)
		}
	}
}

// worksIn lists the processes, in any state, whose working directory is in this folder, if the system shows that
// (Linux).
func worksIn(t *testing.T, dir string) (list []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err != nil || cwd != dir && !strings.HasPrefix(cwd, dir+"/") {
			continue // it has ended, or is elsewhere
		}
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "stat")) // it may have ended
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
		if len(line) > 0 {
			list = append(list, fmt.Sprintf("%s (%.40s)", bytes.ReplaceAll(line, []byte{0}, []byte(" ")), stat))
		}
	}
	return list
}

// killProject works through a project of three tasks and kills ralph at most so
// many times; it returns how often it did, and how often its agent was frozen.
func killProject(t *testing.T, random *rand.Rand, most int) (kills, frozen int) {
	t.Helper()
	escape := fmt.Sprintf("98765.%d%09d", os.Getpid(), random.IntN(1e9))
	l := newLookout(t)
	s := newScriptedProject(t, strings.NewReplacer("ESCAPE", escape, "LOOKOUT", l.dir).Replace(crashScript), "")
	s.configure("permissions: {writable: [" + l.dir + "]}\nverify: {commands: [\"" + l.command + "; test -f made.txt\"], on_red: go}\nlimits: {max_sessions: 1000, stagnant_sessions: 1000}\n#test: {refused: 1000} # a claim of a lost session is judged too\n")
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env = s.dir, s.env
		return wantStatus(t, cmd, 0)
	}
	git("add", "-A")
	git("commit", "-qm", "first")
	for i := range 3 {
		s.ralph(0, "task", "add", fmt.Sprintf("Task %d", i+1))
	}
	for kills < most {
		cmd := s.command("run")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		still := random.IntN(3) == 0
		killed, err := l.kill(t, cmd, random, 400*time.Millisecond, still)
		if killed {
			kills++
			if still {
				frozen++
			}
			continue
		}
		if cmd.ProcessState.ExitCode() == ralph.ExitWaiting {
			s.retryLost()
			continue
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if cmd.ProcessState.Success() {
			break
		}
	}
	s.finish()
	if s.recovered(); t.Failed() {
		t.Fatal(s.ralph(0, "task", "list"), s.ralph(0, "session", "list"))
	}
	for i := range 3 {
		if n := strings.Count(git("log", "--format=%s"), fmt.Sprintf("TASK-%d: ", i+1)); n != 1 {
			t.Errorf("TASK-%d has been merged %d times:\n%s", i+1, n, git("log", "--stat"))
		}
	}
	if changed := git("status", "--porcelain"); changed != "" {
		t.Errorf("the work tree is not as the branch:\n%s", changed)
	}
	if found := s.ralph(0, "doctor"); strings.Contains(found, "✗") {
		t.Error(found)
	}
	s.wantTidy(git("for-each-ref", "--format=%(refname)", "refs/ralph"))
	wantDeserted(t, s.state())
	wantGone(t, "sleep "+escape)
	wantDeserted(t, s.dir)
	return max(kills, 1), frozen
}

// ownRefs are the refs that ralph may leave in a person's repository: places of workspaces, changes of some days, the
// target, and unknown work found in a workspace, which only a person removes.
var ownRefs = regexp.MustCompile(`^refs/ralph/((base|start)/(1|check-1)|changes/[0-9a-f-]{36}|(target|seen)/(main|master)|lost/.+)$`)

// wantTidy checks that kills leave nothing in the repository or in ralph's state: no unknown ref, and no folder but the
// workspaces'.
func (s *scriptedProject) wantTidy(refs string) {
	s.t.Helper()
	for ref := range strings.FieldsSeq(refs) {
		if !ownRefs.MatchString(ref) {
			s.t.Errorf("%s stays behind", ref)
		}
	}
	for pattern, may := range map[string]*regexp.Regexp{
		"*": regexp.MustCompile(`^(ralph\.db.*|.+\.lock|sessions|workspaces|backups|baseline|project|kept|trial.key)$`), "workspaces/*": regexp.MustCompile(`^(1(\.lock)?|check-1(\.lock)?|seen|warm)$`),
		"workspaces/*/*": regexp.MustCompile(`^(tree|git|tmp|left|setup|caches?|empty|home|ignored|linked|go-build)$`),
	} {
		found, err := filepath.Glob(filepath.Join(s.state(), pattern))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, path := range found {
			if !may.MatchString(filepath.Base(path)) {
				s.t.Errorf("%s stays behind", path)
			}
		}
	}
}

// retryLost has the tasks tried again that wait because so many of their sessions
// were lost: here nobody but the test is to blame.
func (s *scriptedProject) retryLost() {
	s.t.Helper()
	var tasks []ralph.Task
	if err := json.Unmarshal([]byte(s.ralph(0, "task", "list", "--all", "--json")), &tasks); err != nil {
		s.t.Fatal(err)
	}
	for _, task := range tasks {
		if task.State == "needs_you" && task.Origin == ralph.ByHuman { // a suggestion waits for something else
			s.ralph(0, "task", "retry", strconv.FormatInt(task.ID, 10))
		}
	}
}

// finish works through the rest.
func (s *scriptedProject) finish() {
	s.t.Helper()
	if s.command("run").Run() != nil {
		s.retryLost() // this run finds the last lost one
		s.ralph(0, "run")
	}
}

// A scriptedProject is a project with the scripted agent.
type scriptedProject struct {
	t   *testing.T
	dir string
	env []string
}

func newScriptedProject(t *testing.T, script, config string) *scriptedProject {
	t.Helper()
	s := &scriptedProject{t: t, dir: t.TempDir(), env: append(os.Environ(), "HOME="+t.TempDir(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")}
	for name, text := range map[string]string{
		"ralph.yaml": "agent: {command: [ralph, scripted-agent]}\n#test: {kill_grace: 100ms}\n" + config, "claude.script": script, ".gitignore": "claude.script.sessions\n",
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.git("init", "-q")
	s.git("add", "-A")
	s.git("commit", "-qm", "project")
	return s
}

// configure adds to ralph.yaml.
func (s *scriptedProject) configure(text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "ralph.yaml")
	config, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(config, text...), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// state returns where ralph keeps the project's state.
func (s *scriptedProject) state() string {
	s.t.Helper()
	return stateOf(s.t, s.dir, s.env)
}

func (s *scriptedProject) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), "ralph", args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

// ralph runs ralph and wants an exit status.
func (s *scriptedProject) ralph(status int, args ...string) string {
	s.t.Helper()
	return wantStatus(s.t, s.command(args...), status)
}

// wantStatus runs a command and wants an exit status.
func wantStatus(t *testing.T, cmd *exec.Cmd, status int) (output string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Fatalf("ralph %s: exit status %d, want %d\n%s", strings.Join(cmd.Args[1:], " "), got, status, out)
	}
	return string(out)
}

// acknowledged is the answer to a durable signal.
var acknowledged = regexp.MustCompile(`Recorded (\w+) as comment (\d+)`)

// sound checks a queue after the end of its runs and workers: no task is lost, and each was done once. It returns a
// function that looks for further faults in its database.
func (s *scriptedProject) sound(tasks int) (none func(what, query string, args ...any)) {
	t := s.t
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.state(), "ralph.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	none = func(what, query string, args ...any) {
		t.Helper()
		var n int
		if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	none("tasks too few or too many", `SELECT count(*) - $1 FROM tasks WHERE origin = 'human'`, tasks)
	none("tasks that people asked for and that are not completed", `SELECT count(*) FROM tasks WHERE origin = 'human' AND status <> 'completed'`)
	none("sessions without an end", `SELECT count(*) FROM sessions WHERE completed_at = ''`)
	none("runs without an end", `SELECT count(*) FROM runs WHERE ended_at = ''`)
	none("tasks with more or fewer than one accepted done", `
		SELECT count(*) FROM tasks t WHERE t.origin = 'human' AND (SELECT count(*) FROM sessions s WHERE s.task_id = t.id AND s.outcome = 'success') <> 1`)
	none("tasks whose attempts were counted wrongly", `
		SELECT count(*) FROM tasks t WHERE t.origin = 'human' AND t.attempts <> (SELECT count(*) FROM sessions s WHERE s.task_id = t.id AND s.ending IN ('finished', 'timed_out'))`)
	none("sessions of a task at one time", `
		SELECT count(*) FROM sessions a JOIN sessions b ON a.id < b.id AND a.task_id = b.task_id AND a.started_at < b.completed_at AND b.started_at < a.completed_at`)
	none("signals that are stored twice", `
		SELECT count(*) FROM (SELECT 1 FROM task_comments WHERE signal_verb <> '' GROUP BY session_id, signal_verb, signal_payload HAVING count(*) > 1) twice`)
	none("broken rows", `SELECT count(*) FROM pragma_foreign_key_check`)
	none("parts of the database that are corrupt", `SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'`)
	return none
}

// recovered checks the project of the storm of kills once a run has ended by itself.
func (s *scriptedProject) recovered() {
	t := s.t
	t.Helper()
	none := s.sound(3)
	none("learned signals without their one learning", `
		SELECT count(*) FROM task_comments c WHERE c.signal_verb = 'learned' AND (SELECT count(*) FROM learning_comments l WHERE l.comment_id = c.id) <> 1`)
	none("learnings that were counted wrongly", `SELECT count(*) FROM learnings l WHERE l.times_seen <> (SELECT count(*) FROM learning_comments c WHERE c.learning_id = l.id)`)
	none("proposals too many", `SELECT max(0, count(*) - 1) FROM tasks WHERE origin = 'agent'`)
	none("sessions of the run at one time", `
		SELECT count(*) FROM sessions a JOIN sessions b ON a.id < b.id AND a.started_at < b.completed_at AND b.started_at < a.completed_at`)

	streams, err := filepath.Glob(filepath.Join(s.state(), "sessions", "*", "stream.jsonl"))
	if err != nil || len(streams) < 3 {
		t.Fatalf("%d transcripts, %v", len(streams), err)
	}
	for _, path := range streams {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		session := filepath.Base(filepath.Dir(path))
		for _, m := range acknowledged.FindAllSubmatch(text, -1) {
			none(fmt.Sprintf("acknowledged signals are lost: %s of session %s", m[0], session),
				`SELECT 1 - count(*) FROM task_comments WHERE id = $1 AND signal_verb = $2 AND session_id = $3`, string(m[2]), string(m[1]), session)
		}
	}
	alive, err := exec.CommandContext(t.Context(), "pgrep", "-af", s.dir).Output()
	if err == nil {
		t.Errorf("still alive: %s", alive)
	}
}
