package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"ralph"
)

// TestEventsAreFollowedWithoutAGap: a follower that goes on behind its last id
// after having been stopped sees every event once, in order.
func TestEventsAreFollowedWithoutAGap(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "task *\n  run date +%s%N >> a.txt\n  call done {\"summary\": \"did it\"}\n", "")
	var seen []int64
	since := "0"
	for round := range 3 {
		follower := s.command("events", "-f", "--json", "--since", since)
		out, err := follower.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := follower.Start(); err != nil {
			t.Fatal(err)
		}
		s.ralph(0, "task", "add", "One more")
		if round < 2 {
			s.ralph(0, "run")
		}
		lines := bufio.NewScanner(out)
		added := 0
		for lines.Scan() {
			var e ralph.Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Fatal(err)
			}
			seen = append(seen, e.ID)
			if e.Type == ralph.EventTaskCreated {
				added++
			}
			if e.Type == ralph.EventRunEnded || round == 2 && added > 0 {
				break
			}
		}
		if err := follower.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := follower.Wait(); err != nil {
			t.Errorf("an interrupted follower: %v, want exit status 0", err)
		}
		since = strconv.FormatInt(seen[len(seen)-1], 10)
	}
	for i, id := range seen {
		if id != int64(i+1) {
			t.Fatalf("events %v: one is missing or doubled", seen)
		}
	}
}
