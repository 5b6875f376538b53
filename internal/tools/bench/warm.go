package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/store"
)

// compiledC is a program that takes a minute to build from scratch, because it compiles SQLite,
// which is a single C file.
const compiledC = `package main

import (
	"database/sql"
	"fmt"

	_ "github.com/mattn/go-sqlite3"
)

func main() {
	db, err := sql.Open("sqlite3", ":memory:")
	fmt.Println(db, err)
}
`

// A build is a project with that program, and a task that adds a file.
type build struct {
	project
	took string   // the file in which each of its builds writes its author, and its milliseconds
	env  []string // environment of the person's caches
}

func (b *bench) newBuild(ctx context.Context, env []string) build {
	p := build{b.newProject(ctx, 0), filepath.Join(must(os.MkdirTemp(b.dir, "took-*")), "took"), env}
	const driver = "github.com/mattn/go-sqlite3"
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", driver)
	list.Dir = b.module
	version := strings.TrimSpace(string(must(list.Output())))
	config := string(must(os.ReadFile(filepath.Join(p.dir, "ralph.yaml"))))
	const script = "task Constant.\n  run printf 'package main\\n\\nconst c = 1\\n' > c.go; sh build.sh session\n" +
		"  done {\"summary\": \"There is a constant.\"}\n"
	program := compiledC
	if b.small {
		program = "package main\n\nfunc main() {}\n"
	}
	for name, text := range map[string]string{
		"main.go": program, ".gitignore": "*.sessions\nbuilt\n", "claude.script": script,
		"go.mod": "module m\n\ngo 1.21\n\nrequire " + driver + " " + version + "\n",
		"go.sum": string(must(os.ReadFile(filepath.Join(b.module, "go.sum")))),
		"build.sh": "b=$(date +%s%N)\ngo build -o built . || exit 1\necho $1 $((($(date +%s%N) - b) / 1000000)) >>" +
			p.took + "\n",
		"ralph.yaml": fmt.Sprintf("%spermissions: {writable: [%q]}\nverify: [sh build.sh check]\n",
			config, filepath.Dir(p.took)),
	} {
		check(os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
	}
	p.time(ctx, "git", "add", "-A")
	p.time(ctx, "git", "commit", "-q", "-m", "the program")
	p.fill(ctx, func(tx *store.Tx) { must(tx.AddTask(ralph.Task{Title: "Constant."}, "human")) })
	return p
}

// work runs a command with the person's caches.
func (p build) work(ctx context.Context, name string, args ...string) time.Duration {
	cmd := p.command(ctx, name, args...)
	cmd.Env = append(cmd.Env, p.env...)
	return output(cmd)
}

// first returns the duration of the first build with a label after the start of a session. Earlier builds verify the
// project's old state.
func (p build) first(label string) time.Duration {
	begun := false
	for line := range strings.Lines(string(must(os.ReadFile(p.took)))) {
		who, ms, _ := strings.Cut(strings.TrimSpace(line), " ")
		if begun = begun || who == "session"; begun && who == label {
			return time.Duration(must(strconv.Atoi(ms))) * time.Millisecond
		}
	}
	check(fmt.Errorf("no build of %s in %s", label, p.took))
	return 0
}

// warm returns the cost of separate workspaces for sessions, in a project with a cold build of a minute.
func (b *bench) warm(ctx context.Context) []row {
	modules := strings.TrimSpace(string(must(exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output())))
	env := []string{"GOMODCACHE=" + modules, "GOCACHE=" + filepath.Join(must(os.MkdirTemp(b.dir, "theirs-*")), "go-build")}
	var nothing, theirs, session, checked samples
	for i := range min(b.rounds, 2) { // each in workspaces that are made anew
		p := b.newBuild(ctx, env)
		if i == 0 {
			nothing.took(p.work(ctx, "sh", "build.sh", "nothing"))
		}
		mine := filepath.Join(p.dir, "mine.go")
		check(os.WriteFile(mine, fmt.Appendf(nil, "package main\n\nconst mine = %d\n", i), 0o600))
		theirs.took(p.work(ctx, "sh", "build.sh", "person"))
		check(os.Remove(mine))
		p.work(ctx, p.ralph, "run")
		session.took(p.first("session"))
		checked.took(p.first("check"))
	}
	const who = "a program with SQLite, which takes %s s to build from nothing: "
	what := fmt.Sprintf(who, number(nothing.median()/1000))
	return []row{
		ratio(what+"the build of the first session (floor: a person's, after a change)", session, theirs, 1.3),
		ratio("… and its check", checked, theirs, 1.3),
	}
}

// remote returns the cost of pushing merges to a slow remote: eight tasks, four sessions at once.
func (b *bench) remote(ctx context.Context) []row {
	names := []string{"own0", "own1", "own2", "own3", "own4", "own5", "own6", "own7"}
	if b.small {
		names = names[:2]
	}
	measure := func(delay float64) (took, calls samples) {
		c := b.newCrowd(ctx, names, "sh verify.sh")
		// A remote over ssh, whose connections take their time, and are counted.
		ssh, count := c.dir+"-ssh", c.dir+"-calls"
		check(os.WriteFile(ssh, fmt.Appendf(nil, "#!/bin/sh\necho >>%s; sleep %g\n"+
			"for last; do :; done\nexec sh -c \"$last\"\n",
			count, delay), 0o700))
		config := filepath.Join(c.dir, "ralph.yaml")
		text := must(os.ReadFile(config))
		check(os.WriteFile(config, append(text, "merge: {push: origin}\n"...), 0o600))
		c.time(ctx, "git", "commit", "-qam", "push")
		c.time(ctx, "git", "clone", "-q", "--bare", ".", c.dir+"-remote")
		c.time(ctx, "git", "remote", "add", "origin", "far:"+c.dir+"-remote")
		cmd := c.command(ctx, c.ralph, "run", "--parallel", "4")
		cmd.Env = append(cmd.Env, "GIT_SSH_COMMAND="+ssh)
		took.took(output(cmd))
		calls.add(float64(strings.Count(string(must(os.ReadFile(count))), "\n")))
		return took, calls
	}
	near, _ := measure(0)
	far, calls := measure(b.waits(1))
	return []row{
		ratio("eight tasks, 4 sessions, pushed to a remote that takes 1 s (floor: one that takes none)", far, near, 2),
		{what: "… connections to it", product: calls, value: number(calls.median())},
	}
}
