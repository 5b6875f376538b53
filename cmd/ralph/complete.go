package main

import (
	"fmt"
	"slices"
	"strings"

	"ralph/internal/text"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/store"
)

// completions are what the shell offers for an argument or a flag, by the word
// that stands for it in the usage. Each is "value\tdescription".
var completions = map[string]func(tx *store.Tx) ([]string, error){
	"ID":   completeTasks,
	"TASK": completeTasks,
	"FEATURE": func(tx *store.Tx) ([]string, error) {
		list, err := tx.Features()
		return collect(list, err, func(f ralph.Feature) string { return f.Name + "\t" + text.Line(f.Description, 60) })
	},
	"DISCIPLINE": func(tx *store.Tx) ([]string, error) {
		list, err := tx.Disciplines()
		return collect(list, err, func(d ralph.Discipline) string { return d.Name + "\t" + text.Line(d.Instructions, 60) })
	},
	"SESSION": func(tx *store.Tx) ([]string, error) {
		list, err := tx.Sessions(store.SessionFilter{Limit: 50})
		return collect(list, err, func(s ralph.Session) string {
			return fmt.Sprintf("%.8s\tTASK-%d, %s", s.ID, s.TaskID, text.Line(s.Reason, 60))
		})
	},
	"COMMENT": func(tx *store.Tx) ([]string, error) {
		inbox, err := tx.Inbox()
		inbox = slices.DeleteFunc(inbox, func(i store.InboxItem) bool { return i.Ref.Of != store.OfComment })
		return collect(inbox, err, func(i store.InboxItem) string {
			return fmt.Sprintf("%d\t%s: %s", i.Ref.ID, ralph.Named(i.Kind, i.TaskID), text.Line(i.Text, 60))
		})
	},
}

func completeTasks(tx *store.Tx) ([]string, error) {
	tasks, err := tx.Tasks(store.TaskFilter{})
	return collect(tasks, err, func(t ralph.Task) string {
		return fmt.Sprintf("%d\t%s: %s", t.ID, t.Status, text.Line(t.Title, 60))
	})
}

func collect[T any](list []T, err error, line func(T) string) ([]string, error) {
	lines := make([]string, len(list))
	for i, v := range list {
		lines[i] = line(v)
	}
	return lines, err
}

// flagValues are what flags take, by their names.
var flagValues = map[string][]string{
	"status":  texts(ralph.Statuses),
	"verb":    texts(ralph.Verbs),
	"kind":    texts(ralph.CommentKinds),
	"outcome": {ralph.OutcomeSuccess, ralph.OutcomeFailure, ralph.OutcomeTimeout},
}

// flagKinds are the flags that name something, by their names.
var flagKinds = map[string]string{
	"task": "TASK", "depends-on": "TASK", "before": "TASK", "after": "TASK", "on": "TASK",
	"feature": "FEATURE", "discipline": "DISCIPLINE", "session": "SESSION",
}

// complete has the shell complete ids and names, for every command.
func (a *app) complete(cmd *cobra.Command) error {
	if words := strings.Fields(cmd.Use); len(words) > 1 && cmd.ValidArgsFunction == nil {
		kind := strings.Trim(words[1], "[].…")
		if parent := cmd.Parent(); parent != nil && kind == "ID" && parent.Name() == "session" {
			kind = "SESSION"
		}
		if kind == "NAME" && cmd.Parent() != nil && cmd.Name() != "add" {
			kind = strings.ToUpper(cmd.Parent().Name())
		}
		if completions[kind] != nil {
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, start string) (
				[]string, cobra.ShellCompDirective,
			) {
				if len(args) > 0 {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return a.offer(cmd, kind, start)
			}
		}
	}
	register := func(flag string, offered cobra.CompletionFunc) error {
		if cmd.LocalFlags().Lookup(flag) == nil {
			return nil
		}
		return cmd.RegisterFlagCompletionFunc(flag, offered)
	}
	for name, values := range flagValues {
		if err := register(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			return err
		}
	}
	for name, kind := range flagKinds {
		offered := func(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
			return a.offer(cmd, kind, start)
		}
		if err := register(name, offered); err != nil {
			return err
		}
	}
	for _, c := range cmd.Commands() {
		if err := a.complete(c); err != nil {
			return err
		}
	}
	return nil
}

// offer lists what begins so. A project that cannot be read offers nothing.
func (a *app) offer(cmd *cobra.Command, kind, start string) ([]string, cobra.ShellCompDirective) {
	list, err := read(cmd.Context(), a, completions[kind])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	list = slices.DeleteFunc(list, func(s string) bool { return !strings.HasPrefix(s, start) })
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
