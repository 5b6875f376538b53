package main

import (
	"bufio"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"ralph/internal/bystander"
)

// TestTheHeadlineIsTheSameEverywhere: the result of a night has the same words at the run's end, in status, reports,
// notifications, on the dashboard and on the live screen.
func TestTheHeadlineIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "task 3\n  ask {\"question\": \"Which one?\", \"blocking\": true}\n  partial {\"summary\": \"some\", \"remaining\": \"the rest\"}\n"+
		"task *\n  write a.txt \"x\\n\"\n  done {\"summary\": \"did it\"}\n",
		"permissions: {guards: false}\nnotify: [{command: [sh, -c, 'cat >> .git/notes'], events: [run.ended]}]\n")
	s.ralph(0, "task", "add", "Good", "--verify", "test -f a.txt")
	s.ralph(0, "task", "add", "Bad", "--verify", "false")
	s.ralph(0, "task", "add", "Asks")
	lines := strings.Split(strings.TrimSpace(s.ralph(3, "run")), "\n")
	want := lines[len(lines)-2:]
	want[0] = strings.TrimSuffix(want[0], " → ralph inbox")
	if !strings.HasPrefix(want[0], "3 tasks, ") || !strings.HasPrefix(want[1], "changed: ") {
		t.Fatalf("the run ends with\n%s", strings.Join(want, "\n"))
	}
	said := map[string]string{}
	for name, args := range map[string]string{
		"status": "status", "report": "report", "a report in Markdown": "report --format md",
	} {
		said[name] = s.ralph(0, strings.Fields(args)...)
	}
	said["a report in Markdown"] = strings.ReplaceAll(said["a report in Markdown"], `\`, "") // escapes
	var status struct{ Morning []string }
	if err := json.Unmarshal([]byte(s.ralph(0, "status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	said["status in JSON"] = strings.Join(status.Morning, "\n")
	notes, err := os.ReadFile(filepath.Join(s.dir, ".git", "notes"))
	if err != nil {
		t.Fatal(err)
	}
	said["the notification"] = string(notes)
	said["the dashboard"] = dashboard(t, s)
	said["the live screen"] = screen(t, s, want[0])
	for name, text := range said {
		for _, line := range want {
			if !strings.Contains(text, line) {
				t.Errorf("%s lacks the line\n%s\nit says:\n%s", name, line, text)
			}
		}
	}
}

// dashboard returns the text of the first page of a project's dashboard.
func dashboard(t *testing.T, s *scriptedProject) string {
	t.Helper()
	const token = "a-token-for-this-test-alone"
	s.env = append(s.env, bystander.TokenVariable+"="+token)
	d := serveProject(t, s, "127.0.0.1:0")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	d.stop(t, 0)
	return html.UnescapeString(regexp.MustCompile(`</?a( [^>]*)?>`).ReplaceAllString(string(page), "")) // its numbers are links
}

// screen returns the contents of `ralph watch` in a wide terminal once it shows a text.
func screen(t *testing.T, s *scriptedProject, until string) string {
	t.Helper()
	cmd := s.command("watch")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 200})
	if err != nil {
		t.Skip("skipped: no pseudo-terminal: ", err)
	}
	defer tty.Close()
	var raw strings.Builder
	r := bufio.NewReader(tty)
	for left := false; ; {
		c, err := r.ReadByte()
		if err != nil {
			break // it has left
		}
		raw.WriteByte(c)
		if !left && strings.Contains(ansi.Strip(raw.String()), until) {
			left = true
			if _, err := tty.WriteString("q"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ralph watch: %v", err)
	}
	return ansi.Strip(raw.String())
}
