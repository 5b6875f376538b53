package scripted

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/google/uuid"
)

// options are the supported flags of claude.
type options struct {
	version   bool
	replay    bool
	mcpConfig string
	session   string
	model     string
	mode      string

	permissionTool string // an MCP server's tool, by the model's name for it; "" if nobody is asked
	allowed        string // tools that need no permission
}

// parseOptions reads "--flag value" and "--flag=value", and ignores other flags.
func parseOptions(args []string) options {
	o := options{model: "scripted", session: uuid.NewString(), mode: "default"}
	values := map[string]*string{
		"--mcp-config": &o.mcpConfig, "--session-id": &o.session, "--model": &o.model, "--permission-mode": &o.mode,
		"--permission-prompt-tool": &o.permissionTool, "--allowedTools": &o.allowed,
	}
	for i := 0; i < len(args); i++ {
		name, value, inline := strings.Cut(args[i], "=")
		switch name {
		case "--version", "-v":
			o.version = true
		case "--replay-user-messages":
			o.replay = true
		}
		target := values[name]
		if target == nil {
			continue
		}
		if !inline && i+1 < len(args) {
			i++
			value = args[i]
		}
		*target = value
	}
	return o
}

// A server is an entry of --mcp-config.
type server struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// servers reads --mcp-config, which is JSON or the name of a file.
func (o options) servers() (map[string]server, error) {
	if o.mcpConfig == "" {
		return nil, nil
	}
	text := []byte(o.mcpConfig)
	if !strings.HasPrefix(strings.TrimSpace(o.mcpConfig), "{") {
		var err error
		if text, err = os.ReadFile(o.mcpConfig); err != nil {
			return nil, fmt.Errorf("--mcp-config: %w", err)
		}
	}
	var c struct {
		Servers map[string]server `json:"mcpServers"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("--mcp-config: %w", err)
	}
	return c.Servers, nil
}
