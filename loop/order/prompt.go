package order

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
	"ralph/loop/agent"
	"ralph/loop/check"
	"ralph/prompt"
	"ralph/signals"
	"ralph/store"
)

// reasonsShown is the number of earlier stuck sessions that a prompt mentions.
const reasonsShown = 5

// Prompts configures how prompts are built.
type Prompts struct {
	Tokens int // the budget of one prompt

	// The names of ralph's tools for reporting phases, commenting on the task
	// and proposing amendments; "" for none.
	StateTool, CommentTool, AmendTool string

	Template *prompt.Template // the project's template; nil for ralph's own
}

// BuildPrompt returns the prompt of a task's next session. It depends only on the database,
// and the configuration.
func (c *Config) BuildPrompt(tx *store.Tx, t ralph.Task) (prompt.Prompt, error) {
	who, err := c.choose(tx, t)
	if err != nil {
		return prompt.Prompt{}, err
	}
	d, err := c.promptData(tx, t, who.Agent)
	if err != nil {
		return prompt.Prompt{}, err
	}
	built := prompt.Build(d)
	return built, built.Err
}

// ChatPrompt returns the prompt for a chat, for a person that has claimed a task.
func (c *Config) ChatPrompt(tx *store.Tx, t ralph.Task) (prompt.Prompt, error) {
	d, err := c.ChatData(tx, t)
	if err != nil {
		return prompt.Prompt{}, err
	}
	return prompt.Build(d), nil
}

// ChatData returns the data for [Config.ChatPrompt].
func (c *Config) ChatData(tx *store.Tx, t ralph.Task) (prompt.Data, error) {
	d, err := c.promptData(tx, t, nil)
	d.Chat, d.Template = true, nil
	if err != nil || t.ClaimedBy == "" {
		return d, err
	}
	// A new chat on the same claim continues from the end of the last one.
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

func (c *Config) promptData(tx *store.Tx, t ralph.Task, works agent.Agent) (d prompt.Data, err error) {
	// Each retry after "prompt is too long" halves the budget.
	p, tools := c.Prompts, agent.ProfileOf(works)
	d = prompt.Data{
		ToolPrefix: tools.SignalPrefix(), StateTool: tools.Tool(p.StateTool), CommentTool: tools.Tool(p.CommentTool),
		AmendTool: tools.Tool(p.AmendTool),
		Template:  p.Template, Project: c.Project(), Task: t, MaxTokens: p.Tokens >> min(t.PromptTooLong, 8),
	}
	for _, add := range []func(*store.Tx, ralph.Task, *prompt.Data) error{
		c.addRules, c.addKnowledge, addDependencies, addAnswers, addContinuation, addCheckpoint, addTimeline,
	} {
		if err := add(tx, t, &d); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (c *Config) addRules(tx *store.Tx, t ralph.Task, d *prompt.Data) (err error) {
	commands, err := c.Check.Of(tx, t)
	if err != nil {
		return err
	}
	d.Verify, d.Protect, d.Unseen = commands.All(), c.Check.Protect, len(commands.Hidden) > 0
	var before []check.Outcome
	if _, err := tx.Baseline(t.ID, &before); err != nil {
		return err
	}
	for _, b := range before {
		if !b.Check.Passed && slices.Contains(commands.Shared, b.Check.Command) {
			d.FailedBefore = append(d.FailedBefore, failedBefore(b, c.Check.Strict))
		}
	}
	d.Discipline, err = discipline(tx, t)
	return err
}

// failedBefore describes a command that failed before the task began.
func failedBefore(b check.Outcome, strict bool) prompt.FailedBefore {
	f := prompt.FailedBefore{Command: b.Check.Command}
	if b.Tests != nil {
		f.Tests, f.Excused = b.Tests.Failed(), !strict
	}
	return f
}

func (c *Config) addKnowledge(tx *store.Tx, t ralph.Task, d *prompt.Data) (err error) {
	if d.ProjectLearnings, err = c.fitting(tx, t, ralph.ScopeProject, d); err != nil {
		return err
	}
	if t.Feature != "" {
		f, err := tx.Feature(t.Feature)
		if err != nil {
			return err
		}
		d.FeatureName, d.FeatureText, d.FeatureHuman = f.Name, f.Description, f.Learnings
	}
	if d.FeatureLearnings, err = c.fitting(tx, t, ralph.ScopeFeature, d); err != nil {
		return err
	}
	own, err := c.fitting(tx, t, ralph.ScopeTask, d)
	d.FeatureLearnings = append(d.FeatureLearnings, own...)
	return err
}

// learningsShown is the most learnings of a scope in a prompt, more than any budget has room for.
const learningsShown = 1000

// fitting returns the learnings of a scope that fit the task best. Stale learnings come last.
func (c *Config) fitting(tx *store.Tx, t ralph.Task, scope string, d *prompt.Data) ([]ralph.Learning, error) {
	best, err := tx.LearningsFor(t, scope)
	if err != nil {
		return nil, err
	}
	rank(t, best)
	if len(best) > learningsShown {
		d.LearningsBeyond += len(best) - learningsShown
		best = best[:learningsShown]
	}
	return c.sink(best), nil
}

// rank puts learnings that are pinned or written by people first, then orders by fit.
// Equal learnings keep their order: seen often, then seen recently.
func rank(t ralph.Task, list []ralph.Learning) {
	terms := make([]string, len(list))
	for i, l := range list {
		terms[i] = l.Terms
	}
	fits := map[int64]float64{}
	query := strings.Join(append([]string{t.Title, t.Description}, t.Acceptance...), "\n")
	for i, score := range bm25.Scores(query, terms) {
		fits[list[i].ID] = score
	}
	first := func(l ralph.Learning) int {
		if l.Pinned || l.Origin == ralph.ByHuman {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b ralph.Learning) int {
		return cmp.Or(first(a)-first(b), cmp.Compare(fits[b.ID], fits[a.ID]))
	})
}

// sink moves stale learnings to the end.
func (c *Config) sink(list []ralph.Learning) []ralph.Learning {
	var newest ralph.Time
	for _, k := range list {
		if k.LastSeen.After(newest.Time) {
			newest = k.LastSeen
		}
	}
	var fresh, stale []ralph.Learning
	for _, k := range list {
		if k.Stale(newest, Gone(c.Dir, k)) == "" {
			fresh = append(fresh, k)
		} else {
			stale = append(stale, k)
		}
	}
	return append(fresh, stale...)
}

// Gone returns the first file that a learning names and that the project
// lacks; "" if there is none.
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
	for _, a := range answers {
		d.Answers = append(d.Answers, prompt.Answer{
			Question: a.Question, Answer: a.Answer, Author: a.By, At: a.At,
			New: !a.At.Before(last.Time), Own: a.TaskID == t.ID, TaskID: a.TaskID,
		})
	}
	return err
}

// addContinuation adds the task's latest merge, and the end of the last session: its closing signal and the reason why
// its done was refused.
func addContinuation(tx *store.Tx, t ralph.Task, d *prompt.Data) error {
	merged, _, err := tx.LatestMerge(t.ID)
	if err != nil {
		return err
	}
	d.Merged, d.Undone = merged.Commit, merged.Undo == ralph.Cancelled
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
	switch p := signals.Closing(said).Payload.(type) {
	case signals.Partial:
		c.Summary, c.Remaining = p.Summary, p.Remaining
	case signals.Done:
		c.Summary = p.Summary
	}
	d.LastSession = c
	return addStuck(tx, t, d)
}

// addStuck adds why the latest sessions got stuck.
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

// addCheckpoint adds where the last session stood if it was cut off.
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

// tested returns the test results that a session last reported.
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

// author returns the name that a task's sessions speak under.
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
	if d.Files, err = tx.TouchedFiles(t.ID); err != nil {
		return err
	}
	last, _, err := tx.LastJudged(t.ID)
	if err != nil {
		return err
	}
	d.Comments, err = tx.Discussion(t.ID, last.StartedAt)
	d.NewComments = map[int64]bool{}
	for _, c := range d.Comments {
		d.NewComments[c.ID] = newTo(last, c)
	}
	return err
}

// newTo reports whether a person wrote or resolved the comment after the start of the task's
// last session. Sessions that did nothing, such as crashed ones, do not count as the last.
func newTo(last ralph.Session, c ralph.Comment) bool {
	since := func(t ralph.Time) bool { return !t.IsZero() && !t.Before(last.StartedAt.Time) }
	told := !c.Delivered.IsZero() && !c.Delivered.After(last.CompletedAt.Time)
	return c.AuthorKind == ralph.ByHuman && since(c.Created) && !told || since(c.ResolvedAt)
}
