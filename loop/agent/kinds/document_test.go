package kinds_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ralph"
	"ralph/loop/agent"
	"ralph/loop/agent/kinds"
)

var update = flag.Bool("update", false, "write docs/agents.md")

// TestDocumentOfAgents checks docs/agents.md against the profiles.
func TestDocumentOfAgents(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(intro)
	columns := []struct {
		title string
		of    func(p *agent.Profile) string
	}{
		{"profile", func(p *agent.Profile) string { return "`" + p.Name + "`" }},
		{"agent", func(p *agent.Profile) string { return p.Title }},
		{"kind", func(p *agent.Profile) string { return p.Kind }},
		{"tried with", func(p *agent.Profile) string { return p.Tested }},
		{"command", func(p *agent.Profile) string { return code(strings.Join(p.Command, " ")) }},
		{"asks what it may do", func(p *agent.Profile) string {
			return map[agent.Guard]string{
				agent.Hook: "yes, and is told why not", agent.Question: "yes; why not it is told in its next prompt",
				agent.None: "no: a sandbox, or `unguarded: true`",
			}[p.Guard]
		}},
		{"hears comments", func(p *agent.Profile) string {
			switch {
			case p.MCP == agent.ByChannel:
				return "in its next session"
			case p.Steered:
				return "at once"
			}
			return "when its turn ends"
		}},
		{"tells its cost", func(p *agent.Profile) string { return string(p.Cost) }},
		{"tells its tokens", func(p *agent.Profile) string { return string(p.Tokens) }},
		{"knows limits", limits},
	}
	row := func(cell func(i int) string) {
		for i := range columns {
			fmt.Fprintf(&b, "| %s ", cell(i))
		}
		b.WriteString("|\n")
	}
	row(func(i int) string { return columns[i].title })
	row(func(int) string { return "---" })
	for _, p := range kinds.Profiles {
		row(func(i int) string { return columns[i].of(p) })
	}
	for _, p := range kinds.Profiles {
		fmt.Fprintf(&b, "\n## %s\n\n", p.Title)
		item := func(what string, said ...string) {
			if text := strings.Join(said, ", "); text != "" {
				fmt.Fprintf(&b, "- %s: %s\n", what, text)
			}
		}
		item("Install", code(p.Install))
		item("Credentials", p.LogIn)
		item("Sees ralph's tools as", code(p.Signal(ralph.VerbDone))+", by "+string(p.MCP))
		item("Variables of ralph's environment that reach it", codes(p.Variables.Account)...)
		item("Its own folders", codes(p.Home)...)
		item("Another place for its folder", code(elsewhere(p)))
		item("Of these it may change", codes(p.Data)...)
		item("Each session has a copy of", codes(p.Replaced)...)
		if p.Note != "" {
			fmt.Fprintf(&b, "- %s\n", p.Note)
		}
		if p.RefusalEnds && p.Guard != agent.None {
			b.WriteString("- A refused permission ends its turn; ralph tells it why and has it go on.\n")
		}
	}
	path := filepath.Join("..", "..", "..", "docs", "agents.md")
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(is, b.Bytes()) {
		t.Errorf("%s is stale: run `go test ./loop/agent/kinds -update` and read the difference", path)
	}
}

func limits(p *agent.Profile) string {
	var said []string
	for _, f := range []struct {
		is   bool
		text string
	}{
		{p.SilentRetry, "no: it tries again without a word, until it is idle"},
		{p.Windows, "how far they are used"},
		{p.ResetTime, "when they end"},
	} {
		if f.is {
			said = append(said, f.text)
		}
	}
	if said == nil && p.Guard == agent.None {
		return "no"
	}
	if said == nil {
		return "that one is reached"
	}
	return strings.Join(said, ", ")
}

// elsewhere is the variable that moves an agent's folder, as a path.
func elsewhere(p *agent.Profile) string {
	if p.HomeVariable == "" {
		return ""
	}
	return "$" + p.HomeVariable
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func codes(list []string) []string {
	shown := make([]string, len(list))
	for i, s := range list {
		shown[i] = code(s)
	}
	return shown
}

const intro = `# Agents

<!-- Generated from the profiles in loop/agent by "go test ./loop/agent/kinds -update". Do not edit. -->

Claude Code is built in, and what is set in ` + "`agent`" + ` is its own. Others work when they are named:

` + "```yaml" + `
agents:
  gemini: {}                                  # a name of the table below is enough
  codex: {model: gpt-5.5, prices: {gpt-5.5: [1.25, 0.125, 10]}}
  local: {profile: opencode, model: ollama/qwen3}
  goose: {kind: acp, command: [goose, acp]}   # whatever speaks the Agent Client Protocol
  other: {kind: command, command: [my-agent, --stdin], unguarded: false}
agent:
  use: gemini                                 # where nothing else is said
  fallback: [codex, claude]                   # while its account is limited
` + "```" + `

Who works on a task is said by ` + "`ralph run --agent NAME`" + `, else by the task (` + "`ralph task add --agent NAME`" + `), else by its discipline, else
by ` + "`agent.use`" + `. An agent that is not configured is never started. All of them are launched, held, frozen at a ` + "`done`" + `, checked and
ended in the same way; the verdict comes from ralph's own tools and from the checks alone. That the tools have reached the agent ralph
knows from its own side: if none was listed when the first turn ends, or after a minute, the session ends as ` + "`mcp_failed`" + `.

- **Permissions.** The rules of [permissions](permissions.md) hold for every agent that asks, by the same names: a command is ` + "`Bash(…)`" + `, an edit
  ` + "`Edit(…)`" + `, an address ` + "`WebFetch(…)`" + `, anything else the tool's own name. What cannot be read of a question is refused. An agent
  that asks nobody works in a sandbox, or with ` + "`unguarded: true`" + `.
- **Money.** A cost that the agent tells counts as it is told. Tokens alone are multiplied by ` + "`prices`" + `: of a model without a price those of the dearest,
  marked as an estimate. Of an agent that tells nothing, or was cut off before it did, a session counts as its whole
  ` + "`limits.session_cost_usd`" + `. ralph ends a session whose known cost passes its limit.
- **Limits.** What is known of them is the account's: with another login or key the next run asks anew.
- **Models.** ` + "`model`" + ` of an agent goes for its sessions; one that stands in for another knows no model but its own.

`
