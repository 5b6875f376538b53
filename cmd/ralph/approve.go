package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/inbox"
	"ralph/internal/show"
	"ralph/internal/text"
	"ralph/store"
)

func newApprove(a *app) *cobra.Command {
	var yes bool
	cmd := newCommand("approve ITEM [WORDS]", func(cmd *cobra.Command, args []string) error {
		if args[0] == advice.Configuration {
			return a.approveConfig(cmd.Context(), yes)
		}
		return a.decide(cmd.Context(), args, true)
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask (config)")
	cmd.PostRunE = a.endClaims
	return cmd
}

func newReject(a *app) *cobra.Command {
	cmd := newCommand("reject ITEM [WORDS]", func(cmd *cobra.Command, args []string) error {
		return a.decide(cmd.Context(), args, false)
	})
	cmd.PostRunE = a.endClaims
	return cmd
}

// decide approves or rejects the inbox item of a name that `ralph inbox` shows.
func (a *app) decide(ctx context.Context, args []string, approve bool) error {
	words := append(args, "")[1]
	if err := ralph.CheckText("WORDS", words, false); err != nil {
		return err
	}
	var said string
	return showOf(ctx, a, alter, func(tx *store.Tx) (i store.InboxItem, err error) {
		i, said, err = inbox.Decide(tx, args[0], approve, words, a.person())
		return i, err
	}, func(w io.Writer, _ store.InboxItem) { fmt.Fprintln(w, text.Line(said, 300)) })
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
