package proc_test

import (
	"testing"
	"time"

	"ralph/internal/proc"
)

// Two commands that keep a processor busy, one after the other: each counts for its marker.
func TestCPUTimeOfCommands(t *testing.T) {
	mine, other := newMarker(), newMarker()
	used := func(marker string) time.Duration {
		t.Helper()
		d, err := proc.CPUTime(marker, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, marker := range []string{other, mine} {
		p, err := proc.Start(proc.Spec{
			Args: []string{"/bin/sh", "-c", "while :; do :; done"}, Env: []string{"PATH=/bin", marker}, Marker: marker,
		})
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); used(marker) < 50*time.Millisecond; {
			if time.Now().After(deadline) {
				t.Errorf("a busy loop has used %s so far", used(marker))
				break
			}
		}
		if marker == other && used(mine) != 0 {
			t.Errorf("what another one used counts: %s", used(mine))
		}
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		if _, err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// TestCPUTimeOfChildren counts, but not that of the command itself.
func TestCPUTimeOfChildren(t *testing.T) {
	marker := newMarker()
	p, err := proc.Start(proc.Spec{
		Args: []string{"/bin/sh", "-c", "sleep 60 & while :; do :; done"}, Env: []string{"PATH=/bin", marker}, Marker: marker,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = p.Kill()
		if _, err := p.Wait(); err != nil {
			t.Error(err)
		}
	}()
	all := func(own func(string) bool) time.Duration {
		d, err := proc.CPUTime(marker, own)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for all(nil) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	if all(func(string) bool { return false }) == 0 {
		t.Error("without a process of its own nothing is counted")
	}
	sleeps := func(command string) bool { return command == "sleep 60" }
	for range 5 { // until that has become a sleep
		before, busy := all(sleeps), all(nil)
		for all(nil) < busy+30*time.Millisecond {
			time.Sleep(10 * time.Millisecond)
		}
		if all(sleeps) == before {
			return
		}
	}
	t.Error("what it uses itself is counted")
}
