package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ralph/internal/tools/messagesapi"
)

// TestRealFirstTask: three commands to a first merged task, with no agent but one in PATH. The receipt names it, and
// of its own choice of a model, whose price is unknown, the tokens.
func TestRealFirstTask(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		stage   stageMaker
		program func(*testing.T) string
		by      string
	}{
		"codex":  {newCodexStage, realCodex, "codex " + codexVersion},
		"gemini": {newGeminiStage, realGemini, "gemini " + geminiVersion},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := of.stage(t, turns(bash("echo hi > hi.txt"), done("did it")))
			bin := filepath.Join(s.dir, "..", "bin-"+name)
			if err := os.MkdirAll(bin, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(of.program(t), filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
			// Nothing of the person's is on this PATH but the agent.
			kept := []string{bin}
			for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
				if _, err := os.Stat(filepath.Join(dir, "claude")); err != nil {
					kept = append(kept, dir)
				}
			}
			s.environ = []string{
				"PATH=" + strings.Join(kept, string(filepath.ListSeparator)), "SCRIPTED_KEY=k", "GEMINI_API_KEY=k",
				"GOOGLE_GEMINI_BASE_URL=" + s.api.URL, "RALPH_AGENT_ENV={SCRIPTED_KEY: $SCRIPTED_KEY}",
			}
			if err := os.Remove(filepath.Join(s.dir, "ralph.yaml")); err != nil {
				t.Fatal(err)
			}
			s.write(map[string]string{"Makefile": "test:\n\ttrue\n"})
			s.git("config", "user.name", "You")
			s.git("config", "user.email", "you@example.com")
			s.git("add", "-A")
			s.git("commit", "-qm", "first")
			s.has(s.run(0, "init"), "agent       "+name+" works, the only one in PATH")
			s.has(s.run(0, "run", "Make it", "--verify", "test -f hi.txt"), "merged")
			s.has(s.run(0, "task", "show", "1"), of.by, "cost unknown: 3750 tokens")
			s.has(s.run(0, "report", "-v"), of.by, "cost unknown: 3750 tokens")
			s.has(s.run(0, "report", "--json"), `"agent": "`+name+`"`, `"cost_known": false`)
		})
	}
}

// TestRealUnpricedCodex: eight tasks without prices are eight done, on money that is said as "about".
func TestRealUnpricedCodex(t *testing.T) {
	t.Parallel()
	s := newCodexStage(t, func(_ int, r messagesapi.Request) messagesapi.Turn {
		step := strings.Count(r.Body, `"function_call_output"`) // of its own conversation
		return turns(bash("date +%N > $RALPH_TASK_ID.txt"), done("did it"))(step, r)
	})
	s.write(map[string]string{"README": "x"})
	s.git("add", "-A")
	s.git("commit", "-qm", "first")
	s.replace("    prices: {gpt-5.5: [1.25, 0.125, 10]}\n", "")
	for range 8 {
		s.run(0, "task", "add", "Make", "--verify", "ls *.txt")
	}
	s.has(s.run(0, "run"), "8 merged", "about $")
}
