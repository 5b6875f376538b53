package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ralph/internal/lazy"
)

// ServersFile is the file in which a project lists tool servers (MCP) for its agents.
const ServersFile = ".mcp.json"

// A Server is one of the project's own servers of tools. ${NAME} and ${NAME:-default} in its values are variables
// of the agent's environment; see [Server.Expand].
type Server struct {
	Name    string            `json:"-"`
	Type    string            `json:"type"` // "stdio", "http" or "sse"
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// serverName are the names that every agent takes.
var serverName = lazy.Regexp(`^[A-Za-z0-9_-]{1,64}$`)

// Servers reads the project's servers in the order of their names. One called ralph is for people's own chats and left
// out. The error names the fault that a person has to correct in the file.
func Servers(content []byte) (list []Server, err error) {
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, nil
	}
	var file struct {
		Servers map[string]Server `json:"mcpServers"`
	}
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", ServersFile, err)
	}
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		s := file.Servers[name]
		s.Name = name
		if s.Type == "" && s.URL == "" {
			s.Type = "stdio"
		}
		wrong := ""
		switch {
		case name == "ralph":
			continue
		case !serverName().MatchString(name):
			wrong = "its name may have letters, digits, _ and - only"
		case s.Type != "stdio" && s.Type != "http" && s.Type != "sse":
			wrong = `its type must be "stdio", "http" or "sse"`
		case s.Type == "stdio" && s.Command == "":
			wrong = "it has no command"
		case s.Type != "stdio" && s.URL == "":
			wrong = "it has no url"
		}
		if wrong != "" {
			return nil, fmt.Errorf("%s: server %q: %s", ServersFile, name, wrong)
		}
		list = append(list, s)
	}
	return list, nil
}

// serverVariable is a variable in a server's values.
var serverVariable = lazy.Regexp(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}`)

// Expand returns the server with the values of its variables. A variable without a value and a default stays as
// written, and the server reports it.
func (s Server) Expand(environ []string) Server {
	value := func(text string) string {
		return serverVariable().ReplaceAllStringFunc(text, func(found string) string {
			m := serverVariable().FindStringSubmatch(found)
			for _, entry := range slices.Backward(environ) {
				if v, ok := strings.CutPrefix(entry, m[1]+"="); ok {
					return v
				}
			}
			if strings.Contains(found, ":-") {
				return m[2]
			}
			return found
		})
	}
	all := func(m map[string]string) map[string]string {
		m = maps.Clone(m)
		for name := range m {
			m[name] = value(m[name])
		}
		return m
	}
	s.Command, s.URL, s.Args = value(s.Command), value(s.URL), slices.Clone(s.Args)
	s.Env, s.Headers = all(s.Env), all(s.Headers)
	for i := range s.Args {
		s.Args[i] = value(s.Args[i])
	}
	return s
}

// Entry returns the server in the form of a settings file.
func (s Server) Entry() map[string]any {
	entry := map[string]any{"type": s.Type}
	if s.Type != "stdio" {
		entry["url"] = s.URL
		if len(s.Headers) > 0 {
			entry["headers"] = s.Headers
		}
		return entry
	}
	entry["command"] = s.Command
	entry["args"] = append([]string{}, s.Args...) // never null
	if len(s.Env) > 0 {
		entry["env"] = s.Env
	}
	return entry
}
