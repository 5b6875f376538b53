package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/doctor"
	"ralph/internal/project"
	"ralph/internal/state"
	"ralph/internal/words"
	"ralph/store"
)

func newInit(a *app) *cobra.Command {
	var noCheck, own bool
	var verify []string
	cmd := newCommand("init", func(cmd *cobra.Command, _ []string) error {
		return a.init(cmd.Context(), noCheck, own, verify)
	})
	cmd.Flags().StringArrayVar(&verify, "verify", nil, "a `COMMAND` that must pass before any task is done (repeatable); "+
		"without it, the one that ralph finds")
	cmd.Flags().BoolVar(&noCheck, "no-check", false, "do not run the verification commands")
	cmd.Flags().BoolVar(&own, "package", false,
		"make this part of a repository a project of its own, with its own queue, in which agents and commands work")
	return cmd
}

// initialised is what `ralph init` did.
type initialised struct {
	Config  string        `json:"config"`
	Written bool          `json:"written"` // the configuration did not exist before
	Added   bool          `json:"-"`       // what verifies was added to it
	Git     bool          `json:"git"`
	Part    string        `json:"-"` // the repository, if the queue is only for this part of it
	Common  string        `json:"git_common_dir"`
	State   string        `json:"state"`
	Verify  []string      `json:"verify"`
	From    string        `json:"verify_from,omitempty"` // the file that the command was derived from
	Place   string        `json:"place,omitempty"`       // where sessions work, if known
	Why     string        `json:"place_reason,omitempty"`
	Setup   []string      `json:"setup,omitempty"`
	Missing string        `json:"missing,omitempty"` // what a command needs and is not installed
	Checks  []ralph.Check `json:"checks"`            // results of the commands; empty if they were not run
	Holds   bool          `json:"red"`               // a failing command prevents a run

	Looked []doctor.Finding `json:"looked"` // agent, credentials, sandbox
}

func (a *app) init(ctx context.Context, noCheck, own bool, verify []string) error {
	root, err := a.dir()
	if err != nil {
		return err
	}
	path := filepath.Join(root, state.ConfigName)
	text, written, err := configured(path)
	if err != nil {
		return err
	}
	again := state.Prepare(ctx, root, own, a.environ)
	lacks := !written && !section(text, "verify")
	if again != nil && !(lacks && errors.Is(again, state.ErrProject)) {
		return again
	}
	if !written && !lacks && len(verify) > 0 {
		return usage(fmt.Errorf("%s exists already: set verify in it", path))
	}
	var found project.Likely
	var added bool
	if written || again != nil || len(verify) > 0 {
		commands := verify
		if len(verify) == 0 {
			found = project.LikelyCheck(root)
			commands = found.Commands()
		}
		switch {
		case written:
			text = string(config.Starter(commands, found.JUnit...))
		case len(commands) == 0:
			return usage(fmt.Errorf("%w; nothing checks a \"done\" yet: `ralph init --verify COMMAND` adds what does", again))
		default:
			text, added = text+"\n"+config.StarterVerify(commands, found.JUnit...), true
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
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
		Config: path, Written: written, Added: added, Git: p.Git, Common: p.Common, State: p.State,
		Verify: p.Config.Verify.Commands, From: found.File, Checks: []ralph.Check{},
		Looked: append(doctor.Agent(ctx, p), doctor.Confinement(ctx, p)...),
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
		show := func(c ralph.Check, _ io.ReadSeeker) error {
			if a.json {
				return nil
			}
			out.say(a.out, "ran", "%s", words.Check(c, words.TailLines))
			return nil
		}
		if written || added && !section(text, "place") {
			if err := out.try(ctx, p, db); err != nil {
				return err
			}
		}
		for _, c := range out.Checks { // they ran in a slot
			if err := show(c, nil); err != nil {
				return err
			}
		}
		if len(out.Checks) == 0 {
			if out.Checks, out.Holds, err = p.Verify(ctx, db, 0, show); err != nil {
				return err
			}
		}
	}
	if !a.json {
		out.sayPlace(a.out)
	}
	return a.print(out, func(w io.Writer) { out.sayNext(w, noCheck) })
}

// configured returns the text of a configuration; none is true if there is none yet.
func configured(path string) (text string, none bool, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", true, nil
	}
	return string(b), false, err
}

// section reports whether a configuration has a section.
func section(text, name string) bool { return strings.Contains("\n"+text, "\n"+name+":") }

// say prints one finding under a name.
func (o initialised) say(w io.Writer, name, format string, args ...any) {
	fmt.Fprintf(w, "%-11s %s\n", name, fmt.Sprintf(format, args...))
}

// sayFound prints what was found and written, before the commands run.
func (o initialised) sayFound(w io.Writer) {
	wrote := "wrote"
	if o.Added {
		wrote = "added to"
	} else if !o.Written {
		wrote = "config"
	}
	o.say(w, wrote, "%s (state: %s)", o.Config, o.State)
	if o.Part != "" {
		o.say(w, "queue", "the one of the repository in %s; "+
			"a folder of it that shall have its own: ralph init --package", o.Part)
	}
	if !o.Git {
		o.say(w, "!", "this is no git repository: "+
			"what a session changes will not be known, and cannot be brought back. `git init`")
	}
	if len(o.Verify) == 0 {
		o.say(w, "!", "no tests were found: nothing checks a \"done\". Name the command that does: "+
			"ralph init --verify COMMAND, or verify in ralph.yaml")
	}
	for _, v := range o.Verify {
		from := ""
		if o.From != "" {
			from = "  (from " + o.From + ")"
		}
		o.say(w, "tests", "%s%s", v, from)
	}
	if o.Missing != "" {
		o.say(w, "!", "%s is not installed here, and no \"done\" can be accepted without it: install it, "+
			"or change verify in ralph.yaml", o.Missing)
	}
}

// try finds out where sessions can work, and adds that to the configuration.
func (o *initialised) try(ctx context.Context, p *project.Project, db *store.DB) error {
	at, checks, holds, err := p.Try(ctx, db)
	if err != nil {
		return err
	}
	o.Place, o.Why, o.Setup, o.Checks, o.Holds = at.Kind, at.Why, at.Setup, append(o.Checks, checks...), holds
	text, err := os.ReadFile(o.Config)
	if err == nil {
		err = os.WriteFile(o.Config, append(text, at.Starter()...), 0o644)
	}
	return err
}

// sayPlace prints where sessions will work.
func (o initialised) sayPlace(w io.Writer) {
	switch o.Place {
	case "here":
		o.say(w, "place", "agents work in this folder, not in clones of it: %s", o.Why)
	case "slot":
		o.say(w, "place", "agents work in clones of what is committed; the tests pass in one")
		for _, s := range o.Setup {
			o.say(w, "", "to get a clone ready: %s", s)
		}
	}
	for _, f := range o.Looked {
		if f.Check == "permissions" {
			continue
		}
		o.say(w, f.Check, "%s", f.Found)
		if !f.OK && f.Mend != "" {
			o.say(w, "", "→ %s", f.Mend)
		}
	}
}

// sayNext prints what to do next.
func (o initialised) sayNext(w io.Writer, noCheck bool) {
	run := `ralph run "TITLE" --verify "COMMAND THAT PROVES IT"`
	fmt.Fprintln(w)
	switch {
	case len(o.Verify) > 0 && noCheck:
		fmt.Fprintln(w, "The tests were not run: `ralph verify` does. A run does not begin while they fail.")
	case o.Holds && o.Missing != "":
		fmt.Fprintf(w, "A run does not begin before %s is installed, or verify in ralph.yaml is changed.\n", o.Missing)
		return
	case o.Holds:
		fmt.Fprintln(w, "Your tests fail before any work; fix them first. If the project is new, "+
			"`ralph run --on-red first` has the first task work until they pass.")
		return
	case !ralph.Green(o.Checks):
		fmt.Fprintln(w, "A run begins all the same: "+doctor.Excused+".")
	}
	fmt.Fprintf(w, "Next: %s\n", run)
}
