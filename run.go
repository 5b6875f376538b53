package ralph

import (
	"cmp"
	"slices"
	"strings"
)

// Exit statuses of ralph (unattended, "Ending a run").
const (
	ExitOK      = 0   // every task completed, or nothing to do
	ExitFailure = 1   // ralph itself failed
	ExitUsage   = 2   // usage or configuration error
	ExitFailed  = 3   // ended with failed tasks
	ExitWaiting = 4   // what is left waits for people
	ExitLimit   = 5   // a limit of the run was reached, or it stagnated
	ExitAgent   = 6   // the agent cannot be used
	ExitStopped = 130 // stopped by a signal or by `ralph stop`
)

// exitOrder is what wins when several apply (decision 6).
var exitOrder = []int{ExitFailure, ExitStopped, ExitAgent, ExitUsage, ExitLimit, ExitFailed, ExitWaiting, ExitOK}

// ExitStatus is the one status of a run to which all of those apply.
func ExitStatus(applying ...int) int {
	for _, s := range exitOrder {
		for _, a := range applying {
			if a == s {
				return s
			}
		}
	}
	return ExitOK
}

// Controls of a run: what `ralph stop|pause|resume` ask of it.
const (
	ControlNone    = ""         // go on
	ControlPause   = "pause"    // start no session until resumed
	ControlStop    = "stop"     // end after the session in progress, within the grace period
	ControlStopNow = "stop_now" // stop the session in progress too
)

// A Run is one `ralph run` from start to end.
type Run struct {
	ID          int64   `json:"id"`
	PID         int     `json:"pid"`
	StartedAt   Time    `json:"started_at"`
	EndedAt     Time    `json:"ended_at"`
	Control     string  `json:"control"`
	State       string  `json:"state"` // "running", "waiting", "paused" or "ended"
	StateReason string  `json:"state_reason"`
	WaitUntil   Time    `json:"wait_until"` // when a wait ends; null if nothing is waited for
	Limits      Limits  `json:"limits"`
	Sessions    int     `json:"sessions"` // launched so far
	Tasks       int     `json:"tasks"`    // distinct tasks worked on so far
	CostUSD     float64 `json:"cost_usd"`
	ExitStatus  *int    `json:"exit_status"` // null while it runs
	Reason      string  `json:"reason"`      // one sentence: why it ended
}

// Doing says what a run in a state does, why, and until when if that is known. Some
// reasons go on with the word for the state ("waiting for new tasks"), others are
// sentences.
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

// Limits bound a run and its sessions. Durations are in seconds; no limit is
// ever zero: every default is finite.
type Limits struct {
	MaxSessions     int     `json:"max_sessions"`
	MaxTasks        int     `json:"max_tasks"`
	MaxSeconds      float64 `json:"max_seconds"`
	MaxCostUSD      float64 `json:"max_cost_usd"`
	MaxDayCostUSD   float64 `json:"max_cost_per_day_usd"` // from midnight to midnight, over all runs
	SessionSeconds  float64 `json:"session_seconds"`
	IdleSeconds     float64 `json:"idle_seconds"` // of a session
	SessionTurns    int     `json:"session_turns"`
	SessionCostUSD  float64 `json:"session_cost_usd"`
	Attempts        int     `json:"attempts"`
	StagnantMaximum int     `json:"stagnant_sessions"`

	Usage map[string]int `json:"usage"` // of a subscription's windows, by name, in percent
}

// A UsageWindow is how far an account's allowance for a span of time is used, as
// the agent told last.
type UsageWindow struct {
	Name        string  `json:"name"`        // "five_hour", "seven_day", "seven_day_opus", …
	Utilization float64 `json:"utilization"` // 0 to 1
	ResetsAt    Time    `json:"resets_at"`
	Seen        Time    `json:"seen"` // when the agent told
}
