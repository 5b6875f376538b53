package kinds_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
		{"asks permission", func(p *agent.Profile) string {
			return map[agent.Guard]string{
				agent.Hook: "yes, with reasons", agent.Question: "yes; reasons in the next prompt",
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
			return "after its turn"
		}},
		{"reports cost", func(p *agent.Profile) string { return string(p.Cost) }},
		{"reports tokens", func(p *agent.Profile) string { return string(p.Tokens) }},
		{"reports limits", limits},
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
	b.WriteString(badDays(t))
	last := kinds.Profiles[len(kinds.Profiles)-1] // of any provider
	for _, p := range kinds.Profiles {
		fmt.Fprintf(&b, "\n## %s\n\n", p.Title)
		item := func(what string, said ...string) {
			if text := strings.Join(said, ", "); text != "" {
				fmt.Fprintf(&b, "- %s: %s\n", what, text)
			}
		}
		item("Install", code(p.Install))
		item("Credentials", p.LogIn)
		item("ralph's tools", code(p.Signal(ralph.VerbDone))+", by "+string(p.MCP))
		item("Its variables", accounts(p, last)...)
		item("Folders", codes(p.Home)...)
		item("Moves its folder", code(elsewhere(p)))
		item("Writable", codes(p.Data)...)
		item("Copied for each session", codes(p.Replaced)...)
		if p.Note != "" {
			fmt.Fprintf(&b, "- %s\n", p.Note)
		}
		if p.NoServers != "" {
			fmt.Fprintf(&b, "- No MCP servers beside ralph's: %s.\n", p.NoServers)
		}
		if p.RefusalEnds && p.Guard != agent.None {
			b.WriteString("- A refused permission ends its turn; ralph gives the reason and continues.\n")
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
		{p.SilentRetry, "no: it retries silently until idle"},
		{p.Windows, "use"},
		{p.ResetTime, "reset"},
	} {
		if f.is {
			said = append(said, f.text)
		}
	}
	if said == nil && p.Guard == agent.None {
		return "no"
	}
	if said == nil {
		return "when reached"
	}
	return strings.Join(said, ", ")
}

// accounts names the variables of an agent's account; those of every provider stand with the last agent.
func accounts(p, last *agent.Profile) []string {
	rest := slices.DeleteFunc(slices.Clone(p.Variables.Account), func(name string) bool {
		return slices.Contains(last.Variables.Account, name)
	})
	if p == last || len(p.Variables.Account)-len(rest) < len(last.Variables.Account) {
		return codes(p.Variables.Account)
	}
	return append(codes(rest), "and [any other agent's](#any-other-agent-of-the-protocol)")
}

// elsewhere returns the variable that moves an agent's folder, as a path.
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

// badDays returns the section on endings.
func badDays(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "troubles", "verdicts.txt"))
	if err != nil {
		t.Fatal(err)
	}
	was := map[string]string{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		was[f[0]+"/"+f[1]] = strings.ReplaceAll(f[2], "_", " ")
	}
	var b strings.Builder
	var then strings.Builder
	for _, f := range follows {
		instead := map[bool]string{true: "yes", false: "no"}[f.ending.StandsIn()]
		fmt.Fprintf(&then, "| %s | %s | %s |\n", strings.ReplaceAll(string(f.ending), "_", " "), instead, f.then)
	}
	fmt.Fprintf(&b, badDay, then.String())
	alike := map[string][]string{} // troubles that all agents end with in the same way
	var order []string
	var others strings.Builder
	for _, trouble := range troubles {
		name := "`" + strings.ReplaceAll(trouble, "-", " ") + "`"
		by := map[string][]string{}
		var ends []string
		for _, who := range troubled {
			end := was[who+"/"+trouble]
			if by[end] == nil {
				ends = append(ends, end)
			}
			by[end] = append(by[end], who)
		}
		if len(ends) == 1 {
			if alike[ends[0]] == nil {
				order = append(order, ends[0])
			}
			alike[ends[0]] = append(alike[ends[0]], name)
			continue
		}
		slices.SortStableFunc(ends, func(x, y string) int { return len(by[y]) - len(by[x]) })
		for i, end := range ends {
			if ends[i] += " with " + strings.Join(by[end], ", "); i == 0 {
				ends[i] = end
			}
		}
		fmt.Fprintf(&others, "- %s: %s\n", name, strings.Join(ends, ", but "))
	}
	for _, end := range order {
		fmt.Fprintf(&b, "- %s: %s\n", strings.Join(alike[end], ", "), end)
	}
	b.WriteString(others.String())
	return b.String()
}

const badDay = `
## On a bad day

One rule decides how a session of any agent ended. Recordings of the real agents, and scripted APIs, test it. None of these endings is an attempt at
the task, or costs more than the tokens that ralph saw (at least one request). Reports have the agent's own words.

| ending | a stand-in works | without one |
|---|---|---|
%s
With claude, codex, gemini, copilot, opencode and qwen, answers of the service lead to these endings. ` + "`429 once`" + ` is one refused request, ` + "`later`" + ` follows
finished work, ` + "`hangs`" + ` is silence for ` + "`limits.idle_timeout`" + `:

`

// follows has the consequence of an ending without a stand-in.
var follows = []struct {
	ending ralph.Ending
	then   string
}{
	{ralph.AuthFailed, "the run ends with status 6"},
	{ralph.Billing, "the run ends with status 6"},
	{ralph.NoWork, "one retry, then the run ends with status 6: an unknown model, or not ready after two minutes"},
	{ralph.RateLimited, "the run waits, until the reset if it is known"},
	{ralph.Overloaded, "the run waits"},
	{ralph.Network, "the run waits"},
	{ralph.PromptTooLong, "half the prompt, then a quarter, then the task fails"},
	{ralph.Lost, "a retry, later each time"},
}

const intro = `# Agents

<!-- Generated from the profiles in loop/agent by "go test ./loop/agent/kinds -update". Do not edit. -->

Claude Code is built in; the keys of ` + "`agent`" + ` are its own. Name others to use them:

` + "```yaml" + `
agents:
  gemini: {}                                  # a name of the table below is enough
  codex: {model: gpt-5.5, prices: {gpt-5.5: [5, 0.5, 30]}}   # USD per million: input, cached, output
  local: {kind: opencode, model: ollama/qwen3}
  goose: {kind: acp, command: [goose, acp]}   # any agent of the Agent Client Protocol
  other: {kind: command, command: [my-agent, --stdin], unguarded: false}
agent:
  use: gemini
  fallback: [codex, claude]                   # while its account is limited
` + "```" + `

The first of these names the agent: ` + "`ralph run --agent NAME`" + `, the task (` + "`ralph task add --agent NAME`" + `), its discipline, ` + "`agent.use`" + `.
ralph never starts an agent that is not configured. If an agent has not listed ralph's tools after its first turn, or after a minute, the session ends as
` + "`mcp_failed`" + `.

- **Permissions.** [Rules](howto/permissions.md) hold for every agent that asks: ` + "`Bash(…)`" + ` for commands, ` + "`Edit(…)`" + ` for edits,
  ` + "`WebFetch(…)`" + ` for addresses, else the tool's own name. ralph refuses unreadable questions. An agent that does not ask needs a sandbox, or
  ` + "`unguarded: true`" + `.
- **Money.** A reported cost counts as reported, tokens at your ` + "`prices`" + `, else at list prices (of ` + agent.PricesOf + `), shown as "about". For an
  unknown model ralph limits the tokens: to ` + "`limits.session_tokens`" + `, or to the budget at the highest list price. For a session that
  reports nothing ralph counts a request each ten seconds, or its tool calls. ralph ends a session that passes its limit.
- **Models.** An agent's ` + "`model`" + ` applies to its sessions. A stand-in uses its own model.
- **Effort.** ` + "`@none`, `@minimal`, `@low`, `@medium`, `@high`, `@xhigh` or `@max`" + ` may follow any model's name: ` + "`opus@high`" + `, or
  ` + "`@low`" + ` for the agent's own model. Not every model knows all of them.
- **MCP servers.** With ` + "`agent.mcp: approved`" + ` agents also get the servers of ` + "`.mcp.json`" + ` on the target branch, in their own sandbox.
  ` + "`${NAME}` and `${NAME:-default}`" + ` are variables of the agent's environment. Permissions name their tools ` + "`mcp__SERVER__TOOL`" + `.
- **Pictures.** A Markdown image in a description, comment or message goes to agents with a protocol for pictures: up to eight of the project's files,
  4 MiB each. Others read the name.

`
