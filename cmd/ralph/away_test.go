package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ralph/internal/pgtest"
)

// TestTheServerIsLost and restarted while a planner works, a person looks on, and a chat and a worker call tools: all
// continue.
func TestTheServerIsLost(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "", nil)
	gate := filepath.Join(t.TempDir(), "gate")
	s := newScriptedProject(t, fmt.Sprintf(`task *
  run touch %[1]s; while test -e %[1]s; do sleep 0.05; done; touch %[1]s.called
  call plan.task {"name": "english", "title": "Say hello in English", "files": ["en.txt"], "verify": ["test -f en.txt"]}
  call plan.done {"summary": "one task"}
`, gate), "sandbox: off\npermissions: {guards: false}\nverify: ['true']\n")
	s.env = append(s.env, "RALPH_DATABASE="+strings.Replace(server.URL, "/postgres?", "/ralph?", 1))
	s.ralph(0, "task", "add", "One")
	s.ralph(0, "task", "add", "Two")
	s.ralph(0, "chat", "claim", "1")
	chat := s.chat(nil)
	chat.want("list_task_comments", `{"task_id": "TASK-1"}`, "[]", false)
	worker := newClient(t, s.command("mcp", "--profile", "worker", "--tool-names", "underscore"))
	worker.want("claim_task", `{}`, "You hold TASK-2", false)

	plan := s.command("plan", "Say hello")
	var planned strings.Builder
	plan.Stdout, plan.Stderr = &planned, &planned
	if err := plan.Start(); err != nil {
		t.Fatal(err)
	}
	exists := func(name string) func() bool {
		return func() bool { _, err := os.Stat(name); return err == nil }
	}
	waitFor(t, exists(gate))
	watch := s.command("watch")
	said, err := watch.StdoutPipe()
	if err == nil {
		err = watch.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	see := func(what string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), what) {
				return
			}
		}
		t.Errorf("watch ends before %q", what)
	}
	see("▶ TASK-3 Plan: Say hello")

	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	go func() {
		chat.want("comment_on_task", `{"task_id": "TASK-1", "kind": "note", "body": "from the chat"}`, "", false)
		done <- true
	}()
	go func() {
		worker.want("ralph_signal_flag", `{"what": "from the worker", "severity": "info", "category": "bug"}`, "", false)
		done <- true
	}()
	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
	waitFor(t, exists(gate+".called"))
	if err := server.Restart(0); err != nil {
		t.Fatal(err)
	}
	<-done
	<-done
	see("TASK-3 done: one task")
	see("run.ended")
	if err := watch.Wait(); err != nil {
		t.Error(err)
	}
	if err := plan.Wait(); err != nil || !strings.Contains(planned.String(), "Say hello in English") {
		t.Errorf("%v\n%s", err, planned.String())
	}
	for task, want := range map[string]string{"1": "from the chat", "2": "from the worker"} {
		if said := s.ralph(0, "timeline", task); strings.Count(said, want) != 1 {
			t.Errorf("TASK-%s has not %q once\n%s", task, want, said)
		}
	}
}
