package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"
)

// An event is a line of the agent's stream-json output, with the fields that ralph uses.
// Type determines which of them are set. Unknown types, subtypes and fields are normal,
// and a field of an unexpected JSON type counts as absent.
type event struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`

	// system/init
	Version string      `json:"claude_code_version"`
	Model   string      `json:"model"`
	Tools   []string    `json:"tools"`
	Servers []mcpServer `json:"mcp_servers"`
	Dir     string      `json:"cwd"`

	// system/api_retry; the status is null if there was no response
	RetryStatus *float64 `json:"error_status"`
	Attempt     float64  `json:"attempt"`
	MaxRetries  float64  `json:"max_retries"`
	RetryDelay  float64  `json:"retry_delay_ms"`

	// assistant and user
	Message   message `json:"message"`
	Error     string  `json:"error"`              // in a synthetic assistant message: "rate_limit", …
	IsReplay  bool    `json:"isReplay"`           // one of ralph's own messages, as the model gets it
	Parent    string  `json:"parent_tool_use_id"` // in a sub-agent's message: the call that started it
	Sidechain bool    `json:"isSidechain"`        // a sub-agent's message, in a chat's transcript
	Timestamp string  `json:"timestamp"`
	Outcome   outcome `json:"tool_use_result"`

	RateLimit rateLimit `json:"rate_limit_info"`

	// result
	IsError        bool                  `json:"is_error"`
	APIErrorStatus *float64              `json:"api_error_status"`
	TerminalReason string                `json:"terminal_reason"`
	Result         string                `json:"result"`
	Errors         []string              `json:"errors"`
	Turns          float64               `json:"num_turns"` // of this turn of the conversation
	Duration       float64               `json:"duration_ms"`
	Cost           json.RawMessage       `json:"total_cost_usd"` // cost of the whole conversation
	CostUSD        *float64              `json:"-"`              // the same; nil if it is not a number
	Usage          usage                 `json:"usage"`          // of this turn of the conversation
	ModelUsage     map[string]modelUsage `json:"modelUsage"`
	Denials        []denial              `json:"permission_denials"`
}

// An outcome is the agent's report about a tool call apart from its answer. For many tools it is a text.
type outcome struct {
	Content      content `json:"content"`
	TotalMillis  float64 `json:"totalDurationMs"` // for a sub-agent
	Millis       float64 `json:"durationMs"`
	SecondsSpent float64 `json:"durationSeconds"`
}

func (o outcome) seconds() float64 { return o.TotalMillis/1000 + o.Millis/1000 + o.SecondsSpent }

type mcpServer struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Error  string `json:"error"`
}

type message struct {
	ID      string  `json:"id"`
	Model   string  `json:"model"`
	Content content `json:"content"`
	Usage   usage   `json:"usage"`
}

// synthetic reports whether the CLI, not a model, wrote the message.
func (m message) synthetic() bool { return m.Model == "<synthetic>" }

type block struct {
	Type      string          `json:"type"` // "text", "thinking", "tool_use", "tool_result", …
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   content         `json:"content"`
}

// content is a list of blocks. In JSON, a text stands for a list of one.
type content []block

// UnmarshalJSON accepts both forms, and reads anything else as empty.
func (c *content) UnmarshalJSON(b []byte) error {
	*c = nil
	if len(b) > 0 && b[0] == '"' {
		var text string
		if json.Unmarshal(b, &text) == nil {
			*c = content{{Type: "text", Text: text}}
		}
		return nil
	}
	var blocks []block
	if tolerant(json.Unmarshal(b, &blocks)) == nil {
		*c = blocks
	}
	return nil
}

// text returns the text blocks, one per line.
func (c content) text() string {
	var texts []string
	for _, b := range c {
		if b.Type == "text" && b.Text != "" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

type usage struct {
	Input         float64 `json:"input_tokens"`
	Output        float64 `json:"output_tokens"`
	CacheRead     float64 `json:"cache_read_input_tokens"`
	CacheCreation float64 `json:"cache_creation_input_tokens"`
}

type modelUsage struct {
	ContextWindow float64 `json:"contextWindow"`
}

type rateLimit struct {
	Status        string   `json:"status"` // "allowed", "allowed_warning" or "rejected"
	ResetsAt      float64  `json:"resetsAt"`
	Type          string   `json:"rateLimitType"` // "five_hour", "seven_day", …
	Utilization   *float64 `json:"utilization"`   // 0 to 1; often absent
	OverageStatus string   `json:"overageStatus"`
	UsingOverage  bool     `json:"isUsingOverage"`
}

// rejected reports whether requests are refused. A used-up window is no
// limit while requests continue at extra cost.
func (l rateLimit) rejected() bool {
	return l.Status == "rejected" && !l.UsingOverage && !strings.HasPrefix(l.OverageStatus, "allowed")
}

// resetTime returns when the limit ends; zero if unknown.
func (l rateLimit) resetTime() time.Time {
	if l.ResetsAt < 1 || l.ResetsAt > math.MaxInt32*16 {
		return time.Time{}
	}
	return time.Unix(int64(l.ResetsAt), 0).UTC()
}

type denial struct {
	Tool  string          `json:"tool_name"`
	ID    string          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
}

// parse parses one line of the agent's output. It returns false if the
// line is not a JSON object, which is counted but never fatal.
func parse(line []byte) (event, bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return event{}, false
	}
	var e event
	if tolerant(json.Unmarshal(line, &e)) != nil {
		return event{}, false
	}
	if len(e.Cost) > 0 && json.Unmarshal(e.Cost, &e.CostUSD) != nil { // the key may have set it
		e.CostUSD = nil
	}
	return e, true
}

// tolerant ignores the error about a value of an unexpected type: the
// decoder skipped that value and read the rest.
func tolerant(err error) error {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// maxCost is more than any conversation costs. Others than the agent may
// write a result to its output.
const maxCost = 1e5

// cost returns the conversation's cost according to the event; nil if it
// has none or it is implausible.
func (e event) cost() *float64 {
	if e.CostUSD != nil && (*e.CostUSD < 0 || *e.CostUSD > maxCost) {
		return nil
	}
	return e.CostUSD
}
