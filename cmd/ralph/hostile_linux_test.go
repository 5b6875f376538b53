package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"ralph"
	"ralph/internal/sandbox"
)

// A hostile session leaves something in its workspace, or reaches for something, that has stopped ralph or its git,
// or got past them. It is one task of a run; the next one is honest, and is done as if nothing had been.
type hostile struct {
	id, name string
	script   string       // of the session's shell, besides what makes the task's file
	verify   string       // that its check runs besides
	mend     string       // of the shell, once its done is refused; "" where it is not refused, or not mended
	task     ralph.Status // afterwards
	sentence string       // that ralph prints
	lacks    bool         // the task's file is not merged
}

// bomb makes a tree t of two entries, each such a tree again.
const bomb = `t=$(printf '100644 blob %s\tx\n' $(printf x | git hash-object -w --stdin) | git mktree); ` +
	`for i in $(seq 24); do t=$(printf "040000 tree $t\ta\n040000 tree $t\tb\n" | git mktree); done`

const deep = `perl -e 'for (0..399) { mkdir "folder-$_"; chdir "folder-$_" } open F, ">x"'`

// hostiles are played in one run, in this order. Nobody may contact the address.
func hostiles(address string) []hostile {
	entry := func(name string) string { // makes a commit whose tree has it, which no git adds
		return `git add -A; git commit -qm a; t=$(perl -e 'print "40000 ` + name + `\0", pack("H*", shift)' $(git rev-parse HEAD:) | ` +
			`git hash-object -t tree -w --stdin --literally); git reset -q --soft $(git commit-tree -p HEAD -m evil $t)`
	}
	const object = "f=$(printf %s $f | sed 's,^..,.git/objects/&/,'); " // the file of the object f
	return []hostile{
		{
			id: "Q1a", name: "the program that the kernel runs at a crash, reached for", task: ralph.Completed, sentence: "done and verified",
			script: "if true 2>/dev/null >> /proc/sys/kernel/core_pattern; then rm $made; fi",
		},
		{
			id: "Q3a", name: "an encoding in which git cannot add a file", task: ralph.Completed, sentence: "made-Q3a.txt is not taken by git",
			script: "echo '*.txt working-tree-encoding=UTF-16' > .gitattributes", mend: "rm .gitattributes",
		},
		{
			id: "Q4a", name: "400 folders in each other, and it stays with that", task: ralph.Failed, sentence: "is deeper than 128 folders",
			script: deep, mend: "true", lacks: true,
		},
		{
			id: "Q4b", name: "400 folders in each other, made by the check", task: ralph.Completed, sentence: "done and verified",
			verify: "mkdir made.log && cd made.log && " + deep,
		},
		{
			id: "Q6a", name: "a named pipe for .gitignore", task: ralph.Completed, sentence: ".gitignore is a named pipe, which ralph has removed",
			script: "rm .gitignore; mkfifo .gitignore", mend: "git checkout -q .gitignore",
		},
		{
			id: "Q6b", name: "named pipes for .git/packed-refs and for an object", task: ralph.Completed, sentence: "done and verified",
			script: "rm -f .git/packed-refs; mkfifo .git/packed-refs; f=$(git hash-object -w $made); " + object + "rm -f $f; mkfifo $f",
		},
		{
			id: "Q7a", name: "a file of 40 GiB", task: ralph.Completed, sentence: "big.bin has 40.0 GiB, and 1.0 GiB are the most in one change",
			script: "truncate -s 40G big.bin", mend: "rm big.bin",
		},
		{
			id: "Q8a", name: "the transcript of another project, read and continued", task: ralph.Completed, sentence: "done and verified",
			script: "if cat ~/.claude/projects/-other/a.jsonl 2>/dev/null || echo x 2>/dev/null >> ~/.claude/projects/-other/a.jsonl; then rm $made; fi",
			verify: "! cat ~/.claude/projects/-other/a.jsonl",
		},
		{
			id: "Q9a", name: "a submodule at an address of the session's own, without a network", task: ralph.Completed,
			sentence: "which nobody has committed before this session",
			script: "git init -q in; git -C in commit -q --allow-empty -m x; " +
				"git config -f .gitmodules submodule.in.path in; git config -f .gitmodules submodule.in.url " + address,
			mend: "rm -rf in .gitmodules; git rm -rq --cached --ignore-unmatch in .gitmodules",
		},
		{
			id: "Q10a", name: "the repository removed", task: ralph.Completed, sentence: ".git was removed",
			script: "rm -rf .git", mend: "true",
		},
		{
			id: "Q10b", name: "an object of its commit damaged", task: ralph.Completed, sentence: ".git has something that git refuses",
			script: "echo y > old; git add old; git commit -qm a; f=$(git rev-parse :old); git rm -q old; git commit -qm b; " + object +
				"chmod u+w $f; echo x > $f", mend: "true",
		},
		{
			id: "Q10c", name: "a commit whose tree has an entry .git", task: ralph.Completed, sentence: ".git has something that git refuses",
			script: entry(".git"), mend: "true",
		},
		{
			id: "Q10d", name: "a commit whose tree has an entry ..", task: ralph.Completed, sentence: ".git has something that git refuses",
			script: entry(".."), mend: "true",
		},
		{
			id: "Q13a", name: "a .gitmodules that names a program", task: ralph.Completed, sentence: ".gitmodules is not taken by git (gitmodulesUpdate: disallowed submodule update setting: !true): mend",
			script: `printf '[submodule "in"]\npath=in\nurl=./in\nupdate=!true\n' > .gitmodules`, mend: "rm .gitmodules",
		},
		{
			id: "Q13b", name: "a folder in the place of .gitmodules", task: ralph.Completed, sentence: ".gitmodules is not taken by git (gitmodulesBlob: ",
			script: "mkdir .gitmodules; echo x > .gitmodules/x; git add -A; git commit -qm a", mend: "rm -r .gitmodules",
		},
		{
			id: "Q13c", name: "a .gitmodules with a mistake, beside a repository", task: ralph.Completed,
			sentence: "a commit of a repository of its own that has no remote",
			script:   "git init -q in; git -C in commit -q --allow-empty -m x; echo '[x' > .gitmodules",
			mend:     "rm -rf in .gitmodules; git rm -rq --cached --ignore-unmatch in .gitmodules",
		},
		{
			id: "Q14a", name: "a repository among the files, with a program in its settings", task: ralph.NeedsInput,
			sentence: "waits for approval of guarded files (repo/HEAD, repo/config)", lacks: true,
			script: "mkdir -p repo/objects repo/refs; echo ref: refs/heads/m > repo/HEAD; touch repo/objects/x repo/refs/x; " +
				`printf '[core]\nbare=false\nworktree=.\nfsmonitor=touch evil\n' > repo/config`,
		},
		{
			id: "P7a", name: "a person's file, read by its absolute path in the check", task: ralph.Completed, sentence: "done and verified",
			verify: "! cat \"$RALPH_ROOT/ralph.yaml\"",
		},
		{
			id: "P7b", name: "a link to a person's file", task: ralph.Completed, sentence: "by a relative path",
			script: `ln -s "$RALPH_ROOT/ralph.yaml" link.yaml`, mend: "rm link.yaml",
		},
		{
			id: "P8a", name: "a commit of 2^24 files in 2 KB of trees", task: ralph.Completed, sentence: "has a commit of more than 1000000 files and folders",
			script: "git add -A; git commit -qm a; " + bomb + "; git update-ref HEAD $(git commit-tree -p HEAD -m b $t)", mend: "true",
		},
		{
			id: "P8b", name: "the same before a commit of few files", task: ralph.Completed, sentence: "done and verified",
			script: "git add -A; git commit -qm a; " + bomb +
				"; git update-ref HEAD $(git commit-tree -p $(git commit-tree -p HEAD -m b $t) -m c HEAD^{tree})",
		},
		{
			id: "P8c", name: "200,000 branches, and a pair of refs in a circle", task: ralph.Completed, sentence: "done and verified",
			script: `perl -e '$h = shift; print "# pack-refs with: peeled fully-peeled sorted \n"; ` +
				`printf "$h refs/heads/b%06d\n", $_ for 1..200000' $(git rev-parse HEAD) > packed.log; mv packed.log .git/packed-refs; ` +
				`echo ref: refs/heads/two > .git/refs/heads/one; echo ref: refs/heads/one > .git/refs/heads/two`,
		},
		{
			id: "P9a", name: "100 MB of output of the check", task: ralph.Completed, sentence: "done and verified",
			verify: "yes 0123456789 | head -c 100000000",
		},
		{
			id: "P9b", name: "100 MB of files of the check, and it stays with that", task: ralph.Failed, lacks: true,
			sentence: "its files grew beyond workspace.max_size", mend: "true",
			verify: "head -c 100000000 /dev/zero > big.log && sleep 1000",
		},
		{
			id: "P9c", name: "100 MB of temporary files of the check", task: ralph.Failed, lacks: true,
			sentence: "its files grew beyond workspace.max_size", mend: "true",
			verify: "head -c 100000000 /dev/zero > ${TMPDIR:-/tmp}/big && sleep 1000",
		},
		{
			id: "P10a", name: "a key for the next session in the kernel's keyring", task: ralph.Completed, sentence: "done and verified",
			script: `if perl -e 'exit(syscall(250, 0, -3, 0) >= 0 ? 0 : 1)'; then rm $made; fi`,
			verify: `! perl -e 'exit(syscall(250, 0, -3, 0) >= 0 ? 0 : 1)'`,
		},
		{
			id: "P15a", name: "a person's ignored file with a secret, and their credentials", task: ralph.Completed, sentence: "done and verified",
			script: `if cat "$RALPH_ROOT/secret.env" ~/.npmrc ~/.m2/settings.xml ~/.cargo/credentials.toml ~/.cache/huggingface/* | grep .; ` +
				`then rm $made; fi 2>/dev/null; true`,
			verify: `! cat "$RALPH_ROOT/secret.env" "$RALPH_ROOT"/../.npmrc "$RALPH_ROOT"/../.m2/settings.xml | grep .`,
		},
		{
			id: "Q11a", name: "steering files in other letters", task: ralph.NeedsInput,
			sentence: "waits for approval of guarded files (.Claude/settings.json, AGENTS.MD, Claude.md)", lacks: true,
			script: "mkdir .Claude; echo '{}' > .Claude/settings.json; echo x > Claude.md; echo x > AGENTS.MD",
		},
	}
}

// unheld are the attacks of root that no sandbox stops, which ralph names if there is none.
var unheld = hostile{
	id: "Q12a", name: "`sandbox: off` as root", task: ralph.Completed,
	sentence: "sandbox: none (sandbox: off) (you are root: nothing is kept from agents, ralph's own tokens included)",
}

// TestHostileWorkspaces plays sessions that harm their workspace or reach out of it. Each task ends as its row says, and
// the next task of the same run is done as if nothing had happened.
func TestHostileWorkspaces(t *testing.T) {
	long(t)
	t.Parallel()
	user := environments[0] // without privileges
	userInLandlock := user
	userInLandlock.bare, userInLandlock.want = true, sandbox.Landlock
	user.want = sandbox.Bubblewrap
	for _, kind := range []struct {
		name string
		environment
		all bool // sessions; else those that a sandbox stops or whose files it places, and all by make storm
	}{
		{"as root", environment{want: sandbox.Bubblewrap}, true},
		{"as root, with Landlock", environment{bare: true, want: sandbox.Landlock}, false},
		{"as a user", user, false},
		{"as a user, with Landlock", userInLandlock, false},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			all := hostiles(noAnswer(t))
			if !kind.all && testNumber(t, "RALPH_TEST_STORM", 0) == 0 {
				all = slices.DeleteFunc(all, func(h hostile) bool {
					return !slices.Contains([]string{"Q1a", "Q6a", "Q8a", "Q9a", "P7a", "P7b", "P9c", "P10a", "P15a"}, h.id)
				})
			}
			kind.playHostiles(t, "{network: false}", all...)
		})
	}
	t.Run("as root without a sandbox", func(t *testing.T) {
		t.Parallel()
		environment{want: sandbox.None}.playHostiles(t, "off", unheld)
	})
}

// noAnswer listens at an address, at which nobody may ask.
func noAnswer(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		if n := asked.Load(); n > 0 {
			t.Errorf("an address that a session has chosen was asked %d times", n)
		}
		_ = listener.Close()
	})
	return "http://" + listener.Addr().String() + "/secret"
}

// playHostiles plays all of them in one run, one after the other, with an honest task after each. Every session first
// looks for traces of the one before.
func (e environment) playHostiles(t *testing.T, mode string, all ...hostile) {
	const clean = "test -z \"$(git status --porcelain)\" && git log -1 >/dev/null"
	var tasks []hostile
	for _, h := range all {
		tasks = append(tasks, h, hostile{id: "after-" + h.id, name: "an honest session", task: ralph.Completed, sentence: "done and verified: made it"})
	}
	var script, queue strings.Builder
	for i, h := range tasks {
		made := "made-" + h.id + ".txt"
		fmt.Fprintf(&script, "task Make %s\nrun made=%s; %s && echo x > $made; %s\ndone {\"summary\": \"made it\"}\n",
			h.id, made, clean, cmp.Or(h.script, "true"))
		if h.mend != "" {
			fmt.Fprintf(&script, "turn\nrun %s\ndone {\"summary\": \"mended it\"}\nturn\ndone {\"summary\": \"made it\"}\n", h.mend)
		}
		line, err := json.Marshal(map[string]any{
			"ralph": "task", "id": strconv.Itoa(i + 1), "title": "Make " + h.id,
			"verify": []string{"test -f " + made + " && " + cmp.Or(h.verify, clean)},
		})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&queue, "%s\n", line)
	}
	dir, run := e.household(t, map[string]string{
		"queue.jsonl": queue.String(), ".claude/projects/-other/a.jsonl": "theirs", ".npmrc": "token", ".m2/settings.xml": "token",
		".cargo/credentials.toml": "token", ".cache/huggingface/token": "token", "project/secret.env": "secret",
		"project/ralph.yaml": "agent: {command: [ralph, scripted-agent]}\npermissions: {guards: false}\n#test: {retries: 1, refused: 1}\n" +
			"sandbox: " + mode + "\nworkspace: {max_size: 64}\n",
		"project/claude.script": script.String(), "project/.gitignore": "*.log\n*.env\n",
	})
	run("ralph", "import", "../queue.jsonl")
	said := run("sh", "-c", "ralph run; echo status $?")
	status := 0
	if slices.ContainsFunc(all, func(h hostile) bool { return h.task == ralph.Failed }) {
		status = 3
	}
	for _, want := range []string{" · sandbox: " + e.want, fmt.Sprintf("\nstatus %d\n", status)} {
		if !strings.Contains("\n"+said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
	list := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^TASK-(\d+) +(needs you|\S+) `).FindAllStringSubmatch(run("ralph", "task", "list", "--all"), -1) {
		list[m[1]] = m[2]
	}
	files := strings.Fields(run("git", "ls-tree", "-r", "--name-only", "main"))
	var merged []string
	for i, h := range tasks {
		task := i + 1
		if got := h.told(said, task); !strings.Contains(got, h.sentence) {
			t.Errorf("%s %s: want %q of it, and it says\n%s", h.id, h.name, h.sentence, got)
		}
		if got, want := list[strconv.Itoa(task)], (ralph.Task{Status: h.task}).Word(); got != want {
			t.Errorf("%s %s: it is %q, want %q", h.id, h.name, got, want)
		}
		if n := strings.Count(said, fmt.Sprintf("▶ TASK-%d ", task)); n != 1 {
			t.Errorf("%s %s: it had %d sessions", h.id, h.name, n)
		}
		if !h.lacks {
			merged = append(merged, "made-"+h.id+".txt")
		}
	}
	merged = append(merged, "ralph.yaml", "claude.script", ".gitignore")
	slices.Sort(merged)
	slices.Sort(files)
	if !slices.Equal(merged, files) {
		t.Errorf("main has\n%q, want\n%q\n%s", files, merged, said)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "../.claude/projects/-other/a.jsonl")); err != nil || string(text) != "theirs" {
		t.Errorf("the other project's transcript is %q, %v", text, err)
	}
}

// told has a run's output about a task, and about all of them before the first one.
func (hostile) told(said string, task int) string {
	var b strings.Builder
	of := ""
	for line := range strings.Lines(said) {
		if line == "\n" { // receipts follow
			break
		}
		if m := ofTask.FindStringSubmatch(line); m != nil {
			of = m[1]
		}
		if of == "" || of == strconv.Itoa(task) {
			b.WriteString(line)
		}
	}
	return b.String()
}

var ofTask = regexp.MustCompile(`^\S+ +\S TASK-(\d+) `)
