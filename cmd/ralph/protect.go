package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/permission"
	"ralph/internal/state"
	"ralph/internal/text"
	"ralph/loop/agent/claude"
)

// A protected path is an item of `ralph protect --json`.
type protected struct {
	Rule   string             `json:"rule"`
	Tried  string             `json:"tried"`  // a file that the rule covers
	Answer permission.Verdict `json:"answer"` // to a change of the file
}

// newProtect makes the command that forbids agents to change files: it writes rules, and tries them.
func newProtect(a *app) *cobra.Command {
	return newCommand("protect GLOB...", func(cmd *cobra.Command, args []string) error {
		var rules []string
		for _, glob := range args {
			rule := claude.Tools.Edit + "(" + strings.TrimSpace(glob) + ")"
			if err := claude.Tools.CheckDenies(rule); err != nil {
				return usage(err)
			}
			rules = append(rules, rule)
		}
		p, err := a.project(cmd.Context())
		if err != nil {
			return err
		}
		file := p.Path(state.ConfigName)
		was, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		is, err := config.Deny(was, rules)
		if err != nil {
			return usage(fmt.Errorf("%s: %w", file, err))
		}
		if err := os.WriteFile(file, is, 0o644); err != nil { //nolint:gosec // people share it
			return err
		}
		list, err := a.tryProtected(cmd.Context(), rules, args)
		if err != nil {
			return err
		}
		return a.print(list, func(w io.Writer) {
			for _, v := range list {
				fmt.Fprintf(w, "%s in %s; tried: changing %s → %s\n", text.VisibleLine(v.Rule), state.ConfigName,
					text.VisibleLine(v.Tried), v.Answer)
			}
		})
	})
}

// tryProtected asks the present rules about a change of a file that matches each glob.
func (a *app) tryProtected(ctx context.Context, rules, globs []string) (list []protected, err error) {
	p, err := a.project(ctx)
	if err != nil {
		return nil, err
	}
	given, err := p.Permissions()
	if err != nil {
		return nil, usage(err)
	}
	example := strings.NewReplacer("**", "x", "*", "x", "?", "x")
	for i, glob := range globs {
		v := protected{Rule: rules[i], Tried: example.Replace(glob)}
		input, err := json.Marshal(map[string]string{claude.MainField(claude.Tools.Edit): v.Tried})
		if err != nil {
			return nil, err
		}
		v.Answer = given.Policy.Decide(claude.Tools.Edit, input).Verdict
		if v.Answer != permission.Deny {
			return nil, ralph.Conflict("the rule %q is written, and changing %q is still answered with %s: "+
				"`ralph permission` says why", v.Rule, v.Tried, v.Answer)
		}
		list = append(list, v)
	}
	return list, nil
}
