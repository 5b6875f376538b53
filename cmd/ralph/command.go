package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/store"
)

// A work is what a command does.
type work = func(cmd *cobra.Command, args []string) error

// newCommand makes a command. Its usage says how many arguments it takes.
func newCommand(use, short, example string, do work) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Example: shownExample(example), Args: arity(use), RunE: do}
}

// listing is a command that lists what is read, as line writes each.
func listing[T any](a *app, use, short, example string, list func(tx *store.Tx) ([]T, error),
	line func(w io.Writer, v T),
) *cobra.Command {
	return newCommand(use, short, example, func(cmd *cobra.Command, _ []string) error {
		return showList(cmd.Context(), a, list, line)
	})
}

// showList prints what is read, as line writes each.
func showList[T any](ctx context.Context, a *app, list func(tx *store.Tx) ([]T, error), line func(w io.Writer, v T)) error {
	all, err := read(ctx, a, list)
	if err != nil {
		return err
	}
	return a.print(all, func(w io.Writer) { each(w, all, line) })
}

func each[T any](w io.Writer, list []T, line func(w io.Writer, v T)) {
	for _, v := range list {
		line(w, v)
	}
}

// onTask is the work of a command on a task.
func onTask(do func(ctx context.Context, id int64) error) work {
	return func(cmd *cobra.Command, args []string) error {
		id, err := ralph.ParseTaskID(args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), id)
	}
}

// onNumber is the work of a command on something that has a number.
func onNumber(what string, do func(ctx context.Context, id int64) error) work {
	return func(cmd *cobra.Command, args []string) error {
		id, err := number(what, args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), id)
	}
}

// number reads the number of something that has one, also as #12.
func number(what, arg string) (int64, error) {
	id, err := strconv.ParseInt(strings.TrimPrefix(arg, "#"), 10, 64)
	if err == nil && id > 0 {
		return id, nil
	}
	field, see := what, "`ralph "+what+" list`"
	if what == "comment" {
		field, see = "comment id", "`ralph inbox` or `ralph timeline`"
	}
	return 0, usage(&ralph.FieldError{Field: fmt.Sprintf("%s %q", field, arg), Problem: "is not a number; see " + see})
}

// optionalTask is the task of a flag or an argument; 0 for "".
func optionalTask(arg string) (int64, error) {
	if arg == "" {
		return 0, nil
	}
	return ralph.ParseTaskID(arg)
}

// oneOf refuses a flag's value that is not one of the accepted ones.
func oneOf[T ~string](flag string, value T, accepted ...T) error {
	if slices.Contains(accepted, value) {
		return nil
	}
	return usage(&ralph.FieldError{
		Field: flag, Problem: fmt.Sprintf("%q is not one of the accepted values", value), Accepted: texts(accepted),
	})
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// shownExample is an example as it is shown, two blanks before each line.
func shownExample(example string) string {
	if example == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(example, "\n", "\n  ")
}

var optional = regexp.MustCompile(`\[[^]]*\](\.\.\.)?`)

// arity is how many arguments a usage allows: words in brackets may be left out.
func arity(use string) cobra.PositionalArgs {
	args := strings.TrimPrefix(use, strings.Fields(use)[0])
	required, most := len(strings.Fields(optional.ReplaceAllString(args, ""))), len(optional.FindAllString(args, -1))
	switch {
	case required+most == 0:
		return cobra.NoArgs
	case strings.Contains(args, "..."):
		return cobra.MinimumNArgs(required)
	case most > 0:
		return cobra.RangeArgs(required, required+most)
	}
	return cobra.ExactArgs(required)
}

// noun is a command that only has subcommands.
func noun(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := newCommand(use, short, "", func(cmd *cobra.Command, _ []string) error { return cmd.Help() })
	cmd.AddCommand(commands...)
	return cmd
}
