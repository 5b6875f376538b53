package store

import (
	"slices"

	"ralph"
)

// Cancel cancels a task. If a session works on it, the session is asked to stop first, and stopping
// is true.
func (tx *Tx) Cancel(id int64, by string) (stopping bool, err error) {
	t, err := tx.Task(id)
	if err != nil {
		return false, err
	}
	if t.Status == ralph.InProgress {
		return true, tx.RequestStop(t.ClaimedBy, "cancel", by)
	}
	switch {
	case t.Status == ralph.Completed:
		return false, refused(ralph.UndoTask, t.ID, "TASK-%d %s and cannot be cancelled", t.ID, t.Is())
	case t.Status.Ended() && t.Status != ralph.Failed:
		return false, ralph.Conflict("TASK-%d %s already", t.ID, t.Is())
	}
	return false, tx.Move(t.ID, ralph.Cancelled, ralph.Person, "cancelled by "+by)
}

// Proposal returns a task that an agent suggested and nobody has decided on. The error wraps
// [ralph.ErrConflict] if it is not proposed.
func (tx *Tx) Proposal(id int64) (ralph.Task, error) {
	t, err := tx.Task(id)
	if err == nil && t.Status != ralph.Proposed {
		err = ralph.Conflict("TASK-%d %s, and is no suggestion any more", t.ID, t.Is())
	}
	return t, err
}

// ApproveProposal puts a suggested task into the queue.
func (tx *Tx) ApproveProposal(id int64, by string) error {
	if _, err := tx.Proposal(id); err != nil {
		return err
	}
	if err := tx.Move(id, ralph.Pending, ralph.Person, "approved by "+by); err != nil {
		return err
	}
	return tx.Derive(id)
}

// RejectProposal rejects a suggested task; the reason is required and kept.
func (tx *Tx) RejectProposal(id int64, reason, by string) error {
	if _, err := tx.Proposal(id); err != nil {
		return err
	}
	if err := ralph.CheckText("reason", reason, true); err != nil {
		return err
	}
	return tx.Move(id, ralph.Rejected, ralph.Person, "rejected by "+by+": "+reason)
}

// Unblock resolves a task's blockers and drops the dependencies that will not complete. The error
// wraps [ralph.ErrConflict] if there are none.
func (tx *Tx) Unblock(id int64, by string) error {
	blockers, err := tx.Blockers(id)
	if err != nil {
		return err
	}
	dead, err := tx.Dead(id)
	if err != nil {
		return err
	}
	if len(blockers)+len(dead) == 0 {
		return ralph.Conflict("TASK-%d has no open blocker and no failed dependency", id)
	}
	for _, b := range blockers {
		if err := tx.Resolve(b.ID, "unblocked by "+by, by); err != nil {
			return err
		}
	}
	for _, d := range dead {
		if err := tx.DropDependency(id, d.ID); err != nil {
			return err
		}
	}
	return nil
}

// Decide approves or refuses a proposal to cancel a task or a change of protected files. Approving
// a cancellation cancels the task. The decision text may be "".
func (tx *Tx) Decide(comment int64, approve bool, decision, by string) error {
	c, err := tx.Comment(comment)
	if err != nil {
		return err
	}
	approval, err := tx.Approval(comment)
	switch {
	case err != nil:
		return err
	case approval.Kind() != "" && approve:
		return tx.Approve(comment, decision, by)
	case approval.Kind() != "":
		return tx.Refuse(comment, decision, by)
	case c.Kind != ralph.Nack:
		return ralph.Conflict("comment %d is not answered by yes or no: resolve it with words",
			comment)
	}
	word := "approved"
	if !approve {
		word = "refused"
	}
	if decision != "" {
		word += " " + decision
	}
	if err := tx.Resolve(comment, word, by); err != nil || !approve {
		return err
	}
	_, err = tx.Cancel(c.TaskID, by)
	return err
}

// HaltSession stops the named session or, with "", the one that is running. Its task goes back to
// the queue, behind all others of its priority if behind is true.
func (tx *Tx) HaltSession(id string, behind bool, by string) (ralph.Session, error) {
	var s ralph.Session
	if id != "" {
		var err error
		if s, err = tx.Session(id); err != nil {
			return s, err
		}
	} else {
		open, err := tx.OpenSessions()
		if err != nil {
			return s, err
		}
		ours := slices.DeleteFunc(slices.Clone(open), func(s ralph.Session) bool {
			return s.Origin == ralph.FromHuman || s.Worker != ""
		})
		if len(ours) > 1 {
			return s, refused(ralph.NameSession, 0, "%d sessions are running", len(ours))
		}
		var ok bool
		if s, ok = ralph.CurrentSession(open); !ok && len(open) > 1 {
			return s, refused(ralph.NameSession, 0, "workers hold %d tasks", len(open))
		} else if !ok {
			return s, ralph.Conflict("no session is running")
		}
	}
	if behind {
		if err := tx.PutBehind(s.TaskID); err != nil {
			return s, err
		}
	}
	return s, tx.Halt(s.ID, by)
}
