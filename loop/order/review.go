package loop

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"ralph"
	"ralph/loop/session"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// reviewing returns how what a session makes in a workspace is reviewed.
func (l *Loop) reviewing(at *workspace.Workspace) session.Reviewing {
	if at.Clone == nil {
		return session.Reviewing{}
	}
	return session.Reviewing{
		Wanted: func(tx *store.Tx, t ralph.Task) (bool, error) {
			named, err := reviewOf(tx, t)
			return named != "" || len(l.Reviewers) > 0, err
		},
		Named: l.named, Of: l.reviewers, Asked: l.asked, Allowance: l.reviewAllowance, Project: filepath.Base(l.Here.Dir),
		Lay: l.lay,
		Place: func(ctx context.Context) (*workspace.Workspace, error) {
			return l.Pool.Take(ctx, workspace.FirstReview+at.Clone.Number, false)
		},
	}
}

// reviewers implements [session.Reviewing].Of.
func (l *Loop) reviewers(
	tx *store.Tx, t ralph.Task, files []ralph.FileChange, before []ralph.Review,
) (list []session.Reviewer, err error) {
	named, err := reviewOf(tx, t)
	if err != nil {
		return nil, err
	}
	for _, r := range signals.Chosen(l.Reviewers, named, files, before, matches) {
		who, err := l.reviewer(tx, t, r)
		if err != nil {
			return nil, err
		}
		list = append(list, who)
	}
	return list, nil
}

// reviewOf returns who a task or its discipline says is to review it; "" for whom the configuration names. An agent
// that makes a task chooses its discipline: that cannot free the task of its reviews.
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

// matches reports whether a file is among globs.
func matches(globs []string, file string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return doublestar.MatchUnvalidated(g, file) })
}

// asked implements [session.Reviewing].Asked.
func (l *Loop) asked(tx *store.Tx, t ralph.Task) (session.Reviewer, error) {
	c, err := l.who(tx, t)
	if err != nil {
		return session.Reviewer{}, err
	}
	return l.reviewer(tx, t, signals.Reviewer{Agent: c.Name, Model: c.Model})
}

// reviewer returns a reviewer who can work now: the agent that is wanted, or one that stands in for it, with its own
// model.
func (l *Loop) reviewer(tx *store.Tx, t ralph.Task, r signals.Reviewer) (who session.Reviewer, err error) {
	who.Name, who.For, who.More = r.Agent, r.Name(), r.Prompt
	states, err := tx.AgentStates()
	if err != nil {
		return who, err
	}
	windows, err := tx.UsageWindows()
	if err != nil {
		return who, err
	}
	order := append([]string{r.Agent},
		slices.DeleteFunc(slices.Clone(l.Agents.Fallback), func(n string) bool { return n == r.Agent })...)
	now := choose(order, states, windows, l.Limits.Usage, tx.Now().Time)
	if now.name == "" {
		who.Unable = "it cannot work before " + ralph.At(now.until).String() + ": " + now.why
		return who, nil
	}
	choice := func(name string) (c session.Choice, err error) {
		c.Name, c.Model = name, l.Agents.Models[name]
		if name == r.Agent && r.Model != "" {
			c.Model = r.Model
		}
		c.Agent, err = l.named(t.ID, name)
		return c, err
	}
	if who.Choice, err = choice(now.name); err != nil {
		who.Unable, who.Name = err.Error(), r.Agent
		return who, nil //nolint:nilerr // a person is told
	}
	others := order[slices.Index(order, now.name)+1:]
	if next := choose(others, states, windows, l.Limits.Usage, tx.Now().Time); len(others) > 0 && next.name != "" {
		if c, err := choice(next.name); err == nil {
			who.Else = &c
		}
	}
	return who, nil
}

// reviewAllowance implements [session.Reviewing].Allowance: what is left once the sessions in progress have spent all
// that they may. It waits if there are others than that whose work is reviewed.
func (l *Loop) reviewAllowance(tx *store.Tx) (usd float64, why string, waits bool, err error) {
	run, _, err := tx.LastRunHere()
	if err != nil {
		return 0, "", false, err
	}
	s, err := tx.Spending(run.ID, from(time.Time{}, l.Store.Now()), worth)
	if err != nil {
		return 0, "", false, err
	}
	usd, why = allowance(l.Limits, s, 1)
	return usd, why, s.Open > 1, nil
}
