package notify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/standard-webhooks/standard-webhooks/libraries/go"

	"ralph"
	"ralph/internal/notify"
	"ralph/signals"
	"ralph/store"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// A project is a database with one task that a session of a run works on.
type project struct {
	t       *testing.T
	db      *store.DB
	run     ralph.Run
	task    int64
	session ralph.Session
	log     bytes.Buffer
	logging sync.Mutex
}

func newProject(t *testing.T) *project {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ralph.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &project{t: t, db: db}
	p.write(func(tx *store.Tx) error {
		if p.task, err = tx.AddTask(ralph.Task{Title: "Paint it", Priority: 2}, "human"); err != nil {
			return err
		}
		if p.run, err = tx.StartRun("", ralph.Limits{}, ""); err != nil {
			return err
		}
		p.session, err = tx.StartSession(store.Start{ID: "11111111-1111-4111-8111-111111111111", Task: p.task, Run: p.run.ID})
		return err
	})
	return p
}

// close is for synctest, whose bubble must be left empty.
func (p *project) close() {
	if err := p.db.Close(); err != nil {
		p.t.Error(err)
	}
}

func (p *project) write(f func(tx *store.Tx) error) {
	p.t.Helper()
	if err := p.db.Tx(context.Background(), f); err != nil {
		p.t.Fatal(err)
	}
}

// ask records a question.
func (p *project) ask(text string) {
	p.t.Helper()
	blocking := true
	if _, err := p.db.Say(context.Background(), p.task, p.session.ID, "agent", signals.Ask{Question: text, Blocking: &blocking}); err != nil {
		p.t.Fatal(err)
	}
}

// Write takes the log.
func (p *project) Write(b []byte) (int, error) {
	p.logging.Lock()
	defer p.logging.Unlock()
	return p.log.Write(b)
}

func (p *project) logged() string {
	p.logging.Lock()
	defer p.logging.Unlock()
	return p.log.String()
}

// notifier is one that ends when it has told all.
func (p *project) notifier(receivers ...notify.Receiver) *notify.Notifier {
	over := make(chan struct{})
	close(over)
	return &notify.Notifier{
		Store: p.db, Receivers: receivers, Project: "house", Over: over, Drain: time.Hour, Tries: 3, Timeout: 30 * time.Second,
		Log: slog.New(slog.NewTextHandler(p, nil)),
	}
}

func (p *project) deliver(n *notify.Notifier) {
	p.t.Helper()
	if err := n.Run(context.Background()); err != nil {
		p.t.Error(err)
	}
}

// A receiver answers requests by a script: one status each, the last one for all
// that follow.
type receiver struct {
	mu       sync.Mutex
	statuses []int
	header   http.Header // of answers that are not success
	requests []request
}

type request struct {
	at     time.Time
	url    string
	header http.Header
	body   string
}

func (r *receiver) take(req *http.Request) int {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		body = []byte(err.Error())
	}
	r.requests = append(r.requests, request{time.Now(), req.URL.String(), req.Header.Clone(), string(body)})
	if len(r.statuses) == 0 {
		return http.StatusNoContent
	}
	status := r.statuses[0]
	if len(r.statuses) > 1 {
		r.statuses = r.statuses[1:]
	}
	return status
}

// ServeHTTP is the receiver on a real connection.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) { w.WriteHeader(r.take(req)) }

// RoundTrip is the receiver without a connection, which synctest can wait for.
func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	status := r.take(req)
	return &http.Response{StatusCode: status, Header: r.header, Body: io.NopCloser(strings.NewReader("no: " + req.URL.String())), Request: req}, nil
}

func (r *receiver) got() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// questions returns the questions that a receiver was told of, in order.
func (r *receiver) questions(t *testing.T) (list []string) {
	t.Helper()
	for _, req := range r.got() {
		var n notify.Notification
		if err := json.Unmarshal([]byte(req.body), &n); err != nil {
			t.Fatalf("%q: %v", req.body, err)
		}
		list = append(list, n.Data.Question)
	}
	return list
}

func TestAWebhookIsSignedAsStandardWebhooks(t *testing.T) {
	p := newProject(t)
	defer p.close()
	p.ask("red or blue?")
	r := &receiver{}
	srv := httptest.NewServer(r)
	defer srv.Close()
	p.deliver(p.notifier(notify.Receiver{URL: srv.URL + "/hook", Preset: notify.Generic, Secret: secret}))
	got := r.got()
	if len(got) != 1 {
		t.Fatalf("got %d requests, log: %s", len(got), p.logged())
	}
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := wh.Verify([]byte(got[0].body), got[0].header); err != nil {
		t.Errorf("the reference library says: %v", err)
	}
	if err := wh.Verify([]byte(got[0].body+" "), got[0].header); err == nil {
		t.Error("the signature does not cover the body")
	}
	var n notify.Notification
	if err := json.Unmarshal([]byte(got[0].body), &n); err != nil {
		t.Fatal(err)
	}
	if n.ID != got[0].header.Get("webhook-id") || n.Type != notify.QuestionAsked || n.Data.Question != "red or blue?" || n.Data.TaskTitle != "Paint it" ||
		n.Data.Command != "ralph answer Q1 TEXT" || n.Data.Project != "house" {
		t.Errorf("got %+v", n)
	}
}

func TestAFailedDeliveryIsTriedAgainWithTheSameID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProject(t)
		defer p.close()
		p.ask("one")
		r := &receiver{statuses: []int{500, 503, 200}}
		n := p.notifier(notify.Receiver{URL: "https://example.com/hook", Preset: notify.Generic, Secret: secret})
		n.Transport = r
		p.deliver(n)
		got := r.got()
		if len(got) != 3 {
			t.Fatalf("got %d requests", len(got))
		}
		for i, req := range got[1:] {
			if req.header.Get("webhook-id") != got[0].header.Get("webhook-id") || req.body != got[0].body {
				t.Errorf("try %d differs: %+v", i+2, req)
			}
		}
		if got[2].header.Get("webhook-timestamp") == got[0].header.Get("webhook-timestamp") {
			t.Error("the last try has the time of the first")
		}
		if a, b := got[1].at.Sub(got[0].at), got[2].at.Sub(got[1].at); a <= 0 || b <= a {
			t.Errorf("waits of %s and %s do not grow", a, b)
		}
		if p.logged() != "" {
			t.Errorf("logged: %s", p.logged())
		}
	})
}

func TestADeliveryIsGivenUpAfterItsTries(t *testing.T) {
	tests := []struct {
		name     string
		statuses []int
		tries    int
		want     string
	}{
		{"an error of the server is tried again", []int{500}, 3, "answered 500 Internal Server Error"},
		{"so is a receiver that is not there", []int{404}, 3, "answered 404 Not Found"},
		{"a refusal is final", []int{401}, 1, "answered 401 Unauthorized"},
		{"a receiver that is gone is final", []int{410}, 1, "answered 410 Gone"},
		{"a redirect is not followed", []int{302}, 1, "a redirect, which is not followed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProject(t)
				defer p.close()
				p.ask("one")
				r := &receiver{statuses: tt.statuses, header: http.Header{"Location": {"https://example.org/"}}}
				n := p.notifier(notify.Receiver{URL: "https://example.com/services/T0PS3CRET?token=T0PS3CRET2", Preset: notify.Generic, Secret: secret})
				n.Transport = r
				p.deliver(n)
				if got := len(r.got()); got != tt.tries {
					t.Errorf("tried %d times, want %d", got, tt.tries)
				}
				if log := p.logged(); !strings.Contains(log, "a notification was dropped") || !strings.Contains(log, tt.want) {
					t.Errorf("logged: %s", log)
				}
				for _, s := range []string{"T0PS3CRET", "MfKQ9r8", "services/"} {
					if strings.Contains(p.logged(), s) {
						t.Errorf("the log has %s: %s", s, p.logged())
					}
				}
				// Dropped news stays dropped: the next run does not begin with it.
				r.statuses = []int{200}
				p.ask("two")
				p.deliver(n)
				if got := r.questions(t); got[len(got)-1] != "two" || len(got) != tt.tries+1 {
					t.Errorf("got %q", got)
				}
			})
		})
	}
}

// TestAFailureThatARunHasNoTimeToRepeatIsATrouble until a later run delivers.
func TestAFailureThatARunHasNoTimeToRepeatIsATrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProject(t)
		defer p.close()
		p.ask("one")
		r := &receiver{statuses: []int{500}}
		n := p.notifier(notify.Receiver{URL: "https://example.com/", Preset: notify.Generic})
		n.Transport, n.Drain = r, time.Second
		p.deliver(n)
		troubled := func(want bool) {
			t.Helper()
			has, err := store.Read(t.Context(), p.db, func(tx *store.Tx) (bool, error) { return tx.HasTrouble(store.TroubleNotify) })
			if err != nil || has != want {
				t.Errorf("a trouble: %t, %v", has, err)
			}
		}
		troubled(true)
		r.statuses = []int{200}
		p.deliver(n)
		troubled(false)
	})
}

func TestAReceiverSaysWhenToComeBack(t *testing.T) {
	for _, tt := range []struct {
		name, header string
		least, most  time.Duration
	}{
		{"in seconds", "100", 100 * time.Second, 101 * time.Second},
		{"in fractions of a second", "1.5", 1500 * time.Millisecond, 2 * time.Second},
		{"at a time", time.Date(2000, 1, 1, 0, 2, 0, 0, time.UTC).Format(http.TimeFormat), 119 * time.Second, 121 * time.Second},
		{"too late, which is bounded", "86400", 5 * time.Minute, 5*time.Minute + time.Second},
		{"in the past, which is no reason to hurry", "-5", 500 * time.Millisecond, time.Second},
		{"in words that nobody knows", "soon", 500 * time.Millisecond, 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // its clock begins on 2000-01-01
				p := newProject(t)
				defer p.close()
				p.ask("one")
				r := &receiver{statuses: []int{429, 200}, header: http.Header{"Retry-After": {tt.header}}}
				n := p.notifier(notify.Receiver{URL: "https://example.com/hook", Preset: notify.Discord})
				n.Transport = r
				p.deliver(n)
				got := r.got()
				if len(got) != 2 {
					t.Fatalf("got %d requests: %s", len(got), p.logged())
				}
				if wait := got[1].at.Sub(got[0].at); wait < tt.least || wait > tt.most {
					t.Errorf("came back after %s, want %s to %s", wait, tt.least, tt.most)
				}
			})
		})
	}
}

// silent is a receiver that never answers.
type silent struct{ asked chan struct{} }

func (s silent) RoundTrip(req *http.Request) (*http.Response, error) {
	s.asked <- struct{}{}
	<-req.Context().Done()
	return nil, req.Context().Err()
}

func TestASilentReceiverTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProject(t)
		defer p.close()
		p.ask("one")
		n := p.notifier(notify.Receiver{URL: "https://example.com/hook", Preset: notify.Generic})
		s := silent{make(chan struct{}, 9)}
		n.Transport = s
		p.deliver(n)
		if len(s.asked) != 3 || !strings.Contains(p.logged(), "took longer than 30s") {
			t.Errorf("tried %d times, logged: %s", len(s.asked), p.logged())
		}
	})
}

func TestADeadReceiverHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProject(t)
		defer p.close()
		alive, dead, heard := &receiver{}, silent{make(chan struct{}, 99)}, make(chan struct{}, 99)
		hearing := roundTrip(func(req *http.Request) (*http.Response, error) {
			defer func() { heard <- struct{}{} }()
			return alive.RoundTrip(req)
		})
		n := p.notifier(notify.Receiver{URL: "https://dead.example.com/", Preset: notify.Generic}, notify.Receiver{URL: "https://alive.example.com/", Preset: notify.Generic})
		n.Transport = byHost{"dead.example.com": dead, "alive.example.com": hearing}
		over := make(chan struct{})
		n.Over, n.Drain = over, 5*time.Second
		ended := make(chan error)
		go func() { ended <- n.Run(context.Background()) }()
		<-dead.hear(p, "zero")
		// The dead one is being waited for. A writer goes on at once.
		before := time.Now()
		want := []string{"zero"}
		for _, q := range []string{"one", "two", "three"} {
			p.ask(q)
			want = append(want, q)
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("writing took %s", took)
		}
		for range want {
			<-heard
		}
		if diff := cmp.Diff(want, alive.questions(t)); diff != "" {
			t.Error(diff)
		}
		close(over)
		before = time.Now()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(before); took != n.Drain {
			t.Errorf("the end took %s, want %s", took, n.Drain)
		}
		if !strings.Contains(p.logged(), "the next run delivers the rest") {
			t.Errorf("logged: %s", p.logged())
		}
		// The next run does.
		revived := &receiver{}
		n = p.notifier(n.Receivers...)
		n.Transport = byHost{"dead.example.com": revived, "alive.example.com": hearing}
		p.deliver(n)
		if diff := cmp.Diff(want, revived.questions(t)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(want, alive.questions(t)); diff != "" {
			t.Errorf("told twice: %s", diff)
		}
	})
}

// hear asks a question and waits for the first request about it.
func (s silent) hear(p *project, question string) <-chan struct{} {
	p.ask(question)
	return s.asked
}

type byHost map[string]http.RoundTripper

func (b byHost) RoundTrip(req *http.Request) (*http.Response, error) {
	return b[req.URL.Host].RoundTrip(req)
}

func TestARestartLosesAndRepeatsNothing(t *testing.T) {
	p := newProject(t)
	defer p.close()
	p.ask("before the receiver was configured")
	r := &receiver{}
	srv := httptest.NewServer(r)
	defer srv.Close()
	var from int64
	p.write(func(tx *store.Tx) (err error) { from, err = tx.LastEvent(); return err })
	to := notify.Receiver{URL: srv.URL, Preset: notify.Generic}
	for _, q := range []string{"one", "two", "", "three"} {
		if q != "" {
			p.ask(q)
		}
		n := p.notifier(to)
		n.From = from
		p.deliver(n)
	}
	if diff := cmp.Diff([]string{"one", "two", "three"}, r.questions(t)); diff != "" {
		t.Error(diff)
	}
	ids := map[string]bool{}
	for _, req := range r.got() {
		ids[req.header.Get("webhook-id")] = true
	}
	if len(ids) != 3 {
		t.Errorf("got ids %v", ids)
	}
}

// TestARestartInTheMiddleOfADelivery repeats the delivery under the same id: the
// receiver may have taken it.
func TestARestartInTheMiddleOfADelivery(t *testing.T) {
	p := newProject(t)
	defer p.close()
	p.ask("one")
	ctx, crash := context.WithCancel(context.Background())
	r := &receiver{}
	n := p.notifier(notify.Receiver{URL: "https://example.com/", Preset: notify.Generic})
	n.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
		r.take(req)
		crash()
		return nil, errors.New("connection lost")
	})
	if err := n.Run(ctx); err != nil {
		t.Error(err)
	}
	n.Transport = r
	p.deliver(n)
	p.deliver(n)
	if got := r.got(); len(got) != 2 || got[0].header.Get("webhook-id") != got[1].header.Get("webhook-id") {
		t.Errorf("got %+v", got)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestAReceiverGetsOnlyItsEvents(t *testing.T) {
	p := newProject(t)
	defer p.close()
	p.ask("one")
	p.write(func(tx *store.Tx) error {
		return tx.EndRun(p.run.ID, ralph.ExitLimit, "the limit of 1 sessions per run is reached")
	})
	wanted, all := &receiver{}, &receiver{}
	n := p.notifier(notify.Receiver{URL: "http://some/", Preset: notify.Generic, Events: []notify.Type{notify.LimitReached}}, notify.Receiver{URL: "http://all/", Preset: notify.Generic})
	n.Transport = byHost{"some": wanted, "all": all}
	p.deliver(n)
	types := func(r *receiver) (list []string) {
		for _, req := range r.got() {
			var n notify.Notification
			if err := json.Unmarshal([]byte(req.body), &n); err != nil {
				t.Fatal(err)
			}
			list = append(list, string(n.Type))
		}
		slices.Sort(list) // urgent and other news do not wait for each other
		return list
	}
	if diff := cmp.Diff([]string{"limit.reached"}, types(wanted)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"limit.reached", "question.asked", "run.ended"}, types(all)); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsOfTheConnectionHideTheURL(t *testing.T) {
	p := newProject(t)
	defer p.close()
	srv := httptest.NewServer(http.NotFoundHandler())
	url := srv.URL + "/bot123456:T0PS3CRET/sendMessage?chat_id=42"
	srv.Close() // nobody listens there any more
	n := p.notifier(notify.Receiver{URL: url, Preset: notify.Telegram})
	results, err := n.Test(t.Context(), time.Now())
	if err != nil || len(results) != 1 {
		t.Fatal(results, err)
	}
	if e := results[0].Error; !strings.Contains(e, "refused") || strings.Contains(e, "T0PS3CRET") || strings.Contains(e, "Post") {
		t.Errorf("got %q", e)
	}
}
