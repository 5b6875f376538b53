// Package demo demonstrates ralph on its own small project, with a scripted agent or a real one.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/state"
)

// A demo demonstrates ralph on its own small project. It uses only ralph's commands, in
// separate processes.
type demo struct {
	self    string // this program
	home    string // folder of the project and of the script
	dir     string // the project
	agent   string // the agent: Scripted, or one that costs money
	environ []string
	out     io.Writer
	err     io.Writer
}

// Scripted is the agent that costs nothing.
const Scripted = "scripted"

// Run runs the demo in a new directory, or in dir, which is kept, with an agent: [Scripted], claude
// or codex.
func Run(ctx context.Context, agent, dir string, keep bool, environ []string, out, stderr io.Writer) (err error) {
	d, done, err := begin(agent, "calc", dir, keep || agent != Scripted, environ, out, stderr)
	if err != nil {
		return err
	}
	defer func() { err = done(err) }()
	if err := d.setUp(ctx); err != nil {
		return err
	}
	if err := d.play(ctx); err != nil {
		return err
	}
	return d.summarize(ctx)
}

// begin creates the folder of a demo with a project of that name. done removes it, unless it should
// be kept.
func begin(
	agent, name, dir string, keep bool, environ []string, out, stderr io.Writer,
) (d *demo, done func(error) error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	home, err := makeHome(dir)
	if err != nil {
		return nil, nil, err
	}
	d = &demo{
		self: self, home: home, dir: filepath.Join(home, name), agent: agent,
		environ: append(plain(environ), "XDG_STATE_HOME="+filepath.Join(home, "state")), out: out, err: stderr,
	}
	return d, func(err error) error {
		if keep || dir != "" || err != nil {
			fmt.Fprintf(out, "\nThe project is kept in %s: look at it with\n  XDG_STATE_HOME=%s ralph -C %s task list\n",
				d.dir, filepath.Join(home, "state"), d.dir)
			return err
		}
		return os.RemoveAll(home)
	}, nil
}

// makeHome creates the directory of the demo.
func makeHome(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "ralph-demo-")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = ralph.Usage(fmt.Errorf("%s is not empty: name a new directory", dir))
	}
	return dir, err
}

// plain returns the environment without variables that redirect git or ralph.
func plain(environ []string) []string {
	elsewhere := []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"}
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(name, "RALPH_") || slices.Contains(elsewhere, name)
	})
}

// setUp creates the project and fills the queue.
func (d *demo) setUp(ctx context.Context) error {
	d.title("A project with a calculator, its test, and five tasks")
	texts := map[string]string{filepath.Join(d.dir, state.ConfigName): configuration(d, "sh test.sh", 10)}
	for name, path := range map[string]string{
		"calc.sh": filepath.Join(d.dir, "calc.sh"), "test.sh": filepath.Join(d.dir, "test.sh"), "agent.script": d.script(),
	} {
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		texts[path] = string(text)
	}
	if err := errors.Join(d.write(texts), d.commit(ctx, "A calculator that can add")); err != nil {
		return err
	}
	for _, t := range tasks {
		if err := d.show(ctx, append([]string{"task", "add", t.title}, t.args...)...); err != nil {
			return err
		}
	}
	return nil
}

// write writes files, each with its folder.
func (d *demo) write(files map[string]string) error {
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// commit makes the project's repository and its first commit.
func (d *demo) commit(ctx context.Context, message string) error {
	for _, args := range [][]string{
		{"init", "-q"},
		{"config", "user.name", "Ralph's demo"},
		{"config", "user.email", "demo@localhost"},
		{"config", "commit.gpgsign", "false"},
		{"add", "-A"},
		{"commit", "-q", "-m", message},
	} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir, cmd.Env = d.dir, d.environ
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(output)))
		}
	}
	return nil
}

func (d *demo) script() string { return filepath.Join(d.home, "agent", "agent.script") }

// play runs the queue, answers the questions, and runs it again.
func (d *demo) play(ctx context.Context) error {
	d.title("The first run, as if you slept")
	if err := d.run(ctx); err != nil {
		return err
	}
	d.title("The morning: what waits for you?")
	if err := d.show(ctx, "inbox"); err != nil {
		return err
	}
	questions, err := d.questions(ctx)
	if err != nil || len(questions) == 0 {
		return err
	}
	for _, id := range questions {
		if err := d.show(ctx, "answer", id, answer); err != nil {
			return err
		}
	}
	d.title("The second run, with your answer")
	return d.run(ctx)
}

// run runs the queue. Failed or waiting tasks are not an error here.
func (d *demo) run(ctx context.Context) error {
	err := d.show(ctx, "run")
	var exit *exec.ExitError
	unfinished := []int{ralph.ExitFailed, ralph.ExitWaiting, ralph.ExitLimit}
	if errors.As(err, &exit) && slices.Contains(unfinished, exit.ExitCode()) {
		return nil
	}
	return err
}

// questions returns the comments with unanswered questions.
func (d *demo) questions(ctx context.Context) ([]string, error) {
	found, err := d.tasks(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, t := range found {
		var shown struct {
			Comments []struct {
				ID     int64      `json:"id"`
				Verb   ralph.Verb `json:"signal_verb"`
				Answer *string    `json:"signal_answered"`
			} `json:"comments"`
		}
		if err := d.read(ctx, &shown, "task", "show", fmt.Sprint(t.ID)); err != nil {
			return nil, err
		}
		for _, c := range shown.Comments {
			if c.Verb == ralph.VerbAsk && c.Answer == nil {
				ids = append(ids, fmt.Sprint(c.ID))
			}
		}
	}
	return ids, nil
}

// task is a task as printed by `ralph task list --json`.
type task struct {
	ID     int64  `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"`
	Reason string `json:"status_reason"`
}

func (d *demo) tasks(ctx context.Context) (list []task, err error) {
	return list, d.read(ctx, &list, "task", "list", "--all")
}

// summarize compares the results of the tasks with the expected ones.
func (d *demo) summarize(ctx context.Context) error {
	d.title("What happened")
	found, err := d.tasks(ctx)
	if err != nil {
		return err
	}
	var wrong []string
	for _, expected := range tasks {
		i := slices.IndexFunc(found, func(t task) bool { return t.Title == expected.title })
		if i < 0 {
			return fmt.Errorf("the task %q is gone", expected.title)
		}
		t := found[i]
		if d.agent != Scripted {
			fmt.Fprintf(d.out, "  %-10s %s\n", t.Status, t.Title)
			continue
		}
		fmt.Fprintf(d.out, "  %-10s  %-20s  %s\n", t.Status, t.Title, expected.story)
		if want := (ralph.Task{Status: expected.status}).Key(); t.Status != want {
			wrong = append(wrong, fmt.Sprintf("%q is %s (%s) and should be %s", t.Title, t.Status, t.Reason, want))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("the demo did not end as it should: %s", strings.Join(wrong, "; "))
	}
	if d.agent == Scripted {
		fmt.Fprintf(d.out, "\nThe agent was a script. The same with claude: ralph demo --agent claude\n")
	}
	return nil
}

func (d *demo) title(text string) { fmt.Fprintf(d.out, "\n== %s ==\n\n", text) }

// show runs a ralph command like a person, and prints it.
func (d *demo) show(ctx context.Context, args ...string) error {
	fmt.Fprintf(d.out, "$ ralph %s\n", strings.Join(quoted(args), " "))
	cmd := d.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = d.out, d.err
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("ralph %s: %w", args[0], err)
	}
	return nil
}

// read runs a ralph command and parses its JSON output.
func (d *demo) read(ctx context.Context, v any, args ...string) error {
	cmd := d.command(ctx, append(args, "--json")...)
	cmd.Stderr = d.err
	output, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(output, v)
	}
	if err != nil {
		return fmt.Errorf("ralph %s --json: %w", strings.Join(args, " "), err)
	}
	return nil
}

func (d *demo) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.self, append([]string{"-C", d.dir}, args...)...)
	// A terminal sends it Ctrl-C too; it ends by itself.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env = d.environ
	return cmd
}

// quoted quotes arguments for people to read.
func quoted(args []string) []string {
	var list []string
	for _, arg := range args {
		if arg == "" || strings.ContainsAny(arg, " \t\n\"'$*?;&|<>()[]\\`#~") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		list = append(list, arg)
	}
	return list
}
