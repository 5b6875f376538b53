package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdleness looks once a second, with a limit of ten.
func TestIdleness(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	for _, tt := range []struct {
		name  string
		cpu   func(second int) time.Duration // used so far
		tree  func(second int) string
		event int // the second in which an event is seen; 0 for none
		busy  int // the second in which ralph itself is busy; 0 for none
		over  int // the second in which the session counts as idle
	}{
		{name: "silence is over after the limit", over: 10},
		{name: "an event counts", event: 4, over: 14},
		{name: "ralph's own work counts", busy: 6, over: 16},
		{name: "CPU use counts", cpu: func(s int) time.Duration { return time.Duration(min(s, 7)) * 100 * time.Millisecond }, over: 17},
		{name: "what a waiting process uses does not", cpu: func(s int) time.Duration { return time.Duration(s) * time.Millisecond }, over: 10},
		{name: "a change in the work tree counts", tree: func(s int) string { return map[bool]string{true: "b", false: "a"}[s > 7] }, over: 20},
		{name: "just the share of a waiting process does not", cpu: func(s int) time.Duration { return time.Duration(s) * 10 * time.Millisecond }, over: 10},
		{name: "the work tree is looked at when half of the limit has passed", tree: func(s int) string { return map[bool]string{true: "b", false: "a"}[s > 5] }, over: 20},
		{name: "and not before", tree: func(s int) string { return map[bool]string{true: "b", false: "a"}[s > 4] }, over: 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			second := 0
			i := &idleness{
				limit: 10 * time.Second, alive: start, last: start,
				cpu: func() (time.Duration, error) {
					if tt.cpu == nil {
						return 0, nil
					}
					return tt.cpu(second), nil
				},
				tree: func(context.Context) (string, error) {
					if tt.tree == nil {
						return "a", nil
					}
					return tt.tree(second), nil
				},
			}
			for second = 1; second < 60; second++ {
				if second == tt.event {
					i.seen.Store(at(second).UnixNano())
				}
				over, err := i.over(t.Context(), at(second), second == tt.busy)
				if err != nil {
					t.Fatal(err)
				}
				if over {
					break
				}
			}
			if second != tt.over {
				t.Errorf("over after %d s, want %d", second, tt.over)
			}
		})
	}
}

func TestIdlenessBetweenItsLooks(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{10 * time.Second: 500 * time.Millisecond, 100 * time.Millisecond: 20 * time.Millisecond} {
		if got := (&idleness{limit: limit}).interval(); got != want {
			t.Errorf("with a limit of %s it looks each %s, want %s", limit, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("no tree")
		i := newIdleness(10*time.Second, func() (time.Duration, error) { return 0, nil }, func(context.Context) (string, error) { return "", broken })
		time.Sleep(9 * time.Second)
		i.event()
		time.Sleep(4 * time.Second)
		if over, err := i.over(t.Context(), time.Now(), false); over || err != nil {
			t.Errorf("after an event it is over: %t, %v", over, err)
		}
		time.Sleep(6 * time.Second)
		if over, err := i.over(t.Context(), time.Now(), false); over || !errors.Is(err, broken) {
			t.Errorf("without a look at the work tree it is over: %t, %v", over, err)
		}
	})
}
