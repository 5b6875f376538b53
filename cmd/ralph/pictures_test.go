package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"ralph/internal/inbox"
	"ralph/internal/picture"
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
	draw := func(name string, p picture.Picture) {
		t.Helper()
		p.Columns = columns
		if err := os.WriteFile(filepath.Join(folder, name+".svg"), []byte(p.SVG()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	draw("demo", picture.Picture{
		Text: "$ ralph demo\n" + steady(record(t, columns, "demo")), Rows: 30, Moves: true,
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
			inbox.Item(&listed, screen, i, false)
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
	draw("inbox", picture.Picture{Text: "$ ralph inbox\n" + first, Rows: 30, Title: "ralph inbox: what waits for you"})
	draw("report", picture.Picture{Text: "$ ralph report\n" + summed.String(), Rows: 46, Title: "ralph report: a night with its costs"})
}

// record returns what ralph prints on a terminal.
func record(t *testing.T, columns uint16, args ...string) string {
	t.Helper()
	s := newScriptedProject(t, "", "")
	tty, err := pty.StartWithSize(s.command(args...), &pty.Winsize{Rows: 40, Cols: columns})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	var text bytes.Buffer
	_, _ = io.Copy(&text, tty) // a terminal ends with an error
	return text.String()
}

// unsteady is what differs from one recording to the next, and what stands for it.
var unsteady = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\d\d:\d\d +verifying: .*\r?\n`), ""},
	{regexp.MustCompile(`\d\d:\d\d\b`), "23:40"},
	{regexp.MustCompile(`(tasks?), [\d.]+ s`), "$1, 4.2 s"},
	{regexp.MustCompile(`\b[\d.]+ s\b`), "0.4 s"},
	{regexp.MustCompile(`\S*/ralph scripted-agent`), "ralph scripted-agent"},
	{regexp.MustCompile(`(sandbox: \w+)\s+\(.*?\)`), "$1"},
}

// steady replaces them. Commits get the same names in the same order.
func steady(text string) string {
	for _, u := range unsteady {
		text = u.what.ReplaceAllString(text, u.as)
	}
	names := map[string]string{}
	return regexp.MustCompile(`\b(\d+m)?[0-9a-f]{7}\b`).ReplaceAllStringFunc(text, func(id string) string {
		colour, id := id[:len(id)-7], id[len(id)-7:]
		if names[id] == "" {
			names[id] = fmt.Sprintf("%x", sha256.Sum256([]byte{byte(len(names))}))[:7]
		}
		return colour + names[id]
	})
}
