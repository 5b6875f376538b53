package loop_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/loop"
	"ralph/loop/session"
	"ralph/store"
)

func (b *workshop) inbox(kind string) (found []store.InboxItem) {
	b.t.Helper()
	var all []store.InboxItem
	var counts map[string]int
	if err := b.db.View(b.t.Context(), func(tx *store.Tx) (err error) {
		if counts, err = tx.InboxCounts(); err != nil {
			return err
		}
		all, err = tx.Inbox()
		return err
	}); err != nil {
		b.t.Fatal(err)
	}
	for _, i := range all {
		if i.Kind == kind {
			found = append(found, i)
		}
	}
	if counts[kind] != len(found) {
		b.t.Errorf("the inbox has %d of %s, and says %d", len(found), kind, counts[kind])
	}
	return found
}

func (b *workshop) claimFor(l *loop.Loop, id int64, person string) ralph.Session {
	b.t.Helper()
	s, _, err := l.ClaimFor(b.t.Context(), id, person)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// A person's claim does not expire, but it is not forgotten either.
func TestAPersonsClaimIsInTheInboxAfterADay(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree()
	id := b.add(ralph.Task{Title: "A"})
	b.claimFor(l, id, "ann")
	b.passed.Store(int64(23 * time.Hour))
	if got := b.inbox("claim"); len(got) != 0 {
		t.Errorf("after 23 hours: %+v", got)
	}
	b.passed.Store(int64(25 * time.Hour))
	if err := l.Lapse(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := b.inbox("claim")
	if len(got) != 1 || got[0].TaskID != id || !strings.HasPrefix(got[0].Text, "ann has had it since ") {
		t.Errorf("after 25 hours: %+v", got)
	}
	if task := b.task(id); task.Status != ralph.InProgress {
		t.Errorf("it is %s", task.Status)
	}
	if _, _, err := l.ClaimFor(t.Context(), id, "bob"); !errors.Is(err, ralph.ErrConflict) || !strings.Contains(err.Error(), "ann, who claimed it") {
		t.Errorf("got %v", err)
	}
}

// A terminal and several chats may end the same claim at once: it is decided once.
func TestAClaimIsCompletedOnce(t *testing.T) {
	t.Parallel()
	b := newWorkshop(t)
	l := b.tree("test -f made")
	id := b.add(ralph.Task{Title: "A"})
	b.claimFor(l, id, "ann")
	write(t, filepath.Join(l.Here.Dir, "made"), "x")
	release, asked := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		_, _, err := l.Sessions().Complete(context.WithoutCancel(t.Context()), id, session.Completion{Author: "agent", Summary: "made it", Confirm: func(context.Context, session.Checked) (string, error) {
			close(asked)
			<-release
			return "", nil
		}})
		first <- err
	}()
	<-asked
	if _, _, err := l.Sessions().Complete(t.Context(), id, session.Completion{Author: "ann", Summary: "made it"}); !errors.Is(err, ralph.ErrConflict) {
		t.Errorf("a second completion meanwhile: %v", err)
	}
	if _, err := l.Sessions().ReleaseFor(t.Context(), id, "ann"); !errors.Is(err, ralph.ErrConflict) {
		t.Errorf("a release meanwhile: %v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if task := b.task(id); task.Status != ralph.Completed || task.Attempts != 1 {
		t.Errorf("it is %s after %d attempts", task.Status, task.Attempts)
	}
}

func TestACompletionThatIsRefusedRecordsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setUp   func(l *loop.Loop)
		confirm string
		want    string
	}{
		"a red test": {func(*loop.Loop) {}, "", "Command: test -f made"},
		"a protected file": {func(l *loop.Loop) {
			write(t, filepath.Join(l.Here.Dir, "made"), "x")
			write(t, filepath.Join(l.Here.Dir, "kept"), "x")
		}, "", "- kept"},
		"a person says no":   {func(l *loop.Loop) { write(t, filepath.Join(l.Here.Dir, "made"), "x") }, "not yet", "not yet"},
		"another work tree":  {func(l *loop.Loop) { l.Here.Dir = t.TempDir() }, "", "was claimed in another work tree"},
		"it was called off":  {nil, "", "no person has claimed it"},
		"a stopped terminal": {func(*loop.Loop) {}, "", "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWorkshop(t)
			l := b.tree()
			l.Check.Protect = []string{"kept"}
			id := b.add(ralph.Task{Title: "A", Verify: []string{"test -f made"}})
			s := b.claimFor(l, id, "ann")
			want := ralph.InProgress
			if c.setUp != nil {
				c.setUp(l)
			} else {
				want = ralph.Cancelled
				if err := b.db.Tx(t.Context(), func(tx *store.Tx) error { _, err := tx.Cancel(id, "bob"); return err }); err != nil {
					t.Fatal(err)
				}
				if err := l.Lapse(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			if name == "a stopped terminal" {
				cancel()
			}
			defer cancel()
			refused, d, err := l.Sessions().Complete(ctx, id, session.Completion{
				Author: "ann", Summary: "made it", Learnings: []string{"x is y"},
				Confirm: func(context.Context, session.Checked) (string, error) { return c.confirm, nil },
			})
			said := refused
			if err != nil {
				said += err.Error()
			}
			if d.Status != "" || !strings.Contains(said, c.want) {
				t.Errorf("got %q, %q, %v; want …%s…", refused, d.Status, err, c.want)
			}
			var signals int
			if err := b.db.View(t.Context(), func(tx *store.Tx) error {
				list, err := tx.SessionSignals(s.ID)
				signals = len(list)
				return err
			}); err != nil || signals != 0 {
				t.Errorf("%d signals, %v", signals, err)
			}
			if task := b.task(id); task.Status != want || task.Attempts != 0 || task.VerifyFailures != 0 {
				t.Errorf("it is %s, %d attempts, %d failures", task.Status, task.Attempts, task.VerifyFailures)
			}
		})
	}
}
