package main

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"ralph"
)

// A follower is a running `ralph events -f --json`.
type follower struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	last  int64 // the id that it printed last
}

// follow starts a follower behind an event.
func (s *scriptedProject) follow(since int64) *follower {
	s.t.Helper()
	f := &follower{t: s.t, cmd: s.command("events", "-f", "--json", "--since", strconv.FormatInt(since, 10)), last: since}
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := f.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	f.lines = bufio.NewScanner(out)
	return f
}

// next returns the next event, which has to have the next id.
func (f *follower) next() (e ralph.Event) {
	f.t.Helper()
	if !f.lines.Scan() {
		f.t.Fatalf("the follower ended behind event %d: %v", f.last, f.lines.Err())
	}
	if err := json.Unmarshal(f.lines.Bytes(), &e); err != nil {
		f.t.Fatal(err)
	}
	if e.ID != f.last+1 {
		f.t.Fatalf("event %d follows %d: one is missing or doubled", e.ID, f.last)
	}
	f.last = e.ID
	return e
}

// interrupt ends the follower as Ctrl-C does, which is not a failure.
func (f *follower) interrupt() {
	f.t.Helper()
	if err := f.cmd.Process.Signal(os.Interrupt); err != nil {
		f.t.Fatal(err)
	}
	if err := f.cmd.Wait(); err != nil {
		f.t.Errorf("an interrupted follower: %v, want exit status 0", err)
	}
}

// TestEventsAreFollowedWithoutAGap: a follower that continues after its last id sees every event once, in order,
// however often ralph itself is restarted.
func TestEventsAreFollowedWithoutAGap(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "task *\n  run date +%s%N >> a.txt\n  call done {\"summary\": \"did it\"}\n", "")
	var at int64
	for range 2 {
		s.ralph(0, "task", "add", "One more")
		f := s.follow(at)
		s.ralph(0, "run")
		for f.next().Type != ralph.EventType(ralph.RunEnded{}) {
		}
		f.interrupt()
		at = f.last
	}
	f := s.follow(at)
	s.ralph(0, "task", "add", "The last")
	if e := f.next(); e.Type != ralph.EventType(ralph.TaskCreated{}) || e.TaskID != 3 {
		t.Errorf("got %+v", e)
	}
	f.interrupt()
}

// TestEventsOfSeveralProcessesAreFollowed: several processes write at once while a
// follower reads, is killed and goes on behind the last event that it printed.
func TestEventsOfSeveralProcessesAreFollowed(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "", "")
	s.ralph(0, "task", "add", "Talk")
	const writers, each = 4, 6
	written := make(chan error, writers)
	for w := range writers {
		go func() {
			var err error
			for i := 0; i < each && err == nil; i++ {
				var out []byte
				if out, err = s.command("comment", "1", fmt.Sprintf("%d of writer %d", i, w)).CombinedOutput(); err != nil {
					err = fmt.Errorf("%w\n%s", err, out)
				}
			}
			written <- err
		}()
	}
	said := map[int64]bool{}
	read := func(f *follower, comments int) {
		for len(said) < comments {
			if e := f.next(); e.Type == ralph.EventType(ralph.CommentAdded{}) {
				said[e.ID] = true
			}
		}
	}
	first := s.follow(0)
	read(first, writers*each/3)
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := first.cmd.Wait(); err == nil {
		t.Error("a killed follower ended well")
	}
	second := s.follow(first.last)
	read(second, writers*each)
	second.interrupt()
	for range writers {
		if err := <-written; err != nil {
			t.Error(err)
		}
	}
}

// TestAFollowersMemoryStaysConstant: 100,000 events take no more memory than a few.
func TestAFollowersMemoryStaysConstant(t *testing.T) {
	long(t)
	if runtime.GOOS != "linux" {
		t.Skip("the most memory that a process took is read from /proc")
	}
	t.Parallel()
	s := newScriptedProject(t, "", "")
	s.ralph(0, "task", "add", "Talk") // event 1, and the database
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.state(), "ralph.db")+"?_busy_timeout=30000")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	add := func(n int) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), `
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
			INSERT INTO events (type, task_id, payload, created)
			SELECT 'task.comment.added', 1, '{"commentId": ' || i || ', "kind": "note", "body": "' || hex(zeroblob(200)) || '"}', '2026-03-01T10:00:00.000Z' FROM n`, n); err != nil {
			t.Fatal(err)
		}
	}
	f := s.follow(0)
	upTo := func(id int64) (kilobytes int) {
		for f.last < id {
			f.next()
		}
		return peakMemory(t, f.cmd.Process.Pid)
	}
	add(5_000)
	few := upTo(5_001)
	add(100_000)
	many := upTo(105_001)
	t.Logf("%d kB after 5,000 events, %d kB after 105,000", few, many)
	if many > few+16<<10 {
		t.Errorf("memory grew from %d to %d kB with the log", few, many)
	}
	f.interrupt()
}

// peakMemory returns the most memory that a process has had so far, in kB.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes
		}
	}
	t.Fatalf("no VmHWM in\n%s", status)
	return 0
}
