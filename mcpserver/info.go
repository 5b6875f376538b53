package mcpserver

import (
	"fmt"
	"io"
	"time"

	"ralph/internal/text"
	"ralph/internal/words"
)

// An Info is the output of `chat info`.
type Info struct {
	Mirror
	Server     *Background `json:"server"`     // null if none runs in the background
	Registered bool        `json:"registered"` // .mcp.json has ralph
	File       string      `json:"session_file"`
}

// Write prints it for people.
func (v Info) Write(w io.Writer) {
	if len(v.Sessions) == 0 {
		fmt.Fprint(w, "no active session")
		if v.ActiveTask != nil {
			fmt.Fprintf(w, "; the last one was on %s, which is %s", v.ActiveTask.ID, v.ActiveTask.Status)
		}
		fmt.Fprintln(w)
	}
	for _, s := range v.Sessions {
		fmt.Fprintf(w, "%s %s\n", s.Task.ID, text.Line(s.Task.Title, 100))
		fmt.Fprintf(w, "  claimed   %s by %s", text.When(s.ClaimedAt.Time, time.Now()), s.Person)
		if s.Branch != "" {
			fmt.Fprintf(w, " on branch %s", text.Line(s.Branch, 100))
		}
		fmt.Fprintf(w, "\n  in        %s\n", text.Line(s.Dir, 300))
		if s.Progress != nil {
			fmt.Fprintf(w, "  progress  %s\n", words.Progress(*s.Progress))
		}
		fmt.Fprintf(w, "  context   %s\n", s.Tokens.Words())
	}
	switch {
	case v.Server != nil:
		fmt.Fprintf(w, "MCP server on %s (process %d)", v.Server.URL, v.Server.PID)
		if v.Server.TokenFile != "" {
			fmt.Fprintf(w, ", token in %s", v.Server.TokenFile)
		}
		fmt.Fprintln(w)
	case v.Registered:
		fmt.Fprintln(w, "chats start ralph themselves (.mcp.json); no server for URLs runs: `ralph chat start`")
	default:
		fmt.Fprintln(w, "chats cannot reach ralph: `ralph init --mcp`, and for clients that want a URL `ralph chat start`")
	}
	fmt.Fprintf(w, "mirror: %s\n", v.File)
}

// Words describes the use of a context in a few words.
func (u ContextUse) Words() string {
	if u.Used == nil {
		return "not known"
	}
	from := map[string]string{
		"transcript": "chat's transcript", "stream": "agent's stream", "reported": "chat's report",
	}[u.Source]
	return fmt.Sprintf("%d of %d tokens (%.1f %%, from the %s)", *u.Used, *u.Limit, *u.Percent, from)
}
