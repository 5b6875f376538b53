package loop

import (
	"errors"
	"path/filepath"
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

// TestASessionsClock runs ten seconds down, in which it stands still now and then.
// That a file, or a folder, cannot be read is told with the reason, and is no absence.
func TestADayBeginsAtMidnightWhereRalphRuns(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("east", 5*60*60)
	now := time.Date(2026, 3, 1, 1, 11, 12, 13, zone)
	if got, want := Midnight(now), time.Date(2026, 3, 1, 0, 0, 0, 0, zone); !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhatPeopleAskEndsWhatIsDoneNowOrSoon(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		control   string
		grace     time.Duration
		now, soon bool
	}{
		{ralph.ControlNone, 0, false, false},
		{ralph.ControlNone, time.Minute, false, false},
		{ralph.ControlPause, 0, false, false},
		{ralph.ControlPause, time.Minute, false, false},
		{ralph.ControlStop, 0, true, true},
		{ralph.ControlStop, time.Minute, false, true},
		{ralph.ControlStopNow, 0, true, false},
		{ralph.ControlStopNow, time.Minute, true, false},
	} {
		if now, soon := obeyed(tt.control, tt.grace); now != tt.now || soon != tt.soon {
			t.Errorf("%q with a grace of %s: now %t, soon %t", tt.control, tt.grace, now, soon)
		}
	}
}

// TestWhoseWordSparesAReview: a discipline's "none" spares people's tasks. Agents choose the discipline of their own.
func TestWhoseWordSparesAReview(t *testing.T) {
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
