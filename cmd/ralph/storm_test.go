package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
)

// TestWorkersBesideADaemon: workers take tasks from the queue of a daemon, all in workspaces beside
// its two sessions, and every second one is killed with SIGKILL in the middle. Each task is done
// once, and the daemon goes on.
// RALPH_TEST_WORKERS says how many there are, with four tasks each.
func TestWorkersBesideADaemon(t *testing.T) {
	long(t)
	t.Parallel()
	workers, random := testNumber(t, "RALPH_TEST_WORKERS", 5), chance(t)
	s := newScriptedProject(t, "task *\n  run mktemp made-by-the-daemon-XXXXXXXX\n  done {\"summary\": \"made\"}\n",
		"verify: {commands: ['test -f files/0/0'], on_red: go}\nparallel: 2\n"+
			"limits: {max_sessions: 10000, max_cost_usd: 1000, max_cost_per_day_usd: 1000, stagnant_sessions: 10000}\n")
	st := &storm{scriptedProject: s, tasks: 4 * workers, over: make(chan struct{}), done: map[string]string{}}
	st.populate(min(3000, 60*workers))
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.state(), "ralph.db")+"?_busy_timeout=30000")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	st.db = db

	begun := time.Now()
	daemon := s.command("run", "--daemon")
	var out bytes.Buffer
	daemon.Stdout, daemon.Stderr = &out, &out
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	waitFor(t, func() bool { return st.count(`SELECT count(*) FROM sessions`) > 0 })
	var busy sync.WaitGroup
	for w := range workers {
		life := time.Duration(0)
		if w%4 < 2 { // of both kinds
			life = 1 + time.Duration(random.Int64N(int64(time.Second)))
		}
		busy.Go(func() { st.work(s.dir, fmt.Sprintf("w%d", w), life) })
	}
	st.await(ended, &out)
	close(st.over)
	busy.Wait()
	took := time.Since(begun)
	s.ralph(0, "stop")
	<-ended //nolint:errcheck // the status says it
	if status := daemon.ProcessState.ExitCode(); status != ralph.ExitStopped {
		t.Errorf("the daemon that was told to stop ended with %d\n%s", status, out.String())
	}
	s.ralph(0, "db", "check")
	none := s.sound(st.tasks)
	for task, worker := range st.done {
		none("dones that were acknowledged and are not there: TASK-"+task, `SELECT 1 - count(*) FROM sessions WHERE task_id = $1 AND worker = $2 AND outcome = 'success'`, task, worker)
	}
	wantDeserted(t, s.dir)
	merged := s.git("ls-tree", "--name-only", "HEAD")
	for task := range st.done {
		if !strings.Contains(merged, "made-"+task+"\n") {
			t.Errorf("what was made for TASK-%s has not been merged", task)
		}
	}
	if refs := s.git("for-each-ref", "refs/ralph/lost"); refs != "" {
		t.Errorf("work was set aside:\n%s\n%s\n%s", refs, s.git("log", "--stat", "--format=%h %s", "--glob=refs/ralph/lost", "--not", "HEAD"),
			s.ralph(0, "session", "list"))
	}
	byDaemon := st.count(`SELECT count(*) FROM sessions WHERE worker = '' AND outcome = 'success'`)
	if byDaemon == 0 {
		t.Error("the daemon did nothing")
	}
	t.Logf("%d workers, %d of them killed; %d claims, %d tasks done by workers and %d by the daemon, %d sessions, in %s",
		workers, st.kills, st.claims, st.tasks-byDaemon, byDaemon, st.count(`SELECT count(*) FROM sessions`), took.Round(time.Second))
}

// A storm is a queue that many work on.
type storm struct {
	*scriptedProject
	db    *sql.DB
	tasks int
	over  chan struct{} // closed when all is done

	mu     sync.Mutex
	claims int
	kills  int
	done   map[string]string // task → worker, of what was acknowledged
}

// populate commits a number of files and fills the queue.
func (s *storm) populate(files int) {
	s.t.Helper()
	var list strings.Builder
	for i := range s.tasks {
		fmt.Fprintf(&list, "- [ ] task %d\n", i)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "list.md"), []byte(list.String()), 0o600); err != nil {
		s.t.Fatal(err)
	}
	for i := range files {
		dir := filepath.Join(s.dir, "files", fmt.Sprint(i%50))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i/50)), fmt.Appendln(nil, i), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	s.git("add", "-A")
	s.git("commit", "-qm", "all")
	s.ralph(0, "import", "list.md")
}

func (s *storm) count(query string) (n int) {
	s.t.Helper()
	if err := s.db.QueryRowContext(s.t.Context(), query).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// await waits until all tasks are completed, and fails if the daemon ends before.
func (s *storm) await(ended <-chan error, out *bytes.Buffer) {
	s.t.Helper()
	enough := time.After(time.Minute + time.Duration(s.tasks)*10*time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for s.count(`SELECT count(*) FROM tasks WHERE status <> 'completed'`) > 0 {
		select {
		case err := <-ended:
			s.t.Fatalf("the daemon ended by itself: %v\n%s", err, out)
		case <-enough:
			s.t.Fatal("the queue is not done: ", s.ralph(0, "task", "list"), s.ralph(0, "session", "list"))
		case <-tick.C:
		}
	}
	select {
	case err := <-ended:
		s.t.Fatalf("the daemon ended by itself: %v\n%s", err, out)
	default:
	}
}

// work has a worker take tasks in a work tree until all is done. With a life it is
// killed so long after its first claim, its lease runs out, and another one takes its
// place.
func (s *storm) work(dir, name string, life time.Duration) {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	cmd := s.command("mcp", "--profile", "worker", "--name", name, "--calls-per-minute", "100000")
	cmd.Dir = dir
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		s.t.Errorf("%s: %v", name, err)
		return
	}
	var killing *time.Timer
	claimed := func() {
		if life > 0 && killing == nil {
			killing = time.AfterFunc(life, func() { _ = cmd.Process.Kill() }) // or it has ended
		}
	}
	for s.step(ctx, client, dir, name, claimed) {
	}
	killed := killing != nil && !killing.Stop()
	if err := client.Close(); !killed {
		if err != nil {
			s.t.Errorf("%s: %v", name, err)
		}
		return
	}
	s.mu.Lock()
	s.kills++
	s.mu.Unlock()
	// Half an hour passes.
	if _, err := s.db.ExecContext(ctx, `
		UPDATE tasks SET claim_expires = '2026-01-01T00:00:00.000Z' WHERE claimed_by IN (SELECT id FROM sessions WHERE worker = $1 AND completed_at = '')`, name); err != nil {
		s.t.Error(err)
	}
	s.work(dir, name+"-again", 0)
}

// step takes a task and closes it; false if there is nothing more to do, or no worker for it.
func (s *storm) step(ctx context.Context, client *mcp.ClientSession, dir, name string, claimed func()) bool {
	call := func(tool, args string) (text string, refused, ok bool) {
		r, err := client.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
		if err != nil {
			return "", true, false // its end says whether it was killed
		}
		return r.Content[0].(*mcp.TextContent).Text, r.IsError, true
	}
	text, refused, ok := call("claim_task", `{}`)
	if !ok {
		return false
	}
	m := claimedTask.FindStringSubmatch(text)
	switch {
	case m != nil:
	case refused || !strings.Contains(text, "No task can be claimed now"):
		s.t.Errorf("%s claims: %s", name, text)
		return false
	default:
		select {
		case <-s.over:
			return false
		case <-time.After(100 * time.Millisecond): // somebody may give one back
			return true
		}
	}
	claimed()
	s.mu.Lock()
	s.claims++
	s.mu.Unlock()
	if workspace := folder.FindString(text); workspace != "" {
		dir = workspace
	}
	if err := os.WriteFile(filepath.Join(dir, "made-"+m[1]), []byte(name), 0o600); err != nil {
		s.t.Error(err)
	}
	text, refused, ok = call("ralph_signal_done", `{"summary":"made it"}`)
	if !ok {
		return false
	}
	if refused || !strings.Contains(text, "TASK-"+m[1]+" is completed") {
		s.t.Errorf("%s closes TASK-%s: %s", name, m[1], text)
		return false
	}
	s.mu.Lock()
	s.done[m[1]] = name
	s.mu.Unlock()
	return true
}
