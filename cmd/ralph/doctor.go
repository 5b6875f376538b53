package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/words"
	"ralph/loop"
	"ralph/store"
)

// A finding is one thing that doctor looked at.
type finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
	Mend  string `json:"mend,omitempty"` // what to do; "" if nothing
}

func newDoctor(a *app) *cobra.Command {
	var noCheck bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that a run can work here, and say how to mend what cannot",
		Long: `Check that a run can work here, and say how to mend what cannot. The verification
commands are run too, within their time limit; --no-check leaves them out.`,
		Example: "  ralph doctor",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := examine(cmd.Context(), a, noCheck)
			err := a.print(findings, func(w io.Writer) error { return sayFindings(w, findings) })
			for _, f := range findings {
				if !f.OK {
					return errors.Join(err, &statusError{status: ralph.ExitFailure})
				}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&noCheck, "no-check", false, "do not run the verification commands")
	return cmd
}

func sayFindings(w io.Writer, findings []finding) error {
	for _, f := range findings {
		mark := "ok  "
		if !f.OK {
			mark = "FAIL"
		}
		if _, err := fmt.Fprintf(w, "%s %-16s %s\n", mark, f.Check, f.Found); err != nil {
			return err
		}
		if f.Mend != "" {
			if _, err := fmt.Fprintf(w, "     %-16s → %s\n", "", f.Mend); err != nil {
				return err
			}
		}
	}
	return nil
}

// examine looks at everything that a run needs.
func examine(ctx context.Context, a *app, noCheck bool) []finding {
	findings := []finding{lookForGit()}
	p, err := a.project(ctx)
	if err != nil {
		mend := "do as it says; the queue is left alone meanwhile"
		var status *statusError
		var bad *config.Error
		if errors.As(err, &status) || errors.As(err, &bad) {
			mend = "run `ralph init` in the project, or mend ralph.yaml as it says"
		}
		return append(findings, finding{"project", false, err.Error(), mend})
	}
	findings = append(findings, finding{Check: "configuration", OK: true, Found: filepath.Join(p.root, configName)})
	for _, w := range p.config.Warnings {
		findings = append(findings, finding{"environment", true, w, ""})
	}
	db, err := p.open(ctx)
	if err != nil {
		return append(findings, finding{"database", false, err.Error(), "do as it says"})
	}
	defer db.Close()
	if why := p.waitsForApproval(); why != "" {
		findings = append(findings, finding{"configuration", false, why + "; what follows is of the approved version", p.howToApprove()})
	}
	if p.blank {
		findings = append(findings, finding{"database", true, "none yet: there is no queue", "`ralph init` or `ralph task add` begins one"})
	} else if err := db.Check(ctx); err != nil {
		findings = append(findings, finding{"database", false, err.Error(), "`ralph db check` says more; " + p.howToRestore()})
	} else {
		findings = append(findings, finding{"database", true, db.Path(), ""})
		findings = append(findings, lookAtVerdicts(ctx, db)...)
	}
	findings = append(findings, unsettled(ctx, db)...)
	agent, err := newAgent(a, p, db)
	if err != nil {
		return append(findings, finding{"agent", false, err.Error(), ""})
	}
	version, err := agent.Version(ctx, p.root)
	switch {
	case err != nil:
		findings = append(findings, finding{"agent", false, err.Error(), "npm install -g @anthropic-ai/claude-code, or set agent.command in ralph.yaml"})
	case version == "":
		findings = append(findings, finding{"agent", false, strings.Join(agent.Command(), " ") + " does not answer to --version", "set agent.command in ralph.yaml"})
	default:
		findings = append(findings, finding{"agent", true, strings.Join(agent.Command(), " ") + ", " + version, ""})
	}
	findings = append(findings, credentials(a), permissions(p))
	findings = append(findings, verification(ctx, a, p, db, noCheck)...)
	if template, err := promptTemplate(p); err != nil {
		findings = append(findings, finding{"prompt", false, err.Error(), "mend the template, or start anew from `ralph prompt --template`"})
	} else if template != nil {
		findings = append(findings, finding{"prompt", true, "by the project's own template", ""})
	}
	findings = append(findings, lookAtConfinement(ctx, a, p)...)
	return append(findings, stopHook(p)...)
}

// unsettled names the sessions that are over and could not be settled, so that their
// tasks stay claimed.
func unsettled(ctx context.Context, db *store.DB) (findings []finding) {
	var list []store.UnsettledSession
	if err := db.View(ctx, func(tx *store.Tx) (err error) { list, err = tx.Unsettled(); return err }); err != nil {
		return []finding{{"sessions", false, err.Error(), ""}}
	}
	for _, u := range list {
		findings = append(findings, finding{
			"session", false, fmt.Sprintf("%.8s of TASK-%d is over and could not be settled: %s", u.ID, u.Task, u.Why),
			"mend that; the next `ralph run` settles it",
		})
	}
	return findings
}

// lookAtVerdicts finds tasks that are completed although nobody decided so.
func lookAtVerdicts(ctx context.Context, db *store.DB) []finding {
	var unaccepted []int64
	err := db.View(ctx, func(tx *store.Tx) (err error) { unaccepted, err = tx.Unaccepted(); return err })
	switch {
	case err != nil:
		return []finding{{"verdicts", false, err.Error(), "`ralph db check` says more"}}
	case len(unaccepted) > 0:
		return []finding{{"verdicts", false, loop.Outside(unaccepted), "`ralph db check` names what contradicts itself"}}
	}
	return nil
}

// verification tells what checks a done, and runs it unless it is not to be.
func verification(ctx context.Context, a *app, p *project, db *store.DB, noCheck bool) []finding {
	commands := p.config.Verify.Commands
	if len(commands) == 0 {
		return []finding{{"verification", true, "no command checks every task", "set verify in ralph.yaml, and --verify for each task: what nothing checks is taken at its word"}}
	}
	for _, c := range commands {
		if program := missingProgram(ctx, c); program != "" {
			return []finding{{"verification", false, c + ": " + program + " is not installed, or not in PATH", "install it, or change verify in ralph.yaml"}}
		}
	}
	if noCheck {
		return []finding{{"verification", true, strings.Join(commands, "; ") + " (not run)", ""}}
	}
	if onTerminal(a.err) {
		fmt.Fprintf(a.err, "ralph: runs the verification (%s a command at most; --no-check leaves it out)\n", config.FormatDuration(p.config.Verify.Timeout))
	}
	checks, holds, err := a.verify(ctx, p, db, 0, func(ralph.Check, io.ReadSeeker) error { return nil })
	if err != nil {
		return []finding{{"verification", false, err.Error(), ""}}
	}
	var findings []finding
	for _, c := range checks {
		f := finding{"verification", c.Passed, words.Check(c, 0), ""}
		switch {
		case !c.Passed && !holds:
			f.OK, f.Mend = true, "a run begins all the same: "+excusedByName
			f.Found = oneLine(c.Command+": red already: "+strings.Join(c.Failures, ", "), 1000)
		case !c.Passed:
			f.Mend = "mend it: `ralph verify` shows its output. A run does not begin while it fails; `ralph run --on-red first` has one task mend it"
		}
		findings = append(findings, f)
	}
	return findings
}

func lookForGit() finding {
	path, err := exec.LookPath("git")
	if err != nil {
		return finding{"git", false, "no git program in PATH", "install git; without it the files that a session changed are not known"}
	}
	return finding{"git", true, path, ""}
}

// credentials tells what can be seen of them; whether they are valid only a
// session tells.
func credentials(a *app) finding {
	env := map[string]bool{}
	for _, e := range a.environ {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value != ""
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"} {
		if env[name] {
			return finding{"credentials", true, name + " is set", ""}
		}
	}
	home, err := os.UserHomeDir()
	if err == nil && exists(filepath.Join(home, ".claude", ".credentials.json")) {
		return finding{"credentials", true, "claude is logged in (" + filepath.Join(home, ".claude", ".credentials.json") + ")", ""}
	}
	return finding{"credentials", true, "none can be seen", "log in with `claude`, or set ANTHROPIC_API_KEY (a keychain cannot be seen from here)"}
}

func permissions(p *project) finding {
	mode := p.config.Agent.PermissionMode
	switch {
	case mode == "bypassPermissions" && os.Geteuid() == 0 && os.Getenv("IS_SANDBOX") == "":
		return finding{"permissions", false, "bypassPermissions as root, which claude refuses", "run ralph as another user, or set agent.permission_mode: acceptEdits"}
	case mode == "plan":
		return finding{"permissions", false, "plan: no file may be changed", "set agent.permission_mode: default, in which the agent asks ralph"}
	case (mode == "default" || mode == "acceptEdits") && allowsByItself(p) != "":
		return finding{"permissions", true, mode + ": the agent asks ralph, but not about what " + allowsByItself(p) + " allows", "remove permissions.allow there, or mind what it allows"}
	case mode == "default" || mode == "acceptEdits":
		return finding{"permissions", true, mode + ": the agent asks ralph, which answers by the rules of permissions", ""}
	}
	return finding{"permissions", true, mode + ": the agent asks nobody; the rules of permissions do not hold", ""}
}

// allowsByItself is the agent's settings file in the project that allows something
// without asking; "" if none does.
func allowsByItself(p *project) string {
	for _, name := range []string{"settings.json", "settings.local.json"} {
		path := filepath.Join(p.root, ".claude", name)
		text, err := os.ReadFile(path)
		if err != nil {
			continue // there is none, or the agent cannot read it either
		}
		var settings struct{ Permissions struct{ Allow []string } }
		if json.Unmarshal(text, &settings) == nil && len(settings.Permissions.Allow) > 0 {
			return path
		}
	}
	return ""
}

// stopHook names what another loop left behind: it would keep the agent from ending.
func stopHook(p *project) []finding {
	path := filepath.Join(p.root, ".claude", "ralph-loop.local.md")
	if !exists(path) {
		return nil
	}
	return []finding{{"foreign loop", false, path + " makes the agent go on for ever", "remove it"}}
}
