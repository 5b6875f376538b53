package main

import (
	"bytes"
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
)

// crashScript has every kind of effect: learnings, a proposal, files, commands, a
// verification that refuses once, a question that is informational.
const crashScript = `task *
  learned {"text": "the cache lives in /var/cache", "kind": "discovery", "scope": "project"}
  suggest {"what": "Clean the cache", "kind": "new_task", "why": "it grows"}
  ask {"question": "is that right?", "blocking": false}
  spawn exec sleep ESCAPE
  done {"summary": "claimed"}
turn
  run echo x > made.txt
  done {"summary": "made"}
`

// TestKilledAtAnyMoment kills ralph with SIGKILL at random moments, again and
// again, and holds what must be true whatever the moment: what was acknowledged is
// there, every signal had its effect once, no task is stuck and nothing is alive.
// RALPH_TEST_KILLS says how often; RALPH_TEST_SEED repeats a run.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	kills, seed := 20, uint64(time.Now().UnixNano())
	if s := os.Getenv("RALPH_TEST_KILLS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		kills = n
	}
	if s := os.Getenv("RALPH_TEST_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("RALPH_TEST_SEED=%d", seed)
	for done := 0; done < kills; {
		done += killProject(t, random, min(kills-done, 25))
	}
}

// killProject works through a project of three tasks and kills ralph at most so
// many times; it returns how often it did.
func killProject(t *testing.T, random *rand.Rand, most int) (kills int) {
	t.Helper()
	escape := fmt.Sprintf("98765.%d%09d", os.Getpid(), random.IntN(1e9))
	s := newScriptedProject(t, strings.ReplaceAll(crashScript, "ESCAPE", escape), "verify: ['test -f made.txt']\nlimits: {max_sessions: 1000, stagnant_sessions: 1000}\nmax_verify_failures: 1000 # a claim of a lost session is judged too\n")
	for i := range 3 {
		s.ralph(0, "task", "add", fmt.Sprintf("Task %d", i+1))
	}
	for kills < most {
		cmd := s.command("run")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		var err error
		select {
		case <-time.After(time.Duration(random.IntN(400)) * time.Millisecond):
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			<-ended //nolint:errcheck // it was killed
			kills++
		case err = <-ended:
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
	if s.command("run").Run() != nil {
		s.retryLost() // the last of those that were lost is found lost by this run
		s.ralph(0, "run")
	}
	if s.settled(); t.Failed() {
		t.Fatal(s.ralph(0, "task", "list"), s.ralph(0, "session", "list"))
	}
	wantGone(t, "sleep "+escape)
	return max(kills, 1)
}

// retryLost has the tasks tried again that wait because so many of their sessions
// were lost: here nobody but the test is to blame.
func (s *scriptedProject) retryLost() {
	s.t.Helper()
	var tasks []ralph.Task
	if err := json.Unmarshal([]byte(s.ralph(0, "task", "list", "--json")), &tasks); err != nil {
		s.t.Fatal(err)
	}
	for _, task := range tasks {
		if task.Status == ralph.Blocked {
			s.ralph(0, "task", "retry", strconv.FormatInt(task.ID, 10))
		}
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
		"ralph.yaml": "agent: {command: [ralph, scripted-agent], allowed_tools: [Bash, Write], kill_grace: 100ms}\n" + config, "claude.script": script, ".gitignore": "claude.script.sessions\n",
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "git", "init", "-q")
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return s
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

// acknowledged is what an agent is told once its signal is durable.
var acknowledged = regexp.MustCompile(`Recorded (\w+) as comment (\d+)`)

// settled holds what is true of a project once a run has ended by itself.
func (s *scriptedProject) settled() {
	t := s.t
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.dir, ".git", "ralph", "ralph.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	none := func(what, query string, args ...any) {
		t.Helper()
		var n int
		if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	none("tasks that people asked for and that are not completed", `SELECT count(*) FROM tasks WHERE origin = 'human' AND status <> 'completed'`)
	none("sessions without an end", `SELECT count(*) FROM sessions WHERE completed_at = ''`)
	none("runs without an end", `SELECT count(*) FROM runs WHERE ended_at = ''`)
	none("learned signals without their one learning", `
		SELECT count(*) FROM task_comments c WHERE c.signal_verb = 'learned' AND (SELECT count(*) FROM learning_comments l WHERE l.comment_id = c.id) <> 1`)
	none("learnings that were counted wrongly", `SELECT count(*) FROM learnings l WHERE l.times_seen <> (SELECT count(*) FROM learning_comments c WHERE c.learning_id = l.id)`)
	none("proposals too many", `SELECT max(0, count(*) - 1) FROM tasks WHERE origin = 'agent'`)
	none("tasks with more or fewer than one accepted done", `
		SELECT count(*) FROM tasks t WHERE t.origin = 'human' AND (SELECT count(*) FROM sessions s WHERE s.task_id = t.id AND s.outcome = 'success') <> 1`)
	none("tasks whose attempts were counted wrongly", `
		SELECT count(*) FROM tasks t WHERE t.origin = 'human' AND t.attempts <> (SELECT count(*) FROM sessions s WHERE s.task_id = t.id AND s.ending IN ('finished', 'timed_out'))`)
	none("sessions of a task at one time", `
		SELECT count(*) FROM sessions a JOIN sessions b ON a.id < b.id AND a.started_at < b.completed_at AND b.started_at < a.completed_at`)
	none("broken rows", `SELECT count(*) FROM pragma_foreign_key_check`)
	none("parts of the database that are corrupt", `SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'`)

	streams, err := filepath.Glob(filepath.Join(s.dir, ".git", "ralph", "sessions", "*", "stream.jsonl"))
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
