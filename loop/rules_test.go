package loop

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"ralph"
	"ralph/internal/testresult"
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

func TestWhatARedBaselineWillNotExcuse(t *testing.T) {
	green := outcome{Check: ralph.Check{Command: "lint", Passed: true}}
	silent := outcome{Check: ralph.Check{Command: "make test", Exit: 2}}
	named := outcome{Check: ralph.Check{Command: "go test -json", Exit: 1}, Tests: &testresult.Results{}}
	for _, tt := range []struct {
		name    string
		strict  bool
		results []outcome
		want    string
	}{
		{"nothing was run", false, nil, ""},
		{"all is green", true, []outcome{green}, ""},
		{"a command that names no tests", false, []outcome{green, silent}, "`make test` exits 2"},
		{"one that names its tests is excused for them", false, []outcome{named}, ""},
		{"but not where that is strict", true, []outcome{named, silent, green}, "`go test -json` exits 1, `make test` exits 2"},
	} {
		l := &Loop{Verification: Verification{Strict: tt.strict}}
		if got := l.inexcusable(tt.results); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestAProtectedFileIsItsContentAndWhetherItRuns(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("tests/check.sh", "exit 1")
	put("tests/deep/a.golden", "a")
	put("tests/.git/config", "x")
	put("other.sh", "x")
	digests := func() map[string]string {
		t.Helper()
		d, err := digestProtected(dir, []string{"tests/**", "tests/*.sh", "nowhere/**"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	before := digests()
	if len(before) != 2 || before["tests/check.sh"] == "" || before["tests/deep/a.golden"] == "" {
		t.Fatalf("got %q", before)
	}
	for _, tt := range []struct {
		name   string
		change func() error
		now    bool // it is another file now than at the beginning
	}{
		{"it may be executed", func() error { return os.Chmod(filepath.Join(dir, "tests/check.sh"), 0o700) }, true},
		{"by others alone, too", func() error { return os.Chmod(filepath.Join(dir, "tests/check.sh"), 0o601) }, true},
		{"it may be read by others", func() error { return os.Chmod(filepath.Join(dir, "tests/check.sh"), 0o644) }, false},
		{"its content is another", func() error { put("tests/check.sh", "exit 0"); return nil }, true},
		{"as it was", func() error { put("tests/check.sh", "exit 1"); return nil }, false},
		{"it is gone", func() error { return os.Remove(filepath.Join(dir, "tests/check.sh")) }, true},
		{"a link is there instead", func() error { return os.Symlink("../other.sh", filepath.Join(dir, "tests/check.sh")) }, true},
	} {
		if err := tt.change(); err != nil {
			t.Fatal(err)
		}
		if got := digests()["tests/check.sh"] != before["tests/check.sh"]; got != tt.now {
			t.Errorf("%s: another file: %t", tt.name, got)
		}
	}
	if got := digests()["tests/check.sh"]; got != "link ../other.sh" {
		t.Errorf("a link is %q", got)
	}
}

func TestADayBeginsAtMidnightWhereRalphRuns(t *testing.T) {
	zone := time.FixedZone("east", 5*60*60)
	now := time.Date(2026, 3, 1, 1, 11, 12, 13, zone)
	if got, want := Midnight(now), time.Date(2026, 3, 1, 0, 0, 0, 0, zone); !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
