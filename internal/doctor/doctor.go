// Package doctor looks at everything that a run needs, and says how to mend what is wrong.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/project"
	"ralph/internal/state"
	"ralph/internal/text"
	"ralph/internal/words"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/agent/claude"
	"ralph/store"
)

// A Finding is one thing that was looked at.
type Finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
	Mend  string `json:"mend,omitempty"` // what to do; "" if nothing
}

// Excused is what becomes of tests that fail already.
const Excused = "tests that fail by name before a task is begun are excused, and no others"

// Examine looks at everything that a run needs. verifying is called before commands of
// the project run, with how long each may take; nil leaves them out.
func Examine(
	ctx context.Context, open func(context.Context) (*project.Project, error), verifying func(limit string),
) []Finding {
	findings := []Finding{lookForGit()}
	note := func(list ...Finding) { findings = append(findings, list...) }
	p, err := open(ctx)
	if err != nil {
		mend := "do as it says; the queue is left alone meanwhile"
		var status *ralph.ExitError
		var bad *config.Error
		if errors.As(err, &status) || errors.As(err, &bad) {
			mend = "run `ralph init` in the project, or mend ralph.yaml as it says"
		}
		return append(findings, Finding{"project", false, err.Error(), mend})
	}
	note(Finding{"configuration", true, p.Path(state.ConfigName), ""})
	for _, w := range p.Config.Warnings {
		note(Finding{"environment", true, w, ""})
	}
	db, err := p.Open(ctx)
	if err != nil {
		return append(findings, Finding{"database", false, err.Error(), "do as it says"})
	}
	defer db.Close()
	if why := p.WaitsForApproval(); why != "" {
		note(Finding{"configuration", false, why + "; what follows is of the approved version", p.HowToApprove()})
	}
	note(database(ctx, p, db)...)
	note(unsettled(ctx, db)...)
	works, err := p.Agent(db)
	if err != nil {
		return append(findings, Finding{"agent", false, err.Error(), ""})
	}
	if a, ok := works.(agent.Program); ok {
		note(version(ctx, p, a))
	}
	if _, ok := works.(*claude.Agent); ok {
		note(credentials(p), permissions(p))
	}
	note(verification(ctx, p, db, verifying)...)
	if template, err := p.Template(); err != nil {
		note(Finding{"prompt", false, err.Error(), "mend the template, or start anew from `ralph prompt --template`"})
	} else if template != nil {
		note(Finding{"prompt", true, "by the project's own template", ""})
	}
	note(confinement(ctx, p)...)
	if path := claude.ForeignLoop(p.Root); path != "" {
		note(Finding{"foreign loop", false, path + " makes the agent go on for ever", "remove it"})
	}
	return findings
}

func lookForGit() Finding {
	path, err := exec.LookPath("git")
	if err != nil {
		return Finding{"git", false, "no git program in PATH", "install git; " + worktree.WithoutGit}
	}
	return Finding{"git", true, path, ""}
}

// database tells how the queue is, and finds tasks that are completed although nobody
// decided so.
func database(ctx context.Context, p *project.Project, db *store.DB) []Finding {
	if p.Blank {
		return []Finding{{"database", true, "none yet: there is no queue", "`ralph init` or `ralph task add` begins one"}}
	}
	if err := db.Check(ctx); err != nil {
		return []Finding{{"database", false, err.Error(), "`ralph db check` says more; " + p.HowToRestore()}}
	}
	findings := []Finding{{"database", true, db.Path(), ""}}
	var unaccepted []int64
	err := db.View(ctx, func(tx *store.Tx) (err error) { unaccepted, err = tx.Unaccepted(); return err })
	switch {
	case err != nil:
		findings = append(findings, Finding{"verdicts", false, err.Error(), "`ralph db check` says more"})
	case len(unaccepted) > 0:
		findings = append(findings, Finding{
			"verdicts", false, loop.Outside(unaccepted), "`ralph db check` names what contradicts itself",
		})
	}
	return findings
}

// unsettled names the sessions that are over and could not be settled, so that their
// tasks stay claimed.
func unsettled(ctx context.Context, db *store.DB) (findings []Finding) {
	var list []store.UnsettledSession
	if err := db.View(ctx, func(tx *store.Tx) (err error) { list, err = tx.Unsettled(); return err }); err != nil {
		return []Finding{{"sessions", false, err.Error(), ""}}
	}
	for _, u := range list {
		findings = append(findings, Finding{
			"session", false, fmt.Sprintf("%.8s of TASK-%d is over and could not be settled: %s", u.ID, u.Task, u.Why),
			"mend that; the next `ralph run` settles it",
		})
	}
	return findings
}

func version(ctx context.Context, p *project.Project, works agent.Program) Finding {
	command := strings.Join(works.Command(), " ")
	version, err := works.Version(ctx, p.Root)
	switch {
	case err != nil:
		return Finding{"agent", false, err.Error(), claude.Install + ", or set agent.command in ralph.yaml"}
	case version == "":
		return Finding{"agent", false, command + " does not answer to --version", "set agent.command in ralph.yaml"}
	}
	return Finding{"agent", true, command + ", " + version, ""}
}

// credentials tells what can be seen of them; whether they are valid only a
// session tells.
func credentials(p *project.Project) Finding {
	if seen := claude.Credentials(p.Getenv); seen != "" {
		return Finding{"credentials", true, seen, ""}
	}
	return Finding{"credentials", true, "none can be seen", claude.HowToLogIn}
}

func permissions(p *project.Project) Finding {
	mode := p.Config.Agent.PermissionMode
	switch {
	case claude.Refusal(mode, nil, os.Getenv) != "":
		return Finding{
			"permissions", false, mode + " as root, which claude refuses",
			"run ralph as another user, or set agent.permission_mode: acceptEdits",
		}
	case mode == "plan":
		return Finding{
			"permissions", false, "plan: no file may be changed",
			"set agent.permission_mode: default, in which the agent asks ralph",
		}
	case !claude.Asks(mode):
		return Finding{
			"permissions", true, mode + ": the agent asks nobody; the rules of permissions do not hold", "",
		}
	}
	if file := claude.AllowsByItself(p.Root); file != "" {
		return Finding{
			"permissions", true, mode + ": the agent asks ralph, but not about what " + file + " allows",
			"remove permissions.allow there, or mind what it allows",
		}
	}
	return Finding{"permissions", true, mode + ": the agent asks ralph, which answers by the rules of permissions", ""}
}

// verification tells what checks a done, and runs it unless it is not to be.
func verification(ctx context.Context, p *project.Project, db *store.DB, verifying func(limit string)) []Finding {
	commands := p.Config.Verify.Commands
	if len(commands) == 0 {
		return []Finding{{
			"verification", true, "no command checks every task",
			"set verify in ralph.yaml, and --verify for each task: what nothing checks is taken at its word",
		}}
	}
	for _, c := range commands {
		if program := project.MissingProgram(ctx, c); program != "" {
			return []Finding{{
				"verification", false, c + ": " + program + " is not installed, or not in PATH",
				"install it, or change verify in ralph.yaml",
			}}
		}
	}
	if verifying == nil {
		return []Finding{{"verification", true, strings.Join(commands, "; ") + " (not run)", ""}}
	}
	verifying(config.FormatDuration(p.Config.Verify.Timeout))
	checks, holds, err := p.Verify(ctx, db, 0, func(ralph.Check, io.ReadSeeker) error { return nil })
	if err != nil {
		return []Finding{{"verification", false, err.Error(), ""}}
	}
	var findings []Finding
	for _, c := range checks {
		f := Finding{"verification", c.Passed, words.Check(c, 0), ""}
		switch {
		case !c.Passed && !holds:
			f.OK, f.Mend = true, "a run begins all the same: "+Excused
			f.Found = text.Line(c.Command+": red already: "+strings.Join(c.Failures, ", "), 1000)
		case !c.Passed:
			f.Mend = "mend it: `ralph verify` shows its output. A run does not begin while it fails; " +
				"`ralph run --on-red first` has one task mend it"
		}
		findings = append(findings, f)
	}
	return findings
}

// confinement tells what a run would find.
func confinement(ctx context.Context, p *project.Project) (findings []Finding) {
	c, err := p.Confine(ctx)
	if err != nil {
		findings = append(findings, Finding{"sandbox", false, err.Error(), ""})
	} else if len(c.Wrapper) > 0 {
		findings = append(findings, Finding{"sandbox", true, c.Wrapper[0], ""})
	}
	for _, m := range c.Missing {
		findings = append(findings, Finding{"resources", false, m, "run ralph as a service, or as the text says"})
	}
	return findings
}
