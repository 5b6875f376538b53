package bystander

import (
	"fmt"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/notify"
	"ralph/internal/project"
	"ralph/store"
)

// Notifier creates the notifier of the configured receivers. It starts nothing.
func Notifier(p *project.Project, db *store.DB) (*notify.Notifier, error) {
	c := p.Config.Notify
	n := &notify.Notifier{
		Store: db, Project: p.Name(), Dashboard: p.Config.Dashboard.URL, Drain: config.Fixed.NotifyDrain,
		Tries: config.Fixed.NotifyTries, Timeout: config.Fixed.NotifyTimeout,
		Log: p.Log, Mask: p.Mask().Text,
	}
	for i, r := range c.Receivers {
		receiver, err := newReceiver(p, r)
		if err == nil {
			err = receiver.Check()
		}
		if err != nil {
			return nil, ralph.Usage(fmt.Errorf("notify.receivers, item %d: %w", i+1, err))
		}
		n.Receivers = append(n.Receivers, receiver)
	}
	return n, nil
}

func newReceiver(p *project.Project, r config.Receiver) (to notify.Receiver, err error) {
	to = notify.Receiver{URL: r.URL, Command: r.Command, Preset: notify.Preset(r.Preset)}
	for _, e := range r.Events {
		to.Events = append(to.Events, notify.Type(e))
	}
	if len(r.Command) > 0 {
		to.Dir, to.Env = p.Root, p.Stripped()
	}
	if name := config.Variable(r.URL); name != "" {
		if to.URL, err = variable(p, "url", name); err != nil {
			return to, err
		}
	}
	if r.SecretEnv != "" {
		to.Secret, err = variable(p, "secret_env", r.SecretEnv)
	}
	return to, err
}

// variable returns the value of the environment variable that a key names.
func variable(p *project.Project, key, name string) (string, error) {
	if value := p.Getenv(name); value != "" {
		return value, nil
	}
	problem := fmt.Sprintf("names the environment variable %s, which is not set", name)
	return "", &ralph.FieldError{Field: key, Problem: problem}
}
