package claude

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"ralph"
	"ralph/internal/files"
	"ralph/loop/agent"
)

var _ agent.Resumer = (*Agent)(nil)

// Resume implements [agent.Resumer]. Claude looks for a conversation in the folder where it starts, so the
// conversation is copied there.
func (a *Agent) Resume(r agent.Resumption) (command, env []string, err error) {
	own, _, _, _ := Folder(a.options.Getenv, r.Dir)
	transcript := func(dir string) string {
		return filepath.Join(own, "projects", notInName().ReplaceAllString(dir, "-"), r.SessionID+".jsonl")
	}
	if r.From != r.Dir {
		text, err := os.ReadFile(transcript(r.From))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, ralph.NotFound("Claude Code has no conversation of session %.8s any more (%s)",
				r.SessionID, transcript(r.From))
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(transcript(r.Dir)), 0o700)
		}
		if err == nil {
			err = files.Write(transcript(r.Dir), text, 0o600)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("copy the conversation: %w", err)
		}
	}
	tools := mcpConfig(a.options, agent.Assignment{SessionID: r.SessionID, Channel: agent.Channel{Socket: r.Socket}})
	command = append(slices.Clone(a.options.Command), "--resume", r.SessionID, "--mcp-config", tools,
		"--allowedTools", "mcp__"+serverName)
	if r.Model != "" {
		command = append(command, "--model", r.Model)
	}
	if r.Effort != "" {
		command = append(command, "--effort", r.Effort)
	}
	return append(command, "--", r.Prompt), a.options.Added(), nil
}
