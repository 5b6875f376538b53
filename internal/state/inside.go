package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/pipe"
	"ralph/internal/proc"
	"ralph/store"
)

// Inside returns the session of the project that this process belongs to, and records there that it
// tried a command for people only; "" if there is none. Sessions of other projects do not count:
// ralph's own tests run in sessions, too. If a sandbox hides the queue, the run is asked through
// the session's channel. The error means that it is unknown.
func (h *Home) Inside(ctx context.Context, environ []string, dir, command string) (session string, err error) {
	markers, channels, within := h.enclosing(environ)
	if len(markers) == 0 && !within {
		return "", nil
	}
	db, err := h.Reopen(ctx, true)
	if err != nil {
		for _, socket := range channels {
			if session, err := h.tell(ctx, socket, dir, command); err == nil {
				return session, nil
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var s ralph.Session
	look := func(tx *store.Tx) error {
		for _, id := range markers {
			if strings.HasSuffix(id, "-"+h.State) { // a check before a task is begun; see loop
				within = true
			}
			switch found, err := tx.Session(id); {
			case err == nil && found.ID == id:
				s = found
				return nil
			case err != nil && !notThere(err):
				return err
			}
		}
		if !within {
			return nil
		}
		open, err := tx.OpenSessions()
		for _, o := range open {
			if o.Origin == ralph.FromLoop && o.Worker == "" {
				s = o
			}
		}
		return err
	}
	if err := db.View(ctx, look); err != nil {
		return "", err
	}
	if s.ID == "" {
		if within {
			return "a process that a run or a check of ralph's has started", nil
		}
		return "", nil
	}
	session = fmt.Sprintf("session %.8s on TASK-%d of an agent", s.ID, s.TaskID)
	if s.CompletedAt.IsZero() {
		err = db.Tx(ctx, func(tx *store.Tx) error { return tx.RecordAttempt(s, command) })
	}
	return session, err
}

// enclosing looks for signs of a session: its variables, here or in an ancestor, or an ancestor
// that is the run itself. A run is recognized by its lock; another ralph that verifies, by its
// open database.
func (h *Home) enclosing(environ []string) (markers, channels []string, within bool) {
	add := func(list *[]string, id string) {
		if id != "" && !slices.Contains(*list, id) {
			*list = append(*list, id)
		}
	}
	variables := func(environ []string) {
		for _, entry := range environ {
			if id, ok := strings.CutPrefix(entry, "RALPH_SESSION_ID="); ok {
				add(&markers, id)
			}
			if socket, ok := strings.CutPrefix(entry, pipe.Variable+"="); ok {
				add(&channels, socket)
			}
		}
	}
	variables(environ)
	kin := proc.Lineage()
	for i, k := range kin {
		variables(k.Environ)
		supervised := i > 0 && kin[i-1].Supervises()
		within = within || i > 0 && k.Holds(h.File(lockName)) || supervised && k.HasOpen(h.File(Database))
	}
	return markers, channels, within
}

// answers is the time to wait for the run's answer.
const answers = 10 * time.Second

// tell makes the run of an enclosing session record the attempt; session is "" if the session is
// another project's.
func (h *Home) tell(ctx context.Context, socket, dir, command string) (session string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	params, err := json.Marshal(map[string]string{"command": command, "state": h.State, "dir": dir})
	if err == nil {
		err = pipe.Ask(ctx, socket, pipe.Attempt, params, &session)
	}
	return session, err
}

// notThere reports whether an error means that there is no session with the id.
func notThere(err error) bool {
	var field *ralph.FieldError
	return errors.Is(err, ralph.ErrNotFound) || errors.As(err, &field)
}
