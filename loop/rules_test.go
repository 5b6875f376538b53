package loop

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"ralph/loop/agent"

	"github.com/google/go-cmp/cmp"

	"ralph"
)

func TestTheModelOfASession(t *testing.T) {
	for _, tt := range []struct {
		name string
		loop Loop
		task ralph.Task
		of   string // its discipline's
		want string
	}{
		{"nothing is said", Loop{}, ralph.Task{}, "", ""},
		{"the configuration's", Loop{ConfigModel: "config"}, ralph.Task{}, "", "config"},
		{"the discipline's wins over it", Loop{ConfigModel: "config"}, ralph.Task{}, "discipline", "discipline"},
		{"escalation is not due after one stuck session", Loop{ConfigModel: "config", EscalationModel: "opus"}, ralph.Task{StuckCount: 1}, "discipline", "discipline"},
		{"escalation is due after two", Loop{ConfigModel: "config", EscalationModel: "opus"}, ralph.Task{StuckCount: 2}, "discipline", "opus"},
		{"and after more", Loop{EscalationModel: "opus"}, ralph.Task{StuckCount: 3}, "", "opus"},
		{"it can be switched off", Loop{ConfigModel: "config"}, ralph.Task{StuckCount: 2}, "", "config"},
		{"the task's wins over escalation", Loop{EscalationModel: "opus"}, ralph.Task{StuckCount: 2, Model: "task"}, "", "task"},
		{"the flag's wins over all", Loop{Model: "flag", ConfigModel: "config", EscalationModel: "opus"}, ralph.Task{StuckCount: 2, Model: "task"}, "discipline", "flag"},
	} {
		if got := tt.loop.chooseModel(tt.task, ralph.Discipline{Model: tt.of}); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestASessionsClock runs ten seconds down, in which it stands still now and then.
func TestASessionsClock(t *testing.T) {
	type act struct {
		at    int // seconds
		do    func(c *clock)
		holds int
	}
	pause := func(at int) act { return act{at, (*clock).pause, 1} }
	resume := func(at int) act { return act{at, (*clock).resume, -1} }
	for _, tt := range []struct {
		name string
		acts []act
		ring int // when it rings; 0 for never within the minute
	}{
		{"nothing stops it", nil, 10},
		{"a pause is not counted", []act{pause(4), resume(24)}, 30},
		{"what has passed before a pause is not given back", []act{pause(4), resume(5), pause(8), resume(9), pause(11), resume(12)}, 13},
		{"of two pauses at once the last one counts", []act{pause(4), pause(6), resume(10), resume(20)}, 26},
		{"a pause has no end before the time is used up", []act{pause(9)}, 0},
		{"a pause after the time is used up takes nothing back", []act{pause(11), resume(20)}, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var rang time.Duration
				rings, held := 0, 0
				c := newClock(10*time.Second, func() {
					if rings++; rings == 1 {
						rang = time.Since(begin)
					}
				})
				for second := range 60 {
					time.Sleep(time.Until(begin.Add(time.Duration(second) * time.Second)))
					for _, a := range tt.acts {
						if a.at == second {
							a.do(c)
							if held += a.holds; c.paused() != (held > 0) {
								t.Errorf("after %d s it stands still: %t", second, c.paused())
							}
						}
					}
				}
				synctest.Wait()
				c.pause()
				if rang != time.Duration(tt.ring)*time.Second || (rings > 0) != (tt.ring > 0) {
					t.Errorf("rang %d times, first after %s; want %d s", rings, rang, tt.ring)
				}
			})
		})
	}
}

// That a file, or a folder, cannot be read is told with the reason, and is no absence.
func TestADayBeginsAtMidnightWhereRalphRuns(t *testing.T) {
	zone := time.FixedZone("east", 5*60*60)
	now := time.Date(2026, 3, 1, 1, 11, 12, 13, zone)
	if got, want := Midnight(now), time.Date(2026, 3, 1, 0, 0, 0, 0, zone); !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhyASessionWasInterrupted(t *testing.T) {
	interrupted := agent.Report{Ending: ralph.Interrupted, Reason: "killed"}
	for _, tt := range []struct {
		name   string
		report agent.Report
		cause  error
		want   agent.Report
	}{
		{"nobody did it", interrupted, nil, interrupted},
		{"it had ended by itself", agent.Report{Ending: ralph.Finished, Reason: "fine"}, errTimeout, agent.Report{Ending: ralph.Finished, Reason: "fine"}},
		{"its time is up", interrupted, errTimeout, agent.Report{Ending: ralph.TimedOut, Reason: "timed out after 45m0s"}},
		{"it was idle", interrupted, errIdle, agent.Report{Ending: ralph.TimedOut, Reason: "timed out: idle for 10m0s, without an event, a signal, CPU use or a change in the work tree"}},
		{"the run's time is up", interrupted, errRunLimit, agent.Report{Ending: ralph.Interrupted, Reason: "interrupted: the run's time is up"}},
		{"its task was cancelled", interrupted, errCancelled, agent.Report{Ending: ralph.Interrupted, Reason: "interrupted: its task was cancelled"}},
		{"the run was stopped at once", interrupted, context.Canceled, agent.Report{Ending: ralph.Interrupted, Reason: "interrupted: the run was stopped at once"}},
	} {
		if diff := cmp.Diff(tt.want, withCause(tt.report, tt.cause, 45*time.Minute, 10*time.Minute)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestThePartsThatASessionChanged(t *testing.T) {
	before := hashes{Definitions: "a", Files: "a", Head: "a", WorkTree: "a"}
	for _, tt := range []struct {
		name    string
		now     hashes
		want    parts
		missing []string
	}{
		{"none", before, parts{}, []string{"definitions", "files", "head", "work_tree"}},
		{"the definitions", hashes{Definitions: "b", Files: "a", Head: "a", WorkTree: "a"}, parts{definitions: true}, []string{"files", "head", "work_tree"}},
		{"the files", hashes{Definitions: "a", Files: "b", Head: "a", WorkTree: "a"}, parts{files: true}, []string{"definitions", "head", "work_tree"}},
		{"the head", hashes{Definitions: "a", Files: "a", Head: "b", WorkTree: "a"}, parts{head: true}, []string{"definitions", "files", "work_tree"}},
		{"the work tree", hashes{Definitions: "a", Files: "a", Head: "a", WorkTree: "b"}, parts{workTree: true}, []string{"definitions", "files", "head"}},
		{"all", hashes{Definitions: "b", Files: "b", Head: "b", WorkTree: "b"}, parts{true, true, true, true}, []string{}},
	} {
		got := tt.now.differ(before)
		if got != tt.want || got.any() != (tt.want != parts{}) {
			t.Errorf("%s: got %+v", tt.name, got)
		}
		if diff := cmp.Diff(tt.missing, got.missing()); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		for _, or := range []parts{got.or(parts{}), parts{}.or(got), got.or(got)} {
			if or != tt.want {
				t.Errorf("%s: what has changed once stays so: %+v", tt.name, or)
			}
		}
	}
}
