package ralph

import (
	"cmp"
	"slices"
	"strings"
)

// Exit statuses of ralph (unattended, "Ending a run").
const (
	ExitOK      = 0   // every task is completed, or there was nothing to do
	ExitFailure = 1   // ralph itself failed
	ExitUsage   = 2   // usage or configuration error
	ExitFailed  = 3   // ended with failed tasks
	ExitWaiting = 4   // the remaining tasks wait for people
	ExitLimit   = 5   // the run reached a limit, or stagnated
	ExitAgent   = 6   // the agent cannot be used
	ExitStopped = 130 // stopped by a signal or by `ralph stop`
)

// exitOrder is the precedence of statuses if several apply (decision 6).
var exitOrder = []int{ExitFailure, ExitStopped, ExitAgent, ExitUsage, ExitLimit, ExitFailed, ExitWaiting, ExitOK}

// ExitStatus returns the status that takes precedence among the statuses that apply to a run.
func ExitStatus(applying ...int) int {
	for _, s := range exitOrder {
		if slices.Contains(applying, s) {
			return s
		}
	}
	return ExitOK
}

// Controls of a run: the requests of `ralph stop|pause|resume`.
const (
	ControlNone    = ""         // continue
	ControlPause   = "pause"    // start no session until resumed
	ControlStop    = "stop"     // end after the session in progress, which has the grace period to finish
	ControlGoOn    = "go_on"    // do not end, though the run has decided to
	ControlStopNow = "stop_now" // end now, and stop the session in progress
	ControlDrain   = "drain"    // end after the sessions in progress: the machine is drained
)

// A Run is one execution of `ralph run`.
type Run struct {
	ID          int64   `json:"id"`
	PID         int     `json:"pid"`
	StartedAt   Time    `json:"started_at"`
	EndedAt     Time    `json:"ended_at"`
	Control     string  `json:"control"`
	State       string  `json:"state"` // "running", "waiting", "paused", "ending" or "ended"
	StateReason string  `json:"state_reason"`
	WaitUntil   Time    `json:"wait_until"` // when a wait ends; null if the run does not wait
	Limits      Limits  `json:"limits"`
	Idle        string  `json:"idle"`     // why it has fewer sessions than it may have; "" if unknown
	Sandbox     string  `json:"sandbox"`  // the sandbox of its agents, in words; "" if unknown
	Sessions    int     `json:"sessions"` // launched so far
	Tasks       int     `json:"tasks"`    // distinct tasks worked on so far
	CostUSD     float64 `json:"cost_usd"`
	CostKnown   bool    `json:"cost_known"`  // false if the cost of a session is an estimate or unknown
	Tokens      int64   `json:"tokens"`      // tokens of its sessions that have ended
	ExitStatus  *int    `json:"exit_status"` // null while it runs
	Reason      string  `json:"reason"`      // one sentence: why it ended
	Machine     string  `json:"machine"`     // its machine's name
	Process     string  `json:"-"`           // its process, in the form of package machine
	LeaseUntil  Time    `json:"lease_until"` // after this it counts as lost, unless its process is seen alive
}

// Doing describes the state of a run, its reason, and its end if known. A reason either completes the state's word
// ("waiting for new tasks") or is a separate sentence.
func Doing(state, reason, until string) string {
	if until != "" {
		until = " until " + until
	}
	word, _, _ := strings.Cut(reason, " ")
	switch {
	case reason == "" || word == state:
		return cmp.Or(reason, state) + until
	case slices.Contains([]string{"for", "until", "before"}, word):
		return state + " " + reason + until
	}
	return state + until + ": " + reason
}

// A Machine is a machine on which runs work or have worked.
type Machine struct {
	Name       string `json:"name"`
	Alive      bool   `json:"alive"`       // a run works there, as far as can be told
	RunID      int64  `json:"run_id"`      // the newest one
	LeaseUntil Time   `json:"lease_until"` // after this the run there counts as lost; zero without an open run
	Sessions   int    `json:"sessions"`    // in progress
	DrainedAt  Time   `json:"drained_at"`  // zero unless no run may begin there
	DrainedBy  string `json:"drained_by"`
	SeenAt     Time   `json:"seen_at"` // when a run last worked there, as far as is known
}

// Limits are the bounds of a run and its sessions. Durations are in seconds. Every limit has
// a finite default; zero has a special meaning only in Parallel and SessionTokens.
type Limits struct {
	Daily           bool    `json:"daily,omitempty"` // a run's limits count from midnight, and it does not end at them
	MaxSessions     int     `json:"max_sessions"`
	MaxTasks        int     `json:"max_tasks"`
	MaxSeconds      float64 `json:"max_seconds"`
	MaxCostUSD      float64 `json:"max_cost_usd"`
	MaxDayCostUSD   float64 `json:"max_cost_per_day_usd"`   // for all runs, from midnight to midnight
	MaxMonthCostUSD float64 `json:"max_cost_per_month_usd"` // for all runs, from the first of the month on
	SessionSeconds  float64 `json:"session_seconds"`
	IdleSeconds     float64 `json:"idle_seconds"` // idle seconds of a session
	SessionTurns    int     `json:"session_turns"`
	SessionCostUSD  float64 `json:"session_cost_usd"`
	SessionTokens   int64   `json:"session_tokens"`  // of a session; 0 leaves it to the cost, at the highest known price
	SessionMinUSD   float64 `json:"session_min_usd"` // minimum for a session beside others; with less left, it waits
	Parallel        int     `json:"parallel"`        // sessions at once; 0 is 1
	Attempts        int     `json:"attempts"`
	StagnantMaximum int     `json:"stagnant_sessions"`

	Usage map[string]int `json:"usage"` // percent of a subscription's usage window, by name
}

// A UsageWindow is the used part of an account's allowance for a span of time, as the
// agent last reported it.
type UsageWindow struct {
	Agent       string  `json:"agent"`       // its name in ralph.yaml
	Name        string  `json:"name"`        // "five_hour", "seven_day", "seven_day_opus", …
	Utilization float64 `json:"utilization"` // 0 to 1
	ResetsAt    Time    `json:"resets_at"`
	Seen        Time    `json:"seen"` // when the agent reported it
}

// DefaultAgent is the name of the built-in agent.
const DefaultAgent = "claude"

// Title returns the window's name for people, with the agent's unless it is the default one.
func (w UsageWindow) Title() string {
	if w.Agent == DefaultAgent || w.Agent == "" {
		return w.Name
	}
	return w.Agent + " " + w.Name
}
