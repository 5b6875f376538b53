package forge

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nightScript is the agent of the night: a session of a task does what its issue and its reviews say.
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

// A realNight is a project that ralph works on, beside a real Gitea.
type realNight struct {
	*realGitea
	dir, bin string
	env      []string
	numbers  map[string]int64 // of issues, by title
}

// ralph runs a command until it ends, or kills it after a while (0 is never).
func (n *realNight) ralph(kill time.Duration, args ...string) string {
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
	n.t.Logf("ralph %q: %v\n%s", args, err, out)
	return string(out)
}

// git runs git in a folder.
func (n *realNight) git(dir string, args ...string) string {
	n.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// pull returns the open pull request of an issue's task: its path and number.
func (n *realNight) pull(title string) (path string, number int64) {
	n.t.Helper()
	list, _ := n.call(boss, "GET", "/repos/boss/app/pulls?state=open&limit=50", "")["list"].([]any)
	for _, p := range list {
		m := p.(map[string]any)
		if strings.HasPrefix(fmt.Sprint(m["title"]), title) {
			number = int64(m["number"].(float64))
			return fmt.Sprintf("/repos/boss/app/pulls/%d", number), number
		}
	}
	n.t.Fatalf("there is no pull request for %s among %d", title, len(list))
	return "", 0
}

// head returns the commit of a pull request.
func (n *realNight) head(path string) string {
	head, _ := n.call(boss, "GET", path, "")["head"].(map[string]any)
	return fmt.Sprint(head["sha"])
}

// merge has a person merge a pull request.
func (n *realNight) merge(title, style string) {
	n.t.Helper()
	path, _ := n.pull(title)
	for range 100 { // Gitea works out whether it conflicts, and says nothing until then
		said, failed := n.call(dev, "POST", path+"/merge", fmt.Sprintf(`{"Do": %q}`, style))["message"]
		if !failed {
			return
		}
		if !strings.Contains(fmt.Sprint(said), "try again later") {
			n.t.Fatalf("%s cannot be merged: %v", title, said)
		}
		time.Sleep(200 * time.Millisecond)
	}
	n.t.Fatalf("%s is not merged", title)
}

// comment has somebody comment on the issue of a title.
func (n *realNight) comment(as, title, body string) {
	n.call(as, "POST", fmt.Sprintf("/repos/boss/app/issues/%d/comments", n.numbers[title]), fmt.Sprintf(`{"body": %q}`, body))
}

// newNight makes the project, as it is on the Gitea, and the binary of ralph.
func newNight(t *testing.T) *realNight {
	n := &realNight{realGitea: startGitea(t), dir: t.TempDir(), bin: t.TempDir(), numbers: map[string]int64{}}
	build := exec.Command("go", "build", "-o", filepath.Join(n.bin, "ralph"), "ralph/cmd/ralph")
	build.Env = append(os.Environ(), "CGO_CFLAGS=-O1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	home := t.TempDir()
	n.env = []string{
		"HOME=" + home, "PATH=" + n.bin + ":" + os.Getenv("PATH"), "GITEA_TOKEN=" + n.token[boss], "LANG=C.UTF-8",
		"TMPDIR=" + os.TempDir(),
	}
	address := strings.Replace(n.url, "http://", "http://boss:"+n.token[boss]+"@", 1) + "/boss/app.git"
	n.git(n.dir, "clone", "-q", address, ".")
	n.git(n.dir, "remote", "set-url", "origin", n.url+"/boss/app.git")
	for name, text := range map[string]string{
		"ralph.yaml": "agent: {command: [ralph, scripted-agent]}\nverify: [\"sh check.sh\"]\npermissions: {guards: false}\n" +
			"sandbox: {mode: \"off\"}\nlimits: {attempts: 3}\nforge: {kind: gitea, label: ralph}\nmerge: {mode: pr, max_open: 20}\n",
		"check.sh": "test ! -e bad\n", "claude.script": nightScript, ".gitignore": "claude.script.sessions\n",
		"shared.txt": "shared\n",
	} {
		if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n.git(n.dir, "config", "user.name", "Boss")
	n.git(n.dir, "config", "user.email", "boss@example.test")
	n.git(n.dir, "add", "-A")
	n.git(n.dir, "commit", "-qm", "A project")
	n.git(n.dir, "push", "-q", address, "HEAD:main")
	return n
}

// TestANightOnARealGitea: twelve issues by three people, one without rights; red checks, requested changes, a conflict
// and a push by a person; two questions, an approval and a rejection; the forge away for a while, and ralph killed three
// times. In the end each issue and pull request says the truth, and nothing was posted twice.
func TestANightOnARealGitea(t *testing.T) {
	n := newNight(t)
	label := fmt.Sprintf(`{"labels": [%v]}`, n.call(boss, "POST", "/repos/boss/app/labels", `{"name": "ralph", "color": "#00f"}`)["id"])
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
		path := n.issue(i.as, i.title, "Please do it.")
		if _, err := fmt.Sscanf(path, "/repos/boss/app/issues/%d", new(int64)); err != nil {
			t.Fatal(err)
		}
		var number int64
		_, _ = fmt.Sscanf(path[strings.LastIndexByte(path, '/')+1:], "%d", &number)
		n.numbers[i.title] = number
		if i.title != "Unwanted" {
			n.call(dev, "POST", path+"/labels", label)
		} else {
			n.call(guest, "POST", path+"/labels", label)
		}
	}
	n.call(dev, "PATCH", fmt.Sprintf("/repos/boss/app/issues/%d", n.numbers["Closed"]), `{"state": "closed"}`)
	n.comment(guest, "Alpha", "/cancel")

	n.ralph(4*time.Second, "run") // killed in the middle
	n.ralph(0, "run")
	n.stop() // the forge is away: the night goes on
	n.ralph(0, "forge", "sync", "--once")
	n.start()
	n.comment(dev, "Colour", "/answer 2")
	n.comment(dev, "Size", "> **Question:** Which size?\n\n/answer large")
	n.comment(dev, "Workflow", "/approve")
	n.comment(boss, "Hook", "/reject not like this")
	n.ralph(3*time.Second, "run")
	n.ralph(0, "run")
	n.ralph(0, "forge", "sync", "--once")

	// People look at the pull requests.
	alpha, _ := n.pull("Alpha")
	n.call(dev, "POST", "/repos/boss/app/statuses/"+n.head(alpha), `{"state": "failure", "context": "ci", "description": "alpha is wrong"}`)
	beta, _ := n.pull("Beta")
	n.call(dev, "POST", beta+"/reviews", `{"event": "REQUEST_CHANGES", "body": "use a better word",
		"comments": [{"path": "beta.txt", "body": "this one", "new_position": 1}]}`)
	n.call(guest, "POST", beta+"/reviews", `{"event": "REQUEST_CHANGES", "body": "evil"}`)
	n.call(dev, "PUT", "/repos/boss/app/contents/shared.txt", fmt.Sprintf(`{"content": "dGhlaXJzCg==", "message": "Theirs", "branch": "main", "sha": %q}`,
		n.call(dev, "GET", "/repos/boss/app/contents/shared.txt", "")["sha"]))
	delta, _ := n.pull("Delta")
	branch, _ := n.call(dev, "GET", delta, "")["head"].(map[string]any)
	n.call(dev, "POST", "/repos/boss/app/contents/person.txt", fmt.Sprintf(`{"content": "YQo=", "message": "Mine", "branch": %q}`, branch["ref"]))
	n.ralph(2*time.Second, "run")
	n.ralph(0, "run")
	n.ralph(0, "run")
	n.ralph(0, "forge", "sync", "--once")

	if p, _ := n.pull("Alpha"); p != alpha {
		t.Errorf("Alpha has another pull request")
	}
	for title, style := range map[string]string{
		"Alpha": "merge", "Beta": "squash", "Gamma": "merge", "Delta": "rebase", "Colour": "merge", "Size": "squash",
		"Workflow": "merge", "Hook": "merge", "Theirs": "rebase",
	} {
		n.merge(title, style)
	}
	for range 3 {
		n.ralph(0, "forge", "sync", "--once")
	}
	n.truth()
}

// truth checks what the night has left.
func (n *realNight) truth() {
	t := n.t
	t.Helper()
	for title, want := range map[string]string{
		"Alpha": "ralph:done", "Beta": "ralph:done", "Gamma": "ralph:done", "Delta": "ralph:done", "Colour": "ralph:done",
		"Size": "ralph:done", "Workflow": "ralph:done", "Hook": "ralph:done", "Theirs": "ralph:done", "Fails": "ralph:failed",
		"Unwanted": "", "Closed": "",
	} {
		path := fmt.Sprintf("/repos/boss/app/issues/%d", n.numbers[title])
		var labels []string
		list, _ := n.call(boss, "GET", path+"/labels", "")["list"].([]any)
		for _, l := range list {
			if name := fmt.Sprint(l.(map[string]any)["name"]); strings.HasPrefix(name, "ralph:") {
				labels = append(labels, name)
			}
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("%s has the labels %q, want %q", title, got, want)
		}
		if state := n.call(boss, "GET", path, "")["state"]; (state == "closed") != (want == "ralph:done" || title == "Closed") {
			t.Errorf("%s is %v", title, state)
		}
		count := map[string]int{}
		for _, c := range n.comments(path) {
			if of, ok := Marked(c); ok {
				if count[of]++; count[of] > 1 {
					t.Errorf("%s: %q was posted %d times", title, of, count[of])
				}
				if want == "ralph:done" && strings.HasSuffix(of, " status") && !strings.Contains(c, "· merged ·") {
					t.Errorf("%s: the status says %q", title, c)
				}
			}
		}
		if want != "" && len(count) < 2 {
			t.Errorf("%s was told %v", title, count)
		}
	}
	list, _ := n.call(boss, "GET", "/repos/boss/app/pulls?state=all&limit=50", "")["list"].([]any)
	var titles []string
	for _, p := range list {
		m := p.(map[string]any)
		titles = append(titles, fmt.Sprint(m["title"]))
		if m["merged"] != true {
			t.Errorf("the pull request %v is %v", m["title"], m["state"])
		}
	}
	if slices.Sort(titles); len(slices.Compact(titles)) != 9 || len(titles) != 9 {
		t.Errorf("the pull requests are %q", titles)
	}
	files := n.git(n.dir, "fetch", "-q", strings.Replace(n.url, "http://", "http://boss:"+n.token[boss]+"@", 1)+"/boss/app.git", "main") +
		n.git(n.dir, "ls-tree", "-r", "--name-only", "FETCH_HEAD")
	for _, name := range []string{"alpha.txt", "beta.txt", "delta.txt", "person.txt", "colour.txt", "size.txt", "hook.txt", "theirs.txt"} {
		if !strings.Contains(files, name) {
			t.Errorf("main has no %s: %s", name, files)
		}
	}
	for name, want := range map[string]string{"alpha.txt": "right", "beta.txt": "better", "shared.txt": "theirs and ours"} {
		if got := n.git(n.dir, "show", "FETCH_HEAD:"+name); got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
	branches, _ := n.call(boss, "GET", "/repos/boss/app/branches", "")["list"].([]any)
	for _, b := range branches {
		if name := fmt.Sprint(b.(map[string]any)["name"]); strings.HasPrefix(name, "ralph/") {
			t.Errorf("the branch %s stays", name)
		}
	}
}
