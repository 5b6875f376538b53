package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"ralph/loop/agent/scripted"
)

// The pages that a person follows command by command. Their commands are run as they stand there, in order, by one
// shell for each page:
//
//   - ```console: lines that begin with "$ " are commands ("> " continues one), the
//     others their output. A line "..." stands for any lines.
//   - ```sh: commands, with any output.
//   - <!-- file: NAME --> before a block: the block is the content of that file.
//   - <!-- append: NAME --> before a block: the block is added to that file.
//   - <!-- not run: REASON --> before a block: it is not run, and the test says why.
//
// Every command has to succeed, unless the next one is "echo $?".
//
// testdata/pages/NAME.txtar has the agent's script (agent.script), and the state before the first command: the files of
// ~/my-app, setup.sh, which is run there, environ, and the programs that the page needs. The how-to guides begin in
// ~/my-app, the others in ~.

// testedPages returns the pages, relative to the root of the repository.
func testedPages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/howto/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"../../README.md", "../../docs/tutorial.md"}, pages...)
}

// TestPagesShowRealOutput: a reader of a page gets the output that it shows, letter by letter.
func TestPagesShowRealOutput(t *testing.T) {
	long(t)
	t.Parallel()
	for _, path := range testedPages(t) {
		t.Run(pageName(path), func(t *testing.T) {
			t.Parallel()
			p := readPage(t, path)
			r := newReader(t, path)
			r.scriptedAgent(t)
			r.execute(t, p)
			if *update {
				p.rewrite(t, path)
				return
			}
			for _, b := range p.blocks {
				for _, c := range b.commands {
					c.compare(t, path)
				}
			}
		})
	}
}

func pageName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".md") }

// A page is a text with blocks of commands.
type page struct {
	lines  []string
	blocks []block
}

// A block is the text between two fences.
type block struct {
	first, last int // lines between the fences, from 0; last is the closing fence
	commands    []*command
	reason      string // why it is not run
}

// A command is one that a person types.
type command struct {
	line   int      // from 1
	text   string   // typed commands
	shown  []string // what the page says that it prints; nil if it says nothing
	silent bool     // of a block that shows no output
	output string   // what it printed
	status int
}

var directive = regexp.MustCompile(`^<!-- (not run|file|append): (.+) -->$`)

func readPage(t *testing.T, path string) *page {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{lines: strings.Split(string(text), "\n")}
	var said []string // the directive before the block
	for i := 0; i < len(p.lines); i++ {
		l := p.lines[i]
		if strings.HasPrefix(l, "    ralph ") {
			t.Errorf("%s:%d: a command in an indented block is not run; use a fence", path, i+1)
		}
		language, fence := strings.CutPrefix(l, "```")
		if !fence {
			if m := directive.FindStringSubmatch(l); m != nil {
				said = m
			} else if l != "" {
				said = nil
			}
			continue
		}
		end := i + 1 + slices.Index(p.lines[i+1:], "```")
		if end <= i {
			t.Fatalf("%s:%d: the block has no end", path, i+1)
		}
		b := block{first: i + 1, last: end}
		b.read(p.lines, language, said)
		if b.reason != "" {
			t.Logf("%s:%d: not run: %s", path, i+1, b.reason)
		}
		p.blocks = append(p.blocks, b)
		i, said = end, nil
	}
	return p
}

func (b *block) read(lines []string, language string, said []string) {
	body := lines[b.first:b.last]
	whole := func(text string) {
		b.commands = []*command{{line: b.first + 1, text: text, silent: true}}
	}
	switch {
	case said != nil && said[1] == "not run":
		b.reason = said[2]
	case said != nil:
		redirect := map[string]string{"file": ">", "append": ">>"}[said[1]]
		whole("cat " + redirect + said[2] + " <<'END OF FILE'\n" + strings.Join(body, "\n") + "\nEND OF FILE")
	case language == "sh":
		whole("set -e\n" + strings.Join(body, "\n") + "\nset +e")
	case language == "console":
		for i, l := range body {
			if text, ok := strings.CutPrefix(l, "$ "); ok {
				b.commands = append(b.commands, &command{line: b.first + i + 1, text: text})
				continue
			}
			if len(b.commands) == 0 {
				continue
			}
			c := b.commands[len(b.commands)-1]
			if text, ok := strings.CutPrefix(l, "> "); ok && c.shown == nil {
				c.text += "\n" + text
			} else {
				c.shown = append(c.shown, l)
			}
		}
	}
}

// A reader is somebody at a machine of their own.
type reader struct {
	home    string
	binary  string   // ralph's
	start   string   // the directory in which the page begins
	environ []string // of the shell
	script  string   // what the agent does
}

// newReader prepares the state before the page's first command.
func newReader(t *testing.T, path string) *reader {
	t.Helper()
	base := t.TempDir()
	binary, err := exec.LookPath("ralph") // this program, under the name by which it is ralph; see TestMain
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{home: filepath.Join(base, "home"), binary: binary}
	r.start = r.home
	project := filepath.Join(r.home, "my-app")
	r.environ = []string{
		"HOME=" + r.home, "XDG_CONFIG_HOME=" + r.home + "/.config", "LANG=C.UTF-8", "TZ=UTC", "NO_COLOR=1", "TERM=dumb", "COLUMNS=120",
		"GIT_AUTHOR_NAME=You", "GIT_AUTHOR_EMAIL=you@example.com", "GIT_COMMITTER_NAME=You", "GIT_COMMITTER_EMAIL=you@example.com",
		"GIT_CONFIG_NOSYSTEM=1", "ANTHROPIC_API_KEY=fake", "GORACE=atexit_sleep_ms=0",
	}
	if err := errors.Join(os.MkdirAll(project, 0o700), os.MkdirAll(base+"/bin", 0o700)); err != nil {
		t.Fatal(err)
	}
	const who = "[user]\n\tname = You\n\temail = you@example.com\n"
	if err := os.WriteFile(filepath.Join(r.home, ".gitconfig"), []byte(who), 0o600); err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile(filepath.Join("testdata", "pages", pageName(path)+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	setup := ""
	for _, f := range archive.Files {
		name := filepath.Join(project, f.Name)
		switch f.Name {
		case "agent.script":
			r.script = filepath.Join(base, "bin", "agent.script") // in PATH, which agents can read
			name = r.script
		case "environ":
			r.environ = append(r.environ, strings.Split(strings.TrimSpace(string(f.Data)), "\n")...)
			continue
		case "setup.sh":
			setup = string(f.Data)
			continue
		case "needs":
			for program := range strings.FieldsSeq(string(f.Data)) {
				if _, err := exec.LookPath(program); err != nil {
					t.Skip("skipped: no ", program, " here")
				}
				if program == "go" {
					r.environ = append(r.environ, warmGo(t))
				}
			}
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, f.Data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	r.environ = append(r.environ, "PATH="+base+"/bin:"+os.Getenv("PATH"))
	if strings.Contains(path, "/howto/") {
		r.start = project
	}
	r.shell(t, "set -e\ncd ~/my-app\n"+setup)
	return r
}

// install puts a program into the reader's PATH.
func (r *reader) install(t *testing.T, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(r.home), "bin", name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
}

// scriptedAgent installs a claude that follows the page's script.
func (r *reader) scriptedAgent(t *testing.T) {
	t.Helper()
	r.install(t, "claude", fmt.Sprintf("[ \"$*\" = --version ] && { echo '%s (Claude Code)'; exit; }\nRALPH_SCRIPT='%s' exec '%s' scripted-agent \"$@\"\n",
		strings.Fields(scripted.Version)[0], r.script, r.binary))
}

// shell runs a script, in the directory in which the page begins.
func (r *reader) shell(t *testing.T, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir, cmd.Env = r.start, r.environ
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// execute runs the page's commands, one after the other, in one shell.
func (r *reader) execute(t *testing.T, p *page) {
	t.Helper()
	dir := t.TempDir()
	var driver strings.Builder
	var commands []*command
	for _, b := range p.blocks {
		for _, c := range b.commands {
			file := filepath.Join(dir, strconv.Itoa(len(commands)))
			commands = append(commands, c)
			if err := os.WriteFile(file, []byte(c.text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&driver, "(exit ${last:-0}); { . %[1]s; } </dev/null >%[1]s.out 2>&1; last=$?; echo $last >%[1]s.status\n", file)
		}
	}
	r.shell(t, driver.String())
	for i, c := range commands {
		file := filepath.Join(dir, strconv.Itoa(i))
		output, err := os.ReadFile(file + ".out")
		if err != nil {
			t.Fatal(err)
		}
		status, err := os.ReadFile(file + ".status")
		if err != nil {
			t.Fatal(err)
		}
		c.output = strings.NewReplacer(r.home, "/home/you", r.binary, "/home/you/bin/ralph").Replace(string(output))
		if c.status, err = strconv.Atoi(strings.TrimSpace(string(status))); err != nil {
			t.Fatal(err)
		}
		looked := i+1 < len(commands) && commands[i+1].text == "echo $?"
		if c.text == "echo $?" {
			c.output = fmt.Sprintln(commands[i-1].status)
		} else if c.status != 0 && !looked {
			t.Errorf("line %d: exit status %d, and the page says nothing of it:\n$ %s\n%s", c.line, c.status, c.text, c.output)
		}
	}
}

// slow says that a command takes more than a second, as it does on some machines.
var slow = regexp.MustCompile(`(?m)^\d\d:\d\d +verifying: .*\n`)

// printed returns the output in lines.
func (c *command) printed() []string {
	text := strings.TrimRight(slow.ReplaceAllString(c.output, ""), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// compare wants the page to show the output of the command.
func (c *command) compare(t *testing.T, path string) {
	t.Helper()
	if got := c.printed(); !c.silent && !matches(c.shown, got) {
		t.Errorf("%s:%d: $ %s\nshown:\n  %s\nprinted:\n  %s\n(`go test ./cmd/ralph -run Pages -update` writes what is printed; read it)",
			path, c.line, c.text, strings.Join(c.shown, "\n  "), strings.Join(got, "\n  "))
	}
}

// matches tells whether lines match the shown ones; "..." is any lines.
func matches(shown, lines []string) bool {
	if len(shown) == 0 {
		return len(lines) == 0
	}
	if shown[0] == "..." {
		for i := range len(lines) + 1 {
			if matches(shown[1:], lines[i:]) {
				return true
			}
		}
		return false
	}
	return len(lines) > 0 && general(shown[0]) == general(lines[0]) && matches(shown[1:], lines[1:])
}

// The parts that differ between runs.
var varying = []struct {
	what *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`\((scripted|claude-[a-z0-9-]+(\[1m\])?)\)`), "MODEL"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?`), "TIME"},
	{regexp.MustCompile(`\d{8}T\d{6}\.\d+`), "TIME"},
	{regexp.MustCompile(`\d\d:\d\d(:\d\d)?`), "TIME"},
	{regexp.MustCompile(`[A-Z][a-z][a-z] \d\d? TIME`), "TIME"},
	{regexp.MustCompile(`time="[\d.]+"`), "DURATION"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d`), "DATE"},
	{regexp.MustCompile(`\$\d+\.\d\d`), "COST"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f-]+)?\b`), "ID"},
	{regexp.MustCompile(`\b[0-9a-f]{7}\b`), "ID"},
	{regexp.MustCompile(`\b([0-9a-f]{10}|[0-9a-f]{12})\b`), "ID"},
	{regexp.MustCompile(`\bpython3?\b`), "python"},
	{regexp.MustCompile(`\b\d+m\d+s\b|\b\d+(\.\d+)? ?(ms|s|m)\b`), "DURATION"},
	{regexp.MustCompile(`[\d.,]+k? tokens`), "TOKENS"},
	{regexp.MustCompile(`(· sandbox: |^sandbox:? |ok +sandbox ).*`), "SANDBOX"},
	{regexp.MustCompile(`\b\d+ min( \d+ s)?\b`), "DURATION"},
	{regexp.MustCompile(`, DURATION until it was merged`), ""}, // said where the machine is busy
	{regexp.MustCompile(`/\S*/git$`), "GIT"},
	{regexp.MustCompile(`\d+ characters`), "SIZE"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

// general returns a line without the parts that differ between runs.
func general(line string) string {
	for _, v := range varying {
		line = v.what.ReplaceAllString(line, v.name)
	}
	return strings.TrimSpace(line)
}

// rewrite puts the output into the page. Parts with "..." stay.
func (p *page) rewrite(t *testing.T, path string) {
	t.Helper()
	var text []string
	done := 0
	for _, b := range p.blocks {
		text = append(text, p.lines[done:b.first]...)
		if len(b.commands) == 0 || b.commands[0].silent {
			text = append(text, p.lines[b.first:b.last]...)
		} else {
			for _, c := range b.commands {
				text = append(text, "$ "+strings.ReplaceAll(c.text, "\n", "\n> "))
				if shown := c.printed(); !slices.Contains(c.shown, "...") && !matches(c.shown, shown) {
					c.shown = shown
				}
				text = append(text, c.shown...)
			}
		}
		done = b.last
	}
	text = append(text, p.lines[done:]...)
	if err := os.WriteFile(path, []byte(strings.Join(text, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}
