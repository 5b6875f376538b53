package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/lazy"
	"ralph/internal/term"
	"ralph/store"
)

// A work carries out a command.
type work = func(cmd *cobra.Command, args []string) error

// newCommand makes a command. Its usage determines the number of arguments; help.txt has its help.
func newCommand(use string, do work) *cobra.Command {
	return &cobra.Command{Use: use, Args: arity(use), RunE: do}
}

//go:embed help.txt
var helpText string

// explain sets the help of every command from help.txt: a line, a text and examples.
func explain(root *cobra.Command) error {
	for i, section := range strings.Split(helpText, "\n# ") {
		if i == 0 {
			continue // about the file itself
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
	for name, long := range shortcuts {
		short, _, err := root.Find([]string{name})
		cmd, _, lerr := root.Find(strings.Fields(long))
		if err = errors.Join(err, lerr); err != nil {
			return err
		}
		short.Short, short.Long, short.Example = cmd.Short, cmd.Long, cmd.Example
	}
	return nil
}

// showList prints a list, one item at a time by line.
func showList[T any](ctx context.Context, a *app, list func(tx *store.Tx) ([]T, error),
	line func(w io.Writer, v T),
) error {
	return showOf(ctx, a, read, list, func(w io.Writer, all []T) { each(w, all, line) })
}

// showTable prints a list as a table; the last column shrinks on a narrow terminal.
func showTable[T any](ctx context.Context, a *app, list func(tx *store.Tx) ([]T, error), head []string,
	cells func(v T) []string,
) error {
	return showOf(ctx, a, read, list, func(w io.Writer, all []T) { tabulate(a, w, all, head, cells) })
}

// tabulate writes a list as a table; nothing if it is empty.
func tabulate[T any](a *app, w io.Writer, all []T, head []string, cells func(v T) []string) {
	if len(all) == 0 {
		return
	}
	t := term.Table{Head: head, Flex: len(head) - 1}
	for _, v := range all {
		t.Rows = append(t.Rows, cells(v))
	}
	a.screen().Table(w, t)
}

// showOf prints the result of one of read, alter and add.
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

// after runs a change and then reads the changed object.
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

// onTask returns the function of a command with a task as its argument.
func onTask(do func(ctx context.Context, id int64) error) work {
	return func(cmd *cobra.Command, args []string) error {
		id, err := ralph.ParseTaskID(args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), id)
	}
}

// onNumber returns the function of a command with a number as its argument. Errors name the number by the word what.
func onNumber(what string, do func(ctx context.Context, id int64) error) work {
	return func(cmd *cobra.Command, args []string) error {
		id, err := number(what, args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), id)
	}
}

// letters has the letters that may precede a number, by kind.
var letters = map[string]string{"comment": "QC", "amendment": "A", "learning": "L", "permission": "P"}

// number parses a number, also as #12.
func number(what, arg string) (int64, error) {
	bare := strings.TrimPrefix(arg, "#")
	if letters[what] != "" {
		bare = strings.TrimLeft(strings.ToUpper(bare), letters[what]) // as in `ralph inbox`
	}
	id, err := strconv.ParseInt(bare, 10, 64)
	if err == nil && id > 0 {
		return id, nil
	}
	field, see := what, "`ralph "+what+" list`"
	if what == "comment" {
		field, see = "comment id", "`ralph inbox` or `ralph timeline`"
	}
	return 0, usage(&ralph.FieldError{Field: fmt.Sprintf("%s %q", field, arg), Problem: "is not a number; see " + see})
}

// optionalTask parses the task of a flag or an argument; 0 for "".
func optionalTask(arg string) (int64, error) {
	if arg == "" {
		return 0, nil
	}
	return ralph.ParseTaskID(arg)
}

// oneOf returns an error if a flag's value is not accepted.
func oneOf[T ~string](flag string, value T, accepted ...T) error {
	if slices.Contains(accepted, value) {
		return nil
	}
	return usage(&ralph.FieldError{
		Field: flag, Problem: fmt.Sprintf("%q is not one of the accepted values", value), Accepted: texts(accepted),
	})
}

// texts returns the values that are not empty.
func texts[T ~string](list []T) (out []string) {
	for _, v := range list {
		if v != "" {
			out = append(out, string(v))
		}
	}
	return out
}

var optional = lazy.Regexp(`\[[^]]*\](\.\.\.)?`)

// arity returns a check of the number of arguments, from a usage: words in brackets are optional.
func arity(use string) cobra.PositionalArgs {
	args := strings.TrimPrefix(use, strings.Fields(use)[0])
	required, most := len(strings.Fields(optional().ReplaceAllString(args, ""))), len(optional().FindAllString(args, -1))
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

// noun makes a command that only has subcommands.
func noun(use string, commands ...*cobra.Command) *cobra.Command {
	cmd := newCommand(use, func(cmd *cobra.Command, _ []string) error { return cmd.Help() })
	cmd.AddCommand(commands...)
	return cmd
}
