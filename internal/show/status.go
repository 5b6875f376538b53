package show

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/config"
	"ralph/internal/inbox"
	"ralph/internal/report"
	"ralph/internal/text"
	"ralph/store"
)

// A StatusView is what `ralph status --json` prints.
type StatusView struct {
	Running  bool                 `json:"running"`
	Run      *ralph.Run           `json:"run"`            // in progress, or the last that did something; null for none
	Morning  []string             `json:"morning"`        // its summary, by lines
	Figures  report.Figures       `json:"figures"`        // of the same
	Last     *Completed           `json:"last_completed"` // null if no session completed a task
	Sessions []ralph.Session      `json:"sessions"`       // in progress
	Parallel []advice.Session     `json:"-"`              // if there are several
	Counts   map[ralph.Status]int `json:"counts"`
	Waiting  int                  `json:"waiting_for_people"`
	Outside  []int64              `json:"unaccepted"`     // completed tasks that nothing recorded explains
	Inbox    []store.InboxItem    `json:"inbox"`          // of it: permissions, the first questions and flags
	Kinds    map[string]int       `json:"inbox_counts"`   // the number of inbox items of each kind
	Merging  MergesView           `json:"merging"`        // the merge queue
	Lines    []string             `json:"-"`              // its description
	Reverted []ralph.Reverted     `json:"reverted"`       // completed tasks whose changes people have reverted
	Resting  []store.AgentState   `json:"agents_resting"` // agents for which no session starts now, and why
	Limits   ralph.Limits         `json:"limits"`         // of the run in progress, or else of the next one
	Today    float64              `json:"cost_today_usd"` // since midnight, over all runs
	Windows  []ralph.UsageWindow  `json:"usage_windows"`
	Here     string               `json:"-"` // this machine, if there may be others
	Ports    [2]int               `json:"-"` // the first port of the workspaces, and the number per workspace
	Now      ralph.Time           `json:"-"`
	Strange  string               `json:"-"` // a note on the tasks in Outside
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
	v.Inbox = []store.InboxItem{}
	for _, kind := range store.InboxKinds() {
		if !inbox.KindOf(kind).Listed {
			continue
		}
		some, err := inbox.First(tx, kind, max(namedInStatus+1, v.Kinds["permission"]))
		if err != nil {
			return err
		}
		v.Inbox = append(v.Inbox, some...)
	}
	return nil
}

// ReadStatus reads the status, with the summary of everything since a moment (zero: of the last night), given what
// sessions in progress have spent so far (USD, by id). The caller adds what the database does not know: whether a run
// is
// active, and the limits and hours of the next one.
func ReadStatus(
	tx *store.Tx, midnight func(time.Time) time.Time, since ralph.Time, spent map[string]float64,
) (v StatusView, err error) {
	v.Now = tx.Now()
	run, ok, err := tx.LastWorkedRun()
	if err != nil {
		return v, err
	}
	v.Morning = []string{}
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
	if v.Counts, err = tx.Counts(); err != nil {
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

// statusWidth is the maximum width of a session's line, including the session's id.
const statusWidth = 80

// Status writes the status; with all, also every limit.
func Status(w io.Writer, v StatusView, all bool) {
	asking(w, v)
	standing(w, v)
	for _, l := range v.Morning {
		fmt.Fprintf(w, "  %s\n", l)
	}
	atWork(w, v)
	lines(w, v.Lines)
	for _, a := range v.Resting {
		fmt.Fprintf(w, "no session of %s before %s: %s\n", a.Agent, a.WaitUntil.Local().Format("Jan 2 15:04:05"),
			text.Line(a.Reason, 200))
	}
	tally(w, v)
	waiting(w, v)
	if all {
		limits(w, v)
		return
	}
	l := v.Limits
	fmt.Fprintf(w, "spent today: %s of %s; a run ends after %s, %s or %s (`ralph status --limits`)\n",
		text.Money(v.Today), text.Money(l.MaxDayCostUSD), text.Money(l.MaxCostUSD), span(l.MaxSeconds),
		text.Count(l.MaxSessions, "session"))
}

// asking writes the permissions that agents wait for.
func asking(w io.Writer, v StatusView) {
	for _, i := range v.Inbox {
		if i.Kind == "permission" {
			fmt.Fprintf(w, "needs you now: TASK-%d waits to use\n", i.TaskID)
			fmt.Fprintf(w, "    %s\n  %s", strings.ReplaceAll(text.Visible(text.Request(i.Text)), "\n", "\n    "), i.Command)
			if !i.Expires.IsZero() {
				left := i.Expires.Sub(v.Now.Time).Round(time.Second)
				fmt.Fprintf(w, " (answers itself with deny in %s)", span(max(0, left.Seconds())))
			}
			fmt.Fprintln(w)
		}
	}
}

// standing writes how the run stands, or how the last one ended.
func standing(w io.Writer, v StatusView) {
	switch {
	case v.Run == nil:
		fmt.Fprintln(w, "no run yet")
	case v.Running:
		doing := ralph.Doing(v.Run.State, text.Line(v.Run.StateReason, 400), "")
		if v.Run.State != "ending" && (v.Run.Control == ralph.ControlStop || v.Run.Control == ralph.ControlStopNow) {
			doing = "stopping" + After(v.Sessions) + "; `ralph resume` goes on, `ralph stop --now` does not wait"
		}
		since := fmt.Sprintf("running since %s (process %d%s)", v.Run.StartedAt.Local().Format("Jan 2 15:04"),
			v.Run.PID, v.on(v.Run.Machine))
		if doing != "running" {
			since += ", " + doing
		}
		fmt.Fprintln(w, since)
		if until := v.Run.WaitUntil; !until.IsZero() {
			fmt.Fprintf(w, "waits until %s\n", until.Local().Format("Jan 2 15:04:05"))
		}
	case v.Run.EndedAt.IsZero():
		fmt.Fprintf(w, "not running; the last run (process %d%s) was lost: `ralph run` takes up what it left\n",
			v.Run.PID, v.on(v.Run.Machine))
	default:
		fmt.Fprintf(w, "not running; the last run ended %s\n", v.Run.EndedAt.Local().Format("Jan 2 15:04"))
	}
}

// atWork writes the sessions in progress.
func atWork(w io.Writer, v StatusView) {
	for _, l := range v.Parallel {
		if v.Running {
			if v.Ports[1] > 0 {
				l.Port = v.Ports[0] + (l.Number-1)*v.Ports[1]
			}
			line := l.Line(v.Now, statusWidth-10)
			if l.Session != nil {
				line = fmt.Sprintf("%-*s  %.8s", statusWidth-10, line, l.Session.ID)
			}
			fmt.Fprintln(w, line)
		}
	}
	for _, s := range v.Sessions {
		if v.Running && len(v.Parallel) > 0 && s.Number > 0 && s.RunID == v.Run.ID {
			continue
		}
		who := ""
		if s.Worker != "" {
			who = s.Worker + " "
		}
		doing := workspace(s, v.Ports)
		if verifies := s.Verifies(v.Now); verifies != "" {
			doing += ", " + text.Line(verifies, 200)
		}
		fmt.Fprintf(w, "%son TASK-%d since %s (session %.8s)%s%s\n", who, s.TaskID, s.StartedAt.Local().Format("15:04:05"),
			s.ID, v.on(s.Machine), doing)
	}
}

// tally counts the tasks, and names the last completed one and what was changed outside of ralph.
func tally(w io.Writer, v StatusView) {
	var counts []string
	for _, s := range ralph.Statuses {
		if n := v.Counts[s]; n > 0 && s != ralph.Cancelled && s != ralph.Rejected {
			counts = append(counts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if counts == nil {
		counts = []string{"no task yet; `ralph run \"TITLE\" --verify COMMAND` adds one and works on it"}
	}
	fmt.Fprintf(w, "tasks: %s\n", strings.Join(counts, ", "))
	if c := v.Last; c != nil {
		fmt.Fprintf(w, "last completed: TASK-%d %s (%s, %s, %s)\n", c.TaskID, text.Line(c.Title, 60),
			c.At.Local().Format("Jan 2 15:04"), text.Count(c.Commits, "commit"), text.Count(c.Learnings, "learning"))
	}
	if len(v.Outside) > 0 {
		fmt.Fprintln(w, "!", v.Strange)
	}
	for _, r := range v.Reverted {
		fmt.Fprintln(w, "!", text.VisibleLine(r.String()))
	}
}

// workspaces matches the folder of a session in a workspace, with the workspace's number.
var workspaces = regexp.MustCompile(`/workspaces/(\d+)/tree(?:/|$)`)

// workspace says in which workspace a session works, and with which port; "" for none.
func workspace(s ralph.Session, ports [2]int) string {
	m := workspaces.FindStringSubmatch(filepath.ToSlash(s.Dir))
	if m == nil {
		return ""
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || ports[1] == 0 {
		return ", in workspace " + m[1]
	}
	return fmt.Sprintf(", in workspace %d, port %d", n, ports[0]+(n-1)*ports[1])
}

// waiting counts the inbox items by kind, and names the questions and flags.
func waiting(w io.Writer, v StatusView) {
	var kinds []string
	for _, kind := range store.InboxKinds() {
		if n := v.Kinds[kind]; n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", n, kind))
		}
	}
	if kinds == nil {
		fmt.Fprintln(w, "nothing waits for you")
		return
	}
	fmt.Fprintf(w, "%d waiting for you (%s): `ralph inbox`\n", v.Waiting, strings.Join(kinds, ", "))
	named := 0
	for _, i := range v.Inbox {
		if i.Kind == "permission" { // the session that waits for it names it
			continue
		}
		if named++; named > namedInStatus {
			fmt.Fprintln(w, "  and more (`ralph inbox`)")
			return
		}
		fmt.Fprintf(w, "  %s: %s → %s\n", ralph.Named(i.Kind, i.TaskID), text.Line(inbox.Said(i), 120), i.Command)
	}
}

// namedInStatus is the number of questions and flags that `ralph status` names.
const namedInStatus = 10

// limits writes each limit with what is used of it.
func limits(w io.Writer, v StatusView) {
	l, now := v.Limits, v.Now
	var r ralph.Run
	elapsed := "0s"
	if v.Running {
		r, elapsed = *v.Run, max(0, now.Sub(v.Run.StartedAt.Time)).Round(time.Second).String()
		fmt.Fprintln(w, "limits of this run:")
	} else {
		fmt.Fprintln(w, "limits of the next run:")
	}
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "  %-20s %s\n", what, fmt.Sprintf(format, args...))
	}
	line("sessions", "%d of %d", r.Sessions, l.MaxSessions)
	line("tasks", "%d of %d", r.Tasks, l.MaxTasks)
	line("time", "%s of %s", elapsed, span(l.MaxSeconds))
	line("cost", "%s of %s", text.Cost(r.CostUSD, r.CostKnown, r.Tokens), text.Money(l.MaxCostUSD))
	line("cost today", "%s of %s", text.Money(v.Today), text.Money(l.MaxDayCostUSD))
	line("without a change", "%d sessions in a row", l.StagnantMaximum)
	for _, name := range slices.Sorted(maps.Keys(l.Usage)) {
		used := "unknown"
		for _, u := range v.Windows {
			if u.Title() == name && u.ResetsAt.After(now.Time) {
				used = fmt.Sprintf("%.0f%% (reset %s)", u.Utilization*100, u.ResetsAt.Local().Format("Jan 2 15:04"))
			}
		}
		line("usage "+name, "%s of %d%%", used, l.Usage[name])
	}
	line("attempts of a task", "%d", l.Attempts)
	line("time of a session", "%s, idle %s", span(l.SessionSeconds), span(l.IdleSeconds))
	line("turns of a session", "%d", l.SessionTurns)
	line("cost of a session", "%s", text.Money(l.SessionCostUSD))
}

// span formats a duration in seconds.
func span(seconds float64) string {
	return config.FormatDuration(time.Duration(seconds * float64(time.Second)))
}

// After names the tasks whose sessions a run that is stopping waits for (" after TASK-9"); "" if there are none.
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
