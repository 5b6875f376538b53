// Package session runs one session: an agent, a worker or a person works
// on one task in one place, from the claim to the decision.
//
//	open → work → turn ended → ended → observe → decide
//
// The start differs: workers and people open a session and work on their own, and
// recovery opens nothing. The end is the same for all. What goes wrong on the way
// becomes a fact for the decision; only the database's errors are returned.
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"ralph"
	"ralph/internal/proc"
	"ralph/loop/agent"
	"ralph/loop/check"
	"ralph/loop/merging"
	"ralph/loop/workspace"
	"ralph/signals"
	"ralph/store"
)

// Needs are the dependencies of a session.
type Needs struct {
	Store     *store.DB
	Workspace *workspace.Workspace
	Check     check.Rules
	Busy      func(time.Duration) // is told how long the next step may take; nil for nobody

	Asked

	// Channel serves ralph's tools to the agent, in the given folder and until
	// shut is called; nil if there are none.
	Channel func(a agent.Assignment, folder string) (c agent.Channel, shut func() error, err error)

	Rules  signals.Rules
	Limits Limits
	Stop   <-chan struct{} // closed when the run is to stop

	Merging
	Reviews Reviewing
	Plans   Planning
	Log     *slog.Logger
}

// Asked holds the loop's decisions about a session that begins.
type Asked struct {
	Agent agent.Agent // nil if a worker or a person works
	// Who chooses the agent of a task before its prompt is built; nil means
	// Agent. Prompt builds the prompt; works is nil if the agent is not one of
	// ralph's.
	Who    func(tx *store.Tx, t ralph.Task) (Choice, error)
	Prompt func(tx *store.Tx, t ralph.Task, works agent.Agent) (string, error)
	// Begin decides, within the transaction that claims a task, whether a
	// session may begin and what it may spend. Again says that the task was
	// changed since it was read. If Begin is nil, the session may begin.
	Begin func(tx *store.Tx, again bool) (usd float64, err error)
	// Servers says that the agent has the project's own servers of tools, too.
	Servers bool
}

// Merging is what a session needs to have its work checked and merged.
type Merging struct {
	Merger *merging.Merger
	// Beside is set where others work at the same time; the agent is told of their results.
	Beside bool
	Checks func(ctx context.Context) (*workspace.Workspace, error) // takes a workspace for the check
	// HandedOver says that the workspace has what a session of another machine handed over, which is gone.
	HandedOver bool
	// Merge, of a worker's session, merges what is queued once its done was accepted, and returns what the
	// rest waits for. A run does that for its own sessions.
	Merge func(ctx context.Context) (why string, err error)
}

// A Choice is the agent and the model for a task.
type Choice struct {
	Name  string // the agent's name in ralph.yaml
	Agent agent.Agent
	Model string // "" leaves it to the agent
}

// Limits are the limits of one session.
type Limits struct {
	Time         time.Duration
	Idle         time.Duration // without any sign of life
	Deadline     time.Time     // end of the run's time; zero for none
	Turns        int
	CostUSD      float64       // the session's allowance
	Tokens       int64         // of every kind; 0 leaves it to the allowance
	Grace        time.Duration // grace period when the run is stopped
	CheckpointAt int           // percent of the model's context at which a checkpoint is made; 0 is never
}

// A Session is a session from claim to verdict.
type Session struct {
	Needs
	Row  ralph.Session // the database row, plus what is learned about the session
	Task ralph.Task

	verify    check.Commands
	before    []check.Outcome // the baseline
	prompt    string
	windows   map[string]int64
	reference hashes // the state that the end of the session is compared with
	reopened  bool   // another process started it
	late      bool   // its agent has ended: nobody can be told what a check finds

	clock    *clock
	idle     *idleness
	observer *observer
	asking   bool // its clock is stopped while a person is asked for a permission

	told            map[string]bool // notices that the agent was given, by key
	passedBy        map[string]bool // merged changes that touched none of its files, by key
	lookedElsewhere time.Time

	replies []signals.Notice // what the agent was told at the ends of its turns
	shown   string           // the target's tip that its workspace has; "" if only its base

	found     *finding     // from the agent's last turn; nil if still to be made
	called    Cause        // the person's request that cut the check short; "" if none
	closed    signals.Said // the closing signal that is checked, as [Session.closing] found it
	changed   parts        // the parts known to have changed so far
	killed    []string     // processes killed before its done was checked: pid and command
	confirmed bool         // a person vouches for the done

	desk *desk      // of a session that reviews; nil for one that works
	plan *planner   // of a session that plans; nil for others
	Done []Reviewed // sessions that have reviewed what this one made
}

// An End is how the work of a session ended.
type End struct {
	agent.Report
	Unusable error // why its agent could not be started; nil if it was
}

// Work runs the agent and returns how that ended. Whatever stops the
// session early cancels its context with a cause.
func (s *Session) Work(ctx context.Context) End {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.clock = newClock(s.Limits.Time, func() { stop(spent{timeUp, s.Limits.Time}) })
	defer s.clock.pause()
	s.idle = newIdleness(s.Limits.Idle, s.cpu, s.content)
	s.observer = newObserver(s.verify.All(), s.windows, s.Limits.CheckpointAt)
	say := make(chan agent.Message)
	s.told, s.passedBy = map[string]bool{}, map[string]bool{}
	task := agent.Assignment{
		SessionID: s.Row.ID, TaskID: s.Row.TaskID, Discipline: s.Task.Discipline, Prompt: s.prompt,
		MaxTurns: s.Limits.Turns, MaxCost: s.Limits.CostUSD, MaxTokens: s.Limits.Tokens,
		Dir: s.Workspace.Dir, LogDir: s.folder(),
		Env:     s.Workspace.Environ(),
		Profile: agent.ProfileOf(s.Agent), Say: say, TurnEnded: s.turnEnded,
		Seen: func(e agent.Event) {
			if e.Kind != agent.Troubled { // trying again is no life
				s.idle.event()
			}
			s.observer.event(e, s.Store.Now())
			if s.desk != nil {
				s.desk.event(e)
			}
			if s.plan != nil && e.Kind == agent.Said && s.Plans.Said != nil {
				s.Plans.Said(e.Text)
			}
		},
	}
	task.Model, task.Effort = agent.SplitEffort(s.Row.Model)
	if here := s.Workspace.Here(); here != s.Workspace {
		task.Project = here.Dir
	}
	if s.desk == nil && s.Servers && task.Profile.NoServers == "" {
		servers, err := s.servers(ctx)
		if err != nil {
			return End{ended(ralph.NoWork, err.Error()), err}
		}
		task.Servers = servers
	}
	if s.desk != nil {
		task.TurnEnded, task.Review = s.desk.turnEnded, s.desk.review()
	}
	if s.Task.Role == ralph.RolePlan {
		var err error
		if s.plan, err = newPlanner(ctx, s); err != nil {
			return End{ended(ralph.NoWork, err.Error()), err}
		}
		task.TurnEnded, task.Plan = s.plan.turnEnded, s.plan.calls()
	}
	if task.Profile.NoIdentity {
		task.Author = s.Workspace.Tree.User(ctx)
	}
	shut, err := s.open(&task)
	if err != nil {
		return End{ended(ralph.NoWork, err.Error()), err}
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(work, stop, say)
	}()
	report, err := s.Agent.Work(work, task)
	cause := context.Cause(work)
	stop(nil)
	<-watched
	s.observed(ctx)
	if err := shut(); err != nil {
		s.Log.Warn("cannot close a session's channel", "session", s.Row.ID, "error", err)
	}
	switch {
	case err == nil:
		return End{Report: s.Limits.withCause(report, cause)}
	case report.Ending != "": // it was started: only this session failed, and the next one may succeed
		report.Ending, report.Reason = ralph.Lost, "lost: ralph could not hold it: "+Shortly(err)
		s.Log.Error("lost control of a session", "session", s.Row.ID, "task", s.Row.TaskID, "error", err)
		return End{Report: report}
	case errors.Is(err, proc.ErrSupervisorLost): // already at the start: only this session is lost
		return End{Report: ended(ralph.Lost, "lost: "+err.Error())}
	}
	return End{ended(ralph.NoWork, err.Error()), err}
}

// servers are those that the project has for its agents, as the branch has them into which the work is to be merged:
// what a session writes there is nobody's server before a person has approved it.
func (s *Session) servers(ctx context.Context) ([]agent.Server, error) {
	if s.Workspace.Clone == nil {
		return nil, nil
	}
	tree := s.Workspace.Here().Tree
	return agent.Servers(tree.Content(ctx, s.Workspace.Clone.Base, tree.Below(agent.ServersFile)))
}

// open creates the session's channel, which only its agent may see.
func (s *Session) open(a *agent.Assignment) (shut func() error, err error) {
	if s.Channel == nil {
		return func() error { return nil }, nil
	}
	folder := workspace.Channel(s.Row.ID)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, fmt.Errorf("folder of the session's channel: %w", err)
	}
	var closed func() error
	if a.Channel, closed, err = s.Channel(*a, folder); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return func() error { return errors.Join(closed(), os.RemoveAll(folder)) }, nil
}

// ended returns the report of a session for which ralph started no agent,
// and which therefore cost nothing.
func ended(how ralph.Ending, why string) agent.Report {
	return agent.Report{Ending: how, Reason: why, CostKnown: true}
}

// Recover decides on a session whose process or machine stopped. What it
// signalled is processed, once; processes that it left running are killed.
func (n Needs) Recover(ctx context.Context, row ralph.Session) (signals.Decision, error) {
	killed, err := n.Workspace.Sweep(row.ID)
	if err != nil {
		return signals.Decision{}, err
	}
	if err := os.RemoveAll(workspace.Channel(row.ID)); err != nil {
		n.Log.Warn("cannot remove the channel of a lost session", "session", row.ID, "error", err)
	}
	s, err := n.reopen(ctx, row)
	if err != nil {
		return signals.Decision{}, err
	}
	report, err := s.salvage()
	if err != nil {
		if !n.Store.OtherMachine(row) { // which has it
			n.Log.Warn("cannot read the transcript of a lost session", "session", row.ID, "error", err)
		}
		report.Began = true // its cost is unknown, which is not zero
	}
	report.Ending, report.Reason = ralph.Lost, "lost: ralph or its machine stopped while it was running"
	for _, k := range killed {
		report.Leftovers = append(report.Leftovers, fmt.Sprintf("%d %s", k.Pid, k.Command))
	}
	return s.Decide(ctx, report)
}

// salvage reads the report from the session's folder. A missing folder
// yields an error and is created again.
func (s *Session) salvage() (agent.Report, error) {
	folder := s.folder()
	if _, err := os.Stat(folder); err != nil {
		return agent.Report{}, errors.Join(err, os.MkdirAll(folder, 0o700))
	}
	return s.Agent.Salvage(folder, agent.Unseen)
}

// reopen loads an open session that another process started.
func (n Needs) reopen(ctx context.Context, row ralph.Session) (*Session, error) {
	s := &Session{Needs: n, Row: row, reopened: true}
	return s, n.Store.View(ctx, func(tx *store.Tx) (err error) {
		if s.Task, err = tx.Task(row.TaskID); err != nil {
			return err
		}
		if err = s.prepare(tx); err != nil {
			return err
		}
		var snapshot struct{}
		s.Limits.CostUSD, err = tx.Beginning(row.ID, &snapshot, &s.reference)
		return err
	})
}

// prepare reads how the session's done will be checked.
func (s *Session) prepare(tx *store.Tx) (err error) {
	if s.verify, err = s.Check.Of(tx, s.Task); err != nil {
		return err
	}
	if s.windows, err = tx.ContextWindows(); err != nil {
		return err
	}
	_, err = tx.Baseline(s.Task.ID, &s.before)
	return err
}

// folder returns the folder of the session's transcript.
func (s *Session) folder() string { return s.Workspace.Folder(s.Row.ID) }

// endingLock returns the lock under which another process than the agent's ends the session.
func (s *Session) endingLock() (*flock.Flock, error) {
	return flock.New(filepath.Join(s.folder(), "ending.lock")), os.MkdirAll(s.folder(), 0o700)
}

// tryEnding takes that lock. unlock is nil if somebody else has it, who is ending the session.
func (s *Session) tryEnding() (unlock func() error, err error) {
	lock, err := s.endingLock()
	ok := false
	if err == nil {
		ok, err = lock.TryLock()
	}
	if err != nil {
		return nil, fmt.Errorf("lock of the session: %w", err)
	}
	if !ok {
		return nil, nil
	}
	return lock.Unlock, nil
}

// scratch returns the folder for the objects of its snapshots, which is removed once it is decided.
func (s *Session) scratch() string { return s.Workspace.Scratch(s.Row.ID) }

// idleScratch is like [Session.scratch], for scans that may run while another scan uses that one.
func (s *Session) idleScratch() string { return s.scratch() + "-idle" }

// content returns the digest of the work tree.
func (s *Session) content(ctx context.Context) (string, error) {
	look, err := s.Workspace.Snapshot(ctx, s.idleScratch())
	return look.Content, err
}

// cpu returns the CPU time that the session's processes have used.
func (s *Session) cpu() (time.Duration, error) { return s.Workspace.CPUTime(s.Row.ID) }
