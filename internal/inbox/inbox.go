// Package inbox shows what waits for a person, asks about it, and decides on it.
package inbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/text"
	"ralph/store"
)

// Item writes an item, with numbered options if one is to be chosen.
func Item(w io.Writer, i store.InboxItem, numbered bool) {
	what := i.Kind
	if !strings.HasPrefix(i.Item, "TASK-") {
		what = ralph.Named(what, i.TaskID)
	}
	fmt.Fprintf(w, "%-10s %s %s\n", i.Item, what, text.VisibleLine(i.Title))
	said := Said(i)
	if i.Kind == "permission" {
		said = text.Request(said)
	}
	Whole(w, "           ", said)
	for _, l := range i.Diff {
		fmt.Fprintf(w, "           %s\n", text.Visible(l))
	}
	if !i.Expires.IsZero() {
		fmt.Fprintf(w, "           answers itself with deny at %s\n", i.Expires.Local().Format("15:04:05"))
	}
	for n, o := range i.Options {
		mark := " "
		if o == i.Preferred {
			mark = "*"
		}
		if numbered {
			mark += fmt.Sprintf(" %d)", n+1)
		}
		fmt.Fprintf(w, "           %s %s\n", mark, text.VisibleLine(o))
	}
}

// Whole writes all lines of a text, each with the same prefix.
func Whole(w io.Writer, before, said string) {
	for l := range strings.Lines(strings.Trim(text.Visible(said), "\n")) {
		fmt.Fprintln(w, strings.TrimRight(before+l, " \t\n"))
	}
}

// A choice is something that a person can do about an inbox item, with the arguments of the
// command.
type choice struct {
	key   string
	label string
	args  []string
	asks  string // prompt for a text appended to the arguments; "" for none
}

// choices returns what a person can do about an item. If the first has no key, any text that is
// typed belongs to it.
func choices(i store.InboxItem) []choice {
	if list := kinds[i.Kind].choices; list != nil {
		return list(i)
	}
	return nil
}

// A Dialogue asks a person about inbox items, one after the other.
type Dialogue struct {
	In    *bufio.Scanner
	Out   io.Writer
	Inbox func(ctx context.Context) ([]store.InboxItem, error)
	Do    func(ctx context.Context, args []string) error // runs a ralph command
}

// Run asks about every item. Decisions are carried out by the corresponding commands.
func (d Dialogue) Run(ctx context.Context) error {
	passed := map[string]bool{}
	decided, later := 0, 0
	for {
		inbox, err := d.Inbox(ctx)
		if err != nil {
			return err
		}
		item, left := nextItem(inbox, passed)
		if item == nil {
			break
		}
		later = len(passed) + left
		fmt.Fprintf(d.Out, "\n(%d left)\n", left)
		Item(d.Out, *item, true)
		done, leave, err := d.ask(ctx, *item)
		if err != nil {
			return err
		}
		if leave {
			break
		}
		if done {
			decided++
			later--
		} else {
			passed[keyOf(*item)] = true
		}
	}
	_, err := fmt.Fprintf(d.Out, "\n%s, %d left for later\n", text.Count(decided, "decision"), later)
	return err
}

func keyOf(i store.InboxItem) string { return fmt.Sprint(i.Kind, i.TaskID, i.Ref.ID) }

// nextItem returns the first item that was not skipped, and the number of such items.
func nextItem(inbox []store.InboxItem, passed map[string]bool) (item *store.InboxItem, left int) {
	for i := range inbox {
		if passed[keyOf(inbox[i])] || len(choices(inbox[i])) == 0 {
			continue
		}
		if left++; item == nil {
			item = &inbox[i]
		}
	}
	return item, left
}

// ask asks about one item until it is answered or skipped, or the person leaves.
func (d Dialogue) ask(ctx context.Context, i store.InboxItem) (done, leave bool, err error) {
	list := choices(i)
	for {
		fmt.Fprint(d.Out, "  "+menu(list, len(i.Options))+" > ")
		typed, ok, err := d.line()
		if !ok || typed == "q" {
			return false, true, err
		}
		if typed == "" {
			return false, false, nil
		}
		args, err := d.chosen(list, i, typed)
		if err == nil && args == nil {
			continue
		}
		if err == nil {
			err = d.Do(ctx, args)
		}
		switch {
		case err == nil && (args[1] == "list" || args[0] == "inbox"):
			continue // shown, but not decided yet
		case err == nil:
			return true, false, nil
		}
		fmt.Fprintf(d.Out, "  %s\n", text.Line(advice.Explain(err), 500))
	}
}

// menu lists what can be typed.
func menu(list []choice, options int) string {
	var parts []string
	for _, c := range list {
		switch {
		case c.key != "":
			parts = append(parts, c.key+": "+c.label)
		case options > 0:
			parts = append(parts, fmt.Sprintf("%s, or 1-%d", c.label, options))
		default:
			parts = append(parts, c.label)
		}
	}
	return strings.Join(append(parts, "Enter: later", "q: leave"), ", ")
}

// chosen returns the command for the typed text; nil for none.
func (d Dialogue) chosen(list []choice, i store.InboxItem, typed string) ([]string, error) {
	short := slices.ContainsFunc(list, func(c choice) bool { return c.key == typed })
	if list[0].key == "" && !short {
		if n, err := strconv.Atoi(typed); err == nil && n >= 1 && n <= len(i.Options) {
			typed = i.Options[n-1]
		}
		return append(list[0].args, "--", typed), nil
	}
	for _, c := range list {
		if c.key != typed {
			continue
		}
		if c.asks == "" {
			return c.args, nil
		}
		fmt.Fprintf(d.Out, "  %s > ", c.asks)
		said, ok, err := d.line()
		if !ok || err != nil || said == "" {
			return nil, err
		}
		switch last := c.args[len(c.args)-1]; {
		case i.Kind == "plan" && c.key == "c":
			return append(append(c.args, "--"), strings.Fields(said)...), nil
		case i.Kind == "plan":
			return append(append(c.args, "--reason="+said, "--"), itemNames(i.Parts)...), nil
		case strings.HasPrefix(last, "--"):
			return append(c.args, said), nil
		}
		return append(c.args, "--", said), nil
	}
	return nil, fmt.Errorf("%q is none of the keys", typed)
}

// line reads a typed line; ok is false at the end of input.
func (d Dialogue) line() (typed string, ok bool, err error) {
	if !d.In.Scan() {
		return "", false, d.In.Err()
	}
	return strings.TrimSpace(d.In.Text()), true, nil
}
