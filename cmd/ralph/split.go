package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/exchange"
	"ralph/internal/inbox"
	"ralph/internal/proc"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/store"
)

func newTaskSplit(a *app) *cobra.Command {
	var file string
	cmd := newCommand("split TASK-ID|COMMENT", func(cmd *cobra.Command, args []string) error {
		s, comment, err := a.toSplit(cmd, args[0])
		if err != nil {
			return err
		}
		var parts []ralph.Part
		if file != "" {
			name, text, err := a.readInput(file)
			if err != nil {
				return err
			}
			if parts, err = exchange.ParseParts(string(text)); err != nil {
				return usage(fmt.Errorf("%s: %w", name, err))
			}
		} else if parts, err = a.editParts(cmd, s); err != nil {
			return err
		}
		if len(parts) == 0 {
			_, err := fmt.Fprintln(a.out, "no parts: nothing is changed")
			return err
		}
		ids, err := alter(cmd.Context(), a, func(tx *store.Tx) ([]int64, error) {
			return inbox.Split(tx, s.Task.ID, comment, parts, a.person())
		})
		if err != nil {
			return err
		}
		return a.print(map[string]any{"task_id": s.Task.ID, "parts": ids}, func(w io.Writer) {
			for i, id := range ids {
				fmt.Fprintf(w, "TASK-%d added: %s\n", id, text.Line(parts[i].Title, 100))
			}
			fmt.Fprintf(w, "TASK-%d is cancelled\n", s.Task.ID)
		})
	})
	cmd.Flags().StringVar(&file, "parts", "", "read the parts from this `FILE`, or - for standard input")
	return cmd
}

// toSplit resolves the argument: a suggestion by its comment, or a task; then comment is 0.
func (a *app) toSplit(cmd *cobra.Command, arg string) (s exchange.Splitting, comment int64, err error) {
	byTask := len(arg) > 5 && strings.EqualFold(arg[:5], "task-")
	var id int64
	if byTask {
		id, err = ralph.ParseTaskID(arg)
	} else {
		id, err = number("comment", arg)
	}
	if err != nil {
		return s, 0, err
	}
	s, err = read(cmd.Context(), a, func(tx *store.Tx) (s exchange.Splitting, err error) {
		if !byTask {
			c, what, err := tx.Suggestion(id)
			if err != nil {
				return s, err
			}
			comment, id = c.ID, c.TaskID
			s.Suggested, s.What, s.Why = true, what.What, what.Why
		}
		s.Task, err = tx.Task(id)
		return s, err
	})
	return s, comment, err
}

// editParts lets a person write the parts in an editor. Text that cannot be parsed stays in a file, which the error
// names.
func (a *app) editParts(cmd *cobra.Command, s exchange.Splitting) (parts []ralph.Part, err error) {
	if !term.Is(a.out) {
		return nil, usage(errors.New("there is no terminal for an editor; give the parts with --parts FILE"))
	}
	dir, err := os.MkdirTemp("", "ralph-split-*")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "parts.txt")
	if err := os.WriteFile(path, []byte(s.Form()), 0o600); err != nil {
		return nil, err
	}
	editor := cmp.Or(strings.TrimSpace(a.getenv("VISUAL")), strings.TrimSpace(a.getenv("EDITOR")), "vi")
	if err := proc.Foreground(cmd.Context(), append(strings.Fields(editor), path), a.environ, nil); err != nil {
		return nil, fmt.Errorf("editor %s (set VISUAL or EDITOR): %w; the text is in %s", editor, err, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if parts, err = exchange.ParseParts(string(text)); err == nil && len(parts) == 1 {
		err = errors.New("parts must be two or more")
	}
	if err != nil {
		return nil, usage(fmt.Errorf("%w; the text is in %s: correct it and give it with --parts", err, path))
	}
	return parts, os.RemoveAll(dir)
}
