// Package agent has what every coding agent is to ralph: an assignment in, events
// and a report out. The agents themselves are below it.
package agent

import (
	"context"
	"encoding/json"
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

// EventKind says what an agent was seen to do.
type EventKind string

// The kinds of agent events.
const (
	SeenStart  EventKind = "start"  // the agent is up: Text is its version, Model its model
	SeenText   EventKind = "text"   // it said something
	SeenTool   EventKind = "tool"   // it called a tool
	SeenResult EventKind = "result" // a tool answered
	SeenUsage  EventKind = "usage"  // tokens and cost so far
	SeenOther  EventKind = "other"  // anything else; only that it is alive
)

// An Event is one thing that an agent was seen to do.
type Event struct {
	Kind   EventKind
	Text   string          // what it said; the start of a tool's answer
	Tool   string          // a tool's name, as the model sees it
	Input  json.RawMessage // a tool's input
	Failed bool            // the tool answered with an error
	Model  string
	Tokens ralph.Tokens
	Cost   float64 // USD so far, as far as it is known

	Context int64 // tokens of the model's context that are used; 0 if it is not known
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
