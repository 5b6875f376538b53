package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/proc"
	"ralph/signals"
	"ralph/store"
)

func newSuggestionSplit(a *app) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "split COMMENT|TASK-ID", Short: "Put several tasks in the place of one, in an editor",
		Long: `Open an editor ($VISUAL, $EDITOR or vi) with the parts that an agent suggested: a
part begins with "- " and its title; what is indented below it is its description.
Saved without parts, nothing is changed. --parts reads them from a file, or from
standard input, and opens no editor.

The parts take the task's place: it is cancelled, what waited for it waits for all of
them, and the last part waits for the others and has the criteria and the
verification of the whole.`,
		Example: "  ralph suggestion split 31\n  ralph suggestion split TASK-12 --parts parts.txt", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.toSplit(cmd, args[0])
			if err != nil {
				return err
			}
			var parts []store.Part
			if file != "" {
				name, text, err := a.readInput(file)
				if err != nil {
					return err
				}
				if parts, err = parseParts(string(text)); err != nil {
					return usage(fmt.Errorf("%s: %w", name, err))
				}
			} else if parts, err = a.editParts(cmd, s); err != nil {
				return err
			}
			if len(parts) == 0 {
				_, err := fmt.Fprintln(a.out, "no parts: nothing is changed")
				return err
			}
			var ids []int64
			err = a.write(cmd.Context(), func(tx *store.Tx) error {
				if ids, err = tx.Split(s.task.ID, parts, a.person()); err != nil || s.comment == 0 {
					return err
				}
				return tx.Resolve(s.comment, fmt.Sprintf("split into %d tasks", len(ids)), a.person())
			})
			if err != nil {
				return err
			}
			return a.print(map[string]any{"task_id": s.task.ID, "parts": ids}, func(w io.Writer) error {
				for i, id := range ids {
					fmt.Fprintf(w, "TASK-%d added: %s\n", id, oneLine(parts[i].Title, 100))
				}
				_, err := fmt.Fprintf(w, "TASK-%d is cancelled\n", s.task.ID)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&file, "parts", "", "read the parts from this `FILE`, or - for standard input")
	return cmd
}

// splitting is a task that is to be split, and what an agent said of it.
type splitting struct {
	task    ralph.Task
	comment int64 // 0 if nobody suggested it
	what    signals.Suggest
}

// toSplit finds what is meant: a suggestion by its comment, or a task.
func (a *app) toSplit(cmd *cobra.Command, arg string) (s splitting, err error) {
	byTask := len(arg) > 5 && strings.EqualFold(arg[:5], "task-")
	var id int64
	if byTask {
		id, err = ralph.ParseTaskID(arg)
	} else {
		id, err = commentID(arg)
	}
	if err != nil {
		return s, err
	}
	err = a.read(cmd.Context(), func(tx *store.Tx) error {
		if !byTask {
			c, what, err := tx.Suggestion(id)
			if err != nil {
				return err
			}
			s.comment, s.what, id = c.ID, what, c.TaskID
		}
		s.task, err = tx.Task(id)
		return err
	})
	return s, err
}

// editParts has a person write the parts. What cannot be read is kept in a file,
// whose name the error says.
func (a *app) editParts(cmd *cobra.Command, s splitting) (parts []store.Part, err error) {
	if !onTerminal(a.out) {
		return nil, usage(errors.New("there is no terminal for an editor; give the parts with --parts FILE"))
	}
	dir, err := os.MkdirTemp("", "ralph-split-*")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "parts.txt")
	if err := os.WriteFile(path, []byte(s.form()), 0o600); err != nil {
		return nil, err
	}
	editor := "vi"
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if e := strings.TrimSpace(a.getenv(name)); e != "" {
			editor = e
			break
		}
	}
	if err := proc.Foreground(cmd.Context(), append(strings.Fields(editor), path), a.environ); err != nil {
		return nil, fmt.Errorf("editor %s (set VISUAL or EDITOR): %w; the text is in %s", editor, err, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if parts, err = parseParts(string(text)); err == nil && len(parts) == 1 {
		err = errors.New("parts must be two or more")
	}
	if err != nil {
		return nil, usage(fmt.Errorf("%w; the text is in %s: mend it and give it with --parts", err, path))
	}
	return parts, os.RemoveAll(dir)
}

// form is what the editor shows first.
func (s splitting) form() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The parts of TASK-%d: %s\n#\n", s.task.ID, oneLine(s.task.Title, 200))
	if s.comment != 0 {
		for line := range strings.Lines("An agent suggests: " + strings.TrimSpace(s.what.What) + "\nWhy: " + strings.TrimSpace(s.what.Why)) {
			fmt.Fprintf(&b, "# %s\n", strings.TrimRight(printable(line), "\n"))
		}
		b.WriteString("#\n")
	}
	b.WriteString("# A part begins with \"- \" and its title; what is indented below it is its description.\n" +
		"# The last part waits for the others. Lines that begin with # are left out; without\n# parts nothing is changed.\n\n")
	for _, title := range suggestedParts(s.what.What) {
		fmt.Fprintf(&b, "- %s\n", title)
	}
	return b.String()
}

// suggestedParts are the items of a list in what an agent said; its lines, if there is none.
func suggestedParts(what string) (titles []string) {
	var lines []string
	for line := range strings.Lines(printable(what)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		item := strings.TrimLeft(line, "0123456789.)-*• \t")
		if item != line && item != "" {
			titles = append(titles, item)
		}
		lines = append(lines, line)
	}
	if len(titles) == 0 {
		return lines
	}
	return titles
}

// parseParts reads what a person wrote.
func parseParts(text string) (parts []store.Part, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		title, part := strings.CutPrefix(line, "- ")
		switch {
		case strings.HasPrefix(line, "#"):
		case part:
			if err := ralph.CheckTitle(fmt.Sprintf("line %d: the title", n), strings.TrimSpace(title)); err != nil {
				return nil, err
			}
			parts = append(parts, store.Part{Title: strings.TrimSpace(title)})
		case strings.TrimSpace(line) == "" && len(parts) == 0:
		case len(parts) == 0 || line != "" && line[0] != ' ' && line[0] != '\t':
			return nil, fmt.Errorf("line %d is neither a part (\"- title\") nor indented below one: %s", n, oneLine(line, 60))
		default:
			p := &parts[len(parts)-1]
			p.Description += strings.TrimSpace(line) + "\n"
		}
	}
	for i := range parts {
		parts[i].Description = strings.TrimSpace(parts[i].Description)
	}
	return parts, nil
}
