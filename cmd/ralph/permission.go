package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/permission"
	"ralph/internal/text"
	"ralph/loop/agent/claude"
	"ralph/store"
)

func newPermission(a *app) *cobra.Command {
	allow, deny := newPermissionDecide(a, permission.Allow), newPermissionDecide(a, permission.Deny)
	allow.Hidden, deny.Hidden = true, true // replaced by `ralph approve`, `ralph reject`; removed in the next release
	return noun("permission", newPermissionList(a), allow, deny, newPermissionTest(a))
}

func newPermissionList(a *app) *cobra.Command {
	var session string
	cmd := listing(a, "list", func(tx *store.Tx) ([]ralph.Permission, error) {
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
			fmt.Fprintf(w, "%6d  TASK-%d  %-5s%s  %s %s\n",
				p.ID, p.TaskID, p.Decision, by, p.Tool, text.VisibleLine(p.Input))
		})
	cmd.Flags().StringVar(&session, "session", "", "all that this session asked, by the beginning of its `ID`")
	return cmd
}

func newPermissionDecide(a *app, verdict permission.Verdict) *cobra.Command {
	return newCommand(string(verdict)+" ID [REASON]", func(cmd *cobra.Command, args []string) error {
		id, err := number("permission", args[0])
		if err != nil {
			return err
		}
		answer := func(tx *store.Tx) (int64, error) {
			return id, tx.AnswerPermission(id, verdict == permission.Allow, append(args, "")[1], a.person())
		}
		return showOf(cmd.Context(), a, alter, after(answer, (*store.Tx).Permission),
			func(w io.Writer, _ ralph.Permission) {
				fmt.Fprintf(w, "permission %d: %s; the session goes on\n", id, verdict)
			})
	})
}

func newPermissionTest(a *app) *cobra.Command {
	return newCommand("test TOOL INPUT", func(cmd *cobra.Command, args []string) error {
		p, err := a.project(cmd.Context())
		if err != nil {
			return err
		}
		given, err := p.Permissions()
		if err != nil {
			return usage(err)
		}
		input := json.RawMessage(args[1])
		if field := claude.MainField(args[0]); field != "" {
			if input, err = json.Marshal(map[string]string{field: args[1]}); err != nil {
				return err
			}
		} else if !json.Valid(input) {
			return usage(&ralph.FieldError{Field: "INPUT", Problem: "must be JSON for the tool " + args[0]})
		}
		answer := given.Policy.Decide(args[0], input)
		v := map[string]string{"decision": string(answer.Verdict), "rule": answer.Rule, "reason": answer.Reason}
		return a.print(v, func(w io.Writer) {
			fmt.Fprintln(w, answer.Verdict)
			if answer.Reason != "" {
				fmt.Fprintln(w, answer.Reason)
			}
		})
	})
}
