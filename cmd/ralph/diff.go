package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/inbox"
	"ralph/internal/proc"
	"ralph/internal/project"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/internal/worktree"
	"ralph/store"
)

// A difference is the output of `ralph diff --json`: a change, or the part of it that waits for a person.
type difference struct {
	TaskID  int64    `json:"task_id"`
	Session string   `json:"session"`
	From    string   `json:"from"`  // the first parent of a merged To, else its newest commit of the target
	To      string   `json:"to"`    // the commit with the work
	Files   []string `json:"files"` // the files that wait for a person, from the top of the repository; empty for all
	Said    string   `json:"said"`  // words of reviewers and of the author, in Markdown; empty without a review
	Diff    string   `json:"diff"`  // as git prints it; secrets are masked
	whole   []string // the files for a person's approval: they come first, with all of their lines
}

func newDiff(a *app) *cobra.Command {
	var stat bool
	cmd := newCommand("diff TASK|SESSION|ITEM", func(cmd *cobra.Command, args []string) error {
		d, err := read(cmd.Context(), a, func(tx *store.Tx) (difference, error) { return changeNamed(tx, args[0]) })
		if err != nil {
			return err
		}
		if err := a.fill(cmd.Context(), &d, stat); err != nil {
			return err
		}
		if a.json || !term.Is(a.out) {
			return a.verbatim(d, func(w io.Writer) { fmt.Fprint(w, d.text()) })
		}
		return a.page(cmd.Context(), paintDiff(a.screen(), d.text()))
	})
	cmd.Flags().BoolVar(&stat, "stat", false, "only the files, with how many lines differ")
	return cmd
}

// text returns the difference, after comment lines that git apply ignores.
func (d difference) text() string {
	var b strings.Builder
	inbox.Whole(&b, term.Screen{}, "# ", d.Said)
	return b.String() + text.Visible(d.Diff)
}

// changeNamed finds the change of a task, a session or an inbox item.
func changeNamed(tx *store.Tx, name string) (d difference, err error) {
	var c ralph.Change
	ok, of := false, name
	if id, perr := ralph.ParseTaskID(name); perr == nil { // all of a task's change, including the waiting part
		if err := tx.CheckTask(id); err != nil {
			return d, err
		}
		c, ok, err = tx.ChangeOf(id)
		d.TaskID, of = id, fmt.Sprintf("TASK-%d", id)
	} else if items, ierr := inbox.Named(tx, []string{name}); ierr == nil && items[0].Ref.Of == store.OfComment {
		return reviewed(tx, items[0])
	} else {
		var s ralph.Session
		if s, err = tx.Session(name); err == nil {
			c, _, ok, err = tx.ChangeBy(s.ID)
			d.TaskID = s.TaskID
		}
	}
	var wrong *ralph.FieldError
	switch {
	case errors.Is(err, ralph.ErrNotFound), errors.As(err, &wrong):
		return d, ralph.NotFound("%q is not a task, a session or an item of the inbox; `ralph inbox` lists the items", name)
	case err != nil:
		return d, err
	case !ok:
		return d, ralph.NotFound("%s has changed nothing that is kept", of)
	}
	d.TaskID, d.Session, d.Files = c.TaskID, c.SessionID, []string{}
	d.From, d.To = c.Compared()
	d.Said, err = tx.SaidOf(c.SessionID)
	return d, err
}

// reviewed returns the part of a change that a person has to decide on.
func reviewed(tx *store.Tx, i store.InboxItem) (d difference, err error) {
	r, err := tx.Approval(i.Ref.ID)
	if err != nil {
		return d, err
	}
	c, ok, err := tx.ChangeOf(i.TaskID)
	if err != nil || !ok || r.Kind() == "" {
		return d, errors.Join(err,
			ralph.NotFound("%s has no difference to show; `ralph diff TASK-%d` may have", i.Item, i.TaskID))
	}
	d = difference{TaskID: i.TaskID, Session: c.SessionID, From: c.Base, To: c.Head, Files: r.Paths()}
	d.Said, err = tx.SaidOf(c.SessionID)
	return d, err
}

// fill adds the lines.
func (a *app) fill(ctx context.Context, d *difference, stat bool) error {
	p, tree, err := a.tree(ctx)
	if err != nil {
		return err
	}
	if err := a.locate(ctx, p, tree, d); err != nil {
		return err
	}
	var first, rest string
	if stat {
		rest, err = tree.Patch(ctx, d.From, d.To, d.Files, "--stat", "--find-renames")
	} else {
		first, rest, err = tree.Shown(ctx, d.From, d.To, d.Files, d.whole)
	}
	if err != nil {
		return fmt.Errorf("the commits of TASK-%d cannot be compared: %w", d.TaskID, err)
	}
	d.Said, d.Diff = p.Mask().Text(d.Said), p.Mask().Text(first+rest)
	return nil
}

// locate finds the commits to compare, and fetches those of another machine. It compares unmerged work with the newest
// commit of the target that the work contains.
func (a *app) locate(ctx context.Context, p *project.Project, tree *worktree.Tree, d *difference) (err error) {
	db, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var s ralph.Session
	if err := db.View(ctx, func(tx *store.Tx) (err error) {
		if d.Session == "" {
			return nil
		}
		if s, err = tx.Session(d.Session); err != nil {
			return err
		}
		_, approval, _, err := tx.ApprovalOf(s.TaskID)
		d.whole = approval.Paths()
		return err
	}); err != nil {
		return err
	}
	m, err := p.Merger(ctx, db, tree)
	if err != nil {
		return err
	}
	merged := strings.Contains(d.From, "^") // as [ralph.Change.Before] writes it
	if !tree.Has(ctx, d.To) && onAnotherMachine(s) {
		if merged {
			_, err = m.Tip(ctx)
		} else {
			_, err = m.Obtain(ctx, ralph.Change{TaskID: s.TaskID, SessionID: s.ID, Head: d.To})
		}
		if err == nil && !tree.Has(ctx, d.To) {
			err = isThere(s, "change")
		}
	}
	switch {
	case err != nil:
	case merged:
		d.From, err = tree.Ref(ctx, d.From)
	default:
		d.From, err = m.Begin(ctx, d.From, d.To)
	}
	return err
}

// paintDiff colours the lines of a difference.
func paintDiff(s term.Screen, diff string) string {
	var b strings.Builder
	for l := range strings.SplitAfterSeq(diff, "\n") {
		line, end := strings.TrimSuffix(l, "\n"), l[len(strings.TrimSuffix(l, "\n")):]
		style := term.Style("")
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
			style = term.Bold
		case strings.HasPrefix(line, "@@"):
			style = term.Cyan
		case strings.HasPrefix(line, "+"):
			style = term.Green
		case strings.HasPrefix(line, "-"):
			style = term.Red
		case strings.HasPrefix(line, "#"):
			style = term.Dim
		}
		b.WriteString(s.Paint(style, line) + end)
	}
	return b.String()
}

// page shows a text with the person's pager.
func (a *app) page(ctx context.Context, said string) error {
	pager := strings.Fields(a.getenv("PAGER"))
	if len(pager) == 0 {
		pager = []string{"less", "-FRX"}
	}
	program, err := exec.LookPath(pager[0])
	if err != nil {
		_, err = io.WriteString(a.out, said)
		return err
	}
	pager[0] = program
	return proc.Foreground(ctx, pager, a.environ, strings.NewReader(said))
}

// showReviewed prints the part of a change that a person has to decide on, if the item has one, or
// the whole plan.
func (a *app) showReviewed(ctx context.Context, w io.Writer, i store.InboxItem) error {
	if i.Ref.Of == store.OfFeature {
		fmt.Fprintln(w)
		return a.showPlan(ctx, i.Title)
	}
	if i.Ref.Of != store.OfComment {
		return nil
	}
	d, err := read(ctx, a, func(tx *store.Tx) (difference, error) { return reviewed(tx, i) })
	if errors.Is(err, ralph.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = a.fill(ctx, &d, false)
	}
	if err == nil && d.Diff != "" {
		_, err = fmt.Fprintf(w, "\n%s", paintDiff(a.screen(), text.Visible(d.Diff)))
	}
	return err
}
