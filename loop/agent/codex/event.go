package codex

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"ralph"
)

// params are the fields of codex's notifications that ralph uses. A member of an
// unexpected type counts as absent.
type params struct {
	ThreadID string `json:"threadId"`

	Thread struct {
		ID         string `json:"id"`
		Model      string `json:"model"`
		CLIVersion string `json:"cliVersion"`
		Cwd        string `json:"cwd"`
	} `json:"thread"`

	Turn turn `json:"turn"`
	Item item `json:"item"`

	TokenUsage struct {
		Total         usage `json:"total"`
		Last          usage `json:"last"`
		ContextWindow int64 `json:"modelContextWindow"`
	} `json:"tokenUsage"`

	RateLimits struct {
		Primary   *window `json:"primary"`
		Secondary *window `json:"secondary"`
		Credits   *struct {
			HasCredits bool `json:"hasCredits"`
			Unlimited  bool `json:"unlimited"`
		} `json:"credits"`
		Reached string `json:"rateLimitReachedType"`
	} `json:"rateLimits"`

	Error     turnError `json:"error"`
	WillRetry bool      `json:"willRetry"`

	Typed string `json:"stdin"` // into a terminal

	Name   string `json:"name"` // name of a server of tools
	Status string `json:"status"`

	Run struct {
		ID      string `json:"id"`
		Status  string `json:"status"`
		Entries []struct {
			Text string `json:"text"`
		} `json:"entries"`
	} `json:"run"` // of a hook
}

type turn struct {
	ID       string    `json:"id"`
	Status   string    `json:"status"` // completed, failed or interrupted
	Error    turnError `json:"error"`
	Duration float64   `json:"durationMs"`
}

type turnError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"`
	Details string          `json:"additionalDetails"`
}

// An item is one thing that happens in a turn.
type item struct {
	Type string `json:"type"`
	ID   string `json:"id"`

	Text    string `json:"text"` // agentMessage
	Content []struct {
		Text string `json:"text"`
	} `json:"content"` // userMessage

	Command  string  `json:"command"` // commandExecution
	Output   string  `json:"aggregatedOutput"`
	Exit     *int    `json:"exitCode"`
	Duration float64 `json:"durationMs"`
	Status   string  `json:"status"`

	Server    string          `json:"server"` // mcpToolCall
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"result"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`

	Changes []struct {
		Path string `json:"path"`
		Diff string `json:"diff"`
	} `json:"changes"` // fileChange

	Query string `json:"query"` // webSearch

	Kind      string `json:"kind"` // subAgentActivity, with its model
	SubAgent  string `json:"agentThreadId"`
	AgentPath string `json:"agentPath"`
	Model     string `json:"model"`
}

// asksFirst reports whether the hook is asked before this kind of item.
func (i item) asksFirst() bool { return i.Type == "commandExecution" || i.Type == "fileChange" }

type usage struct {
	Input      int64 `json:"inputTokens"`
	Cached     int64 `json:"cachedInputTokens"`
	CacheWrite int64 `json:"cacheWriteInputTokens"`
	Output     int64 `json:"outputTokens"`
	Sum        int64 `json:"totalTokens"`
}

// maxTokens is more than any session uses: other programs may write numbers to the output, too.
const maxTokens = 1e12

// tokens converts a usage: tokens read from the cache are not input.
func (u usage) tokens(window int64) ralph.Tokens {
	harmless := func(n int64) int64 { return min(max(n, 0), maxTokens) }
	return ralph.Tokens{
		Input: harmless(u.Input - u.Cached - u.CacheWrite), Output: harmless(u.Output), CacheRead: harmless(u.Cached),
		CacheCreation: harmless(u.CacheWrite), ContextWindow: harmless(window),
	}
}

// A window is the used part of an account's allowance for a span of time.
type window struct {
	Percent  *float64 `json:"usedPercent"`
	Minutes  float64  `json:"windowDurationMins"`
	ResetsAt float64  `json:"resetsAt"`
}

// name returns the window's name in limits.usage.
func (w window) name(which string) string {
	switch w.Minutes {
	case 5 * 60:
		return "five_hour"
	case 7 * 24 * 60:
		return "seven_day"
	}
	return which
}

// resetTime is when it begins anew; zero if that is not known.
func (w window) resetTime() time.Time {
	if w.ResetsAt < 1 || w.ResetsAt > math.MaxInt32*16 {
		return time.Time{}
	}
	return time.Unix(int64(w.ResetsAt), 0).UTC()
}

// parse reads a notification's parameters.
func parse(raw json.RawMessage) (p params) {
	_ = tolerant(json.Unmarshal(raw, &p)) // unreadable fields are absent
	return p
}

// tolerant forgives a value of an unexpected type: the decoder has skipped it and read all
// the rest.
func tolerant(err error) error {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// failure returns the class of an error of the service, and its HTTP status; 0 if there is none.
func (e turnError) failure() (class string, status int) {
	if json.Unmarshal(e.Info, &class) == nil {
		return class, 0
	}
	var kinds map[string]struct {
		Status *float64 `json:"httpStatusCode"`
	}
	if tolerant(json.Unmarshal(e.Info, &kinds)) != nil {
		return "", 0
	}
	for kind, k := range kinds {
		if class = kind; k.Status != nil {
			status = int(min(max(*k.Status, 0), 999))
		}
	}
	return class, status
}

// connection reports whether a class means that the service did not answer, or not completely.
func connection(class string) bool {
	return strings.HasPrefix(class, "httpConnection") || strings.HasPrefix(class, "responseStream")
}
