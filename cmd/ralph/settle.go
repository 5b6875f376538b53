package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ralph/store"
)

// A choice is what a person can do about something in the inbox. The command is
// the one that would be typed.
type choice struct {
	key   string
	label string
	args  []string
	asks  string // for a text that goes behind the arguments; "" for none
}

// choices are what settles an item. Where the first has no key, whatever is typed
// is its text.
func choices(i store.InboxItem) []choice {
	comment, task := strconv.FormatInt(i.Ref.ID, 10), strconv.FormatInt(i.TaskID, 10)
	resolve := func(label string) choice { return choice{"x", label, []string{"resolve", comment}, "decision"} }
	decide := []choice{
		{"a", "approve", []string{"resolve", comment, "--approve"}, ""},
		{"r", "refuse", []string{"resolve", comment, "--refuse"}, ""},
	}
	switch i.Kind {
	case "question":
		return []choice{{"", "your answer", []string{"answer", comment}, ""}}
	case "permission":
		return []choice{{"a", "allow", []string{"permission", "allow", comment}, ""}, {"d", "deny", []string{"permission", "deny", comment}, ""}}
	case "blocker", "flag":
		return []choice{{"", "how it was resolved", []string{"resolve", comment}, ""}}
	case "conflict":
		return []choice{
			{"f", "forget learning " + comment, []string{"learning", "forget", comment}, ""},
			{"b", "both hold", []string{"learning", "reconcile", comment}, ""},
		}
	case "amendment":
		return []choice{
			{"a", "approve", []string{"amendment", "approve", comment}, ""},
			{"r", "reject", []string{"amendment", "reject", comment, "--note"}, "reason"},
			{"d", "show what it changes", []string{"amendment", "show", comment}, ""},
		}
	case "review", "nack":
		return decide
	case "dependency":
		return []choice{{"r", "retry TASK-" + comment, []string{"task", "retry", comment}, ""}, {"u", "wait for it no longer", []string{"task", "unblock", task, "--on", comment}, ""}}
	case "failed":
		return []choice{{"r", "retry", []string{"task", "retry", task}, ""}, {"c", "cancel", []string{"task", "cancel", task}, ""}}
	case "claim":
		return []choice{{"c", "complete", []string{"task", "complete", task}, ""}, {"r", "release", []string{"task", "release", task}, ""}}
	case "proposal":
		return []choice{
			{"a", "approve", []string{"suggestion", "approve", task}, ""},
			{"e", "edit its title", []string{"suggestion", "edit", task, "--title"}, "title"},
			{"r", "reject", []string{"suggestion", "reject", task, "--reason"}, "reason"},
		}
	case "suggestion":
		switch {
		case i.Action == "split":
			return []choice{{"s", "split in an editor", []string{"suggestion", "split", comment}, ""}, resolve("dismiss")}
		case i.Action == "adopt":
			return []choice{{"o", "adopt", []string{"suggestion", "adopt", comment}, ""}, {"t", "make a task of it", []string{"suggestion", "task", comment}, ""}, resolve("dismiss")}
		}
		return []choice{{"t", "make a task of it", []string{"suggestion", "task", comment}, ""}, resolve("dismiss")}
	}
	return nil
}

// settleAll asks about everything that waits, one after the other. Whatever a
// person decides is carried out by the command that would be typed for it.
func (a *app) settleAll(cmd *cobra.Command) error {
	in := bufio.NewScanner(a.in)
	passed := map[string]bool{}
	settled := 0
	for {
		var inbox []store.InboxItem
		if err := a.read(cmd.Context(), func(tx *store.Tx) (err error) { inbox, err = inboxOf(tx); return err }); err != nil {
			return err
		}
		item, left := nextItem(inbox, passed)
		if item == nil {
			break
		}
		fmt.Fprintf(a.out, "\n(%d left)\n", left)
		if err := sayItem(a.out, *item, true); err != nil {
			return err
		}
		done, leave, err := a.ask(cmd, in, *item)
		if err != nil {
			return err
		}
		if leave {
			break
		}
		if done {
			settled++
		} else {
			passed[keyOf(*item)] = true
		}
	}
	_, err := fmt.Fprintf(a.out, "\n%d decisions, %d left for later\n", settled, len(passed))
	return err
}

func keyOf(i store.InboxItem) string { return fmt.Sprint(i.Kind, i.TaskID, i.Ref.ID) }

// nextItem is the first item that nobody has passed over, and how many there are.
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

// ask asks about one item until it is settled, passed over or left.
func (a *app) ask(cmd *cobra.Command, in *bufio.Scanner, i store.InboxItem) (done, leave bool, err error) {
	list := choices(i)
	for {
		fmt.Fprint(a.out, "  "+menu(list, len(i.Options))+" > ")
		typed, ok, err := readLine(in)
		if !ok || typed == "q" {
			return false, true, err
		}
		if typed == "" {
			return false, false, nil
		}
		args, err := a.chosen(in, list, i, typed)
		if err == nil && args == nil {
			continue
		}
		if err == nil {
			err = a.again(cmd.Context(), args)
		}
		switch {
		case err == nil && args[1] == "show":
			continue // seen, and not decided yet
		case err == nil:
			return true, false, nil
		}
		fmt.Fprintf(a.out, "  %s\n", oneLine(err.Error(), 500))
	}
}

// menu is what can be typed.
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

// chosen is the command for what was typed; nil if nothing is meant by it.
func (a *app) chosen(in *bufio.Scanner, list []choice, i store.InboxItem, typed string) ([]string, error) {
	if list[0].key == "" {
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
		fmt.Fprintf(a.out, "  %s > ", c.asks)
		text, ok, err := readLine(in)
		if !ok || err != nil || text == "" {
			return nil, err
		}
		if last := c.args[len(c.args)-1]; strings.HasPrefix(last, "--") {
			return append(c.args, text), nil
		}
		return append(c.args, "--", text), nil
	}
	return nil, fmt.Errorf("%q is none of the keys", typed)
}

func readLine(in *bufio.Scanner) (text string, ok bool, err error) {
	if !in.Scan() {
		if errors.Is(in.Err(), io.EOF) {
			return "", false, nil
		}
		return "", false, in.Err()
	}
	return strings.TrimSpace(in.Text()), true, nil
}

// again carries out a command of ralph's in this process.
func (a *app) again(ctx context.Context, args []string) error {
	plain := *a
	plain.json = false
	root := newRoot(&plain)
	if a.chdir != "" {
		args = append([]string{"-C", a.chdir}, args...)
	}
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}
