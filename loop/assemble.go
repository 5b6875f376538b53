package loop

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ralph"
	"ralph/internal/bm25"
	"ralph/loop/check"
	"ralph/prompt"
	"ralph/signals"
	"ralph/store"
)

// reasonsShown is how many earlier stuck sessions are told of.
const reasonsShown = 5

// Prompts say how the loop's prompts are made.
type Prompts struct {
	Tokens      int    // the budget of one
	ToolPrefix  string // how the agent sees ralph's tools
	StateTool   string // the one by which it reports its phases
	CommentTool string // the one by which it comments on its task
	AmendTool   string // and the one by which it proposes changes of it

	Template *prompt.Template // of the project; nil for ralph's own
}

// BuildPrompt is what the next session of a task would be told. The same
// database and the same configuration give the same bytes, with the same uncommitted
// files that are not the session's to commit.
func (l *Loop) BuildPrompt(tx *store.Tx, t ralph.Task, strange ...string) (prompt.Prompt, error) {
	d, err := l.promptData(tx, t)
	if err != nil {
		return prompt.Prompt{}, err
	}
	d.Strange = strange
	built := prompt.Build(d)
	return built, built.Err
}

// ChatPrompt is what a person who has claimed a task gives to a chat.
func (l *Loop) ChatPrompt(tx *store.Tx, t ralph.Task) (prompt.Prompt, error) {
	d, err := l.ChatData(tx, t)
	if err != nil {
		return prompt.Prompt{}, err
	}
	return prompt.Build(d), nil
}

// ChatData is what [Loop.ChatPrompt] is made of.
func (l *Loop) ChatData(tx *store.Tx, t ralph.Task) (prompt.Data, error) {
	d, err := l.promptData(tx, t)
	d.Chat, d.Template = true, nil
	if err != nil || t.ClaimedBy == "" {
		return d, err
	}
	// Another chat on the same claim goes on where the one before stood.
	s, err := tx.Session(t.ClaimedBy)
	if err != nil || s.Origin != ralph.FromHuman {
		return d, err
	}
	list, err := tx.Checkpoints(s.ID)
	if err != nil || len(list) == 0 {
		return d, err
	}
	d.Checkpoint = &prompt.Checkpoint{
		Checkpoint: list[len(list)-1], Attempt: s.Attempt, Author: author(t), Tests: tested(s), Open: true,
	}
	if s.Progress != nil {
		for _, f := range s.Progress.FilesModified {
			d.Checkpoint.Files = append(d.Checkpoint.Files, ralph.FileChange{Path: f})
		}
	}
	return d, nil
}

func (l *Loop) promptData(tx *store.Tx, t ralph.Task) (d prompt.Data, err error) {
	// Each retry after "prompt is too long" has half the budget of the one before.
	p := l.Prompts
	d = prompt.Data{
		ToolPrefix: p.ToolPrefix, StateTool: p.StateTool, CommentTool: p.CommentTool, AmendTool: p.AmendTool,
		Template: p.Template, Project: filepath.Base(l.Place.Dir), Task: t, MaxTokens: p.Tokens >> min(t.PromptTooLong, 8),
	}
	for _, step := range []func(*store.Tx, ralph.Task, *prompt.Data) error{
		l.addRules, l.addKnowledge, addDependencies, addAnswers, addContinuation, addCheckpoint, addTimeline,
	} {
		if err := step(tx, t, &d); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (l *Loop) addRules(tx *store.Tx, t ralph.Task, d *prompt.Data) (err error) {
	c, err := l.Check.Of(tx, t)
	if err != nil {
		return err
	}
	d.Verify, d.Protect = c.All(), l.Check.Protect
	var before []check.Outcome
	if _, err := tx.Baseline(t.ID, &before); err != nil {
		return err
	}
	for _, b := range before {
		if (!b.Check.Passed || len(b.Left) > 0) && slices.Contains(c.Shared, b.Check.Command) {
			d.FailedBefore = append(d.FailedBefore, failedBefore(b, l.Check.Strict))
		}
	}
	if t.Discipline == "" {
		return nil
	}
	d.Discipline, err = tx.Discipline(t.Discipline)
	return err
}

// failedBefore tells of a command that failed before the task was begun.
func failedBefore(b check.Outcome, strict bool) prompt.FailedBefore {
	f := prompt.FailedBefore{Command: b.Check.Command, Left: b.Left}
	if b.Tests != nil {
		f.Tests, f.Excused = b.Tests.Failed(), !strict
	}
	return f
}

func (l *Loop) addKnowledge(tx *store.Tx, t ralph.Task, d *prompt.Data) (err error) {
	if d.ProjectLearnings, err = l.fitting(tx, t, ralph.ScopeProject, d); err != nil {
		return err
	}
	if t.Feature != "" {
		f, err := tx.Feature(t.Feature)
		if err != nil {
			return err
		}
		d.FeatureName, d.FeatureText, d.FeatureHuman = f.Name, f.Description, f.Learnings
	}
	if d.FeatureLearnings, err = l.fitting(tx, t, ralph.ScopeFeature, d); err != nil {
		return err
	}
	own, err := l.fitting(tx, t, ralph.ScopeTask, d)
	d.FeatureLearnings = append(d.FeatureLearnings, own...)
	return err
}

// learningsShown is how many learnings of a scope a prompt may show: more than
// any budget has room for.
const learningsShown = 1000

// fitting are the learnings of a scope that fit the task best, those that are stale
// last.
func (l *Loop) fitting(tx *store.Tx, t ralph.Task, scope string, d *prompt.Data) ([]ralph.Learning, error) {
	all, err := tx.Candidates(t, scope)
	if err != nil {
		return nil, err
	}
	best := rank(t, all)
	if len(best) > learningsShown {
		d.LearningsBeyond += len(best) - learningsShown
		best = best[:learningsShown]
	}
	list, err := tx.LearningsByID(best)
	if err != nil {
		return nil, err
	}
	return l.sink(list), nil
}

// rank puts what is pinned or written by people first, and then what fits the task.
// The order among what fits alike stays: seen often, seen lately.
func rank(t ralph.Task, all []store.Candidate) []int64 {
	terms := make([]string, len(all))
	for i, c := range all {
		terms[i] = c.Terms
	}
	scores := bm25.Scores(strings.Join(append([]string{t.Title, t.Description}, t.Acceptance...), "\n"), terms)
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if all[a].First != all[b].First {
			return map[bool]int{true: -1, false: 1}[all[a].First]
		}
		return cmp.Compare(scores[b], scores[a])
	})
	ids := make([]int64, len(order))
	for i, at := range order {
		ids[i] = all[at].ID
	}
	return ids
}

// sink puts stale learnings behind the others.
func (l *Loop) sink(list []ralph.Learning) []ralph.Learning {
	var newest ralph.Time
	for _, k := range list {
		if k.LastSeen.After(newest.Time) {
			newest = k.LastSeen
		}
	}
	var fresh, stale []ralph.Learning
	for _, k := range list {
		if k.Stale(newest, Gone(l.Place.Dir, k)) == "" {
			fresh = append(fresh, k)
		} else {
			stale = append(stale, k)
		}
	}
	return append(fresh, stale...)
}

// Gone is the first file that a learning names and that is not in the project; ""
// if there is none.
func Gone(dir string, k ralph.Learning) string {
	for _, f := range k.Files() {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(f))); errors.Is(err, fs.ErrNotExist) {
			return f
		}
	}
	return ""
}

func addDependencies(tx *store.Tx, t ralph.Task, d *prompt.Data) error {
	for _, id := range t.DependsOn {
		on, err := tx.Task(id)
		if err != nil {
			return err
		}
		summary, err := tx.DoneSummary(id)
		if err != nil {
			return err
		}
		d.DependsOn = append(d.DependsOn, prompt.Dependency{
			ID: id, Title: on.Title, Status: on.Status, Summary: summary, Author: author(on), At: on.CompletedAt,
		})
	}
	return nil
}

func addAnswers(tx *store.Tx, t ralph.Task, d *prompt.Data) error {
	last, err := tx.LastSessionEnd(t.ID)
	if err != nil {
		return err
	}
	answers, err := tx.Answers(t)
	if err != nil {
		return err
	}
	for _, a := range answers {
		d.Answers = append(d.Answers, prompt.Answer{
			Question: a.Question, Answer: a.Answer, Author: a.By, At: a.At,
			New: !a.At.Before(last.Time), Own: a.TaskID == t.ID, TaskID: a.TaskID,
		})
	}
	return nil
}

// addContinuation tells where the last session stood: its own words where it
// closed with a signal, and what refused its done.
func addContinuation(tx *store.Tx, t ralph.Task, d *prompt.Data) error {
	began, err := tx.LastSessionStart(t.ID)
	if err != nil || began.IsZero() {
		return err
	}
	if d.Amended, err = tx.AmendedSince(t.ID, began); err != nil {
		return err
	}
	s, ok, err := tx.LastJudged(t.ID)
	if err != nil || !ok {
		return err
	}
	said, err := tx.SessionSignals(s.ID)
	if err != nil {
		return err
	}
	c := &prompt.Continuation{
		Attempt: s.Attempt, Author: author(t), At: s.CompletedAt, Ending: s.Ending, Verb: s.ClosingVerb, Reason: s.Reason,
		Failed: slices.DeleteFunc(slices.Clone(s.Verify), func(c ralph.Check) bool { return c.Passed }),
	}
	if c.TakenBack, err = tx.Restored(s); err != nil {
		return err
	}
	switch p := signals.Closing(said).Payload.(type) {
	case signals.Partial:
		c.Summary, c.Remaining = p.Summary, p.Remaining
	case signals.Done:
		c.Summary = p.Summary
	}
	d.LastSession = c
	return addStuck(tx, t, d)
}

// addStuck tells why the latest sessions got no further.
func addStuck(tx *store.Tx, t ralph.Task, d *prompt.Data) error {
	if t.StuckCount == 0 {
		return nil
	}
	stuck, err := tx.StuckSessions(t.ID, min(t.StuckCount, reasonsShown))
	for _, s := range stuck {
		now := prompt.StuckSession{Attempt: s.Attempt, Author: author(t), At: s.CompletedAt, Reason: s.Reason}
		d.Stuck = append(d.Stuck, now)
	}
	return err
}

// addCheckpoint tells where the last session stood if it was cut off.
func addCheckpoint(tx *store.Tx, t ralph.Task, d *prompt.Data) error {
	s, c, ok, err := tx.Interrupted(t.ID)
	if err != nil || !ok {
		return err
	}
	d.Checkpoint = &prompt.Checkpoint{
		Checkpoint: c, Attempt: s.Attempt, Author: author(t), Ending: s.Ending, Files: s.Files, Tests: tested(s),
	}
	return nil
}

// tested is what a session reported last of its tests.
func tested(s ralph.Session) string {
	if s.Progress != nil && s.Progress.TestsStatus != "unknown" {
		return s.Progress.TestsStatus
	}
	for _, h := range slices.Backward(s.History) {
		r, ok := h.Metadata["testResults"].(map[string]any)
		if !ok {
			continue
		}
		var parts []string
		for _, name := range []string{"passed", "failed", "skipped"} {
			if n, ok := r[name].(float64); ok {
				parts = append(parts, fmt.Sprintf("%d %s", int(n), name))
			}
		}
		return strings.Join(parts, ", ")
	}
	return ""
}

// author is the name under which a task's sessions speak.
func author(t ralph.Task) string {
	if t.Discipline != "" {
		return t.Discipline
	}
	return "agent"
}

func addTimeline(tx *store.Tx, t ralph.Task, d *prompt.Data) (err error) {
	if d.Flags, err = tx.Flags(t); err != nil {
		return err
	}
	last, _, err := tx.LastJudged(t.ID)
	if err != nil {
		return err
	}
	if d.Comments, err = tx.Discussion(t.ID, last.StartedAt); err != nil {
		return err
	}
	d.NewComments = map[int64]bool{}
	for _, c := range d.Comments {
		d.NewComments[c.ID] = newTo(last, c)
	}
	d.Files, err = tx.TouchedFiles(t.ID)
	return err
}

// newTo reports whether a person said something, or decided on it, that a task's last
// session was not told. One that did nothing, such as a crashed one, is passed over.
func newTo(last ralph.Session, c ralph.Comment) bool {
	since := func(t ralph.Time) bool { return !t.IsZero() && !t.Before(last.StartedAt.Time) }
	told := !c.Delivered.IsZero() && !c.Delivered.After(last.CompletedAt.Time)
	return c.AuthorKind == ralph.ByHuman && since(c.Created) && !told || since(c.ResolvedAt)
}
