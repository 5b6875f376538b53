package proc_test

import (
	"testing"
	"time"

	"ralph/internal/proc"
)

// Two commands that keep a processor busy, one after the other: each counts for its marker.
func TestCPUTimeCountsWhatACommandHasUsed(t *testing.T) {
	mine, other := newMarker(), newMarker()
	used := func(marker string) time.Duration {
		t.Helper()
		d, err := proc.CPUTime(marker)
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
