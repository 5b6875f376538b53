// Package notify tells people and programs of events while nobody watches: by webhooks, signed as Standard Webhooks, in
// the formats of common chat services, and by a command (unattended, "Notifications and observation").
//
// It only reads the log of events and takes no part in a run: it decides nothing, and the loop never waits for a
// receiver.
//
// Each receiver resumes where it stopped, across restarts and crashes. It gets every event that it subscribes to, in
// order and at least once; repeated deliveries have the same id. Questions and permissions that block work are sent
// at once. Other news go into digests, at least a minute apart; the last digest is sent as soon as no more events
// follow. A notification that is still not accepted after a bounded number of tries is dropped and logged. URLs and
// secrets are never logged.
package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"ralph"
	"ralph/internal/report"
	"ralph/store"
)

// A Notifier sends notifications to receivers. Its fields are set before Run and not changed after.
type Notifier struct {
	Store     *store.DB
	Receivers []Receiver
	Project   string          // name of the project in notifications
	Dashboard string          // its address for links in notifications; "" for none
	From      int64           // the event after which a new receiver starts
	Over      <-chan struct{} // closed when no more events will come; nil if they always may
	Drain     time.Duration   // time left for deliveries once Over is closed
	Tries     int             // tries of each delivery
	Timeout   time.Duration   // timeout of each try
	Log       *slog.Logger

	// Mask masks secrets in a text; nil masks nothing.
	Mask func(string) string

	// Transport sends the requests; nil is the default one.
	Transport http.RoundTripper
}

const (
	afterError = 30 * time.Second // before a failing database is read again
	batch      = 200              // events read at once

	firstWait = time.Second     // before the second try
	waitGrows = 4               // factor of each further wait
	longest   = 5 * time.Minute // between two tries, even if the receiver asks for more
)

// Run delivers until ctx ends, or until Over is closed and everything is delivered, for at most
// Drain after that. The next Run delivers the rest. It leaves no goroutine and no process behind.
// The error is about the receivers or the database, before any delivery.
func (n *Notifier) Run(ctx context.Context) error {
	if len(n.Receivers) == 0 {
		return nil
	}
	lines, err := n.begin(ctx)
	if err != nil {
		return fmt.Errorf("notifications: %w", err)
	}
	defer lines[0].client.CloseIdleConnections() // shared by all
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

// A line delivers to one receiver: urgent notifications at once, or digests of all others.
type line struct {
	*Notifier
	to     Receiver
	name   string // for people
	reader string // key of its stored position
	client *http.Client
	urgent bool
	one    chan struct{} // holds the receiver's delivery in progress: it gets one at a time
	next   time.Time     // the next digest is not sent earlier
	at     int64         // the last event handled
	stored int64         // the last position stored

	trouble string // the kind under which a failure is recorded
	sent    bool   // whether any notification was delivered or dropped
	failed  string // why the last notification was not delivered; "" if it was
}

// begin checks the receivers and loads their positions. The position of a new receiver is stored at
// once: from then on it misses nothing.
func (n *Notifier) begin(ctx context.Context) ([]*line, error) {
	lines, err := n.lines()
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		now := *l
		now.urgent, now.reader = true, l.reader+":now"
		lines = append(lines, &now)
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
		lines = append(lines, &line{
			Notifier: n, to: r, name: name, reader: reader, client: client, trouble: troubleOf(i),
			one: make(chan struct{}, 1),
		})
	}
	return lines, nil
}

// troubleOf names the trouble of the receiver with an index.
func troubleOf(i int) string {
	if i == 0 {
		return store.TroubleNotify
	}
	return fmt.Sprintf("%s-%d", store.TroubleNotify, i+1)
}

// run delivers to one receiver until ctx ends or everything is delivered.
func (l *line) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-l.Over:
		case <-time.After(time.Until(l.next)):
		}
		// Checked before reading, so that all events recorded by then are read.
		over := closed(l.Over)
		var pause <-chan time.Time
		changed := l.Store.Changed()
		told, err := l.once(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			l.Log.Warn("cannot read events for notifications", "receiver", l.name, "error", err)
			changed, pause = nil, time.After(afterError)
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
	l.Log.Warn("notifications were cut short; the next run delivers the rest", "receiver", l.name, "after_event", l.at)
	l.save(ctx)
}

// unlessClosed returns Over until it is known to be closed.
func (l *line) unlessClosed(over bool) <-chan struct{} {
	if over {
		return nil
	}
	return l.Over
}

// once reads all events so far and delivers their notifications. told reports whether there were any.
func (l *line) once(ctx context.Context) (told bool, err error) {
	var waiting []announced
	for at, full := l.at, true; full; {
		events, err := l.read(ctx, at)
		if err != nil {
			return false, err
		}
		if full = len(events) == batch; len(events) > 0 {
			at = events[len(events)-1].id
		}
		waiting = append(waiting, events...)
	}
	if len(waiting) == 0 {
		return false, nil
	}
	var late []Notification
	for _, e := range waiting {
		for _, note := range e.notes {
			switch {
			case !l.wants(note):
			case !l.urgent:
				late = append(late, note)
			case !l.deliver(ctx, note):
				return told, ctx.Err()
			default:
				told, l.at = true, e.id
				l.save(ctx)
			}
		}
	}
	for _, note := range digests(late, l.Dashboard) {
		if !l.deliver(ctx, note) {
			return told, ctx.Err()
		}
		told, l.next = true, time.Now().Add(apart)
	}
	if l.at = waiting[len(waiting)-1].id; told {
		l.save(ctx)
	}
	return told, nil
}

// wants reports whether the line sends a notification. A receiver is not told that it failed itself.
func (l *line) wants(note Notification) bool {
	return l.to.wants(note.Type) && urgent(note) == l.urgent && note.Data.Trouble != l.trouble
}

// An announced event has its notifications, possibly none.
type announced struct {
	id    int64
	notes []Notification
}

// read reads the next events after at from the log, with the details that they refer to.
func (l *line) read(ctx context.Context, at int64) ([]announced, error) {
	var list []announced
	err := l.Store.View(ctx, func(tx *store.Tx) error {
		events, err := tx.Events(at, batch)
		if err != nil {
			return err
		}
		for _, e := range events {
			about, err := refersTo(tx, e)
			if err != nil {
				return err
			}
			about.Project, about.Dashboard = l.Project, l.Dashboard
			notes, err := From(e, about)
			if err != nil {
				l.Log.Warn("cannot make notifications for an event", "event", e.ID, "type", e.Type, "error", err)
			}
			if notes, err = l.masked(notes); err != nil {
				return err
			}
			list = append(list, announced{e.ID, notes})
		}
		return nil
	})
	return list, err
}

// masked returns notifications with all secrets masked.
func (l *line) masked(notes []Notification) (list []Notification, err error) {
	if l.Mask == nil || len(notes) == 0 {
		return notes, nil
	}
	text, err := json.Marshal(notes)
	if err == nil {
		err = json.Unmarshal([]byte(l.Mask(string(text))), &list)
	}
	return list, err
}

// deliver tries to deliver a notification. It returns false if ctx ended before the notification
// was delivered or dropped.
func (l *line) deliver(ctx context.Context, note Notification) bool {
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.Multiplier, waits.MaxInterval = firstWait, waitGrows, longest
	var fails error
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := l.send(ctx, note)
		if ctx.Err() == nil {
			fails = err
		}
		return struct{}{}, err
	}, backoff.WithBackOff(waits), backoff.WithMaxTries(uint(l.Tries)), backoff.WithMaxElapsedTime(0))
	if err == nil {
		l.sent, l.failed = true, ""
		return true
	}
	if ctx.Err() != nil {
		if fails != nil { // a run that ends soon never gives up
			l.failed = fmt.Sprintf("The last notification to %s could not be delivered yet: %v", l.name, fails)
		}
		return false
	}
	l.sent, l.failed = true, fmt.Sprintf("The last notification to %s was dropped: %v", l.name, err)
	l.Log.Warn("a notification was dropped",
		"receiver", l.name, "type", string(note.Type), "event", note.Data.EventID, "error", err)
	return true
}

// save stores the receiver's position, even if ctx has ended.
func (l *line) save(ctx context.Context) {
	if l.at == l.stored && l.failed == "" {
		return
	}
	err := l.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		var err error
		switch {
		case l.failed == "" && l.sent:
			err = tx.ClearTrouble(l.trouble)
		case l.failed != "":
			err = tx.SetTrouble(store.Trouble{Kind: l.trouble, What: l.failed, Command: "ralph notify"})
		}
		return errors.Join(err, tx.SetReaderPosition(l.reader, l.at))
	})
	if err != nil {
		l.Log.Warn("cannot store a receiver's position in the log of events; some notifications may come twice",
			"receiver", l.name, "error", err)
		return
	}
	l.stored = l.at
}

// A TestResult is the result of testing one receiver.
type TestResult struct {
	Receiver string `json:"receiver"`
	Signed   bool   `json:"signed"`
	Error    string `json:"error"` // "" if it was accepted
}

// Test sends each receiver one event of type "test", once, and returns the results.
func (n *Notifier) Test(ctx context.Context, now time.Time) ([]TestResult, error) {
	lines, err := n.lines()
	if err != nil || len(lines) == 0 {
		return []TestResult{}, err
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

// Delivered forgets the troubles of receivers that took a test.
func Delivered(tx *store.Tx, results []TestResult) error {
	for i, r := range results {
		if r.Error != "" {
			continue
		}
		if err := tx.ClearTrouble(troubleOf(i)); err != nil {
			return err
		}
	}
	return nil
}

// Full tells the receivers, once, that nothing can be stored. It works without the database.
func (n *Notifier) Full(ctx context.Context, why error, now time.Time) {
	lines, err := n.lines()
	if err != nil || len(lines) == 0 {
		return
	}
	defer lines[0].client.CloseIdleConnections()
	note := fullNote(n.Project, why, now)
	var g errgroup.Group
	for _, l := range lines {
		g.Go(func() error {
			if !l.to.wants(note.Type) {
				return nil
			}
			masked, err := l.masked([]Notification{note})
			if err == nil {
				err = l.send(ctx, masked[0])
			}
			if err != nil {
				l.Log.Warn("nobody was told that the disk is full", "receiver", l.name, "error", err)
			}
			return nil
		})
	}
	_ = g.Wait() // failures are logged
}

// refersTo loads the details that an event refers to.
func refersTo(tx *store.Tx, e ralph.Event) (about About, err error) {
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
	if e.Type == ralph.EventType(ralph.RunEnded{}) {
		r, err := report.OfRun(tx, e.RunID)
		if err != nil && !errors.Is(err, ralph.ErrNotFound) {
			return about, err
		}
		about.Morning = strings.Join(r.Morning(), "\n")
		if figures := r.Outcomes(); figures != "" {
			about.Figures = ": " + figures
		}
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
