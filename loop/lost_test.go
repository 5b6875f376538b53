package loop_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/internal/proc"
	"ralph/loop/agent"
	"ralph/store"
)

// unlucky is an agent whose supervisor is killed during its first start, while another machine is lost.
type unlucky struct {
	speaker
	started int
}

func (u *unlucky) Work(ctx context.Context, a agent.Assignment) (agent.Report, error) {
	if u.started++; u.started == 1 {
		err := u.db.Tx(ctx, func(tx *store.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE runs SET lease_until = '2000-01-01T00:00:00.000Z' WHERE process = $1`, elsewhere)
			return err
		})
		return agent.Report{}, errors.Join(err, fmt.Errorf("start claude: %w", proc.ErrSupervisorLost))
	}
	return u.speaker.Work(ctx, a)
}

// elsewhere is a process of another machine.
const elsewhere = "other-boot/pid:[1] 7 7 token"

func TestASupervisorThatIsKilledAtTheStartCostsItsSessionAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(dir, ".ralph", "ralph.db")), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.AddTask(ralph.Task{Title: "One", Priority: 2}, "human")
		if err == nil {
			_, err = tx.StartRun(elsewhere, ralph.Limits{}, "")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	l := newLoop(t, db, dir, &unlucky{speaker: speaker{db}})
	l.Limits.MaxSessions = 20
	if result, err := l.Run(t.Context()); err != nil || result.Status != ralph.ExitOK {
		t.Fatalf("got %+v, %v; want the run to go on", result, err)
	}
	var sessions []ralph.Session
	if err := db.View(t.Context(), func(tx *store.Tx) (err error) {
		sessions, err = tx.Sessions(store.SessionFilter{})
		if r, rerr := tx.Run(1); rerr != nil || r.EndedAt.IsZero() {
			t.Errorf("of a machine that was lost meanwhile and left no work: %+v, %v; want its run ended", r, rerr)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	endings := map[ralph.Ending]int{}
	for _, s := range sessions {
		endings[s.Ending]++
	}
	if endings[ralph.Lost] != 1 || endings[ralph.Finished] == 0 {
		t.Errorf("got the endings %v, want one that was lost and others", endings)
	}
}
