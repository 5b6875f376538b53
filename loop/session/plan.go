package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"ralph"
	"ralph/internal/text"
	"ralph/loop/agent"
	"ralph/loop/check"
	"ralph/loop/order"
	"ralph/prompt"
	"ralph/signals"
	"ralph/store"
)

// A planner receives the signals of a planning session. The plan is stored with the session, so that a later session
// can continue it. It becomes tasks when the session is decided.
type planner struct {
	s     *Session
	tools *agent.Profile

	mu       sync.Mutex
	plan     ralph.Plan
	done     string                 // its summary; "" if the plan is not complete
	results  map[string]ralph.Check // results of commands, which run only once
	reminded bool
	heard    int64 // the last comment for which the conversation continued
}

// newPlanner returns the planner of a session, with the plan of earlier ones.
func newPlanner(ctx context.Context, s *Session) (*planner, error) {
	p := &planner{s: s, tools: agent.ProfileOf(s.Agent), results: map[string]ralph.Check{}}
	return p, s.Store.View(ctx, func(tx *store.Tx) (err error) {
		if p.plan, err = tx.PlanOf(s.Row.TaskID); err != nil {
			return err
		}
		p.plan.Marks, p.plan.Mended = nil, 0
		p.plan.Told, err = tx.StatesForPlan(s.Task.Feature) // the prompt shows these states
		return err
	})
}

// calls returns the handlers of the agent's calls.
func (p *planner) calls() *agent.Plan {
	return &agent.Plan{Task: p.task, Ask: p.ask, Done: p.finish}
}

// save stores the plan.
func (p *planner) save(ctx context.Context) error {
	return p.s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.SavePlan(p.s.Row.ID, p.plan) })
}

// task adds a task to the plan. The error names its fault.
func (p *planner) task(ctx context.Context, t ralph.PlannedTask) (said string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := cmp.Or(t.Check(), store.CheckFiles(slices.Concat(t.Files, t.Allow))); err != nil {
		return "", err
	}
	if p.plan.Find(t.Name) < 0 && len(p.plan.Tasks) >= signals.MaxPlanTasks {
		return "", fmt.Errorf("the plan has %d tasks, and that is the most: make it smaller, or plan a part of the idea",
			signals.MaxPlanTasks)
	}
	known, err := store.Read(ctx, p.s.Store, func(tx *store.Tx) (signals.Nameable, error) {
		return tx.KnownToPlan(p.s.Task.Feature)
	})
	if err != nil {
		return "", err
	}
	p.done = ""
	if i := p.plan.Find(t.Name); t.Drop != "" && i >= 0 {
		p.plan.Tasks = slices.Delete(p.plan.Tasks, i, i+1)
		said = t.Name + " is not in the plan any more."
		if known.Open(t.Name) {
			old, _ := known.Find(t.Name)
			said += fmt.Sprintf(" TASK-%d, which has that name, stays as it is; call again to have that one dropped.", old.ID)
		}
		return said, p.save(ctx)
	}
	verb := "Planned"
	if p.plan.Find(t.Name) >= 0 {
		verb = "Planned anew"
	}
	p.plan.Put(t)
	return fmt.Sprintf("%s: %s. The plan has %s now.", verb, t.Name, text.Count(len(p.plan.Tasks), "task")), p.save(ctx)
}

// ask records a question that the plan waits for.
func (p *planner) ask(ctx context.Context, question string, options []string) (said string, err error) {
	yes := true
	a := signals.Ask{Question: question, Options: options, Blocking: &yes}
	if err := a.Check(); err != nil {
		return "", err
	}
	if _, err := p.s.Store.Say(ctx, p.s.Row.TaskID, p.s.Row.ID, "planner", a); err != nil {
		return "", err
	}
	return "Asked. End your turn now: you go on once it is answered.", nil
}

// finish checks that the plan is complete. The error explains why it is not.
func (p *planner) finish(ctx context.Context, summary string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := (signals.Done{Summary: summary}).Check(); err != nil {
		return err
	}
	open, err := p.open(ctx)
	if err != nil {
		return err
	}
	if open > 0 {
		return errors.New("a question of yours is not answered yet: end your turn, and call this tool once it is")
	}
	f, err := p.fits(ctx)
	if err != nil {
		return err
	}
	if len(f.Problems) > 0 {
		return errors.Join(errors.New(p.told(f)), p.save(ctx))
	}
	p.done = summary
	return nil
}

// fits compares the plan with the present project.
func (p *planner) fits(ctx context.Context) (order.Fit, error) {
	return store.Read(ctx, p.s.Store, func(tx *store.Tx) (order.Fit, error) {
		return order.FitOf(tx, p.s.Task.Feature, p.plan)
	})
}

// told returns the reply about a plan that no longer fits, and records that the planner knows the present tasks.
func (p *planner) told(f order.Fit) string {
	said := fmt.Sprintf("The plan cannot be proposed:\n- %s\nMend it with %s, then call %s again",
		strings.Join(f.Problems, "\n- "), p.tools.Tool(ralph.PlanTaskTool), p.tools.Tool(ralph.PlanDoneTool))
	if len(f.Overtaken) > 0 {
		said += ". What you planned of a task that others changed stays if you leave it; a person sees then what it " +
			"changes. They are now:\n\n"
	}
	for _, name := range f.Overtaken {
		t, _ := f.Known.Find(name)
		said += prompt.Existing{Name: name, Task: t, Waits: f.Waits[t.ID]}.String()
	}
	p.plan.Told = f.States
	return strings.TrimSpace(said)
}

// open counts the session's unanswered questions.
func (p *planner) open(ctx context.Context) (n int, err error) {
	said, err := store.Read(ctx, p.s.Store, func(tx *store.Tx) ([]signals.Said, error) {
		return tx.SessionSignals(p.s.Row.ID)
	})
	for _, s := range said {
		if _, ask := s.Payload.(signals.Ask); ask && !s.Answered {
			n++
		}
	}
	return n, err
}

// turnEnded decides how the conversation continues: with an answer, with things to fix, or not at
// all.
func (p *planner) turnEnded(ctx context.Context, turn agent.Turn) agent.Answer {
	p.s.clock.pause()
	defer p.s.clock.resume()
	answer, err := p.reply(ctx, turn)
	if err != nil && ctx.Err() == nil {
		p.s.Log.Warn("a plan is not complete", "session", p.s.Row.ID, "task", p.s.Row.TaskID, "error", err)
	}
	return answer
}

// asked closes a session whose question a person answers later.
var asked = signals.Partial{
	Summary: "asked a question", Remaining: "the plan goes on once the question is answered",
}

func (p *planner) reply(ctx context.Context, turn agent.Turn) (agent.Answer, error) {
	open, err := p.open(ctx)
	if err != nil {
		return agent.Answer{}, err
	}
	if open > 0 {
		if !p.s.Attended {
			_, err := p.s.Store.Say(ctx, p.s.Row.TaskID, p.s.Row.ID, "planner", asked)
			return agent.Answer{}, err
		}
		if err := p.answered(ctx); err != nil {
			return agent.Answer{}, err
		}
	}
	unheard, err := store.Read(ctx, p.s.Store, p.s.unheard)
	switch {
	case err != nil:
		return agent.Answer{}, err
	case unheard > p.heard: // a person's comment is being delivered
		p.heard = unheard
		return agent.Answer{Wait: true}, nil
	case p.summary() == "" && !p.reminded:
		p.reminded = true
		return agent.Say(reply{kind: replyPlan, tools: p.tools}.words()), nil
	case p.summary() == "":
		return agent.Answer{}, nil
	}
	w := p.s.await(ctx, turn)
	defer w.over()
	said, err := p.redFirst(ctx)
	if err != nil || ctx.Err() != nil {
		return agent.Answer{Over: true}, errors.Join(err, w.kill())
	}
	if turn.Process == nil || w.there() {
		if said == "" { // people may have changed tasks while the commands ran
			said, err = p.overtaken(ctx)
		}
		if said != "" || err != nil {
			return agent.Say(said + killedBefore(w.killed)), err
		}
	}
	_, err = p.s.Store.Say(ctx, p.s.Row.TaskID, p.s.Row.ID, "planner", signals.Done{Summary: p.summary()})
	return agent.Answer{Over: true}, errors.Join(err, w.kill())
}

// overtaken returns the reply if the complete plan no longer fits; "" if it does.
func (p *planner) overtaken(ctx context.Context) (said string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, err := p.fits(ctx)
	if err != nil || len(f.Problems) == 0 {
		return "", err
	}
	p.done = ""
	return p.told(f), p.save(ctx)
}

func (p *planner) summary() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// answered waits until a person has answered the session's questions.
func (p *planner) answered(ctx context.Context) error {
	for {
		changed := p.s.Store.Changed()
		open, err := p.open(ctx)
		if err != nil || open == 0 {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// redFirst runs the commands of the plan's tasks once, on the plan's commit, and marks the tasks. It returns the
// commands that the planner has to fix, in words; "" for none.
func (p *planner) redFirst(ctx context.Context) (said string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.s
	var commands []string
	for _, t := range p.plan.Tasks {
		if t.Drop == "" {
			commands = check.Once(commands, t.Verify)
		}
	}
	if err := p.run(ctx, commands); err != nil {
		return "", fmt.Errorf("run the plan's commands: %w", err)
	}
	marks, broken := signals.PlanRed(p.plan, p.results, s.Check.Timeout)
	p.plan.Marks = signals.PlanMarks(p.plan, order.Meet)
	for name, list := range marks {
		p.plan.Marks[name] = append(p.plan.Marks[name], list...)
	}
	if len(broken) > 0 {
		var mend strings.Builder
		for _, c := range broken {
			fmt.Fprintf(&mend, "\n%s: `%s`\n\n%s", c.Task, c.Check.Command, prompt.Quoted("what it prints", c.Check.Tail))
		}
		p.plan.Mended++
		p.done = ""
		said = fmt.Sprintf("ralph ran each command once before any work, and these fail for another reason than that the "+
			"work is missing, so that they could never tell whether a task is done:\n%s\nCall %s again for each such task, "+
			"with a command that can run, then %s. If a task itself makes what is missing, leave it as it is.",
			mend.String(), p.tools.Tool(ralph.PlanTaskTool), p.tools.Tool(ralph.PlanDoneTool))
	}
	return said, p.save(ctx)
}

// run runs the new commands in a check workspace, on the session's first commit.
func (p *planner) run(ctx context.Context, commands []string) error {
	s := p.s
	defer s.checking("")
	at := s.checker(check.Round{Session: s.Row.ID, Log: filepath.Join(s.folder(), "verify.log"), Slow: s.checking})
	for _, c := range commands { // each alone, so that none sees the files of another
		if _, ran := p.results[c]; ran {
			continue
		}
		s.takes(s.Check.Timeout)
		results, err := at.Verify(ctx, s.Workspace.Clone.Base, []string{c})
		if err != nil || ctx.Err() != nil {
			return err
		}
		for _, r := range results {
			p.results[c] = r.Check
		}
	}
	return nil
}

// decidePlan decides on a planning session: a complete plan becomes proposals, in the same transaction. Its changes in
// the workspace are discarded.
func (s *Session) decidePlan(ctx context.Context, report agent.Report) (d signals.Decision, err error) {
	detached := context.WithoutCancel(ctx)
	var known signals.Nameable
	err = s.Store.Tx(detached, func(tx *store.Tx) error {
		f, err := tx.Facts(s.Row.ID)
		if err != nil {
			return err
		}
		p, err := tx.PlanOf(s.Row.TaskID)
		if err != nil {
			return err
		}
		f.Ending, f.EndingWhy, f.Rules, f.Untouched = s.Row.Ending, report.Reason, s.Rules, true
		f.Changed = len(p.Tasks) > 0 || len(f.Said) > 0
		if closing := signals.Closing(f.Said).Payload; closing != nil && closing.Verb() == ralph.VerbDone {
			fits, err := order.FitOf(tx, s.Task.Feature, p)
			if err != nil {
				return err
			}
			known = fits.Known
			if f.Planned = signals.PlanSaid(p, known); len(fits.Problems) > 0 {
				f.Planned, f.Unchecked = "", "the plan does not fit any more: "+fits.Problems[0]
			}
		}
		d = signals.Decide(f)
		if err := tx.Apply(s.Row, f, d); err != nil {
			return err
		}
		if d.Accepted {
			err = tx.ProposePlan(s.Row, s.Task.Feature, p, known)
		}
		if err == nil && s.reopened {
			err = tx.TryNow(s.Row.TaskID)
		}
		return err
	})
	if err == nil && s.Workspace.Clone != nil && s.Workspace.Has(s.Row.Dir) {
		if _, err := s.Workspace.Discard(detached); err != nil {
			s.Log.Warn("cannot throw a planner's workspace away; its next use does", "session", s.Row.ID, "error", err)
		}
	}
	return d, err
}
