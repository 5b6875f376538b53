package main

import (
	"context"
	_ "embed"
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

// newCommand makes a command. Its usage says how many arguments it takes, help.txt what
// it is for.
func newCommand(use string, do work) *cobra.Command {
	return &cobra.Command{Use: use, Args: arity(use), RunE: do}
}

//go:embed help.txt
var helpText string

// explain gives every command what help.txt says of it: a line, a text and examples.
func explain(root *cobra.Command) error {
	for i, section := range strings.Split(helpText, "\n# ") {
		if i == 0 {
			continue // about the file
		}
		name, text, _ := strings.Cut(strings.TrimSpace(section), "\n")
		cmd, _, err := root.Find(strings.Fields(name)[1:])
		if err != nil || cmd.CommandPath() != name {
			return fmt.Errorf("help.txt is about %q, which does not exist", name)
		}
		text, examples, _ := strings.Cut(text, "\n\n$ ")
		cmd.Short, cmd.Long, _ = strings.Cut(text, "\n\n")
		if examples != "" {
			cmd.Example = "  " + strings.ReplaceAll(examples, "\n$ ", "\n  ")
		}
	}
	return nil
}

// listing is a command that lists what is read, as line writes each.
func listing[T any](a *app, use string, list func(tx *store.Tx) ([]T, error),
	line func(w io.Writer, v T),
) *cobra.Command {
	return newCommand(use, func(cmd *cobra.Command, _ []string) error {
		return showList(cmd.Context(), a, list, line)
	})
}

// showList prints what is read, as line writes each.
func showList[T any](ctx context.Context, a *app, list func(tx *store.Tx) ([]T, error),
	line func(w io.Writer, v T),
) error {
	return showOf(ctx, a, read, list, func(w io.Writer, all []T) { each(w, all, line) })
}

// showOf prints what one of read, alter and add comes to.
func showOf[T any](ctx context.Context, a *app,
	with func(ctx context.Context, a *app, f func(tx *store.Tx) (T, error)) (T, error),
	f func(tx *store.Tx) (T, error), human func(w io.Writer, v T),
) error {
	v, err := with(ctx, a, f)
	if err != nil {
		return err
	}
	return a.print(v, func(w io.Writer) { human(w, v) })
}

// after makes a change and reads what it changed as it is then.
func after[T any](change func(tx *store.Tx) (id int64, err error), read func(tx *store.Tx, id int64) (T, error),
) func(tx *store.Tx) (T, error) {
	return func(tx *store.Tx) (v T, err error) {
		id, err := change(tx)
		if err != nil {
			return v, err
		}
		return read(tx, id)
	}
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
func noun(use string, commands ...*cobra.Command) *cobra.Command {
	cmd := newCommand(use, func(cmd *cobra.Command, _ []string) error { return cmd.Help() })
	cmd.AddCommand(commands...)
	return cmd
}
