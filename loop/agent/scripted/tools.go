package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph/internal/lazy"
)

// builtin are the agent's own tools.
var builtin = []string{"Bash", "Write"}

// notInName matches the characters that claude replaces in names of tools.
var notInName = lazy.Regexp(`[^A-Za-z0-9_-]`)

// A tool is a tool of an MCP server.
type tool struct {
	shown   string // its name for the model, such as mcp__ralph__ralph_signal_done
	name    string // its name for the server
	session *mcp.ClientSession
}

type serverStatus struct {
	Name   string `json:"name"`
	Status string `json:"status"` // "connected" or "failed"
	Error  string `json:"error,omitempty"`
}

// connect starts the MCP servers. A server that fails is reported and left out.
func (a *agent) connect(ctx context.Context) error {
	servers, err := a.options.servers()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		status := serverStatus{Name: name, Status: "connected"}
		if err := a.start(ctx, name, servers[name]); err != nil {
			status.Status, status.Error = "failed", err.Error()
		}
		a.servers = append(a.servers, status)
	}
	return nil
}

func (a *agent) start(ctx context.Context, name string, s server) error {
	// Not bound to ctx: closing the session lets the server shut down properly.
	cmd := exec.Command(s.Command, s.Args...)
	cmd.Env = os.Environ()
	for k, v := range s.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "claude-code", Version: Version}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return err
	}
	a.sessions = append(a.sessions, session)
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		a.tools = append(a.tools, tool{"mcp__" + name + "__" + notInName().ReplaceAllString(t.Name, "_"), t.Name, session})
	}
	return nil
}

// close ends the MCP servers.
func (a *agent) close() {
	for _, s := range a.sessions {
		// A server's error on exit does not matter to this session.
		_ = s.Close()
	}
	a.sessions = nil
}

// find returns a tool by its name for the server, its name for the model, or one of ralph's verbs.
func (a *agent) find(name string) (tool, bool) {
	i := slices.IndexFunc(a.tools, func(t tool) bool {
		return t.name == name || t.shown == name || strings.HasSuffix(t.shown, "_signal_"+name)
	})
	if i < 0 {
		return tool{shown: name}, false
	}
	return a.tools[i], true
}

// call calls a tool and shows the call.
func (a *agent) call(ctx context.Context, name, input string) {
	t, ok := a.find(name)
	id := a.events.toolUse(t.shown, json.RawMessage(input))
	if !ok {
		a.events.toolResult(id, "Error: No such tool available: "+name, true)
		return
	}
	result, err := t.session.CallTool(ctx, &mcp.CallToolParams{Name: t.name, Arguments: json.RawMessage(input)})
	if err != nil {
		a.events.toolResult(id, err.Error(), true)
		return
	}
	a.events.toolResult(id, result.Content, result.IsError)
}

// shell runs a command and shows it.
func (a *agent) shell(ctx context.Context, command string) error {
	input := map[string]string{"command": command}
	id := a.events.toolUse("Bash", input)
	if ok, err := a.permitted(ctx, "Bash", id, input); !ok || err != nil {
		return err
	}
	output, err := exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput()
	text := string(output)
	if err != nil {
		text = fmt.Sprintf("%s\n%s", err, text)
	}
	a.events.toolResult(id, text, err != nil)
	return nil
}

// write writes a file and shows it.
func (a *agent) write(ctx context.Context, path, content string) error {
	input := map[string]string{"file_path": path, "content": content}
	id := a.events.toolUse("Write", input)
	if ok, err := a.permitted(ctx, "Write", id, input); !ok || err != nil {
		return err
	}
	said := "File created successfully at: " + path
	err := os.WriteFile(path, []byte(content), 0o644)
	if err != nil {
		said = err.Error()
	}
	a.events.toolResult(id, said, err != nil)
	return nil
}

// modelTime is the minimum time for a model's first word. By then, ralph has listed the
// agent's own processes.
const modelTime = 100 * time.Millisecond

// spawn leaves a process behind.
func (a *agent) spawn(command string) error {
	id := a.events.toolUse("Bash", map[string]any{"command": command, "run_in_background": true})
	time.Sleep(modelTime)
	cmd := exec.Command("sh", "-c", command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a session of its own
	if err := cmd.Start(); err != nil {
		a.events.toolResult(id, err.Error(), true)
		return nil
	}
	a.events.toolResult(id, fmt.Sprintf("started as process %d", cmd.Process.Pid), false)
	return cmd.Process.Release() // nobody waits for it, because it outlives this process
}
