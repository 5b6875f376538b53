// Package transcript makes a session's event stream readable: what the agent
// said, a line for each tool call with what matters of it, diffs, errors.
//
// It reads what Claude prints with --output-format stream-json, a line at a time,
// and keeps no more than the tool calls that have not been answered. What it does
// not understand it leaves out; it never fails on what an agent wrote, and what it
// returns has no character that steers a terminal.
package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Limits of what is shown of one thing.
const (
	maxText   = 8 << 10 // bytes of prose
	maxLine   = 200     // characters of a line of a tool call
	diffLines = 12      // of each side of an edit
	maxOpen   = 10_000  // tool calls that are waited for
)

// Kinds of entries.
const (
	Start  = "start"  // the agent is up
	Text   = "text"   // it said something
	Tool   = "tool"   // it called a tool
	Error  = "error"  // a tool, or the service, answered with an error
	Said   = "said"   // somebody said something to it: ralph or a person
	Result = "result" // a turn of the conversation ended
)

// An Entry is one thing that happened in a session.
type Entry struct {
	Kind    string   `json:"kind"`
	Depth   int      `json:"depth"` // 0 for the agent, 1 for its sub-agents, …
	Tool    string   `json:"tool,omitempty"`
	Text    string   `json:"text"`              // prose; what matters of a tool's input; an error
	Diff    []string `json:"diff,omitempty"`    // lines with "+", "-" or "…" before them
	Seconds float64  `json:"seconds,omitempty"` // since the last answer of a tool, or of a whole turn
}

// A Reader turns lines into entries. Its zero value is ready.
type Reader struct {
	depth map[string]int // of what a tool call started
	tools map[string]string
	last  time.Time // of the last line that has a time
	began bool

	context int64
	model   string
}

// Context is how many tokens of the model's context the agent used last, and which
// model it is; 0 and "" as long as it has not been told.
func (r *Reader) Context() (tokens int64, model string) { return r.context, r.model }

type event struct {
	Type      string
	Subtype   string
	Version   string `json:"claude_code_version"`
	Model     string
	Parent    string    `json:"parent_tool_use_id"`
	Timestamp time.Time `json:"timestamp"`
	IsReplay  bool      `json:"isReplay"`
	IsError   bool      `json:"is_error"`
	Result    string
	Error     string
	Turns     int      `json:"num_turns"`
	Duration  float64  `json:"duration_ms"`
	Cost      *float64 `json:"total_cost_usd"`
	Attempt   int
	MaxTries  int     `json:"max_retries"`
	Delay     float64 `json:"retry_delay_ms"`
	Message   struct {
		Content json.RawMessage
		Usage   struct {
			Input         int64 `json:"input_tokens"`
			Output        int64 `json:"output_tokens"`
			CacheRead     int64 `json:"cache_read_input_tokens"`
			CacheCreation int64 `json:"cache_creation_input_tokens"`
		}
	}
}

type block struct {
	Type      string
	Text      string
	ID        string
	Name      string
	Input     json.RawMessage
	ToolUseID string `json:"tool_use_id"`
	IsError   bool   `json:"is_error"`
	Content   json.RawMessage
}

// Line reads one line of the stream; most make one entry, many none.
func (r *Reader) Line(line []byte) (entries []Entry) {
	var e event
	if json.Unmarshal(line, &e) != nil && e.Type == "" {
		return nil // not an event: it is in the raw transcript
	}
	if r.depth == nil {
		r.depth, r.tools = map[string]int{}, map[string]string{}
	}
	took := 0.0
	if !e.Timestamp.IsZero() {
		if !r.last.IsZero() {
			took = max(0, e.Timestamp.Sub(r.last).Seconds())
		}
		r.last = e.Timestamp
	}
	depth := 0
	if e.Parent != "" {
		depth = r.depth[e.Parent] + 1
	}
	switch e.Type {
	case "system":
		return r.system(e)
	case "assistant":
		return r.assistant(e, depth)
	case "user":
		return r.user(e, depth, took)
	case "result":
		return []Entry{{Kind: Result, Text: result(e), Seconds: e.Duration / 1000}}
	}
	return nil
}

func (r *Reader) system(e event) []Entry {
	switch {
	case e.Subtype == "init" && !r.began:
		r.began, r.model = true, e.Model
		return []Entry{{Kind: Start, Text: clean(strings.TrimSpace(fmt.Sprintf("claude %s, model %s", e.Version, e.Model)))}}
	case e.Subtype == "api_retry":
		return []Entry{{Kind: Error, Text: fmt.Sprintf("the service does not answer (%s): try %d of %d in %.0f s", shorten(e.Error, 60), e.Attempt, e.MaxTries, e.Delay/1000)}}
	}
	return nil
}

func (r *Reader) assistant(e event, depth int) (entries []Entry) {
	if u := e.Message.Usage; depth == 0 && u.Input+u.CacheRead+u.CacheCreation > 0 {
		r.context = u.Input + u.CacheRead + u.CacheCreation + u.Output
	}
	for _, b := range blocks(e.Message.Content) {
		switch b.Type {
		case "text":
			if text := prose(b.Text); text != "" {
				kind := Text
				if e.Error != "" {
					kind = Error
				}
				entries = append(entries, Entry{Kind: kind, Depth: depth, Text: text})
			}
		case "tool_use":
			if len(r.tools) >= maxOpen {
				r.tools, r.depth = map[string]string{}, map[string]int{}
			}
			r.tools[b.ID], r.depth[b.ID] = b.Name, depth
			entries = append(entries, call(b, depth))
		}
	}
	return entries
}

func (r *Reader) user(e event, depth int, took float64) (entries []Entry) {
	for _, b := range blocks(e.Message.Content) {
		switch {
		case b.Type == "text" && e.IsReplay:
			entries = append(entries, Entry{Kind: Said, Depth: depth, Text: told(b.Text)})
		case b.Type == "tool_result":
			name := toolName(r.tools[b.ToolUseID])
			delete(r.tools, b.ToolUseID)
			if b.IsError {
				entries = append(entries, Entry{Kind: Error, Depth: depth, Tool: name, Text: lastLines(contentText(b.Content), 5), Seconds: took})
			} else if took >= slow {
				entries = append(entries, Entry{Kind: Tool, Depth: depth, Tool: name, Seconds: took})
			}
		}
	}
	return entries
}

// maxTold is how long something that was said to the agent is shown whole; prompts
// are longer.
const maxTold = 2000

func told(s string) string {
	s = prose(s)
	if len(s) <= maxTold {
		return s
	}
	first, _, _ := strings.Cut(s, "\n")
	return shorten(first, maxLine) + " …"
}

// slow is from how many seconds on a tool's time is worth a word.
const slow = 2

// blocks reads a message's content: a list, or a text that stands for one.
func blocks(raw json.RawMessage) []block {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var list []block
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

func contentText(raw json.RawMessage) string {
	var parts []string
	for _, b := range blocks(raw) {
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "\n")
}

// toolName is a tool as people know it: ralph's without what Claude puts before it.
func toolName(name string) string {
	if own, ok := strings.CutPrefix(name, "mcp__ralph__"); ok {
		return clean(strings.TrimPrefix(own, "ralph_"))
	}
	return clean(name)
}

// input are the fields of tools' inputs that matter.
type input struct {
	Command     string
	FilePath    string `json:"file_path"`
	Notebook    string `json:"notebook_path"`
	Path        string
	Pattern     string
	URL         string
	Query       string
	Description string
	Prompt      string
	Content     string
	OldString   string `json:"old_string"`
	NewString   string `json:"new_string"`
	Edits       []struct {
		OldString string `json:"old_string"`
		NewString string `json:"new_string"`
	}
	Subagent string `json:"subagent_type"`
}

func call(b block, depth int) Entry {
	e := Entry{Kind: Tool, Depth: depth, Tool: toolName(b.Name)}
	var in input
	_ = json.Unmarshal(b.Input, &in) // what cannot be read is shown as it is
	switch {
	case in.Command != "":
		e.Text = shorten(in.Command, maxLine)
	case in.FilePath != "" || in.Notebook != "":
		e.Text = shorten(in.FilePath+in.Notebook, maxLine)
		e.Diff = diff(in)
	case in.Pattern != "":
		e.Text = shorten(strings.TrimSpace(in.Pattern+" "+in.Path), maxLine)
	case in.Subagent != "" || in.Prompt != "" && in.Description != "":
		e.Text = shorten(strings.TrimSpace(in.Subagent+" "+in.Description), maxLine)
	default:
		e.Text = fields(b.Input)
	}
	return e
}

// fields are the texts of a tool's input, the longest last.
func fields(raw json.RawMessage) string {
	var all map[string]any
	if json.Unmarshal(raw, &all) != nil {
		return shorten(string(raw), maxLine)
	}
	for _, name := range []string{"summary", "reason", "question", "what", "text", "on", "state", "url", "query", "path", "description", "prompt"} {
		if s, ok := all[name].(string); ok && s != "" {
			return shorten(s, maxLine)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return shorten(string(raw), maxLine)
}

// diff is what an edit takes away and adds.
func diff(in input) (lines []string) {
	add := func(sign, text string) {
		if text == "" {
			return
		}
		list := strings.Split(strings.TrimRight(text, "\n"), "\n")
		for i, l := range list {
			if i == diffLines {
				lines = append(lines, fmt.Sprintf("… %d more lines", len(list)-i))
				return
			}
			lines = append(lines, sign+" "+shortenIndented(l, maxLine))
		}
	}
	add("-", in.OldString)
	add("+", in.NewString)
	add("+", in.Content)
	for _, e := range in.Edits {
		add("-", e.OldString)
		add("+", e.NewString)
	}
	return lines
}

func result(e event) string {
	s := e.Subtype
	if e.IsError {
		s = "error"
		if e.Subtype != "" && e.Subtype != "success" {
			s = e.Subtype
		}
	}
	if e.Turns > 0 {
		s += fmt.Sprintf(", %d turns", e.Turns)
	}
	if e.Cost != nil {
		s += fmt.Sprintf(", $%.2f", *e.Cost)
	}
	if e.IsError && e.Result != "" {
		s += ": " + shorten(e.Result, maxLine)
	}
	return clean(s)
}

// prose is a text of several lines, cut.
func prose(s string) string {
	s = strings.TrimSpace(clean(s))
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "\n… cut"
	}
	return s
}

// lastLines are the last lines of a text: an error's reason stands at its end.
func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(clean(s)), "\n")
	if len(lines) > n {
		lines = append([]string{fmt.Sprintf("… %d lines", len(lines)-n)}, lines[len(lines)-n:]...)
	}
	for i, l := range lines {
		lines[i] = shortenIndented(l, maxLine)
	}
	return strings.Join(lines, "\n")
}

// shorten is a text on one line, cut.
func shorten(s string, n int) string {
	return shortenIndented(strings.Join(strings.Fields(clean(head(s, 8*n))), " "), n)
}

func shortenIndented(s string, n int) string {
	r := []rune(clean(head(s, 8*n)))
	if len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return string(r)
}

// head is the beginning of a text, so that no more of it is looked at.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// clean takes out what steers a terminal or turns the order of letters around.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
