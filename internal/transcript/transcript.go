// Package transcript makes a session's event stream readable: what the agent said,
// a line for each tool call with what matters of it, diffs, errors.
//
// It reads what Claude prints with --output-format stream-json, in pieces of any
// length, and keeps no more than the tool calls that have not been answered. What it
// does not understand it leaves out; it never fails on what an agent wrote, and what
// it returns is short and has no character that steers a terminal.
package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"ralph/internal/jsonl"
	"ralph/internal/text"
)

// Limits of what is held of the stream.
const (
	maxOpen   = 10_000   // tool calls that are waited for
	maxString = 1 << 20  // bytes of each JSON string
	maxInput  = 16 << 20 // bytes of a line whose strings have been cut
)

// Kinds of entries.
const (
	Start  = "start"  // the agent is up
	Text   = "text"   // it said something
	Tool   = "tool"   // it called a tool
	Answer = "answer" // the tool answered, after a time that is worth a word
	Error  = "error"  // a tool, or the service, answered with an error
	Said   = "said"   // somebody said something to it: ralph or a person
	Result = "result" // a turn of the conversation ended
	Note   = "note"   // something about the transcript itself
)

// An Entry is one thing that happened in a session.
type Entry struct {
	Kind  string   `json:"kind"`
	Depth int      `json:"depth"` // 0 for the agent, 1 for its sub-agents, …
	Tool  string   `json:"tool,omitempty"`
	Text  string   `json:"text,omitempty"` // prose; what matters of a tool's input; an error
	Diff  []string `json:"diff,omitempty"` // lines with " ", "-", "+" or "…" before them

	// Seconds is how long a turn, a sub-agent or a look at the web took, as the agent
	// tells; for other tools the time since the answer before, which is that of the
	// model and of the tool.
	Seconds float64 `json:"seconds,omitempty"`
}

// A Reader turns a stream into entries. Its zero value is ready.
type Reader struct {
	line  jsonl.Squeezer
	open  map[string]openCall
	last  time.Time // of the last line that has a time
	began bool
	asked bool   // the prompt has been seen
	dir   string // where the agent works

	context int64
	model   string
}

// An openCall is a tool call that has not been answered.
type openCall struct {
	tool  string
	depth int
	since time.Time
}

// Context is how many tokens of the model's context the agent used last, and which
// model it is; 0 and "" as long as it has not been told.
func (r *Reader) Context() (tokens int64, model string) { return r.context, r.model }

// Feed goes on with the stream; p may end anywhere in a line.
func (r *Reader) Feed(p []byte) (entries []Entry) {
	if r.line.MaxLine == 0 {
		r.line = jsonl.Squeezer{MaxString: maxString, MaxLine: maxInput}
	}
	for {
		head, rest, complete := bytes.Cut(p, []byte("\n"))
		r.line.Add(head)
		if !complete {
			return entries
		}
		entries = append(entries, r.Line(r.line.Line())...)
		r.line.Reset()
		p = rest
	}
}

// End reads a last line without a line break, as a killed agent leaves it.
func (r *Reader) End() []Entry {
	defer r.line.Reset()
	return r.Line(r.line.Line())
}

type event struct {
	Type      string
	Subtype   string
	Version   string `json:"claude_code_version"`
	Model     string
	Dir       string                          `json:"cwd"`
	Servers   []struct{ Name, Status string } `json:"mcp_servers"`
	Parent    string                          `json:"parent_tool_use_id"`
	Timestamp string
	IsReplay  bool `json:"isReplay"`
	IsError   bool `json:"is_error"`
	Result    string
	Errors    []string
	Error     string
	Turns     int      `json:"num_turns"`
	Duration  float64  `json:"duration_ms"`
	Cost      *float64 `json:"total_cost_usd"`
	Attempt   int
	MaxTries  int     `json:"max_retries"`
	Delay     float64 `json:"retry_delay_ms"`
	RateLimit struct {
		Status   string
		Type     string  `json:"rateLimitType"`
		ResetsAt float64 `json:"resetsAt"`
	} `json:"rate_limit_info"`
	Message struct {
		Content json.RawMessage
		Usage   struct {
			Input         int64 `json:"input_tokens"`
			Output        int64 `json:"output_tokens"`
			CacheRead     int64 `json:"cache_read_input_tokens"`
			CacheCreation int64 `json:"cache_creation_input_tokens"`
		}
	}
	Outcome outcome `json:"tool_use_result"`
}

// An outcome is what the agent tells of a tool beside its answer; for many tools
// that is a text.
type outcome struct {
	Content      json.RawMessage
	TotalMillis  float64 `json:"totalDurationMs"` // of a sub-agent
	Millis       float64 `json:"durationMs"`
	SecondsSpent float64 `json:"durationSeconds"`
}

func (o outcome) seconds() float64 { return o.TotalMillis/1000 + o.Millis/1000 + o.SecondsSpent }

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
func (r *Reader) Line(line []byte) []Entry {
	var e event
	if json.Unmarshal(line, &e) != nil && e.Type == "" {
		return nil // not an event: it is in the raw transcript
	}
	if at, err := time.Parse(time.RFC3339, e.Timestamp); err == nil {
		r.last = at
	}
	depth := 0
	if e.Parent != "" {
		depth = r.open[e.Parent].depth + 1
	}
	switch e.Type {
	case "system":
		return r.system(e)
	case "assistant":
		return r.assistant(e, depth)
	case "user":
		return r.user(e, depth)
	case "result":
		return []Entry{{Kind: Result, Text: result(e), Seconds: e.Duration / 1000}}
	case "rate_limit_event":
		if e.RateLimit.Status == "rejected" {
			return []Entry{{Kind: Error, Text: rejected(e)}}
		}
	case "ralph":
		if e.Subtype == "transcript_full" {
			return []Entry{{Kind: Note, Text: "the transcript is full: what came after this is not in it"}}
		}
	}
	return nil
}

func (r *Reader) system(e event) (entries []Entry) {
	switch {
	case e.Subtype == "init" && !r.began:
		r.began, r.model, r.dir = true, e.Model, e.Dir
		entries = []Entry{{Kind: Start, Text: text.Short(fmt.Sprintf("claude %s, model %s", e.Version, e.Model), maxLine)}}
		for _, s := range e.Servers {
			if s.Status == "failed" {
				entries = append(entries, Entry{Kind: Error, Text: text.Short("the MCP server "+s.Name+" does not start", maxLine)})
			}
		}
	case e.Subtype == "api_retry":
		entries = []Entry{{Kind: Error, Text: fmt.Sprintf("the service does not answer (%s): try %d of %d in %.0f s", text.Short(e.Error, 60), e.Attempt, e.MaxTries, e.Delay/1000)}}
	case e.Subtype == "compact_boundary":
		entries = []Entry{{Kind: Note, Text: "the conversation was shortened to fit the model's context"}}
	}
	return entries
}

func (r *Reader) assistant(e event, depth int) (entries []Entry) {
	if u := e.Message.Usage; depth == 0 && u.Input+u.CacheRead+u.CacheCreation > 0 {
		r.context = u.Input + u.CacheRead + u.CacheCreation + u.Output
	}
	for _, b := range blocks(e.Message.Content) {
		switch b.Type {
		case "text":
			kind := Text
			if e.Error != "" {
				kind = Error
			}
			entries = appendText(entries, Entry{Kind: kind, Depth: depth, Text: prose(b.Text)})
		case "tool_use":
			if r.open == nil || len(r.open) >= maxOpen {
				r.open = map[string]openCall{}
			}
			r.open[b.ID] = openCall{b.Name, depth, r.last}
			entries = append(entries, r.call(b, depth))
		}
	}
	return entries
}

// appendText appends an entry that says something.
func appendText(entries []Entry, e Entry) []Entry {
	if e.Text == "" {
		return entries
	}
	return append(entries, e)
}

// slow is from how many seconds on a tool's time is worth a word.
const slow = 2

func (r *Reader) user(e event, depth int) (entries []Entry) {
	for _, b := range blocks(e.Message.Content) {
		switch {
		case b.Type == "text" && e.IsReplay:
			entries = appendText(entries, Entry{Kind: Said, Depth: depth, Text: r.told(b.Text)})
		case b.Type == "tool_result":
			entries = append(entries, r.answer(e, b, depth)...)
		}
	}
	return entries
}

// answer is what comes of a tool call.
func (r *Reader) answer(e event, b block, depth int) (entries []Entry) {
	call := r.open[b.ToolUseID]
	delete(r.open, b.ToolUseID)
	took := e.Outcome.seconds()
	if took == 0 && !call.since.IsZero() {
		took = max(0, r.last.Sub(call.since).Seconds())
	}
	name := toolName(call.tool)
	switch {
	case b.IsError:
		return []Entry{{Kind: Error, Depth: depth, Tool: name, Text: failure(contentText(b.Content)), Seconds: took}}
	case call.tool == "Task" || call.tool == "Agent":
		entries = appendText(nil, Entry{Kind: Text, Depth: depth + 1, Text: prose(contentText(e.Outcome.Content))})
	case took < slow:
		return nil
	}
	return append(entries, Entry{Kind: Answer, Depth: depth, Tool: name, Seconds: took})
}

// told is what somebody said to the agent. The first of it is the prompt, which
// nobody wants to read here.
func (r *Reader) told(s string) string {
	first := !r.asked
	r.asked = true
	if s = prose(s); !first || len(s) <= maxTold {
		return s
	}
	return fmt.Sprintf("the prompt (%d characters): %s", len([]rune(s)), text.Short(s, 60))
}

// maxTold is how many bytes of a prompt are shown.
const maxTold = 200

// blocks reads a message's content: a list, or a text that stands for one.
func blocks(raw json.RawMessage) []block {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var list []block
	_ = json.Unmarshal(raw, &list) // what cannot be read is left out
	return list
}

func contentText(raw json.RawMessage) string {
	var parts []string
	for _, b := range blocks(raw) {
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "\n")
}

// result is how a turn ended: never what its subtype says alone, which is
// "success" for most errors.
func result(e event) string {
	s := "the turn ended"
	switch {
	case e.Subtype == "error_max_turns":
		s = "the limit of turns was reached"
	case e.Subtype == "error_max_budget_usd":
		s = "the limit of cost was reached"
	case e.Subtype == "error_during_execution":
		s = "the turn was cut off"
	case e.IsError:
		s = "the turn ended with an error"
	}
	if e.Turns > 0 {
		s += fmt.Sprintf(" after %s", text.Count(e.Turns, "step"))
	}
	if e.Cost != nil {
		s += fmt.Sprintf(", $%.2f", *e.Cost)
	}
	if why := strings.Join(append([]string{e.Result}, e.Errors...), " "); e.IsError && strings.TrimSpace(why) != "" {
		s += ": " + text.Short(why, maxLine)
	}
	return s
}

// rejected says that a window of the account is used up.
func rejected(e event) string {
	s := "the account's limit is reached"
	if e.RateLimit.Type != "" {
		s += " (" + text.Short(e.RateLimit.Type, 40) + ")"
	}
	if at := e.RateLimit.ResetsAt; at > 0 && at < 1<<40 {
		s += " until " + time.Unix(int64(at), 0).UTC().Format("2006-01-02 15:04 UTC")
	}
	return s
}

// Clone is a reader that goes on from the same place. The reader must stand
// between two lines.
func (r *Reader) Clone() Reader {
	c := *r
	c.line, c.open = jsonl.Squeezer{}, maps.Clone(r.open)
	return c
}
