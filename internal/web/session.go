package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/internal/transcript"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// streamEntries is the number of transcript entries on a page.
const streamEntries = 200

// A sessionView is a session's page.
type sessionView struct {
	Session  ralph.Session
	Task     ralph.Task
	Running  bool
	Seconds  float64
	Verifies string // the check of its done in progress
	Phases   []step
	Shares   []segment // the time in each phase
	Quiet    float64   // seconds since its agent last did something; 0 if that is short
	Edited   []changed // by the agent's tools so far
	Stays    []ralph.Stay
	Times    timeline // their times
	Stood    ralph.Phase
	Why      []signals.Step
	Decision string // formatted JSON
	Files    []changed
	Unread   string  // why its changes cannot be read
	Commits  []field // by id, with known subjects
	Asked    []ralph.Permission
	Signals  []card
	Entries  []shownEntry
	First    int // number of the first entry shown, from 1
	Last     int
	All      int
	Older    string // link to earlier entries
	Newer    string
	Missing  string // why there is no transcript
	Kinds    []ralph.CommentKind
	Used     agent.Event // its use so far, if its agent has reported it
	Window   int64       // the model's context size; 0 if unknown
	Prompt   bool        // a prompt is stored
	Claimed  string      // the agent's last words on its work
	Claims   int         // number of its claims about the command
	Verdict  look        // ralph's decision; zero while it runs
	Machine  string      // its machine; "" if there is only one
	RetryUSD float64     // likely cost of one more session of the task
}

// Settled returns the decided permissions. Undecided ones of a session in progress are listed elsewhere.
func (v sessionView) Settled() []ralph.Permission {
	open := func(p ralph.Permission) bool { return v.Running && p.Decision == "ask" }
	return slices.DeleteFunc(slices.Clone(v.Asked), open)
}

// A step is a phase of a session.
type step struct {
	Phase        ralph.Phase
	Seen, Active bool
	Times        int     // number of times that it was in the phase
	Seconds      float64 // in total
}

// A changed is a changed file with its lines, or else the edits by the agent's tools.
type changed struct {
	ralph.FileChange
	Lines   []diffLine
	Left    string   // why its lines were not kept
	Guarded bool     // a person decides on it
	Notes   []string // the notes beside its lines
	Edits   []transcript.Entry
}

// A shownEntry is an entry of a transcript as shown.
type shownEntry struct {
	transcript.Entry
	Verb look // verb of a signal
	Name string
}

// readFirst reads a session's transcript, which may be long, before the page starts its database
// transaction.
func (a *app) readFirst(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, err := store.Read(r.Context(), a.Store, func(tx *store.Tx) (ralph.Session, error) {
			return tx.Session(r.PathValue("id"))
		})
		if err == nil {
			_, err = a.transcripts.journal(s.ID).catchUp(!s.CompletedAt.IsZero())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			a.fail(w, r, err)
			return
		}
		next(w, r)
	}
}

func (a *app) session(tx *store.Tx, r *http.Request) (view, error) {
	s, err := tx.Session(r.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	now := tx.Now()
	v := sessionView{
		Session: s,
		Running: s.CompletedAt.IsZero(),
		Stays:   s.Stays(now),
		Stood:   s.Stood(),
		Kinds:   ralph.CommentKinds,
	}
	v.Times = newTimeline(v.Stays)
	v.Verifies = s.Verifies(now)
	if a.Store.Shared() {
		v.Machine = s.Machine
	}
	v.Seconds = now.Sub(s.StartedAt.Time).Seconds()
	if !v.Running {
		v.Seconds = s.CompletedAt.Sub(s.StartedAt.Time).Seconds()
	}
	if v.Task, err = tx.Task(s.TaskID); err != nil {
		return view{}, err
	}
	v.Phases = way(s, v.Stays)
	v.Shares = sharesOf(v.Phases)
	if v.Running {
		h, err := a.transcripts.heard(s.ID)
		if err != nil {
			return view{}, err
		}
		if silent := now.Sub(h.at); !h.at.IsZero() && silent >= quiet && s.Checking == "" {
			v.Quiet = silent.Seconds()
		}
	}
	asked, err := tx.Permissions(s.ID)
	if err != nil {
		return view{}, err
	}
	for _, p := range asked { // allowed uses are not listed
		if p.Decision != "allow" || p.DecidedBy != "" {
			v.Asked = append(v.Asked, p)
		}
	}
	said, err := tx.Timeline(s.TaskID, store.CommentFilter{Session: s.ID, Limit: timelineCards})
	if err != nil {
		return view{}, err
	}
	if v.Signals, err = cards(tx, v.Task, said); err != nil {
		return view{}, err
	}
	for _, k := range v.Signals {
		if k.Claim && len(k.Fields) > 0 {
			v.Claims, v.Claimed = v.Claims+1, k.Fields[0].Text
		}
	}
	if err := v.explain(tx); err != nil {
		return view{}, err
	}
	if err := v.judge(tx); err != nil {
		return view{}, err
	}
	if err := a.addTranscript(&v, r); err != nil {
		return view{}, err
	}
	if file, err := a.Open(s.ID, Prompt); err == nil {
		v.Prompt = true
		file.Close()
	}
	w := view{
		title: "Session " + text.Head(s.ID, 8), name: "session", nav: "/sessions",
		task: s.TaskID, live: true, body: v,
	}
	// Earlier parts of a transcript do not change.
	if v.Running && v.Newer == "" {
		w.stream, w.entry = s.ID, v.Last
	}
	return w, nil
}

// judge adds the verdict on an ended session.
func (v *sessionView) judge(tx *store.Tx) (err error) {
	if v.Running {
		return nil
	}
	if v.RetryUSD, err = tx.LikelyCost(v.Task.ID); err != nil {
		return err
	}
	c, changed, err := tx.ChangeOf(v.Task.ID)
	if err != nil {
		return err
	}
	merged := v.Task.Status == ralph.Completed && (!changed || c.State == ralph.Merged && c.SessionID == v.Session.ID)
	done := v.Session.ClosingVerb == ralph.VerbDone
	switch {
	case v.Session.Role != ralph.RoleWork || v.Session.Outcome == ralph.OutcomeSuccess && !done:
		v.Verdict = phases[v.Session.State]
	case v.Session.Outcome != ralph.OutcomeSuccess:
		v.Verdict = look{"✕", "Not merged", "red"}
	case merged:
		v.Verdict = look{"✓", "Merged", "green"}
	default:
		v.Verdict = look{"✓", "Accepted", "green"}
	}
	return nil
}

// way returns the usual phases of a session, with this session's phases marked and summed up.
func way(s ralph.Session, stays []ralph.Stay) (list []step) {
	last := ralph.PhaseDone
	if s.State == ralph.PhaseFailed {
		last = ralph.PhaseFailed
	}
	for _, p := range append(slices.Clone(ralph.ReportedPhases), last) {
		one := step{Phase: p, Seen: s.State == p, Active: s.State == p}
		for _, h := range s.History {
			one.Seen = one.Seen || h.State == p
		}
		for _, stay := range stays {
			if stay.Phase == p {
				one.Times, one.Seconds = one.Times+1, one.Seconds+stay.Seconds
			}
		}
		list = append(list, one)
	}
	return list
}

// sharesOf draws the time in each phase as parts of a bar; nil without any time.
func sharesOf(phased []step) (bar []segment) {
	all, at := 0.0, 0.0
	for _, p := range phased {
		all += p.Seconds
	}
	for _, p := range phased {
		if p.Seconds > 0 {
			look, width := phases[p.Phase], p.Seconds/all*barWidth
			bar = append(bar, segment{round(at), round(width), look.Class, look.Label + " " + span(p.Seconds)})
			at += width
		}
	}
	return bar
}

// explain adds the steps from the rules to the decision.
func (v *sessionView) explain(tx *store.Tx) error {
	if v.Session.Decision == "" {
		return nil
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(v.Session.Decision), "", "  ") == nil {
		v.Decision = b.String()
	}
	f, d, err := tx.DecidedFrom(v.Session)
	if errors.Is(err, ralph.ErrNotFound) {
		return nil
	}
	if err == nil {
		v.Why = signals.Explain(f, d)
	}
	return err
}

// addTranscript adds the requested part of the transcript: the end, or the part before an entry.
func (a *app) addTranscript(v *sessionView, r *http.Request) error {
	j := a.transcripts.journal(v.Session.ID)
	all, err := j.catchUp(!v.Running)
	if errors.Is(err, fs.ErrNotExist) {
		v.Missing = "The transcript is not there: the session ended before the agent was started, " +
			"or it is older than retention in ralph.yaml keeps."
		switch {
		case v.Session.Origin == ralph.FromHuman:
			v.Missing = "A person works on it with a chat of their own: there is no transcript here."
		case v.Session.Worker != "":
			v.Missing = "An agent works on it by itself: there is no transcript here."
		case a.Store.OtherMachine(v.Session):
			v.Missing = "The transcript is on " + v.Machine + ": look at it there, by `ralph session log` or its dashboard."
		case v.Running:
			v.Missing = "The agent has not said anything yet."
		}
	} else if err != nil {
		return err
	}
	v.All, v.Last = all, all
	if before, err := strconv.Atoi(r.URL.Query().Get("before")); err == nil && before > 0 && before <= all {
		v.Last = before - 1
	}
	from := max(0, v.Last-streamEntries)
	if r.Header.Get("X-Refresh") == "" || !v.Running { // an open page gets it from its stream
		list, err := j.part(from, v.Last-from)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range list {
			v.Entries = append(v.Entries, newEntry(e))
		}
	}
	v.First = from + 1
	path := "/sessions/" + v.Session.ID
	if from > 0 {
		v.Older = fmt.Sprintf("%s?before=%d#doing", path, from+1)
	}
	if v.Last < all {
		v.Newer = fmt.Sprintf("%s?before=%d#doing", path, min(all+1, v.Last+streamEntries+1))
		if v.Last+streamEntries >= all {
			v.Newer = path + "#doing"
		}
	}
	edits := j.editsOf()
	v.Edited = editedBy(edits)
	differ, err := a.differences(v.Session.ID)
	if err != nil {
		v.Unread = err.Error()
	}
	diffs, subjects := map[string]ralph.FileDiff{}, map[string]string{}
	for _, d := range differ.Files {
		diffs[d.Path] = d
	}
	for _, c := range differ.Commits {
		subjects[c.ID] = c.Subject
	}
	for _, f := range v.Session.Files {
		v.Files = append(v.Files, changed{
			FileChange: f, Lines: numbered(diffs[f.Path].Diff), Left: diffs[f.Path].Left, Edits: edits[f.Path],
		})
	}
	for _, id := range v.Session.Commits {
		v.Commits = append(v.Commits, field{id, subjects[id]})
	}
	j.mu.Lock()
	v.Used = j.reader.Used()
	j.mu.Unlock()
	v.Window = v.Session.Tokens.ContextWindow // 0 until a report has it
	return nil
}

// editedBy counts the lines of the edits by the agent's tools, by file.
func editedBy(edits map[string][]transcript.Entry) (files []changed) {
	for _, path := range slices.Sorted(maps.Keys(edits)) {
		one := changed{FileChange: ralph.FileChange{Path: path}}
		for _, e := range edits[path] {
			for _, line := range e.Diff {
				one.count(line)
			}
		}
		files = append(files, one)
	}
	return files
}

// newEntry converts an entry.
func newEntry(e transcript.Entry) shownEntry {
	s := shownEntry{Entry: e, Name: e.Tool}
	if verb, ok := signalOf(e); ok {
		s.Verb, s.Name = verbLook(verb), string(verb)
		s.Verb.Class = "" // colours are for states only
	}
	return s
}

// signalOf returns the verb of a call to one of ralph's own tools.
func signalOf(e transcript.Entry) (ralph.Verb, bool) {
	for _, v := range ralph.Verbs {
		if e.Kind == transcript.Tool && e.Tool == "signal_"+string(v) {
			return v, true
		}
	}
	return "", false
}

// A promptView is a session's prompt as it was sent.
type promptView struct {
	Session ralph.Session
	Text    string
}

// maxPrompt is the maximum number of shown bytes of a prompt; prompts usually have some hundred thousand.
const maxPrompt = 2 << 20

func (a *app) prompt(tx *store.Tx, r *http.Request) (view, error) {
	s, err := tx.Session(r.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	file, err := a.Open(s.ID, Prompt)
	if err != nil {
		return view{}, fmt.Errorf("the prompt of session %.8s: %w", s.ID, err)
	}
	defer file.Close()
	all, err := io.ReadAll(io.LimitReader(file, maxPrompt))
	return view{
		title: "Prompt of session " + text.Head(s.ID, 8), name: "prompt", nav: "/sessions",
		body: promptView{s, string(all)},
	}, err
}

// sessionsListed is the number of sessions on a page of the list.
const sessionsListed = 50

// A sessionsView is a page of the list of sessions.
type sessionsView struct {
	Sessions []running
	Query    url.Values // without the page
	Narrowed []narrowed
	Ended    []string
	N        int     // number of selected sessions
	CostUSD  float64 // cost of the ended ones
	Pager    pager
}

// A narrowed is a condition of the list, with the address of the list without it.
type narrowed struct{ Name, Value, Without string }

// conditions are the parameters that narrow the list of sessions, in the order in which they are shown.
var conditions = []string{"ended", "task", "model", "agent", "feature", "run", "from", "to", "active", "work"}

// narrowedBy returns the conditions among names that the address of a list sets.
func narrowedBy(at string, q url.Values, names ...string) (list []narrowed) {
	for _, name := range names {
		if !q.Has(name) {
			continue
		}
		without := maps.Clone(q)
		without.Del(name)
		without.Del("page")
		n := narrowed{name, cmp.Or(q.Get(name), "none"), at}
		if len(without) > 0 {
			n.Without += "?" + without.Encode()
		}
		switch name {
		case "active":
			if t, err := ralph.ParseTime(q.Get(name)); err == nil {
				n.Name, n.Value = "since", t.Local().Format("Jan 2 15:04")
			}
		case "status":
			n.Value = strings.ReplaceAll(strings.Join(q[name], " or "), "_", " ")
		case "work":
			n.Name, n.Value = "without", "reviews"
		}
		list = append(list, n)
	}
	return list
}

// activeOf reads the time of the parameter "active"; zero for any.
func activeOf(q url.Values) (ralph.Time, error) {
	t, err := ralph.ParseTime(q.Get("active"))
	if err != nil {
		wrong := fmt.Sprintf("is not a time such as 2026-11-26T22:00:00Z: %q", q.Get("active"))
		err = &ralph.FieldError{Field: "active", Problem: wrong}
	}
	return t, err
}

// sessionFilter reads the conditions of a list of sessions.
func sessionFilter(q url.Values) (f store.SessionFilter, err error) {
	text := func(name string) *string {
		if !q.Has(name) {
			return nil
		}
		return new(q.Get(name))
	}
	id := func(name string) (n int64) {
		if v := q.Get(name); v != "" && err == nil {
			if n, err = ralph.ParseTaskID(v); err != nil {
				err = &ralph.FieldError{Field: name, Problem: fmt.Sprintf("is not a number: %q", v)}
			}
		}
		return n
	}
	day := func(name string, further int) (t ralph.Time) {
		if v := q.Get(name); v != "" && err == nil {
			at, wrong := time.ParseInLocation(time.DateOnly, v, time.Local)
			if wrong != nil {
				err = &ralph.FieldError{Field: name, Problem: fmt.Sprintf("is not a day such as 2026-11-26: %q", v)}
				return t
			}
			t = ralph.At(at.AddDate(0, 0, further))
		}
		return t
	}
	f = store.SessionFilter{
		Task: id("task"), Run: id("run"), Ended: q.Get("ended"), Agent: text("agent"), Model: text("model"),
		Feature: text("feature"), From: day("from", 0), To: day("to", 1), ByCost: q.Get("sort") == "cost",
		Work: q.Has("work"),
	}
	if err == nil {
		f.Active, err = activeOf(q)
	}
	return f, err
}

func (a *app) sessions(tx *store.Tx, r *http.Request) (view, error) {
	v := sessionsView{
		Query: r.URL.Query(),
		Ended: ralph.Ended,
	}
	v.Query.Del("page")
	f, err := sessionFilter(v.Query)
	if err != nil {
		return view{}, err
	}
	if v.N, v.CostUSD, err = tx.CountSessions(f); err != nil {
		return view{}, err
	}
	if f.Ended == "" {
		v.Query.Del("ended")
	}
	v.Narrowed = narrowedBy("/sessions", v.Query, conditions...)
	f.Limit, f.Skip = sessionsListed+1, (pageOf(r)-1)*sessionsListed
	list, err := tx.Sessions(f)
	if err != nil {
		return view{}, err
	}
	list, more := paged(list, sessionsListed)
	for _, s := range list {
		t, err := tx.Task(s.TaskID)
		if err != nil {
			return view{}, err
		}
		end := s.CompletedAt
		if end.IsZero() {
			end = tx.Now()
		}
		v.Sessions = append(v.Sessions, running{Session: s, Task: t, Now: end.Sub(s.StartedAt.Time).Seconds()})
	}
	v.Pager = newPager(r, more)
	return view{title: "Sessions", name: "sessions", nav: "/sessions", live: true, body: v}, nil
}

// Sorted returns the address of the list in another order.
func (v sessionsView) Sorted(by string) string {
	q := maps.Clone(v.Query)
	if q.Del("sort"); by != "" {
		q.Set("sort", by)
	}
	return "/sessions?" + q.Encode()
}
