package loop_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/proc"
	"ralph/loop/agent"
	"ralph/store"
)

// TestAnAgentStandsStill while its done is checked: acceptance kills it,
// and a message lets it go on.
func TestAnAgentStandsStill(t *testing.T) {
	const (
		accepted = "accepted"
		refused  = "refused"
		person   = "person"
		slow     = "slow"
		over     = "over"
		halted   = "halted"
		goes     = "goes on"
		killed   = "killed"
	)
	for _, tt := range []struct {
		name   string
		event  string
		verify string // once there is something to check; counts its runs
		text   string // the message to the agent
		answer agent.Answer
		then   string
		want   ralph.Status
		reason string
		checks int
	}{
		{"an accepted one kills it", accepted, "true", "", agent.Answer{Over: true}, killed, ralph.Completed, "done and verified", 1},
		{"what is refused is told, and it goes on", refused, "test -e more", "does not hold", agent.Answer{}, goes, ralph.Completed, "done and verified", 2},
		{"a person's word is on its way, and it goes on", person, "true", "", agent.Answer{Wait: true}, goes, ralph.Completed, "done and verified", 2},
		{"it stood for too long", slow, "sleep 0.5; false", "", agent.Answer{Over: true}, killed, ralph.Pending, "done was refused", 1},
		{"it had ended before", over, "true", "", agent.Answer{}, killed, ralph.Completed, "done and verified", 1},
		{"a person stops it meanwhile", halted, "sleep 60", "", agent.Answer{Over: true}, killed, ralph.Pending, "a person stopped it before the claim could be checked", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkshop(t)
			count := filepath.Join(t.TempDir(), "count")
			l := b.tree("test -e made || exit 0; echo x >> " + count + "; " + tt.verify)
			l.Session.Freeze = time.Hour
			if tt.event == slow {
				l.Session.Freeze = time.Millisecond
			}
			id := b.add(ralph.Task{Title: "A"})
			claim := func(ctx context.Context, a agent.Assignment, turn agent.Turn, made string) agent.Answer {
				write(t, filepath.Join(a.Dir, made), "x")
				if _, err := b.db.Say(ctx, a.TaskID, a.SessionID, "agent", finish); err != nil {
					t.Error(err)
				}
				return a.TurnEnded(ctx, turn)
			}
			_, s := b.once(l, deed(func(ctx context.Context, a agent.Assignment) (agent.Report, error) {
				report := agent.Report{Ending: ralph.Finished, Reason: "it ended", CostKnown: true}
				p := newEcho(t)
				turn := agent.Turn{Process: p.Process, Keep: func(proc.Member) bool { return true }}
				if tt.event == over {
					p.kill()
				}
				if tt.event == person {
					b.tx(func(tx *store.Tx) error {
						_, err := tx.AddComment(ralph.Comment{TaskID: id, Author: "eve", AuthorKind: ralph.ByHuman, Kind: ralph.Note, Body: "mind the gap"})
						return err
					})
				}
				if tt.event == halted {
					go func() {
						until(t, "the verification", func() bool { return exists(count) })
						b.tx(func(tx *store.Tx) error { return tx.Halt(a.SessionID, "eve") })
					}()
				}
				answer := claim(ctx, a, turn, "made")
				if !strings.Contains(answer.Text, tt.text) || tt.text == "" && answer != tt.answer || answer.Over != tt.answer.Over || answer.Wait != tt.answer.Wait {
					t.Errorf("it is told %+v, want %q, %+v", answer, tt.text, tt.answer)
				}
				if moves := p.moves(); moves != (tt.then == goes) {
					t.Errorf("it goes on: %t", moves)
				} else if moves {
					if answer := claim(ctx, a, turn, "more"); answer != (agent.Answer{Over: true}) {
						t.Errorf("the second time it is told %+v", answer)
					}
					if p.moves() {
						t.Error("it goes on after an accepted one")
					}
				}
				p.kill()
				return report, nil
			}))
			task := b.task(id)
			if task.Status != tt.want || !strings.Contains(task.StatusReason, tt.reason) {
				t.Errorf("TASK-%d is %s: %s", id, task.Status, task.StatusReason)
			}
			if ran, err := os.ReadFile(count); err != nil || strings.Count(string(ran), "x") != tt.checks {
				t.Errorf("it was checked %d times, want %d (%v)", strings.Count(string(ran), "x"), tt.checks, err)
			}
			noted := 0
			b.tx(func(tx *store.Tx) error {
				events, err := tx.Events(0, 1000)
				for _, e := range events {
					if e.Type == ralph.EventDoneRefused && e.SessionID == s.ID {
						noted++
					}
				}
				return err
			})
			if want := map[bool]int{true: 1}[tt.event == refused]; noted != want {
				t.Errorf("%d refusals are noted, want %d", noted, want)
			}
		})
	}
}

// An echo is a process that repeats its input.
type echo struct {
	*proc.Process
	t      *testing.T
	in     *os.File
	out    *os.File
	lines  *bufio.Reader
	exited chan struct{}
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	stdin, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{t: t, in: in, out: out, lines: bufio.NewReader(out), exited: make(chan struct{})}
	if e.Process, err = proc.Start(proc.Spec{Args: []string{"cat"}, Env: os.Environ(), Stdin: stdin, Stdout: stdout}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stdin.Close(), stdout.Close()); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(e.exited)
		if _, err := e.Wait(); err != nil {
			t.Error(err)
		}
	}()
	return e
}

// moves reports whether the process answers. If it does not, it must be frozen or gone.
func (e *echo) moves() bool {
	e.t.Helper()
	if err := e.out.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		e.t.Error(err)
	}
	_, err := e.in.WriteString("x\n")
	if err == nil {
		_, err = e.lines.ReadString('\n')
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		e.t.Error("it is neither gone nor moves")
	}
	return err == nil
}

// kill ends the process in any case.
func (e *echo) kill() {
	_ = e.Kill() // it may be gone
	<-e.exited
	_ = e.in.Close()
}
