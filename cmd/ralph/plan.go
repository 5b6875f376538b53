package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/exchange"
	"ralph/internal/inbox"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/store"
)

func newPlan(a *app) *cobra.Command {
	o := runOptions{format: "text", plan: &planRun{}}
	var file string
	cmd := newCommand("plan [IDEA]", func(cmd *cobra.Command, args []string) error {
		if file == "" && len(args) == 0 {
			return usage(errors.New("a plan needs an idea: ralph plan \"IDEA\", or --file with one; " +
				"`ralph plan show` shows it"))
		}
		if err := a.checkAgent(cmd.Context(), o.add.Agent); err != nil {
			return err
		}
		idea := append(args, "")[0]
		if err := a.idea(&o, idea, file); err != nil {
			return err
		}
		err := runQueue(cmd, a, o)
		switch {
		case err != nil:
			return err
		case o.plan.queued:
			return nil
		case o.plan.yes:
			return a.approveOwn(cmd.Context(), o.plan.feature, o.plan.task)
		}
		return a.showPlan(cmd.Context(), o.plan.feature)
	})
	cmd.Flags().StringVar(&file, "file", "", "read the idea from `FILE`, or - for standard input")
	cmd.Flags().StringVar(&o.add.Feature, "feature", "", "plan this `FEATURE`; one that exists is revised")
	cmd.Flags().StringVar(&o.add.Agent, "agent", "", "have this agent plan, by its `NAME` in ralph.yaml")
	cmd.Flags().BoolVar(&o.plan.yes, "yes", false, "approve all of it at once")
	show := newCommand("show [FEATURE]", func(cmd *cobra.Command, args []string) error {
		return a.showPlan(cmd.Context(), append(args, "")[0])
	})
	cmd.AddCommand(
		show,
		newPlanEdit(a),
		newPlanDecide(a, "approve [NAME]...", true),
		newPlanDecide(a, "reject [NAME]...", false),
	)
	return cmd
}

// A planRun is a planning task for a run.
type planRun struct {
	yes    bool // approve all of it
	task   int64
	queued bool // another run in progress will do it

	feature string                          // feature to plan
	name    func(*store.Tx) (string, error) // returns its name
}

// approveOwn approves the proposals of a planning task, and no others of its feature.
func (a *app) approveOwn(ctx context.Context, feature string, task int64) error {
	names, err := read(ctx, a, func(tx *store.Tx) (names []string, err error) {
		t, err := tx.Task(task)
		if err != nil {
			return nil, err
		}
		p, err := inbox.ReadPlan(tx, feature)
		for _, i := range p.Waits {
			if i.Created == t.CompletedAt {
				names = append(names, i.Item)
			}
		}
		return names, err
	})
	if err != nil || len(names) == 0 {
		return err
	}
	return a.decidePlan(ctx, feature, names, true, "")
}

// idea makes the planning task for an idea.
func (a *app) idea(o *runOptions, idea, file string) error {
	title, more, _ := strings.Cut(strings.TrimSpace(idea), "\n")
	description := strings.TrimSpace(more)
	if file != "" {
		_, spec, err := a.readInput(file)
		if err != nil {
			return err
		}
		said := strings.TrimSpace(string(spec))
		if title == "" {
			title = strings.TrimSpace(strings.TrimLeft(text.FirstLine(said), "# "))
		}
		description = strings.TrimSpace(description + "\n\n" + said)
	}
	o.title = "Plan: " + title
	if title == "" {
		return usage(errors.New("the idea is empty"))
	}
	if runes := []rune(o.title); len(runes) > ralph.MaxTitle {
		description = strings.TrimSpace(title + "\n\n" + description)
		o.title = string(runes[:ralph.MaxTitle-1]) + "…"
	}
	o.add.Title, o.add.Description, o.add.Role = o.title, description, ralph.RolePlan
	err := errors.Join(ralph.CheckTitle("the idea", o.title), ralph.CheckText("the idea", description, false))
	if err != nil {
		return err
	}
	own := o.add.Feature == ""
	if own {
		o.add.Feature = featureName(title)
	}
	// A feature that only the idea names does not exist yet.
	feature := o.add.Feature
	o.plan.name = func(tx *store.Tx) (string, error) {
		for n := 1; ; n++ {
			name := feature
			if n > 1 {
				name = fmt.Sprintf("%s-%d", feature, n)
			}
			_, err := tx.Feature(name)
			if errors.Is(err, ralph.ErrNotFound) {
				return name, tx.PutFeature(ralph.Feature{Name: name, Description: title})
			}
			if err != nil || !own {
				return name, err
			}
		}
	}
	return nil
}

// featureName makes a name from the first words of an idea.
func featureName(idea string) string {
	words := strings.FieldsFunc(strings.ToLower(idea), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return cmp.Or(strings.Join(words[:min(len(words), 5)], "-"), "plan")
}

// showPlan prints a plan as Markdown.
func (a *app) showPlan(ctx context.Context, feature string) error {
	return showOf(ctx, a, read, func(tx *store.Tx) (inbox.Plan, error) { return inbox.ReadPlan(tx, feature) },
		func(w io.Writer, p inbox.Plan) {
			fmt.Fprintf(w, "%s\n%s `ralph plan edit --file FILE --state %s` takes an edited copy back\n",
				text.Visible(p.Markdown()), exchange.NoteMark, p.State)
		})
}

func newPlanDecide(a *app, use string, approve bool) *cobra.Command {
	var feature, reason string
	cmd := newCommand(use, func(cmd *cobra.Command, args []string) error {
		if err := ralph.CheckText("--reason", reason, false); err != nil {
			return err
		}
		return a.decidePlan(cmd.Context(), feature, args, approve, reason)
	})
	cmd.Flags().StringVar(&feature, "feature", "", "of the plan of this `FEATURE`, if several wait")
	if !approve {
		cmd.Flags().StringVar(&reason, "reason", "", "why, in `WORDS` that are kept with the tasks")
	}
	cmd.PostRunE = a.endClaims
	return cmd
}

// decidePlan approves or rejects a plan's proposals for the named tasks. Without names it shows the whole plan
// on a terminal, and asks about it.
func (a *app) decidePlan(ctx context.Context, feature string, names []string, approve bool, reason string) error {
	decide := func(tx *store.Tx) ([]string, error) {
		return inbox.DecidePlan(tx, feature, names, approve, reason, a.person())
	}
	if len(names) == 0 && term.Is(a.in) && !a.json {
		var lines []string
		shown, err := read(ctx, a, func(tx *store.Tx) (p inbox.Plan, err error) {
			if p, err = inbox.ReadPlan(tx, feature); err != nil {
				return p, err
			}
			items, err := p.Named(nil)
			if err == nil {
				lines, _, err = tx.PlanLines(items)
			}
			return p, err
		})
		if err != nil {
			return err
		}
		verb := map[bool]string{true: "Approve", false: "Reject"}[approve]
		fmt.Fprintf(a.out, "%s\n%s all of the plan of %s? [y/N] ", text.Visible(strings.Join(lines, "\n")), verb,
			text.VisibleLine(shown.Feature.Name))
		answer, err := bufio.NewReader(a.in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y") {
			return a.say([]string{}, "the plan stays as it is")
		}
		decide = func(tx *store.Tx) ([]string, error) { return shown.Decide(tx, nil, approve, reason, a.person()) }
	}
	return showOf(ctx, a, alter, decide, func(w io.Writer, said []string) {
		for _, s := range said {
			fmt.Fprintln(w, text.Line(s, 300))
		}
	})
}

// converse lets a person at a terminal answer the questions of a planning task, until over is closed.
func (a *app) converse(ctx context.Context, db *store.DB, task int64, over <-chan struct{}) {
	lines := a.typed(over)
	asked := map[int64]bool{}
	var waits int64 // the question at the prompt; 0 for none
	for {
		changed := db.Changed()
		questions, err := store.Read(ctx, db, func(tx *store.Tx) ([]store.InboxItem, error) { return tx.InboxOf("question") })
		if err != nil {
			if ctx.Err() == nil {
				fmt.Fprintf(a.err, "ralph: no more questions are asked here, `ralph inbox` has them: %v\n", err)
			}
			return
		}
		questions = slices.DeleteFunc(questions, func(q store.InboxItem) bool { return q.TaskID != task })
		open := func(q store.InboxItem) bool { return q.Ref.ID == waits }
		if waits != 0 && !slices.ContainsFunc(questions, open) {
			fmt.Fprint(a.out, "\nanswered elsewhere\n")
			waits = 0
		}
		for _, q := range questions {
			if waits == 0 && !asked[q.Ref.ID] {
				waits, asked[q.Ref.ID] = q.Ref.ID, true
				a.ask(q)
			}
		}
		answers := lines
		if waits == 0 {
			answers = nil
		}
		select {
		case <-changed:
		case <-over:
			return
		case answer, ok := <-answers:
			if !ok {
				lines = nil // the input has ended: further questions wait in the inbox
			}
			id := waits
			if waits = 0; answer == "" {
				continue // the question waits in the inbox
			}
			err := db.Tx(ctx, func(tx *store.Tx) error { return tx.Answer(id, answer, a.person()) })
			if err != nil {
				fmt.Fprintf(a.err, "ralph: not answered: %v\n", err)
			}
		}
	}
}

// ask prints a question with its options and a prompt.
func (a *app) ask(q store.InboxItem) {
	fmt.Fprintf(a.out, "\n%s\n", text.Visible(q.Text))
	for _, o := range q.Options {
		fmt.Fprintf(a.out, "  - %s\n", text.Line(o, 200))
	}
	fmt.Fprint(a.out, "> ")
}

// typed returns the lines that a person types, trimmed. The channel is closed at the end of the input. A read of a
// terminal cannot be interrupted: the last one ends with the process.
func (a *app) typed(over <-chan struct{}) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewReader(a.in); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			select {
			case lines <- strings.TrimSpace(line):
			case <-over:
				return
			}
		}
	}()
	return lines
}
