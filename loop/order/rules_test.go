package order

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

func TestTheModelOfASession(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		models Models
		task   ralph.Task
		of     string // its discipline's
		want   string
	}{
		{"nothing is said", Models{}, ralph.Task{}, "", ""},
		{"the configuration's", Models{Config: "config"}, ralph.Task{}, "", "config"},
		{"the discipline's wins over it", Models{Config: "config"}, ralph.Task{}, "discipline", "discipline"},
		{"escalation is not due after one stuck session", Models{Config: "config", Escalation: "opus"}, ralph.Task{StuckCount: 1}, "discipline", "discipline"},
		{"escalation is due after two", Models{Config: "config", Escalation: "opus"}, ralph.Task{StuckCount: 2}, "discipline", "opus"},
		{"and after more", Models{Escalation: "opus"}, ralph.Task{StuckCount: 3}, "", "opus"},
		{"it can be switched off", Models{Config: "config"}, ralph.Task{StuckCount: 2}, "", "config"},
		{"the task's wins over escalation", Models{Escalation: "opus"}, ralph.Task{StuckCount: 2, Model: "task"}, "", "task"},
		{"the flag's wins over all", Models{Flag: "flag", Config: "config", Escalation: "opus"}, ralph.Task{StuckCount: 2, Model: "task"}, "discipline", "flag"},
	} {
		if got := tt.models.choose(tt.task, ralph.Discipline{Model: tt.of}); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestADayBeginsAtMidnightWhereRalphRuns(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("east", 5*60*60)
	now := time.Date(2026, 3, 1, 1, 11, 12, 13, zone)
	if got, want := Midnight(now), time.Date(2026, 3, 1, 0, 0, 0, 0, zone); !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTheChosenAgent(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	rests := func(name string, wait time.Duration, ending ralph.Ending) store.AgentState {
		return store.AgentState{Agent: name, WaitUntil: ralph.At(now.Add(wait)), Reason: "why", Ending: ending, Failures: 1}
	}
	used := func(name string, wait time.Duration) ralph.UsageWindow {
		return ralph.UsageWindow{Agent: name, Name: "five_hour", Utilization: 0.9, ResetsAt: ralph.At(now.Add(wait))}
	}
	limited := func(name string, wait time.Duration) store.AgentState { return rests(name, wait, ralph.RateLimited) }
	for _, tt := range []struct {
		name    string
		agents  string
		states  []store.AgentState
		windows []ralph.UsageWindow
		want    string
		wait    time.Duration
	}{
		{"the one that is wanted", "a b", nil, nil, "a", 0},
		{"of another's limit it knows nothing", "a b", []store.AgentState{limited("b", time.Hour)}, nil, "a", 0},
		{"limited: the next", "a b c", []store.AgentState{limited("a", time.Hour)}, nil, "b", 0},
		{"both limited: the third", "a b c", []store.AgentState{limited("a", 2*time.Hour), limited("b", time.Hour)}, nil, "c", 0},
		{"its time is over: back", "a b", []store.AgentState{limited("a", 0)}, nil, "a", 0},
		{"all limited: the earliest is waited for", "a b", []store.AgentState{limited("a", 2*time.Hour), limited("b", time.Hour)}, nil, "", time.Hour},
		{"alone: it is waited for", "a", []store.AgentState{limited("a", time.Hour)}, nil, "", time.Hour},
		{"a used window is a limit", "a b", nil, []ralph.UsageWindow{used("a", time.Hour)}, "b", 0},
		{"of its own account", "a b", nil, []ralph.UsageWindow{used("b", time.Hour)}, "a", 0},
		{"the longer of both counts", "a", []store.AgentState{limited("a", time.Minute)}, []ralph.UsageWindow{used("a", time.Hour)}, "", time.Hour},
		{"overloaded", "a b", []store.AgentState{rests("a", time.Hour, ralph.Overloaded)}, nil, "b", 0},
		{"no credit", "a b", []store.AgentState{rests("a", time.Hour, ralph.Billing)}, nil, "b", 0},
		{"no credentials", "a b", []store.AgentState{rests("a", time.Hour, ralph.AuthFailed)}, nil, "b", 0},
		{
			"one without credentials is not waited for where another is", "a b",
			[]store.AgentState{rests("a", time.Minute, ralph.AuthFailed), limited("b", time.Hour)},
			nil, "", time.Hour,
		},
		{
			"whichever comes first", "b a",
			[]store.AgentState{rests("a", time.Minute, ralph.Billing), limited("b", time.Hour)},
			nil, "", time.Hour,
		},
		{"not reached: it is waited for", "a b", []store.AgentState{rests("a", time.Hour, ralph.Network)}, nil, "", time.Hour},
		{
			"the next was not reached: it is waited for", "a b c",
			[]store.AgentState{limited("a", time.Hour), rests("b", time.Minute, ralph.Network)},
			nil, "", time.Minute,
		},
	} {
		got := firstAble(strings.Fields(tt.agents), tt.states, tt.windows, map[string]int{"five_hour": 80}, now)
		if want := now.Add(tt.wait); got.Name != tt.want || tt.wait != 0 && (!got.Until.Equal(want) || got.Why == "") {
			t.Errorf("%s: got %q until %s (%s), want %q until %s", tt.name, got.Name, got.Until, got.Why, tt.want, want)
		}
	}
}

func TestAnAgentThatPeopleHaveToMendDoesNotStandIn(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for ending, want := range map[ralph.Ending]bool{
		"": true, ralph.RateLimited: true, ralph.Overloaded: true, ralph.AuthFailed: false, ralph.Billing: false,
	} {
		states := []store.AgentState{{Agent: "b", WaitUntil: ralph.At(now.Add(time.Hour)), Ending: ending}}
		if got := StandIns([]string{"a", "b"}, "a", states, now); got != want {
			t.Errorf("%q: got %t", ending, got)
		}
		if !StandIns([]string{"a", "b"}, "a", states, now.Add(time.Hour)) {
			t.Errorf("%q: it does not even when its time is over", ending)
		}
	}
	if StandIns([]string{"a"}, "a", nil, now) {
		t.Error("an agent stands in for itself")
	}
}

// TestSparedReviews: a discipline's "none" spares people's tasks, but not agents' tasks: agents choose the discipline
// themselves.
func TestSparedReviews(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		return errors.Join(tx.PutDiscipline(ralph.Discipline{Name: "docs", Review: ralph.NoReview}),
			tx.PutDiscipline(ralph.Discipline{Name: "core", Review: "critic"}))
	}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		task ralph.Task
		want string // "" leaves it to the configuration
	}{
		{"nothing is said", ralph.Task{Origin: ralph.ByHuman}, ""},
		{"the discipline of a person's task", ralph.Task{Origin: ralph.ByHuman, Discipline: "docs"}, ralph.NoReview},
		{"the discipline of an agent's task", ralph.Task{Origin: ralph.ByAgent, Discipline: "docs"}, ""},
		{"a reviewer of an agent's task", ralph.Task{Origin: ralph.ByAgent, Discipline: "core"}, "critic"},
		{"the task's own wins", ralph.Task{Origin: ralph.ByAgent, Discipline: "core", Review: ralph.NoReview}, ralph.NoReview},
	} {
		got, err := store.Read(t.Context(), db, func(tx *store.Tx) (string, error) { return reviewOf(tx, tt.task) })
		if err != nil || got != tt.want {
			t.Errorf("%s: got %q (%v), want %q", tt.name, got, err, tt.want)
		}
	}
}
