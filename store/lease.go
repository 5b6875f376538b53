package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"ralph"
	"ralph/internal/machine"
)

// RenewRun extends the lease of a run. It reports false if the lease has expired: another run may have taken over its
// work.
func (tx *Tx) RenewRun(id int64) (bool, error) {
	until := ralph.At(tx.Now().Add(LeaseTime))
	n, err := tx.exec(`UPDATE runs SET lease_until = $1 WHERE id = $2 AND ended_at = ''`, until, id)
	return n > 0, err
}

// OtherMachine reports whether a session worked on another machine, whose folders may have the same names as here.
func (db *DB) OtherMachine(s ralph.Session) bool { return db.Shared() && s.Machine != machine.Name() }

// LostSessions lists the open sessions of runs that have ended or are lost, oldest first; with again also the sessions
// whose decision failed.
func (tx *Tx) LostSessions(again bool) ([]ralph.Session, error) {
	return tx.lost(`s.role IN ('work', 'plan') AND ($1 = 1 OR s.undecided = '')`, again)
}

// WorksElsewhere returns a session in progress of another run than the given one; ok is false if there is none.
func (tx *Tx) WorksElsewhere(run int64) (s ralph.Session, ok bool, err error) {
	return sessionRows.first(tx, `WHERE s.completed_at = '' AND s.origin = 'loop' AND s.worker = ''
		AND s.role IN ('work', 'plan')
		AND s.undecided = '' AND s.run_id <> $1 ORDER BY s.started_at`, run)
}

// lost lists the open sessions of a kind whose run has ended or is lost, oldest first. Workers' sessions have claims.
func (tx *Tx) lost(kind string, args ...any) (lost []ralph.Session, err error) {
	open, err := sessionRows.all(tx, `WHERE s.completed_at = '' AND s.origin = 'loop' AND s.worker = '' AND `+kind+`
		ORDER BY s.started_at`, args...)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	list, err := runRows.all(tx, `WHERE r.ended_at = ''`)
	works := map[int64]bool{}
	for _, r := range list {
		works[r.ID] = tx.Alive(r)
	}
	for _, s := range open {
		if !works[s.RunID] {
			lost = append(lost, s)
		}
	}
	return lost, err
}

// Lease acquires the named lease, waiting up to wait, and renews it until release is called. holder is "" then; else it
// names the current holder.
func (db *DB) Lease(
	ctx context.Context, name string, wait time.Duration,
) (release func() error, holder string, err error) {
	process, leave := machine.Join()
	late := time.NewTimer(wait)
	defer late.Stop()
	for {
		changed := db.Changed()
		if holder, err = db.takeLease(ctx, name, process); err != nil || holder == "" {
			break
		}
		select {
		case <-changed:
			continue
		case <-time.After(time.Second): // its holder may be gone
			continue
		case <-late.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
		break
	}
	if err != nil || holder != "" {
		leave()
		return nil, holder, err
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	var kept sync.WaitGroup
	kept.Go(func() { db.keepLease(keeping, name, process) })
	return func() error {
		stop()
		kept.Wait()
		defer leave()
		err := db.Tx(context.WithoutCancel(ctx), func(tx *Tx) error {
			return tx.do(`DELETE FROM leases WHERE name = $1 AND process = $2`, name, process)
		})
		if errors.Is(err, ErrGone) {
			return nil // the lease is gone with the database
		}
		return err
	}, "", nil
}

// takeLease takes a lease, or returns its holder.
func (db *DB) takeLease(ctx context.Context, name, process string) (holder string, err error) {
	look := func(tx *Tx) (err error) {
		var by, of string
		var until ralph.Time
		err = tx.row(`SELECT machine, process, until FROM leases WHERE name = $1`, name).Scan(&by, &of, &until)
		ok, err := found(err)
		if holder = ""; ok && tx.alive(of, until) {
			holder = holderOf(by, of)
		}
		return err
	}
	if err := db.View(ctx, look); err != nil || holder != "" {
		return holder, err
	}
	err = db.Tx(ctx, func(tx *Tx) error {
		if err := look(tx); err != nil || holder != "" {
			return err
		}
		return tx.put("leases", "name", cells{
			"name": name, "machine": machine.Name(), "process": process, "until": ralph.At(tx.Now().Add(LeaseTime)),
		})
	})
	return holder, err
}

// holderOf names a process for people.
func holderOf(name, process string) string {
	if part := strings.Fields(process); len(part) > 1 {
		return fmt.Sprintf("process %s on %s", part[1], name)
	}
	return "a process on " + name
}

// keepLease renews a lease until ctx ends. A lease that was not renewed in time may belong to another process, so work
// under a lease must be safe even then.
func (db *DB) keepLease(ctx context.Context, name, process string) {
	tick := time.NewTicker(LeaseRenewal())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_ = db.Tx(ctx, func(tx *Tx) error { // on failure it tries again; at worst the lease expires
			return tx.do(`UPDATE leases SET until = $1 WHERE name = $2 AND process = $3`,
				ralph.At(tx.Now().Add(LeaseTime)), name, process)
		})
	}
}

// Outlast makes transactions wait for an unreachable server as long as a lease lasts, instead of pgRetry. Processes
// whose work would be lost call it before they begin.
func (db *DB) Outlast() { db.dialect.retry = LeaseTime }
