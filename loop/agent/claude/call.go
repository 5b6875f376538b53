package claude

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"ralph/internal/text"
	"ralph/loop/agent"
)

// kinds maps the CLI's own tools to kinds of events; all other tools are agent.Called.
var kinds = map[string]agent.Kind{
	"Read": agent.Read, "Grep": agent.Read, "Glob": agent.Read, "LS": agent.Read, "NotebookRead": agent.Read,
	"WebFetch": agent.Read, "WebSearch": agent.Read,
	"Edit": agent.Edited, "Write": agent.Edited, "MultiEdit": agent.Edited, "NotebookEdit": agent.Edited,
	"Bash": agent.Ran,
	"Task": agent.Asked, "Agent": agent.Asked,
}

// MainField returns the input field with the subject of a tool call; "" if unknown.
func MainField(tool string) string {
	switch kind := kinds[tool]; {
	case kind == agent.Ran:
		return "command"
	case strings.HasPrefix(tool, "Notebook"):
		return "notebook_path"
	case kind == agent.Edited || tool == "Read":
		return "file_path"
	}
	return ""
}

// toolName returns a tool's name for people: ralph's tools without Claude's prefix.
func toolName(name string) string {
	if own, ok := strings.CutPrefix(name, ToolPrefix); ok {
		return strings.TrimPrefix(own, "ralph_")
	}
	return name
}

// maxPairs is the most fields that are shown of an unknown tool's input.
const maxPairs = 6

// input has the fields of tools' inputs that ralph looks at.
type input struct {
	Command    string
	Background bool   `json:"run_in_background"`
	FilePath   string `json:"file_path"`
	Notebook   string `json:"notebook_path"`
	Offset     int
	Limit      int
	Path       string
	Pattern    string
	Content    string
	NewSource  string `json:"new_source"`
	edit
	Edits       []edit
	Subagent    string `json:"subagent_type"`
	Description string
	Prompt      string
	Todos       []struct{ Content, Status string }
}

type edit struct {
	Old string `json:"old_string"`
	New string `json:"new_string"`
	All bool   `json:"replace_all"`
}

// call returns the event for a tool call.
func (s *stream) call(b block, depth int) agent.Event {
	e := agent.Event{Kind: agent.Called, Depth: depth, Tool: toolName(b.Name)}
	var in input
	if tolerant(json.Unmarshal(b.Input, &in)) == nil && kinds[b.Name] != "" {
		e.Kind = kinds[b.Name]
	}
	switch {
	case in.Command != "":
		e.Text = in.Command
		if in.Background {
			e.How = "(in the background)"
		}
	case in.FilePath != "" || in.Notebook != "":
		e.Text, e.Edits = s.relative(in.FilePath+in.Notebook), in.edits()
		if in.Offset > 0 {
			e.How = fmt.Sprintf("from line %d", in.Offset)
		}
		if in.All {
			e.How = "(every occurrence)"
		}
	case in.Pattern != "":
		e.Text = in.Pattern + " " + s.relative(in.Path)
	case in.Subagent != "" || in.Prompt != "" && in.Description != "":
		e.Text = in.Subagent + " " + in.Description
	case in.Todos != nil:
		e.Text = todos(in)
	default:
		e.Text = fields(b.Input)
	}
	return e
}

// edits returns the changes that a call makes to a file.
func (in input) edits() (list []agent.Edit) {
	for _, e := range append(append([]edit{in.edit}, in.Edits...), edit{New: in.Content + in.NewSource}) {
		if e.Old != "" || e.New != "" {
			list = append(list, agent.Edit{Old: e.Old, New: e.New})
		}
	}
	return list
}

// relative returns a path relative to the agent's working directory.
func (s *stream) relative(file string) string {
	if rest, ok := strings.CutPrefix(file, s.dir+"/"); ok && path.IsAbs(s.dir) {
		return rest
	}
	return file
}

func todos(in input) string {
	done, now := 0, ""
	for _, t := range in.Todos {
		switch t.Status {
		case "completed":
			done++
		case "in_progress":
			now = "; now: " + t.Content
		}
	}
	return fmt.Sprintf("%d of %d done%s", done, len(in.Todos), now)
}

// telling lists fields, in order, that describe a call on their own.
var telling = []string{
	"summary", "reason", "question", "what", "text", "on", "state",
	"subject", "url", "query", "body", "description", "prompt",
}

// fields returns the essence of an unknown tool's input.
func fields(raw json.RawMessage) string {
	var all map[string]any
	if json.Unmarshal(raw, &all) != nil {
		return string(raw)
	}
	for _, name := range telling {
		if s, ok := all[name].(string); ok && s != "" {
			return s + agent.Metadata(all)
		}
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch v := all[name].(type) {
		case string, float64, bool:
			if len(pairs) == maxPairs {
				return strings.Join(append(pairs, "…"), " ")
			}
			pairs = append(pairs, fmt.Sprintf("%s=%v", text.Head(name, 40), v))
		}
	}
	return strings.Join(pairs, " ")
}
