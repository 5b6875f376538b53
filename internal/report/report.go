// Package report reports the results of runs: for people as text and Markdown, for programs as JSON and JUnit XML, for
// GitHub Actions as annotations.
//
// A report is read at one moment of the database ([OfRun], [Since]). No text of an agent or a person can pass for the
// report's own: any text leaves the XML well-formed, a Markdown cell a cell and an annotation one.
package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/term"
	"ralph/internal/text"
	"ralph/store"
)

// A Report is the result of one or several runs.
type Report struct {
	Since      ralph.Time    `json:"since"`
	Until      ralph.Time    `json:"until"`
	RunID      int64         `json:"run_id"`      // 0 for all runs of the time
	ExitStatus *int          `json:"exit_status"` // null while it runs, and for several runs
	Reason     string        `json:"reason"`
	Sandbox    string        `json:"sandbox"` // the sandbox of the run's agents
	CostUSD    float64       `json:"cost_usd"`
	CostKnown  bool          `json:"cost_known"` // false: that of a session is an estimate, or unknown
	Changed    Changed       `json:"changed"`
	Figures    Figures       `json:"figures"`
	Tasks      []Receipt     `json:"tasks"`
	Waiting    []Waiting     `json:"waiting"`
	Merging    []string      `json:"merging"`         // messages about the merge queue
	Flaky      []ralph.Flaky `json:"flaky"`           // tests of the last 30 days
	Forge      string        `json:"forge,omitempty"` // its state in a line; "" for none
	// a later run that ended without a session and a merge, and why; "" if there is none, or it had nothing to do
	Later string `json:"later_run"`

	spending float64 // USD that sessions in progress have used so far, about
	runs     int     // in the time
	named    string  // the time, in words, if it is not that of one run
}

// A Receipt is the result of one task.
type Receipt struct {
	TaskID   int64        `json:"task_id"`
	Title    string       `json:"title"`
	Feature  string       `json:"feature"`
	Status   ralph.Status `json:"-"`
	State    string       `json:"status"` // see [ralph.Task.Key]
	Reason   string       `json:"status_reason"`
	Waits    ralph.Waits  `json:"waits"`
	Attempts int          `json:"attempts"` // over the task's whole life
	Sessions int          `json:"sessions"` // in the time of the report
	Seconds  float64      `json:"seconds"`
	CostUSD  float64      `json:"cost_usd"`
	// false: that of a session is an estimate, or 0 as the price of its tokens is unknown
	CostKnown bool          `json:"cost_known"`
	Agents    []ralph.By    `json:"agents"` // its workers, each once
	Tokens    ralph.Tokens  `json:"tokens"`
	Verify    []ralph.Check `json:"verify"` // checks of the last session
	// Unresolved warnings and blocking problems that its sessions reported.
	Flags []Flag   `json:"flags"`
	Notes []string `json:"notes"` // notes on its sessions for people
	// Strangers counts the refused attempts of other programs than its agents to use ralph's tools.
	Strangers int `json:"strangers,omitempty"`

	Numbers       []int   `json:"numbers"`         // numbers of its sessions, among the run's simultaneous ones
	MergeSeconds  float64 `json:"merge_seconds"`   // time that its done work waited to be merged
	TimesSentBack int     `json:"times_sent_back"` // number of times that its work could not be merged

	Changed Changed `json:"changed"`
}

// tokens returns the tokens of all tasks.
func (r Report) tokens() (sum int64) {
	for _, c := range r.Tasks {
		sum += c.Tokens.Sum()
	}
	return sum
}

// A Flag is a problem that an agent reported.
type Flag struct {
	Comment  int64  `json:"comment_id"`
	Severity string `json:"severity"` // warning or blocking
	Category string `json:"category"`
	What     string `json:"what"`
}

// Waiting is one thing that waits for a person.
type Waiting struct {
	Kind     string   `json:"kind"`
	TaskID   int64    `json:"task_id"`
	Item     string   `json:"item"`  // its name in the inbox
	Title    string   `json:"title"` // title of its task
	Asks     string   `json:"asks"`  // the decision, in a line
	Text     string   `json:"text"`
	Commands []string `json:"commands"` // each answers it in another way
}

// Command returns the commands in one line.
func (w Waiting) Command() string { return strings.Join(w.Commands, " · ") }

// nothing returns the change of a task without one.
func nothing() Changed { return Changed{Branches: []string{}, Commits: []string{}, Kept: []string{}} }

// receiptOf returns the receipt of a task without sessions.
func receiptOf(t ralph.Task) Receipt {
	return Receipt{
		TaskID: t.ID, Title: t.Title, Feature: t.Feature,
		Status: t.Status, State: t.Key(), Reason: t.StatusReason, Waits: t.Waits, Attempts: t.Attempts,
		Verify: []ralph.Check{}, Flags: []Flag{}, Notes: []string{}, Numbers: []int{}, Changed: nothing(),
		CostKnown: true, Agents: []ralph.By{},
	}
}

// New sums up sessions, oldest first, by task, with the flags of each session. If worked is false for a session, only
// its task counts: it worked earlier, and its change was merged in the time of the report.
func New(
	sessions []ralph.Session, tasks map[int64]ralph.Task, flags map[string][]Flag, worked func(ralph.Session) bool,
) Report {
	r := Report{
		CostKnown: true, Tasks: []Receipt{}, Waiting: []Waiting{}, Changed: nothing(), Merging: []string{},
		Flaky: []ralph.Flaky{},
	}
	at, of := map[int64]int{}, map[int64][]ralph.Session{}
	for _, s := range sessions {
		i, ok := at[s.TaskID]
		if !ok {
			i = len(r.Tasks)
			at[s.TaskID] = i
			r.Tasks = append(r.Tasks, receiptOf(tasks[s.TaskID]))
		}
		c := &r.Tasks[i]
		if !worked(s) {
			continue
		}
		if s.Role.Works() {
			c.Sessions++
		}
		c.CostUSD += s.CostUSD
		c.CostKnown = c.CostKnown && (s.CostKnown || s.CompletedAt.IsZero())
		of[s.TaskID] = append(of[s.TaskID], s)
		c.Agents = ralph.Workers(of[s.TaskID]...)
		if s.Number > 0 && !slices.Contains(c.Numbers, s.Number) {
			c.Numbers = append(c.Numbers, s.Number)
		}
		c.Flags = append(c.Flags, flags[s.ID]...)
		c.Notes = append(c.Notes, s.Notes...)
		c.Strangers += s.Strangers
		c.Tokens = c.Tokens.Add(s.Tokens)
		c.Tokens.ContextWindow = max(c.Tokens.ContextWindow, s.Tokens.ContextWindow)
		if !s.CompletedAt.IsZero() {
			c.Seconds += max(0, s.CompletedAt.Sub(s.StartedAt.Time).Seconds())
		}
		if len(s.Verify) > 0 {
			c.Verify = s.Verify
		}
		r.CostUSD += s.CostUSD
		r.CostKnown = r.CostKnown && c.CostKnown
	}
	r.Figures = figuresOf(r.Tasks)
	return r
}

// Formats lists the formats of [Report.Write].
var Formats = []string{"text", "md", "json", "junit"}

// FormatOf returns the format of a file by its extension; "" if it is unknown.
func FormatOf(file string) string {
	return map[string]string{".md": "md", ".json": "json", ".xml": "junit"}[strings.ToLower(filepath.Ext(file))]
}

// Write writes the report in one of the formats.
func (r Report) Write(w io.Writer, format string) error {
	var b bytes.Buffer
	if err := r.render(&b, format); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (r Report) render(w *bytes.Buffer, format string) error {
	switch format {
	case "text":
		return r.WriteText(w, term.Screen{}, false)
	case "md":
		r.markdown(w)
		return nil
	case "json":
		e := json.NewEncoder(text.Escaping(w))
		e.SetIndent("", "  ")
		return e.Encode(r)
	case "junit":
		return r.junit(w)
	}
	return &ralph.FieldError{
		Field:    fmt.Sprintf("format %q", format),
		Problem:  "is not one of the accepted values",
		Accepted: Formats,
	}
}

// parallel reports whether sessions worked at once.
func (r Report) parallel() bool {
	return slices.ContainsFunc(r.Tasks, func(c Receipt) bool { return len(c.Numbers) > 0 && slices.Max(c.Numbers) > 1 })
}

// took describes the task's attempts, cost and time; parallel adds the numbers of its sessions.
func (c Receipt) took(parallel bool) string {
	spent := text.Span(c.Seconds)
	cost := text.Cost(c.CostUSD, c.CostKnown, c.Tokens.Sum())
	if !strings.Contains(cost, "tokens") {
		cost += fmt.Sprintf(", %d tokens", c.Tokens.Sum())
	}
	took := fmt.Sprintf("%s, %s, %s", text.Count(c.Sessions, "session"), spent, cost)
	if len(c.Agents) > 0 {
		took += ", " + text.Line(ralph.NamesOf(c.Agents), 200)
	}
	if parallel && len(c.Numbers) > 0 {
		numbers := make([]string, len(c.Numbers))
		for i, number := range c.Numbers {
			numbers[i] = strconv.Itoa(number)
		}
		took += ", number " + strings.Join(numbers, ", then ")
	}
	if waited := time.Duration(c.MergeSeconds) * time.Second; waited > 0 {
		took += fmt.Sprintf(", %s until it was merged", text.Span(waited.Seconds()))
	}
	if c.TimesSentBack > 0 {
		took += ", sent back " + text.Count(c.TimesSentBack, "time")
	}
	return took
}

// WriteText writes the report for people: the result of each task, the open decisions, and the figures last, next to
// the terminal's prompt. With details it adds agents and tokens.
func (r Report) WriteText(w io.Writer, s term.Screen, details bool) error {
	var b bytes.Buffer
	r.tasks(&b, s, details)
	for _, f := range r.Flaky {
		fmt.Fprintln(&b, s.Hang("flaky: ", line(f.String())))
	}
	if r.Forge != "" {
		fmt.Fprintln(&b, s.Hang("forge: ", line(r.Forge)))
	}
	r.waiting(&b, s)
	if b.Len() > 0 {
		fmt.Fprintln(&b)
	}
	for i, l := range r.Morning() {
		if i == 0 && len(r.Waiting) > 0 {
			l += " → ralph inbox"
		}
		fmt.Fprintln(&b, s.Hang("", l))
	}
	if details && r.Sandbox != "" {
		fmt.Fprintln(&b, s.Hang("sandbox: ", line(r.Sandbox)))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// listed returns the tasks except cancelled and undone ones, which a report only counts.
func (r Report) listed() []Receipt {
	return slices.DeleteFunc(slices.Clone(r.Tasks), func(t Receipt) bool {
		return GroupOf(ralph.Task{Status: t.Status}) == Undone
	})
}

// marks begin the rows of tasks, by group.
var marks = map[Group]struct {
	sign  string
	style term.Style
}{
	Merged: {"✔", term.Green}, Failed: {"✘", term.Red}, NeedsYou: {"?", term.Yellow}, Unfinished: {"○", term.Dim},
}

// figures returns the last columns of a task's row.
func (c Receipt) figures() string {
	parts := []string{text.Span(c.Seconds), text.Cost(c.CostUSD, c.CostKnown, c.Tokens.Sum())}
	if c.Changed.Files > 0 {
		parts = append([]string{fmt.Sprintf("+%d −%d", c.Changed.Added, c.Changed.Removed)}, parts...)
	}
	if n := len(c.Changed.Commits); n > 0 {
		parts = append([]string{ralph.ShortID(c.Changed.Commits[n-1])}, parts...)
	} else if c.Sessions > 1 {
		parts = append([]string{text.Count(c.Sessions, "session")}, parts...)
	}
	if p := c.Changed.Proof; p != nil && len(p.Proved) > 0 {
		parts = append(parts, "proved")
	}
	return strings.Join(parts, "  ")
}

// tasks writes a row for each task, with its reason, notes and decisions below.
func (r Report) tasks(w *bytes.Buffer, s term.Screen, details bool) {
	list := r.listed()
	names, titles := 0, 0
	for _, t := range list {
		names = max(names, len(fmt.Sprintf("TASK-%d", t.TaskID)))
		titles = max(titles, term.Width(line(t.Title)))
	}
	for _, t := range list {
		if s.Columns > 0 {
			titles = min(titles, max(20, s.Columns-names-6-term.Width(t.figures())))
		}
	}
	indent := strings.Repeat(" ", names+4)
	for _, t := range list {
		group := GroupOf(ralph.Task{Status: t.Status, Waits: t.Waits})
		mark := marks[group]
		title := term.Pad(s.Clip(line(t.Title), titles), titles)
		fmt.Fprintf(w, "%s %s  %s  %s\n", s.Paint(mark.style, mark.sign),
			term.Pad(fmt.Sprintf("TASK-%d", t.TaskID), names), title, s.Paint(term.Dim, t.figures()))
		say := func(style term.Style, text string) {
			for i, l := range s.Wrap(text, len(indent)) {
				if i > 0 {
					l = strings.TrimLeft(l, " ")
				}
				fmt.Fprintln(w, strings.TrimRight(indent+s.Paint(style, l), " "))
			}
		}
		asked := r.asked(t)
		if group != Merged && len(asked) == 0 || details {
			say("", line(t.Reason))
		}
		for _, p := range asked {
			for l := range strings.Lines(whole(p.Asks, "")) {
				say("", strings.TrimRight(l, "\n"))
			}
			say(term.Dim, p.Command())
		}
		if details {
			r.details(say, t)
		}
		for _, c := range t.Verify {
			if !c.Passed && (group != Merged && group != Failed || details) {
				say("", fmt.Sprintf("failed: %s (exit %d)", line(c.Command), c.Exit))
			}
		}
		for _, n := range t.Notes {
			say(term.Yellow, "! "+line(n))
		}
		for _, f := range t.Flags {
			for l := range strings.Lines(whole(f.Flagged(), "  ")) {
				say(term.Yellow, strings.TrimRight(l, "\n"))
			}
			say(term.Dim, f.Command())
		}
		if group == Failed {
			say(term.Dim, fmt.Sprintf(`ralph diff %d · ralph retry %d "HOW"`, t.TaskID, t.TaskID))
		}
	}
	for _, l := range r.Merging {
		fmt.Fprintln(w, s.Hang("", line(l)))
	}
}

// asked returns the open decisions on a task, without its flags and its failure: tasks writes these on separate
// lines.
func (r Report) asked(t Receipt) (list []Waiting) {
	for _, p := range r.Waiting {
		flagged := slices.ContainsFunc(t.Flags, func(f Flag) bool { return p.Item == fmt.Sprintf("C%d", f.Comment) })
		if p.TaskID == t.TaskID && p.Kind != "failed" && p.Kind != "flag" && !flagged {
			list = append(list, p)
		}
	}
	return list
}

// details writes the agents, the change and the proof of a task.
func (r Report) details(say func(style term.Style, text string), t Receipt) {
	say("", t.took(r.parallel()))
	if changed := t.Changed.String(); changed != "" {
		say("", "changed: "+changed)
	}
	if p := t.Changed.Proof; p != nil && len(p.Proved)+p.Idle > 0 {
		say("", line(p.String()))
	}
}

// fewWaiting is the maximum number of listed waiting items; `ralph inbox` has all.
const fewWaiting = 10

// waiting writes the open decisions beside the tasks of the report, in the inbox's order.
func (r Report) waiting(w *bytes.Buffer, s term.Screen) {
	rows := map[int64]bool{}
	for _, t := range r.listed() {
		rows[t.TaskID] = true
	}
	list := slices.DeleteFunc(slices.Clone(r.Waiting), func(p Waiting) bool {
		return rows[p.TaskID] || p.Item == store.TroubleRun && r.ExitStatus != nil && !r.explained() // said below
	})
	if len(list) == 0 {
		return
	}
	if len(rows) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, s.Paint(term.Bold, "Also needs you"))
	for _, p := range list[:min(fewWaiting, len(list))] {
		name := ""
		if p.TaskID != 0 && p.Item != fmt.Sprintf("TASK-%d", p.TaskID) {
			name = fmt.Sprintf("TASK-%d  ", p.TaskID)
		}
		first := fmt.Sprintf("%s  %s", s.Paint(term.Yellow, term.Pad(p.Item, 6)), name)
		fmt.Fprintln(w, s.Hang(first, whole(p.Asks, "        ")))
		fmt.Fprintf(w, "        %s\n", s.Paint(term.Dim, p.Command()))
	}
	if more := len(list) - fewWaiting; more > 0 {
		fmt.Fprintf(w, "and %d more: ralph inbox\n", more)
	}
}

// Flagged returns the flag in its agent's words.
func (f Flag) Flagged() string {
	return fmt.Sprintf("flagged (%s, %s): %s", f.Severity, f.Category, strings.TrimSpace(f.What))
}

// Command resolves the flag.
func (f Flag) Command() string { return fmt.Sprintf(`ralph resolve C%d "DECISION"`, f.Comment) }

// String returns the flag with the command that resolves it.
func (f Flag) String() string { return f.Flagged() + " → " + f.Command() }

// whole returns the full text of something that people decide on; its further lines are indented by blanks.
func whole(s, blanks string) string {
	return strings.ReplaceAll(strings.TrimSpace(text.Visible(s)), "\n", "\n"+blanks)
}

// line returns a text on one line of bounded length.
func line(s string) string { return text.Line(s, 500) }

// cells returns the full text of something that people decide on, as Markdown.
func cells(s string) string {
	return strings.ReplaceAll(escaped(whole(s, "")), "\n", "<br>")
}

// cell returns a text on one line, escaped for Markdown.
func cell(s string) string { return escaped(line(s)) }

func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@':
			b.WriteString("&#64;") // prevents mentions
		case strings.ContainsRune("\\`*_{}[]()#+!|~$", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// short returns the figures in a few words: "20 merged · 15 failed · 7 need you · $88.96".
func (r Report) short() string {
	f := r.Figures
	parts := []string{fmt.Sprint(f.Merged, " merged")}
	if f.Failed > 0 {
		parts = append(parts, fmt.Sprint(f.Failed, " failed"))
	}
	if n := len(r.Waiting); n > 0 {
		parts = append(parts, fmt.Sprint(n, " ", needs(n)))
	}
	return strings.Join(append(parts, text.Cost(r.CostUSD, r.CostKnown, r.tokens())), " · ")
}

// code returns a command as Markdown.
func code(s string) string {
	if s = line(s); s == "" || strings.Contains(s, "`") {
		return cell(s)
	}
	return "`" + s + "`"
}

// markdown begins with the figures and the items that need a person, and folds the merged tasks.
func (r Report) markdown(w *bytes.Buffer) {
	fmt.Fprintf(w, "## %s\n", cell(r.short()))
	for i, p := range r.Waiting {
		if i == 0 {
			fmt.Fprint(w, "\n### Needs you\n\n")
		}
		fmt.Fprintf(w, "- %s: %s — %s\n", ralph.Named(p.Kind, p.TaskID), cells(p.Text), code(p.Command()))
	}
	var merged, others []Receipt
	for _, t := range r.listed() {
		if t.Status == ralph.Completed {
			merged = append(merged, t)
		} else {
			others = append(others, t)
		}
	}
	if len(others) > 0 {
		fmt.Fprint(w, "\n### Not merged\n")
		r.table(w, others)
	}
	if len(merged) > 0 {
		fmt.Fprintf(w, "\n<details><summary>%d merged, +%d −%d</summary>\n", len(merged), r.Changed.Added, r.Changed.Removed)
		r.table(w, merged)
		fmt.Fprint(w, "\n</details>\n")
	}
	for _, l := range r.Morning() {
		fmt.Fprintf(w, "\n%s\n", cell(l))
	}
	if r.Sandbox != "" {
		fmt.Fprintf(w, "\nsandbox: %s\n", cell(r.Sandbox))
	}
	for i, l := range r.Merging {
		if i == 0 {
			fmt.Fprint(w, "\n### Merging\n\n")
		}
		fmt.Fprintf(w, "- %s\n", cell(l))
	}
	for i, f := range r.Flaky {
		if i == 0 {
			fmt.Fprint(w, "\n### Flaky tests\n\n")
		}
		fmt.Fprintf(w, "- %s\n", cell(f.String()))
	}
	noted := false
	for _, t := range r.Tasks {
		for _, n := range t.Notes {
			if !noted {
				fmt.Fprint(w, "\n### To know\n\n")
				noted = true
			}
			fmt.Fprintf(w, "- TASK-%d: %s\n", t.TaskID, cell(n))
		}
	}
	begun := false
	for _, t := range r.Tasks {
		for _, f := range t.Flags {
			if !begun {
				fmt.Fprint(w, "\n### Flagged\n\n")
				begun = true
			}
			fmt.Fprintf(w, "- TASK-%d: %s\n", t.TaskID, cells(f.String()))
		}
	}
	for _, t := range r.Tasks {
		for _, c := range t.Verify {
			if c.Passed {
				continue
			}
			fmt.Fprintf(w, "\n### Task %d: %s\n\nexit %d %s\n\n%s\n",
				t.TaskID, cell(c.Command), c.Exit, cell(c.Error), quote(c.Tail))
		}
	}
}

// table lists tasks.
func (r Report) table(w *bytes.Buffer, tasks []Receipt) {
	fmt.Fprint(w, "\n| task | | status | why | took |\n|---|---|---|---|---|\n")
	for _, t := range tasks {
		fmt.Fprintf(w, "| %d | %s | %s | %s | %s |\n", t.TaskID, cell(t.Title), strings.ReplaceAll(t.State, "_", " "),
			cell(t.Reason), cell(t.took(r.parallel())))
	}
}

// quote formats a text as an indented block of code, which no fence can end.
func quote(s string) string {
	var b strings.Builder
	for l := range strings.Lines(s) {
		b.WriteString("    " + line(l) + "\n")
	}
	return b.String()
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Time    string     `xml:"time,attr"`
	Failure *junitText `xml:"failure,omitempty"`
	Error   *junitText `xml:"error,omitempty"`
	Skipped *junitText `xml:"skipped,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junit writes a test case for each task: a completed one passed, a failed one failed, any other is skipped with its
// reason to wait. If ralph or the agent failed, a case with an error is added: a suite without cases would count as a
// success.
func (r Report) junit(w *bytes.Buffer) error {
	suite := junitSuite{Name: "ralph", Cases: []junitCase{}}
	var total float64
	for _, t := range r.Tasks {
		class := "ralph"
		if t.Feature != "" {
			class += "." + line(t.Feature)
		}
		c := junitCase{
			Class: class,
			Name:  fmt.Sprintf("TASK-%d %s", t.TaskID, line(t.Title)),
			Time:  fmt.Sprintf("%.3f", t.Seconds),
		}
		switch t.Status {
		case ralph.Completed:
		case ralph.Failed:
			suite.Failures++
			c.Failure = &junitText{Message: line(t.Reason), Text: t.failures()}
		default:
			suite.Skipped++
			c.Skipped = &junitText{Message: line(t.State + ": " + t.Reason)}
		}
		total += t.Seconds
		suite.Cases = append(suite.Cases, c)
	}
	if r.ExitStatus != nil && slices.Contains([]int{ralph.ExitFailure, ralph.ExitUsage, ralph.ExitAgent}, *r.ExitStatus) {
		suite.Errors++
		broken := &junitText{Message: line(r.ending())}
		suite.Cases = append(suite.Cases, junitCase{Class: "ralph", Name: "run", Time: "0.000", Error: broken})
	}
	suite.Tests, suite.Time = len(suite.Cases), fmt.Sprintf("%.3f", total)
	w.WriteString(xml.Header)
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suites: []junitSuite{suite}}); err != nil {
		return err
	}
	w.WriteByte('\n')
	return nil
}

// failures quotes the failed checks of the last verification.
func (c Receipt) failures() string {
	var b strings.Builder
	for _, check := range c.Verify {
		if !check.Passed {
			fmt.Fprintf(&b, "$ %s\nexit %d %s\n%s\n", check.Command, check.Exit, check.Error, check.Tail)
		}
	}
	return strings.ToValidUTF8(b.String(), "�")
}

// Annotate writes workflow commands of GitHub Actions: an error for each failed task, a warning for
// each waiting item, a notice for the end.
func (r Report) Annotate(w io.Writer) error {
	var b bytes.Buffer
	for _, t := range r.Tasks {
		if t.Status == ralph.Failed {
			annotation(&b, "error", fmt.Sprintf("TASK-%d %s", t.TaskID, t.Title), t.Reason)
		}
	}
	for _, p := range r.Waiting {
		if p.Kind != "failed" {
			annotation(&b, "warning", ralph.Named(p.Kind, p.TaskID), p.Text+"\n"+p.Command())
		}
	}
	for _, t := range r.Tasks {
		for _, n := range t.Notes {
			annotation(&b, "warning", fmt.Sprintf("TASK-%d", t.TaskID), n)
		}
		for _, f := range t.Flags {
			annotation(&b, "warning", ralph.Named("flag", t.TaskID), f.String())
		}
	}
	said := r.Morning()
	annotation(&b, "notice", "ralph", strings.Join(said, "\n"))
	_, err := w.Write(b.Bytes())
	return err
}

// Mute stops GitHub Actions from interpreting lines as commands until [Unmute] is written with the
// same token, which must not be guessable: GitHub also accepts indented commands, and the older
// form ##[name] anywhere in a line.
func Mute(w io.Writer, token string) error {
	_, err := fmt.Fprintf(w, "::stop-commands::%s\n", token)
	return err
}

// Unmute ends the effect of [Mute].
func Unmute(w io.Writer, token string) error {
	_, err := fmt.Fprintf(w, "::%s::\n", token)
	return err
}

var (
	data     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func annotation(w *bytes.Buffer, level, title, what string) {
	fmt.Fprintf(w, "::%s title=%s::%s\n", level, property.Replace(line(title)), data.Replace(what))
}
