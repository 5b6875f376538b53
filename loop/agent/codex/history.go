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
)

// Bounds of a history, for conversations of any length.
const (
	maxWords   = 2000 // characters of the last words
	maxReason  = 400  // characters of a reason
	maxDenials = 100
	maxAsked   = 1000 // uses of tools that the hook was asked about and that have not begun
	maxThreads = 1000 // number of distinguished threads
	maxID      = 100  // characters of an id
)

// A history has the observations of one conversation. It grows by the messages, in order.
type history struct {
	guarded bool

	began     bool // the model has answered something
	model     string
	version   string
	turns     int // requests of the model
	toolCalls int
	thread    string               // its own
	threads   map[string]*spending // its spending, and that of agents that it has started, by thread
	windows   map[string]ralph.UsageWindow
	used      map[string]bool // windows that are used up
	credits   bool            // the account has none left, and needs them
	lastWords string
	denials   []string
	asked     []string // calls about which the hook was, and that have not begun

	last     *turn // the turn that has ended last
	open     bool  // a turn is under way
	retrying *turnError
	unasked  string                     // actions without a question to the hook
	running  map[string]bool            // ids of tools that are at work
	at       struct{ calls, turns int } // when the turn began

	unreadable int
}

// A spending is the use of a thread.
type spending struct {
	model  string // "" for the session's
	tokens ralph.Tokens
	open   bool // one of its turns is in progress, which may have used more
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

// add reads a message to the client; ok means that it is one.
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
			h.begin()
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
	default:
		h.addItem(m.Method, p, own)
	}
}

// addItem notes an action of the agent, and the hooks that it calls. Own marks the session's own thread.
func (h *history) addItem(method string, p params, own bool) {
	switch method {
	case "hook/started":
		call := p.Run.ID[strings.LastIndex(p.Run.ID, ":")+1:]
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
		delete(h.running, text.Clip(p.Item.ID, maxID))
		if own && p.Item.Type == "agentMessage" && strings.TrimSpace(p.Item.Text) != "" {
			h.lastWords = text.ClipEnd(p.Item.Text, maxWords)
		}
	}
}

// begin notes that a turn begins.
func (h *history) begin() {
	h.open, h.retrying = true, nil
	h.at.calls, h.at.turns = h.toolCalls, h.turns
	clear(h.running)
}

// start notes the start of an item.
func (h *history) start(i item) {
	h.began = h.began || i.Type != "userMessage"
	switch i.Type {
	case "commandExecution", "fileChange", "mcpToolCall", "webSearch":
		h.toolCalls++
		if h.running == nil {
			h.running = map[string]bool{}
		}
		if len(h.running) < maxAsked {
			h.running[text.Clip(i.ID, maxID)] = true
		}
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

// addHook notes a refusal of the hook.
func (h *history) addHook(p params) {
	for _, e := range p.Run.Entries {
		if p.Run.Status == "blocked" && len(h.denials) < maxDenials {
			h.denials = append(h.denials, text.Line(e.Text, maxReason))
		}
	}
}

// addWindows notes the used parts of the account's allowances.
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

// trace returns the observations for the verdict.
func (h *history) trace() agent.Trace {
	t := agent.Trace{
		Open: h.open, Asking: len(h.running) == 0, Calls: h.toolCalls, Words: h.lastWords,
		Said: h.lastWords != "", Nothing: h.toolCalls == h.at.calls && h.turns == h.at.turns,
	}
	t.Tokens = h.spent()
	if h.last != nil {
		t.Last = map[string]agent.Closed{
			"completed": agent.Completed, "failed": agent.Failed, "interrupted": agent.Aborted,
		}[h.last.Status]
	}
	switch {
	case h.open && h.retrying != nil:
		t.Failure = h.failure(*h.retrying)
	case t.Last == agent.Failed && !h.open:
		t.Failure = h.failure(h.last.Error)
	}
	return t
}

// failure reads the state of the service from an error.
func (h *history) failure(e turnError) *agent.Failure {
	code, status := e.failure()
	if code == "other" && h.retrying != nil { // codex names the cause while it retries
		code, status = h.retrying.failure()
	}
	f := &agent.Failure{Status: status, Code: code, Text: agent.Sentence(e.Message, e.Details), ResetAt: h.resetTime()}
	switch {
	case code == "usageLimitExceeded" && h.credits:
		f.Code = "credits_depleted"
	case connection(code) && (status == 0 || status == 408):
		f.Code = "connection"
	}
	return f
}

// report returns the result of the conversation and its end.
func (h *history) report(d agent.Death, price agent.Pricing) agent.Report {
	r := agent.Report{
		Model: h.model, Version: h.version, Turns: h.turns, ToolCalls: h.toolCalls,
		LastWords: h.lastWords, Denials: h.denials, Unreadable: h.unreadable, Began: h.began,
	}
	r.CostUSD, r.CostKnown = h.cost(price)
	r.Tokens = h.spent()
	if d.Breach = ""; h.unasked != "" {
		d.Breach = "codex did this without asking ralph first, and was stopped: " + h.unasked
	}
	r.SetEnd(&Profile, h.trace(), d)
	for _, name := range slices.Sorted(maps.Keys(h.windows)) {
		r.Usage = append(r.Usage, h.windows[name])
	}
	return r
}

// spent returns the tokens of all threads.
func (h *history) spent() (sum ralph.Tokens) {
	for _, t := range h.threads {
		sum = sum.Add(t.tokens)
	}
	sum.ContextWindow = h.of("").tokens.ContextWindow
	return sum
}

// cost returns the price of the tokens so far. A turn in progress may have used more.
func (h *history) cost(price agent.Pricing) (usd float64, known bool) {
	if h.turns == 0 {
		return 0, !h.began
	}
	known = !h.open
	for _, t := range h.threads {
		its, priced := price(cmp.Or(t.model, h.model), t.tokens)
		usd += its
		known = known && (priced || t.tokens.Sum() == 0) && !t.open
	}
	return usd, known
}
