package codex

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/jsonrpc"
	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/loop/agent/conversation"
)

// Bounds of what is remembered of a conversation, however long it lasts.
const (
	maxWords   = 2000 // characters of the last words
	maxReason  = 400  // characters of a reason
	maxDenials = 100
	maxAsked   = 1000 // uses of tools that the hook was asked about and that have not begun
	maxThreads = 1000 // that are told apart
	maxID      = 100  // characters of an id
)

// A history is what was seen of one conversation. It grows by the messages, in order.
type history struct {
	guarded bool

	began     bool // the model has answered something
	model     string
	version   string
	turns     int // requests of the model
	toolCalls int
	thread    string               // its own
	threads   map[string]*spending // that, and those of agents that it has set to work, by their ids
	windows   map[string]ralph.UsageWindow
	used      map[string]bool // windows that are used up
	credits   bool            // the account has none left, and needs them
	lastWords string
	denials   []string
	asked     []string // calls about which the hook was, and that have not begun

	last     *turn // that has ended last
	open     bool  // a turn is under way
	retrying *turnError
	unasked  string // what it did without asking first

	unreadable int
}

// A spending is what a thread has used.
type spending struct {
	model  string // "" for the session's
	tokens ralph.Tokens
	open   bool // a turn of it is under way, which may have used more
}

// of is a thread's spending.
func (h *history) of(thread string) *spending {
	if h.threads == nil {
		h.threads = map[string]*spending{}
	}
	if thread = text.Clip(cmp.Or(thread, h.thread), maxID); h.threads[thread] == nil {
		if len(h.threads) >= maxThreads {
			thread = "and others"
		}
		h.threads[thread] = &spending{}
	}
	return h.threads[thread]
}

// add takes in a message to the client; ok tells that it is one.
func (h *history) add(m jsonrpc.Message, ok bool) {
	if !ok {
		h.unreadable++
		return
	}
	p := parse(m.Params)
	if m.Method == "thread/started" && h.thread == "" {
		h.thread, h.model, h.version = p.Thread.ID, p.Thread.Model, p.Thread.CLIVersion
	}
	own := p.ThreadID == "" || h.thread == "" || p.ThreadID == h.thread
	switch m.Method {
	case "turn/started", "turn/completed":
		now := m.Method == "turn/started"
		switch {
		case !own:
			h.of(p.ThreadID).open = now
		case now:
			h.open, h.retrying = true, nil
		default:
			h.open, h.last = false, &p.Turn
		}
	case "error":
		if p.WillRetry && own {
			h.retrying = &p.Error
		}
	case "thread/tokenUsage/updated":
		h.turns++
		h.began = true
		h.of(p.ThreadID).tokens = p.TokenUsage.Total.tokens(p.TokenUsage.ContextWindow)
		if own {
			h.retrying = nil
		}
	case "account/rateLimits/updated":
		h.addWindows(p)
	case "hook/started":
		_, call, _ := cutLast(p.Run.ID, ":")
		if h.asked = append(h.asked, text.Clip(call, maxID)); len(h.asked) > maxAsked {
			h.asked = h.asked[1:]
		}
	case "hook/completed":
		h.addHook(p)
	case "item/started":
		h.start(p.Item)
	case "item/commandExecution/terminalInteraction":
		if h.guarded && p.Typed != "" && h.unasked == "" { // there is no hook for it
			h.unasked = text.Line("typed into a program: "+p.Typed, 200)
		}
	case "item/completed":
		if own && p.Item.Type == "agentMessage" && strings.TrimSpace(p.Item.Text) != "" {
			h.lastWords = text.ClipEnd(p.Item.Text, maxWords)
		}
	}
}

// start takes in what begins.
func (h *history) start(i item) {
	h.began = h.began || i.Type != "userMessage"
	switch i.Type {
	case "commandExecution", "fileChange", "mcpToolCall", "webSearch":
		h.toolCalls++
	case "subAgentActivity":
		if i.Model != "" {
			h.of(i.SubAgent).model = text.Clip(i.Model, maxID)
		}
	}
	if at := slices.Index(h.asked, text.Clip(i.ID, maxID)); at >= 0 {
		h.asked = slices.Delete(h.asked, at, at+1)
	} else if h.guarded && i.asksFirst() && h.unasked == "" {
		what := i.Command
		for _, c := range i.Changes {
			what = c.Path
		}
		h.unasked = text.Line(cmp.Or(what, i.Type), 200)
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// addHook notes what the hook has refused.
func (h *history) addHook(p params) {
	for _, e := range p.Run.Entries {
		if p.Run.Status == "blocked" && len(h.denials) < maxDenials {
			h.denials = append(h.denials, text.Line(e.Text, maxReason))
		}
	}
}

// addWindows notes how far the account's allowances are used.
func (h *history) addWindows(p params) {
	h.used = map[string]bool{}
	for which, w := range map[string]*window{"primary": p.RateLimits.Primary, "secondary": p.RateLimits.Secondary} {
		if w == nil || w.Percent == nil || *w.Percent < 0 {
			continue
		}
		if h.windows == nil {
			h.windows = map[string]ralph.UsageWindow{}
		}
		name := w.name(which)
		h.windows[name] = ralph.UsageWindow{Name: name, Utilization: *w.Percent / 100, ResetsAt: ralph.At(w.resetTime())}
		h.used[name] = *w.Percent >= 100
	}
	c := p.RateLimits.Credits
	h.credits = strings.HasSuffix(p.RateLimits.Reached, "credits_depleted") && (c == nil || !c.Unlimited && !c.HasCredits)
}

// resetTime is when the last of the windows that are used up begins anew.
func (h *history) resetTime() (at time.Time) {
	for name, used := range h.used {
		if reset := h.windows[name].ResetsAt.Time; used && reset.After(at) {
			at = reset
		}
	}
	return at
}

// classify says how a session ended and why, in one sentence. It goes by structure only; the
// time is when a limit ends, if that is known.
func (h *history) classify(d conversation.Death) (ralph.Ending, string, time.Time) {
	none := time.Time{}
	if d.Stopped {
		return ralph.Interrupted, "stopped by ralph", none
	}
	if d.Over != "" {
		return ralph.TimedOut, d.Over, none
	}
	if h.unasked != "" {
		return ralph.MCPFailed, "codex did this without asking ralph first, and was stopped: " + h.unasked, none
	}
	failed := h.last != nil && h.last.Status == "failed" && !h.open
	var e turnError
	switch {
	case failed:
		e = h.last.Error
	case h.open && h.retrying != nil: // it ended while it tried again
		e = *h.retrying
	}
	if ending := h.serviceClass(e); ending != "" {
		if ending == ralph.RateLimited {
			return ending, conversation.Sentence(e.Message), h.resetTime()
		}
		return ending, conversation.Sentence(e.Message, e.Details), none
	}
	if d.Toolless {
		why := conversation.Sentence("codex was not told ralph's tools", d.Refusal, text.LastLine(d.Stderr))
		return ralph.MCPFailed, why, none
	}
	completed := h.last != nil && h.last.Status == "completed" && !h.open
	switch {
	case d.Refusal != "":
		return ralph.NoWork, conversation.Sentence("codex does not begin", d.Refusal), none
	case h.toolCalls == 0 && h.turns == 0:
		why := conversation.Sentence("codex did nothing", e.Message, d.About("codex"), text.LastLine(d.Stderr))
		return ralph.NoWork, why, none
	case completed:
		return ralph.Finished, "the agent ended its turn", none
	case failed:
		return ralph.Lost, conversation.Sentence("codex ended its turn with an error", e.Message), none
	case h.last != nil && h.last.Status == "interrupted" && !h.open:
		return ralph.Lost, "the agent was interrupted, and not by ralph", none
	}
	return ralph.Lost, conversation.Sentence(d.About("codex")+" in the middle of its work", text.LastLine(d.Stderr)), none
}

// serviceClass is the class of the service's error that ended a turn; "" if it is none.
func (h *history) serviceClass(e turnError) ralph.Ending {
	class, status := e.failure()
	if class == "other" && h.retrying != nil { // what it was is told while it is tried again
		class, status = h.retrying.failure()
	}
	switch {
	case class == "usageLimitExceeded" && h.credits, status == 402:
		return ralph.Billing
	case class == "usageLimitExceeded", class == "rateLimitExceeded", status == 429:
		return ralph.RateLimited
	case class == "unauthorized", status == 401, status == 403:
		return ralph.AuthFailed
	case class == "contextWindowExceeded", status == 413:
		return ralph.PromptTooLong
	case slices.Contains(overloaded, class), status >= 500:
		return ralph.Overloaded
	case connection(class) && (status == 0 || status == 408):
		return ralph.Network
	}
	return ""
}

// overloaded are the classes of a service that cannot work now.
var overloaded = []string{
	"serverOverloaded", "internalServerError", "policyCapacityUnavailable", "flexUnavailable",
}

// report is what the conversation and its end come to.
func (h *history) report(d conversation.Death, price agent.Pricing) agent.Report {
	r := agent.Report{
		Model: h.model, Version: h.version, Turns: h.turns, ToolCalls: h.toolCalls,
		LastWords: h.lastWords, Denials: h.denials, Unreadable: h.unreadable, Began: h.began,
	}
	r.Ending, r.Reason, r.ResetAt = h.classify(d)
	r.CostUSD, r.CostKnown = h.cost(price)
	for _, t := range h.threads {
		r.Tokens.Input += t.tokens.Input
		r.Tokens.Output += t.tokens.Output
		r.Tokens.CacheRead += t.tokens.CacheRead
		r.Tokens.CacheCreation += t.tokens.CacheCreation
	}
	r.Tokens.ContextWindow = h.of("").tokens.ContextWindow
	for _, name := range slices.Sorted(maps.Keys(h.windows)) {
		r.Usage = append(r.Usage, h.windows[name])
	}
	return r
}

// cost is what the tokens come to so far. A turn that is under way may have used more.
func (h *history) cost(price agent.Pricing) (usd float64, known bool) {
	if price == nil || h.turns == 0 {
		return 0, !h.began
	}
	known = !h.open
	for _, t := range h.threads {
		its, priced := price(cmp.Or(t.model, h.model), t.tokens)
		usd += its
		known = known && (priced || t.tokens == ralph.Tokens{}) && !t.open
	}
	return usd, known
}
