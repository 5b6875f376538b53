package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/doctor"
	"ralph/internal/project"
	"ralph/internal/state"
	"ralph/internal/words"
)

func newInit(a *app) *cobra.Command {
	var noCheck, own bool
	cmd := newCommand("init", func(cmd *cobra.Command, _ []string) error { return a.init(cmd.Context(), noCheck, own) })
	cmd.Flags().BoolVar(&noCheck, "no-check", false, "do not run the verification commands")
	cmd.Flags().BoolVar(&own, "package", false,
		"make this part of a repository a project of its own, with its own queue, in which agents and commands work")
	return cmd
}

// initialised is what `ralph init` did.
type initialised struct {
	Config  string        `json:"config"`
	Written bool          `json:"written"` // the configuration was not there before
	Git     bool          `json:"git"`
	Part    string        `json:"-"` // the repository whose queue is now this part's, unless it is the whole
	Common  string        `json:"git_common_dir"`
	State   string        `json:"state"`
	Verify  []string      `json:"verify"`
	Missing string        `json:"missing,omitempty"` // what a command needs and is not installed
	Checks  []ralph.Check `json:"checks"`            // how the commands did; empty if they were not run
	Holds   bool          `json:"red"`               // one fails so that a run does not begin
}

func (a *app) init(ctx context.Context, noCheck, own bool) error {
	root, err := a.dir()
	if err != nil {
		return err
	}
	if err := state.Prepare(ctx, root, own); err != nil {
		return err
	}
	path := filepath.Join(root, state.ConfigName)
	var found project.Likely
	written := !state.Exists(path)
	if written {
		found = project.LikelyCheck(root)
		if err := os.WriteFile(path, config.Starter(found.Commands(), found.JUnit...), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := found.MakeRoom(root); err != nil {
			return err
		}
	}
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	db, err := p.Begin(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	out := initialised{
		Config: path, Written: written, Git: p.Git, Common: p.Common, State: p.State,
		Verify: p.Config.Verify.Commands, Checks: []ralph.Check{},
	}
	if !own {
		out.Part = p.Part()
	}
	if found.Command != "" {
		out.Missing = project.MissingProgram(ctx, found.Command)
	}
	if !a.json {
		out.sayFound(a.out)
	}
	if !noCheck && len(out.Verify) > 0 {
		out.Checks, out.Holds, err = p.Verify(ctx, db, 0, func(c ralph.Check, _ io.ReadSeeker) error {
			if a.json {
				return nil
			}
			_, err := fmt.Fprintln(a.out, words.Check(c, words.TailLines))
			return err
		})
		if err != nil {
			return err
		}
	}
	return a.print(out, func(w io.Writer) { out.sayNext(w, noCheck) })
}

// sayFound says what was found and written, before the commands run.
func (o initialised) sayFound(w io.Writer) {
	wrote := "wrote"
	if !o.Written {
		wrote = "configured by"
	}
	fmt.Fprintf(w, "%s %s\nstate is kept in %s\n", wrote, o.Config, o.State)
	if o.Part != "" {
		fmt.Fprintf(w, "the one queue of the repository in %s is this folder's; "+
			"other folders of it have their own: ralph init --package\n", o.Part)
	}
	if !o.Git {
		fmt.Fprintln(w, "no git repository: files changed by a session will not be known")
	}
	if len(o.Verify) == 0 {
		fmt.Fprintln(w, "no verification command was found: set verify in ralph.yaml, or `done` is taken at its word")
		return
	}
	for _, v := range o.Verify {
		fmt.Fprintf(w, "verification: %s\n", v)
	}
	if o.Missing != "" {
		fmt.Fprintf(w, "! %s is not installed here: "+
			"no done can be accepted until it is, or verify in ralph.yaml is changed\n", o.Missing)
	}
}

// sayNext says what to do next.
func (o initialised) sayNext(w io.Writer, noCheck bool) {
	switch {
	case len(o.Verify) > 0 && noCheck:
		fmt.Fprintln(w, "it was not run: `ralph verify` does, and what is red already keeps a run from beginning")
	case o.Holds && o.Missing != "":
		fmt.Fprintf(w, "red: a run does not begin before %s is installed, or verify in ralph.yaml is changed\n", o.Missing)
	case o.Holds:
		fmt.Fprintln(w, "red: a run does not begin before it passes: mend it. "+
			"In a project that begins empty `ralph run --on-red first` has the first task work until it passes")
	case !ralph.Green(o.Checks):
		fmt.Fprintln(w, "a run begins all the same: "+doctor.Excused)
	}
	fmt.Fprintln(w, "next: ralph doctor, ralph task add TITLE --verify COMMAND, ralph run")
}
