// Package kinds has every agent that ralph can be told to work with. Who wants one, or
// reads what one has left, asks here and knows none of them by name.
package kinds

import (
	"ralph/internal/config"
	"ralph/loop/agent"
	"ralph/loop/agent/claude"
)

// New is the agent that the configuration says. What only Claude Code takes is in the
// options. Nothing is started.
func New(_ config.Agent, o claude.Options) agent.Agent { return claude.New(o) }

// NewReader reads a transcript from its beginning, whichever agent wrote it.
func NewReader() agent.Reader { return claude.NewReader() }
