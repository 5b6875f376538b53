package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/lazy"
	"ralph/internal/text"
)

// A Death describes the end of a session's process, and ralph's part in it.
type Death struct {
	Stopped  bool          // ralph stopped it in the middle of its work
	After    time.Duration // because its time was up after this long; 0 otherwise
	Silent   bool          // it ended because nothing was heard from it for that time
	Over     string        // ralph ended it at this limit of the session
	Breach   string        // ralph ended it because of this, which it did without asking
	Toolless string        // why ralph's tools did not reach it, if known
	Refusal  *Failure      // its session, or a turn, could not begin
	Mute     bool          // ralph ended it because it had closed its output
	Code     int           // exit status; -1 after a signal, or if unknown
	Signal   string        // the signal that ended it, such as "SIGKILL"
	Stderr   string        // the end of its standard error
}

// Unseen is the death of a process whose end ralph did not see.
var Unseen = Death{Code: -1}

// crashed reports whether it did not exit by itself.
func (d Death) crashed() bool { return d.Mute || d.Signal != "" || d.Code > 128 || d.Code < 0 }

// about describes the end of an agent's process.
func (d Death) about(name string) string {
	switch {
	case d.Mute:
		return name + " closed its output and did not end, so that ralph ended it"
	case d.Signal != "":
		return name + " was killed by " + d.Signal
	case d.Code < 0:
		return name + " is gone, and how it ended is unknown"
	}
	return fmt.Sprintf("%s exited with status %d", name, d.Code)
}

// A Closed is the way in which a turn of a conversation ended.
type Closed string

// The ways in which a turn ends.
const (
	NoTurn    Closed = ""          // none has ended
	Completed Closed = "completed" // by itself
	Failed    Closed = "failed"    // with an error
	Limited   Closed = "limited"   // at the agent's own limit
	Aborted   Closed = "aborted"   // somebody interrupted it
)

// A Failure is an error that an agent reported, or is retrying after.
type Failure struct {
	Status  int       // HTTP status; 0 if unknown
	Code    string    // its class, in the words of the agent or of the API; "" if unknown
	Text    string    // its text for people
	ResetAt time.Time // when a limit ends; zero if unknown
}

// A Trace has the observations of a conversation by its end.
type Trace struct {
	Last    Closed   // how its last turn ended
	Open    bool     // another one is under way
	Asking  bool     // no tool was at work when it ended, or was stopped: it waited for its model
	Failure *Failure // the last turn's error, or the one that it is retrying after; nil if none
	Nothing bool     // the last turn had no tool call and no tokens
	Words   string   // the text at the end of the last turn
	Calls   int      // tool calls of the conversation
	Tokens  ralph.Tokens
	Said    bool   // the agent said something in the conversation
	Limit   string // its own limit that the last turn reached, in its words
}

// A Verdict classifies the end of an agent.
type Verdict struct {
	Ending  ralph.Ending
	Reason  string    // one sentence for people
	ResetAt time.Time // when a limit ends; zero if unknown
}

// EndOf classifies the end of an agent. No other function does. An agent's own error is classified by its structure
// first, and by its words only without one; a model's words in a turn that worked have no effect.
func EndOf(p *Profile, t Trace, d Death) Verdict {
	e := end{Trace: t, Death: d, name: p.Title, last: text.LastLine(d.Stderr), failure: t.Failure}
	if e.failure == nil && e.closed(Completed) && t.Nothing && p.Tokens != Never {
		e.failure = &Failure{Text: t.Words} // the service said that, not the model
	}
	if e.failure == nil {
		e.failure = d.Refusal
	}
	if e.failure != nil {
		e.class = Class(*e.failure)
	}
	for _, caused := range []func() (Verdict, bool){e.byRalph, e.byService, e.byItself} {
		if v, ok := caused(); ok {
			return v
		}
	}
	return e.as(ralph.Lost, d.about(e.name)+" in the middle of its work", e.last)
}

// An end holds all facts about the end of an agent.
type end struct {
	Trace
	Death
	name    string
	last    string       // the last line of its standard error
	failure *Failure     // its error, or the service's; nil for none
	class   ralph.Ending // ending for it; "" if it has none
}

// closed reports whether its last turn ended so.
func (e *end) closed(how Closed) bool { return e.Last == how && !e.Open }

// as returns a verdict with a reason made of these parts.
func (e *end) as(ending ralph.Ending, parts ...string) Verdict {
	return Verdict{Ending: ending, Reason: Sentence(parts...)}
}

// said returns the verdict for the service's error.
func (e *end) said() Verdict {
	v := e.as(e.class, readable(e.failure.Text))
	if v.Reason == "" {
		v.Reason = e.about(e.name)
	}
	if e.class == ralph.RateLimited {
		v.ResetAt = e.failure.ResetAt
	}
	return v
}

// byRalph returns the verdict on an agent that ralph ended.
func (e *end) byRalph() (v Verdict, ok bool) {
	switch {
	case e.Stopped && e.Silent && e.Asking && (e.Open || e.Last != Completed):
		if e.class != "" && e.failure.Code != NoAnswer {
			return e.said(), true
		}
		why := fmt.Sprintf("%s said nothing for %s while its model was to answer", e.name, e.After)
		return e.as(ralph.RateLimited, why), true
	case e.Stopped && e.After > 0 && e.Calls == 0 && !e.Said:
		return e.as(ralph.NoWork, fmt.Sprintf("%s did nothing for %s", e.name, e.After)), true
	case e.Stopped:
		return e.as(ralph.Interrupted, "stopped by ralph"), true
	case e.Over != "":
		return e.as(ralph.TimedOut, e.Over), true
	case e.Breach != "":
		return e.as(ralph.MCPFailed, e.Breach), true
	}
	return v, false
}

// byService returns the verdict on an agent whose service or tools failed.
func (e *end) byService() (v Verdict, ok bool) {
	switch {
	case e.failure != nil && e.class == "" && ofContent().MatchString(e.failure.Text):
		// Another session, agent or account would have the same problem: the task ends, and others
		// continue.
		return e.as(ralph.Finished, "the service refuses the task's content", readable(e.failure.Text)), true
	case e.class != "":
		return e.said(), true
	case e.Toolless != "" && !(e.Refusal != nil && ofFiles().MatchString(e.Refusal.Text)):
		return e.as(ralph.MCPFailed, e.Toolless, e.last), true
	case e.Refusal != nil:
		return e.as(ralph.NoWork, e.name+" does not begin", readable(e.Refusal.Text), e.last), true
	}
	return v, false
}

// byItself returns the verdict on an agent that ended by itself.
func (e *end) byItself() (v Verdict, ok bool) {
	completed, failed := e.closed(Completed), e.closed(Failed)
	switch {
	case e.closed(Limited):
		return e.as(ralph.TimedOut, cmp.Or(e.Limit, e.name+" has reached its own limit of turns")), true
	case e.closed(Aborted):
		return e.as(ralph.Lost, "the agent was interrupted, and not by ralph"), true
	case !completed && !failed && e.crashed():
		if e.Mute { // its words while being ended explain nothing
			return e.as(ralph.Lost, e.about(e.name)), true
		}
		return e.as(ralph.Lost, e.about(e.name), e.last), true
	case e.failure != nil && e.Calls == 0 && (failed || e.Nothing):
		return e.as(ralph.NoWork, e.name+" did nothing", readable(e.failure.Text), e.last), true
	case e.Calls == 0 && !e.Said && e.Tokens.Sum() == 0:
		return e.as(ralph.NoWork, e.name+" did nothing", e.about(e.name), cmp.Or(e.last, e.Words)), true
	case completed:
		return e.as(ralph.Finished, "the agent ended its turn"), true
	case failed && e.failure != nil:
		return e.as(ralph.Lost, e.name+" ended its turn with an error", readable(e.failure.Text)), true
	}
	return v, false
}

// SetEnd puts the end of the agent into a report.
func (r *Report) SetEnd(p *Profile, t Trace, d Death) {
	v := EndOf(p, t, d)
	r.Ending, r.Reason, r.ResetAt, r.StderrTail = v.Ending, v.Reason, v.ResetAt, d.Stderr
	answered := r.ToolCalls > 0 || r.Tokens.Sum() > 0 || r.CostUSD > 0
	if v.Ending.AgentError() && !answered && (t.Failure != nil || t.Nothing || d.Refusal != nil) {
		r.Began, r.CostKnown = false, true // the service answered nothing
	}
}

// NoAnswer is the code of a [Failure] of an agent that keeps retrying without a reason: the network, or a limit if it
// is silent for long.
const NoAnswer = "noanswer"

// maxReason is the length of a sentence in characters.
const maxReason = 400

// Sentence joins the parts that are not empty with colons, on one line of limited length.
func Sentence(parts ...string) string {
	var all []string
	for _, p := range parts {
		if p = text.Flat(p); p != "" {
			all = append(all, p)
		}
	}
	return text.Clip(strings.Join(all, ": "), maxReason)
}

// A class is an ending with its marks: codes, as letters only, HTTP statuses, and words for people.
type class struct {
	ending   ralph.Ending
	codes    string
	statuses []int
	words    func() *regexp.Regexp
	within   []int // statuses for which the words are more precise; 0 is none
}

// classes has the more precise ones first: services often report missing credit as a limit, and a
// prompt that is too long as an error.
var classes = []class{
	{
		ralph.Billing,
		"billingerror billingnotactive insufficientquota insufficientcredits creditsdepleted paymentrequired " +
			"billinghardlimitreached",
		[]int{402},
		lazy.Regexp(`(?i)credit balance|credits? (are|is) (depleted|exhausted)|out of credits?|no credits? left|` +
			`insufficient (credit|balance|funds|quota)|payment required|billing (is )?not (active|enabled)|` +
			`check your (plan and )?billing|spend(ing)? (limit|cap)\b|budget (has been |was )?exceeded`),
		[]int{0, 400, 429},
	},
	{
		ralph.NoWork, // the model is unknown, which people have to fix
		"modelnotfound notfounderror",
		nil,
		lazy.Regexp(`(?i)\bmodels?\b.{0,80}(not (be )?(found|exist|supported|available)|unknown)|selected model|` +
			`(unknown|invalid|unsupported) model`),
		[]int{0, 400, 404, 500},
	},
	{
		ralph.PromptTooLong,
		"contextwindowexceeded contextlengthexceeded prompttoolong requesttoolarge contextoverflowerror",
		[]int{413},
		lazy.Regexp(`(?i)prompt is too long|(input|prompt|request|context|conversation).{0,60}` +
			`(exceed|too (long|large))|context (window|length)|maximum (number of tokens|context)|too many tokens`),
		[]int{0, 400, 500},
	},
	{
		ralph.RateLimited,
		"ratelimit ratelimited ratelimiterror ratelimitexceeded usagelimitexceeded usagelimitreached resourceexhausted " +
			"toomanyrequests quotaexceeded",
		[]int{429},
		lazy.Regexp(`(?i)rate.?limit|usage limit|too many requests|quota|resource.{0,10}exhausted|` +
			`\b(hit|reached|exceeded) your .{0,30}\blimit|(daily|weekly|monthly|session) limit`),
		[]int{0},
	},
	{
		ralph.AuthFailed,
		"authenticationfailed authenticationerror unauthorized unauthenticated invalidapikey apikeyinvalid " +
			"permissiondenied permissionerror authrequired providerautherror forbidden",
		[]int{401, 403},
		lazy.Regexp(`(?i)api.?key|unauthori[sz]ed|authenticat|credential|not (logged|signed) in|permission denied|` +
			`(log|sign) ?in (again|first|to|with|required)|/login\b|(session|token) (has |is )?expired|` +
			`missing environment variable|territory not supported|` +
			`(account|organi[sz]ation)\b.{0,40}(disabled|suspended|deactivated)`),
		[]int{0, 400},
	},
	{
		ralph.Overloaded,
		"overloaded overloadederror serveroverloaded servererror internalservererror internal unavailable " +
			"serviceunavailable policycapacityunavailable flexunavailable",
		[]int{500, 502, 503, 504, 529},
		lazy.Regexp(`(?i)overloaded|internal (server )?error|unavailable|server had an error|bad gateway`),
		[]int{0},
	},
	{
		ralph.Network,
		NoAnswer + " connection timeout econnrefused econnreset enotfound etimedout apiconnectionerror",
		[]int{408},
		lazy.Regexp(`(?i)ECONN\w+|ENOTFOUND|ETIMEDOUT|EAI_AGAIN|connect(ion)? (error|refused|reset|closed|failed)|` +
			`fetch failed|(unable|not|cannot|can't|failed to) connect|socket|network|timed? ?out|` +
			`stream (disconnected|closed|ended)|transient api error|failed to parse|response body|incomplete json|` +
			`unexpected (end of|eof)|unterminated string|premature|other side closed|^terminated$|\bEPIPE\b`),
		[]int{0},
	},
}

// sharp is the number of first classes that are more precise than a limit or a server error that
// came with them.
const sharp = 3

// Class returns the ending for an agent's error; "" if it has none. A code is more precise than a
// status, and a status more than words.
func Class(f Failure) ralph.Ending {
	if ofFiles().MatchString(f.Text) {
		return "" // this class is about the machine, with any code
	}
	in := inside(f.Text)
	codes := append([]string{letters(f.Code)}, in.codes...)
	status := in.status
	if f.Status >= 400 { // an answer may begin well, and report an error later
		status = f.Status
	}
	coded := slices.IndexFunc(classes, func(c class) bool {
		return slices.ContainsFunc(codes, func(code string) bool {
			return code != "" && slices.Contains(strings.Fields(c.codes), code)
		})
	})
	worded := slices.IndexFunc(classes, func(c class) bool {
		return slices.Contains(c.within, status) && c.words().MatchString(f.Text)
	})
	known := slices.IndexFunc(classes, func(c class) bool { return slices.Contains(c.statuses, status) })
	vague := coded < 0 || classes[coded].ending == ralph.Overloaded || classes[coded].ending == ralph.RateLimited
	google := slices.Contains(codes, "resourceexhausted") || googles().MatchString(f.Text)
	google = google && !creditsGone().MatchString(f.Text)
	switch {
	case status == 500 && unreached().MatchString(f.Text):
		return ralph.Network // an agent's own status
	case vague && worded >= 0 && worded < sharp && !(google && worded == 0):
		return classes[worded].ending
	case coded >= 0 && !(classes[coded].ending == ralph.Overloaded && known >= 0):
		return classes[coded].ending
	case known >= 0:
		return classes[known].ending
	case status >= 500 && status < 600:
		return ralph.Overloaded
	case worded >= 0:
		return classes[worded].ending
	}
	if bare := bareStatus().FindString(f.Text); status == 0 && bare != "" { // in a language unknown to ralph
		return Class(Failure{Text: "HTTP " + bare})
	}
	return ""
}

// ofContent matches messages of a service that refuses a request for its content.
var ofContent = lazy.Regexp(`(?i)(usage|content).{0,20}polic(y|ies)|content.?filter|content management policy|` +
	`blocked by .{0,20}safety|\bsafety (filter|system)|responsible ?ai|recitation|prohibited_content`)

// bareStatus are statuses of HTTP that hardly mean anything else where an error is told.
var bareStatus = lazy.Regexp(`\b(401|402|403|429|502|503|504|529)\b`)

// ofFiles are a file system's words.
var ofFiles = lazy.Regexp(`(?i)\(os error (1|2|5|13|17|20|21|23|24|28|30|39)\)|` +
	`\b(EACCES|EPERM|ENOENT|EROFS|ENOSPC|EMFILE|EIO)\b|no such file or directory|` +
	`read-only file system|no space left on device|too many open files`)

// googles are words of Google's API, which prints "check your plan and billing details" for any
// limit.
var googles = lazy.Regexp(`ai\.google\.dev|googleapis\.com`)

// unreached are words that agents print only without a complete answer.
var unreached = lazy.Regexp(`(?i)\bfetch failed|\bE(CONN\w+|NOTFOUND|TIMEDOUT)\b|incomplete json`)

// creditsGone are words that appear only in messages about credit.
var creditsGone = lazy.Regexp(`(?i)credit`)

// letters returns a code in one form for all of its spellings.
func letters(code string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return -1
	}, code)
}

// An inner is an API's answer found in an agent's text.
type inner struct {
	status int
	codes  []string
}

var (
	innerCode   = lazy.Regexp(`\\?"(?:code|type|status|reason)\\?"\s*:\s*\\?"([A-Za-z_]+)\\?"`)
	innerStatus = lazy.Regexp(
		`(?i)(?:\b(?:error|status|code|http)\b\\?"?[ :(]{1,3}(?:code[ :]{1,2})?|^\W*|\()([45]\d\d)\b`)
)

// inside finds an API's answer in an agent's text: many quote it.
func inside(said string) (i inner) {
	said = text.Clip(said, 4000)
	for _, m := range innerCode().FindAllStringSubmatch(said, 10) {
		i.codes = append(i.codes, letters(m[1]))
	}
	if m := innerStatus().FindStringSubmatch(said); m != nil {
		i.status, _ = strconv.Atoi(m[1]) // three digits
	}
	return i
}

// readable returns the message for people in an API's answer, if the complete text is one.
func readable(said string) string {
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(said), &body) == nil && body.Error.Message != "" {
		return body.Error.Message
	}
	return said
}
