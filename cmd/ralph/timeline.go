package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

func newTimeline(a *app) *cobra.Command {
	var f store.CommentFilter
	var verbs []string
	cmd := &cobra.Command{
		Use: "timeline TASK", Short: "Show what was said on a task, by people and agents, in order",
		Example: "  ralph timeline 12 --verb ask --verb flag\n  ralph timeline 12 --open", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := ralph.ParseTaskID(args[0])
			if err != nil {
				return err
			}
			if f.NoSignals && f.NoComments {
				return usage(errors.New("--signals and --no-signals exclude each other"))
			}
			if f.NoSignals && len(verbs) > 0 {
				return usage(errors.New("--verb and --no-signals exclude each other"))
			}
			for _, v := range verbs {
				if !slices.Contains(ralph.Verbs, ralph.Verb(v)) {
					return fieldError("--verb", v, "done", "partial", "stuck", "ask", "flag", "learned", "suggest", "blocked")
				}
				f.Verbs = append(f.Verbs, ralph.Verb(v))
			}
			var comments []ralph.Comment
			err = a.read(cmd.Context(), func(tx *store.Tx) error {
				if _, err := tx.Task(id); err != nil {
					return err
				}
				if f.Session != "" {
					s, err := tx.Session(f.Session)
					if err != nil {
						return err
					}
					f.Session = s.ID
				}
				comments, err = tx.Timeline(id, f)
				return err
			})
			if err != nil {
				return err
			}
			return a.print(comments, func(w io.Writer) error { return sayTimeline(w, comments, a.screen()) })
		},
	}
	cmd.Flags().BoolVar(&f.NoComments, "signals", false, "only agents' signals")
	cmd.Flags().BoolVar(&f.NoSignals, "no-signals", false, "only comments")
	cmd.Flags().StringArrayVar(&verbs, "verb", nil, "only signals of this verb (repeatable)")
	cmd.Flags().StringVar(&f.Session, "session", "", "only this session's")
	cmd.Flags().BoolVar(&f.Open, "open", false, "only what waits for a person: open questions, blockers, flags, suggestions, proposals to cancel")
	return cmd
}

// verbColours are the colours of the cards, as terminals number them.
var verbColours = map[ralph.Verb]string{
	ralph.VerbDone: "32", ralph.VerbPartial: "36", ralph.VerbStuck: "35", ralph.VerbAsk: "33",
	ralph.VerbFlag: "31", ralph.VerbLearned: "34", ralph.VerbSuggest: "96", ralph.VerbBlocked: "91",
}

// sayTimeline prints a card for each signal and a bubble for each comment, as
// their verb says, never their text.
func sayTimeline(w io.Writer, comments []ralph.Comment, s screen) error {
	closed := map[string]int64{} // by session: the signal that counts
	for _, c := range comments {
		if c.Verb.Closes() {
			closed[c.SessionID] = c.ID
		}
	}
	for _, c := range ralph.Threads(comments) {
		indent, head, colour := "", string(c.Kind), ""
		if c.ParentID != nil {
			indent = "    "
		}
		if c.Verb != "" {
			head, colour = fmt.Sprintf("[%s] session %.8s", c.Verb, c.SessionID), verbColours[c.Verb]
		}
		card := func(format string, args ...any) {
			for _, line := range s.wrap(fmt.Sprintf(format, args...), len(indent)+4) {
				fmt.Fprintf(w, "%s  %s %s\n", indent, s.paint(colour, "|"), line)
			}
		}
		fmt.Fprintf(w, "%s%s\n", indent, s.paint(colour, fmt.Sprintf("%d  %s  %s  %s", c.ID, c.Created.Local().Format("2006-01-02 15:04:05"), oneLine(c.Author, 40), head)))
		for line := range strings.Lines(printable(c.Body)) {
			card("%s", strings.TrimRight(line, "\n"))
		}
		note := func(format string, args ...any) {
			for _, line := range s.wrap(fmt.Sprintf(format, args...), len(indent)+2) {
				fmt.Fprintf(w, "%s  %s\n", indent, line)
			}
		}
		if last := closed[c.SessionID]; c.Verb.Closes() && last != c.ID {
			note("superseded by %d", last)
		}
		if c.Rationale != "" {
			note("because: %s", text.VisibleLine(c.Rationale))
		}
		if c.Holding {
			note("holds the task back %s", text.VisibleLine(c.HoldReason))
		}
		if !c.Delivered.IsZero() {
			note("the running session was told at %s", c.Delivered.Local().Format("15:04:05"))
		}
		if !c.ResolvedAt.IsZero() {
			note("resolved by %s: %s", c.ResolvedBy, text.VisibleLine(c.Decision))
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return nil
}
