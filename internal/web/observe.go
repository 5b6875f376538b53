package web

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ralph"
)

// Metrics serves GET /metrics for Prometheus, and GET /healthz for supervisors (unattended, "Notifications and
// observation").
//
// It counts nothing itself: every answer is read from the database, so it agrees with ralph's commands, also across
// restarts. It changes nothing and needs no active run. It shows no texts of tasks or agents and requires no password.
func (s *Server) Metrics() http.Handler {
	registry := prometheus.NewRegistry()
	process := collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})
	registry.MustRegister(collector{s}, collectors.NewGoCollector(), process)
	log := slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: log}))
	mux.HandleFunc("GET /healthz", s.health)
	return mux
}

// Health is the answer of /healthz.
type Health struct {
	Status    string     `json:"status"`         // "ok", or "failing" with status 503
	Reason    string     `json:"reason"`         // why it is failing; "" otherwise
	Run       string     `json:"run"`            // "none", "running", "waiting", "paused" or "lost"
	RunReason string     `json:"run_reason"`     // the reason why a run waits
	RunID     int64      `json:"run_id"`         // run id of the newest run; 0 if there was none
	LastEvent ralph.Time `json:"last_event"`     // time of the newest event
	Waiting   int        `json:"waiting_people"` // number of inbox items
}

func (s *Server) health(w http.ResponseWriter, req *http.Request) {
	h := s.examine(req.Context())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if h.Status != "ok" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if err := json.NewEncoder(w).Encode(h); err != nil {
		s.Log.Debug("answer of /healthz", "error", err) // the client has gone
	}
}

// examine finds problems: a database that does not answer, or a run without an end and without a living process.
func (s *Server) examine(ctx context.Context) Health {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	seen, err := s.readState(ctx)
	if err != nil {
		return Health{Status: "failing", Reason: err.Error(), Run: "none"}
	}
	h := Health{Status: "ok", Run: "none", LastEvent: seen.lastEvent}
	for _, n := range seen.inbox {
		h.Waiting += n
	}
	if seen.run == nil {
		return h
	}
	h.RunID = seen.run.ID
	switch {
	case seen.running:
		h.Run, h.RunReason = seen.run.State, seen.run.StateReason
	case seen.run.EndedAt.IsZero():
		h.Status, h.Run = "failing", "lost"
		h.Reason = fmt.Sprintf("run %d (process %d) was lost; `ralph run` takes up its work", seen.run.ID, seen.run.PID)
	}
	return h
}
