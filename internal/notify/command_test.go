package notify_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ralph/internal/notify"
)

// shell returns a receiver that runs a shell command in dir.
func shell(t *testing.T, dir, command string) notify.Receiver {
	t.Helper()
	return notify.Receiver{Command: []string{"/bin/sh", "-c", command}, Preset: notify.Generic, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH"), "COLOUR=red"}}
}

func TestACommandGetsTheEventOnStandardInput(t *testing.T) {
	p := newProject(t)
	defer p.close()
	p.ask("red or blue?")
	dir := t.TempDir()
	p.deliver(p.notifier(shell(t, dir, `cat > in; printf "$RALPH_EVENT $COLOUR" > env`)))
	body, err := os.ReadFile(filepath.Join(dir, "in"))
	if err != nil {
		t.Fatal(err, p.logged())
	}
	var n notify.Notification
	if err := json.Unmarshal(body, &n); err != nil {
		t.Fatal(err)
	}
	if n.Type != notify.QuestionAsked || n.Data.Question != "red or blue?" || n.ID == "" {
		t.Errorf("got %s", body)
	}
	if env, err := os.ReadFile(filepath.Join(dir, "env")); err != nil || string(env) != "question.asked red" {
		t.Errorf("got %q, %v", env, err)
	}
}

func TestCommandsThatDoNotTakeIt(t *testing.T) {
	tests := []struct {
		name, command, want string
	}{
		{"one that fails", "echo no such channel >&2; exit 3", "exited with 3: no such channel"},
		{"one that is killed", "kill -9 $$", "was ended by SIGKILL"},
		{"one that takes too long", "sleep 1000", "took longer than"},
		{"one that reads nothing", "exit 0", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newProject(t)
			defer p.close()
			n := p.notifier(shell(t, t.TempDir(), tt.command))
			if tt.command == "sleep 1000" {
				n.Timeout = 200 * time.Millisecond
			}
			results, err := n.Test(t.Context(), time.Now())
			if err != nil || len(results) != 1 {
				t.Fatal(results, err)
			}
			if got := results[0].Error; !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("one that is not there is not tried again", func(t *testing.T) {
		p := newProject(t)
		defer p.close()
		p.ask("one")
		p.deliver(p.notifier(notify.Receiver{Command: []string{"no-such-command"}, Preset: notify.Generic, Dir: t.TempDir()}))
		if !strings.Contains(p.logged(), "a notification was dropped") {
			t.Errorf("logged: %s", p.logged())
		}
	})
}

// TestNothingOfACommandLivesOn waits for the end of a command's leftover processes.
func TestNothingOfACommandLivesOn(t *testing.T) {
	p := newProject(t)
	defer p.close()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "alive")
	n := p.notifier(shell(t, dir, `mkfifo alive; exec 3<>alive; setsid sleep 1000 & exit 0`))
	if results, err := n.Test(t.Context(), time.Now()); err != nil || results[0].Error != "" {
		t.Fatal(results, err)
	}
	// With a reader left the pipe could be opened for writing.
	w, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		w.Close()
		t.Error("a process that the command left is still alive")
	}
}
