package codex

import (
	"slices"

	"ralph"
	"ralph/internal/jsonrpc"
	"ralph/loop/agent"
	"ralph/loop/agent/conversation"
)

var _ agent.Resumer = (*Agent)(nil)

// Resume implements [agent.Resumer].
func (a *Agent) Resume(r agent.Resumption) (command, env []string, err error) {
	h := history{}
	if _, err := conversation.Salvage(r.LogDir, &agent.Death{}, func(l jsonrpc.Line) {
		if l.To == jsonrpc.ToClient {
			h.add(l.Message, true)
		}
	}); err != nil {
		return nil, nil, err
	}
	if h.thread == "" {
		return nil, nil, ralph.NotFound("session %.8s had no conversation with Codex", r.SessionID)
	}
	command = slices.Clone(a.options.Command)
	if last := len(command) - 1; last > 0 && command[last] == "app-server" {
		command = command[:last]
	}
	command = append(command, "resume", "--cd", r.Dir)
	command = append(command, tools(a.options, agent.Assignment{
		SessionID: r.SessionID, Channel: agent.Channel{Socket: r.Socket},
	})...)
	if r.Model != "" {
		command = append(command, "--model", r.Model)
	}
	if r.Effort != "" {
		command = append(command, "-c", "model_reasoning_effort="+quoted(r.Effort))
	}
	return append(command, h.thread, r.Prompt), a.options.Added(), nil
}
