// Package doctor checks everything that a run needs, and says how to fix problems.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/lazy"
	"ralph/internal/project"
	"ralph/internal/sandbox"
	"ralph/internal/state"
	"ralph/internal/text"
	"ralph/internal/words"
	"ralph/internal/worktree"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/loop/agent/claude"
	"ralph/store"
)

// A Finding is the result of one check.
type Finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
	Mend  string `json:"mend,omitempty"` // remedy; "" for none
}

// Excused describes how ralph treats tests that already fail.
const Excused = "tests that failed before are ignored; new failures are not"

// Examine checks everything that a run needs. It calls verifying before it runs the project's
// commands, with the time limit of each; nil skips them.
func Examine(
	ctx context.Context, open func(context.Context) (*project.Project, error), verifying func(limit string),
) []Finding {
	findings := []Finding{lookForGit()}
	note := func(list ...Finding) { findings = append(findings, list...) }
	p, err := open(ctx)
	if err != nil {
		mend := "do as it says; nothing was changed"
		var status *ralph.ExitError
		var bad *config.Error
		if errors.As(err, &status) || errors.As(err, &bad) {
			mend = "run `ralph init` in the project, or correct ralph.yaml as it says"
		}
		return append(findings, Finding{"project", false, err.Error(), mend})
	}
	if !p.Git && findings[0].OK {
		findings[0].Found += ", but this folder is in no repository: a session's changes will not be known"
		findings[0].Mend = "git init"
	}
	if path := p.Path(state.ConfigName); state.Exists(path) {
		note(Finding{"configuration", true, path, ""})
	} else {
		note(Finding{"configuration", true, "there is no " + path, "`ralph init` finds your tests and writes it"})
	}
	for _, w := range p.Config.Warnings {
		note(Finding{"environment", true, w, ""})
	}
	for _, key := range p.Config.Ineffective() {
		found := key + " has no effect with merge.mode: " + p.Config.Merge.Mode
		note(Finding{"configuration", true, found, "leave it out, or set merge.mode"})
	}
	db, err := p.Open(ctx)
	if err != nil {
		mend := "do as it says"
		switch {
		case store.NoRoom(err):
			mend = "free some space on the disk of " + p.State
		case p.Server == "":
			mend += "; `ralph db restore` keeps the present file"
		}
		return append(findings, Finding{"database", false, err.Error(), mend})
	}
	defer db.Close()
	note(database(ctx, p, db)...)
	note(needs(ctx, p, db)...)
	note(undecided(ctx, db)...)
	note(merges(ctx, p, db)...)
	note(flaky(ctx, db)...)
	note(loose(ctx, p)...)
	note(Agent(ctx, p)...)
	note(Hooks(ctx, p)...)
	note(Commits(ctx, p)...)
	note(Signing(ctx, p)...)
	note(forge(ctx, p)...)
	note(verification(ctx, p, db, verifying)...)
	note(copied(p)...)
	if template, err := p.Template(); err != nil {
		note(Finding{"prompt", false, err.Error(), "correct the template, or start anew from `ralph prompt --template`"})
	} else if template != nil {
		note(Finding{"prompt", true, "by the project's own template", ""})
	}
	note(Confinement(ctx, p)...)
	if path := claude.ForeignLoop(p.Root); path != "" {
		note(Finding{"foreign loop", false, path + " makes the agent go on for ever", "remove it"})
	}
	return findings
}

// Agent checks the agents that may work, the default one first. It starts their programs, but sends
// nothing to their models.
func Agent(ctx context.Context, p *project.Project) (findings []Finding) {
	own := *p
	var err error
	if own.Confinement, err = own.Confine(ctx); err != nil {
		own.Confinement = project.Confinement{} // the sandbox's finding reports it
	}
	list, err := own.ConfiguredAgents() // as in a run, in its sandbox
	if err != nil {
		return []Finding{{"agent", false, err.Error(), "mend that key in ralph.yaml"}}
	}
	for i, a := range list {
		what, found := "agent", Finding{}
		if i > 0 {
			what += " " + a.Name
		}
		works, ok := a.Agent.(agent.Program)
		if ok {
			found = version(ctx, p, what, works)
			findings = append(findings, found)
		}
		if i == 0 && agent.ProfileOf(a.Agent).Kind == claude.Profile.Kind {
			findings = append(findings, credentials(p), permissions(p))
			ok = ok && claude.Program(works.Command()) != ""
		} else {
			findings = append(findings, standing(&own, what, a)...)
		}
		if ok && found.OK {
			findings = append(findings, begins(ctx, &own, what, a))
		}
	}
	return append(findings, fallbacks(p)...)
}

// standing checks an agent without starting it: its credentials, its permissions, and the source
// of its cost.
func standing(p *project.Project, what string, a project.ConfiguredAgent) (findings []Finding) {
	profile := agent.ProfileOf(a.Agent)
	seen, mend := p.Credentials(a), ""
	if seen == "" && len(profile.Credentials) > 0 {
		seen, mend = "no credentials can be seen (a keychain cannot be looked into)", profile.LogIn
	}
	if seen != "" {
		findings = append(findings, Finding{what, true, seen, mend})
	}
	guard := map[agent.Guard]string{
		agent.Hook:     "it asks ralph before it uses a tool, and is told why it may not",
		agent.Question: "it asks ralph before it uses a tool; why it may not is told it in its next prompt",
	}[profile.Guard]
	if guard != "" {
		findings = append(findings, Finding{what, true, guard, ""})
	} else {
		confined := p.Confinement.Sandbox.Name != sandbox.None || a.Config.Unguarded
		findings = append(findings, Finding{
			what, confined, "it asks nobody before it uses tools; its only bound is " + p.Confinement.Said(),
			"set sandbox.mode to require, or agents." + a.Name + ".unguarded to true",
		})
	}
	switch {
	case profile.Cost != agent.Never:
	case len(a.Config.Prices) == 0 || profile.Tokens == agent.Never:
		found := "it reports no cost: a session is charged by its time, at most limits.session_cost_usd"
		if profile.Tokens != agent.Never {
			found = "it reports no cost: its tokens count at list prices (of " + agent.PricesOf +
				`), said as "about"`
			mend = "set agents." + a.Name + ".prices: {MODEL: [input, cached input, output]}"
		}
		findings = append(findings, Finding{what, true, found, mend})
	default:
		models := strings.Join(slices.Sorted(maps.Keys(a.Config.Prices)), ", ")
		findings = append(findings, Finding{what, true, "its cost is known by the prices of " + models, ""})
	}
	return findings
}

// begins checks that an agent can begin a session and gets ralph's tools.
func begins(ctx context.Context, p *project.Project, what string, a project.ConfiguredAgent) Finding {
	if agent.ProfileOf(a.Agent).MCP == agent.ByChannel {
		return Finding{what, true, "it has no tools of ralph's, and signals by `ralph signal`", ""}
	}
	if err := p.Begins(ctx, a.Agent); err != nil {
		return Finding{
			what, false, "ralph's tools do not reach it: " + err.Error(),
			"run it by hand, read its output, and log in to it",
		}
	}
	return Finding{what, true, "a test session started, and could use ralph's tools", ""}
}

// fallbacks finds mistakes in the order of fallback agents.
func fallbacks(p *project.Project) (findings []Finding) {
	order := append([]string{p.Config.Agent.Use}, p.Config.Agent.Fallback...)
	for i, name := range order {
		if slices.Contains(order[:i], name) {
			findings = append(findings, Finding{
				"fallback", false,
				name + " is to stand in for itself: agent.use and agent.fallback are " + strings.Join(order, ", "),
				"name each agent once",
			})
		}
	}
	return findings
}

func lookForGit() Finding {
	path, err := exec.LookPath("git")
	if err != nil {
		return Finding{"git", false, "no git program in PATH", "install git 2.38 or newer; no session begins without it"}
	}
	return Finding{"git", true, path, ""}
}

// Hooks names the hooks of the project, which do not run where agents work, and commands that check the same.
func Hooks(ctx context.Context, p *project.Project) (findings []Finding) {
	for _, h := range project.Hooks(ctx, p.Root, p.Common) {
		if slices.Contains(p.Config.Verify.Commands, h.Same) {
			continue
		}
		runs := ""
		if h.Runs != "" {
			runs = " (`" + h.Runs + "`)"
		}
		findings = append(findings, Finding{
			"hooks", true, h.File + runs + " does not run in the clones in which agents work",
			"its check can check every done: add `" + h.Same + "` to verify in ralph.yaml",
		})
	}
	return findings
}

// database checks the queue, and finds completed tasks that nothing recorded explains.
func database(ctx context.Context, p *project.Project, db *store.DB) []Finding {
	if p.Blank {
		return []Finding{{"database", true, "none yet: there is no queue", "`ralph init` or `ralph task add` begins one"}}
	}
	if err := db.Check(ctx); err != nil {
		return []Finding{{"database", false, err.Error(), "`ralph db check` says more; " + p.HowToRestore()}}
	}
	findings := []Finding{{"database", true, db.Path(), ""}}
	unaccepted, err := store.Read(ctx, db, (*store.Tx).Unaccepted)
	switch {
	case err != nil:
		findings = append(findings, Finding{"verdicts", false, err.Error(), "`ralph db check` says more"})
	case len(unaccepted) > 0:
		findings = append(findings, Finding{
			"verdicts", false, loop.Outside(unaccepted), "`ralph db check` names the contradictions",
		})
	}
	return findings
}

// needs checks the needs of every run, as a run does.
func needs(ctx context.Context, p *project.Project, db *store.DB) (findings []Finding) {
	if !p.Blank {
		if err := p.Stores(ctx, db); err != nil {
			findings = append(findings, Finding{
				"state", false, "nothing that happens in a run could be stored: " + err.Error(),
				"make room, or make it writable: " + p.State,
			})
		} else {
			findings = append(findings, Finding{"state", true, p.State + " can be written", ""})
		}
	}
	if !p.Git {
		return findings
	}
	tree, err := worktree.Open(ctx, p.Root)
	if err == nil {
		err = project.Whole(ctx, tree)
	}
	if err != nil {
		return append(findings, Finding{"repository", false, err.Error(), project.HowToMend})
	}
	converted, err := tree.Converted(ctx)
	if err != nil {
		findings = append(findings, Finding{"line endings", false, err.Error(), ""})
	} else if n := len(converted); n > 0 {
		findings = append(findings, Finding{
			"line endings", true, "git calls " + text.Count(n, "file") + " modified that nobody has edited, because of " +
				".gitattributes or core.autocrlf: " + text.Line(strings.Join(converted, ", "), 300),
			"`git add --renormalize .` and a commit end that; until then ralph leaves them as they are",
		})
	}
	return findings
}

// undecided lists the sessions that are over and could not be decided, so that their tasks stay
// claimed.
func undecided(ctx context.Context, db *store.DB) (findings []Finding) {
	list, err := store.Read(ctx, db, (*store.Tx).Undecided)
	if err != nil {
		return []Finding{{"sessions", false, err.Error(), ""}}
	}
	for _, u := range list {
		findings = append(findings, Finding{
			"session", false, fmt.Sprintf("%.8s of TASK-%d is over and could not be decided: %s", u.ID, u.Task, u.Why),
			"fix that; the next `ralph run` decides on it",
		})
	}
	return findings
}

// merges lists the completed tasks whose commits are no longer in the target branch, and the
// reason why nothing is merged.
func merges(ctx context.Context, p *project.Project, db *store.DB) (findings []Finding) {
	if !p.Git {
		return nil
	}
	if err := p.CaughtUp(ctx, db); err != nil {
		findings = append(findings, Finding{"merging", false, err.Error(), ""})
	}
	queue, err := store.Read(ctx, db, (*store.Tx).MergeQueue)
	if err == nil && queue.Paused != "" {
		findings = append(findings,
			Finding{"merging", false, "is paused: " + queue.Paused, "fix that, then `ralph resume --merging`"})
	}
	if err == nil && queue.Behind != "" {
		findings = append(findings, Finding{
			"merging", false, fmt.Sprintf("passed work is not on %s yet: %s", queue.Target, queue.Behind), queue.Command,
		})
	}
	if err == nil && queue.Target != "" {
		findings = append(findings, locks(ctx, p, queue.Target)...)
	}
	var missing []ralph.Change
	if err == nil {
		missing, err = lost(ctx, p, db)
	}
	if err != nil {
		return append(findings, Finding{"merging", false, err.Error(), ""})
	}
	reverted, err := p.Reverted(ctx, db, 0)
	if err != nil {
		findings = append(findings, Finding{"merging", false, err.Error(), ""})
	}
	for _, r := range reverted {
		if r.Commit == "" { // missing has the removed ones, with those of other machines
			findings = append(findings, Finding{"merging", true, r.String(), ""})
		}
	}
	for _, c := range missing {
		findings = append(findings, Finding{
			"merging", false,
			fmt.Sprintf("TASK-%d is merged, and its commit %.12s is not in the branch any more", c.TaskID, c.To),
			fmt.Sprintf("`ralph retry %[1]d --again` has it done once more; `ralph merge %[1]d` says where it is", c.TaskID),
		})
	}
	return findings
}

// lost returns the changes whose commits have disappeared from their target branch.
func lost(ctx context.Context, p *project.Project, db *store.DB) ([]ralph.Change, error) {
	tree, err := worktree.Open(ctx, p.Root)
	if err != nil {
		return nil, err
	}
	l, err := p.Merger(ctx, db, tree)
	if err != nil {
		return nil, err
	}
	return l.Missing(ctx)
}

// loose names entries of the workspaces' folder that belong to nothing.
func loose(ctx context.Context, p *project.Project) []Finding {
	names, err := p.LostWork(ctx)
	if err != nil {
		return []Finding{{"lost work", false, err.Error(), ""}}
	}
	if len(names) == 0 {
		return nil
	}
	return []Finding{{
		"lost work", true, text.Count(len(names), "commit") + " that no task has: " +
			text.Line(strings.Join(names, ", "), 300),
		"`git show REF` shows one, `git update-ref -d REF` drops it",
	}}
}

// locks names the lock files that prevent moving the target branch or its commit point.
func locks(ctx context.Context, p *project.Project, branch string) (findings []Finding) {
	tree, err := worktree.Open(ctx, p.Root)
	if err != nil {
		return []Finding{{"merging", false, err.Error(), ""}}
	}
	for _, ref := range []string{"refs/heads/" + branch, "refs/ralph/target/" + branch} {
		lock, err := tree.Locked(ref)
		switch {
		case err != nil:
			findings = append(findings, Finding{"merging", false, err.Error(), ""})
		case lock != "":
			findings = append(findings, Finding{
				"merging", false, fmt.Sprintf("%s is locked by %s", ref, lock), "remove that file, unless a git is at work",
			})
		}
	}
	return findings
}

func version(ctx context.Context, p *project.Project, what string, works agent.Program) Finding {
	command := strings.Join(works.Command(), " ")
	version, err := works.Version(ctx, p.Root)
	profile := agent.ProfileOf(works)
	mend := "set its command in ralph.yaml"
	if profile.Install != "" {
		mend = profile.Install + ", or " + mend
	}
	switch {
	case err != nil:
		said, _, _ := strings.Cut(err.Error(), ": install ") // mend has this part
		return Finding{what, false, said, mend}
	case version == "" && profile.Kind != "command":
		return Finding{what, true, command + ", which does not tell its version", ""}
	case version == "":
		return Finding{what, true, command, ""}
	}
	return Finding{what, true, command + ", " + version + compared(version, profile.Tested), ""}
}

// number is a version in a line.
var number = lazy.Regexp(`\d+(\.\d+)+`)

// compared describes a difference between a version and the tested one. It is not an error.
func compared(version, tried string) string {
	numbers := func(v string) (list []int) {
		for part := range strings.SplitSeq(number().FindString(v), ".") {
			n, _ := strconv.Atoi(part) // digits; a longer number is large
			list = append(list, n)
		}
		return list
	}
	if !number().MatchString(version) || tried == "" {
		return ""
	}
	switch slices.Compare(numbers(version), numbers(tried)) {
	case -1:
		return "; ralph was tried with the newer " + tried
	case 1:
		return "; ralph was tried with the older " + tried
	}
	return ""
}

// credentials describes the visible credentials; only a session shows whether they are valid.
func credentials(p *project.Project) Finding {
	if seen := claude.Credentials(p.Getenv); seen != "" {
		return Finding{"credentials", true, seen, ""}
	}
	return Finding{
		"credentials", true, "none in the environment; claude may have a login of its own", claude.Profile.LogIn,
	}
}

func permissions(p *project.Project) Finding {
	mode := p.Config.Agent.PermissionMode
	_, err := p.Permissions()
	switch {
	case err != nil:
		return Finding{"permissions", false, err.Error(), "correct the rule in ralph.yaml"}
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
			"permissions", true, mode + ": the agent asks ralph, but not about rules in " + file + " allows",
			"remove permissions.allow there, or check its rules",
		}
	}
	return Finding{"permissions", true, mode + ": the agent asks ralph, which answers by the rules of permissions", ""}
}

// verification describes the check of a done, and runs it if wanted.
func verification(ctx context.Context, p *project.Project, db *store.DB, verifying func(limit string)) []Finding {
	commands := p.Config.Verify.Commands
	if len(commands) == 0 {
		return []Finding{{
			"verification", true, "no command checks every task",
			"set verify in ralph.yaml, and --verify for each task: a done that nothing checks is taken at its word",
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
	checks, red, err := p.Verify(ctx, db, 0, func(ralph.Check, io.ReadSeeker) error { return nil })
	if err != nil {
		return []Finding{{"verification", false, err.Error(), ""}}
	}
	var findings []Finding
	for _, c := range checks {
		f := Finding{"verification", c.Passed, words.Check(c, 0), ""}
		switch {
		case !c.Passed && red && c.Cause != "":
			f.Mend = c.Cause.Advice()
		case !c.Passed && !red:
			f.OK, f.Mend = true, "a run begins all the same: "+Excused
			f.Found = text.Line(c.Command+": red already: "+strings.Join(c.Failures, ", "), 1000)
		case !c.Passed:
			f.Mend = "fix it first (`ralph verify` shows its output), or run with --on-red first, " +
				"and one task works until it passes"
		}
		findings = append(findings, f)
	}
	return findings
}

// copied lists the copies of the person's folders in workspaces.
func copied(p *project.Project) (findings []Finding) {
	list, err := p.Copied()
	if err != nil {
		return []Finding{{"workspace.setup", false, err.Error(), ""}}
	}
	for _, c := range list {
		findings = append(findings, Finding{"workspace.setup", true, c.String(), "`ralph doctor` tries it again"})
	}
	return findings
}

// Confinement describes the sandbox of a run's agents.
func Confinement(ctx context.Context, p *project.Project) (findings []Finding) {
	c, err := p.Confine(ctx)
	if err != nil {
		findings = append(findings, Finding{"sandbox", false, err.Error(), ""})
	} else {
		findings = append(findings, Finding{"sandbox", true, c.Said(), ""})
	}
	return findings
}
