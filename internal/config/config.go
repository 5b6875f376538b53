// Package config reads the configuration of a project: ralph.yaml, the user's file and the
// environment, into one plain struct (unattended, "Crash safety").
//
// It never writes, starts nothing, and does not read the environment of the process: [Sources]
// names all of its inputs. It knows only the type and the bounds of a key.
//
// A [Loaded] without an error is complete and valid, and no limit in it is absent, zero or
// negative. Every problem is reported with file, line and column. A key is documented by the tags
// of its field and its text in docs.go, from which [Keys], [Schema] and docs/configuration.md
// are generated.
package config

import "time"

// None is the value of a key for a file or a model that is not wanted.
const None = "none"

// Config is the whole configuration. The tags of a field give the key's name (json), its built-in default in the form
// of an environment variable (default), the accepted values or their name in enums (enum), the smallest number or
// length (min), the largest number (max), whether a list may have empty items (blank) or has folders within the project
// (local), the keys that each map of a list has exactly one of (one), and whether the value is hidden because it may be
// a password (secret). docs has the meaning of each key.
type Config struct {
	Agent           Agent       `json:"agent"`
	Agents          Agents      `json:"agents" default:"{}"`
	Limits          Limits      `json:"limits"`
	Parallel        int         `json:"parallel" default:"1" min:"1" max:"100"`
	Verify          Verify      `json:"verify" shorthand:"commands"`
	EscalationModel string      `json:"escalation_model" default:"opus"`
	Suggestions     string      `json:"suggestions" default:"review" enum:"review|auto_approve"`
	Prompt          Prompt      `json:"prompt"`
	Sessions        Sessions    `json:"sessions"`
	Permissions     Permissions `json:"permissions"`
	Workspace       Workspace   `json:"workspace"`
	Review          Reviews     `json:"review" default:"[]" one:"agent"`
	Merge           Merge       `json:"merge"`
	Forge           Forge       `json:"forge"`
	Sandbox         Sandbox     `json:"sandbox" shorthand:"mode"`
	Notify          Notify      `json:"notify" shorthand:"receivers"`
	Dashboard       Dashboard   `json:"dashboard"`
	Database        string      `json:"database" secret:"yes"`
}

// enums are sets of accepted values that are too long for a tag, by the name used in it.
var enums = map[string][]string{
	"modes": {"default", "acceptEdits", "bypassPermissions", "dontAsk", "plan", "auto"},
	"events": {
		"question.asked", "permission.asked", "task.failed", "task.blocked", "task.completed",
		"flag.blocking", "run.ended", "limit.reached", "agent.unavailable",
		"storage.full", "trouble.found",
	},
}

// Sandbox limits the reach of the agent and the commands that check its work (docs/sandbox.md).
type Sandbox struct {
	Mode    string   `json:"mode" default:"auto" enum:"auto|require|off"`
	Hide    []string `json:"hide" default:"[]"`
	Show    []string `json:"show" default:"[]"`
	Network bool     `json:"network" default:"true"`
}

// Percentages are whole numbers from 0 to 100 by name.
type Percentages map[string]int

// Agent configures how the coding agent is launched (unattended, "Launching the agent").
type Agent struct {
	Command        []string          `json:"command" default:"[claude]" min:"1"`
	ExtraArgs      []string          `json:"extra_args" default:"[]" blank:"ok"`
	Model          string            `json:"model"`
	PermissionMode string            `json:"permission_mode" default:"default" enum:"modes"`
	Env            map[string]string `json:"env" default:"{}"`
	Use            string            `json:"use" default:"claude" min:"1"`
	Fallback       []string          `json:"fallback" default:"[]"`
	MCP            string            `json:"mcp" default:"none" enum:"none|approved"`
}

// Agents are the coding agents that may be started, by the user's names.
type Agents map[string]NamedAgent

// A NamedAgent configures how one agent is launched (docs/agents.md). Empty fields get defaults
// from its name or its profile.
type NamedAgent struct {
	Kind      string            `json:"kind" min:"1"`
	Command   []string          `json:"command" min:"1"`
	Model     string            `json:"model" min:"1"`
	Prices    Prices            `json:"prices"`
	Unguarded bool              `json:"unguarded"`
	Env       map[string]string `json:"env"`
}

// Prices are prices by model.
type Prices map[string]Price

// A Price is in USD per million tokens.
type Price struct{ Input, Cached, Output float64 }

// Limits bound a run and its sessions (unattended, "Limits"). None can be disabled.
type Limits struct {
	MaxSessions        int           `json:"max_sessions" default:"100" min:"1"`
	MaxTasks           int           `json:"max_tasks" default:"100" min:"1"`
	MaxDuration        time.Duration `json:"max_duration" default:"12h"`
	MaxCostUSD         float64       `json:"max_cost_usd" default:"50"`
	MaxCostPerDayUSD   float64       `json:"max_cost_per_day_usd" default:"100"`
	MaxCostPerMonthUSD float64       `json:"max_cost_per_month_usd" default:"1000"`
	SessionTimeout     time.Duration `json:"session_timeout" default:"45m"`
	IdleTimeout        time.Duration `json:"idle_timeout" default:"10m"`
	SessionTurns       int           `json:"session_turns" default:"200" min:"1"`
	SessionCostUSD     float64       `json:"session_cost_usd" default:"10"`
	SessionTokens      int           `json:"session_tokens" default:"0" min:"0"`
	Attempts           int           `json:"attempts" default:"10" min:"1"`
	StagnantSessions   int           `json:"stagnant_sessions" default:"5" min:"1"`
	ReviewRounds       int           `json:"review_rounds" default:"3" min:"0"`
	Usage              Percentages   `json:"usage" default:"{five_hour: 80%, seven_day: 90%}"`
}

// Verify configures the checks of a done (pipeline, "Verification").
type Verify struct {
	Commands    []string          `json:"commands" default:"[]"`
	Timeout     time.Duration     `json:"timeout" default:"10m"`
	Baseline    string            `json:"baseline" default:"new-failures" enum:"new-failures|strict"`
	Retry       int               `json:"retry" default:"1" min:"0"`
	OnRed       string            `json:"on_red" default:"stop" enum:"stop|first|go"`
	JUnit       []string          `json:"junit" default:"[]"`
	Protect     []string          `json:"protect" default:"[ralph.yaml]"`
	ProtectMode string            `json:"protect_mode" default:"refuse" enum:"refuse|review"`
	Network     bool              `json:"network" default:"false"`
	Tests       []string          `json:"tests" default:"[auto]"`
	Lost        string            `json:"lost" default:"ask" enum:"ask|refuse|note"`
	Changed     string            `json:"changed" default:"review" enum:"review|ask|note"`
	Scope       string            `json:"scope" default:"ask" enum:"ask|note"`
	Guard       string            `json:"guard" default:"ask" enum:"ask|pr"`
	Hidden      map[string]string `json:"hidden" default:"{}"`
	HiddenFiles string            `json:"hidden_files"`
	Trial       string            `json:"trial" default:"auto" enum:"auto|always|off"`
	Proof       string            `json:"proof" default:"auto" enum:"auto|always|require|off"`
}

// Reviews are the agents that review changes, in their order (docs/review.md).
type Reviews []Review

// A Review is one condition for reviews.
type Review struct {
	Agent  string `json:"agent" min:"1"`
	Model  string `json:"model" min:"1"`
	When   When   `json:"when"`
	Prompt string `json:"prompt" min:"1"`
}

// When selects the changes to review: a change must match all conditions.
type When struct {
	Lines int      // minimum number of added and removed lines; 0 is any
	Files []string // globs of touched files; empty is any
}

// Permissions are the rules for answering an agent's requests (docs/howto/permissions.md).
type Permissions struct {
	Allow    []string `json:"allow" default:"[]"`
	Ask      []string `json:"ask" default:"[]"`
	Deny     []string `json:"deny" default:"[]"`
	Default  string   `json:"default" default:"allow" enum:"allow|ask|deny"`
	Guards   bool     `json:"guards" default:"true"`
	Writable []string `json:"writable" default:"[]"`
}

// Workspace configures where sessions work (docs/branch.md).
type Workspace struct {
	Setup   []string `json:"setup" default:"[]"`
	Ports   int      `json:"ports" default:"4100" min:"1"`
	Sparse  []string `json:"sparse" default:"[]" local:"yes"`
	MinFree int      `json:"min_free" default:"2048" min:"0"`
	MaxSize int      `json:"max_size" default:"0" min:"0"`
}

// Merge configures how the work of a workspace gets into a branch (docs/branch.md).
type Merge struct {
	Into     string   `json:"into"`
	Mode     string   `json:"mode" default:"merge" enum:"merge|branch|pr"`
	Strategy string   `json:"strategy" default:"merge" enum:"merge|squash"`
	Sign     bool     `json:"sign" default:"false"`
	Push     string   `json:"push"`
	After    []string `json:"after" default:"[]"`
	Message  string   `json:"message"`
	Guard    []string `json:"guard" default:"[]"`
	Auto     bool     `json:"auto" default:"false"`
	MaxOpen  int      `json:"max_open" default:"4" min:"1"`
}

// Forge configures whose issues become tasks (docs/howto/forge.md).
type Forge struct {
	Kind      string   `json:"kind" default:"auto" enum:"auto|github|gitlab|gitea"`
	URL       string   `json:"url"`
	Label     string   `json:"label"`
	People    []string `json:"people" default:"[]"`
	TokenFile string   `json:"token_file"`
}

// Prompt bounds the prompt of a session.
type Prompt struct {
	Template string `json:"template" default:"none" min:"1"`
}

// Sessions has the duties of a session's agent (docs/sessions.md).
type Sessions struct {
	Enforce bool `json:"enforce" default:"false"`
}

// Notify has the receivers of events (unattended, "Notifications and observation").
type Notify struct {
	Receivers []Receiver `json:"receivers" default:"[]" one:"url|command"`
}

// A Receiver is notified of events, by a request to a URL or by a command.
type Receiver struct {
	URL       string   `json:"url" min:"1" secret:"yes"`
	Command   []string `json:"command" min:"1"`
	Preset    string   `json:"preset" default:"generic" enum:"generic|slack|discord|telegram|ntfy"`
	Events    []string `json:"events" min:"1" enum:"events"`
	SecretEnv string   `json:"secret_env" min:"1"`
}

// Dashboard configures the address of the dashboard (docs/dashboard.md).
type Dashboard struct {
	Addr   string   `json:"addr" default:"127.0.0.1:7474" min:"1"`
	Hosts  []string `json:"hosts" default:"[]"`
	URL    string   `json:"url" default:""`
	SignIn string   `json:"sign_in" default:"always" enum:"always|changes"`
}
