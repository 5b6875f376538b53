package acp

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/permission"
	"ralph/internal/pipe"
	"ralph/loop/agent"
)

// The parts of the protocol's messages that ralph reads. A field of an unexpected type counts as absent.
type (
	initialized struct {
		Version   int `json:"protocolVersion"`
		AgentInfo struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"agentInfo"`
		Capabilities struct {
			Prompt struct {
				Image bool `json:"image"`
			} `json:"promptCapabilities"`
		} `json:"agentCapabilities"`
	}

	// began is the answer to session/new.
	began struct {
		SessionID string `json:"sessionId"`
		Options   []struct {
			ID       string `json:"id"`
			Category string `json:"category"`
			Value    any    `json:"currentValue"`
		} `json:"configOptions"`
		Models struct {
			Current string `json:"currentModelId"`
		} `json:"models"`
	}

	usage struct {
		Input       float64 `json:"inputTokens"`
		Output      float64 `json:"outputTokens"`
		CacheRead   float64 `json:"cachedReadTokens"`
		CacheCreate float64 `json:"cachedWriteTokens"`
		Total       float64 `json:"totalTokens"`
	}

	// ended is the answer to session/prompt.
	ended struct {
		StopReason string `json:"stopReason"`
		Usage      *usage `json:"usage"`
		Meta       struct {
			Quota struct {
				Tokens *struct {
					Input  float64 `json:"input_tokens"`
					Output float64 `json:"output_tokens"`
				} `json:"token_count"`
				Models []struct {
					Model string `json:"model"`
				} `json:"model_usage"`
			} `json:"quota"`
		} `json:"_meta"`
	}

	content struct {
		Type    string   `json:"type"`
		Text    string   `json:"text"`
		Content *content `json:"content"`
		Path    string   `json:"path"` // path of a diff
		Old     string   `json:"oldText"`
		New     string   `json:"newText"`
	}

	toolCall struct {
		ID        string          `json:"toolCallId"`
		Title     string          `json:"title"`
		Kind      string          `json:"kind"`
		Status    string          `json:"status"`
		RawInput  json.RawMessage `json:"rawInput"`
		Contents  contents        `json:"content"`
		Locations []struct {
			Path string `json:"path"`
		} `json:"locations"`
	}

	update struct {
		Update news `json:"update"`
	}

	// news is an agent's message or action in a turn.
	news struct {
		Kind string `json:"sessionUpdate"`
		toolCall
		Used float64 `json:"used"`
		Cost *struct {
			Amount   json.RawMessage `json:"amount"`
			Currency string          `json:"currency"`
		} `json:"cost"`
		Meta struct {
			Usage *usage `json:"usage"`
		} `json:"_meta"`
	}

	question struct {
		Call    toolCall `json:"toolCall"`
		Options []struct {
			ID   string `json:"optionId"`
			Kind string `json:"kind"`
		} `json:"options"`
	}
)

// model returns the model that a session begins with; option means that it is one of the session's options.
func (b began) model() (name string, option bool) {
	name = b.Models.Current
	for _, o := range b.Options {
		if value, ok := o.Value.(string); ok && o.ID == "model" {
			name, option = value, true
		}
	}
	return name, option
}

// contents are a list of blocks, or a single one.
type contents []content

// UnmarshalJSON accepts both forms and ignores any other.
func (c *contents) UnmarshalJSON(b []byte) error {
	var one content
	if *c = nil; tolerant(json.Unmarshal(b, (*[]content)(c))) != nil || *c == nil {
		if tolerant(json.Unmarshal(b, &one)) == nil && one.Type != "" {
			*c = contents{one}
		}
	}
	return nil
}

// text joins the text of the contents.
func (c contents) text() string {
	var b strings.Builder
	for _, one := range c {
		b.WriteString(one.Text)
		if one.Content != nil {
			b.WriteString(one.Content.Text)
		}
	}
	return b.String()
}

// read reads the known parts of a message.
func read[T any](b json.RawMessage) (v T) {
	_ = tolerant(json.Unmarshal(b, &v)) // a field of another type is absent
	return v
}

// tolerant forgives a value of an unexpected type.
func tolerant(err error) error {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// tokens converts a usage. Some agents count tokens read from a cache as input, as their total shows.
func (u usage) tokens() ralph.Tokens {
	t := ralph.Tokens{
		Input: count(u.Input), Output: count(u.Output), CacheRead: count(u.CacheRead), CacheCreation: count(u.CacheCreate),
	}
	if u.Total == u.Input+u.Output {
		t.Input = max(t.Input-t.CacheRead, 0)
	}
	return t
}

// count returns a number of the agent's, made harmless.
func count(f float64) int64 { return int64(min(max(f, 0), 1e12)) }

// input are the relevant fields of a tool's input. Each agent has its own names for them.
type input struct {
	Command  string `json:"command"`
	FilePath string `json:"file_path"`
	FileName string `json:"fileName"`
	Camel    string `json:"filePath"`
	Lower    string `json:"filepath"`
	Path     string `json:"path"`
	URL      string `json:"url"`
}

// paths returns the files that a call is about.
func (c toolCall) paths() (list []string) {
	in := read[input](c.RawInput)
	list = append(list, in.FilePath, in.FileName, in.Camel, in.Lower, in.Path)
	for _, l := range c.Locations {
		list = append(list, l.Path)
	}
	for _, one := range c.Contents {
		if one.Type == "diff" {
			list = append(list, one.Path)
		}
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(path string) bool { return path == "" })
}

// command returns the command of a call; "" if it has none.
func (p *Profile) command(c toolCall) string {
	if command := read[input](c.RawInput).Command; command != "" || !p.CommandInTitle {
		return command
	}
	return c.Title
}

// uses converts a question into tool uses for the permission rules. ok is false if it cannot be read.
func (p *Profile) uses(c toolCall) (uses []permission.Use, ok bool) {
	if p.Mine != nil && p.Mine(c) {
		return nil, true
	}
	paths := c.paths()
	diff := slices.ContainsFunc(c.Contents, func(one content) bool { return one.Type == "diff" })
	switch {
	case c.Kind == "execute":
		command := p.command(c)
		uses = append(uses, use("Bash", "command", command))
		if !diff {
			return uses, command != ""
		}
	case c.Kind == "fetch":
		url := read[input](c.RawInput).URL
		return append(uses, use("WebFetch", "url", url)), url != ""
	case c.Kind == "edit" || c.Kind == "delete" || c.Kind == "move" || diff:
		if len(paths) == 0 {
			return nil, false
		}
	case c.Kind == "read" || c.Kind == "search":
		for _, path := range paths {
			uses = append(uses, use("Read", "file_path", path))
		}
		return uses, true
	default:
		raw := c.RawInput
		if !json.Valid(raw) {
			raw = json.RawMessage("{}")
		}
		return []permission.Use{{Tool: c.Title, Input: raw}}, c.Title != ""
	}
	for _, path := range paths {
		uses = append(uses, use("Edit", "file_path", path))
	}
	return uses, true
}

func use(tool, field, value string) permission.Use {
	return permission.Use{Tool: tool, Input: json.RawMessage(jsonOf(map[string]string{field: value}))}
}

// server is ralph's MCP server in the form of a settings file.
func server(o Options, a agent.Assignment) map[string]any {
	return map[string]any{
		"command": o.MCPCommand[0], "args": o.MCPCommand[1:], "env": serverEnv(a),
	}
}

func serverEnv(a agent.Assignment) map[string]string {
	return map[string]string{
		pipe.Variable: a.Channel.Socket, pipe.Ticket: a.Channel.Ticket, "RALPH_SESSION_ID": a.SessionID,
	}
}
