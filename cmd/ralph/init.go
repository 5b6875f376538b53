package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/doctor"
	"ralph/internal/project"
	"ralph/internal/state"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/internal/words"
	"ralph/internal/worktree"
	"ralph/loop/agent/kinds"
	"ralph/store"
)

func newInit(a *app) *cobra.Command {
	var noCheck, own, git, mcp, anew bool
	var verify []string
	var use string
	cmd := newCommand("init", func(cmd *cobra.Command, _ []string) error {
		if mcp {
			return a.registerTools(cmd.Context())
		}
		root, err := a.dir()
		if err == nil {
			err = a.inGit(cmd.Context(), root, git)
		}
		if err != nil {
			return err
		}
		err = a.init(cmd.Context(), root, noCheck, own, verify, use)
		var gone *state.GoneError
		if !errors.As(err, &gone) || !anew && !a.yes(fmt.Sprintf(
			"Another project was here, and its queue is in %s.\nKeep that, and begin a new one? [y/N] ", gone.Folder), false) {
			return err
		}
		if err := gone.Leave(); err != nil {
			return err
		}
		return a.init(cmd.Context(), root, noCheck, own, verify, use)
	})
	cmd.Flags().BoolVar(&anew, "new", false, "start a new queue in the place of another project's, and keep that")
	cmd.Flags().BoolVar(&git, "git", false,
		"make a missing git repository or first commit")
	cmd.Flags().StringArrayVar(&verify, "verify", nil, "a `COMMAND` that must pass before any task is done (repeatable); "+
		"without it, the one that ralph finds")
	cmd.Flags().StringVar(&use, "agent", "",
		"the `AGENT` that works; without it, claude or the first one that ralph finds")
	cmd.Flags().BoolVar(&noCheck, "no-check", false, "do not run the verification commands")
	cmd.Flags().BoolVar(&own, "package", false,
		"make this folder of a repository a project with its own queue")
	cmd.Flags().BoolVar(&mcp, "mcp", false, "only give chats in this project ralph's tools, in its .mcp.json")
	return cmd
}

// inGit makes sure that a folder is in a git repository with a commit, because agents work in clones of it. It
// creates a missing repository if yes is set, or if the person at the terminal agrees.
func (a *app) inGit(ctx context.Context, root string, yes bool) error {
	if err := state.CheckPath(root); err != nil {
		return err
	}
	lacks, err := worktree.Lacks(ctx, root)
	if err != nil || lacks == "" {
		return err
	}
	if home, err := os.UserHomeDir(); err == nil && root == home || root == filepath.Dir(root) {
		return usage(fmt.Errorf("%s is not a project, and has no git repository: work in a folder of its own", root))
	}
	if !yes && !a.yes(fmt.Sprintf("Agents work in clones of your commits, and %s lacks %s.\n"+
		"Make it, and commit this folder without ignored files? [Y/n] ", root, lacks), true) {
		return usage(fmt.Errorf("%s lacks %s, and agents work in clones of your last commit: "+
			"`ralph init --git` makes it, with a commit of this folder", root, lacks))
	}
	commit, err := worktree.Begin(ctx, root, project.Ignored(root))
	if err == nil && !a.json {
		fmt.Fprintf(a.out, "%-11s %s, with this folder as %s\n", "made", lacks, ralph.ShortID(commit))
	}
	return err
}

// yes asks the person at the terminal; usual is the answer to an empty line. Without a terminal, the answer is no.
func (a *app) yes(question string, usual bool) bool {
	if a.json || !term.Is(a.in) {
		return false
	}
	fmt.Fprint(a.err, question)
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil {
		return false
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "":
		return usual
	case "y", "yes":
		return true
	}
	return false
}

// offerCommit commits a new ralph.yaml if the person at the terminal agrees, because agents do not see uncommitted
// files. Without a terminal, it prints the command.
func (a *app) offerCommit(ctx context.Context, root string) {
	const message = "Add ralph.yaml"
	commit, err := "", error(nil)
	if a.yes("Commit ralph.yaml? Agents do not see uncommitted files. [Y/n] ", true) {
		commit, err = worktree.Commit(ctx, root, state.ConfigName, message)
	}
	switch {
	case err != nil:
		fmt.Fprintf(a.out, "%-11s %s: %s\n", "uncommitted", state.ConfigName, text.Line(err.Error(), 300))
	case commit != "":
		fmt.Fprintf(a.out, "%-11s %s as %s\n", "committed", state.ConfigName, ralph.ShortID(commit))
	default:
		fmt.Fprintf(a.out, "%-11s git add %[2]s && git commit -m %[3]q %[2]s\n", "to commit", state.ConfigName, message)
	}
}

// A setup holds the results of `ralph init`: the files it wrote and the project it found.
type setup struct {
	path, text     string // path and text of the configuration
	written, added bool   // all of the file, or only its checks
	use            string // the agent
	installed      []string
	found, others  []project.Likely
}

func (a *app) init(ctx context.Context, root string, noCheck, own bool, verify []string, use string) error {
	s, err := a.configure(ctx, root, own, verify, use)
	if err != nil {
		return err
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
	out := doctor.Initialised{
		Config: s.path, Written: s.written, Added: s.added, Git: p.Git, Common: p.Common, State: p.State,
		Verify: p.Config.Verify.Commands, Checks: []ralph.Check{},
		Looked: slices.Concat(doctor.Agent(ctx, p), doctor.Commits(ctx, p), doctor.Confinement(ctx, p), doctor.Hooks(ctx, p),
			doctor.Signing(ctx, p)),
	}
	if s.written {
		out.Agent, out.Agents = s.use, s.installed
	}
	if !own {
		out.Part = p.Part()
	}
	for _, l := range s.found {
		out.From = append(out.From, l.File)
		if out.Missing == "" {
			out.Missing = project.MissingProgram(ctx, l.Command)
		}
	}
	for _, l := range s.others {
		out.Others = append(out.Others, fmt.Sprintf("`%s` (%s)", l.Command, l.File))
	}
	if !a.json {
		out.SayFound(a.out)
	}
	if !noCheck && len(out.Verify) > 0 {
		if err := a.check(ctx, p, db, &out, s.written || s.added && !section(s.text, "workspace")); err != nil {
			return err
		}
	}
	if !a.json {
		out.SayWorkspace(a.out)
		if err := a.offerForge(ctx, p, s.path); err != nil {
			return err
		}
	}
	if s.written && !a.json {
		a.offerCommit(ctx, root)
	}
	err = a.print(out, func(w io.Writer) { out.SayNext(w, noCheck) })
	if !out.Ready() {
		err = errors.Join(err, &ralph.ExitError{Status: ralph.ExitFailure})
	}
	return err
}

// offerForge asks the person at the terminal whether issues should become tasks, if the project has a remote on a forge
// and a token for it. Without a yes it changes nothing.
func (a *app) offerForge(ctx context.Context, p *project.Project, path string) error {
	if !term.Is(a.in) || p.Forges() {
		return nil
	}
	at, from, asked, ok := p.FoundForge(ctx)
	if !ok || !a.yes(fmt.Sprintf("The remote is %s, and there is a token for it (%s).\n"+
		"Make tasks of issues with the label `ralph`, and post their progress there? [y/N] ", at, from), false) {
		return nil
	}
	keys := "\nforge:\n  label: ralph # issues with this label become tasks\n"
	if asked {
		keys += "  kind: " + at.Kind + "\n"
	}
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(b, keys...), 0o644)
	}
	if err != nil {
		return fmt.Errorf("add forge.label: %w", err)
	}
	fmt.Fprintf(a.out, "%-11s forge.label: ralph in %s\n", "added", filepath.Base(path))
	return nil
}

// configure writes the configuration of a project, or adds missing checks to it.
func (a *app) configure(
	ctx context.Context, root string, own bool, verify []string, use string,
) (s setup, err error) {
	s.path, s.use = filepath.Join(root, state.ConfigName), use
	if s.text, s.written, err = configured(s.path); err != nil {
		return s, err
	}
	again := state.Prepare(ctx, root, own, a.environ)
	lacks := !s.written && !section(s.text, "verify")
	if again != nil && !errors.Is(again, state.ErrProject) {
		return s, again
	}
	if !s.written && use != "" {
		return s, usage(fmt.Errorf("%s exists already: set agent.use in it, and name the agent below agents", s.path))
	}
	if s.installed, err = present(&s.use); err != nil {
		return s, err
	}
	if !s.written && !lacks && len(verify) > 0 {
		return s, usage(fmt.Errorf("%s exists already: set verify in it", s.path))
	}
	if !s.written && len(verify) == 0 && (again == nil || !lacks) {
		return s, nil // the existing configuration
	}
	commands := verify
	if len(verify) == 0 {
		s.found, s.others = project.LikelyChecks(root)
	}
	var reports []string
	for _, l := range s.found {
		commands, reports = append(commands, l.Command), append(reports, l.JUnit...)
	}
	switch {
	case s.written:
		s.text = string(config.Starter(s.use, commands, reports...))
	case len(commands) == 0:
		return s, nil // printed
	default:
		s.text, s.added = s.text+"\n"+config.StarterVerify(commands, reports...), true
	}
	if err := os.WriteFile(s.path, []byte(s.text), 0o644); err != nil {
		return s, fmt.Errorf("write %s: %w", s.path, err)
	}
	for _, l := range s.found {
		if err := l.MakeRoom(root); err != nil {
			return s, err
		}
	}
	return s, nil
}

// check runs the checks of a new project; with try, in a workspace.
func (a *app) check(
	ctx context.Context, p *project.Project, db *store.DB, out *doctor.Initialised, try bool,
) (err error) {
	if out.Setup = p.Config.Workspace.Setup; try {
		if err := out.Find(ctx, p); err != nil {
			return err
		}
	}
	if !a.json && term.Is(a.out) {
		out.Say(a.out, "trying", "these in a clone of your last commit; that may take minutes")
	}
	if err := out.Try(ctx, p, db); err != nil {
		return err
	}
	if out.Failed != "" && !a.json {
		out.Say(a.out, "!", "%s", out.Failed)
	}
	for i := 0; i < len(out.Checks) && !a.json; i++ {
		out.Say(a.out, "ran", "%s", words.Check(out.Checks[i], words.TailLines))
	}
	return nil
}

// present lists the agents whose programs are in PATH. Unless use is set, it sets use to a working one: claude if
// present, else the first.
func present(use *string) (names []string, err error) {
	for _, p := range kinds.Present(func(program string) bool { _, err := exec.LookPath(program); return err == nil }) {
		names = append(names, p.Name)
	}
	if *use != "" {
		_, err := kinds.ProfileOf(*use, config.NamedAgent{})
		if err != nil {
			err = usage(fmt.Errorf("--agent %s: %w", *use, err))
		}
		return names, err
	}
	if *use = ralph.DefaultAgent; len(names) > 0 && !slices.Contains(names, *use) {
		*use = names[0]
	}
	return names, nil
}

// configured returns the text of a configuration; none is true if it does not exist yet.
func configured(path string) (text string, none bool, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", true, nil
	}
	return string(b), false, err
}

// section reports whether a configuration has a section.
func section(text, name string) bool { return strings.Contains("\n"+text, "\n"+name+":") }
