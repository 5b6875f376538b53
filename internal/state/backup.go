package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ralph/store"
)

const (
	copyName   = "queue-"  // begins the names of the copies that runs make
	copiesKept = 3         // number of them
	smallQueue = 32 << 20  // bytes of a database that is copied in a moment
	copyAge    = time.Hour // after which a larger one is copied again
	spareRoom  = 16 << 20  // bytes that a copy has to leave free
)

// due reports whether it is time to copy a queue of that size again, given the age of its copy.
func due(size int64, since time.Duration) bool { return size <= smallQueue || since >= copyAge }

// Backup copies the queue into the folder of backups unless that has a copy of its present state, and removes all but
// the newest of its copies. It skips a large queue if there is a copy of the last hour: the cost of a run must not grow
// with the history.
func (h *Home) Backup(ctx context.Context, db *store.DB) error {
	if h.Server != "" {
		return nil // the server's administrators make backups
	}
	_, at, err := h.newestBackup(func(string) bool { return true })
	if err != nil {
		return err
	}
	size, err := sizeOf(h.File(Database))
	if err != nil || !due(size, time.Since(at)) {
		return err
	}
	if room, known := free(h.State); known && room < size+spareRoom {
		return fmt.Errorf("only %d MiB are free in %s", room>>20, h.State)
	}
	dir := h.File(backups)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	commits, err := store.Read(ctx, db, (*store.Tx).Commits)
	if err != nil {
		return err
	}
	had, err := filepath.Glob(filepath.Join(dir, copyName+"*.db"))
	if err != nil {
		return err
	}
	slices.Sort(had)
	end := fmt.Sprintf("-%d.db", commits)
	if len(had) > 0 && strings.HasSuffix(had[len(had)-1], end) {
		return nil
	}
	name := filepath.Join(dir, copyName+time.Now().UTC().Format("20060102T150405.000")+end)
	if err := db.Backup(ctx, name); err != nil {
		return err
	}
	for len(had) >= copiesKept {
		err, had = errors.Join(err, os.Remove(had[0])), had[1:]
	}
	return err
}
