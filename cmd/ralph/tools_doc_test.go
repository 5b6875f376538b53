package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/internal/permission"
	"ralph/mcpserver"
)

// aboutProfiles has the purpose of each profile of `ralph mcp`.
var aboutProfiles = map[string]string{
	"loop":   "Tools of each session of `ralph run`. The agent's program uses `ralph.permission`, not the model.",
	"chat":   "For [people's own work](human.md) with a chat.",
	"worker": "For [agents that pull tasks](workers.md). With `--scopes tasks:read` the tools that change something are missing; `--tool-names` chooses the form of signals' names.",
}

// toolReference describes each profile of `ralph mcp` as a client sees it.
func toolReference(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(generated + `# MCP tools

` + "`ralph mcp --profile NAME`" + ` serves a profile on stdio or HTTP. ralph refuses a wrong call with an explanation, and records nothing. Names and
fields are stable; optional fields may be added. Fields behind "also" are described above.
`)
	said := map[string]bool{}    // what was said of fields, and which tool to choose
	known := map[string]string{} // the profile in which a tool was described, by what was said of it
	for _, profile := range profiles(t) {
		fmt.Fprintf(&b, "\n## Profile %s\n\n%s\n", profile, aboutProfiles[profile])
		client := profileClient(t, profile)
		tools, err := client.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		same := map[string][]string{} // the tools that were described with an earlier profile, by that
		for _, tool := range tools.Tools {
			description := tool.Description + "\n" + fields(t, tool.InputSchema)
			if elsewhere := known[description]; elsewhere != "" {
				same[elsewhere] = append(same[elsewhere], "`"+tool.Name+"`")
				continue
			}
			known[description] = profile
			words, choice, found := strings.Cut(tool.Description, " Which one to use")
			if found && !said[choice] {
				words, said[choice] = tool.Description, true
			}
			fmt.Fprintf(&b, "\n### `%s`\n\n%s\n\n", tool.Name, words)
			var also []string
			for line := range strings.Lines(strings.TrimPrefix(description, tool.Description+"\n")) {
				field, meaning, _ := strings.Cut(strings.TrimSpace(line), ": ")
				name, _, _ := strings.Cut(strings.TrimPrefix(field, "- "), " ")
				switch key := name + meaning; {
				case field == "":
				case said[key] || meaning == "" && said[name]:
					if strings.HasSuffix(field, ", optional") {
						name += " (optional)"
					}
					also = append(also, name)
				default:
					said[key], said[name] = true, true
					b.WriteString(line)
				}
			}
			if also != nil {
				fmt.Fprintf(&b, "- also %s\n", strings.Join(also, ", "))
			}
		}
		for _, elsewhere := range slices.Sorted(maps.Keys(same)) {
			fmt.Fprintf(&b, "\nAs in the profile %s: %s.\n", elsewhere, strings.Join(same[elsewhere], ", "))
		}
		describeRest(t, &b, client)
	}
	return b.String()
}

// describeRest describes a profile's resources and prompts.
func describeRest(t *testing.T, b *strings.Builder, client *mcp.ClientSession) {
	t.Helper()
	can := client.InitializeResult().Capabilities
	if can.Resources != nil {
		list, err := client.ListResources(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		templates, err := client.ListResourceTemplates(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Resources)+len(templates.ResourceTemplates) > 0 {
			b.WriteString("\n| resource | holds |\n|---|---|\n")
		}
		for _, r := range list.Resources {
			fmt.Fprintf(b, "| `%s` | %s |\n", r.URI, r.Description)
		}
		for _, r := range templates.ResourceTemplates {
			fmt.Fprintf(b, "| `%s` | %s |\n", r.URITemplate, r.Description)
		}
	}
	if can.Prompts != nil {
		list, err := client.ListPrompts(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Prompts) > 0 {
			b.WriteString("\n| prompt | says |\n|---|---|\n")
		}
		for _, p := range list.Prompts {
			fmt.Fprintf(b, "| `%s` | %s |\n", p.Name, p.Description)
		}
	}
}

// profiles returns the profiles that the command accepts.
func profiles(t *testing.T) []string {
	t.Helper()
	root := newRoot(&app{out: io.Discard, err: io.Discard})
	root.SetArgs([]string{"mcp", "--profile", "no such profile"})
	err := root.ExecuteContext(t.Context())
	var wrong *ralph.FieldError
	if !errors.As(err, &wrong) {
		t.Fatal("the profiles cannot be told: ", err)
	}
	return wrong.Accepted
}

// profileClient is connected to a server in a process of its own, as a client's is.
func profileClient(t *testing.T, profile string) *mcp.ClientSession {
	t.Helper()
	binary, err := exec.LookPath("ralph")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Dir = dir
		return cmd
	}
	wantStatus(t, command("init", "--git"), 1) // no agent is there
	wantStatus(t, command("task", "add", "A task"), 0)
	server := command("mcp", "--profile", profile)
	if profile == "loop" {
		server = command("mcp")
		c := channelOf(t, mcpserver.Session{Rules: &permission.Rules{}})
		server.Env = append(os.Environ(), "RALPH_CHANNEL="+c.Socket(), "RALPH_TICKET="+c.Ticket())
	}
	return newClient(t, server).session
}

// channelOf returns the channel of a session that this process serves.
func channelOf(t *testing.T, s mcpserver.Session) *mcpserver.Channel {
	t.Helper()
	folder, err := os.MkdirTemp("", "channel-*") // short
	if err != nil {
		t.Fatal(err)
	}
	c, err := mcpserver.OpenChannel(s, folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), os.RemoveAll(folder)); err != nil {
			t.Error(err)
		}
	})
	return c
}

// fields describes the input of a tool.
func fields(t *testing.T, input any) string {
	t.Helper()
	text, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]struct {
			Type        any
			Description string
			Enum        []string
			Items       struct{ Type string }
		}
		Required []string
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	if len(schema.Properties) == 0 {
		return ""
	}
	var names []string
	for name := range schema.Properties {
		names = append(names, name)
	}
	// Required ones first.
	sort.Slice(names, func(i, j int) bool {
		a, b := slices.Contains(schema.Required, names[i]), slices.Contains(schema.Required, names[j])
		return a && !b || a == b && names[i] < names[j]
	})
	var b strings.Builder
	b.WriteString("\n")
	for _, name := range names {
		p := schema.Properties[name]
		kind := strings.ReplaceAll(strings.Trim(fmt.Sprint(p.Type), "[]"), " ", " or ")
		if p.Type == nil {
			kind = "any"
		}
		if p.Items.Type != "" {
			kind = "array of " + p.Items.Type
		}
		if !slices.Contains(schema.Required, name) {
			kind += ", optional"
		}
		meaning := p.Description
		if len(p.Enum) > 0 {
			meaning = strings.TrimPrefix(strings.TrimSuffix(meaning, ".")+"; one of `"+strings.Join(p.Enum, "`, `")+"`", "; ")
		}
		fmt.Fprintf(&b, "- `%s` %s: %s\n", name, kind, meaning)
	}
	return b.String()
}
