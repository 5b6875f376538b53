package store

import "ralph"

// A Trouble stops or spoils ralph's work until a person mends it. It is in the inbox.
type Trouble struct {
	Kind    string // its kind, the name in the inbox: one of the constants below
	What    string // the event, one line for people
	Command string // to fix it; "" if no command does
}

// The kinds of troubles. There is one of each at most.
const (
	TroubleRun    = "run"           // the last run ended early, or could not begin
	TroubleNotify = "notifications" // the last notification was not delivered; "notifications-2" is the second receiver
	TroubleAfter  = "merge.after"   // the last command after a merge failed
	// TroubleRestack: branches are not rebuilt on a target that has their dependency (merge.mode: branch).
	TroubleRestack = "merge.restack"

	// Troubles that the inbox finds when it is read. They are not stored.
	troubleDisk = "disk"     // it is full
	troubleLost = "lost run" // the last run did not end by itself
)

// SetTrouble records a trouble in the place of an earlier one of its kind. Without an earlier one it records an event.
func (tx *Tx) SetTrouble(t Trouble) error {
	has, err := tx.HasTrouble(t.Kind)
	if err == nil && !has {
		err = tx.record(ralph.Event{}, ralph.TroubleFound{Kind: t.Kind, What: t.What, Command: t.Command})
	}
	if err != nil {
		return err
	}
	return tx.putTrouble(t)
}

func (tx *Tx) putTrouble(t Trouble) error {
	return tx.put("troubles", "kind", cells{
		"kind": t.Kind, "what": t.What, "command": t.Command, "created": tx.Now(),
	})
}

// ClearTrouble removes the trouble of a kind.
func (tx *Tx) ClearTrouble(kind string) error {
	return tx.do(`DELETE FROM troubles WHERE kind = $1`, kind)
}

// HasTrouble reports whether a trouble of the given kind is recorded.
func (tx *Tx) HasTrouble(kind string) (bool, error) {
	return value[bool](tx, `SELECT EXISTS (SELECT 1 FROM troubles WHERE kind = $1)`, kind)
}

// runTrouble returns the trouble that a run leaves at its end; ok is false if there is none.
func runTrouble(status int, reason string) (t Trouble, ok bool) {
	t = Trouble{Kind: TroubleRun, What: "The last run ended early: " + reason, Command: ralph.ExitRemedy(status)}
	return t, t.Command != ""
}
