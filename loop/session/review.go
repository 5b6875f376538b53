package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"ralph"
	"ralph/internal/patch"
	"ralph/loop/agent"
	"ralph/loop/order"
	"ralph/loop/workspace"
	"ralph/prompt"
	"ralph/signals"
	"ralph/store"
)

// A Reviewed is a reviewing session, with the ending of its agent.
type Reviewed struct {
	*Session
	Report agent.Report
}

// reviewWait is how long a review waits for money that other sessions may still spend.
const reviewWait = 10 * time.Minute

// reviewTries is how many conversations a reviewer gets for one change.
const reviewTries = 2

// A reviewing is the review of a candidate.
type reviewing struct {
	about         subject
	asks          bool // the reviewer must also tell whether the task requires the changed tests
	before, since []ralph.Review
	reviewers     []order.Reviewer
	asked         order.Reviewer // the agent to ask about the tests if there are no reviewers
}

// review runs agents' reviews of a candidate whose check has passed, and adds their results to the finding. Without
// reviewers it does nothing.
func (s *Session) review(ctx context.Context, f *finding) error {
	done, ok := s.closed.Payload.(signals.Done)
	if !ok || s.unreviewed() || f.made.Head == f.made.Base ||
		f.conflict != "" || s.refusal(f).Any() {
		return nil
	}
	var r reviewing
	var err error
	if r.asks, err = s.asksAboutTests(ctx, f); err != nil {
		return err
	}
	if wanted, err := s.reviewWanted(ctx); err != nil || !wanted && !r.asks {
		return err
	}
	if flags, err := s.openFlags(ctx, s.closed); err != nil || len(flags) > 0 {
		return err // the done is not accepted anyway
	}
	from, to := cmp.Or(f.gateFrom, f.made.Base), cmp.Or(f.gateTo, f.made.Head)
	files, err := s.repository().Changes(ctx, from, to)
	if err != nil {
		return err
	}
	if err := s.Store.View(ctx, func(tx *store.Tx) error { return s.readReviewing(tx, &r, files) }); err != nil {
		return err
	}
	switch {
	case len(r.reviewers) == 0 && !r.asks:
		return nil
	case signals.ObjectedTo(r.since): // the author knows the objections, and has not reported a fix
		f.evidence.Reviews, f.evidence.Rounds = r.since, signals.Rounds(r.before)
		return nil
	}
	if r.about, err = s.aboutChange(ctx, f, from, to, files); err != nil {
		return err
	}
	p := &r.about.prompt
	p.Summary, p.Reason, p.Earlier = done.Summary, f.evidence.Gate.Reason, r.before
	if len(r.reviewers) == 0 {
		p.Only, p.Asks = true, true
		said, _, err := s.reviewedBy(ctx, r.asked, r.about, r.before)
		f.evidence.Gate.Asks, f.evidence.Gate.Says = said.Asks, said.String()
		return err
	}
	return s.reviewInTurn(ctx, f, &r)
}

// asksAboutTests reports whether an agent must tell whether the task requires its changed tests. If a person has undone
// the task, a person decides.
func (s *Session) asksAboutTests(ctx context.Context, f *finding) (bool, error) {
	if !s.Rules.Asks(f.evidence.Gate) {
		return false, nil
	}
	back, err := store.Read(ctx, s.Store, func(tx *store.Tx) (bool, error) { return tx.TakenBack(s.Row.TaskID) })
	if back {
		f.evidence.Gate.Says = "a person took back what this task had merged, so that a person decides, and no reviewer"
	}
	return !back, err
}

// readReviewing reads the reviewers of a change of these files, and the task's earlier reviews.
func (s *Session) readReviewing(tx *store.Tx, r *reviewing, files []ralph.FileChange) error {
	t, err := tx.Task(s.Row.TaskID)
	if err != nil {
		return err
	}
	if r.before, err = tx.ReviewsOf(t.ID); err != nil {
		return err
	}
	if s.late {
		if r.since, err = tx.ReviewsSince(t.ID, s.closed.ID); err != nil {
			return err
		}
	}
	if r.reviewers, err = s.ReviewersOf(tx, t, files, r.before); err != nil {
		return err
	}
	if r.asks && len(r.reviewers) == 0 {
		r.asked, err = s.Asked(tx, t)
	}
	return err
}

// reviewInTurn gives the candidate to one reviewer after another, until one fails to review it.
func (s *Session) reviewInTurn(ctx context.Context, f *finding, r *reviewing) error {
	insists := false
	for _, who := range r.reviewers {
		r.about.prompt.Asks = r.asks && f.evidence.Gate.Asks == ""
		said, known, err := s.reviewedBy(ctx, who, r.about, r.before)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if said.Asks != "" {
			f.evidence.Gate.Asks, f.evidence.Gate.Says = said.Asks, said.Answer()
		}
		insists = insists || known && !s.late && len(said.Blocking()) > 0
		f.evidence.Reviews = append(f.evidence.Reviews, said)
		r.about.prompt.Earlier = append(r.about.prompt.Earlier, said)
		if said.None != "" {
			break // a person decides
		}
	}
	if f.evidence.Rounds = signals.Rounds(append(r.before, f.evidence.Reviews...)); insists {
		f.evidence.Rounds = signals.ReviewRounds // the author knows them, and changes nothing
	}
	return nil
}

// unreviewed reports whether this session's work needs no review.
func (s *Session) unreviewed() bool {
	return s.desk != nil || s.Row.Origin == ralph.FromHuman || s.Workspace.Clone == nil
}

// reviewWanted reports whether the session's work may need a review.
func (s *Session) reviewWanted(ctx context.Context) (wanted bool, err error) {
	if s.unreviewed() {
		return false, nil
	}
	return store.Read(ctx, s.Store, func(tx *store.Tx) (bool, error) {
		t, err := tx.Task(s.Row.TaskID)
		if err != nil {
			return false, err
		}
		return s.Reviewed(tx, t)
	})
}

// A subject is the change that is reviewed.
type subject struct {
	commit, tree string
	changed      signals.Changed
	prompt       prompt.Review
}

// aboutChange collects the view of a change for reviewers.
func (s *Session) aboutChange(
	ctx context.Context, f *finding, from, to string, files []ralph.FileChange,
) (about subject, err error) {
	g := f.evidence.Gate
	tree := s.repository()
	whole := append(ralph.Approval{Files: g.Files, Guarded: g.Guarded, Outside: g.Outside}.Paths(), g.Deciding...)
	first, rest, err := tree.Shown(ctx, from, to, nil, whole)
	if err != nil {
		return about, err
	}
	var lines []ralph.FileDiff
	for _, file := range files {
		lines = append(lines, ralph.FileDiff{Path: file.Path}) // without hunks, all lines of a file count
	}
	for _, d := range slices.Concat(patch.Split(first), patch.Split(rest)) {
		at := slices.IndexFunc(lines, func(l ralph.FileDiff) bool { return tree.Below(l.Path) == d.Path })
		if at >= 0 && d.Notes == "" {
			lines[at].Diff += d.Body
		}
	}
	if first, err = s.masked(first); err == nil {
		rest, err = s.masked(rest)
	}
	return subject{
		commit: to, tree: f.made.Tree, changed: signals.ChangedLines(lines),
		prompt: prompt.Review{
			Project: s.Project(), Task: s.Task, Base: from, Whole: first, Patch: rest, Checks: f.checks, Gate: g,
		},
	}, err
}

// reviewedBy returns a reviewer's result for a change: an earlier one for the same change, or the result of
// a new conversation, or of a second one if the first produced no review.
func (s *Session) reviewedBy(
	ctx context.Context, who order.Reviewer, about subject, before []ralph.Review,
) (r ralph.Review, known bool, err error) {
	for _, b := range before {
		same := b.Tree == about.tree && b.For == who.For && b.None == ""
		if same && (!about.prompt.Asks || b.Asks != "") && (about.prompt.Only || b.Checked != "" || len(b.Blocking()) > 0) {
			return b, true, nil
		}
	}
	r = ralph.Review{Agent: who.Name, For: who.For, Model: who.Model, Tree: about.tree, None: who.Unable}
	about.prompt.More = who.More
	why, choice := "", who.Choice
	for try := 0; try < reviewTries && who.Unable == ""; try++ {
		reviewed, now, err := s.converse(ctx, choice, who.For, about)
		if err != nil || ctx.Err() != nil {
			return now, false, err
		}
		if r = now; try > 0 && choice.Name == who.Name {
			r.Before = why
		}
		if r.None == "" || reviewed == nil {
			break
		}
		why = r.None
		switch ending := reviewed.Report.Ending; {
		case ending.StandsIn() && who.Else != nil:
			choice = *who.Else
		case ending.Rests(): // it could not do better now
			return r, false, nil
		}
	}
	return r, false, nil
}

// converse lets an agent review a change, in a separate conversation and a temporary workspace.
func (s *Session) converse(
	ctx context.Context, who order.Choice, of string, about subject,
) (_ *Reviewed, r ralph.Review, err error) {
	r = ralph.Review{Agent: who.Name, For: of, Model: who.Model, Tree: about.tree}
	ws, err := s.Pool.Take(ctx, workspace.FirstReview+s.Workspace.Clone.Number, false)
	if err != nil {
		return nil, r, fmt.Errorf("a workspace for the review: %w", err)
	}
	defer func() { err = errors.Join(err, ws.Release()) }()
	if _, err := ws.Begin(ctx, about.commit, ""); err != nil {
		if _, ok := errors.AsType[*workspace.SetupError](err); ok {
			r.None = "the set-up of its workspace failed: " + Shortly(err)
			return nil, r, nil
		}
		return nil, r, err
	}
	if err := s.Check.Guard.Lay(ctx, ws, about.prompt.Base, about.commit); err != nil {
		return nil, r, fmt.Errorf("the workspace of the review: %w", err)
	}
	v := &Session{Parts: s.Parts, Order: s.Order, Place: Place{Workspace: ws}, Task: s.Task}
	v.Agent = who.Agent
	v.Row = ralph.Session{ID: uuid.NewString(), TaskID: s.Row.TaskID, Model: who.Model}
	tools := agent.ProfileOf(who.Agent)
	d := about.prompt
	d.Object, d.Approve, d.Tests = tools.Review(ralph.ObjectTool), tools.Review(ralph.ApproveTool),
		tools.Review(ralph.TestsTool)
	v.Prompt = d.Build()
	v.desk = &desk{dir: ws.Dir, changed: about.changed, only: d.Only, asked: d.Asks, tools: tools}
	folder := v.folder()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, r, err
	}
	if err := os.WriteFile(filepath.Join(folder, "prompt.md"), []byte(v.Prompt), 0o600); err != nil {
		return nil, r, err
	}
	s.leaveLine(ctx) // others should not wait for checks that take long and may be refused
	if r.None, err = s.begin(ctx, v, who, ws.Dir); err != nil || r.None != "" {
		return nil, r, errors.Join(err, os.RemoveAll(folder))
	}
	s.takes(v.Limits.Time)
	end := v.Work(ctx)
	if err := v.take(end.Report); err != nil {
		return nil, r, err
	}
	v.desk.weigh(end.Report, &r)
	author, _ := agent.SplitEffort(cmp.Or(s.model(), s.Row.Model))
	r.Session, r.Model = v.Row.ID, v.Row.Model
	reviewer, _ := agent.SplitEffort(r.Model)
	r.Same = reviewer == author && (author != "" || who.Name == s.Row.Agent)
	detached := context.WithoutCancel(ctx)
	if r.Wrote, err = ws.Discard(detached); err != nil {
		s.Log.Warn("cannot tell whether a reviewer changed its workspace, which is thrown away", "session", v.Row.ID,
			"error", err)
	}
	if ctx.Err() != nil && r.None == "" && !v.desk.closed() {
		r.None = "it was stopped"
	}
	err = s.Store.Tx(detached, func(tx *store.Tx) (err error) {
		row, err := tx.Session(v.Row.ID)
		if err != nil {
			return err
		}
		r.Strangers = row.Strangers
		if err := tx.EndReview(v.Row, r); err != nil {
			return err
		}
		return tx.NoteChecking(s.Row.ID, "")
	})
	done := Reviewed{v, end.Report}
	s.Done = append(s.Done, done)
	return &done, r, errors.Join(err, os.RemoveAll(v.scratch()), os.RemoveAll(v.idleScratch()))
}

// begin records the start of a review, and its budget. It waits for a while for the budget of sessions in progress;
// none is the reason why it cannot begin.
func (s *Session) begin(ctx context.Context, v *Session, who order.Choice, dir string) (none string, err error) {
	defer s.checking("")
	for deadline := time.Now().Add(reviewWait); ; {
		changed, waits := s.Store.Changed(), false
		err = s.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			if v.Limits.CostUSD, none, waits, err = s.ReviewBudget(tx); err != nil || none != "" {
				return err
			}
			v.Row, err = tx.StartReview(store.Start{
				ID: v.Row.ID, Task: v.Row.TaskID, Run: s.Row.RunID, Model: who.Model, Agent: who.Name,
				CostLimitUSD: v.Limits.CostUSD, Dir: dir, Number: s.Row.Number, Worker: s.Row.Worker,
			}, s.Row)
			return err
		})
		left := time.Until(deadline)
		if err != nil || none == "" || !waits || left <= 0 {
			return none, err
		}
		s.takes(left)
		s.checking("the review by " + who.Name + " waits for money that other sessions may leave")
		select {
		case <-changed:
		case <-time.After(left):
		case <-ctx.Done():
			return none, nil
		}
	}
}

// A desk receives a reviewer's signals, and decides whether the review is complete.
type desk struct {
	dir         string // the reviewer's folder
	changed     signals.Changed
	only, asked bool
	tools       *agent.Profile

	mu       sync.Mutex
	seen     signals.ReviewSeen
	astray   []ralph.Objection // objections to lines that the change does not have
	reminded bool
}

// review returns the handlers of the agent's calls.
func (d *desk) review() *agent.Review {
	r := &agent.Review{Object: d.object, Approve: d.approve, Only: d.only}
	if d.asked {
		r.Tests = d.tests
	}
	return r
}

// mostObjections is the maximum number of objections in a review: people read them all.
const mostObjections = 50

// object takes an objection. The error names its fault.
func (d *desk) object(o ralph.Objection) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if in, err := filepath.Rel(d.dir, o.File); err == nil && filepath.IsAbs(o.File) {
		o.File = in
	}
	if len(d.seen.Objected)+len(d.astray) >= mostObjections {
		return fmt.Errorf("you have objected %d times, which is the most: end your turn", mostObjections)
	}
	if err := errors.Join(ralph.CheckText("file", o.File, true), ralph.CheckText("what", o.What, true),
		ralph.CheckText("why", o.Why, true)); err != nil {
		return err
	}
	o.File = filepath.ToSlash(filepath.Clean(o.File))
	if why := d.changed.Lacks(o); why != "" {
		d.astray = append(d.astray, o)
		return fmt.Errorf("%s: object to lines of the change only", why)
	}
	d.seen.Objected = append(d.seen.Objected, o)
	// The reviewer has found the right line.
	d.astray = slices.DeleteFunc(d.astray, func(a ralph.Objection) bool { return a.File == o.File })
	if o.Severity == ralph.ObjectionBlocking {
		d.seen.Approved, d.seen.Checked = false, ""
	}
	return nil
}

// approve takes an approval.
func (d *desk) approve(checked string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if blocking := (ralph.Review{Objections: d.seen.Objected}).Blocking(); len(blocking) > 0 {
		return fmt.Errorf("you have objected to %s, and a change is approved or objected to: end your turn",
			blocking[0].At())
	}
	d.seen.Approved, d.seen.Checked = true, checked
	return nil
}

// tests records whether the task asks for the changed tests.
func (d *desk) tests(asks, why string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen.Asks, d.seen.AsksWhy = asks, why
	return nil
}

// event counts the reviewer's reads and runs.
func (d *desk) event(e agent.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case looks(e.Kind):
		d.seen.Looked++
	case e.Kind == agent.Answered && looks(e.Of) && e.Denied():
		d.seen.Looked--
	}
}

// looks reports whether a call reads or runs something.
func looks(k agent.Kind) bool { return k == agent.Read || k == agent.Ran || k == agent.Asked }

// closed reports whether the reviewer has said everything required.
func (d *desk) closed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	blocking := len((ralph.Review{Objections: d.seen.Objected}).Blocking()) > 0
	return blocking || (d.seen.Approved || d.only) && (!d.asked || d.seen.Asks != "")
}

// turnEnded reminds a reviewer, once, to close its review with a result.
func (d *desk) turnEnded(_ context.Context, _ agent.Turn) agent.Answer {
	if d.closed() || d.reminded {
		return agent.Answer{}
	}
	d.reminded = true
	kind := replyReview
	switch {
	case d.only:
		kind = replyReviewTests
	case d.asked:
		kind = replyReviewBoth
	}
	return agent.Say(reply{kind: kind, tools: d.tools}.words())
}

// weigh decides on the review's result.
func (d *desk) weigh(report agent.Report, r *ralph.Review) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := d.seen
	seen.Ending, seen.Why, seen.Only, seen.Asked = report.Ending, report.Reason, d.only, d.asked
	if len((ralph.Review{Objections: seen.Objected}).Blocking()) == 0 {
		seen.Objected = append(seen.Objected, d.astray...) // the reviewer did not find the right lines
	}
	r.None = signals.Weigh(seen, d.changed)
	if r.None == "" {
		r.Checked, r.Objections, r.Asks, r.AsksWhy = seen.Checked, seen.Objected, seen.Asks, seen.AsksWhy
	}
}

// model returns the model that the session's agent reports; "" if it has not.
func (s *Session) model() string {
	if s.observer == nil {
		return ""
	}
	s.observer.mu.Lock()
	defer s.observer.mu.Unlock()
	return s.observer.model
}

// reviewTime returns the longest time that reviews of a candidate may take, for leases.
func (s *Session) reviewTime() time.Duration {
	if s.unreviewed() {
		return 0
	}
	return reviewTries * s.Limits.Time
}
