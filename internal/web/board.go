package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// columnTasks is the number of tasks of a word that the board shows.
const columnTasks = 15

// boardColumns has groups of [ralph.Words] in the order of the board, with names for groups of several. Tasks with
// other words have ended.
var boardColumns = []struct {
	name  string
	words []string
}{
	{"", []string{"needs you"}},
	{"Next", []string{"queued", "waiting"}},
	{"At work", []string{"running", "merging", "in review"}},
	{"", []string{"failed"}},
}

// A column has the tasks with some words. It omits words without tasks. A column without a name
// uses its word's.
type column struct {
	Name  string
	Parts []part
}

// A part has the tasks with one word.
type part struct {
	Word  string
	N     int // total number
	Cards []taskCard
}

// A taskCard is a task on the board.
type taskCard struct {
	ralph.Task
	CostUSD float64
	Session *ralph.Session // in progress
	Clock   float64        // seconds that its session or its merge has taken so far; 0 for none
	Merge   string         // the state of its change in the merge queue; "" for none
}

// Total returns N for formatting.
func (p part) Total() int64 { return int64(p.N) }

// A boardView is the board; of one feature if Feature is not "".
type boardView struct {
	Columns  []column
	Over     []part // ended tasks, shown without cards
	Feature  string
	Features []ralph.Feature
}

// Any reports whether there is a task.
func (v boardView) Any() bool { return len(v.Columns)+len(v.Over) > 0 }

func (a *app) board(tx *store.Tx, r *http.Request) (view, error) {
	v := boardView{Feature: r.URL.Query().Get("feature")}
	var err error
	if v.Features, err = tx.Features(); err != nil {
		return view{}, err
	}
	counts, err := tx.Tally()
	if v.Feature != "" && err == nil {
		var p store.Progress
		p, err = tx.Progress(v.Feature)
		counts = p.Tasks
	}
	if err != nil {
		return view{}, err
	}
	cards, err := newCards(tx)
	if err != nil {
		return view{}, err
	}
	shown := map[string]bool{}
	for _, c := range boardColumns {
		one := column{Name: c.name}
		for _, word := range c.words {
			shown[word] = true
			n := counts[ralph.KeyOf(word)]
			if n == 0 {
				continue
			}
			f := store.TaskFilter{
				Words: []string{word}, Feature: v.Feature, Limit: columnTasks, Latest: word == "failed" || word == "in review",
			}
			list, err := tx.Tasks(f)
			if err != nil {
				return view{}, err
			}
			p := part{Word: word, N: n}
			if p.Cards, err = cards.of(tx, list); err != nil {
				return view{}, err
			}
			one.Parts = append(one.Parts, p)
		}
		if len(one.Parts) > 0 {
			v.Columns = append(v.Columns, one)
		}
	}
	for _, word := range ralph.Words {
		if n := counts[ralph.KeyOf(word)]; !shown[word] && n > 0 {
			v.Over = append(v.Over, part{Word: word, N: n})
		}
	}
	return view{title: "Board", name: "board", nav: "/board", live: true, body: v}, nil
}

// A cardMaker makes cards from the sessions and changes in progress.
type cardMaker struct {
	sessions map[int64]ralph.Session // in progress, by task
	changes  map[int64]ralph.Change  // in the merge queue, by task
}

func newCards(tx *store.Tx) (cardMaker, error) {
	m := cardMaker{map[int64]ralph.Session{}, map[int64]ralph.Change{}}
	open, err := tx.OpenSessions()
	if err != nil {
		return m, err
	}
	for _, s := range open {
		m.sessions[s.TaskID] = s
	}
	queued, err := tx.QueuedChanges()
	for _, c := range queued {
		m.changes[c.TaskID] = c
	}
	return m, err
}

// of makes cards from tasks.
func (m cardMaker) of(tx *store.Tx, tasks []ralph.Task) (list []taskCard, err error) {
	usd, err := tx.SpentOn(idsOf(tasks))
	for _, t := range tasks {
		card := taskCard{Task: t, CostUSD: usd[t.ID]}
		if s, ok := m.sessions[t.ID]; ok {
			card.Session, card.Clock = &s, tx.Now().Sub(s.StartedAt.Time).Seconds()
		} else if c, ok := m.changes[t.ID]; ok {
			card.Merge, card.Clock = string(c.State), max(0, tx.Now().Sub(c.Updated.Time).Seconds())
		}
		list = append(list, card)
	}
	return list, err
}

func idsOf(tasks []ralph.Task) []int64 {
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	return ids
}

// listTasks is the number of tasks on a page of the list.
const listTasks = 50

// A listView is a page of the list of tasks.
type listView struct {
	Tasks    []ralph.Task
	N        int               // number of selected tasks, if the list is narrowed
	Narrowed []narrowed        // conditions: several words, or the tasks of the sessions of a run or a period
	Hidden   url.Values        // the parameters of the second kind
	Spent    map[int64]float64 // USD, by task
	Pager    pager
	Word     string // one of [ralph.Words]; "" for any
	Feature  string
	Text     string
	Words    []string
	Features []ralph.Feature
	New      ralph.Task // the fields of a new task
	Add      bool       // the form to add a task is open
}

func (a *app) taskList(tx *store.Tx, r *http.Request) (view, error) {
	q := r.URL.Query()
	v := listView{
		Feature: q.Get("feature"),
		Text:    text.Line(q.Get("q"), ralph.MaxTitle),
		Words:   ralph.Words,
		Add:     q.Has("add"),
		New:     ralph.Task{Priority: ralph.DefaultPriority},
	}
	// A number selects a task, in any notation.
	if id, err := ralph.ParseTaskID(v.Text); err == nil {
		if t, err := tx.Task(id); err == nil {
			v.Tasks, v.Text = []ralph.Task{t}, fmt.Sprintf("TASK-%d", id)
		}
	}
	f := store.TaskFilter{
		Feature: v.Feature,
		Text:    v.Text,
		Limit:   listTasks + 1,
		Skip:    (pageOf(r) - 1) * listTasks,
	}
	for _, word := range ralph.Words {
		if slices.Contains(q["status"], ralph.KeyOf(word)) {
			f.Words = append(f.Words, word)
		}
	}
	if len(f.Words) == 1 {
		v.Word = f.Words[0]
	}
	f.Latest = !slices.ContainsFunc(f.Words, func(word string) bool {
		return !slices.Contains([]string{"failed", "merged", "cancelled"}, word)
	})
	narrowing := []string{"run", "active"}
	if len(f.Words) > 1 {
		narrowing = append(narrowing, "status")
	}
	var err error
	if v.Features, err = tx.Features(); err != nil {
		return view{}, err
	}
	if v.Narrowed = narrowedBy("/tasks", q, narrowing...); len(v.Narrowed) > 0 {
		v.Hidden = url.Values{}
		for _, name := range []string{"run", "active"} {
			if q.Has(name) {
				v.Hidden[name] = q[name]
			}
		}
		if len(v.Hidden) > 0 {
			of, err := sessionFilter(v.Hidden)
			if err != nil {
				return view{}, err
			}
			of.Merges = true
			f.Of = &of
		}
		if v.N, err = tx.CountTasks(f); err != nil {
			return view{}, err
		}
	}
	more := false
	if v.Tasks == nil {
		list, err := tx.Tasks(f)
		if err != nil {
			return view{}, err
		}
		v.Tasks, more = paged(list, listTasks)
	}
	v.Pager = newPager(r, more)
	v.Spent, err = tx.SpentOn(idsOf(v.Tasks))
	return view{title: "Tasks", name: "tasks", nav: "/tasks", live: true, body: v}, err
}
