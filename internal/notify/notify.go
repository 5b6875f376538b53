// Package notify tells people and programs what happens while nobody watches:
// by webhooks, signed as Standard Webhooks, in the forms that common chat
// services take, and by a command (unattended, "Notifications and observation").
//
// It reads the log of events and nothing else. It never takes part in a run: it
// decides nothing, and whatever a receiver does, the loop does not wait for it.
//
// Each receiver resumes where it stood, over restarts and crashes. It gets every
// event that it wants, in order and at least once; what comes twice has the same
// id. What a receiver has not taken after a bounded number of tries is dropped
// with a line in the log. URLs and secrets are never logged.
package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"ralph"
	"ralph/store"
)

// A Notifier tells receivers of events. Its fields are set before Run and not
// changed after.
type Notifier struct {
	Store     *store.DB
	Receivers []Receiver
	Project   string          // how the project is called in what is sent
	From      int64           // the event after which a receiver begins that has never read
	Over      <-chan struct{} // closed when no more events are to come; nil if they always may
	Drain     time.Duration   // what is left for deliveries once Over is closed
	Tries     int             // of each delivery
	Timeout   time.Duration   // of each try
	Log       *slog.Logger

	// Transport carries the requests; nil is the usual one.
	Transport http.RoundTripper
}

const (
	afterError = 30 * time.Second // how long a database that does not answer is left alone
	batch      = 200              // events read at once

	firstWait = time.Second     // before the second try
	waitGrows = 4               // times, with each further try
	longest   = 5 * time.Minute // between two tries, whatever the receiver asks for
)

// Run delivers until ctx ends, or until Over is closed and all is delivered, for
// at most Drain after that. What is left then is delivered by the next Run. It
// leaves no goroutine and no process behind. The error is one of the receivers
// or of the database, before anything was delivered.
func (n *Notifier) Run(ctx context.Context) error {
	if len(n.Receivers) == 0 {
		return nil
	}
	lines, err := n.begin(ctx)
	if err != nil {
		return fmt.Errorf("notifications: %w", err)
	}
	defer lines[0].client.CloseIdleConnections() // all share one
	ctx, cancel := context.WithCancel(ctx)
	expired := make(chan struct{})
	go func() {
		defer close(expired)
		n.expire(ctx, cancel)
	}()
	var g errgroup.Group
	for _, l := range lines {
		g.Go(func() error { l.run(ctx); return nil })
	}
	err = g.Wait()
	cancel()
	<-expired
	return err
}

// expire cancels when the time for draining is over.
func (n *Notifier) expire(ctx context.Context, cancel func()) {
	select {
	case <-ctx.Done():
		return
	case <-n.Over:
	}
	select {
	case <-ctx.Done():
	case <-time.After(n.Drain):
		cancel()
	}
}

// A line is what leads to one receiver.
type line struct {
	*Notifier
	to     Receiver
	name   string // for people
	reader string // under which its position is stored
	client *http.Client
	at     int64 // the last event that was dealt with
	stored int64 // of that, what the database knows
}

// begin checks the receivers and finds where each of them stands. That a new one
// begins is stored at once: from then on nothing is lost to it.
func (n *Notifier) begin(ctx context.Context) ([]*line, error) {
	lines, err := n.lines()
	if err != nil {
		return nil, err
	}
	return lines, n.Store.Tx(ctx, func(tx *store.Tx) error {
		for _, l := range lines {
			at, known, err := tx.ReaderPosition(l.reader)
			if err == nil && !known {
				at = n.From
				err = tx.SetReaderPosition(l.reader, at)
			}
			if err != nil {
				return err
			}
			l.at, l.stored = at, at
		}
		return nil
	})
}

func (n *Notifier) lines() ([]*line, error) {
	client := n.client()
	var lines []*line
	taken := map[string]int{}
	for i, r := range n.Receivers {
		if err := r.Check(); err != nil {
			return nil, fmt.Errorf("receiver %d: %w", i+1, err)
		}
		reader := r.key()
		if taken[reader]++; taken[reader] > 1 {
			reader = fmt.Sprintf("%s#%d", reader, taken[reader])
		}
		name := fmt.Sprintf("%d (%s)", i+1, r.label())
		lines = append(lines, &line{Notifier: n, to: r, name: name, reader: reader, client: client})
	}
	return lines, nil
}

// run tells one receiver of events until ctx ends or all is told.
func (l *line) run(ctx context.Context) {
	for ctx.Err() == nil {
		// Looked at before reading: all that was recorded until then is read.
		over := closed(l.Over)
		var pause <-chan time.Time
		changed := l.Store.Changed()
		told, more, err := l.once(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			l.Log.Warn("events cannot be read for notifications", "receiver", l.name, "error", err)
			changed, pause = nil, time.After(afterError)
		case more:
			continue
		case over:
			l.save(ctx)
			return
		}
		if told {
			continue
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-pause:
		case <-l.unlessClosed(over):
		}
	}
	l.Log.Warn("notifications were cut short; the next run delivers what is left", "receiver", l.name, "after_event", l.at)
	l.save(ctx)
}

// unlessClosed is Over, as long as it is news.
func (l *line) unlessClosed(over bool) <-chan struct{} {
	if over {
		return nil
	}
	return l.Over
}

// once reads a batch of events and tells of them. told says that something was
// told, more that there may be further events already.
func (l *line) once(ctx context.Context) (told, more bool, err error) {
	events, err := l.read(ctx)
	if err != nil {
		return false, false, err
	}
	for _, e := range events {
		wanted := slices.DeleteFunc(e.notes, func(note Notification) bool { return !l.to.wants(note.Type) })
		for _, note := range wanted {
			if !l.deliver(ctx, note) {
				return told, false, ctx.Err()
			}
		}
		l.at = e.id
		if len(wanted) > 0 {
			told = true
			l.save(ctx)
		}
	}
	return told, len(events) == batch, nil
}

// An announced event is one with what is to be told of it, which may be nothing.
type announced struct {
	id    int64
	notes []Notification
}

// read takes the next events from the log, with what they refer to.
func (l *line) read(ctx context.Context) ([]announced, error) {
	var list []announced
	err := l.Store.View(ctx, func(tx *store.Tx) error {
		events, err := tx.Events(l.at, batch)
		if err != nil {
			return err
		}
		for _, e := range events {
			about, err := refersTo(tx, e)
			if err != nil {
				return err
			}
			about.Project = l.Project
			notes, err := From(e, about)
			if err != nil {
				l.Log.Warn("an event cannot be told of", "event", e.ID, "type", e.Type, "error", err)
			}
			list = append(list, announced{e.ID, notes})
		}
		return nil
	})
	return list, err
}

// deliver tries to tell of one thing. It is false if ctx ended before that was
// done or given up.
func (l *line) deliver(ctx context.Context, note Notification) bool {
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.Multiplier, waits.MaxInterval = firstWait, waitGrows, longest
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		return struct{}{}, l.send(ctx, note)
	}, backoff.WithBackOff(waits), backoff.WithMaxTries(uint(l.Tries)), backoff.WithMaxElapsedTime(0))
	if err == nil {
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	l.Log.Warn("a notification was dropped",
		"receiver", l.name, "type", string(note.Type), "event", note.Data.EventID, "error", err)
	return true
}

// save stores how far the receiver has come, even if ctx has ended.
func (l *line) save(ctx context.Context) {
	if l.at == l.stored {
		return
	}
	err := l.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error { return tx.SetReaderPosition(l.reader, l.at) })
	if err != nil {
		l.Log.Warn("the place in the log of events cannot be kept; some notifications may come twice",
			"receiver", l.name, "error", err)
		return
	}
	l.stored = l.at
}

// A TestResult is what came of a test of one receiver.
type TestResult struct {
	Receiver string `json:"receiver"`
	Signed   bool   `json:"signed"`
	Error    string `json:"error"` // "" if it was taken
}

// Test sends each receiver one event of type "test", once, and says what came of it.
func (n *Notifier) Test(ctx context.Context, now time.Time) ([]TestResult, error) {
	lines, err := n.lines()
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	defer lines[0].client.CloseIdleConnections()
	results := make([]TestResult, len(lines))
	var g errgroup.Group
	for i, l := range lines {
		g.Go(func() error {
			results[i] = TestResult{Receiver: l.name, Signed: l.to.signs()}
			if err := l.send(ctx, testNote(n.Project, now)); err != nil {
				results[i].Error = err.Error()
			}
			return nil
		})
	}
	return results, g.Wait()
}

// refersTo loads what an event refers to.
func refersTo(tx *store.Tx, e ralph.Event) (about About, err error) {
	if !slices.Contains(sources, e.Type) {
		return about, nil
	}
	if e.TaskID != 0 {
		t, err := tx.Task(e.TaskID)
		if err != nil && !errors.Is(err, ralph.ErrNotFound) {
			return about, err
		}
		about.TaskTitle = t.Title
	}
	if id := commentOf(e); id != 0 {
		c, err := tx.Comment(id)
		if err != nil && !errors.Is(err, ralph.ErrNotFound) {
			return about, err
		}
		about.Comment = c.Body
	}
	return about, nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
