package agent

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"

	"ralph"
	"ralph/internal/environment"
	"ralph/internal/permission"
)

// A Profile is everything that ralph knows about one coding agent. No other code
// distinguishes agents of one kind. docs/agents.md is generated from the profiles.
type Profile struct {
	Name    string   // its name in ralph.yaml
	Title   string   // its name for people
	Kind    string   // its protocol, the value of kind in ralph.yaml
	Command []string // its program with fixed arguments; empty if the user has to give it
	Install string   // the command that installs it
	LogIn   string   // how people give it credentials
	Tested  string   // the version that was tested with ralph

	// ToolPrefix is the prefix of ralph's tools in the names that its model sees.
	ToolPrefix string
	// Dot replaces the dots in those names; "" is "_".
	Dot string
	// MCP is how it learns of ralph's tools.
	MCP Handing
	// Guard tells whether it asks for permissions, and how it learns of a refusal.
	Guard Guard
	// Uses converts a tool use that its hook asks about into uses that permission rules know. Each
	// must be allowed; an empty list needs no permission. If nil, the tool use is taken as it is.
	Uses func(tool string, input json.RawMessage) []permission.Use
	// Note has further advice for people, in a sentence or two.
	Note string
	// RefusalEnds means that a refused permission ends its turn.
	RefusalEnds bool
	// NoServers explains why it is not given the project's own servers of tools; "" if it is.
	NoServers string
	// Effort means that its reasoning effort can be set.
	Effort bool
	// Steered means that it reads messages during a turn.
	Steered bool
	// Cost and Tokens tell when it reports its use.
	Cost, Tokens Telling
	// Windows means that it reports the use of its account's limits; ResetTime means that
	// it reports when a limit ends.
	Windows, ResetTime bool
	// NeedsTools means that it does not begin a session without ralph's tools.
	NeedsTools bool
	// ErrorWord begins the text in the place of its model when the service fails; "" if it reports errors as such.
	ErrorWord string
	// SilentRetry means that it retries silently while its account is limited.
	SilentRetry bool
	// Escalates means that escalation_model names one of its models.
	Escalates bool
	// NoIdentity means that git does not know the user in the commands that it runs, so
	// that ralph sets the name and address for commits.
	NoIdentity bool
	// EndsAlone means that it ends when its input is closed; others are interrupted.
	EndsAlone bool
	// Host is the file name of its own helper program that its conversation needs.
	Host string

	// Variables are passed to it from ralph's environment, in addition to the ones for every process. Set are set for
	// it.
	Variables environment.Own
	Set       map[string]string
	// Credentials are variables and files ("~/…"). It needs at least one.
	Credentials []string
	// AccountID is the location of its account's id: a JSON file below home and a member of
	// it, as "~/file a.b".
	AccountID string
	// Home lists its own folders, as "~/…"; HomeVariable names a variable for another location, with an optional
	// path below it: "VARIABLE/path". It may write there. If Data is set, with globs of files and folders in Home,
	// only those changes are kept: the rest is a person's settings. A folder that ends in "/" is created. Replaced
	// are other files in Home that it must be able to replace: each session has its own copies.
	Home         []string
	HomeVariable string
	Replaced     []string
	// Settings are folders of a person's settings in which it makes temporary
	// entries, which end with the session.
	Settings []string
	Data     []string
}

// A Handing is how an agent learns of ralph's tools.
type Handing string

// The values of Handing.
const (
	ByFlag    Handing = "a flag"
	BySession Handing = "its session"    // session/new of the Agent Client Protocol
	ByChannel Handing = "`ralph signal`" // it has no tools, and runs a command instead
)

// A Guard is an agent's way of asking for permission.
type Guard string

// The values of Guard.
const (
	Hook     Guard = "hook"     // it asks, and is told the reason for a refusal
	Question Guard = "question" // it asks, and its next prompt has the reason for a refusal
	None     Guard = "none"     // it asks nobody: only a sandbox confines it
)

// A Telling is when an agent reports a number.
type Telling string

// The values of Telling.
const (
	Never       Telling = "never"
	AtTurnsEnd  Telling = "at the end of a turn"
	WithRequest Telling = "with each request"
)

// Signal returns the name of a verb's tool for the agent's model.
func (p *Profile) Signal(v ralph.Verb) string { return p.SignalPrefix() + string(v) }

// SignalPrefix returns the prefix of a verb in the name of its tool.
func (p *Profile) SignalPrefix() string {
	if p.MCP == ByChannel {
		return "ralph signal TICKET "
	}
	return p.Tool("ralph.signal.")
}

// Tool returns the name of one of ralph's tools for the agent's model; "" for "".
func (p *Profile) Tool(name string) string {
	if name == "" || p.MCP == ByChannel {
		return ""
	}
	return p.ToolPrefix + strings.ReplaceAll(name, ".", cmp.Or(p.Dot, "_"))
}

// Review returns the name for the agent's model of a tool that reports a review.
func (p *Profile) Review(name string) string {
	if p.MCP == ByChannel {
		return "ralph signal TICKET " + strings.TrimPrefix(name, "review.")
	}
	return "`" + p.Tool(name) + "`"
}

// Own returns a path in one of the agent's own folders, which a variable may have moved:
// HomeVariable moves the first of them, the XDG base directories the others.
func (p *Profile) Own(path string, getenv func(string) string) string {
	moves := [][2]string{
		{"~/.local/share", "XDG_DATA_HOME"}, {"~/.local/state", "XDG_STATE_HOME"}, {"~/.config", "XDG_CONFIG_HOME"},
	}
	if len(p.Home) > 0 {
		moves = append(moves, [2]string{p.Home[0], p.HomeVariable})
	}
	for _, move := range moves {
		variable, below, _ := strings.Cut(move[1], "/")
		rest, ok := strings.CutPrefix(path, move[0])
		if dir := getenv(variable); ok && variable != "" && filepath.IsAbs(dir) {
			return filepath.Join(dir, below, rest)
		}
	}
	return path
}

// A Known is an agent with a profile.
type Known interface {
	Agent
	Profile() *Profile
}

// ProfileOf returns an agent's profile. For an agent without one, such as a
// worker's, it assumes only that the agent names ralph's tools as Claude does.
func ProfileOf(a Agent) *Profile {
	if known, ok := a.(Known); ok {
		return known.Profile()
	}
	return &Profile{ToolPrefix: "mcp__ralph__", Escalates: true}
}
