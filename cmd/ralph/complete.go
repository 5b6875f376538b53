package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/exchange"
	"ralph/internal/inbox"
	"ralph/internal/report"
	"ralph/internal/text"
	"ralph/mcpserver"
	"ralph/store"
)

// completions has the shell's suggestions for an argument or a flag, by its word in the usage. Each suggestion is
// "value\tdescription".
var completions = map[string]func(tx *store.Tx, start string) ([]string, error){
	"ID":   completeTasks,
	"TASK": completeTasks,
	"ITEM": func(tx *store.Tx, _ string) ([]string, error) {
		waits, err := inbox.All(tx)
		return collect(waits, err, func(i store.InboxItem) string {
			return i.Item + "\t" + ralph.Named(i.Kind, i.TaskID) + ": " + text.Line(inbox.Said(i), 60)
		})
	},
	"RUN": func(tx *store.Tx, _ string) ([]string, error) {
		last, ok, err := tx.LastRun()
		var list []string
		for id := last.ID; ok && id > max(0, last.ID-offered); id-- {
			list = append(list, strconv.FormatInt(id, 10))
		}
		return list, err
	},
	"MODEL": func(tx *store.Tx, _ string) ([]string, error) {
		list, err := tx.Sessions(store.SessionFilter{Limit: offered})
		models := []string{}
		for _, s := range list {
			if s.Model != "" && !slices.Contains(models, s.Model) {
				models = append(models, s.Model)
			}
		}
		return models, err
	},
	"FEATURE": func(tx *store.Tx, _ string) ([]string, error) {
		list, err := tx.Features()
		return collect(list, err, func(f ralph.Feature) string { return f.Name + "\t" + text.Line(f.Description, 60) })
	},
	"DISCIPLINE": func(tx *store.Tx, _ string) ([]string, error) {
		list, err := tx.Disciplines()
		return collect(list, err, func(d ralph.Discipline) string { return d.Name + "\t" + text.Line(d.Instructions, 60) })
	},
	"SESSION": func(tx *store.Tx, _ string) ([]string, error) {
		list, err := tx.Sessions(store.SessionFilter{Limit: 50})
		return collect(list, err, func(s ralph.Session) string {
			return fmt.Sprintf("%.8s\tTASK-%d, %s", s.ID, s.TaskID, text.Line(s.Reason, 60))
		})
	},
	"COMMENT": func(tx *store.Tx, _ string) ([]string, error) {
		waits, err := tx.Inbox()
		waits = slices.DeleteFunc(waits, func(i store.InboxItem) bool { return i.Ref.Of != store.OfComment })
		return collect(waits, err, func(i store.InboxItem) string {
			return fmt.Sprintf("%d\t%s: %s", i.Ref.ID, ralph.Named(i.Kind, i.TaskID), text.Line(inbox.Said(i), 60))
		})
	},
}

// settings suggests the keys of the configuration, after the subcommand.
func settings(_ *cobra.Command, args []string, start string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		return []string{"show", "get", "schema"}, cobra.ShellCompDirectiveNoFileComp
	}
	for _, k := range config.Keys() {
		if strings.HasPrefix(k.Name, start) {
			names = append(names, k.Name+"\t"+text.Line(k.Description, 60))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// offered is the maximum number of suggested tasks.
const offered = 100

// completeTasks suggests tasks in the order of the queue, also as TASK-12.
func completeTasks(tx *store.Tx, start string) ([]string, error) {
	f := store.TaskFilter{Limit: offered}
	name := ""
	if n := len("TASK-"); len(start) >= n && strings.EqualFold(start[:n], "TASK-") {
		name, start = start[:n], start[n:]
	}
	if start != "" {
		var err error
		if f.Begins, err = strconv.ParseInt(start, 10, 64); err != nil || f.Begins <= 0 {
			return nil, nil //nolint:nilerr // no task has such a number
		}
	}
	tasks, err := tx.Tasks(f)
	return collect(tasks, err, func(t ralph.Task) string {
		return fmt.Sprintf(name+"%d\t%s: %s", t.ID, t.Word(), text.Line(t.Title, 60))
	})
}

func collect[T any](list []T, err error, line func(T) string) ([]string, error) {
	lines := make([]string, len(list))
	for i, v := range list {
		lines[i] = line(v)
	}
	return lines, err
}

// flagValues has the accepted values of flags, by name.
var flagValues = map[string][]string{
	"status": ralph.Words,
	"verb":   texts(ralph.Verbs),
	"kind":   texts(ralph.CommentKinds),
	"ended":  ralph.Ended,

	"priority": {"0\thighest", "1", "2\tdefault", "3", "4\tlowest"},
	"by":       {"model", "agent", "day", "feature"},
	"on-red":   {"stop", "first", "go"},
	"sign-in":  {"always", "changes"},
	"type":     ralph.EventTypes,
	"allow":    {"tests"},
	"usage":    {"{five_hour: 80%}", "{seven_day: 90%}"},

	"profile":    {"loop", "worker", "chat"},
	"scopes":     append([]string{strings.Join(mcpserver.Scopes, ",")}, mcpserver.Scopes...),
	"tool-names": {"dotted", "underscore"},
	"add scope":  {ralph.ScopeProject, ralph.ScopeFeature},
	"list scope": {ralph.ScopeProject, ralph.ScopeFeature, ralph.ScopeTask},

	"amendment status": {"proposed", "approved", "rejected", "superseded"},

	"report format": report.Formats, "import format": exchange.Formats(), "export format": exchange.ExportFormats(),
	"graph format": {"text", "dot", "mermaid"}, "run format": {"text", "json", formatGitHub},
}

// flagKinds are the flags that take names from completions, by name.
var flagKinds = map[string]string{
	"task": "TASK", "depends-on": "TASK", "before": "TASK", "after": "TASK", "on": "TASK",
	"feature": "FEATURE", "discipline": "DISCIPLINE", "session": "SESSION", "reply-to": "COMMENT", "run": "RUN",
	"model": "MODEL",
}

// agents suggests the configured agents. A project that cannot be read has none.
func (a *app) agents(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if p, err := a.project(cmd.Context()); err == nil {
		names = slices.Concat([]string{ralph.DefaultAgent}, slices.Sorted(maps.Keys(p.Config.Agents)))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// valuesOf returns the values of a command's flags: its own or its group's, else the general ones.
func valuesOf(cmd *cobra.Command) map[string][]string {
	values := map[string][]string{}
	for name, list := range flagValues {
		of, flag, specific := strings.Cut(name, " ")
		switch {
		case !specific && values[name] == nil:
			values[name] = list
		case specific && (of == cmd.Name() || cmd.HasParent() && of == cmd.Parent().Name()):
			values[flag] = list
		}
	}
	return values
}

// complete sets up completion of ids and names for every command.
func (a *app) complete(cmd *cobra.Command) error {
	if words := strings.Fields(cmd.Use); len(words) > 1 && cmd.ValidArgsFunction == nil {
		kind, _, _ := strings.Cut(strings.Trim(words[1], "[].…"), "|")
		if kind == "NAME" && cmd.Parent() != nil && cmd.Name() != "add" {
			kind = strings.ToUpper(cmd.Parent().Name())
		}
		if words[0] == "config" {
			cmd.ValidArgsFunction = settings
		}
		if completions[kind] != nil {
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, start string) (
				[]string, cobra.ShellCompDirective,
			) {
				if len(args) > 0 && !strings.Contains(cmd.Use, "...") {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return a.offer(cmd, kind, start)
			}
		}
	}
	register := func(flag string, offered cobra.CompletionFunc) error {
		if cmd.Flags().Lookup(flag) == nil {
			return nil
		}
		return cmd.RegisterFlagCompletionFunc(flag, offered)
	}
	for _, name := range []string{"agent", "review"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.Type() != "bool" {
			if err := register(name, a.agents); err != nil {
				return err
			}
		}
	}
	for name, values := range valuesOf(cmd) {
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

// offer lists the suggestions that start with the given text. A project that cannot be read has
// none.
func (a *app) offer(cmd *cobra.Command, kind, start string) ([]string, cobra.ShellCompDirective) {
	list, err := read(cmd.Context(), a, func(tx *store.Tx) ([]string, error) { return completions[kind](tx, start) })
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	list = slices.DeleteFunc(list, func(s string) bool { return !strings.HasPrefix(s, start) })
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
