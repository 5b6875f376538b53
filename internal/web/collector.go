package web

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ralph"
	"ralph/store"
)

// answerTime is the time limit for the database.
const answerTime = 5 * time.Second

// A collector reads the database for every scrape. Counters of its own could deviate.
type collector struct{ *Server }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ralph_"+name, help, labels, nil)
}

// The metrics. No label has a value chosen by people or agents.
var (
	buildInfo = describe("build_info", "1, with ralph's version.", "version", "goversion")
	tasks     = describe("tasks", "Tasks by status.", "status")
	waiting   = describe("waiting_for_people", "What waits for people, as in `ralph inbox`.", "kind")
	active    = describe("sessions_active", "Sessions in progress.")
	parallel  = describe("parallel", "How many sessions may work at once; 0 without a run.")
	sessions  = describe("sessions_total", "Sessions, by how they ended.", "ended")
	cost      = describe("session_cost_usd_total", "Cost of the sessions that have ended, in US dollars.")
	tokens    = describe("tokens_total", "Tokens of the sessions that have ended, by kind.", "kind")
	runActive = describe("run_active", "1 while a run is active.")
	agentWait = describe("agent_wait_seconds", "How long no session will start for want of the agent; 0 if one may.")
	lastEvent = describe("last_event_timestamp_seconds",
		"When something was last recorded, in seconds since 1970; 0 if nothing was.")

	descriptions = []*prometheus.Desc{
		buildInfo, tasks, waiting, active, parallel, sessions, cost, tokens, runActive, agentWait, lastEvent,
	}
)

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		to <- d
	}
}

// Collect implements prometheus.Collector. If the database does not answer, the whole scrape fails.
func (c collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	s, err := c.readState(ctx)
	if err == nil {
		s.totals, err = c.readTotals(ctx)
	}
	if err != nil {
		to <- prometheus.NewInvalidMetric(tasks, err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge(buildInfo, 1, c.Version, runtime.Version())
	for _, word := range ralph.Words {
		gauge(tasks, float64(s.counts[ralph.KeyOf(word)]), ralph.KeyOf(word))
	}
	for _, kind := range store.InboxKinds() {
		gauge(waiting, float64(s.inbox[kind]), kind)
	}
	gauge(active, float64(s.active))
	var sum store.Totals
	for _, ended := range ralph.Ended {
		t := s.totals[ended]
		counter(sessions, float64(t.Sessions), ended)
		sum.CostUSD += t.CostUSD
		sum.Tokens = sum.Tokens.Add(t.Tokens)
	}
	counter(cost, sum.CostUSD)
	counter(tokens, float64(sum.Tokens.Input), "input")
	counter(tokens, float64(sum.Tokens.Output), "output")
	counter(tokens, float64(sum.Tokens.CacheRead), "cache_read")
	counter(tokens, float64(sum.Tokens.CacheCreation), "cache_creation")
	running, wide := 0.0, 0.0
	if s.running {
		running, wide = 1, float64(max(1, s.run.Limits.Parallel))
	}
	gauge(runActive, running)
	gauge(parallel, wide)
	waits := 0.0
	for _, a := range s.agents {
		waits = max(waits, a.WaitUntil.Sub(s.now.Time).Seconds())
	}
	gauge(agentWait, waits)
	seconds := 0.0
	if !s.lastEvent.IsZero() {
		seconds = float64(s.lastEvent.UnixMilli()) / 1000
	}
	gauge(lastEvent, seconds)
}

// A state is the content of the database and of the lock at one moment.
type state struct {
	now       ralph.Time
	run       *ralph.Run // newest; nil if there was none
	running   bool
	active    int
	counts    map[string]int // see [store.Tx.Tally]
	inbox     map[string]int
	totals    map[string]store.Totals // by ending; only for metrics
	agents    []store.AgentState      // unavailable ones
	lastEvent ralph.Time
}

func (s *Server) readState(ctx context.Context) (state, error) {
	var seen state
	err := s.Store.View(ctx, func(tx *store.Tx) (err error) {
		seen.now = tx.Now()
		if seen.counts, err = tx.Tally(); err != nil {
			return err
		}
		if seen.inbox, err = tx.InboxCounts(); err != nil {
			return err
		}
		open, err := tx.OpenSessions()
		if err != nil {
			return err
		}
		seen.active = len(open)
		if seen.lastEvent, err = tx.LastEventTime(); err != nil {
			return err
		}
		if seen.agents, err = tx.Resting(); err != nil {
			return err
		}
		run, ok, err := tx.LastRun()
		if ok {
			seen.run, seen.running = &run, tx.Alive(run)
		}
		return err
	})
	if err != nil {
		return seen, fmt.Errorf("the database does not answer: %w", err)
	}
	return seen, nil
}

// readTotals sums up all sessions, by how they ended.
func (s *Server) readTotals(ctx context.Context) (map[string]store.Totals, error) {
	list, err := store.Read(ctx, s.Store, (*store.Tx).Totals)
	totals := map[string]store.Totals{}
	for _, t := range list {
		totals[t.Ended] = t
	}
	return totals, err
}
