package order

import (
	"errors"
	"fmt"

	"ralph"
	"ralph/loop/agent"
	"ralph/loop/check"
	"ralph/prompt"
	"ralph/store"
)

// An Order is a session's complete instructions and means.
type Order struct {
	Agent   agent.Agent // nil if it is a worker, or a person's chat
	Name    string      // the agent's name in ralph.yaml
	Model   string      // "" leaves it to the agent
	Prompt  string
	Limits  Limits           // with its budget
	Verify  check.Commands   // the commands that check its done
	Before  []check.Outcome  // their results before its task began
	Windows map[string]int64 // the context sizes of models, in tokens
}

// ErrSpent means that the budget, less the reservations of running sessions, is too small for a session.
var ErrSpent = errors.New("the budget has no room for another session")

// A TooLongError means that no session may begin on a task: its prompt has no room for a person's words or a
// blocking flag. It wraps [ralph.ErrConflict].
type TooLongError struct{ why string }

// Error names the part that is too long.
func (e *TooLongError) Error() string { return "no session begins: " + e.why }

// Unwrap returns [ralph.ErrConflict].
func (*TooLongError) Unwrap() error { return ralph.ErrConflict }

// For writes the order of a session on a task, within the budget left by spending and reservations. The workspace
// describes where it works. The error is [ErrSpent], a [TooLongError] unless a person approved it, or an
// [UnknownAgentError].
func For(tx *store.Tx, c *Config, t ralph.Task, ws *prompt.Workspace, s store.Spending) (Order, error) {
	o, err := c.order(tx, t)
	if err != nil {
		return o, err
	}
	usd, why := Allowance(c.Limits, s, c.Width())
	if why != "" || s.Sessions >= c.Limits.MaxSessions {
		return o, ErrSpent
	}
	o.Limits.CostUSD = usd
	who, err := c.choose(tx, t)
	if err != nil {
		return o, err
	}
	o.Agent, o.Name, o.Model = who.Agent, who.Name, who.Model
	o.Prompt, err = c.firstPrompt(tx, t, o.Agent, ws)
	return o, err
}

// ForWorker writes the order of a worker, which is its own agent.
func ForWorker(tx *store.Tx, c *Config, t ralph.Task, ws *prompt.Workspace) (Order, error) {
	o, err := c.order(tx, t)
	if err == nil {
		o.Prompt, err = c.firstPrompt(tx, t, nil, ws)
	}
	return o, err
}

// ForPerson writes the order of a person working on a task with a chat.
func ForPerson(tx *store.Tx, c *Config, t ralph.Task) (Order, error) {
	o, err := c.order(tx, t)
	if err != nil {
		return o, err
	}
	built, err := c.ChatPrompt(tx, t)
	o.Prompt = built.Text
	return o, err
}

// Of reads the order of a session that another process has begun, without its prompt. If its agent is no longer
// configured, the order has the default one, to read the session's files.
func Of(tx *store.Tx, c *Config, t ralph.Task, row ralph.Session) (Order, error) {
	o, err := c.order(tx, t)
	o.Agent, o.Limits.CostUSD = c.Named(row), row.CostLimitUSD
	return o, err
}

// Named returns the agent of a session, or the default one if it is no longer configured.
func (c *Config) Named(row ralph.Session) agent.Agent {
	if works, err := c.named(row.TaskID, row.Agent); err == nil {
		return works
	}
	return c.Agent
}

// order reads the common part of all orders.
func (c *Config) order(tx *store.Tx, t ralph.Task) (o Order, err error) {
	o.Limits = c.limits()
	if o.Verify, err = c.Check.Of(tx, t); err != nil {
		return o, err
	}
	if o.Windows, err = tx.ContextWindows(); err != nil {
		return o, err
	}
	_, err = tx.Baseline(t.ID, &o.Before)
	return o, err
}

// firstPrompt returns a session's first prompt. It fails if the prompt is too long, unless a person wanted to begin
// nevertheless.
func (c *Config) firstPrompt(tx *store.Tx, t ralph.Task, works agent.Agent, ws *prompt.Workspace) (string, error) {
	if t.Role == ralph.RolePlan {
		return c.planPrompt(tx, t, works)
	}
	d, err := c.promptData(tx, t, works)
	if err != nil {
		return "", fmt.Errorf("prompt of TASK-%d: %w", t.ID, err)
	}
	d.Workspace = ws
	built := prompt.Build(d)
	if built.Err != nil || built.TooLong == "" {
		return built.Text, built.Err
	}
	begins, err := tx.BeginsLong(t.ID)
	if err == nil && !begins {
		err = &TooLongError{built.TooLong}
	}
	return built.Text, err
}
