// Package agent has what every coding agent is to ralph: an assignment in, events
// and a report out. The agents themselves are below it.
package agent

import (
	"context"
	"time"

	"ralph"
	"ralph/internal/proc"
)

// An Agent works on one task and returns when it, and all that it started, has
// ended. Package loop/agent/claude has the one that ralph ships.
//
// When ctx ends the agent is stopped: asked first, killed after its grace
// period. An error means that ralph could not run it at all (not installed, no
// permission, disk full); an agent that runs and fails is a Report.
type Agent interface {
	Work(ctx context.Context, a Assignment) (Report, error)
	// Salvage reads what a session's folder still tells of it, after a crash: what
	// it cost and said. The ending is the caller's to judge.
	Salvage(logDir string) (Report, error)
}

// A Program is an agent that runs a program, which may be missing.
type Program interface {
	Agent
	// Command is the program and its first arguments.
	Command() []string
	// Version is what the program says of itself in dir; "" if it says nothing.
	Version(ctx context.Context, dir string) (string, error)
}

// A Preparer is an agent that can get ready for its next session while its owner does
// something else; forget undoes that.
type Preparer interface {
	Prepare() (forget func())
}

// TranscriptFile is the file in a session's folder that has what the agent printed, byte
// for byte.
const TranscriptFile = "stream.jsonl"

// An Assignment is everything that an agent is handed for one session.
type Assignment struct {
	SessionID  string // a UUID; the agent's own session id too
	TaskID     int64
	Discipline string // the name under which it signals; "" for none
	Prompt     string
	Model      string  // "" leaves it to the agent
	MaxTurns   int     // limit of this session
	MaxCost    float64 // limit of this session in USD
	Dir        string  // the project's root: where the agent works
	LogDir     string  // where its transcript and standard error are kept; exists

	// Say is what people tell the agent while it works. It is never closed; the
	// agent stops reading when it ends.
	Say <-chan Message
	// TurnEnded is called when the agent has ended its turn and waits on its open
	// stdin, and says how the conversation goes on. It may take minutes (a
	// verification runs in it, while the agent stands still).
	TurnEnded func(ctx context.Context, t Turn) Answer
	// Seen is called, one call at a time, for everything that the agent is seen to
	// do. It must not block.
	Seen func(Event)
}

// A Turn is one that an agent has ended.
type Turn struct {
	// Process is the agent's; nil if ralph has not started it.
	Process *proc.Process
	// Keep tells the processes without which the agent cannot go on: itself and its
	// servers of tools. Whatever else it has started is left over from its turn.
	Keep func(proc.Member) bool
}

// An Answer says how a conversation goes on after a turn. The zero value ends it.
type Answer struct {
	Text string // is told to the agent
	Wait bool   // a person's words are on their way to it
	Over bool   // its process has been killed: the conversation came to its end before that
}

// Say tells the agent something.
func Say(text string) Answer { return Answer{Text: text} }

// A Message is something that a person says to a running session.
type Message struct {
	Text      string
	Delivered func() // called once it has been handed to the agent
}

// A Kind says what an agent was seen to do.
type Kind string

// The kinds of events.
const (
	Started  Kind = "started"  // the agent is up: Text is its name and version
	Said     Kind = "said"     // it said something; Failed, if the service did in its place
	Read     Kind = "read"     // it looked at a file, searched, or opened a page
	Edited   Kind = "edited"   // it changed a file
	Ran      Kind = "ran"      // it ran a command: Text is all of it
	Asked    Kind = "asked"    // it set an agent of its own to work
	Called   Kind = "called"   // it called any other tool, ralph's among them
	Answered Kind = "answered" // what it did has come to an end
	Told     Kind = "told"     // somebody told it something: ralph or a person
	Used     Kind = "used"     // Context of its model's context is used
	Ended    Kind = "ended"    // a turn of the conversation
	Troubled Kind = "troubled" // the service, or a server of tools, refuses
	Noted    Kind = "noted"    // something about the conversation or its transcript
	Other    Kind = "other"    // anything else; only that it is alive
)

// Kinds lists every kind.
var Kinds = []Kind{
	Started, Said, Read, Edited, Ran, Asked, Called, Answered, Told, Used, Ended, Troubled, Noted, Other,
}

// An Event is one thing that an agent was seen to do, in ralph's words.
type Event struct {
	Kind   Kind
	Depth  int    // 0 for the agent, 1 for its sub-agents, …
	Tool   string // with which it did so, as people know it: ralph's without what the agent puts before it
	Text   string // what was said or answered; what matters of a call: the command, the file, the question
	How    string // what else matters of a call: "(in the background)"
	Edits  []Edit // of a file
	Of     Kind   // what it is that was answered
	Failed bool   // the answer is an error

	// Seconds is how long a turn, a sub-agent or a look at the web took, as the agent
	// tells; for other tools the time since the answer before, which is that of the
	// model and of the tool.
	Seconds float64

	Model   string
	Context int64 // tokens
}

// An Edit is a part of a file before and after. A new file has nothing before.
type Edit struct{ Old, New string }

// A Reader turns a transcript, as the agent printed it, into what the agent was seen to
// do. It never fails on what an agent wrote: what it does not understand says nothing.
type Reader interface {
	// Line reads the next line; most make one event, many none.
	Line(line []byte) []Event
	// Clone is a reader that goes on from the same place.
	Clone() Reader
}

// A Report is what is known of a session's process after it has ended.
type Report struct {
	Ending     ralph.Ending
	Reason     string    // one sentence for people: what happened, in the agent's words where it has any
	ResetAt    time.Time // when a rate limit ends; zero if that is not known
	Exit       *int      // nil if it was killed
	Model      string    // the one that it says it used
	Version    string    // the agent's version
	CostUSD    float64
	CostKnown  bool // false: no result was seen and CostUSD is what the streamed usage comes to
	Began      bool // it may have called its model; without, it cost nothing
	Tokens     ralph.Tokens
	Turns      int
	ToolCalls  int
	LastWords  string              // the end of what it said last
	StderrTail string              // the end of its standard error
	Denials    []string            // refused permissions: tool and command
	Leftovers  []string            // processes that outlived it and had to be killed
	Usage      []ralph.UsageWindow // as far as it told of them
	Unreadable int                 // lines of its output that were no events; they are in the transcript
}
