package show

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/inbox"
	"ralph/internal/lazy"
	"ralph/internal/report"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/store"
)

// A StatusView is the output of `ralph status --json`.
type StatusView struct {
	Running  bool                `json:"running"`
	Run      *ralph.Run          `json:"run"`            // in progress, or the last that did something; null for none
	Morning  []string            `json:"morning"`        // its summary, by lines
	Figures  report.Figures      `json:"figures"`        // figures of the same
	Last     *Completed          `json:"last_completed"` // null if no session completed a task
	Sessions []ralph.Session     `json:"sessions"`       // in progress
	Parallel []advice.Session    `json:"-"`              // if there are several
	Counts   map[string]int      `json:"counts"`         // counts of tasks, see [ralph.Task.Key]
	Waiting  int                 `json:"waiting_for_people"`
	Outside  []int64             `json:"unaccepted"`     // completed tasks that nothing recorded explains
	Inbox    []store.InboxItem   `json:"inbox"`          // of it: permissions, the first questions and flags
	Kinds    map[string]int      `json:"inbox_counts"`   // the number of inbox items of each kind
	Merging  MergesView          `json:"merging"`        // the merge queue
	Lines    []string            `json:"-"`              // its description
	Reverted []ralph.Reverted    `json:"reverted"`       // completed tasks whose changes people have reverted
	Resting  []store.AgentState  `json:"agents_resting"` // agents for which no session starts now, and why
	Limits   ralph.Limits        `json:"limits"`         // limits of the run in progress, or else of the next one
	Today    float64             `json:"cost_today_usd"` // since midnight, over all runs
	Windows  []ralph.UsageWindow `json:"usage_windows"`
	Summed   bool                `json:"-"` // the summary is of all runs since a moment
	Here     string              `json:"-"` // this machine, if there may be others
	Ports    [2]int              `json:"-"` // the first port of the workspaces, and the number per workspace
	Now      ralph.Time          `json:"-"`
	Forge    string              `json:"forge,omitempty"` // state of the forge, in a line; "" for none
	Strange  string              `json:"-"`               // a note on the tasks in Outside
}

// Completed describes the session that completed a task.
type Completed struct {
	TaskID    int64      `json:"task_id"`
	Title     string     `json:"title"`
	At        ralph.Time `json:"at"`
	Commits   int        `json:"commits"`
	Learnings int        `json:"learnings"`
}

// on names another machine than this.
func (v StatusView) on(machine string) string {
	if v.Here == "" || machine == v.Here {
		return ""
	}
	return " on " + text.Line(machine, 100)
}

// lastCompleted returns the task that a session completed last; nil if there is none.
func lastCompleted(tx *store.Tx) (*Completed, error) {
	s, ok, err := tx.LastCompleted()
	if err != nil || !ok {
		return nil, err
	}
	t, err := tx.Task(s.TaskID)
	if err != nil {
		return nil, err
	}
	r, err := report.OfTask(tx, t)
	if err != nil {
		return nil, err
	}
	learned, err := tx.Timeline(t.ID, store.CommentFilter{Session: s.ID, Verbs: []ralph.Verb{ralph.VerbLearned}})
	return &Completed{t.ID, t.Title, s.CompletedAt, len(r.Changed.Commits), len(learned)}, err
}

// waits reads the counts of the inbox, and the items that a status names.
func (v *StatusView) waits(tx *store.Tx) (err error) {
	if v.Kinds, err = tx.InboxCounts(); err != nil {
		return err
	}
	for _, n := range v.Kinds {
		v.Waiting += n
	}
	v.Inbox, err = inbox.First(tx, namedInStatus+v.Kinds["permission"])
	return err
}

// ReadStatus reads the status, with the summary of everything since a moment (zero: of the last night), given the
// spending of sessions in progress so far (USD, by id). The caller adds facts from outside the database: whether a run
// is active, and the limits and hours of the next one.
func ReadStatus(
	tx *store.Tx, midnight func(time.Time) time.Time, since ralph.Time, spent map[string]float64,
) (v StatusView, err error) {
	v.Now = tx.Now()
	run, ok, err := tx.LastWorkedRun()
	if err != nil {
		return v, err
	}
	v.Morning, v.Summed = []string{}, !since.IsZero()
	if err = v.waits(tx); err != nil {
		return v, err
	}
	if ok {
		v.Run = &run
		m, err := report.MorningOf(tx, since, sum(spent))
		if err != nil {
			return v, err
		}
		v.Morning, v.Figures = append(v.Morning, m.Lines()...), m.Figures
		if v.Parallel, err = advice.Sessions(tx, run); err != nil {
			return v, err
		}
		for i, l := range v.Parallel {
			if l.Session != nil {
				v.Parallel[i].SpentUSD = spent[l.Session.ID]
			}
		}
	}
	if v.Sessions, err = tx.OpenSessions(); err != nil {
		return v, err
	}
	if v.Counts, err = tx.Tally(); err != nil {
		return v, err
	}
	if v.Last, err = lastCompleted(tx); err != nil {
		return v, err
	}
	if v.Merging, err = ReadMerges(tx, false); err != nil {
		return v, err
	}
	if v.Lines, err = advice.Merging(tx); err != nil {
		return v, err
	}
	if v.Outside, err = tx.Unaccepted(); err != nil {
		return v, err
	}
	if v.Windows, err = tx.UsageWindows(); err != nil {
		return v, err
	}
	if v.Today, err = tx.CostSince(midnight(v.Now.Time)); err != nil {
		return v, err
	}
	v.Resting, err = tx.Resting()
	return v, err
}

func sum(amounts map[string]float64) (all float64) {
	for _, usd := range amounts {
		all += usd
	}
	return all
}

// Status writes the run, the open decisions, the queue and the money; with all, also every limit.
func Status(w io.Writer, s term.Screen, v StatusView, all bool) {
	line := func(name, said string) {
		fmt.Fprintln(w, s.Hang(s.Paint(term.Bold, term.Pad(name, 10)), said))
	}
	standing(v, line)
	atWork(w, s, v)
	for _, l := range v.Lines {
		line("merging", text.VisibleLine(l))
	}
	for _, a := range v.Resting {
		until := text.When(a.WaitUntil.Time, v.Now.Time)
		line("resting", fmt.Sprintf("%s until %s: %s", a.Agent, until, text.Line(a.Reason, 200)))
	}
	if v.Forge != "" {
		line("forge", v.Forge)
	}
	needsYou(w, s, v)
	line("queue", tally(v))
	if c := v.Last; c != nil {
		line("merged", fmt.Sprintf("TASK-%d %s at %s, %s, %s", c.TaskID, text.Line(c.Title, 60),
			text.When(c.At.Time, v.Now.Time), text.Count(c.Commits, "commit"), text.Count(c.Learnings, "learning")))
	}
	if len(v.Outside) > 0 {
		line("!", v.Strange)
	}
	for _, r := range v.Reverted {
		line("!", text.VisibleLine(r.String()))
	}
	if all {
		limits(w, v)
	}
}

// standing describes the run in progress, or the last one, with its figures.
func standing(v StatusView, line func(name, said string)) {
	came := ""
	if len(v.Morning) > 0 {
		came = v.Morning[0]
	}
	switch {
	case v.Run == nil:
		line("idle", "no run yet")
		return
	case v.Running:
		doing := ralph.Doing(v.Run.State, text.Line(v.Run.StateReason, 400), "")
		switch v.Run.Control {
		case ralph.ControlStop, ralph.ControlStopNow:
			if v.Run.State != "ending" {
				doing = "stopping" + After(v.Sessions) + "; `ralph resume` goes on, `ralph stop --now` does not wait"
			}
		case ralph.ControlPause:
			if len(v.Sessions) > 0 {
				doing = "pausing" + After(v.Sessions) + "; `ralph resume` goes on"
			}
		}
		said := fmt.Sprintf("since %s%s", text.When(v.Run.StartedAt.Time, v.Now.Time), v.on(v.Run.Machine))
		if doing != "running" {
			said += ", " + doing
		}
		if until := v.Run.WaitUntil; !until.IsZero() {
			said += ", until " + text.When(until.Time, v.Now.Time)
		}
		line("running", said+" · "+came)
	case v.Run.EndedAt.IsZero():
		on := v.on(v.Run.Machine)
		line("lost", fmt.Sprintf("the last run%s did not end by itself: `ralph run` takes up its work", on))
		line("last run", came)
	default:
		if !v.Summed {
			came = "last run: " + came
		}
		line("idle", "since "+text.When(v.Run.EndedAt.Time, v.Now.Time)+" · "+came)
	}
	for i, l := range v.Morning {
		if i > 0 {
			line("", text.VisibleLine(l))
		}
	}
}

// atWork writes the sessions in progress.
func atWork(w io.Writer, s term.Screen, v StatusView) {
	width := s.Columns
	if width == 0 {
		width = 80
	}
	for _, l := range v.Parallel {
		if v.Running {
			if v.Ports[1] > 0 {
				l.Port = v.Ports[0] + (l.Number-1)*v.Ports[1]
			}
			fmt.Fprintln(w, l.Line(v.Now, width))
		}
	}
	for _, one := range v.Sessions {
		if v.Running && len(v.Parallel) > 0 && one.Number > 0 && one.RunID == v.Run.ID {
			continue
		}
		name := "working"
		if one.Worker != "" {
			name = text.Line(one.Worker, 40)
		}
		doing := text.Span(v.Now.Sub(one.StartedAt.Time).Seconds())
		if verifies := one.Verifies(v.Now); verifies != "" {
			doing += ", " + text.Line(verifies, 200)
		}
		first := s.Paint(term.Bold, term.Pad(name, 10))
		fmt.Fprintln(w, s.Hang(first, fmt.Sprintf("TASK-%d %s, %s%s%s",
			one.TaskID, one.State, doing, v.on(one.Machine), workspace(one, v.Ports))))
	}
}

// tally counts the open tasks, and adds the costs of today.
func tally(v StatusView) string {
	var counts []string
	for _, word := range []string{"queued", "running", "merging", "in review", "waiting"} {
		if n := v.Counts[ralph.KeyOf(word)]; n > 0 || word == "queued" {
			counts = append(counts, fmt.Sprintf("%d %s", n, word))
		}
	}
	said := strings.Join(counts, ", ")
	if len(v.Counts) == 0 {
		said = "empty; ralph run \"TITLE\" --verify COMMAND adds a task and works on it"
	}
	l := v.Limits
	return said + fmt.Sprintf(" · today %s of %s · a run: at most %s, %s",
		text.Money(v.Today), text.Money(l.MaxDayCostUSD), text.Money(l.MaxCostUSD), text.Span(l.MaxSeconds))
}

// workspaces matches the folder of a session in a workspace, with the workspace's number.
var workspaces = lazy.Regexp(`/workspaces/(\d+)/tree(?:/|$)`)

// workspace describes a session's workspace, and its port; "" for none.
func workspace(s ralph.Session, ports [2]int) string {
	m := workspaces().FindStringSubmatch(filepath.ToSlash(s.Dir))
	if m == nil {
		return ""
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || ports[1] == 0 {
		return ", in workspace " + m[1]
	}
	return fmt.Sprintf(", in workspace %d, port %d", n, ports[0]+(n-1)*ports[1])
}

// namedInStatus is the number of inbox items that `ralph status` names; permissions, for which an agent stands still,
// are all named.
const namedInStatus = 4

// needsYou names the first items of the inbox, in its order.
func needsYou(w io.Writer, s term.Screen, v StatusView) {
	name := "need you"
	if v.Waiting == 1 {
		name = "needs you"
	}
	if v.Waiting == 0 {
		fmt.Fprintln(w, s.Paint(term.Bold, term.Pad("needs you", 10))+"nothing")
		return
	}
	shown := 0
	for _, i := range v.Inbox {
		if shown >= namedInStatus && i.Kind != "permission" {
			continue
		}
		shown++
		task := ""
		if i.TaskID != 0 {
			task = fmt.Sprintf("TASK-%d", i.TaskID)
		}
		if i.Item == task {
			task = strings.ReplaceAll(i.Kind, "_", " ")
		}
		about := term.Pad("  "+task, 10-max(0, term.Width(i.Item)-6)) + "  "
		head := s.Paint(term.Bold, term.Pad(name, 10)) + s.Paint(term.Yellow, term.Pad(i.Item, 6)) + about
		said := inbox.Gist(i)
		if i.Kind == "permission" {
			said = text.Request(said)
			if !i.Expires.IsZero() {
				left := max(0, i.Expires.Sub(v.Now.Time).Seconds())
				said += fmt.Sprintf(" (denied in %s unless you say: %s)", text.Span(left), i.Command())
			}
			fmt.Fprintln(w, s.Hang(head, text.VisibleLine(said)))
		} else if i.Kind == "trouble" || i.Kind == "merging" || i.Kind == "behind" { // name no task, whose page has the rest
			fmt.Fprintln(w, s.Hang(head, text.Line(said, 400)+" → "+text.VisibleLine(i.Command())))
		} else {
			fmt.Fprintln(w, head+s.Clip(text.Line(said, 200), s.Columns-term.Width(head)))
		}
		name = ""
	}
	if more := v.Waiting - shown; more > 0 {
		fmt.Fprintf(w, "%sand %d more: ralph inbox\n", strings.Repeat(" ", 10), more)
	}
}

// limits writes each limit with its use.
func limits(w io.Writer, v StatusView) {
	l, now := v.Limits, v.Now
	var r ralph.Run
	elapsed := "0 s"
	if v.Running {
		r, elapsed = *v.Run, text.Span(now.Sub(v.Run.StartedAt.Time).Seconds())
		fmt.Fprintln(w, "limits of this run:")
	} else {
		fmt.Fprintln(w, "limits of the next run:")
	}
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "  %-20s %s\n", what, fmt.Sprintf(format, args...))
	}
	line("sessions", "%d of %d", r.Sessions, l.MaxSessions)
	line("tasks", "%d of %d", r.Tasks, l.MaxTasks)
	line("time", "%s of %s", elapsed, text.Span(l.MaxSeconds))
	line("cost", "%s of %s", text.Cost(r.CostUSD, r.CostKnown, r.Tokens), text.Money(l.MaxCostUSD))
	line("cost today", "%s of %s", text.Money(v.Today), text.Money(l.MaxDayCostUSD))
	line("without a change", "%s in a row", text.Count(l.StagnantMaximum, "session"))
	for _, name := range slices.Sorted(maps.Keys(l.Usage)) {
		used := "unknown"
		for _, u := range v.Windows {
			if u.Title() == name && u.ResetsAt.After(now.Time) {
				used = fmt.Sprintf("%.0f%% (reset %s)", u.Utilization*100, text.When(u.ResetsAt.Time, now.Time))
			}
		}
		line("usage "+name, "%s of %d%%", used, l.Usage[name])
	}
	line("attempts of a task", "%d", l.Attempts)
	line("time of a session", "%s, idle %s", text.Span(l.SessionSeconds), text.Span(l.IdleSeconds))
	line("turns of a session", "%d", l.SessionTurns)
	line("cost of a session", "%s", text.Money(l.SessionCostUSD))
}

// After names the tasks that a stopping run waits for (" after TASK-9"); "" if there are none.
func After(sessions []ralph.Session) string {
	var tasks []string
	for _, s := range sessions {
		if s.Origin == ralph.FromLoop && s.Worker == "" {
			tasks = append(tasks, fmt.Sprintf("TASK-%d", s.TaskID))
		}
	}
	if len(tasks) == 0 {
		return ""
	}
	return " after " + strings.Join(tasks, ", ")
}
