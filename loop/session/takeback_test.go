package session

import (
	"testing"

	"ralph"
	"ralph/internal/worktree"
	"ralph/signals"
)

func TestWhatFailsIsTakenBack(t *testing.T) {
	for _, tt := range []struct {
		name      string
		row       ralph.Session
		d         signals.Decision
		unchecked bool
		want      bool
	}{
		{"stuck", ralph.Session{Ending: ralph.Finished}, signals.Decision{Closing: ralph.VerbStuck}, false, true},
		{"a refused done", ralph.Session{Ending: ralph.Finished}, signals.Decision{Closing: ralph.VerbDone}, false, true},
		{"out of time", ralph.Session{Ending: ralph.TimedOut}, signals.Decision{Closing: ralph.VerbStuck}, false, true},
		{"out of time, amended", ralph.Session{Ending: ralph.TimedOut}, signals.Decision{}, false, false},
		{"lost", ralph.Session{Ending: ralph.Lost}, signals.Decision{}, false, true},
		{"a done that could not be checked", ralph.Session{Ending: ralph.Lost}, signals.Decision{}, true, false},
		{"completed", ralph.Session{Ending: ralph.Finished}, signals.Decision{Closing: ralph.VerbDone, Accepted: true}, false, false},
		{"partial", ralph.Session{Ending: ralph.Finished}, signals.Decision{Closing: ralph.VerbPartial}, false, false},
		{"partial, out of time", ralph.Session{Ending: ralph.TimedOut}, signals.Decision{Closing: ralph.VerbPartial}, false, false},
		{"partial, then lost", ralph.Session{Ending: ralph.Lost}, signals.Decision{Closing: ralph.VerbPartial}, false, false},
		{"called off", ralph.Session{Ending: ralph.Finished}, signals.Decision{}, false, false},
		{"interrupted", ralph.Session{Ending: ralph.Interrupted}, signals.Decision{}, false, false},
		{"rate limited", ralph.Session{Ending: ralph.RateLimited}, signals.Decision{}, false, false},
		{"a worker's", ralph.Session{Ending: ralph.Finished, Worker: "w"}, signals.Decision{Closing: ralph.VerbStuck}, false, false},
		{"a person's", ralph.Session{Ending: ralph.Finished, Origin: ralph.FromHuman}, signals.Decision{Closing: ralph.VerbStuck}, false, false},
	} {
		if tt.row.Origin == "" {
			tt.row.Origin = ralph.FromLoop
		}
		if got := failed(tt.row, tt.d, tt.unchecked); got != tt.want {
			t.Errorf("%s: got %t", tt.name, got)
		}
	}
}

func TestWhatStaysIsNamed(t *testing.T) {
	for want, got := range map[string]string{
		"": takenBack(worktree.TakenBack{}, 3, nil),
		"what it changed is taken back (a, b); `ralph snapshot restore 3` brings it back": takenBack(
			worktree.TakenBack{Files: []string{"a", "b"}}, 3, nil),
		"not as it left them any more, and so left alone: a; repositories within stay as it left them: lib; its commits stay: 0123456": takenBack(
			worktree.TakenBack{Left: []string{"a"}, Within: []string{"lib"}}, 0, []string{"0123456789"}),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
