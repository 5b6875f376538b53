package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/doctor"
	"ralph/internal/project"
	"ralph/internal/term"
)

func newDoctor(a *app) *cobra.Command {
	var noCheck bool
	cmd := newCommand("doctor", func(cmd *cobra.Command, _ []string) error {
		verifying := func(limit string) {
			if term.Is(a.err) {
				fmt.Fprintf(a.err, "ralph: runs the verification (%s a command at most; --no-check leaves it out)\n", limit)
			}
		}
		if noCheck {
			verifying = nil
		}
		findings := doctor.Examine(cmd.Context(), a.project, verifying)
		if a.json {
			p, err := a.project(cmd.Context())
			if err != nil {
				p = &project.Project{Environ: a.environ} // findings explain why it cannot be opened
			}
			findings = append([]doctor.Finding{{
				Check: "ralph", OK: true, Found: fmt.Sprintf("%s, %s, "+
					"%s/%s", built(), runtime.Version(), runtime.GOOS, runtime.GOARCH),
			}}, doctor.Public(findings, p.Mask(), a.getenv("HOME"))...)
		}
		err := a.print(findings, func(w io.Writer) {
			for _, f := range findings {
				sayFinding(w, a.screen(), f)
			}
		})
		for _, f := range findings {
			if !f.OK {
				return errors.Join(err, &ralph.ExitError{Status: ralph.ExitFailure})
			}
		}
		return err
	})
	cmd.Flags().BoolVar(&noCheck, "no-check", false, "do not run the verification commands")
	return cmd
}

func sayFinding(w io.Writer, s term.Screen, f doctor.Finding) {
	mark, style := "ok  ", term.Green
	switch {
	case !f.OK:
		mark, style = "FAIL", term.Red
	case f.Mend != "":
		mark, style = "note", term.Yellow // does not prevent a run
	}
	fmt.Fprintln(w, s.Hang(fmt.Sprintf("%s %-16s ", s.Paint(style, mark), f.Check), f.Found))
	if f.Mend != "" {
		fmt.Fprintln(w, s.Hang(strings.Repeat(" ", 22)+"→ ", f.Mend))
	}
}
