package forge

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nightScript is the agent of the night: a session of a task follows its issue and its reviews.
const nightScript = `task Alpha
when these checks failed
  write alpha.txt "right\n"
  done {"summary": "mended"}
task Alpha
  write alpha.txt "wrong\n"
  done {"summary": "made alpha"}
task Beta
when use a better word
  write beta.txt "better\n"
  done {"summary": "a better word"}
task Beta
  write beta.txt "word\n"
  done {"summary": "made beta"}
task Gamma
when conflicts with its base
  write shared.txt "theirs and ours\n"
  done {"summary": "both"}
task Gamma
  write shared.txt "ours\n"
  done {"summary": "made gamma"}
task Delta
  write delta.txt "delta\n"
  done {"summary": "made delta"}
task Colour
when ANSWER
  write colour.txt "blue\n"
  done {"summary": "painted"}
task Colour
  call ask {"question": "Which colour?", "options": ["red", "blue"], "blocking": true}
  call partial {"summary": "looked", "remaining": "paint"}
task Size
when ANSWER
  write size.txt "large\n"
  done {"summary": "sized"}
task Size
  call ask {"question": "Which size?", "blocking": true}
  call partial {"summary": "looked", "remaining": "size"}
task Workflow
  run mkdir -p .github/workflows; echo "on: push" > .github/workflows/ci.yml
  done {"summary": "a workflow"}
task Hook
when not like this
  run rm -rf .github
  write hook.txt "hook\n"
  done {"summary": "without a workflow"}
task Hook
  run mkdir -p .github/workflows; echo "on: push" > .github/workflows/hook.yml
  done {"summary": "a hook"}
task Fails
  say nothing
  stuck {"blocker": "it cannot be done", "tried": "all"}
task Theirs
  write theirs.txt "theirs\n"
  done {"summary": "as the stranger asked"}
`

// A site is a forge on which people work beside ralph, with the repository boss/app.
type site interface {
	// at returns the kind, the address and boss's token.
	at() (kind, url, token string)
	newIssue(as, title string) (number int64)
	setLabel(as string, issue int64) // ralph
	shut(as string, issue int64)
	comment(as string, issue int64, body string)
	commentPull(as string, pull int64, body string)
	redden(pull int64, log string) // its check ci fails
	object(as string, pull int64, body, file, remark string)
	commit(as string, pull int64, file, content string) // to its branch; to main if it is 0
	mergePull(as string, pull int64, style string)
	halt()
	resume()
	seen(issue int64) seenIssue
	pulls() []seenPull
}

// A seenIssue is an issue as people see it.
type seenIssue struct {
	labels, comments []string
	closed           bool
}

// A seenPull is a pull request as people see it.
type seenPull struct {
	number         int64
	title          string
	closed, merged bool
	comments       []string
}

// A realNight is a project that ralph works on, beside a forge.
type realNight struct {
	site
	t        *testing.T
	dir, bin string
	home     string
	env      []string
	out      string           // of ralph's last command
	remote   string           // the address of the repository, with the token
	numbers  map[string]int64 // of issues, by title
}

// ralph runs a command until it ends, or kills it after a while (0 is never).
func (n *realNight) ralph(kill time.Duration, args ...string) (ok bool) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(n.bin, "ralph"), args...)
	cmd.Dir, cmd.Env = n.dir, n.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if kill > 0 {
		timer := time.AfterFunc(kill, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		defer timer.Stop()
	}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		n.t.Fatalf("ralph %q does not end: %s", args, out)
	}
	n.out = string(out)
	n.t.Logf("ralph %q: %v\n%s", args, err, out)
	return err == nil
}

// sync has ralph read and post until that succeeds: the forge may limit requests and lose answers.
func (n *realNight) sync() {
	n.t.Helper()
	for range 10 {
		if n.ralph(0, "forge", "sync", "--once") {
			return
		}
		time.Sleep(time.Second) // the limit of a hub
	}
	n.t.Fatal("ralph cannot read the forge")
}

// pull returns the open pull request of an issue's task.
func (n *realNight) pull(title string) int64 {
	n.t.Helper()
	list := n.pulls()
	for _, p := range list {
		if !p.closed && strings.HasPrefix(p.title, title) {
			return p.number
		}
	}
	n.t.Fatalf("there is no pull request for %s among %+v", title, list)
	return 0
}

// newNight makes the project, as it is on the forge, and the binary of ralph.
func newNight(t *testing.T, on site) *realNight {
	n := &realNight{site: on, t: t, dir: t.TempDir(), bin: t.TempDir(), numbers: map[string]int64{}}
	kind, url, token := on.at()
	build := exec.Command("go", "build", "-o", filepath.Join(n.bin, "ralph"), "ralph/cmd/ralph")
	build.Env = append(os.Environ(), "CGO_CFLAGS=-O1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n.home = t.TempDir()
	n.env = []string{
		"HOME=" + n.home, "PATH=" + n.bin + ":" + os.Getenv("PATH"), "RALPH_FORGE_TOKEN=" + token, "LANG=C.UTF-8",
		"TMPDIR=" + os.TempDir(),
	}
	n.remote = strings.Replace(url, "http://", "http://boss:"+token+"@", 1) + "/boss/app.git"
	git(t, n.dir, "clone", "-q", n.remote, ".")
	git(t, n.dir, "remote", "set-url", "origin", url+"/boss/app.git")
	for name, text := range map[string]string{
		"ralph.yaml": "agent: {command: [ralph, scripted-agent]}\nverify: [\"sh check.sh\"]\npermissions: {guards: false}\n" +
			"sandbox: {mode: \"off\"}\nlimits: {attempts: 3}\nforge: {kind: " + kind + ", label: ralph}\nmerge: {mode: pr, max_open: 20}\n",
		"check.sh": "test ! -e bad\n", "claude.script": nightScript, ".gitignore": "claude.script.sessions\n",
		"shared.txt": "shared\n",
	} {
		if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, n.dir, "config", "user.name", "Boss")
	git(t, n.dir, "config", "user.email", "boss@example.test")
	git(t, n.dir, "add", "-A")
	git(t, n.dir, "commit", "-qm", "A project")
	git(t, n.dir, "push", "-q", n.remote, "HEAD:main")
	return n
}

// TestANight: twelve issues by three people, one without rights; red checks, requested changes, a conflict and a push by
// a person; two questions, an approval and a rejection; the forge away for a while, and ralph killed three times. In the
// end each issue and pull request says the truth, and nothing was posted twice.
func TestANight(t *testing.T) {
	if testing.Short() {
		t.Skip("a night lasts a minute")
	}
	t.Run("a real Gitea", func(t *testing.T) { newNight(t, &giteaSite{startGitea(t)}).passes() })
	for _, kind := range []string{GitHub, GitLab} {
		t.Run(kind, func(t *testing.T) {
			h := newHub(t, kind)
			h.lossy = true
			newNight(t, &hubSite{h}).passes()
			if len(h.unknown) > 0 {
				t.Errorf("unknown requests: %q", h.unknown)
			}
			t.Logf("%d requests", h.count)
		})
	}
}

// passes lets the night pass.
func (n *realNight) passes() {
	for _, i := range []struct{ as, title string }{
		{dev, "Alpha"},
		{dev, "Beta"},
		{boss, "Gamma"},
		{boss, "Delta"},
		{dev, "Colour"},
		{boss, "Size"},
		{dev, "Workflow"},
		{boss, "Hook"},
		{dev, "Fails"},
		{guest, "Theirs"},
		{guest, "Unwanted"},
		{dev, "Closed"},
	} {
		n.numbers[i.title] = n.newIssue(i.as, i.title)
		n.setLabel(map[bool]string{true: guest, false: dev}[i.title == "Unwanted"], n.numbers[i.title])
	}
	n.shut(dev, n.numbers["Closed"])
	n.comment(guest, n.numbers["Alpha"], "/cancel")

	n.ralph(4*time.Second, "run") // killed in the middle
	n.ralph(0, "run")
	n.halt() // the forge is away: the night goes on
	n.ralph(0, "forge", "sync", "--once")
	n.resume()
	n.comment(dev, n.numbers["Colour"], "/answer 2")
	n.comment(dev, n.numbers["Size"], "> **Question:** Which size?\n\n/answer large")
	n.comment(dev, n.numbers["Workflow"], "/approve")
	n.comment(boss, n.numbers["Hook"], "/reject not like this")
	n.ralph(3*time.Second, "run")
	n.ralph(0, "run")
	n.sync()

	// People look at the pull requests.
	alpha, beta, delta := n.pull("Alpha"), n.pull("Beta"), n.pull("Delta")
	n.redden(alpha, "alpha is wrong")
	n.commentPull(guest, alpha, "/cancel")
	n.object(dev, beta, "use a better word", "beta.txt", "this one")
	n.object(guest, beta, "evil", "beta.txt", "evil")
	n.commit(dev, 0, "shared.txt", "theirs\n")
	n.commit(dev, delta, "person.txt", "a\n")
	n.commentPull(dev, delta, "/nonsense")
	n.ralph(2*time.Second, "run")
	n.ralph(0, "run")
	n.ralph(0, "run")
	n.sync()

	if n.pull("Alpha") != alpha {
		n.t.Errorf("Alpha has another pull request")
	}
	for title, style := range map[string]string{
		"Alpha": "merge", "Beta": "squash", "Gamma": "merge", "Delta": "rebase", "Colour": "merge", "Size": "squash",
		"Workflow": "merge", "Hook": "merge", "Theirs": "rebase",
	} {
		n.mergePull(dev, n.pull(title), style)
	}
	for range 3 {
		n.sync()
	}
	n.truth()
}

// truth checks the state after the night.
func (n *realNight) truth() {
	t := n.t
	t.Helper()
	once := func(on string, comments []string) map[string]int {
		count := map[string]int{}
		for _, c := range comments {
			if of, ok := Marked(c); ok {
				if count[of]++; count[of] > 1 {
					t.Errorf("%s: %q was posted %d times", on, of, count[of])
				}
			}
		}
		return count
	}
	for title, want := range map[string]string{
		"Alpha": "ralph:done", "Beta": "ralph:done", "Gamma": "ralph:done", "Delta": "ralph:done", "Colour": "ralph:done",
		"Size": "ralph:done", "Workflow": "ralph:done", "Hook": "ralph:done", "Theirs": "ralph:done", "Fails": "ralph:failed",
		"Unwanted": "", "Closed": "",
	} {
		is := n.seen(n.numbers[title])
		labels := slices.DeleteFunc(is.labels, func(l string) bool { return !strings.HasPrefix(l, "ralph:") })
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("%s has the labels %q, want %q", title, got, want)
		}
		if is.closed != (want == "ralph:done" || title == "Closed") {
			t.Errorf("%s is closed: %v", title, is.closed)
		}
		count := once(title, is.comments)
		for _, c := range is.comments {
			if of, ok := Marked(c); ok && want == "ralph:done" && strings.HasSuffix(of, " status") && !strings.Contains(c, "· merged ·") {
				t.Errorf("%s: the status says %q", title, c)
			}
		}
		if want != "" && len(count) < 2 {
			t.Errorf("%s was told %v", title, count)
		}
	}
	var titles []string
	for _, p := range n.pulls() {
		titles = append(titles, p.title)
		if !p.merged {
			t.Errorf("the pull request %+v is not merged", p)
		}
		once(p.title, p.comments)
		if told := strings.Contains(strings.Join(p.comments, "\n"), "There is no command /nonsense"); told != (p.title == "Delta") {
			t.Errorf("the command on %s was answered: %v, %q", p.title, told, p.comments)
		}
	}
	if slices.Sort(titles); len(slices.Compact(titles)) != 9 || len(titles) != 9 {
		t.Errorf("the pull requests are %q", titles)
	}
	git(t, n.dir, "fetch", "-q", n.remote, "main")
	files := git(t, n.dir, "ls-tree", "-r", "--name-only", "FETCH_HEAD")
	for _, name := range []string{"alpha.txt", "beta.txt", "delta.txt", "person.txt", "colour.txt", "size.txt", "hook.txt", "theirs.txt"} {
		if !strings.Contains(files, name) {
			t.Errorf("main has no %s: %s", name, files)
		}
	}
	for name, want := range map[string]string{"alpha.txt": "right", "beta.txt": "better", "shared.txt": "theirs and ours"} {
		if got := git(t, n.dir, "show", "FETCH_HEAD:"+name); got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
	for b := range strings.Lines(git(t, n.dir, "ls-remote", "--heads", n.remote)) {
		if strings.Contains(b, "refs/heads/ralph/") {
			t.Errorf("a branch stays: %s", b)
		}
	}
}

// script writes the agent's script and ralph's configuration.
func (n *realNight) script(config, script string) {
	n.t.Helper()
	for name, text := range map[string]string{"ralph.yaml": config, "claude.script": script} {
		if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o600); err != nil {
			n.t.Fatal(err)
		}
	}
	git(n.t, n.dir, "add", "-A")
	git(n.t, n.dir, "-c", "user.name=B", "-c", "user.email=b@example.test", "commit", "-qm", "Configure")
	git(n.t, n.dir, "push", "-q", n.remote, "HEAD:main")
}

// TestRunWithPullRequests: after `ralph run --pr`, `ralph approve` of a held change opens its pull request, too. No task
// begins while merge.max_open wait. The branch and the workspace of a merged one go.
func TestRunWithPullRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds ralph")
	}
	h := newHub(t, GitHub)
	n := newNight(t, &hubSite{h})
	n.script("agent: {command: [ralph, scripted-agent]}\nverify: [\"sh check.sh\"]\npermissions: {guards: false}\n"+
		"sandbox: {mode: \"off\"}\nforge: {kind: github}\nmerge: {max_open: 2}\n", `task Flow
  run mkdir -p .github/workflows; echo "on: push" > .github/workflows/ci.yml
  done {"summary": "a workflow"}
task *
  run echo $RALPH_TASK_ID > $RALPH_TASK_ID.txt
  done {"summary": "made it"}
`)
	main := h.tip("main")
	for _, title := range []string{"Flow", "One", "Two", "Three"} {
		n.ralph(0, "task", "add", title)
	}
	if n.ralph(0, "run", "--pr"); !strings.Contains(n.out, "ended: no new task begins until one of 2 open pull requests is merged or closed (merge.max_open)") {
		t.Error("the run does not say why it ends")
	}
	if list := n.pulls(); len(list) != 2 {
		t.Fatalf("the pull requests are %+v", list)
	}
	for _, said := range []struct{ command, has string }{
		{"list --status in_review --json", `"status": "in_review"`},
		{"list", "TASK-2  in review"},
		{"show 2", "status       in review as pull request #"},
		{"status", "1 queued, 2 in review"},
		{"status --json", `"in_review": 2`},
		{"report", "in review as pull request #"},
	} {
		if n.ralph(0, strings.Fields(said.command)...); !strings.Contains(n.out, said.has) {
			t.Errorf("ralph %s does not say %q", said.command, said.has)
		}
	}
	if !n.ralph(0, "approve", "C2") {
		t.Error("the change is not approved")
	}
	flow := n.pull("Flow")
	if h.tip("main") != main || git(t, n.dir, "rev-parse", "main") != main {
		t.Error("the approved change was merged without review")
	}
	n.mergePull(dev, flow, "squash")
	n.mergePull(dev, n.pull("One"), "merge")
	n.sync()
	for _, title := range []string{"Flow", "One"} {
		for _, dir := range []string{h.dir, n.dir} {
			if is := git(t, dir, "branch", "--list", "*"+strings.ToLower(title)); is != "" {
				t.Errorf("the branch stays in %s: %s", dir, is)
			}
		}
	}
	for _, id := range []string{"1", "2"} {
		if n.ralph(0, "show", id); !strings.Contains(n.out, "merged") {
			t.Errorf("TASK-%s is not merged: %s", id, n.out)
		}
	}
	n.ralph(0, "run", "--pr")
	n.pull("Three")
	// One workspace serves all sessions, and one all checks.
	if list, _ := filepath.Glob(filepath.Join(n.home, ".local", "state", "ralph", "*", "workspaces", "*[0-9]")); len(list) > 2 {
		t.Errorf("these workspaces stay: %q", list)
	}
}
