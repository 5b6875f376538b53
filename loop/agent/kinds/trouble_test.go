package kinds_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/config"
	"ralph/loop/agent"
	"ralph/loop/agent/claude"
	"ralph/loop/agent/kinds"
	"ralph/loop/agent/process"
)

// troubled are the agents whose bad days were recorded, in the order of docs/agents.md; so are troubles.
var (
	troubled = strings.Fields("claude codex gemini copilot opencode qwen")
	troubles = strings.Fields("401 402 403 429-once 429 429-later 500 529 too-large too-large-later no-model refused " +
		"hangs no-credit logged-out killed garbage")
)

// An end is how the session of a recording ended.
type end struct {
	Exit    *int
	Stopped bool // ralph stopped it, as its time was up
	Silent  bool // or as it was silent
	Killed  bool
	Stderr  string
}

func (e end) death() agent.Death {
	d := agent.Death{Code: -1, Stderr: e.Stderr}
	switch {
	case e.Stopped:
		d.Stopped, d.After, d.Silent = true, 10*time.Minute, e.Silent
	case e.Killed:
		d.Signal = "SIGKILL"
	case e.Exit != nil:
		d.Code = *e.Exit
	}
	return d
}

// A judged has the result of a recording.
func judged(t *testing.T, name, trouble string, e end) agent.Report {
	t.Helper()
	all, err := kinds.Configured(config.Config{Agents: config.Agents{name: {}}, Agent: config.Agent{Use: name}},
		claude.Options{Options: process.Options{Command: []string{"claude"}, MCPCommand: []string{"/usr/bin/ralph", "mcp"}}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "troubles", name, trouble+".jsonl"))
	dir := t.TempDir()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, agent.TranscriptFile), text, 0o600)
	}
	var r agent.Report
	if err == nil {
		r, err = all[name].Salvage(dir, e.death())
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTroubles replays real agents on bad days. None is an attempt at the task, and each costs the seen tokens.
func TestTroubles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "troubles", "ends.json"))
	ends := map[string]end{}
	if err == nil {
		err = json.Unmarshal(text, &ends)
	}
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, name := range troubled {
		for _, trouble := range troubles {
			e, ok := ends[name+"/"+trouble]
			if !ok {
				t.Errorf("%s/%s was not recorded", name, trouble)
				continue
			}
			r := judged(t, name, trouble, e)
			cost := fmt.Sprintf("$%.4f", r.CostUSD)
			if !r.CostKnown {
				cost = "about " + cost
			}
			fmt.Fprintf(&b, "%-9s %-15s %-15s %-13s %s\n", name, trouble, r.Ending, cost, r.Reason)
			if trouble == "429-once" { // it went on by itself
				continue
			}
			if r.Ending != ralph.Lost && !r.Ending.AgentError() {
				t.Errorf("%s/%s: %s (%s), which counts as an attempt", name, trouble, r.Ending, r.Reason)
			}
			if r.Tokens.Sum() == 0 && r.CostUSD > 0 && r.CostKnown && name != "opencode" { // which tells of its cost first
				t.Errorf("%s/%s: costs $%f without a token", name, trouble, r.CostUSD)
			}
		}
	}
	golden := filepath.Join("testdata", "troubles", "verdicts.txt")
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		was := strings.Split(string(want), "\n")
		for _, line := range strings.Split(got, "\n") {
			if !slices.Contains(was, line) {
				t.Errorf("%s is stale: run `go test ./loop/agent/kinds -update`; new:\n%s", golden, line)
			}
		}
	}
}
