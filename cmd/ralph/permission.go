package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/permission"
	"ralph/internal/text"
	"ralph/loop/agent/claude"
	"ralph/store"
)

// permissionsVariable carries the rules to `ralph mcp`. The agent is handed them
// as they were when its session began; what it writes to ralph.yaml changes none.
const permissionsVariable = "RALPH_PERMISSIONS"

// A permit is what permissionsVariable holds, as JSON.
type permit struct {
	Policy  permission.Policy `json:"policy"`
	Timeout time.Duration     `json:"ask_timeout"`
}

// permissionRules are the rules of a project. The error names a rule that is none.
func permissionRules(c config.Permissions, p *project, temp, home string) (permit, error) {
	for _, list := range []struct {
		key   string
		rules []string
	}{{"permissions.allow", c.Allow}, {"permissions.ask", c.Ask}, {"permissions.deny", c.Deny}} {
		for _, rule := range list.rules {
			if _, err := permission.ParseRule(rule); err != nil {
				return permit{}, fmt.Errorf("%s: %w", list.key, err)
			}
		}
	}
	policy := permission.Policy{
		Allow: c.Allow, Ask: c.Ask, Deny: c.Deny, Default: permission.Verdict(c.Default), Guards: c.Guards,
		Project: follow(p.root), State: follow(p.guarded()), Home: home,
	}
	for _, dir := range append([]string{temp, "/tmp", "/var/tmp"}, c.Writable...) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(p.root, dir)
		}
		policy.Writable = append(policy.Writable, follow(dir))
	}
	return permit{policy, c.AskTimeout}, nil
}

// follow resolves the links of a path as far as it exists.
func follow(path string) string {
	for dir, rest := path, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
	}
}

// permitter answers an agent's questions by the rules that its server was given,
// and records each; nil if it was given none.
func permitter(db *store.DB, task int64, session, rules string) (func(ctx context.Context, tool string, input json.RawMessage) (bool, string, error), error) {
	if rules == "" {
		return nil, nil
	}
	var given permit
	if err := json.Unmarshal([]byte(rules), &given); err != nil {
		return nil, fmt.Errorf("the environment variable %s: %w", permissionsVariable, err)
	}
	given.Policy.Resolve = follow
	return func(ctx context.Context, tool string, input json.RawMessage) (bool, string, error) {
		a := given.Policy.Decide(tool, input)
		kept := string(input)
		var expires ralph.Time
		if a.Verdict == permission.Ask {
			expires = ralph.At(time.Now().Add(given.Timeout))
		} else if len(kept) > ralph.MaxPermissionInput {
			kept = kept[:ralph.MaxPermissionInput] + "…"
		}
		// The client may go away meanwhile; what was decided is recorded all the same.
		id, err := db.AddPermission(context.WithoutCancel(ctx), ralph.Permission{
			TaskID: task, SessionID: session, Tool: tool, Input: strings.ToValidUTF8(kept, "\uFFFD"),
			Decision: string(a.Verdict), Rule: a.Rule, Reason: a.Reason, Expires: expires,
		})
		if err != nil || a.Verdict != permission.Ask {
			return a.Verdict == permission.Allow, a.Reason, err
		}
		return awaitPermission(ctx, db, id, given.Timeout)
	}, nil
}

// awaitPermission waits for a person's word, and denies when nobody answers.
func awaitPermission(ctx context.Context, db *store.DB, id int64, limit time.Duration) (bool, string, error) {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		changed := db.Changed()
		var p ralph.Permission
		if err := db.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
			p, err = tx.Permission(id)
			return err
		}); err != nil {
			return false, "", err
		}
		if !p.DecidedAt.IsZero() {
			return p.Decision == string(permission.Allow), p.Reason, nil
		}
		reason := ""
		select {
		case <-changed:
			continue
		case <-late.C:
			reason = fmt.Sprintf("nobody answered within %s. Do without it, or signal blocked (external) and say what you need.", config.FormatDuration(limit))
		case <-ctx.Done():
			reason = "the agent did not wait for the answer"
		}
		err := db.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
			return tx.DecidePermission(id, string(permission.Deny), reason, "")
		})
		return false, reason, err
	}
}

func newPermission(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "permission", Short: "See and answer what agents ask permission for",
		Long: `Agents ask ralph whether they may use a tool; the rules of permissions in
ralph.yaml answer, and what is under permissions.ask waits for a person.
Every answer is recorded. See docs/permissions.md.`,
	}
	cmd.AddCommand(newPermissionList(a), newPermissionDecide(a, permission.Allow), newPermissionDecide(a, permission.Deny), newPermissionTest(a))
	return cmd
}

func newPermissionList(a *app) *cobra.Command {
	var session string
	cmd := &cobra.Command{
		Use: "list", Short: "List what waits for an answer, or all that a session asked",
		Example: "  ralph permission list\n  ralph permission list --session bcb16b43", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []ralph.Permission
			err := a.read(cmd.Context(), func(tx *store.Tx) error {
				if session != "" {
					s, err := tx.Session(session)
					if err != nil {
						return err
					}
					session = s.ID
				}
				var err error
				list, err = tx.Permissions(session)
				return err
			})
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) error { return sayPermissions(w, list) })
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "all that this session asked, by the beginning of its `ID`")
	return cmd
}

func sayPermissions(w io.Writer, list []ralph.Permission) error {
	for _, p := range list {
		by := p.Rule
		if p.DecidedBy != "" {
			by = p.DecidedBy
		}
		if by != "" {
			by = " (" + by + ")"
		}
		if _, err := fmt.Fprintf(w, "%6d  TASK-%d  %-5s%s  %s %s\n", p.ID, p.TaskID, p.Decision, by, p.Tool, text.VisibleLine(p.Input)); err != nil {
			return err
		}
	}
	return nil
}

func newPermissionDecide(a *app, verdict permission.Verdict) *cobra.Command {
	short := map[permission.Verdict]string{permission.Allow: "Allow what an agent waits for", permission.Deny: "Deny what an agent waits for"}[verdict]
	return &cobra.Command{
		Use: string(verdict) + " ID [REASON]", Short: short, Example: fmt.Sprintf("  ralph permission %s 7", verdict), Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || id <= 0 {
				return usage(&ralph.FieldError{Field: fmt.Sprintf("permission %q", args[0]), Problem: "is not a number; see `ralph permission list`"})
			}
			reason := append(args, "")[1]
			var p ralph.Permission
			err = a.write(cmd.Context(), func(tx *store.Tx) error {
				if err := tx.AnswerPermission(id, verdict == permission.Allow, reason, a.person()); err != nil {
					return err
				}
				p, err = tx.Permission(id)
				return err
			})
			if err != nil {
				return err
			}
			return a.print(p, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "permission %d: %s; the session goes on\n", id, verdict)
				return err
			})
		},
	}
}

func newPermissionTest(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "test TOOL INPUT", Short: "Say what the rules answer, without recording it",
		Long:    "Say what the rules answer. INPUT is a shell command for Bash, a path for the tools with a file, else the tool's input as JSON.",
		Example: "  ralph permission test Bash 'git push --force'\n  ralph permission test Write ../other/file", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.project(cmd.Context())
			if err != nil {
				return err
			}
			given, err := permissionRules(p.config.Permissions, p, a.getenv("TMPDIR"), a.getenv("HOME"))
			if err != nil {
				return usage(err)
			}
			given.Policy.Resolve = follow
			input := json.RawMessage(args[1])
			if field := claude.MainField(args[0]); field != "" {
				if input, err = json.Marshal(map[string]string{field: args[1]}); err != nil {
					return err
				}
			} else if !json.Valid(input) {
				return usage(&ralph.FieldError{Field: "INPUT", Problem: "must be JSON for the tool " + args[0]})
			}
			answer := given.Policy.Decide(args[0], input)
			return a.print(map[string]string{"decision": string(answer.Verdict), "rule": answer.Rule, "reason": answer.Reason}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s\n%s", answer.Verdict, oneLineIf(answer.Reason))
				return err
			})
		},
	}
}

// oneLineIf is a line for a text, none for "".
func oneLineIf(s string) string {
	if s == "" {
		return ""
	}
	return s + "\n"
}
