package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/proc"
	"ralph/store"
)

// Inside names the session of the project that this process belongs to, and records
// there that it tried a command which only people may give; "" if it belongs to none.
// The queues of other projects are nothing to a session: ralph's own tests run in
// sessions too. The error is for what cannot be told.
func (h *Home) Inside(ctx context.Context, environ []string, command string) (session string, err error) {
	markers, within := h.enclosing(environ)
	if len(markers) == 0 && !within {
		return "", nil
	}
	db, err := store.Open(ctx, h.File(Database), store.Options{MustExist: true})
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
			if strings.HasSuffix(id, "-"+h.State) { // a check before a task is begun, see loop
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

// enclosing looks for what only a process of a session has: its variables, which a
// parent may still have, a cgroup, or a descent from the run itself. A run is known
// by the lock that it holds, and another ralph that has commands checked by the
// database that it has open.
func (h *Home) enclosing(environ []string) (markers []string, within bool) {
	add := func(id string) {
		if id != "" && !slices.Contains(markers, id) {
			markers = append(markers, id)
		}
	}
	variables := func(environ []string) {
		for _, entry := range environ {
			if id, ok := strings.CutPrefix(entry, "RALPH_SESSION_ID="); ok {
				add(id)
			}
		}
	}
	variables(environ)
	kin := proc.Lineage()
	for i, k := range kin {
		variables(k.Environ)
		supervised := i > 0 && kin[i-1].Supervises()
		within = within || i > 0 && k.HasOpen(h.File("run.lock")) || supervised && k.HasOpen(h.File(Database))
	}
	for _, id := range proc.GroupMarkers() {
		add(id)
	}
	return markers, within
}

// notThere tells that no session has the id, or that it is none.
func notThere(err error) bool {
	var field *ralph.FieldError
	return errors.Is(err, ralph.ErrNotFound) || errors.As(err, &field)
}
