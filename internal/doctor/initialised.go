package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/project"
	"ralph/store"
)

// An Initialised is the result of `ralph init`.
type Initialised struct {
	Config  string        `json:"config"`
	Written bool          `json:"written"` // the configuration did not exist before
	Added   bool          `json:"-"`       // verification commands were added to it
	Git     bool          `json:"git"`
	Part    string        `json:"-"` // the repository, if the queue is only for this part of it
	Common  string        `json:"git_common_dir"`
	State   string        `json:"state"`
	Verify  []string      `json:"verify"`
	From    []string      `json:"verify_from,omitempty"`   // the files that the commands were derived from, if they were
	Others  []string      `json:"verify_others,omitempty"` // other commands that would suit, with their files
	Setup   []string      `json:"setup,omitempty"`
	Sparse  []string      `json:"sparse,omitempty"`       // the folders of the person's sparse checkout
	Failed  string        `json:"setup_failed,omitempty"` // how the set-up failed, and the remedy
	Missing string        `json:"missing,omitempty"`      // a program that a command needs and that is not installed
	Checks  []ralph.Check `json:"checks"`                 // results of the commands; empty if they were not run
	Red     bool          `json:"red"`                    // a failing command prevents a run

	Agent  string   `json:"agent,omitempty"`  // which works, if the configuration was written
	Agents []string `json:"agents,omitempty"` // those whose programs are in PATH

	Looked []Finding `json:"looked"` // agent, credentials, sandbox
}

// Say prints one finding under a name.
func (o Initialised) Say(w io.Writer, name, format string, args ...any) {
	fmt.Fprintf(w, "%-11s %s\n", name, fmt.Sprintf(format, args...))
}

// SayFound prints the findings and the written files, before the commands run.
func (o Initialised) SayFound(w io.Writer) {
	wrote := "wrote"
	if o.Added {
		wrote = "added to"
	} else if !o.Written {
		wrote = "config"
	}
	o.Say(w, wrote, "%s (state: %s)", o.Config, o.State)
	if o.Part != "" {
		o.Say(w, "queue", "the one of the repository in %s; "+
			"a folder of it that shall have its own: ralph init --package", o.Part)
	}
	switch {
	case len(o.Verify) == 0 && o.Part != "" && found(o.Part):
		o.Say(w, "!", "no tests were found in this folder, and there are some in %[1]s: remove this ralph.yaml and run "+
			"`ralph init` there, or name the command that checks a \"done\" here: ralph init --verify COMMAND", o.Part)
	case len(o.Verify) == 0:
		o.Say(w, "!", "no tests were found: nothing checks a \"done\". Name the command that does: "+
			"ralph init --verify COMMAND, or verify in ralph.yaml")
	}
	for i, v := range o.Verify {
		from := ""
		if len(o.From) == len(o.Verify) {
			from = "  (from " + o.From[i] + ")"
		}
		o.Say(w, "tests", "%s%s", v, from)
	}
	if len(o.Others) > 0 {
		o.Say(w, "", "also found: %s; another one: verify in ralph.yaml", strings.Join(o.Others, ", "))
	}
	if o.Missing != "" {
		o.Say(w, "!", "%s is not installed here, and no \"done\" can be accepted without it: install it, "+
			"or change verify in ralph.yaml", o.Missing)
	}
}

// found reports whether a project has tests that ralph finds.
func found(root string) bool {
	checks, _ := project.LikelyChecks(root)
	return len(checks) > 0
}

// Find adds the set-up of a clone for sessions, and the folders that it has, to the configuration.
func (o *Initialised) Find(ctx context.Context, p *project.Project) error {
	at := config.StarterWorkspace{Setup: p.LikelySetup(), Sparse: p.OwnSparse(ctx)}
	o.Setup, o.Sparse, p.Config.Workspace.Sparse = at.Setup, at.Sparse, at.Sparse
	text, err := os.ReadFile(o.Config)
	if err == nil {
		err = os.WriteFile(o.Config, append(text, at.Starter()...), 0o644)
	}
	return err
}

// Try runs the tests in such a clone. A failing set-up is a finding of init, not an error.
func (o *Initialised) Try(ctx context.Context, p *project.Project, db *store.DB) (err error) {
	o.Checks, o.Red, o.Failed, err = p.Try(ctx, db, o.Setup)
	return err
}

// SayWorkspace prints the set-up of the clones for sessions.
func (o Initialised) SayWorkspace(w io.Writer) {
	o.Say(w, "workspace", "agents work in clones of your last commit")
	if len(o.Sparse) > 0 {
		o.Say(w, "", "they have the folders of your sparse checkout: %s (workspace.sparse)", strings.Join(o.Sparse, ", "))
	}
	for _, s := range o.Setup {
		o.Say(w, "", "to get a clone ready: %s", s)
	}
	for _, c := range ralph.CopiedOf(o.Checks) {
		o.Say(w, "", "%s", c)
	}
	others := slices.DeleteFunc(slices.Clone(o.Agents), func(n string) bool { return n == o.Agent })
	const change = "another one: agent.use in ralph.yaml, and its name below agents"
	switch {
	case len(others) > 0:
		o.Say(w, "agent", "%s works; in PATH there are %s too. %s (`ralph init --agent %s` writes both where there is "+
			"no ralph.yaml)", o.Agent, strings.Join(others, ", "), change, others[0])
	case o.Agent != "" && o.Agent != ralph.DefaultAgent:
		o.Say(w, "agent", "%s works, the only one in PATH; %s", o.Agent, change)
	}
	for _, f := range o.Looked {
		if f.Check == "permissions" {
			continue
		}
		o.Say(w, f.Check, "%s", f.Found)
		if (!f.OK || f.Check == "hooks" || f.Check == identity) && f.Mend != "" {
			o.Say(w, "", "→ %s", f.Mend)
		}
	}
}

// Ready reports whether a run can begin, in the name of a person.
func (o Initialised) Ready() bool {
	return o.Failed == "" && !o.Red &&
		!slices.ContainsFunc(o.Looked, func(f Finding) bool { return !f.OK || f.Check == identity })
}

// SayNext prints the next steps.
func (o Initialised) SayNext(w io.Writer, noCheck bool) {
	var lacks ralph.Cause
	for _, c := range o.Checks {
		lacks = cmp.Or(lacks, c.Cause)
	}
	run := `ralph run "TITLE" --verify "COMMAND THAT PROVES IT"`
	fmt.Fprintln(w)
	switch {
	case o.Failed != "":
		fmt.Fprintln(w, "No run begins before the set-up works. It is in ralph.yaml; `ralph init` tries it again.")
		return
	case len(o.Verify) > 0 && noCheck:
		fmt.Fprintln(w, "The tests were not run: `ralph verify` does. A run does not begin while they fail.")
	case o.Red && o.Missing != "":
		fmt.Fprintf(w, "Install %s, or change verify in ralph.yaml: no run begins before that.\n", o.Missing)
		return
	case o.Red && lacks != "":
		fmt.Fprintf(w, "No run begins before your tests pass: %s.\n", lacks.Advice())
		return
	case o.Red:
		fmt.Fprintln(w, "Your tests fail already. Fix them, or `ralph run --on-red first`: "+
			"the first task works until they pass.")
		return
	case !ralph.Green(o.Checks):
		fmt.Fprintln(w, "A run begins all the same: "+Excused+".")
	}
	if !o.Ready() {
		fmt.Fprintln(w, "Follow the arrows (→), then run `ralph init` again.")
		return
	}
	fmt.Fprintf(w, "Next: %s\n", run)
}
