package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"ralph/internal/show"
)

func newApprove(a *app) *cobra.Command {
	var yes bool
	cmd := newCommand("config", func(cmd *cobra.Command, _ []string) error { return a.approveConfig(cmd.Context(), yes) })
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return noun("approve", cmd)
}

func (a *app) approveConfig(ctx context.Context, yes bool) error {
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	db, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	why := p.WaitsForApproval()
	if why == "" {
		return a.say(map[string]any{"approved": []string{}},
			"nothing waits for approval: what configures runs is as people left it")
	}
	if !a.json {
		fmt.Fprintf(a.out, "%s:\n%s", why, p.Differences())
	}
	if err := p.Approvable(); err != nil {
		return err
	}
	if !yes {
		if !show.Terminal(a.in) {
			return usage(errors.New("there is no terminal to ask on; look at what changed, then `ralph approve config --yes`"))
		}
		fmt.Fprint(a.out, "Approve? [y/N] ")
		line, err := bufio.NewReader(a.in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
			return usage(errors.New("not approved; nothing was changed"))
		}
	}
	names, err := p.Approve(ctx, db, a.person())
	if err != nil {
		return err
	}
	return a.say(map[string]any{"approved": names}, "approved: %s", strings.Join(names, ", "))
}
