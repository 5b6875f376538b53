package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ralph/internal/sandbox"
)

// An environment is a place in which ralph runs.
type environment struct {
	name   string
	prefix []string // of its command line
	user   bool     // as somebody without privileges
	bare   bool     // bubblewrap is not installed
	want   string   // the sandbox that is taken; "" for the best that the machine has
}

// environments are the environments that need a sandbox.
var environments = []environment{
	{name: "an unprivileged user", user: true, prefix: []string{"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"}},
	{name: "root without user namespaces", want: sandbox.Landlock, prefix: []string{
		"unshare", "--user", "--map-root-user", "sh", "-c",
		`echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --no-new-privs "$@"`, "sh",
	}},
	{name: "without bubblewrap", want: sandbox.Landlock, bare: true},
}

// household makes a project in a separate home of the environment's user, and returns a function that runs a command
// there.
func (e environment) household(t *testing.T, files map[string]string) (dir string, run func(args ...string) string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("skipped: only root can be another user, or one without user namespaces")
	}
	if err := exec.CommandContext(t.Context(), "env", append(e.prefix, "true")...).Run(); err != nil {
		t.Skip("skipped: it cannot be had here: ", err)
	}
	top, err := os.MkdirTemp("", "environment-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	home := filepath.Join(top, "home")
	dir = filepath.Join(home, "project")
	self, err := os.ReadFile("/proc/self/exe")
	err = errors.Join(err, os.MkdirAll(filepath.Join(top, "bin"), 0o755), os.Chmod(top, 0o755),
		os.WriteFile(filepath.Join(top, "bin", "ralph"), self, 0o755))
	for name, text := range files {
		path := filepath.Join(home, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	}
	path := os.Getenv("PATH")
	if e.bare { // all programs but one
		for _, folder := range filepath.SplitList(path) {
			programs, rerr := os.ReadDir(folder)
			if errors.Is(rerr, fs.ErrNotExist) {
				continue
			}
			err = errors.Join(err, rerr)
			for _, p := range programs {
				if p.Name() != "bwrap" {
					_ = os.Symlink(filepath.Join(folder, p.Name()), filepath.Join(top, "bin", p.Name())) // the first one counts
				}
			}
		}
		path = ""
	}
	if e.user {
		err = errors.Join(err, filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chown(path, 65534, 65534))
		}))
	}
	if err != nil {
		t.Fatal(err)
	}
	run = func(args ...string) string {
		t.Helper()
		args = append(append([]string{}, e.prefix...), args...)
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = []string{
			"PATH=" + strings.TrimSuffix(filepath.Join(top, "bin")+":"+path, ":"), "HOME=" + home, "SECRET=hunter2hunter2",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("git", "init", "-q", "-b", "main")
	run("git", "add", "-A")
	run("git", "commit", "-qm", "first")
	return dir, run
}

// tries has a session in a workspace try things out of its reach, in a file.
const tries = `for it in 'cat $PWD/../../../ralph.db' 'cat ~/.ssh/id' 'cat $PWD/../../2/tree/theirs' 'ls $PWD/../../../sessions' 'echo x > ~/new'` +
	` 'echo x > ~/project/new' 'echo x > ~/.bashrc' 'echo x > $PWD/../../2/tree/new' 'echo x >> $PWD/../../../ralph.db' 'rm ~/.ssh/id'` +
	` 'touch /usr/new' 'cat ~/.claude/projects/-other/*' 'echo x >> ~/.claude/projects/-other/a.jsonl' 'true >> /proc/sys/kernel/core_pattern'` +
	` 'echo x > ~/.claude/projects/new'; do if sh -c "$it" >/dev/null 2>&1; then echo "did $it"; else echo refused; fi; done > made.txt` +
	`; own=~/.claude/projects/$(pwd -P | tr -c 'A-Za-z0-9\n' -); echo x > $own/a.jsonl && cat $own/a.jsonl >> made.txt`

// TestOutOfReach: in each environment a sandbox is taken, and a session reads neither the
// database, nor another workspace, nor people's keys, and writes nothing elsewhere.
func TestOutOfReach(t *testing.T) {
	long(t)
	t.Parallel()
	for _, e := range environments {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			dir, run := e.household(t, map[string]string{
				".ssh/id": "private", ".bashrc": "", ".claude/projects/-other/a.jsonl": "theirs",
				"project/ralph.yaml": "agent: {command: [ralph, scripted-agent]}\npermissions: {guards: false}\n",
				"project/claude.script": "task Again\nrun date +%N > again.txt; mkdir -p kept/in; touch kept/in/x; chmod 500 kept/in kept\ndone {\"summary\": \"tried\"}\n" +
					"task *\nrun " + tries + "\ndone {\"summary\": \"tried\"}\n",
			})
			want := e.want
			if want == "" {
				path := os.Getenv("PATH")
				want = sandbox.Find(t.Context(), path, sandbox.Policy{Network: true, Paths: map[string]sandbox.Access{"/": sandbox.ReadOnly}}).Name
			}
			run("ralph", "task", "add", "Try", "--verify", "test -f made.txt && ! cat ~/.ssh/id && ! cat ~/.claude/projects/-other/* && touch ~/new")
			run("sh", "-c", "mkdir -p ~/.local/state/ralph/*/workspaces/2/tree && echo theirs > ~/.local/state/ralph/*/workspaces/2/tree/theirs")
			said := run("ralph", "run")
			if !regexp.MustCompile(" · sandbox: "+want).MatchString(said) || !strings.Contains(said, "TASK-1 merged into main") {
				t.Fatalf("want the sandbox %s:\n%s", want, said)
			}
			text, err := os.ReadFile(filepath.Join(dir, "made.txt"))
			if err != nil || string(text) != strings.Repeat("refused\n", 15)+"x\n" {
				t.Errorf("it says %s, %v", text, err)
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "new")); err == nil {
				t.Error("a check has written to people's home")
			}
			// Read-only files of a session do not spoil its workspace for the next one.
			run("ralph", "task", "add", "Again")
			run("ralph", "task", "add", "Again")
			if said := run("ralph", "run"); !strings.Contains(said, "TASK-2 merged into main") || !strings.Contains(said, "TASK-3 merged into main") {
				t.Error(said)
			}
		})
	}
}

// TestTheRunIsClosedToOthers of its user's programs, where no sandbox is: they read neither its environment nor its
// memory, and so not those of its supervisors.
func TestTheRunIsClosedToOthers(t *testing.T) {
	t.Parallel()
	_, run := environments[0].household(t, map[string]string{
		"project/ralph.yaml":    "agent: {command: [ralph, scripted-agent]}\nsandbox: 'off'\n",
		"project/claude.script": "task *\nrun echo x > made.txt\ndone {\"summary\": \"made it\"}\n",
	})
	run("ralph", "task", "add", "Try", "--verify", "closed() { ! cat /proc/$1/environ && ! cat /proc/$1/mem; }; closed $PPID && "+
		"p=$(cut -d' ' -f4 /proc/$PPID/stat) && grep -q on-red /proc/$p/cmdline && closed $p && test -f made.txt")
	if said := run("ralph", "run", "--on-red", "go"); !strings.Contains(said, "TASK-1 merging: done and verified") {
		t.Error(said)
	}
}

// TestRequiredWithoutBubblewrap: Landlock is enough for `require` if the kernel's refuses sockets. Otherwise the run
// does not begin, and names the reason and the remedy.
func TestRequiredWithoutBubblewrap(t *testing.T) {
	t.Parallel()
	bare := environments[len(environments)-1]
	_, run := bare.household(t, map[string]string{
		"project/ralph.yaml":    "agent: {command: [ralph, scripted-agent]}\nsandbox: require\n",
		"project/claude.script": "task *\nrun echo x > made.txt\ndone {\"summary\": \"made it\"}\n",
	})
	run("ralph", "task", "add", "Try", "--verify", "test -f made.txt")
	m := sandbox.Find(t.Context(), "", sandbox.Policy{})
	want := []string{"bwrap is not installed: install bubblewrap", "set sandbox: auto, which takes the best there is (" + m.Name + ")", "status 2"}
	if m.RefusesSockets() {
		want = []string{"sandbox: Landlock", "TASK-1 merged into main", "status 0"}
	}
	said := run("sh", "-c", "ralph run; echo status $?")
	for _, w := range want {
		if !strings.Contains(said, w) {
			t.Errorf("it lacks %q:\n%s", w, said)
		}
	}
}
