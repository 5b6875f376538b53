package store

import (
	"maps"
	"slices"
	"strings"

	"ralph"
)

// A SessionFilter narrows a list of sessions; the zero value selects all.
type SessionFilter struct {
	Task    int64
	Run     int64
	Ended   string
	Active  ralph.Time // in progress, or ended at or after this; zero is no limit
	From    ralph.Time // ended at or after this; zero is no limit
	To      ralph.Time // ended before this; zero is no limit
	Agent   *string    // nil for any
	Model   *string    // nil for any
	Feature *string    // of the task; nil for any, "" for none
	Work    bool       // only sessions that work on a task
	// Merges also selects earlier sessions whose change was merged in Run, or at or after Active.
	Merges bool
	ByCost bool // the most expensive first, instead of the newest
	Limit  int  // only the first; 0 is no limit
	Skip   int  // leave out this many of the first; needs Limit
}

// matching returns the conditions of the filter.
func (f SessionFilter) matching() (by filter) {
	f.narrow(&by)
	return by
}

// narrow adds the conditions of a filter to others.
func (f SessionFilter) narrow(by *filter) {
	if f.Task != 0 {
		by.and("s.task_id = ?", f.Task)
	}
	f.period(by)
	if f.Ended != "" {
		by.and("s.ended = ?", f.Ended)
	}
	if f.Work {
		by.and("s.role IN ('work', 'plan')")
	}
	if !f.From.IsZero() {
		by.and("s.completed_at >= ?", f.From)
	}
	if !f.To.IsZero() {
		by.and("s.completed_at <> '' AND s.completed_at < ?", f.To)
	}
	if f.Agent != nil {
		by.and("s.agent = ?", *f.Agent)
	}
	if f.Model != nil {
		by.and("s.model = ?", *f.Model)
	}
	if f.Feature != nil {
		by.and(`s.task_id IN (SELECT t.id FROM tasks t LEFT JOIN features f ON f.id = t.feature_id
			WHERE coalesce(f.name, '') = ?)`, *f.Feature)
	}
}

// period adds the conditions of Run and Active.
func (f SessionFilter) period(by *filter) {
	add := func(worked, merged string, arg any) {
		if !f.Merges {
			by.and(worked, arg)
			return
		}
		by.and("("+worked+" OR s.id IN (SELECT c.session_id FROM changes c WHERE "+merged+"))", arg, arg)
	}
	if f.Run != 0 {
		add("s.run_id = ?", "c.merged_run = ?", f.Run)
	}
	if !f.Active.IsZero() {
		add("(s.completed_at = '' OR s.completed_at >= ?)", "c.merged_at <> '' AND c.merged_at >= ?", f.Active)
	}
}

// Worked reports whether a session worked in Run and since Active. If not, only its merge falls into them.
func (f SessionFilter) Worked(s ralph.Session) bool {
	return (f.Run == 0 || s.RunID == f.Run) &&
		(f.Active.IsZero() || s.CompletedAt.IsZero() || !s.CompletedAt.Before(f.Active.Time))
}

// inReview selects tasks t whose change is in a pull request, or soon will be.
const inReview = `(t.status = 'merging' AND EXISTS (
	SELECT 1 FROM changes c WHERE c.task_id = t.id AND c.state = 'reviewing'))`

// besides has the tasks whose word differs from the usual word of their status, each with its condition.
var besides = []struct {
	ralph.Task
	is string
}{
	{ralph.Task{Status: ralph.Blocked, Waits: ralph.Waits{Blockers: 1}}, `(t.status = 'blocked' AND EXISTS (
		SELECT 1 FROM task_comments c WHERE c.task_id = t.id AND c.holding = 1))`},
	{ralph.Task{Status: ralph.Merging, InReview: true}, inReview},
}

// worded returns a condition that selects tasks t with one of the words, from [ralph.Words].
func worded(words []string) string {
	var any []string
	for _, s := range ralph.Statuses {
		is := "t.status = '" + string(s) + "'"
		for _, b := range besides {
			if b.Status == s && slices.Contains(words, b.Word()) {
				any = append(any, b.is)
			} else if b.Status == s {
				is += " AND NOT " + b.is
			}
		}
		if slices.Contains(words, ralph.Task{Status: s}.Word()) {
			any = append(any, is)
		}
	}
	return "(" + strings.Join(any, " OR ") + ")"
}

// tally splits counts by status into counts by [ralph.Task.Key]. of is a further condition on task t.
func (tx *Tx) tally(counts map[ralph.Status]int, of string, args ...any) (map[string]int, error) {
	tally := map[string]int{}
	for _, b := range besides {
		if counts[b.Status] == 0 {
			continue
		}
		n, err := value[int](tx, "SELECT count(*) FROM tasks t WHERE "+b.is+of, args...)
		if err != nil {
			return nil, err
		}
		counts[b.Status] -= n
		tally[b.Key()] += n
	}
	for status, n := range counts {
		tally[ralph.Task{Status: status}.Key()] += n
	}
	maps.DeleteFunc(tally, func(_ string, n int) bool { return n == 0 })
	return tally, nil
}
