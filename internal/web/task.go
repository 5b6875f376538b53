package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"ralph"
	"ralph/internal/exchange"
	"ralph/internal/report"
	"ralph/internal/text"
	"ralph/signals"
	"ralph/store"
)

// timelineCards is the number of comments and signals on a page of a timeline.
const timelineCards = 50

// taskSessions is the number of sessions on a task's page.
const taskSessions = 20

// A taskView is a task's page.
type taskView struct {
	Strangers  []store.ForgeReply // comments on its issue by others than deciders, newest first
	Task       ralph.Task
	DependsOn  []ralph.Task
	Session    *ralph.Session // in progress
	Clock      float64        // seconds since the start of that session
	Heard      heard          // comments that it has received
	Doing      shownEntry     // its last activity
	Sessions   []ralph.Session
	Receipt    report.Receipt
	Change     *shownChange // its newest change; nil for none
	RetryUSD   float64      // likely cost of one more session
	Cards      []card
	Pager      pager
	Filter     filter
	Amendments []amendment
	Kinds      []ralph.CommentKind
	Parts      string       // the form for splitting it; "" if it cannot be split
	UndoTo     ralph.Status // cancelled: its work can be undone; completed: restored; "" for neither
}

// A diffstat is the size of changes to files, in lines.
type diffstat struct{ Files, Added, Removed int }

// Sum returns the size of the changes to all files.
func (v shownChange) Sum() (d diffstat) {
	for _, f := range v.Files {
		d.Files, d.Added, d.Removed = d.Files+1, d.Added+f.Added, d.Removed+f.Removed
	}
	return d
}

// A filter selects a part of a timeline.
type filter struct {
	Show     string     // "signals", "comments", "open", or "" for all
	Verb     ralph.Verb // "" for all
	Session  string
	Counts   map[ralph.Verb]int // "" counts comments other than signals
	Verbs    []ralph.Verb       // verbs that occur
	Sessions []ralph.Session
	Any      bool // something is filtered out
}

func (a *app) task(tx *store.Tx, r *http.Request) (view, error) {
	id, err := pathID(r)
	if err != nil {
		return view{}, err
	}
	v := taskView{Kinds: ralph.CommentKinds}
	if v.Task, err = tx.Task(id); err != nil {
		return view{}, err
	}
	for _, on := range v.Task.DependsOn {
		t, err := tx.Task(on)
		if err != nil {
			return view{}, err
		}
		v.DependsOn = append(v.DependsOn, t)
	}
	all, err := tx.Sessions(store.SessionFilter{Task: id})
	if err != nil {
		return view{}, err
	}
	v.Sessions = all[:min(len(all), taskSessions)]
	if len(all) > 0 && all[0].CompletedAt.IsZero() {
		v.Session, v.Clock = &all[0], tx.Now().Sub(all[0].StartedAt.Time).Seconds()
		if v.Heard, err = a.transcripts.heard(all[0].ID); err != nil {
			return view{}, err
		}
		v.Doing = newEntry(v.Heard.last)
	}
	if v.Receipt, err = report.OfTask(tx, v.Task); err != nil {
		return view{}, err
	}
	if v.Change, err = changeOf(tx, id); err != nil {
		return view{}, err
	}
	if v.RetryUSD, err = tx.LikelyCost(id); err != nil {
		return view{}, err
	}
	if v.Task.Splittable() {
		v.Parts = exchange.Splitting{Task: v.Task}.Form()
	}
	if a.Undo != nil {
		_, v.UndoTo, err = tx.Undoable(id)
		if err != nil && !errors.Is(err, ralph.ErrConflict) {
			return view{}, err
		}
	}
	if v.Amendments, err = amendmentsOf(tx, v.Task); err != nil {
		return view{}, err
	}
	if v.Strangers, err = tx.ForgeStrangers(id, strangersShown); err != nil {
		return view{}, err
	}
	if err := v.addTimeline(tx, r); err != nil {
		return view{}, err
	}
	return view{
		title: "TASK-" + r.PathValue("id") + " " + text.Line(v.Task.Title, 80), name: "task", nav: "/tasks",
		task: id, live: true, changes: []*shownChange{v.Change}, body: v,
	}, nil
}

// strangersShown is the maximum number of strangers' comments on a page.
const strangersShown = 50

// addTimeline adds the requested page of the timeline.
func (v *taskView) addTimeline(tx *store.Tx, r *http.Request) (err error) {
	q := r.URL.Query()
	v.Filter = filter{Show: q.Get("show"), Verb: ralph.Verb(q.Get("verb")), Sessions: v.Sessions}
	if v.Filter.Counts, err = tx.Said(v.Task.ID); err != nil {
		return err
	}
	for _, verb := range ralph.Verbs {
		if v.Filter.Counts[verb] > 0 {
			v.Filter.Verbs = append(v.Filter.Verbs, verb)
		}
	}
	f := store.CommentFilter{
		NoSignals: v.Filter.Show == "comments", NoComments: v.Filter.Show == "signals", Open: v.Filter.Show == "open",
		Limit: timelineCards + 1, Skip: (pageOf(r) - 1) * timelineCards,
	}
	if slices.Contains(ralph.Verbs, v.Filter.Verb) {
		f.Verbs = []ralph.Verb{v.Filter.Verb}
	}
	if s := q.Get("session"); s != "" {
		session, err := tx.Session(s)
		if err != nil {
			return err
		}
		f.Session, v.Filter.Session = session.ID, session.ID
	}
	v.Filter.Any = v.Filter.Show != "" || f.Verbs != nil || f.Session != ""
	list, err := tx.Timeline(v.Task.ID, f)
	if err != nil {
		return err
	}
	more := len(list) > timelineCards
	if more {
		list = list[1:] // the oldest only shows that there are more
	}
	v.Pager = newPager(r, more)
	v.Cards, err = cards(tx, v.Task, list)
	return err
}

// A card is a comment or a signal as shown, with its replies.
type card struct {
	ralph.Comment
	Look    look
	Note    string // next to the verb: "blocking", "warning, security"
	Fields  []field
	Options []option
	Replies []card
	Can     string // a person's possible action: "answer", "decide", "resolve", "suggestion", or ""
	Sort    string // sort of a suggestion
	Parts   string // the form for splitting the task as suggested; "" for other suggestions
	Review  string // the needed approval; "" for none
	Claim   bool   // it is an agent's claim about its own work, as opposed to ralph's findings
	Judged  *judgement
}

// A judgement has ralph's findings about a done.
type judgement struct {
	Look   look
	Text   string
	Checks []ralph.Check // checks that passed
}

// An option is an answer that an agent offers.
type option struct {
	Text      string
	Preferred bool
}

// cards converts comments, with replies below their parents.
func cards(tx *store.Tx, t ralph.Task, comments []ralph.Comment) (list []card, err error) {
	at := map[int64]int{}
	for _, c := range ralph.Threads(comments) {
		k, err := newCard(tx, t, c)
		if err != nil {
			return nil, err
		}
		if c.ParentID != nil {
			if i, ok := at[*c.ParentID]; ok {
				list[i].Replies = append(list[i].Replies, k)
				continue
			}
		}
		at[c.ID] = len(list)
		list = append(list, k)
	}
	return list, judge(tx, list)
}

// judge adds the findings about each done. The verdict of a session is about its last done. The others were refused in
// the session.
func judge(tx *store.Tx, list []card) error {
	sessions, last, refused := map[string]ralph.Session{}, map[string]int64{}, map[string][]ralph.Event{}
	for i, k := range list {
		if k.Verb != ralph.VerbDone || k.SessionID == "" {
			continue
		}
		s, known := sessions[k.SessionID]
		if !known {
			var err error
			if s, err = tx.Session(k.SessionID); err != nil {
				return err
			}
			said, err := tx.Timeline(k.TaskID, store.CommentFilter{
				Session: s.ID, Verbs: []ralph.Verb{ralph.VerbDone}, Limit: 1,
			})
			if err != nil {
				return err
			}
			for _, c := range said {
				last[s.ID] = c.ID
			}
			if refused[s.ID], err = tx.RefusedDones(s); err != nil {
				return err
			}
			sessions[s.ID] = s
		}
		if list[i].Judged = judgementOf(s, k.ID == last[s.ID]); k.ID != last[s.ID] {
			list[i].Judged.Text = refusalOf(k.Created, refused[s.ID]) + list[i].Judged.Text
		}
	}
	return nil
}

// refusalOf returns the reason of the first refusal after a done, before any further signal; "" if unknown.
func refusalOf(said ralph.Time, refused []ralph.Event) string {
	for _, e := range refused {
		var r ralph.DoneRefused
		if !e.Created.Before(said.Time) && json.Unmarshal(e.Payload, &r) == nil && r.Reason != "" {
			return r.Reason + "; "
		}
	}
	return ""
}

// judgementOf returns the findings about a done, given whether it is the last of its session.
func judgementOf(s ralph.Session, last bool) *judgement {
	switch {
	case !last:
		return &judgement{Look: look{"✕", "Refused", "red"}, Text: "its agent was told, and went on"}
	case s.CompletedAt.IsZero() && s.Checking != "":
		return &judgement{Look: look{"◒", "Being checked", "gray"}, Text: s.Checking}
	case s.CompletedAt.IsZero():
		return &judgement{Look: look{"○", "Not checked yet", "gray"}}
	case s.Outcome == ralph.OutcomeSuccess && s.ClosingVerb == ralph.VerbDone:
		j := &judgement{Look: look{"✓", "Checked", "green"}}
		for _, c := range s.Verify {
			if c.Passed {
				j.Checks = append(j.Checks, c)
			}
		}
		return j
	}
	return &judgement{Look: look{"✕", "Not accepted", "red"}, Text: s.Reason}
}

func newCard(tx *store.Tx, t ralph.Task, c ralph.Comment) (k card, err error) {
	k = card{Comment: c, Look: verbLook(c.Verb)}
	if c.Verb == "" {
		if c.ParentID == nil {
			var r ralph.Approval
			r, err = tx.Approval(c.ID)
			k.Review = r.Kind()
		}
		k.Can = canAnswer(c, k.Review != "")
		return k, err
	}
	p, err := signals.Parse(c.Verb, c.Payload)
	if err != nil {
		// Another version of ralph wrote the signal: show only its body.
		k.Fields = []field{{"", c.Body}}
		return k, nil
	}
	k.say(p)
	if k.Claim = c.Verb.Closes(); k.Claim {
		k.Look.Class = "" // an agent's claim about its own work is not a state
	}
	dead := t.Status == ralph.Cancelled || t.Status == ralph.Rejected
	switch {
	case c.Verb == ralph.VerbAsk && c.Answer == nil && !dead:
		k.Can = "answer"
	case c.Verb == ralph.VerbSuggest && c.ResolvedAt.IsZero() && k.Sort != "new_task":
		k.Can = "suggestion"
		if p, ok := p.(signals.Suggest); ok && p.Kind == "split" && t.Splittable() {
			k.Parts = partsOf(t, p)
		}
	case c.Verb == ralph.VerbFlag && c.ResolvedAt.IsZero(), c.Holding && c.Verb != ralph.VerbAsk:
		k.Can = "resolve"
	}
	if k.Can == "" {
		k.Look.Class = "" // it has ended, or waits for nobody
	}
	return k, nil
}

// partsOf returns the form for splitting a task as an agent suggests.
func partsOf(t ralph.Task, p signals.Suggest) string {
	return exchange.Splitting{Task: t, Suggested: true, What: p.What, Why: p.Why}.Form()
}

// canAnswer returns a person's possible action on a comment that is not a signal.
func canAnswer(c ralph.Comment, review bool) string {
	switch {
	case !c.ResolvedAt.IsZero() || c.ParentID != nil:
		return ""
	case c.Kind == ralph.Nack || review:
		return "decide"
	case c.Kind == ralph.Blocker || c.Kind == ralph.Question:
		return "resolve"
	}
	return ""
}

// say fills in the content of a signal.
func (k *card) say(p signals.Payload) {
	add := func(name, text string) {
		if text != "" {
			k.Fields = append(k.Fields, field{name, text})
		}
	}
	switch p := p.(type) {
	case signals.Ask:
		k.Note = "not blocking"
		if p.IsBlocking() {
			k.Note = "blocking"
		}
		add("", p.Question)
		k.Options = options(p.Options, p.Preferred)
	case signals.Flag:
		k.Note = p.Severity + ", " + p.Category
		add("", p.What)
	case signals.Learned:
		k.Note = p.Kind + ", " + p.EffectiveScope()
		add("", p.Text)
		add("Rationale", p.Rationale)
	case signals.Suggest:
		k.Note, k.Sort = p.Kind, p.Kind
		add("", p.What)
		add("Why", p.Why)
		add("Feature", p.Feature)
	case signals.Blocked:
		k.Note = p.Kind
		add("", p.On)
		add("Detail", p.Detail)
	default:
		for i, t := range signals.Texts(p) {
			if i == 0 {
				t.Name = "" // the main text needs no heading
			}
			add(t.Name, t.Text)
		}
	}
}

// options returns the offered answers, with the preferred one marked, which the list may lack.
func options(list []string, preferred string) (out []option) {
	found := preferred == ""
	for _, o := range list {
		out = append(out, option{o, o == preferred})
		found = found || o == preferred
	}
	if !found {
		out = append([]option{{preferred, true}}, out...)
	}
	return out
}

// SpentUSD returns the approximate spending of the session in progress so far.
func (v taskView) SpentUSD() float64 { return v.Heard.used.CostUSD }

// Open reports whether the difference is short enough to show at once.
func (v taskView) Open() bool {
	lines := 0
	for _, f := range v.Change.Files {
		lines += len(f.Lines)
	}
	return lines <= openLines
}

// openLines is the maximum number of lines of a difference that is shown without a click.
const openLines = 120

// An amendment with its changes.
type amendment struct {
	ralph.Amendment
	Diff []string
}

// amendmentsOf returns a task's amendments, newest first.
func amendmentsOf(tx *store.Tx, t ralph.Task) (list []amendment, err error) {
	all, err := tx.Amendments(store.AmendmentFilter{Task: t.ID})
	slices.Reverse(all)
	for _, m := range all {
		list = append(list, newAmendment(m, t))
	}
	return list, err
}

func newAmendment(m ralph.Amendment, t ralph.Task) amendment {
	before := m.Patch.Of(t)
	if m.Before != nil {
		before = *m.Before
	}
	return amendment{m, m.Patch.Diff(before)}
}
