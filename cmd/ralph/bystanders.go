package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"ralph/internal/notify"
	"ralph/internal/web"
	"ralph/internal/web/localhttp"
	"ralph/loop"
	"ralph/store"
)

// bystanders are those on whom the work of a run does not depend: the notifier, who
// tidies old transcripts, and the servers of metrics and of the dashboard where they
// are wanted.
type bystanders struct {
	project  *project
	db       *store.DB
	log      *slog.Logger
	notifier *notify.Notifier
	metrics  *web.Server
	listener net.Listener // nil if no metrics are wanted

	dashboard *openedDashboard // nil if it is not wanted
}

// newBystanders makes them from the project's configuration. It starts nothing.
func newBystanders(a *app, p *project, db *store.DB) (b bystanders, err error) {
	b.project, b.db = p, db
	b.log = slog.New(slog.NewTextHandler(a.err, nil))
	if b.notifier, err = newNotifier(a, p, db); err != nil {
		return b, err
	}
	b.metrics = &web.Server{
		Store: db, Version: version(), Log: b.log,
		Active: func() (bool, error) { return loop.Active(p.state) },
	}
	return b, nil
}

// listen takes the address of the metrics, if there is one, and that of the
// dashboard if it is wanted.
func (b *bystanders) listen(ctx context.Context, a *app, serve bool) (err error) {
	if addr := b.project.config.Metrics.Addr; addr != "" {
		if b.listener, err = localhttp.Listen(ctx, "metrics.addr", addr); err != nil {
			return usage(err)
		}
	}
	if !serve {
		return nil
	}
	d, err := openDashboard(ctx, a, b.project, b.db)
	if err != nil {
		b.close()
		return err
	}
	b.dashboard = &d
	d.announce(a)
	return nil
}

// close gives the addresses back, also where nothing was started.
func (b bystanders) close() {
	listeners := []net.Listener{b.listener}
	if b.dashboard != nil {
		listeners = append(listeners, b.dashboard.listener)
	}
	for _, l := range listeners {
		if l == nil {
			continue
		}
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			b.log.Warn("an address was not given back", "error", err)
		}
	}
}

// tidyEvery is how often old transcripts are looked at during a long run.
const tidyEvery = 24 * time.Hour

// tidy keeps the transcripts within their budget until ctx ends.
func (b bystanders) tidy(ctx context.Context) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := keepWithin(ctx, b.project, b.db); err != nil {
				b.log.Warn("old transcripts could not be handled", "error", err)
			}
		}
	}
}

// start starts them for a run whose events come after from and which ends when
// over is closed. leave waits for their end; what is wrong with them is logged.
func (b bystanders) start(ctx context.Context, from int64, over <-chan struct{}) (leave func()) {
	serving, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	b.notifier.From, b.notifier.Over = from, over
	running.Go(func() {
		if err := b.notifier.Run(ctx); err != nil {
			b.log.Error("nobody is notified", "error", err)
		}
	})
	running.Go(func() { b.tidy(serving) })
	if b.listener != nil {
		running.Go(func() {
			if err := b.metrics.ServeMetrics(serving, b.listener); err != nil {
				b.log.Error("no metrics are served", "error", err)
			}
		})
	}
	if b.dashboard != nil {
		running.Go(func() {
			if err := b.dashboard.serve(serving); err != nil {
				b.log.Error("no dashboard is served", "error", err)
			}
		})
	}
	return func() {
		stop()
		running.Wait()
	}
}
