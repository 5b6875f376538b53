package order

import (
	"slices"
	"time"

	"ralph"
	"ralph/signals"
	"ralph/store"
)

// A Reviewer is an agent that reviews a change.
type Reviewer struct {
	Choice
	For    string  // the configured agent, which the chosen one may replace: [signals.Reviewer.Name]
	Else   *Choice // stands in if it cannot work; may be nil
	Unable string  // why neither can work now; "" if one can
	More   string  // the change to review
}

// Reviewed reports whether anybody may be to review a task.
func (c *Config) Reviewed(tx *store.Tx, t ralph.Task) (bool, error) {
	named, err := reviewOf(tx, t)
	return named != "" || len(c.Reviewers) > 0, err
}

// ReviewersOf returns the reviewers of a task's change, in their order. Before lists the task's reviews so far.
func (c *Config) ReviewersOf(
	tx *store.Tx, t ralph.Task, files []ralph.FileChange, before []ralph.Review,
) (list []Reviewer, err error) {
	named, err := reviewOf(tx, t)
	if err != nil {
		return nil, err
	}
	for _, r := range signals.Chosen(c.Reviewers, named, files, before, matches) {
		who, err := c.reviewer(tx, t, r)
		if err != nil {
			return nil, err
		}
		list = append(list, who)
	}
	return list, nil
}

// reviewOf returns the reviewer named by a task or its discipline; "" for the configured ones. An agent that makes a
// task chooses its discipline: that cannot free the task of its reviews.
func reviewOf(tx *store.Tx, t ralph.Task) (string, error) {
	if t.Discipline == "" || t.Review != "" {
		return t.Review, nil
	}
	d, err := tx.Discipline(t.Discipline)
	if d.Review == ralph.NoReview && t.Origin == ralph.ByAgent {
		return "", err
	}
	return d.Review, err
}

// Asked returns the agent to ask about changed tests if nobody reviews the change: the task's own.
func (c *Config) Asked(tx *store.Tx, t ralph.Task) (Reviewer, error) {
	own, err := c.choose(tx, t)
	if err != nil {
		return Reviewer{}, err
	}
	return c.reviewer(tx, t, signals.Reviewer{Agent: own.Name, Model: own.Model})
}

// reviewer returns a reviewer that can work now: the wanted agent, or a stand-in, with its own
// model.
func (c *Config) reviewer(tx *store.Tx, t ralph.Task, r signals.Reviewer) (who Reviewer, err error) {
	who.Name, who.For, who.More = r.Agent, r.Name(), r.Prompt
	order := append([]string{r.Agent},
		slices.DeleteFunc(slices.Clone(c.Agents.Fallback), func(n string) bool { return n == r.Agent })...)
	now, err := c.firstAble(tx, order)
	if err != nil {
		return who, err
	}
	if now.Name == "" {
		who.Unable = "it cannot work before " + now.Until.UTC().Format("2006-01-02 15:04 UTC") + ": " + now.Why
		return who, nil
	}
	choice := func(name string) (own Choice, err error) {
		own.Name, own.Model = name, c.Agents.Models[name]
		if name == r.Agent && r.Model != "" {
			own.Model = r.Model
		}
		own.Agent, err = c.named(t.ID, name)
		return own, err
	}
	if who.Choice, err = choice(now.Name); err != nil {
		who.Unable, who.Name = err.Error(), r.Agent
		return who, nil //nolint:nilerr // a person is told
	}
	others := order[slices.Index(order, now.Name)+1:]
	if len(others) == 0 {
		return who, nil
	}
	next, err := c.firstAble(tx, others)
	if err == nil && next.Name != "" {
		if own, err := choice(next.Name); err == nil {
			who.Else = &own
		}
	}
	return who, err
}

// ReviewBudget returns the budget of a review: the rest once the sessions in progress have spent all that they may. Why
// is the reason why it cannot begin. waits means that this may change, since sessions other than the reviewed one are
// in progress.
func (c *Config) ReviewBudget(tx *store.Tx) (usd float64, why string, waits bool, err error) {
	run, _, err := tx.LastRunHere()
	if err != nil {
		return 0, "", false, err
	}
	s, err := tx.Spending(run.ID, Since(time.Time{}, tx.Now().Time), Worth)
	if err != nil {
		return 0, "", false, err
	}
	usd, why = Allowance(c.Limits, s, 1)
	return usd, why, s.Open > 1, nil
}
