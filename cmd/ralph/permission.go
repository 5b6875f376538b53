package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/text"
	"ralph/loop/agent/claude"
	"ralph/store"
)

func newPermission(a *app) *cobra.Command {
	var session string
	cmd := newCommand("permission [TOOL] [INPUT]", func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return a.listPermissions(cmd.Context(), session)
		case 1:
			return usage(errors.New("a tool needs its input: ralph permission TOOL INPUT"))
		}
		return a.tryPermission(cmd.Context(), args[0], args[1])
	})
	cmd.Flags().StringVar(&session, "session", "", "all questions of this session, by the beginning of its `ID`")
	return cmd
}

// listPermissions prints the agents' requests, and the answers.
func (a *app) listPermissions(ctx context.Context, session string) error {
	return showList(ctx, a, func(tx *store.Tx) ([]ralph.Permission, error) {
		if session == "" {
			return tx.Permissions("")
		}
		s, err := tx.Session(session)
		if err != nil {
			return nil, err
		}
		return tx.Permissions(s.ID)
	},
		func(w io.Writer, p ralph.Permission) {
			by := cmp.Or(p.DecidedBy, p.Rule)
			if by != "" {
				by = " (" + by + ")"
			}
			fmt.Fprintf(w, "%6d  TASK-%d  %-5s%s  %s\n",
				p.ID, p.TaskID, p.Decision, by, text.RequestLine(p.Tool+" "+p.Input))
		})
}

// tryPermission prints the rules' answer to the use of a tool.
func (a *app) tryPermission(ctx context.Context, tool, arg string) error {
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	given, err := p.Permissions()
	if err != nil {
		return usage(err)
	}
	input := json.RawMessage(arg)
	if field := claude.MainField(tool); field != "" {
		if input, err = json.Marshal(map[string]string{field: arg}); err != nil {
			return err
		}
	} else if err := claude.Tools.CheckDenies(tool); err != nil {
		return usage(err)
	} else if !json.Valid(input) {
		return usage(&ralph.FieldError{Field: "INPUT", Problem: "must be JSON for the tool " + tool})
	}
	answer := given.Policy.Decide(tool, input)
	v := map[string]string{"decision": string(answer.Verdict), "rule": answer.Rule, "reason": answer.Reason}
	return a.print(v, func(w io.Writer) {
		fmt.Fprintln(w, answer.Verdict)
		if answer.Reason != "" {
			fmt.Fprintln(w, answer.Reason)
		}
	})
}
