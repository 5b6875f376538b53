package main

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/notify"
	"ralph/store"
)

func newNotify(a *app) *cobra.Command {
	test := &cobra.Command{
		Use: "test", Short: "Send a test event to every receiver and say what came of it",
		Long: `Send an event of type "test" to every receiver of the configuration (notify), once,
and say what came of it. The exit status is 1 if one of them did not take it.`,
		Example: "  ralph notify test", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(p *project, db *store.DB) error {
				n, err := newNotifier(a, p, db)
				if err != nil {
					return err
				}
				results, err := n.Test(cmd.Context(), time.Now())
				if err != nil {
					return err
				}
				return a.sayNotified(results)
			})
		},
	}
	return noun("notify", "Try the receivers of notifications", test)
}

func (a *app) sayNotified(results []notify.TestResult) error {
	failed := 0
	for _, r := range results {
		if r.Error != "" {
			failed++
		}
	}
	err := a.print(results, func(w io.Writer) error {
		if len(results) == 0 {
			_, err := fmt.Fprintln(w, "no receivers: set notify in ralph.yaml (docs/notifications.md)")
			return err
		}
		for _, r := range results {
			line := "ok"
			switch {
			case r.Error != "":
				line = "FAILED " + oneLine(r.Error, 400)
			case r.Signed:
				line = "ok, signed"
			}
			if _, err := fmt.Fprintf(w, "%-40s %s\n", r.Receiver, line); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d receivers did not take it", failed, len(results))
	}
	return err
}

// newNotifier makes what tells the configured receivers. It starts nothing.
func newNotifier(a *app, p *project, db *store.DB) (*notify.Notifier, error) {
	c := p.config.Notify
	n := &notify.Notifier{
		Store: db, Project: filepath.Base(p.root), Drain: c.Drain, Tries: c.Tries, Timeout: c.Timeout,
		Log: slog.New(slog.NewTextHandler(a.err, nil)),
	}
	for i, r := range c.Receivers {
		receiver, err := newReceiver(a, p, r)
		if err == nil {
			err = receiver.Check()
		}
		if err != nil {
			return nil, usage(fmt.Errorf("notify.receivers, item %d: %w", i+1, err))
		}
		n.Receivers = append(n.Receivers, receiver)
	}
	return n, nil
}

func newReceiver(a *app, p *project, r config.Receiver) (to notify.Receiver, err error) {
	to = notify.Receiver{URL: r.URL, Command: r.Command, Preset: notify.Preset(r.Preset)}
	for _, e := range r.Events {
		to.Events = append(to.Events, notify.Type(e))
	}
	if len(r.Command) > 0 {
		to.Dir, to.Env = p.root, withoutSecrets(a.environ, p.config.Notify)
	}
	if r.URLEnv != "" {
		if to.URL, err = a.variable("url_env", r.URLEnv); err != nil {
			return to, err
		}
	}
	if r.SecretEnv != "" {
		to.Secret, err = a.variable("secret_env", r.SecretEnv)
	}
	return to, err
}

// variable is the value of the environment variable that a key names.
func (a *app) variable(key, name string) (string, error) {
	for _, e := range slices.Backward(a.environ) {
		if value, ok := strings.CutPrefix(e, name+"="); ok && value != "" {
			return value, nil
		}
	}
	return "", &ralph.FieldError{Field: key, Problem: fmt.Sprintf("names the environment variable %s, which is not set", name)}
}

// withoutSecrets is the environment for what is not ralph's own: the agent, what
// it wrote and is verified by, and people's commands.
func withoutSecrets(environ []string, n config.Notify) []string {
	return slices.DeleteFunc(withoutProtocol(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(n.Receivers, func(r config.Receiver) bool { return name == r.URLEnv || name == r.SecretEnv })
	})
}
