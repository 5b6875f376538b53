package ralph

import (
	"slices"
	"time"
)

// A Phase is what a session is doing, as far as that is known (sessions, "states").
type Phase string

// The phases. PhaseDone and PhaseFailed are set by ralph at the end, never by an agent.
const (
	PhaseIdle         Phase = "idle"
	PhaseAnalyzing    Phase = "analyzing"
	PhaseImplementing Phase = "implementing"
	PhaseTesting      Phase = "testing"
	PhaseCommitting   Phase = "committing"
	PhaseReviewing    Phase = "reviewing"
	PhaseDone         Phase = "done"
	PhaseFailed       Phase = "failed"
)

// A PhaseChange is one entry of a session's history.
type PhaseChange struct {
	State     Phase          `json:"state"`
	Timestamp Time           `json:"timestamp"`
	Metadata  map[string]any `json:"metadata,omitempty"`
	Source    string         `json:"source"` // "reported" by the agent, "observed" by ralph

	Unexpected bool `json:"unexpected,omitempty"` // it does not follow what it should, see [ExpectedPhase]
}

// Sources of a phase.
const (
	Reported = "reported"
	Observed = "observed"
)

// ReportedPhases are those that an agent may report, in the order in which they
// usually come.
var ReportedPhases = []Phase{PhaseAnalyzing, PhaseImplementing, PhaseTesting, PhaseCommitting, PhaseReviewing}

// ExpectedPhase reports whether one phase usually follows the other (sessions,
// "expected ways"). An unexpected order is recorded all the same.
func ExpectedPhase(from, to Phase) bool {
	switch to {
	case PhaseAnalyzing:
		return from == PhaseIdle
	case PhaseImplementing:
		return from == PhaseAnalyzing || from == PhaseTesting
	case PhaseTesting:
		return from == PhaseImplementing
	case PhaseCommitting:
		return from == PhaseTesting
	case PhaseReviewing:
		return from == PhaseCommitting
	case PhaseDone:
		return from == PhaseReviewing || from == PhaseCommitting
	case PhaseFailed:
		return from != PhaseDone
	}
	return false
}

// longPhase is from when on a phase is unusually long for one that a session is in
// once; a phase without one is never.
var longPhase = map[Phase]time.Duration{
	PhaseIdle: time.Minute, PhaseAnalyzing: 10 * time.Minute, PhaseImplementing: 30 * time.Minute,
	PhaseTesting: 15 * time.Minute, PhaseCommitting: 5 * time.Minute, PhaseReviewing: 10 * time.Minute,
}

// A Stay is one time that a session spent in a phase.
type Stay struct {
	Phase      Phase   `json:"state"`
	Seconds    float64 `json:"seconds"`
	Source     string  `json:"source"`         // who said that it began: "reported" or "observed"
	Long       bool    `json:"unusually_long"` // several times what such a phase usually takes
	Unexpected bool    `json:"unexpected"`     // the phase before it usually leads elsewhere
}

// Stays are the phases of a session in order with the time in each; the one that
// is not over lasts until now. A phase that is reported anew goes on.
func (s Session) Stays(now Time) []Stay {
	stays := []Stay{}
	for i, h := range s.History {
		if h.State == PhaseDone || h.State == PhaseFailed {
			break
		}
		end := now
		if i+1 < len(s.History) {
			end = s.History[i+1].Timestamp
		}
		took := max(0, end.Sub(h.Timestamp.Time)).Seconds()
		if last := len(stays) - 1; last >= 0 && stays[last].Phase == h.State {
			stays[last].Seconds += took
		} else {
			stays = append(stays, Stay{Phase: h.State, Seconds: took, Source: h.Source, Unexpected: h.Unexpected})
		}
		last := &stays[len(stays)-1]
		limit := longPhase[h.State].Seconds()
		last.Long = limit > 0 && last.Seconds >= limit
	}
	return stays
}

// Stood is the phase in which a session was when it ended, or is.
func (s Session) Stood() Phase {
	for i := len(s.History) - 1; i >= 0; i-- {
		if p := s.History[i].State; p != PhaseDone && p != PhaseFailed {
			return p
		}
	}
	return s.State
}

// sameMoment is how long after a report an observation does not contradict it.
const sameMoment = time.Second

// Observe reports whether a session that stands at last is moved by an observed
// phase. A report wins over what was observed at the same moment, and reading
// is part of every phase but the first.
func Observe(last PhaseChange, seen Phase, at Time) bool {
	switch {
	case last.State == seen || last.State == PhaseDone || last.State == PhaseFailed:
		return false
	case seen == PhaseAnalyzing && last.State != PhaseIdle:
		return false
	}
	return last.Source != Reported || at.Sub(last.Timestamp.Time) >= sameMoment
}

// An Ending is how a session's process came to its end, whatever was signalled.
type Ending string

// The endings. Those after Lost are agent errors (pipeline, "Agent errors"):
// never the task's fault.
const (
	Finished    Ending = "finished"    // the agent ended its turn
	TimedOut    Ending = "timed_out"   // a limit of the session: time, turns or cost
	Interrupted Ending = "interrupted" // ralph stopped it
	Lost        Ending = "lost"        // its process is gone without an end: a crash

	RateLimited   Ending = "rate_limited"    // a usage window or a 429
	Overloaded    Ending = "overloaded"      // the service is at capacity
	Network       Ending = "network"         // the service was not reached
	AuthFailed    Ending = "auth"            // credentials were refused
	Billing       Ending = "billing"         // no credit
	PromptTooLong Ending = "prompt_too_long" // the prompt is longer than the model takes
	MCPFailed     Ending = "mcp_failed"      // ralph's tools were not there
	NoWork        Ending = "no_work"         // no tool call, no cost
)

// Endings lists every ending.
var Endings = []Ending{
	Finished, TimedOut, Interrupted, Lost, RateLimited, Overloaded, Network, AuthFailed, Billing, PromptTooLong,
	MCPFailed, NoWork,
}

// AgentError reports whether the agent, not the session, failed.
func (e Ending) AgentError() bool {
	switch e {
	case RateLimited, Overloaded, Network, AuthFailed, Billing, PromptTooLong, MCPFailed, NoWork:
		return true
	}
	return false
}

// Outcomes of a session.
const (
	OutcomeSuccess = "success" // done was accepted, or partial left something behind
	OutcomeFailure = "failure" // everything else that is not a timeout
	OutcomeTimeout = "timeout" // a limit of the session ended it
)

// Tokens are what a session used, from the agent's own report.
type Tokens struct {
	Input         int64 `json:"input"`
	Output        int64 `json:"output"`
	CacheRead     int64 `json:"cache_read"`
	CacheCreation int64 `json:"cache_creation"`
	ContextWindow int64 `json:"context_window"` // of the model, 0 if not reported
}

// Sum is all of them.
func (t Tokens) Sum() int64 { return t.Input + t.Output + t.CacheRead + t.CacheCreation }

// A FileChange is a file that differs between a session's start and its end.
type FileChange struct {
	Path    string `json:"path"` // slash-separated, relative to the project's root
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Status  string `json:"status"` // "added", "modified", "deleted" or "renamed"
}

// A Check is one verification command and what came of it.
type Check struct {
	Command string  `json:"command"`
	Exit    int     `json:"exit"` // -1 if it was stopped or could not be started
	Seconds float64 `json:"seconds"`
	Passed  bool    `json:"passed"`
	Tail    string  `json:"tail"`  // the end of its output
	Error   string  `json:"error"` // why it was stopped or could not be started

	// Tests by name, where the command reported them (go test -json, JUnit XML):
	Failures []string `json:"failures,omitempty"` // those that fail and did not before the task was begun
	Excused  []string `json:"excused,omitempty"`  // those that fail and did so before (decision 1)
}

// Green reports whether all checks passed.
func Green(checks []Check) bool {
	return !slices.ContainsFunc(checks, func(c Check) bool { return !c.Passed })
}

// A Session is one run of the agent on one task.
type Session struct {
	ID          string        `json:"id"` // a UUID, also the agent's own session id
	TaskID      int64         `json:"task_id"`
	Attempt     int           `json:"attempt"` // counts from 1 per task, every session included
	Origin      string        `json:"origin"`  // "loop" or "human"
	State       Phase         `json:"current_state"`
	History     []PhaseChange `json:"state_history"`
	Ending      Ending        `json:"ending"` // "" while it runs
	Outcome     string        `json:"outcome"`
	Reason      string        `json:"outcome_reason"` // one sentence: why it ended as it did
	ClosingVerb Verb          `json:"closing_verb"`
	StartedAt   Time          `json:"started_at"`
	CompletedAt Time          `json:"completed_at"`
	CostUSD     float64       `json:"cost_usd"`
	CostKnown   bool          `json:"cost_known"` // false: cost_usd is what it was charged for want of a report
	Tokens      Tokens        `json:"tokens"`
	Turns       int           `json:"turns"`
	Files       []FileChange  `json:"files"`
	Commits     []string      `json:"commits"`
	Verify      []Check       `json:"verify"`
	Exit        *int          `json:"exit"` // the agent's exit status, null if it was killed or lost
	Model       string        `json:"model"`
	// the parts that are as they were before: "definitions", "files", "head", "work_tree"
	Unchanged  []string `json:"unchanged"`
	LastWords  string   `json:"last_words"`  // what the agent said last
	StderrTail string   `json:"stderr_tail"` // the end of its standard error
	Denials    []string `json:"permission_denials"`
	Leftovers  []string `json:"leftovers"` // processes that had to be killed after its end
	// of the uncommitted files before it, for `ralph snapshot restore`; 0 if none was needed
	SnapshotID int64    `json:"snapshot_id"`
	Gone       []string `json:"gone"` // those of them that it removed
	// what people have to know of it, in sentences: what it tried that is theirs to do, and what it
	// changed that is theirs
	Notes    []string `json:"notes"`
	RunID    int64    `json:"run_id"`
	Decision string   `json:"decision"` // what the rules made of it, as JSON
	// who claimed the task: an agent that pulls work by itself, or a person; "" for the loop
	Worker string `json:"worker"`
	Dir    string `json:"dir"` // the work tree; "" if that is not known
	// another session worked there meanwhile: what changed may be that one's doing
	Shared   bool      `json:"shared"`
	Branch   string    `json:"branch"`   // of the work tree when a person claimed the task; "" if there was none
	Progress *Progress `json:"progress"` // what a person's chat reported last; null if nothing
}

// The origins of sessions.
const (
	FromLoop  = "loop"  // ralph's own, and those of workers
	FromHuman = "human" // a person's, who works with a chat
)

// Progress is what a person's chat reports of its work (human, "MCP tools of this
// profile"). Its JSON is what stands in session.json.
type Progress struct {
	Iteration     int      `json:"iteration"`
	FilesModified []string `json:"filesModified"`
	TestsStatus   string   `json:"testsStatus"` // "unknown" if nothing is said
	Notes         string   `json:"notes"`
	Timestamp     Time     `json:"timestamp"`

	// How full the model's context was, where the chat said so; 0 where it did not.
	TokensUsed  int64 `json:"tokensUsed,omitempty"`
	TokensLimit int64 `json:"tokensLimit,omitempty"`
}

// CurrentSession is the session of those that are open that people mean who name
// none: the run's, or else the only one that a worker has. What a person has claimed
// is nobody else's to stop.
func CurrentSession(open []Session) (s Session, ok bool) {
	var workers []Session
	for _, s := range open {
		switch {
		case s.Origin == FromHuman:
		case s.Worker == "":
			return s, true
		default:
			workers = append(workers, s)
		}
	}
	if len(workers) == 1 {
		return workers[0], true
	}
	return s, false
}
