// Package agent defines the interface of all coding agents: an assignment goes in, events and a report come out. The
// packages below it implement the agents.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"ralph"
	"ralph/internal/permission"
	"ralph/internal/proc"
)

// An Agent works on one task and returns when it, and all processes that it
// started, have ended. Package loop/agent/claude implements the built-in one.
//
// If ctx ends, the agent is stopped: it is asked first, and killed after its
// grace period. An error means that ralph could not run it at all (not installed,
// no permission, disk full). An agent that ran and failed is a Report.
type Agent interface {
	Work(ctx context.Context, a Assignment) (Report, error)
	// Salvage reads a session's use, last words and ending from its folder; d has the known facts about its end.
	Salvage(logDir string, d Death) (Report, error)
}

// A Program is an agent that runs a program, which may not be installed.
type Program interface {
	Agent
	// Command returns the program and its first arguments.
	Command() []string
	// Version returns the version that the program, run in dir, reports; "" for none.
	Version(ctx context.Context, dir string) (string, error)
}

// A Resumer is an agent in whose own terminal a person can continue a stopped session.
type Resumer interface {
	Program
	// Resume returns the command for that, with its arguments, and its environment beside the person's own. The error
	// wraps [ralph.ErrNotFound] if the conversation is gone.
	Resume(r Resumption) (command, env []string, err error)
}

// A Resumption is a conversation that a person continues.
type Resumption struct {
	SessionID string // session id of the former session
	LogDir    string // with that session's transcript
	From, Dir string // where it worked, and where it works from now on
	Socket    string // where ralph's tools answer
	Model     string // "" leaves it to the agent
	Effort    string // the same
	Prompt    string // the first message to the agent
}

// A Priced agent knows the price of a model's tokens in USD, and whether a person set it.
type Priced interface {
	Cost(model string, t ralph.Tokens) (usd float64, known bool)
}

// An Accounted agent works with an account.
type Accounted interface {
	// Account returns a value that differs between accounts. It is not secret.
	Account() string
}

// A TimeUp is the cause of a context that ends because a session's time is up: its whole time, or its time of silence.
type TimeUp interface {
	error
	TimeUp() (after time.Duration, silent bool)
}

// Cut adds to a death that ctx has ended, and whether that was for time.
func (d *Death) Cut(ctx context.Context) {
	d.Stopped = true
	if t, ok := errors.AsType[TimeUp](context.Cause(ctx)); ok {
		d.After, d.Silent = t.TimeUp()
	}
}

// TranscriptFile is the file in a session's folder that has the agent's output, byte for byte.
const TranscriptFile = "stream.jsonl"

// An Assignment is everything that an agent gets for one session.
type Assignment struct {
	SessionID  string // a UUID, also the agent's own session id
	TaskID     int64
	Discipline string // the name that it signals under; "" for none
	Prompt     string
	Model      string    // "" leaves it to the agent
	Effort     string    // one of [Efforts]; "" leaves it to the agent
	MaxTurns   int       // limit of this session
	MaxCost    float64   // limit of this session in USD
	MaxTokens  int64     // limit of this session's tokens; 0 leaves it to MaxCost
	Dir        string    // the project's root: where the agent works
	Env        []string  // variables of the workspace
	LogDir     string    // the existing folder for its transcript and standard error
	Channel    Channel   // for calls of ralph's tools
	Profile    *Profile  // the agent's own
	Author     [2]string // name and address for commits, if the profile requires them
	Servers    []Server  // the project's own servers of tools, if the profile takes them
	Project    string    // the person's folder, in which pictures are that no commit has; "" for none

	// Review receives the signals of a reviewing session; nil for other sessions.
	Review *Review

	// Plan receives the signals of a planning session; nil for other sessions.
	Plan *Plan

	// Dry makes the agent start, list ralph's tools and end, without a word to its model.
	Dry bool

	// Say delivers people's messages while the agent works. It is never
	// closed; the agent stops reading when it ends.
	Say <-chan Message
	// TurnEnded is called when the agent has ended its turn and waits on its open stdin.
	// It returns how the conversation continues. It may take minutes, because it may run
	// the verification while the agent is frozen.
	TurnEnded func(ctx context.Context, t Turn) Answer
	// Seen is called for everything that the agent is seen to do, one call at
	// a time. It must not block.
	Seen func(Event)
}

// A Review receives the signals of a reviewing session.
type Review struct {
	Object  func(o ralph.Objection) error
	Approve func(checked string) error
	Tests   func(asks, why string) error // nil if it is not asked whether the task asks for the changed tests
	Only    bool                         // it is asked nothing else
}

// A Plan receives the signals of a planning session. The errors tell it how to correct a call.
type Plan struct {
	Task func(ctx context.Context, t ralph.PlannedTask) (said string, err error)
	Ask  func(ctx context.Context, question string, options []string) (said string, err error)
	Done func(ctx context.Context, summary string) error
}

// Own returns the names of the tools for signals to ralph, in ralph's own form; none for a session that works on a
// task, which uses the usual ones.
func (a Assignment) Own() []string {
	switch {
	case a.Review != nil:
		return a.Review.Tools()
	case a.Plan != nil:
		return []string{ralph.PlanTaskTool, ralph.PlanAskTool, ralph.PlanDoneTool}
	}
	return nil
}

// Tools returns the names of ralph's tools that the session needs.
func (r *Review) Tools() []string {
	var names []string
	if !r.Only {
		names = append(names, ralph.ObjectTool, ralph.ApproveTool)
	}
	if r.Tests != nil {
		names = append(names, ralph.TestsTool)
	}
	return names
}

// Pictures returns the pictures that a message to the session's agent names.
func (a Assignment) Pictures(text string) []Picture {
	if a.Project == "" {
		return Pictures(text, a.Dir)
	}
	return Pictures(text, a.Dir, a.Project)
}

// A Channel connects a session's agent with the run. The folder of its
// files belongs to the session alone.
type Channel struct {
	Socket     string // the socket on which the run answers calls of ralph's tools
	Ticket     string // lets one connection use the tools, once: no other program of the session may learn it
	Unreported string // a file that, while it exists, keeps the agent from changing others; "" for none
	// Permit asks for permission to use tools, and may wait for a person. It returns the
	// reason for a refusal, or "". If nil, nobody is asked.
	Permit func(ctx context.Context, uses []permission.Use) (why string, err error)
	// Listed is closed once a client has been told the list of tools; nil if that is unknown.
	Listed <-chan struct{}
}

// Serve serves ralph's tools to the agent of an assignment, by files in the given folder, until shut is called.
type Serve func(a Assignment, folder string) (c Channel, shut func() error, err error)

// A Turn is a turn that an agent has ended.
type Turn struct {
	// Process is the agent's process; nil if ralph did not start it.
	Process *proc.Process
	// Keep reports whether the agent needs a process to continue: itself or one of its
	// tool servers. All other processes are leftovers of its turn.
	Keep func(proc.Member) bool
}

// An Answer decides how a conversation continues after a turn. The zero value ends it.
type Answer struct {
	Text string // a message for the agent
	Wait bool   // a person's message is on its way to the agent
	Over bool   // its process has been killed, so the conversation ended earlier
}

// Say returns the answer that sends the agent a message.
func Say(text string) Answer { return Answer{Text: text} }

// A Message is a person's message to a running session.
type Message struct {
	Text      string
	Delivered func() // called when the agent has it
}

// A Kind is the kind of an agent's event.
type Kind string

// The kinds of events.
const (
	Started  Kind = "started"  // the agent is ready: Text is its name and version
	Said     Kind = "said"     // it said something or, if Failed, the service did instead
	Read     Kind = "read"     // it looked at a file, searched, or opened a page
	Edited   Kind = "edited"   // it changed a file
	Ran      Kind = "ran"      // it ran a command: Text is the whole command
	Asked    Kind = "asked"    // it started a sub-agent
	Called   Kind = "called"   // it called any other tool, including ralph's
	Answered Kind = "answered" // a call returned
	Told     Kind = "told"     // ralph or a person sent it a message
	Used     Kind = "used"     // Context tokens of its model's context are used
	Ended    Kind = "ended"    // a turn of the conversation ended
	Troubled Kind = "troubled" // the service, or a tool server, refuses
	Noted    Kind = "noted"    // a remark about the conversation or its transcript
	Other    Kind = "other"    // anything else: a sign of life
)

// An Event is one thing that an agent was seen doing, in ralph's terms.
type Event struct {
	Kind   Kind
	Depth  int    // 0 for the agent, 1 for its sub-agents, …
	Tool   string // the tool's name for people: ralph's tools without the agent's prefix
	Text   string // the text or the answer, or the essence of a call: the command, the file, the question
	How    string // a detail of a call: "(in the background)"
	Edits  []Edit // the changes to a file
	Of     Kind   // the answer
	Failed bool   // the answer is an error

	// Seconds is how long a turn, a sub-agent or a web request took, as the agent reports it.
	// For other tools it is the time since the previous answer, which includes the model's.
	Seconds float64

	Model   string
	Context int64 // tokens

	// Tokens and CostUSD are the conversation's reported use so far; such an event is [Used]. The cost is an
	// estimate, 0 if there is none.
	Tokens  ralph.Tokens
	CostUSD float64
}

// Denied reports whether the event means that ralph refused something to the agent.
func (e Event) Denied() bool {
	return e.Kind == Answered && e.Failed && strings.Contains(e.Text, permission.Denied)
}

// An Edit is a part of a file before and after. In a new file, Old is empty.
type Edit struct{ Old, New string }

// A Reader converts an agent's transcript into events. It never fails on an agent's output: it ignores unknown parts.
type Reader interface {
	// Line reads the next line; most yield one event, many none.
	Line(line []byte) []Event
	// Clone returns a reader that continues from the same position.
	Clone() Reader
}

// Metadata returns further reports in the arguments of a ralph tool, as JSON after a space; "" for
// none.
func Metadata(arguments map[string]any) string {
	m, ok := arguments["metadata"].(map[string]any)
	if arguments["state"] == nil || !ok || len(m) == 0 {
		return ""
	}
	b, err := json.Marshal(m)
	if err != nil { // impossible: it was parsed from JSON
		return ""
	}
	return " " + string(b)
}

// A Report has the facts about a session's process after its end.
type Report struct {
	Ending     ralph.Ending
	Reason     string    // one sentence for people about its end, in the agent's words if it has any
	ResetAt    time.Time // when a rate limit ends; zero if unknown
	Exit       *int      // nil if it was killed
	Model      string    // the model that it reports it used
	Version    string    // the agent's version
	CostUSD    float64
	CostKnown  bool // false: CostUSD is an estimate, or 0 if the price of Tokens is unknown
	Began      bool // it may have called its model; if not, it cost nothing
	Tokens     ralph.Tokens
	Turns      int
	ToolCalls  int
	LastWords  string              // the end of its last message
	StderrTail string              // the end of its standard error
	Denials    []string            // refused permissions: tool and command
	Leftovers  []string            // processes that outlived it and had to be killed
	Usage      []ralph.UsageWindow // the reported part
	Unreadable int                 // lines of its output that were not events; the transcript has them
}
