package web_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"ralph"
	"ralph/internal/machine"
	"ralph/internal/pgtest"
	"ralph/internal/web"
	"ralph/internal/web/localhttp"
	"ralph/signals"
	"ralph/store"
)

const observed = "11111111-1111-4111-8111-111111111111"

func newObserved(t *testing.T) *web.Server {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() }) // one test closes it itself
	return &web.Server{Store: db, Version: "v1", Log: slog.New(slog.DiscardHandler)}
}

// work leaves one task in progress and one whose session has ended.
func work(t *testing.T, db *store.DB, active bool) (run ralph.Run) {
	t.Helper()
	process, leave := machine.Join()
	if t.Cleanup(leave); !active {
		leave()
	}
	err := db.Tx(t.Context(), func(tx *store.Tx) error {
		var err error
		if run, err = tx.StartRun(process, ralph.Limits{}, ""); err != nil {
			return err
		}
		for _, title := range []string{"A", "B"} {
			if _, err := tx.AddTask(ralph.Task{Title: title, Priority: 2}, "human"); err != nil {
				return err
			}
		}
		s, err := tx.StartSession(store.Start{ID: observed, Task: 1, Run: run.ID})
		if err != nil {
			return err
		}
		s.CostUSD, s.CostKnown, s.Tokens = 1.25, true, ralph.Tokens{Input: 10, Output: 20, CacheRead: 30, CacheCreation: 40}
		if err := tx.Apply(s, signals.Facts{}, signals.Decision{Status: ralph.Failed, Mover: ralph.Verdict, Outcome: ralph.OutcomeFailure, Reason: "r", StatusReason: "r"}); err != nil {
			return err
		}
		_, err = tx.StartSession(store.Start{ID: "2" + observed[1:], Task: 2, Run: run.ID})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func get(t *testing.T, s *web.Server, path string) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestMetricsAgreeWithTheDatabase(t *testing.T) {
	s := newObserved(t)
	lines := func() (list []string) {
		status, body := get(t, s, "/metrics")
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, body)
		}
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, "ralph_") && !strings.HasPrefix(line, "ralph_build_info") && !strings.HasPrefix(line, "ralph_last_event") && !strings.HasSuffix(line, " 0\n") {
				list = append(list, strings.TrimSpace(line))
			}
		}
		return list
	}
	if got := lines(); got != nil {
		t.Errorf("of an empty database: %q", got)
	}
	work(t, s.Store, true)
	want := []string{
		`ralph_parallel 1`,
		`ralph_run_active 1`,
		`ralph_session_cost_usd_total 1.25`,
		`ralph_sessions_active 1`,
		`ralph_sessions_total{ended="lost"} 1`,
		`ralph_tasks{status="failed"} 1`,
		`ralph_tasks{status="running"} 1`,
		`ralph_tokens_total{kind="cache_creation"} 40`,
		`ralph_tokens_total{kind="cache_read"} 30`,
		`ralph_tokens_total{kind="input"} 10`,
		`ralph_tokens_total{kind="output"} 20`,
		`ralph_waiting_for_people{kind="failed"} 1`,
	}
	if diff := cmp.Diff(want, lines()); diff != "" {
		t.Error(diff)
	}
}

func TestEverySeriesIsThereFromTheStart(t *testing.T) {
	status, body := get(t, newObserved(t), "/metrics")
	if status != http.StatusOK {
		t.Fatal(status, body)
	}
	for _, want := range []string{
		`ralph_build_info{goversion="go`, `version="v1"} 1`, `ralph_tasks{status="needs_you"} 0`, `ralph_waiting_for_people{kind="question"} 0`,
		`ralph_sessions_total{ended="stopped"} 0`, `ralph_last_event_timestamp_seconds 0`, `ralph_agent_wait_seconds 0`, `go_goroutines `,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("there is no %s", want)
		}
	}
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promtool would say: %v %v", problems, err)
	}
}

func TestADatabaseThatDoesNotAnswerFailsTheScrape(t *testing.T) {
	s := newObserved(t)
	if err := s.Store.Close(); err != nil {
		t.Fatal(err)
	}
	if status, body := get(t, s, "/metrics"); status != http.StatusInternalServerError {
		t.Errorf("got %d: %s", status, body)
	}
}

func TestHealth(t *testing.T) {
	gone := "the database does not answer: the database was removed or replaced while it was in use: PATH is gone"
	if pgtest.Used() {
		gone = `the database does not answer: database "NAME" does not exist: make it (createdb), or name another one in ` +
			"RALPH_DATABASE or database in ~/.config/ralph/config.yaml"
	}
	tests := []struct {
		name    string
		prepare func(t *testing.T, s *web.Server)
		status  int
		want    web.Health
	}{
		{"nothing has happened", func(*testing.T, *web.Server) {}, 200, web.Health{Status: "ok", Run: "none"}},
		{"a run is active", func(t *testing.T, s *web.Server) { work(t, s.Store, true) }, 200, web.Health{Status: "ok", Run: "running", RunID: 1, Waiting: 1}},
		{
			"a run was lost", func(t *testing.T, s *web.Server) { work(t, s.Store, false) }, 503,
			web.Health{Status: "failing", Reason: "run 1 (process PID) was lost; `ralph run` takes up its work", Run: "lost", RunID: 1, Waiting: 2},
		},
		{"a run has ended", func(t *testing.T, s *web.Server) {
			run := work(t, s.Store, true)
			if err := s.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.EndRun(run.ID, 0, "r") }); err != nil {
				t.Fatal(err)
			}
		}, 200, web.Health{Status: "ok", Run: "none", RunID: 1, Waiting: 1}},
		{"the database is gone", func(t *testing.T, s *web.Server) {
			pgtest.Remove(t, s.Store.Path())
		}, 503, web.Health{Status: "failing", Reason: gone, Run: "none"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newObserved(t)
			tt.prepare(t, s)
			status, body := get(t, s, "/healthz")
			var got web.Health
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err, body)
			}
			if (got.RunID != 0) == got.LastEvent.IsZero() {
				t.Errorf("the last event was at %s", got.LastEvent)
			}
			got.LastEvent = ralph.Time{}
			got.Reason = regexp.MustCompile(`"t\d+"`).ReplaceAllString(got.Reason, `"NAME"`)
			got.Reason = strings.NewReplacer(s.Store.Path(), "PATH", strconv.Itoa(os.Getpid()), "PID").Replace(got.Reason)
			if diff := cmp.Diff(tt.want, got); diff != "" || status != tt.status {
				t.Errorf("status %d\n%s", status, diff)
			}
		})
	}
}

func TestOnlyReadingIsPossible(t *testing.T) {
	s := newObserved(t)
	w := httptest.NewRecorder()
	s.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/healthz", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
	if status, _ := get(t, s, "/"); status != http.StatusNotFound {
		t.Errorf("/: %d", status)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	s := newObserved(t)
	l, err := localhttp.Listen(t.Context(), "--addr", "0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, l, nil) }()
	resp, err := http.Get("http://" + l.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	resp.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if again, err := localhttp.Listen(t.Context(), "--addr", l.Addr().String()); err != nil {
		t.Errorf("the address is still taken: %v", err)
	} else if err := again.Close(); err != nil {
		t.Error(err)
	}
}
