package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/bystander"
	"ralph/internal/proc"
	"ralph/internal/project"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/loop"
	"ralph/store"
)

// serveFlags override keys of the configuration.
var serveFlags = []keyFlag{
	{"addr", "dashboard.addr", "serve on `ADDRESS`"},
	{"sign-in", "dashboard.sign_in", "for `WHAT` a browser on this machine has to sign in: always or changes"},
}

func newServe(a *app) *cobra.Command {
	var o bystander.Options
	var link bool
	cmd := newCommand("serve", func(cmd *cobra.Command, _ []string) error {
		return a.begin(cmd.Context(), func(p *project.Project, db *store.DB) error {
			if err := setKeys(cmd, p, serveFlags); err != nil {
				return err
			}
			if link {
				link, err := bystander.Link(p, o)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(a.out, link)
				return err
			}
			if err := proc.Close(); err != nil {
				return err
			}
			d, err := a.openDashboard(cmd.Context(), p, db, o)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return d.Serve(ctx)
		})
	})
	addKeys(cmd, serveFlags)
	cmd.Flags().StringVar(&o.TLSCert, "tls-cert", "", "a `FILE` with the certificate for HTTPS")
	cmd.Flags().StringVar(&o.TLSKey, "tls-key", "", "the `FILE` with its key")
	cmd.Flags().BoolVar(&o.Insecure, "insecure", false, "serve other machines without TLS")
	cmd.Flags().BoolVar(&link, "link", false, "only print the address that signs a browser in")
	return cmd
}

// openDashboard listens on the dashboard's address, and prints the URL and how to sign in. The
// token is printed only to a terminal: other output may be logged.
func (a *app) openDashboard(ctx context.Context, p *project.Project, db *store.DB, o bystander.Options) (
	*bystander.Dashboard, error,
) {
	o.Person, o.Version = a.person(), release
	o.Settle = func(ctx context.Context) error {
		return errors.Join(a.decideClaims(ctx, p, db), mergeDetached(ctx, p, db))
	}
	o.Start = func(ctx context.Context) (string, error) { return startRun(ctx, p, db) }
	o.Undo = func(ctx context.Context, task int64, to ralph.Status, why string, byAgent bool) (string, error) {
		l, err := p.Loop(ctx, db)
		if err != nil {
			return "", err
		}
		said, err := l.AskUndo(ctx, task, loop.Undoing{By: a.person(), Why: why, Agent: byAgent, To: to})
		if err != nil {
			return "", err
		}
		return said, mergeDetached(ctx, p, db)
	}
	o.Patch = func(ctx context.Context, session, from, to string) (string, error) {
		d := difference{Session: session, From: from, To: to}
		err := a.fill(ctx, &d, false)
		return d.Diff, err
	}
	d, err := bystander.Open(ctx, p, db, o)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(a.err, "dashboard on %s\n", d.URL)
	if o.Insecure && strings.HasPrefix(d.URL, "http:") {
		fmt.Fprintln(a.err, "warning: without TLS others on the network can read the pages and the token")
	}
	if term.Is(a.err) {
		fmt.Fprintf(a.err, "sign in: %s\n", d.Link)
	} else {
		fmt.Fprintln(a.err, "sign in with the address that `ralph serve --link` prints")
	}
	return d, nil
}

// How long the start of a run from the dashboard may take, and how often ralph checks.
const (
	runBegins = time.Minute
	runPoll   = 20 * time.Millisecond
)

// runLog is the file with the output of the last run that the dashboard started.
const runLog = "run.log"

// startRun starts `ralph run` as a separate process, which outlives the dashboard, and waits until
// it has begun.
func startRun(ctx context.Context, p *project.Project, db *store.DB) (string, error) {
	active, err := p.Active(ctx, db)
	if err != nil {
		return "", err
	}
	if active {
		return "", ralph.Conflict("a run is active already")
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	log, err := os.OpenFile(p.File(runLog), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return "", err
	}
	defer log.Close()
	ended, err := proc.Detach([]string{self, "-C", p.Root, "run"}, p.Environ, p.Root, log)
	if err != nil {
		return "", fmt.Errorf("ralph run: %w", err)
	}
	patience, cancel := context.WithTimeout(ctx, runBegins)
	defer cancel()
	tick := time.NewTicker(runPoll)
	defer tick.Stop()
	for {
		select {
		case how := <-ended:
			said, err := os.ReadFile(p.File(runLog))
			if err != nil {
				return "", err
			}
			if how != nil {
				return "", ralph.Conflict("the run ended at once (%v): %s", how, text.Short(string(said), 1000))
			}
			return "The run has ended: " + text.Short(text.ClipEnd(string(said), 300), 300), nil
		case <-tick.C:
			if active, err := p.Active(ctx, db); err != nil || active {
				return "The run has begun.", err
			}
		case <-patience.Done():
			return "", fmt.Errorf("the run has not begun after %s; see %s", runBegins, p.File(runLog))
		}
	}
}
