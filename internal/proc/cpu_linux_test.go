package proc_test

import (
	"testing"
	"time"

	"ralph/internal/proc"
)

func TestCPUTimeCountsWhatACommandHasUsed(t *testing.T) {
	before, err := proc.CPUTime()
	if err != nil {
		t.Fatal(err)
	}
	p, err := proc.Start(proc.Spec{Args: []string{"/bin/sh", "-c", "while :; do :; done"}, Env: []string{"PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for used := before; used < before+50*time.Millisecond; {
		if used, err = proc.CPUTime(); err != nil || time.Now().After(deadline) {
			t.Errorf("a busy loop has used %s so far, %s before it: %v", used, before, err)
			break
		}
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
}
