package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ralph/internal/bystander"
	"ralph/internal/report"
)

// A week is a project whose figures are compared wherever ralph says them.
type week struct{ *scriptedProject }

// script is the agents' script: write a file each, change people's CI, give up, or wait until the test lets them
// continue.
func weekScript(gate string) string {
	var script strings.Builder
	for n := range 10 {
		fmt.Fprintf(&script, "task Own %[1]d\n  write own%[1]d.txt \"%[1]d\\n\"\n  done {\"summary\": \"wrote it\"}\n", n)
	}
	for n := range 2 {
		fmt.Fprintf(&script, "task Held %[1]d\n  run mkdir -p .github/workflows && echo on: push > .github/workflows/ci%[1]d.yml\n  done {\"summary\": \"runs it\"}\n", n)
	}
	fmt.Fprintf(&script, "task Slow\n  run until test -e %s; do sleep 0.05; done\n  write slow.txt \"x\\n\"\n  done {\"summary\": \"waited\"}\n", gate)
	script.WriteString("task Own A\n  write owna.txt \"a\\n\"\n  done {\"summary\": \"wrote it\"}\n")
	script.WriteString("task *\n  write bad.txt \"x\\n\"\n  done {\"summary\": \"did it\"}\n")
	return script.String()
}

// add adds tasks that each have to make a file.
func (w *week) add(titles ...string) {
	w.t.Helper()
	for _, title := range titles {
		made := "test -f " + strings.ToLower(strings.ReplaceAll(title, " ", "")) + ".txt"
		switch {
		case title == "Bad":
			made = "false"
		case strings.HasPrefix(title, "Held"):
			made = "ls .github/workflows/ci" + title[len("Held "):] + ".yml"
		}
		w.ralph(0, "task", "add", title, "--verify", made)
	}
}

// says compares the figures wherever they are said. The headline is the last run's.
func (w *week) says(step string, want report.Figures) {
	w.t.Helper()
	var reported, status struct {
		Figures report.Figures
		Morning []string
	}
	if err := json.Unmarshal([]byte(w.ralph(0, "report", "--json")), &reported); err != nil {
		w.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(w.ralph(0, "status", "--json")), &status); err != nil {
		w.t.Fatal(err)
	}
	f := reported.Figures
	f.Sessions = 0
	if f != want {
		w.t.Errorf("%s: the report counts\n%+v, want\n%+v", step, f, want)
	}
	if sum := f.Merged + f.Failed + f.NeedsYou + f.Undone + f.Unfinished; sum != f.Tasks {
		w.t.Errorf("%s: the groups add up to %d of %d tasks", step, sum, f.Tasks)
	}
	if status.Figures != reported.Figures {
		w.t.Errorf("%s: status counts\n%+v, the report\n%+v", step, status.Figures, reported.Figures)
	}
	headline := status.Morning[0]
	for name, text := range map[string]string{
		"status": w.ralph(0, "status"), "the report": w.ralph(0, "report"), "the dashboard": dashboard(w.t, w.scriptedProject),
		"the report in Markdown": strings.ReplaceAll(w.ralph(0, "report", "--format", "md"), `\`, ""),
	} {
		if !strings.Contains(text, headline) {
			w.t.Errorf("%s: %s lacks\n%s\nit says\n%s", step, name, headline, text)
		}
	}
}

// ran compares a run's last line, and its notification, with status.
func (w *week) ran(step, output string) {
	w.t.Helper()
	var status struct{ Morning []string }
	if err := json.Unmarshal([]byte(w.ralph(0, "status", "--json")), &status); err != nil {
		w.t.Fatal(err)
	}
	notes, err := os.ReadFile(filepath.Join(w.dir, ".git", "notes"))
	if err != nil {
		w.t.Fatal(err)
	}
	for name, text := range map[string]string{"the run": output, "the notification": string(notes)} {
		if !strings.Contains(text, status.Morning[0]) {
			w.t.Errorf("%s: %s lacks\n%s\nit says\n%s", step, name, status.Morning[0], text)
		}
	}
}

// TestAWeekAddsUp: 15 tasks, three at once, with held changes, a failure, a cancelled task, and an undo and an approval
// during a run and between runs. After each step the figures are the same everywhere, and each task is in one group.
func TestAWeekAddsUp(t *testing.T) {
	long(t)
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "go")
	w := &week{scriptedProject: newScriptedProject(t, weekScript(gate),
		"sandbox: off\npermissions: {guards: false}\nnotify: [{command: [sh, -c, 'cat >> .git/notes'], events: [run.ended]}]\n")}
	w.add("Own 0", "Own 1", "Own 2", "Own 3", "Own 4", "Own 5", "Own 6", "Own 7", "Held 0", "Held 1", "Bad", "Own 8")
	w.ralph(0, "task", "cancel", "12")

	w.ran("first run", w.ralph(3, "run", "--parallel", "3"))
	w.says("first run", report.Figures{Tasks: 11, Merged: 8, Failed: 1, NeedsYou: 2, Proved: 8})

	if said := w.ralph(0, "approve", "TASK-9"); !strings.Contains(said, "TASK-9 merged into") {
		t.Errorf("approve says %s", said)
	}
	w.git("cat-file", "-e", "HEAD:.github/workflows/ci0.yml")
	w.says("approved between runs", report.Figures{Tasks: 11, Merged: 9, Failed: 1, NeedsYou: 1, Proved: 9})

	if said := w.ralph(0, "undo", "1"); !strings.HasPrefix(said, "undone: TASK-1, commit ") {
		t.Errorf("undo says %s", said)
	}
	w.says("undone between runs", report.Figures{Tasks: 11, Merged: 8, Failed: 1, NeedsYou: 1, Undone: 1, Proved: 8})

	w.add("Own 9", "Own A", "Slow")
	run := w.command("run", "--parallel", "3")
	out, err := os.Create(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	run.Stdout = out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	events := w.follow(0)
	for events.next().TaskID != 15 {
	}
	for merged := 0; merged < 2; {
		if e := events.next(); e.Type == "change.merged" && e.TaskID > 12 {
			merged++
		}
	}
	if said := w.ralph(0, "approve", "TASK-10"); !strings.Contains(said, "the run in progress merges it next") {
		t.Errorf("approve says %s", said)
	}
	for e := events.next(); e.Type != "change.merged" || e.TaskID != 10; e = events.next() {
	}
	if said := w.ralph(0, "undo", "2"); !strings.HasPrefix(said, "undone: TASK-2, commit ") {
		t.Errorf("undo says %s", said)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run.Wait(); err != nil {
		t.Error(err)
	}
	said, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	// The run merged its own three tasks, the approved one, and an undo.
	second := report.Figures{Tasks: 5, Merged: 4, Undone: 1, Proved: 4}
	w.ran("second run", string(said))
	w.says("second run", second)

	w.ralph(0, "run")
	w.says("a run with nothing to do", second)

	// Undone stays undone, and the counts match the branch.
	if list := w.git("ls-files", "own0.txt", "own1.txt"); list != "" {
		t.Errorf("undone work is on the branch again: %s", list)
	}
	var all struct{ Figures report.Figures }
	if err := json.Unmarshal([]byte(w.ralph(0, "report", "--since", "1h", "--json")), &all); err != nil {
		t.Fatal(err)
	}
	all.Figures.Sessions = 0
	if want := (report.Figures{Tasks: 14, Merged: 11, Failed: 1, Undone: 2, Proved: 11}); all.Figures != want {
		t.Errorf("of all: %+v, want %+v", all.Figures, want)
	}
}

// TestApprovedInTheDashboardItIsMerged without a run, as in a terminal; so is an undo there.
func TestApprovedInTheDashboardItIsMerged(t *testing.T) {
	t.Parallel()
	w := &week{scriptedProject: newScriptedProject(t, weekScript("none"), "sandbox: off\npermissions: {guards: false}\n")}
	w.add("Held 0")
	w.ralph(4, "run")
	const token = "a-token-for-this-test-alone"
	w.env = append(w.env, bystander.TokenVariable+"="+token)
	d := serveProject(t, w.scriptedProject, "127.0.0.1:0")
	defer d.stop(t, 0)
	events := w.follow(0)
	send := func(path string, form url.Values) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(d.url, "/")+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if page, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v\n%.2000s", path, resp.Status, err, page)
		}
	}
	merged := func() {
		t.Helper()
		for events.next().Type != "change.merged" {
		}
	}
	item := strings.Fields(w.ralph(0, "inbox"))[0]
	send("/comments/"+strings.TrimPrefix(item, "C")+"/resolve", url.Values{"verdict": {"approve"}})
	merged()
	w.git("cat-file", "-e", "HEAD:.github/workflows/ci0.yml")
	send("/tasks/1/undo", url.Values{"why": {"not yet"}})
	merged()
	if list := w.git("ls-files", ".github"); list != "" {
		t.Errorf("undone work is on the branch: %s", list)
	}
	events.interrupt()
}

// TestAWaitingRunMergesApprovedWork, even while it waits for its hours.
func TestAWaitingRunMergesApprovedWork(t *testing.T) {
	t.Parallel()
	w := &week{scriptedProject: newScriptedProject(t, weekScript("none"), "sandbox: off\npermissions: {guards: false}\n")}
	w.add("Held 0")
	w.ralph(4, "run")
	w.add("Own 1")
	later := time.Now().Add(3 * time.Hour)
	run := w.command("run", "--between", later.Format("15:04")+"-"+later.Add(time.Hour).Format("15:04"))
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	events := w.follow(0)
	for events.next().Type != "run.waiting" {
	}
	if said := w.ralph(0, "approve", "TASK-1"); !strings.Contains(said, "the run in progress merges it next") {
		t.Errorf("approve says %s", said)
	}
	for events.next().Type != "change.merged" {
	}
	w.git("cat-file", "-e", "HEAD:.github/workflows/ci0.yml")
	w.ralph(0, "stop")
	if err := run.Wait(); err == nil {
		t.Error("the run ended as if nothing were left")
	}
	events.interrupt()
}
