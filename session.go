package ralph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ralph/internal/lazy"
)

// A Phase is the present activity of a session, if ralph knows it (sessions, "states").
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

	Unexpected bool `json:"unexpected,omitempty"` // it does not usually follow the phase before it, see [ExpectedPhase]
}

// Sources of a phase.
const (
	Reported = "reported"
	Observed = "observed"
)

// ReportedPhases are the phases that an agent may report, in their usual order.
var ReportedPhases = []Phase{PhaseAnalyzing, PhaseImplementing, PhaseTesting, PhaseCommitting, PhaseReviewing}

// ExpectedPhase reports whether one phase usually follows the other (sessions, "expected
// ways"). An unexpected order is recorded nevertheless.
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

// longPhase is how long one stay in a phase may last before it counts as unusually long. Phases without an entry have
// no limit.
var longPhase = map[Phase]time.Duration{
	PhaseIdle: time.Minute, PhaseAnalyzing: 10 * time.Minute, PhaseImplementing: 30 * time.Minute,
	PhaseTesting: 15 * time.Minute, PhaseCommitting: 5 * time.Minute, PhaseReviewing: 10 * time.Minute,
}

// A Stay is an uninterrupted time in one phase.
type Stay struct {
	Phase      Phase   `json:"state"`
	Seconds    float64 `json:"seconds"`
	Source     string  `json:"source"`         // source of its start: "reported" or "observed"
	Long       bool    `json:"unusually_long"` // longer than usual for the phase
	Unexpected bool    `json:"unexpected"`     // it does not usually follow the phase before it
	Said       string  `json:"said,omitempty"` // the metadata that the agent last reported with it, as JSON
}

// Stays returns the stays of a session in order. The current one lasts
// until now. Reporting the same phase again continues it.
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
		if said, err := json.Marshal(h.Metadata); err == nil && h.Source == Reported && len(h.Metadata) > 0 {
			last.Said = string(said)
		}
		limit := longPhase[h.State].Seconds()
		last.Long = limit > 0 && last.Seconds >= limit
	}
	return stays
}

// Stood returns the last phase before the end, or the current one.
func (s Session) Stood() Phase {
	for i := len(s.History) - 1; i >= 0; i-- {
		if p := s.History[i].State; p != PhaseDone && p != PhaseFailed {
			return p
		}
	}
	return s.State
}

// sameMoment is the time after a report within which an observation is ignored.
const sameMoment = time.Second

// Observe reports whether an observed phase moves a session on from its last
// phase. A report wins over an observation at the same moment. Reading counts
// as analyzing only at the start, since every later phase includes reading.
func Observe(last PhaseChange, seen Phase, at Time) bool {
	switch {
	case last.State == seen || last.State == PhaseDone || last.State == PhaseFailed:
		return false
	case seen == PhaseAnalyzing && last.State != PhaseIdle:
		return false
	}
	return last.Source != Reported || at.Sub(last.Timestamp.Time) >= sameMoment
}

// An Ending is the way in which a session's process ended, after any signal.
type Ending string

// The endings. Those after Lost are agent errors (pipeline, "Agent
// errors"), which are never the task's fault.
const (
	Finished    Ending = "finished"    // the agent ended its turn
	TimedOut    Ending = "timed_out"   // it reached a limit of the session: time, turns or cost
	Interrupted Ending = "interrupted" // ralph stopped it
	Lost        Ending = "lost"        // its process is gone and left no result: a crash

	RateLimited   Ending = "rate_limited"    // a usage window is used up, or a 429
	Overloaded    Ending = "overloaded"      // the service is at capacity
	Network       Ending = "network"         // the service could not be reached
	AuthFailed    Ending = "auth"            // credentials were refused
	Billing       Ending = "billing"         // no credit
	PromptTooLong Ending = "prompt_too_long" // the prompt exceeds the model's context
	MCPFailed     Ending = "mcp_failed"      // ralph's tools were missing
	NoWork        Ending = "no_work"         // it did nothing, for another reason: no tool call, no tokens
)

// Endings lists every ending.
var Endings = []Ending{
	Finished, TimedOut, Interrupted, Lost, RateLimited, Overloaded, Network, AuthFailed, Billing, PromptTooLong,
	MCPFailed, NoWork,
}

// AgentError reports whether the agent failed, rather than the session's work.
func (e Ending) AgentError() bool {
	switch e {
	case RateLimited, Overloaded, Network, AuthFailed, Billing, PromptTooLong, MCPFailed, NoWork:
		return true
	}
	return false
}

// StandsIn reports whether another agent may take over a task after this ending. It may not after refused work, or a
// task that was too hard.
func (e Ending) StandsIn() bool {
	switch e {
	case RateLimited, Overloaded, Billing, AuthFailed, NoWork:
		return true
	}
	return false
}

// Rests reports whether the same agent cannot work now after this ending.
func (e Ending) Rests() bool { return e == RateLimited || e.NeedsPerson() }

// NeedsPerson reports whether a person must fix the agent's login or billing before it can work
// again.
func (e Ending) NeedsPerson() bool { return e == Billing || e == AuthFailed }

// Ended lists the ways in which a session ends: its agent finished, its done was refused, ralph or a person
// stopped it, or it was lost with its process or to an agent error.
var Ended = []string{"finished", "refused", "stopped", "lost"}

// Outcomes of a session, as the designs have them.
const (
	OutcomeSuccess = "success" // done was accepted, or partial left changes behind
	OutcomeFailure = "failure" // anything else but a timeout
	OutcomeTimeout = "timeout" // it reached a limit of the session
)

// Tokens is a session's usage, as the agent reported it.
type Tokens struct {
	Input         int64 `json:"input"`
	Output        int64 `json:"output"`
	CacheRead     int64 `json:"cache_read"`
	CacheCreation int64 `json:"cache_creation"`
	ContextWindow int64 `json:"context_window"` // the model's context size; 0 if not reported
}

// Sum returns the total of input, output and cache tokens.
func (t Tokens) Sum() int64 { return t.Input + t.Output + t.CacheRead + t.CacheCreation }

// Add returns the tokens of both; the context window is t's.
func (t Tokens) Add(o Tokens) Tokens {
	t.Input += o.Input
	t.Output += o.Output
	t.CacheRead += o.CacheRead
	t.CacheCreation += o.CacheCreation
	return t
}

// A FileChange is a file that differs between two commits.
type FileChange struct {
	Path    string `json:"path"` // slash-separated, relative to the project's root, even for a file outside of it
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Status  string `json:"status"` // "added", "modified", "deleted" or "renamed"
}

// Differences holds the lines that a session changed, and its commits. They are kept in a file of the session.
type Differences struct {
	Files   []FileDiff `json:"files"`
	Commits []Commit   `json:"commits"`
}

// A FileDiff is the difference of a file.
type FileDiff struct {
	Path string `json:"path"`
	Diff string `json:"diff"` // hunks of a unified diff
	Left string `json:"left"` // why there are no lines; "" if there are
}

// A Check is one verification command and its result.
type Check struct {
	Command string  `json:"command"`
	Exit    int     `json:"exit"` // -1 if it was stopped or could not be started
	Seconds float64 `json:"seconds"`
	Passed  bool    `json:"passed"`
	Tail    string  `json:"tail"`            // the end of its output
	Error   string  `json:"error"`           // why it was stopped or could not be started
	Cause   Cause   `json:"cause,omitempty"` // the thing missing in the sandbox

	// Tests by name, where the command reported them (go test -json, JUnit XML):
	Failures []string `json:"failures,omitempty"` // fail now, but did not before the task began
	Excused  []string `json:"excused,omitempty"`  // fail now, and did before the task began (decision 1)

	// Flaky are tests that failed in one of two runs on the same commit; "" is a command without
	// test names.
	Flaky []string `json:"flaky,omitempty"`

	Copied []Copied `json:"copied,omitempty"` // folders that were copied from the person's, because set-up failed
}

// Green reports whether all checks passed.
func Green(checks []Check) bool {
	return !slices.ContainsFunc(checks, func(c Check) bool { return !c.Passed })
}

// A Session is one run of an agent on one task.
type Session struct {
	ID          string        `json:"id"` // a UUID, also the agent's own session id
	TaskID      int64         `json:"task_id"`
	Attempt     int           `json:"attempt"` // counts from 1 per task and includes every session
	Origin      string        `json:"origin"`  // "loop" or "human"
	Role        Role          `json:"role"`
	State       Phase         `json:"current_state"`
	History     []PhaseChange `json:"state_history"`
	Ending      Ending        `json:"ending"` // "" while it runs
	Ended       string        `json:"ended"`  // one of [Ended]; "" while it runs
	Outcome     string        `json:"outcome"`
	Reason      string        `json:"outcome_reason"` // one sentence: why it ended this way
	ClosingVerb Verb          `json:"closing_verb"`
	StartedAt   Time          `json:"started_at"`
	CompletedAt Time          `json:"completed_at"`
	CostUSD     float64       `json:"cost_usd"`
	CostKnown   bool          `json:"cost_known"` // false if the agent reported no cost, and cost_usd is an estimate
	Tokens      Tokens        `json:"tokens"`
	Turns       int           `json:"turns"`
	Files       []FileChange  `json:"files"`
	Commits     []string      `json:"commits"`
	Verify      []Check       `json:"verify"`
	Exit        *int          `json:"exit"` // the agent's exit status, null if it was killed or lost
	Model       string        `json:"model"`

	Agent        string `json:"agent"`         // a name from ralph.yaml; "" if ralph did not start the agent
	AgentVersion string `json:"agent_version"` // reported by its program
	// the parts that did not change: "definitions", "files", "head", "work_tree"
	Unchanged  []string `json:"unchanged"`
	LastWords  string   `json:"last_words"`  // the agent's last words
	StderrTail string   `json:"stderr_tail"` // the end of the agent's standard error
	Denials    []string `json:"permission_denials"`
	Leftovers  []string `json:"leftovers"` // processes that were killed after its end

	// Strangers counts the refused attempts of other programs than its agent to use ralph's tools, at most 20.
	Strangers int `json:"strangers,omitempty"`
	// StopRequest says why a person asked for its stop: "cancel" if its task was cancelled, "contract" if the task's
	// contract was changed; "" if nobody did.
	StopRequest string `json:"-"`
	StopBy      string `json:"-"` // the person
	HaltedBy    string `json:"-"` // the person that asked for it to be stopped, its task going back to the queue
	// PeopleEdited says that a person changed the definition of its task or feature while it ran.
	PeopleEdited bool `json:"-"`
	// sentences for people about its attempts on, and changes of, things that only people may change
	Notes    []string `json:"notes"`
	RunID    int64    `json:"run_id"`
	Decision string   `json:"-"` // the decision of the rules, as JSON
	// the person or worker with the claim; "" for the loop
	Worker        string    `json:"worker"`
	Dir           string    `json:"dir"`            // the work tree; "" if unknown
	Machine       string    `json:"machine"`        // the machine that it worked on, which has its transcript
	Number        int       `json:"number"`         // in the run, from 1; 0 if unknown or not started by the loop
	CostLimitUSD  float64   `json:"cost_limit_usd"` // the most that it may spend
	Change        *Change   `json:"-"`              // the change that it left in a workspace, while it is being decided
	Branch        string    `json:"branch"`         // checked out when a person claimed the task; "" if none
	Progress      *Progress `json:"progress"`       // the last report of a person's chat; null if none
	Checking      string    `json:"checking"`       // the command that is checking its done now, if it takes long
	CheckingSince Time      `json:"checking_since"` // its start; null without a check

	Review *Review `json:"review"` // result of a review; null for other sessions
}

// By identifies the agent of a session.
type By struct {
	Agent   string `json:"agent"`   // its name in ralph.yaml
	Version string `json:"version"` // reported by its program
	Model   string `json:"model"`
}

// By returns the agent of the session; it is empty for a person and for an agent that ralph did not start.
func (s Session) By() By {
	if s.Worker != "" || s.Origin == FromHuman {
		return By{}
	}
	return By{s.Agent, s.AgentVersion, s.Model}
}

// Workers lists the agents of sessions, each once.
func Workers(sessions ...Session) []By {
	list := []By{}
	for _, s := range sessions {
		if by := s.By(); by.Agent != "" && !slices.Contains(list, by) {
			list = append(list, by)
		}
	}
	return list
}

// NamesOf joins names of agents for a sentence.
func NamesOf(list []By) string {
	names := make([]string, len(list))
	for i, by := range list {
		names[i] = by.String()
	}
	return strings.Join(names, ", ")
}

var versionNumber = lazy.Regexp(`\d+\.\d+(\.\d+)*`)

// String names an agent, its version and its model: "codex 0.169.0 (gpt-5.5)".
func (b By) String() string {
	name := b.Agent
	if v := versionNumber().FindString(b.Version); v != "" {
		name += " " + v
	}
	if b.Model != "" {
		name += " (" + b.Model + ")"
	}
	return name
}

// Verifies describes the check that is in progress, with its running time;
// "" if no slow check runs.
func (s Session) Verifies(now Time) string {
	if s.Checking == "" || !s.CompletedAt.IsZero() {
		return ""
	}
	took := max(0, now.Sub(s.CheckingSince.Time)).Truncate(time.Second)
	return fmt.Sprintf("verifying: %s, %s", s.Checking, took)
}

// The origins of sessions.
const (
	FromLoop  = "loop"  // a session of the loop or of a worker
	FromHuman = "human" // a person's session, in a chat
)

// Progress is a report of a person's chat on its work (human, "MCP tools
// of this profile"). session.json holds the same JSON.
type Progress struct {
	Iteration     int      `json:"iteration"`
	FilesModified []string `json:"filesModified"`
	TestsStatus   string   `json:"testsStatus"` // "unknown" if not given
	Notes         string   `json:"notes"`
	Timestamp     Time     `json:"timestamp"`

	// How full the model's context is; 0 if the chat did not report it.
	TokensUsed  int64 `json:"tokensUsed,omitempty"`
	TokensLimit int64 `json:"tokensLimit,omitempty"`
}

// CurrentSession returns the open session that a command without a session id means: the
// run's session, or else a worker's if there is only one. It is never a person's own
// session, which nobody else may stop.
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
