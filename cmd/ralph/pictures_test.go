package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"ralph/internal/inbox"
	"ralph/internal/picturetest"
	"ralph/internal/report"
	"ralph/internal/term"
	"ralph/internal/web/webtest"
	"ralph/store"
)

// TestTheTerminalLooksLikeThis draws the demo, the inbox and the report into the folder RALPH_TEST_SCREENSHOTS. `make
// pictures` takes those of the documentation from it. The same code gives the same pictures.
func TestTheTerminalLooksLikeThis(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("RALPH_TEST_SCREENSHOTS")
	if folder == "" {
		t.Skip("skipped: RALPH_TEST_SCREENSHOTS is not set")
	}
	const columns = 100
	draw := func(name string, p picturetest.Picture) {
		t.Helper()
		p.Columns = columns
		if err := os.WriteFile(filepath.Join(folder, name+".svg"), []byte(p.SVG()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	draw("demo", picturetest.Picture{
		Text: "$ ralph demo\n" + steady(newScriptedProject(t, "", "").record(columns, "demo")), Rows: 30, Moves: true,
		Title: "ralph demo: five tasks, of which four are merged after their checks passed, and one that lies fails",
	})
	night := &webtest.Night{Morning: morning}
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ralph.db"), store.Options{Now: night.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := night.Fill(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	var listed, summed bytes.Buffer
	screen := term.Screen{Columns: columns, Colours: true}
	err = db.View(t.Context(), func(tx *store.Tx) error {
		items, err := inbox.All(tx)
		if err != nil {
			return err
		}
		for _, i := range items {
			inbox.Item(&listed, screen, i, false, night.Now())
			for _, c := range i.Commands {
				fmt.Fprintf(&listed, "          %s\n", screen.Paint(term.Dim, c))
			}
		}
		r, err := report.OfRun(tx, 1)
		return errors.Join(err, r.WriteText(&summed, screen, false))
	})
	if err != nil {
		t.Fatal(err)
	}
	first := strings.Join(strings.SplitAfter(listed.String(), "\n")[:29], "")
	draw("inbox", picturetest.Picture{Text: "$ ralph inbox\n" + first, Rows: 30, Title: "ralph inbox: what waits for you"})
	draw("report", picturetest.Picture{Text: "$ ralph report\n" + summed.String(), Rows: 46, Title: "ralph report: a night with its costs"})
}

// TestEveryCommandLooksLikeThis draws the output of each command that prints more than a line, 80 columns wide, after a
// night in which everything happened.
func TestEveryCommandLooksLikeThis(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("RALPH_TEST_SCREENSHOTS")
	if folder == "" {
		t.Skip("skipped: RALPH_TEST_SCREENSHOTS is not set")
	}
	s := newScriptedProject(t, printedScript, "sandbox: off\npermissions: {guards: false}\nlimits: {attempts: 2}\n")
	// Lines are wrapped by the length of paths, so that these are the same each time.
	const home = "/tmp/ralph-pictures"
	program, err := exec.LookPath("ralph")
	err = errors.Join(err, os.RemoveAll(home), os.MkdirAll(home+"/bin", 0o700), os.CopyFS(home+"/app", os.DirFS(s.dir)),
		os.Symlink(program, home+"/bin/ralph"))
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	s.dir, s.env = home+"/app", append(s.env, "HOME="+home, "XDG_STATE_HOME="+home+"/.local/state", "PATH="+home+"/bin:/usr/local/bin:/usr/bin:/bin")
	s.sh(`ralph add Good --verify 'test -f good.txt' && ralph add Asks && ralph add Held && ralph add Stands &&
		ralph add Idle --verify true && ralph add Bad --verify false && ralph add Behind --depends-on 6`)
	for _, command := range []string{
		"run", "status", "status --limits", "inbox", "inbox C9", "report", "report --by model", "list --all", "show 1", "show 6", "diff 1", "diff C9",
		"log 6", "session list", "session show", "session show --decision", "timeline 1", "learning list", "task graph", "prompt 7", "plan show",
		"config", "doctor --no-check", "merge", "workspace list", "machine list", "notify", "forge", "events --type task.status_changed", "run --dry-run", "verify 6", "permission Bash 'rm -rf /'",
		"undo 1", "retry 6 'use sed'", "approve C9", "reject C14 'do more'", "answer Q6 red", "cancel 7", "feature api -d x", "discipline web", "help",
		"help run", "help gate", "task list --help", "service print", "db check", "export --format markdown", "run Another --verify false",
	} {
		text := steady(strings.ReplaceAll(s.record(80, command), home, "/home/ann"))
		p := picturetest.Picture{Text: "$ ralph " + command + "\n" + text, Columns: 80, Rows: 60, Title: "ralph " + command}
		name := "command-" + strings.Trim(regexp.MustCompile(`\W+`).ReplaceAllString(command, "-"), "-") + ".svg"
		if err := os.WriteFile(filepath.Join(folder, name), []byte(p.SVG()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// record returns the output of a ralph command on a terminal.
func (s *scriptedProject) record(columns uint16, command string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "sh", "-c", "ralph "+command)
	cmd.Dir, cmd.Env = s.dir, s.env
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: columns})
	if err != nil {
		s.t.Fatal(err)
	}
	defer tty.Close()
	var text bytes.Buffer
	_, _ = io.Copy(&text, tty) // a terminal ends with an error
	_ = cmd.Wait()             // also commands that fail are drawn
	return text.String()
}

// unsteady has the parts that differ between recordings, and their replacements.
var unsteady = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\d\d:\d\d +verifying: .*\r?\n`), ""},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d`), "2026-11-28"},
	{regexp.MustCompile(`\d\d:\d\d(:\d\d)?\b`), "23:40"},
	{regexp.MustCompile(`(?m)^(\S*?)\d+(\S* +\S*2026-11-28)`), "${1}41$2"}, // the number of an event
	{regexp.MustCompile(`/tmp/ralph-states-\d+/ralph/001-[0-9a-f]{12}`), "/home/ann/.local/state/ralph/app"},
	{regexp.MustCompile(`/tmp/Test\w+/\d+`), "/home/ann"},
	{regexp.MustCompile(`(tasks?), (\d+ min )?[\d.]+ s\b`), "$1, 4.2 s"},
	{regexp.MustCompile(`(\d+m|\b)(\d+ min )?[\d.]+ s\b`), "${1}0.4 s"}, // the m ends a colour
	{regexp.MustCompile(`\S*/ralph scripted-agent`), "ralph scripted-agent"},
	{regexp.MustCompile(`(?s)(sandbox: \w+)\s+\(.*?\)`), "$1"},
}

// hexName matches the short name of a commit or a session, behind the end of a colour.
var hexName = regexp.MustCompile(`\b(\d+m)?[0-9a-f]{7,8}\b`)

// steady replaces them. Commits and sessions get the same names in the same order.
func steady(text string) string {
	for _, u := range unsteady {
		text = u.what.ReplaceAllString(text, u.as)
	}
	names := map[string]string{}
	return hexName.ReplaceAllStringFunc(text, func(id string) string {
		at := strings.IndexByte(id, 'm') + 1
		colour, id := id[:at], id[at:]
		if names[id] == "" {
			names[id] = fmt.Sprintf("%x", sha256.Sum256([]byte{byte(len(names))}))[:len(id)]
		}
		return colour + names[id]
	})
}
