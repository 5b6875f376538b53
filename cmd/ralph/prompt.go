package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/project"
	"ralph/loop"
	"ralph/prompt"
	"ralph/store"
)

// promptView is the output of `prompt --json`.
type promptView struct {
	Text     string               `json:"text"`
	Sections []prompt.SectionSize `json:"sections"` // in the order of the text
	LeftOut  []string             `json:"left_out"` // parts beyond the budget
}

func newPrompt(a *app) *cobra.Command {
	var template, chat bool
	cmd := newCommand("prompt [TASK]", func(cmd *cobra.Command, args []string) error {
		switch {
		case template:
			_, err := fmt.Fprintln(a.out, prompt.OwnTemplate)
			return err
		case len(args) == 0:
			return usage(errors.New("give a task, such as: ralph prompt 12"))
		}
		id, err := ralph.ParseTaskID(args[0])
		if err != nil {
			return err
		}
		var built prompt.Prompt
		err = a.withLoop(cmd.Context(), func(_ *project.Project, l *loop.Loop) error {
			return l.Store.View(cmd.Context(), func(tx *store.Tx) error {
				t, err := tx.Task(id)
				if err != nil {
					return err
				}
				if chat {
					built, err = l.ChatPrompt(tx, t)
				} else {
					built, err = l.BuildPrompt(tx, t)
				}
				return err
			})
		})
		if err != nil {
			return err
		}
		v := promptView{built.Text, built.Sections, append([]string{}, built.LeftOut...)}
		if err := a.verbatim(v, func(w io.Writer) { fmt.Fprint(w, built.Text) }); err != nil || a.json {
			return err
		}
		sayPrompt(a.err, built)
		return nil
	})
	cmd.Flags().BoolVar(&chat, "chat", false, "print the text for a chat, with the latest checkpoint")
	cmd.Flags().BoolVar(&template, "template", false,
		"print ralph's own prompt as a template to start from (prompt.template, docs/prompt.md)")
	return cmd
}

// sayPrompt prints the size of a prompt.
func sayPrompt(w io.Writer, built prompt.Prompt) {
	if !strings.HasSuffix(built.Text, "\n") {
		fmt.Fprintln(w) // a template may lack a final newline
	}
	bytes, tokens := 0, 0
	for _, s := range built.Sections {
		fmt.Fprintf(w, "%-14s %7d bytes, about %6d tokens\n", s.Name, s.Bytes, s.Tokens)
		bytes, tokens = bytes+s.Bytes, tokens+s.Tokens
	}
	fmt.Fprintf(w, "%-14s %7d bytes, about %6d tokens (estimated)\n", "together", bytes, tokens)
	for _, l := range built.LeftOut {
		fmt.Fprintln(w, "left out:", l)
	}
}
