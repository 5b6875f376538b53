// Package inbox shows the items that wait for a person, asks about them, and decides on them.
package inbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/store"
)

// Item writes a complete item, with numbered options if a person chooses one.
func Item(w io.Writer, s term.Screen, i store.InboxItem, numbered bool, now time.Time) {
	const before = "          "
	what := i.Kind
	if !strings.HasPrefix(i.Item, "TASK-") {
		what = ralph.Named(what, i.TaskID)
	}
	if i.Title != i.Item {
		what += " " + s.Paint(term.Bold, text.VisibleLine(i.Title))
	}
	fmt.Fprintln(w, s.Hang(s.Paint(term.Yellow, term.Pad(i.Item+" ", len(before))), what))
	if i.Asks != "" {
		fmt.Fprintln(w, s.Hang(before, text.VisibleLine(i.Asks)))
	}
	said := Said(i)
	if i.Kind == "permission" {
		said = text.Request(said)
	}
	if rest, repeats := strings.CutPrefix(said, i.Title+"\n"); repeats { // the head has the title
		said = strings.TrimSpace(rest)
	}
	Whole(w, s, before, said)
	for _, l := range i.Diff {
		fmt.Fprintln(w, s.Hang(before, text.Visible(l)))
	}
	if !i.Expires.IsZero() {
		fmt.Fprintf(w, "%sdenied at %s unless you say\n", before, text.When(i.Expires.Time, now))
	}
	for n, o := range i.Options {
		mark := " "
		if o == i.Preferred {
			mark = "*"
		}
		if numbered {
			mark += fmt.Sprintf(" %d)", n+1)
		}
		fmt.Fprintln(w, s.Hang(before+mark+" ", text.VisibleLine(o)))
	}
}

// Whole writes all lines of a text, each with the same prefix.
func Whole(w io.Writer, s term.Screen, before, said string) {
	for l := range strings.Lines(strings.Trim(text.Visible(said), "\n")) {
		fmt.Fprintln(w, strings.TrimRight(s.Hang(before, strings.TrimRight(l, " \t\n")), " "))
	}
}

// A Choice is a person's decision on an inbox item, by the dashboard's key.
type Choice struct {
	Key   string // "" if any words are it
	Label string
	Args  []string // arguments of the command
	Asks  string   // prompt for words that the command takes; "" for none
	Free  bool     // it may have no words
}

// Choices returns a person's choices for an item. If the first has no key, it takes any typed text.
func Choices(i store.InboxItem) []Choice {
	if list := kinds[i.Kind].choices; list != nil {
		return list(i)
	}
	return nil
}

// Command returns the arguments of the command that carries a choice out, with a person's words; "" for none.
func (c Choice) Command(i store.InboxItem, words string) []string {
	args := slices.Clone(c.Args)
	switch {
	case i.Kind == "plan" && c.Key == "c":
		return append(append(args, "--"), strings.Fields(words)...)
	case i.Kind == "plan" && c.Asks != "":
		if words != "" {
			args = append(args, "--reason="+words)
		}
		return append(append(args, "--"), itemNames(i.Parts)...)
	case words == "":
		return args
	case strings.HasPrefix(args[len(args)-1], "--"):
		return append(args, words)
	}
	return append(args, "--", words)
}

// A Dialogue asks a person about inbox items, one after the other.
type Dialogue struct {
	In     *bufio.Scanner
	Out    io.Writer
	Screen term.Screen
	Inbox  func(ctx context.Context) ([]store.InboxItem, error)
	Change func(ctx context.Context, i store.InboxItem) error // shows the lines that are decided on, if any
	Do     func(ctx context.Context, args []string) error     // runs a ralph command

	mu      sync.Mutex
	passed  map[string]bool  // items that are decided, or postponed
	pending *pendingDecision // the decision that can be taken back
	decided int              // decisions, without undone and failed ones
}

// regret is the time for taking back a decision.
const regret = 10 * time.Second

// A pendingDecision is a decision whose command has not run yet.
type pendingDecision struct {
	item store.InboxItem
	args []string
	at   *time.Timer
}

// Run asks about every item. Decisions are carried out by the corresponding commands, once they cannot be taken back.
func (d *Dialogue) Run(ctx context.Context) error {
	d.passed = map[string]bool{}
	defer d.flush(ctx) // however it ends, a decision is not lost
	later, left := 0, 0
	for {
		inbox, err := d.Inbox(ctx)
		if err != nil {
			return err
		}
		var item *store.InboxItem
		var did outcome
		if item, left = d.next(inbox); item != nil {
			did, err = d.decide(ctx, *item, left)
		} else if did = leave; d.held() {
			did, err = d.last(ctx)
		}
		switch {
		case err != nil:
			return err
		case did == leave:
			d.flush(ctx)
			_, err := fmt.Fprintf(d.Out, "\n%s, %d left for later\n", text.Count(d.decided, "decision"), later+left)
			return err
		case did == back:
			d.takeBack()
		case did == postpone:
			later++
			d.pass(*item)
		}
	}
}

// decide asks about the first of the remaining items, and holds the decision.
func (d *Dialogue) decide(ctx context.Context, i store.InboxItem, left int) (did outcome, err error) {
	fmt.Fprintf(d.Out, "\n(%d left)\n", left)
	Item(d.Out, d.Screen, i, true, time.Now())
	if err := d.Change(ctx, i); err != nil {
		return leave, err
	}
	did, args, err := d.ask(ctx, i)
	if err != nil || did != decided {
		return did, err
	}
	d.flush(ctx)
	d.hold(ctx, i, args)
	if i.Kind == "plan" { // a part of it may remain
		d.flush(ctx)
	}
	return did, nil
}

// last asks whether the last decision stays. The first Enter carries it out.
func (d *Dialogue) last(ctx context.Context) (outcome, error) {
	fmt.Fprint(d.Out, "\nNothing else waits. Enter carries out the last decision, b takes it back > ")
	typed, _, err := d.line(ctx)
	if typed == "b" {
		return back, err
	}
	return leave, err
}

// A person's actions on an item.
type outcome int

const (
	postpone outcome = iota // leave it for later
	decided
	back  // take the last decision back
	leave // end
)

// pass notes that an item is not asked about for now.
func (d *Dialogue) pass(i store.InboxItem) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.passed[keyOf(i)] = true
}

// hold keeps a decision until the next one, or until it can be taken back no longer.
func (d *Dialogue) hold(ctx context.Context, i store.InboxItem, args []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = &pendingDecision{item: i, args: args}
	d.pending.at = time.AfterFunc(regret, func() { d.flush(ctx) })
	d.passed[keyOf(i)] = true
	d.decided++
	if i.Kind != "plan" {
		fmt.Fprintf(d.Out, "  b takes this back, for %s\n", text.Span(regret.Seconds()))
	}
}

// takeBack drops the decision that has not been carried out, if there is one: its item is asked about again.
func (d *Dialogue) takeBack() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending == nil {
		fmt.Fprintln(d.Out, "  nothing can be taken back any more")
		return
	}
	d.pending.at.Stop()
	d.passed[keyOf(d.pending.item)] = false
	d.pending = nil
	d.decided--
}

// flush carries out the decision that has been held. If that fails, its item is asked about again.
func (d *Dialogue) flush(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pending
	if d.pending = nil; p == nil {
		return
	}
	p.at.Stop()
	d.passed[keyOf(p.item)] = false
	if err := d.carryOut(context.WithoutCancel(ctx), p); err != nil {
		fmt.Fprintf(d.Out, "  %s: %s\n", p.item.Item, text.Line(advice.Explain(err), 500))
		d.decided--
	}
}

// carryOut runs the command of a decision.
func (d *Dialogue) carryOut(ctx context.Context, p *pendingDecision) error {
	inbox, err := d.Inbox(ctx)
	if err == nil {
		err = Stale(inbox, p.args)
	}
	if err != nil {
		return err
	}
	return d.Do(ctx, p.args)
}

// Stale returns an error if the inbox no longer offers the command of a decision, because another person was faster.
// Commands about one question, comment or proposal check that themselves, and their error has the earlier decision.
func Stale(list []store.InboxItem, command []string) error {
	if !slices.Contains([]string{"task", "chat", "undo", "retry"}, command[0]) {
		return nil
	}
	for _, i := range list {
		for _, c := range Choices(i) {
			if n := len(c.Args); n <= len(command) && slices.Equal(c.Args, command[:n]) {
				return nil
			}
		}
	}
	return ralph.Conflict("nothing is done, since this was decided meanwhile: ralph %s", strings.Join(command, " "))
}

// held reports whether a decision can be taken back.
func (d *Dialogue) held() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending != nil
}

func keyOf(i store.InboxItem) string { return fmt.Sprint(i.Kind, i.TaskID, i.Ref.ID) }

// next returns the first item that was not passed, and the number of such items.
func (d *Dialogue) next(inbox []store.InboxItem) (item *store.InboxItem, left int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range inbox {
		if d.passed[keyOf(inbox[i])] || len(Choices(inbox[i])) == 0 {
			continue
		}
		if left++; item == nil {
			item = &inbox[i]
		}
	}
	return item, left
}

// ask asks about one item until it is decided or passed, or the person leaves.
func (d *Dialogue) ask(ctx context.Context, i store.InboxItem) (did outcome, args []string, err error) {
	list := Choices(i)
	for {
		fmt.Fprint(d.Out, "  "+menu(list, len(i.Options))+" > ")
		typed, ok, err := d.line(ctx)
		switch {
		case !ok || typed == "q":
			return leave, nil, err
		case typed == "":
			return postpone, nil, nil
		case typed == "b":
			return back, nil, nil
		case typed == "?":
			Whole(d.Out, d.Screen, "  ", help(list, len(i.Options)))
			continue
		}
		args, err := d.chosen(ctx, list, i, typed)
		switch {
		case err == nil && args == nil:
			continue
		case err == nil && args[0] == "inbox": // it shows something
			err = d.Do(ctx, args)
		case err == nil:
			return decided, args, nil
		}
		if err != nil {
			fmt.Fprintf(d.Out, "  %s\n", text.Line(advice.Explain(err), 500))
		}
	}
}

// help explains the keys, one line each.
func help(list []Choice, options int) string {
	var lines []string
	for _, c := range list {
		switch {
		case c.Key != "":
			lines = append(lines, c.Key+"      "+c.Label)
		case options > 0:
			lines = append(lines, fmt.Sprintf("1-%d    one of the options", options), "words  "+c.Asks)
		default:
			lines = append(lines, "words  "+c.Asks)
		}
	}
	lines = append(lines, "b      take the last decision back", "Enter  leave it for later", "q      end")
	return strings.Join(lines, "\n")
}

// menu lists the possible input.
func menu(list []Choice, options int) string {
	var parts []string
	for _, c := range list {
		switch {
		case c.Key != "":
			parts = append(parts, c.Key+": "+c.Label)
		case options > 0:
			parts = append(parts, fmt.Sprintf("%s, or 1-%d", c.Asks, options))
		default:
			parts = append(parts, c.Asks)
		}
	}
	return strings.Join(append(parts, "b: take back", "?: help", "Enter: later", "q: leave"), ", ")
}

// chosen returns the command for the typed text; nil for none.
func (d *Dialogue) chosen(ctx context.Context, list []Choice, i store.InboxItem, typed string) ([]string, error) {
	short := slices.ContainsFunc(list, func(c Choice) bool { return c.Key == typed })
	if list[0].Key == "" && !short {
		n, err := strconv.Atoi(typed)
		switch {
		case err == nil && n >= 1 && n <= len(i.Options):
			typed = i.Options[n-1]
		case utf8.RuneCountInString(typed) == 1:
			return nil, fmt.Errorf("%q is too short for an answer, and none of the keys: ? lists them", typed)
		}
		return list[0].Command(i, typed), nil
	}
	for _, c := range list {
		if c.Key != typed {
			continue
		}
		if c.Asks == "" {
			return c.Args, nil
		}
		none := map[bool]string{true: " (Enter: none)"}[c.Free]
		fmt.Fprintf(d.Out, "  %s%s > ", c.Asks, none)
		said, ok, err := d.line(ctx)
		if !ok || err != nil || said == "" && !c.Free {
			return nil, err
		}
		return c.Command(i, said), nil
	}
	return nil, fmt.Errorf("%q is not one of the keys: ? lists them", typed)
}

// line reads a typed line; ok is false at the end of input, and when the dialogue is interrupted.
func (d *Dialogue) line(ctx context.Context) (typed string, ok bool, err error) {
	read := make(chan bool, 1)
	go func() { read <- d.In.Scan() }()
	select {
	case <-ctx.Done():
		return "", false, nil
	case ok = <-read:
	}
	if !ok {
		return "", false, d.In.Err()
	}
	return strings.TrimSpace(d.In.Text()), true, nil
}
