// Package bystander runs what accompanies a run without affecting its work: the notifier, the cleaning
// up of old transcripts, and the server of the dashboard.
package bystander

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"ralph/forge"
	"ralph/internal/config"
	"ralph/internal/notify"
	"ralph/internal/project"
	"ralph/store"
)

// Bystanders are the companions of a run.
type Bystanders struct {
	project  *project.Project
	db       *store.DB
	notifier *notify.Notifier

	dashboard *Dashboard // nil if disabled

	// Forge keeps the queue and the forge in step; nil if the project follows none.
	Forge *forge.Syncer
}

// New creates the bystanders from the project's configuration. It starts nothing.
func New(p *project.Project, db *store.DB) (b Bystanders, err error) {
	b.project, b.db = p, db
	b.notifier, err = Notifier(p, db)
	return b, err
}

// Listen listens on the address of the dashboard if open is not nil.
func (b *Bystanders) Listen(ctx context.Context, open func(context.Context) (*Dashboard, error)) (err error) {
	if open != nil {
		b.dashboard, err = open(ctx)
	}
	return err
}

// Close releases the address, also if nothing was started.
func (b Bystanders) Close() {
	if b.dashboard == nil {
		return
	}
	if err := b.dashboard.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		b.project.Log.Warn("an address was not released", "error", err)
	}
}

// tidyEvery is the interval at which old transcripts are cleaned up, and the queue is copied, during a
// long run.
const tidyEvery = 24 * time.Hour

// tidy keeps the transcripts within their limits, and a copy of the queue, until ctx ends.
func (b Bystanders) tidy(ctx context.Context) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := b.project.Tidy(ctx, b.db); err != nil {
				b.project.Log.Warn("cannot clean up old transcripts", "error", err)
			}
			if err := b.project.Backup(ctx, b.db); err != nil {
				b.project.Log.Warn("there is no copy of the queue of today", "error", err)
			}
		}
	}
}

// firstLook is the time that a run waits for its first look at the forge, which may add tasks.
const firstLook = 30 * time.Second

// LookFirst looks at the forge before the run begins. A failure does not prevent the run.
func (b Bystanders) LookFirst(ctx context.Context) error {
	if b.Forge == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, firstLook)
	defer cancel()
	err := b.Forge.Once(limited)
	if errors.Is(err, forge.ErrFollowed) || ctx.Err() != nil {
		return nil
	}
	return err
}

// Start starts the bystanders of a run with events after from, until over is closed. leave waits
// for them to end; their errors are logged.
func (b Bystanders) Start(ctx context.Context, from int64, over <-chan struct{}) (leave func()) {
	serving, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	b.notifier.From, b.notifier.Over = from, over
	running.Go(func() {
		if err := b.notifier.Run(ctx); err != nil {
			b.project.Log.Error("nobody is notified", "error", err)
		}
	})
	running.Go(func() { b.tidy(serving) })
	if b.Forge != nil {
		running.Go(func() { b.Forge.Run(ctx, over, config.Fixed.NotifyDrain) })
	}
	hindered := make(chan error, 1)
	b.db.Hindered = func(err error) {
		b.project.LogHindrance(err)
		if store.NoRoom(err) {
			select {
			case hindered <- err:
			default: // it is being told
			}
		}
	}
	running.Go(func() {
		for {
			select {
			case <-serving.Done():
				return
			case why := <-hindered:
				b.notifier.Full(serving, why, time.Now())
			}
		}
	})
	if b.dashboard != nil {
		running.Go(func() {
			if err := b.dashboard.Serve(serving); err != nil {
				b.project.Log.Error("no dashboard is served", "error", err)
			}
		})
	}
	return func() {
		stop()
		running.Wait()
	}
}
