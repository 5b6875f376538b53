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
		item("Sees ralph's tools as", code(p.Signal(ralph.VerbDone))+", by "+string(p.MCP))
		item("Variables of ralph's environment that reach it", accounts(p, last)...)
		item("Its own folders", codes(p.Home)...)
		item("Another place for its folder", code(elsewhere(p)))
		item("Of these it may change", codes(p.Data)...)
		item("Each session has a copy of", codes(p.Replaced)...)
		if p.Note != "" {
			fmt.Fprintf(&b, "- %s\n", p.Note)
		}
		if p.NoServers != "" {
			fmt.Fprintf(&b, "- It has no other servers of tools than ralph's: %s.\n", p.NoServers)
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

// accounts names the variables of an agent's account; those of every provider stand with the last agent.
func accounts(p, last *agent.Profile) []string {
	rest := slices.DeleteFunc(slices.Clone(p.Variables.Account), func(name string) bool {
		return slices.Contains(last.Variables.Account, name)
	})
	if p == last || len(p.Variables.Account)-len(rest) < len(last.Variables.Account) {
		return codes(p.Variables.Account)
	}
	return append(codes(rest), "those of [any other agent](#any-other-agent-of-the-protocol)")
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

// badDays is the section on what ends are taken for.
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

What the end of an agent was is decided by one rule, whichever agent it is. The table is tested with recordings of the real ones, and with
the real ones against scripted APIs. None of these is an attempt at the task, or costs more than the tokens that were seen (at least one
request, where it was cut off in one). In the report, the run's lines and ` + "`ralph task show`" + ` stand the agent's own words.

| it was | a stand-in works | without one |
|---|---|---|
%s
` + "`429 once`" + ` is a request that is refused once, ` + "`later`" + ` is after work was done. codex was told to try nothing again. Silence for
` + "`limits.idle_timeout`" + ` while the model was to answer is a limit: qwen tries again for longer without a word. So end claude, codex, gemini, copilot, opencode and qwen:

`

// follows says what happens after an ending where nobody stands in.
var follows = []struct {
	ending ralph.Ending
	then   string
}{
	{ralph.AuthFailed, "the run ends with status 6"},
	{ralph.Billing, "the run ends with status 6"},
	{ralph.NoWork, "it is tried once more, then the run ends with status 6: the model is unknown, or it was not ready after two minutes"},
	{ralph.RateLimited, "the run waits, until the limit's end where that is told"},
	{ralph.Overloaded, "the run waits"},
	{ralph.Network, "the run waits"},
	{ralph.PromptTooLong, "the task is tried with half the prompt, then a quarter, and then waits for you as failed"},
	{ralph.Lost, "the task is tried again, later each time"},
}

const intro = `# Agents

<!-- Generated from the profiles in loop/agent by "go test ./loop/agent/kinds -update". Do not edit. -->

Claude Code is built in, and what is set in ` + "`agent`" + ` is its own. Others work when they are named:

` + "```yaml" + `
agents:
  gemini: {}                                  # a name of the table below is enough
  codex: {model: gpt-5.5, prices: {gpt-5.5: [5, 0.5, 30]}}   # USD per million: input, cached, output
  local: {kind: opencode, model: ollama/qwen3}
  goose: {kind: acp, command: [goose, acp]}   # whatever speaks the Agent Client Protocol
  other: {kind: command, command: [my-agent, --stdin], unguarded: false}
agent:
  use: gemini                                 # where nothing else is said
  fallback: [codex, claude]                   # while its account is limited
` + "```" + `

Who works on a task is said by ` + "`ralph run --agent NAME`" + `, else by the task (` + "`ralph task add --agent NAME`" + `), else by its discipline, else
by ` + "`agent.use`" + `. An agent that is not configured is never started. All are launched, held, checked and
ended in the same way. If an agent has not listed ralph's tools when its first turn ends, or after a minute, the session ends as ` + "`mcp_failed`" + `.

- **Permissions.** The rules of [permissions](howto/permissions.md) hold for every agent that asks, by the same names: a command is ` + "`Bash(…)`" + `, an edit
  ` + "`Edit(…)`" + `, an address ` + "`WebFetch(…)`" + `, anything else the tool's own name. What cannot be read of a question is refused. An agent
  that asks nobody works in a sandbox, or with ` + "`unguarded: true`" + `.
- **Money.** A cost that the agent tells counts as it is told, and so do its tokens at the ` + "`prices`" + ` that you set. Other tokens count at list
  prices (of ` + agent.PricesOf + `), which is said as "about". A model of which ralph knows no price has an unknown cost: its tokens are
  counted, and held by ` + "`limits.session_tokens`" + ` or, without it, by the money's limits at the dearest list price. Of a session that called
  its model and told nothing, a request each ten seconds is charged, or those that its uses of tools show. ralph ends a session that passes its limit.
- **Limits.** What is known of them is the account's: with another login or key the next run asks anew.
- **Models.** ` + "`model`" + ` of an agent goes for its sessions; one that stands in for another knows no model but its own.
- **Effort.** Behind each name of a model, of an agent, a task, a discipline, a reviewer or ` + "`--model`" + `, may stand how much it is to
  reason: ` + "`opus@high`, or `@low`" + ` for the agent's own model. It is one of ` + "`none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`" + `,
  of which a model may know a few.
- **Servers of tools.** With ` + "`agent.mcp: approved`" + ` agents have the servers of the project's ` + "`.mcp.json`" + ` beside ralph's, in their own sandbox.
  What counts is the file on the branch into which the work is merged. ` + "`${NAME}` and `${NAME:-default}`" + ` are variables of the agent's environment. The rules of permissions hold for their tools as
  ` + "`mcp__SERVER__TOOL`" + ` or as the agent names them.
- **Pictures.** What a task's description, a comment or a message names as a Markdown image (its path) is shown to an agent whose protocol takes
  pictures: up to eight files of the project, committed or in your folder alone, of at most 4 MiB each. Others read the name.

`
