package ralph_test

import (
	"slices"
	"testing"
	"time"

	"ralph"
)

func at(minute int) ralph.Time {
	return ralph.At(time.Date(2026, 3, 1, 10, minute, 0, 0, time.UTC))
}

func TestTheExpectedWaysOfASession(t *testing.T) {
	way := []ralph.Phase{"idle", "analyzing", "implementing", "testing", "implementing", "testing", "committing", "reviewing", "done"}
	for i := 1; i < len(way); i++ {
		if !ralph.ExpectedPhase(way[i-1], way[i]) {
			t.Errorf("%s → %s is unexpected", way[i-1], way[i])
		}
	}
	for _, tt := range []struct {
		from, to ralph.Phase
		want     bool
	}{
		{"committing", "done", true},
		{"analyzing", "failed", true},
		{"idle", "failed", true},
		{"reviewing", "failed", true},
		{"done", "failed", false},
		{"idle", "implementing", false},
		{"analyzing", "done", false},
		{"reviewing", "testing", false},
		{"testing", "testing", false},
	} {
		if got := ralph.ExpectedPhase(tt.from, tt.to); got != tt.want {
			t.Errorf("%s → %s: expected %t, want %t", tt.from, tt.to, got, tt.want)
		}
	}
}

func TestAReportWinsOverAnObservationOfTheSameMoment(t *testing.T) {
	reported := ralph.PhaseChange{State: "implementing", Timestamp: at(0), Source: ralph.Reported}
	for _, tt := range []struct {
		name string
		last ralph.PhaseChange
		seen ralph.Phase
		at   ralph.Time
		want bool
	}{
		{"at the same moment", reported, "testing", ralph.At(at(0).Add(500 * time.Millisecond)), false},
		{"later", reported, "testing", at(1), true},
		{"the same phase", reported, "implementing", at(1), false},
		{"reading while it works", reported, "analyzing", at(1), false},
		{"reading at the beginning", ralph.PhaseChange{State: "idle", Timestamp: at(0), Source: ralph.Observed}, "analyzing", at(0), true},
		{"after the end", ralph.PhaseChange{State: "done", Timestamp: at(0), Source: ralph.Observed}, "testing", at(1), false},
	} {
		if got := ralph.Observe(tt.last, tt.seen, tt.at); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestTimeInState(t *testing.T) {
	s := ralph.Session{State: "failed", History: []ralph.PhaseChange{
		{State: "idle", Timestamp: at(0), Source: "observed"},
		{State: "analyzing", Timestamp: at(1), Source: "reported"},
		{State: "implementing", Timestamp: at(3), Source: "observed"},
		{State: "failed", Timestamp: at(40), Source: "observed"},
	}}
	stays := s.Stays(at(59))
	if len(stays) != 3 || stays[0].Seconds != 60 || stays[1].Seconds != 120 || stays[2].Seconds != 37*60 || stays[1].Long || !stays[2].Long || s.Stood() != "implementing" {
		t.Errorf("got %+v, stood at %s", stays, s.Stood())
	}
	s.History = append(s.History[:2:2], ralph.PhaseChange{State: "analyzing", Timestamp: at(9), Source: "reported"}, ralph.PhaseChange{State: "testing", Timestamp: at(12), Source: "observed", Unexpected: true})
	want := []ralph.Stay{
		{Phase: "idle", Seconds: 60, Source: "observed", Long: true},
		{Phase: "analyzing", Seconds: 11 * 60, Source: "reported", Long: true},
		{Phase: "testing", Seconds: 60, Source: "observed", Unexpected: true},
	}
	if stays = s.Stays(at(13)); !slices.Equal(stays, want) {
		t.Errorf("a phase that is reported twice: got %+v, want %+v", stays, want)
	}
	s.History = s.History[:2]
	if stays = s.Stays(at(20)); len(stays) != 2 || stays[1].Seconds != 19*60 || !stays[1].Long {
		t.Errorf("while it runs: %+v", stays)
	}
}
