package web

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/inbox"
	"ralph/internal/report"
	"ralph/internal/text"
	"ralph/store"
)

// An item is an inbox item as shown.
type item struct {
	store.InboxItem
	Look  look
	Form  inbox.Form
	Label string // label of a flag or suggestion: "blocking, security", "split"
	Parts string // the form for splitting the task as suggested; "" for other items
	Also  []item // further items that wait for the same reason
	Asks  string // for held work: the needed approval, in plain words
	Plan  *plan  // a plan that is shown completely

	// For the selected item: its task (nil for none), the number of tasks that wait for it, its cost so far, and the
	// likely cost of a retry (USD) of all items with the same reason.
	Task     *ralph.Task
	Behind   int
	Took     report.Receipt
	RetryUSD float64
	Last     *ralph.Session // last session of a failed task; nil if it had none
	Change   *shownChange   // change of held work
	Member   *item          // among several held items: the one whose change is shown
}

func newItem(i store.InboxItem) item {
	i.Item, i.Commands = inbox.Of(i)
	return item{InboxItem: i, Look: waitLook(i.Kind), Form: inbox.FormOf(i), Label: inbox.Label(i)}
}

// left returns the seconds until something expires.
func left(until, now ralph.Time) float64 { return max(0, math.Floor(until.Sub(now.Time).Seconds())) }

// Anchor returns the item's anchor on the inbox page.
func (i item) Anchor() string { return fmt.Sprintf("w-%s-%d-%d", i.Kind, i.TaskID, i.Ref.ID) }

// Choices returns the options that an agent offers for its question.
func (i item) Choices() []option { return options(i.Options, i.Preferred) }

// Together reports whether the item can be decided on together with others.
func (i item) Together() bool {
	return inbox.YesOrNo(i.InboxItem) || failed(i.InboxItem) || asks(i.InboxItem) || resolvable(i.InboxItem)
}

// Names returns the names of the item and of its equals; for a plan, of the shown parts.
func (i item) Names() string {
	if i.Plan != nil {
		return i.Plan.Items
	}
	names := i.Item
	for _, a := range i.Also {
		names += " " + a.Item
	}
	return names
}

// Itself reports whether the item has the name of its task.
func (i item) Itself() bool { return i.Item == fmt.Sprint("TASK-", i.TaskID) }

// Times returns the number of items with the same reason.
func (i item) Times() int { return 1 + len(i.Also) }

// Cost returns the likely cost of retrying the item and its equals, in words.
func (i item) Cost() string { return "about " + text.Money(i.RetryUSD) }

// Differs reports whether an item with the same reason has other words.
func (i item) Differs(other item) bool { return i.Text != other.Text }

// Held reports whether the item is work that waits for an approval.
func (i item) Held() bool { return i.Form == inbox.FormHeld }

// Section returns the item's part of the inbox.
func (i item) Section() inbox.Section { return inbox.SectionOf(i.InboxItem) }

// tasksOf returns the tasks of the item and of its equals, each once.
func (i item) tasksOf() (ids []int64) {
	for _, one := range append([]item{i}, i.Also...) {
		if one.TaskID != 0 && !slices.Contains(ids, one.TaskID) {
			ids = append(ids, one.TaskID)
		}
	}
	return ids
}

// Tasks names the tasks of the item and of its equals.
func (i item) Tasks() string { return taskNames(i.tasksOf()) }

// namedTasks is the maximum number of task names in a row.
const namedTasks = 6

// taskNames names tasks in a few words: "TASK-5, 17, 29".
func taskNames(ids []int64) string {
	var b strings.Builder
	for n, id := range ids {
		switch {
		case n == namedTasks:
			return b.String() + fmt.Sprintf(" and %d more", len(ids)-n)
		case n == 0:
			fmt.Fprintf(&b, "TASK-%d", id)
		default:
			fmt.Fprintf(&b, ", %d", id)
		}
	}
	return b.String()
}

// relations describe the relation of a kind of item to its tasks.
var relations = map[string]string{
	"question": "asked by", "flag": "flagged by", "amendment": "amends", "tests changed": "passed its checks:",
	"review": "passed its checks:", "dependency": "waits:", "suggestion": "suggested by", "nack": "proposed of",
}

// Sub returns the second line of the item's row: its severity and its tasks.
func (i item) Sub() string {
	var parts []string
	if i.Label != "" {
		parts = append(parts, strings.ReplaceAll(i.Label, "_", " "))
	}
	said := i.Tasks()
	if ids := i.tasksOf(); len(ids) == 1 && i.Form != inbox.FormProposal {
		said += " " + i.Title
	}
	switch relation := relations[i.Kind]; {
	case said == "":
	case i.Holding && !i.Held():
		said = "holds " + said
	case relation != "":
		said = relation + " " + said
	}
	if said != "" {
		parts = append(parts, said)
	}
	if i.Form == inbox.FormPlan {
		parts = append(parts, "a plan to decide on")
	}
	return text.Line(strings.Join(parts, " · "), 200)
}

// Told reports whether the item's line has all of its text.
func (i item) Told() bool { return text.Visible(i.Text) == i.Gist() && !strings.Contains(i.Text, "`") }

// Shown returns the item whose change is shown, among those held for the same reason.
func (i item) Shown() item {
	if i.Member != nil {
		return *i.Member
	}
	return i
}

// Members returns the item and its equals.
func (i item) Members() []item { return append([]item{i}, i.Also...) }

// rows makes rows from inbox items, one for each reason, the most urgent first.
func rows(tx *store.Tx, list []store.InboxItem) (items []item, err error) {
	for _, g := range inbox.Sorted(inbox.Groups(list)) {
		it := newItem(g[0])
		if it.Held() {
			approval, err := tx.Approval(it.Ref.ID)
			if err != nil {
				return nil, err
			}
			it.Asks = asksFor(approval)
		}
		for _, i := range g[1:] {
			it.Also = append(it.Also, newItem(i))
		}
		items = append(items, it)
	}
	return items, nil
}

// asksFor describes in plain words the question to a person.
func asksFor(a ralph.Approval) string {
	several := func(names []string, noun string) string {
		said := "nothing"
		if n := len(names); n > 0 {
			said = names[0]
			if n > 1 {
				said += " and " + text.Count(n-1, "more "+noun)
			}
		}
		return said
	}
	paths := func(blobs []ralph.Blob) (list []string) {
		for _, b := range blobs {
			list = append(list, b.Path)
		}
		return list
	}
	agents := func(reviews []ralph.Review) (list []string) {
		for _, r := range reviews {
			list = append(list, r.Agent)
		}
		return list
	}
	switch a.Kind() {
	case ralph.ApprovalTests:
		var tests []string
		for _, w := range a.Weakened {
			tests = append(tests, w.Name())
		}
		return "Approve changed tests: " + several(tests, "test")
	case ralph.ApprovalProtected:
		return "Approve a change to the protected file " + several(a.Protected, "file")
	case ralph.ApprovalGuarded:
		return "Approve a change to " + several(paths(a.Guarded), "file")
	case ralph.ApprovalOutside:
		return "Approve a change to " + several(paths(a.Outside), "file") + ", outside of the task's files"
	case ralph.ApprovalUnchanged:
		return "Approve an empty change"
	case ralph.ApprovalObjected:
		return "Decide on the objections of " + several(agents(a.Objected), "reviewer")
	case ralph.ApprovalNone:
		return "Approve without the review by " + several(agents(a.Unreviewed), "reviewer")
	}
	return ""
}

// whole adds the details of an item to decide on.
func (a *app) whole(tx *store.Tx, i *item) (err error) {
	if i.Held() {
		if i.Change, err = changeOf(tx, i.Shown().TaskID); err != nil {
			return err
		}
	}
	if i.Action == "split" {
		_, said, err := tx.Suggestion(i.Ref.ID)
		if err != nil {
			return err
		}
		i.Parts = partsOf(ralph.Task{ID: i.TaskID, Title: i.Title}, said)
	}
	if i.Form == inbox.FormPlan {
		i.Plan, err = readPlan(tx, i.Title)
		return err
	}
	if i.RetryUSD, err = tx.LikelyCost(i.tasksOf()...); err != nil || i.TaskID == 0 {
		return err
	}
	t, err := tx.Task(i.Shown().TaskID)
	if err != nil {
		return err
	}
	i.Task = &t
	if i.Behind, err = tx.Behind(t.ID); err != nil {
		return err
	}
	if i.Took, err = report.OfTask(tx, t); err != nil || !failed(i.InboxItem) {
		return err
	}
	last, err := tx.Sessions(store.SessionFilter{Task: t.ID, Limit: 1})
	if err == nil && len(last) > 0 {
		i.Last = &last[0]
	}
	return err
}

// inboxItems is the number of items on a page of the inbox.
const inboxItems = 200

// pricedRows is the number of rows of a page that show the likely cost of a retry.
const pricedRows = 30

// price adds the likely cost of retrying failed tasks to rows.
func price(tx *store.Tx, rows []item) (err error) {
	n := 0
	for i := range rows {
		if failed(rows[i].InboxItem) && err == nil && n < pricedRows {
			n++
			rows[i].RetryUSD, err = tx.LikelyCost(rows[i].tasksOf()...)
		}
	}
	return err
}

// A section groups items of the same urgency.
type section struct {
	Of    inbox.Section
	Items []item
}

// Things counts the items of the section's rows.
func (s section) Things() (n int) {
	for _, i := range s.Items {
		n += i.Times()
	}
	return n
}

// Counted tells the number of rows, and of the items in them.
func (s section) Counted() string {
	switch n, rows := s.Things(), len(s.Items); {
	case s.Of == inbox.Failed:
		return text.Count(n, "task") + ", " + text.Count(rows, "reason")
	case n != rows:
		return text.Count(rows, "thing") + ", " + text.Count(n, "item")
	default:
		return text.Count(rows, "thing")
	}
}

// Class returns the colour of the section.
func (s section) Class() string { return [...]string{"orange", "red", ""}[s.Of] }

// Sections returns the rows by urgency.
func (v inboxView) Sections() (list []section) {
	for _, i := range v.Items {
		if n := len(list); n == 0 || list[n-1].Of != i.Section() {
			list = append(list, section{Of: i.Section()})
		}
		list[len(list)-1].Items = append(list[len(list)-1].Items, i)
	}
	return list
}

// An inboxView is a page of the inbox: rows, and one of them whole.
type inboxView struct {
	Items  []item
	Tabs   []inboxTab
	Above  int // items of no filter, which are above every page
	Filter inbox.Filter
	Pager  pager
	Chosen *item       // shown whole; nil for none
	Asked  bool        // the address names it
	Gone   *ralph.Task // task of an item in the address that no longer waits; nil for none
	Query  url.Values  // parameters of this list
}

// An inboxTab is a filter with the number of its items.
type inboxTab struct {
	inbox.Filter
	N int
}

// To returns the address of the inbox under the filter.
func (t inboxTab) To() string {
	if t.Filter == inbox.FilterAll {
		return "/inbox"
	}
	return link("/inbox", url.Values{"show": {string(t.Filter)}})
}

// list reads the requested rows, and the selected one; more reports whether there is a next page.
func (v *inboxView) list(tx *store.Tx, r *http.Request) (more bool, err error) {
	q := r.URL.Query()
	v.Filter, v.Asked = inbox.Filter(q.Get("show")), q.Has("item")
	if !slices.Contains(inbox.Filters, v.Filter) {
		return false, &ralph.FieldError{Field: "show", Problem: fmt.Sprintf("is not a filter of the inbox: %q", v.Filter)}
	}
	list, err := tx.InboxPart(v.Filter.Kinds(), inboxItems+1, (pageOf(r)-1)*inboxItems)
	if err != nil {
		return false, err
	}
	list, more = paged(list, inboxItems)
	if v.Items, err = rows(tx, list); err == nil {
		err = price(tx, v.Items)
	}
	if err == nil {
		v.Chosen, err = choose(tx, v.Items, q.Get("item"))
	}
	return more, err
}

func (a *app) inbox(tx *store.Tx, r *http.Request) (view, error) {
	q := r.URL.Query()
	var v inboxView
	counts, err := tx.InboxCounts()
	if err != nil {
		return view{}, err
	}
	for _, f := range inbox.Filters {
		tab := inboxTab{Filter: f}
		for _, kind := range f.Kinds() {
			tab.N += counts[kind]
		}
		v.Tabs = append(v.Tabs, tab)
	}
	v.Above = -v.Tabs[0].N
	for _, n := range counts {
		v.Above += n
	}
	more, err := v.list(tx, r)
	switch {
	case err == nil && v.Chosen != nil:
		err = a.whole(tx, v.Chosen)
	case err == nil && v.Asked:
		v.Gone, err = gone(tx, q.Get("item"))
	}
	if err != nil {
		return view{}, err
	}
	v.Pager = newPager(r, more)
	q.Del("item")
	v.Query = q
	page := view{title: "Inbox", name: "inbox", nav: "/inbox", live: true, body: v}
	if v.Chosen != nil {
		page.changes = append(page.changes, v.Chosen.Change)
	}
	return page, nil
}

// Gist returns the item in a line.
func (i item) Gist() string {
	return text.Line(text.FirstLine(cmp.Or(i.Asks, inbox.Gist(i.InboxItem))), 160)
}

// Link returns the address of an item in the list with these parameters.
func (i item) Link(q url.Values) string {
	of := url.Values{"item": {i.Anchor()}}
	maps.Copy(of, q)
	return link("/inbox", of)
}

// choose returns the selected row: the requested one, even if it is now on another page, or the first row without a
// request. It returns nil, never another row, if the requested item no longer waits.
func choose(tx *store.Tx, shown []item, anchor string) (*item, error) {
	if anchor == "" {
		if len(shown) == 0 {
			return nil, nil
		}
		return &shown[0], nil
	}
	if found := find(shown, anchor); found != nil {
		return found, nil
	}
	for _, kind := range inbox.FilterAll.Kinds() {
		if !strings.HasPrefix(anchor, "w-"+kind+"-") {
			continue
		}
		list, err := tx.InboxOf(kind)
		if err != nil {
			return nil, err
		}
		items, err := rows(tx, list)
		if found := find(items, anchor); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// gone returns the task of an item that no longer waits; nil for none.
func gone(tx *store.Tx, anchor string) (*ralph.Task, error) {
	parts := strings.Split(anchor, "-")
	id, err := strconv.ParseInt(parts[max(0, len(parts)-2)], 10, 64)
	if err != nil || id <= 0 {
		return nil, nil //nolint:nilerr // the address names no task
	}
	t, err := tx.Task(id)
	if errors.Is(err, ralph.ErrNotFound) {
		return nil, nil
	}
	return &t, err
}

// find returns the row with an item; nil if there is none.
func find(rows []item, anchor string) *item {
	for i := range rows {
		for n, one := range rows[i].Members() {
			if one.Anchor() == anchor {
				if n > 0 {
					rows[i].Member = &one
				}
				return &rows[i]
			}
		}
	}
	return nil
}

// chosen returns the inbox items that a form names, each once. A field may have several names.
func chosen(tx *store.Tx, r *http.Request) ([]store.InboxItem, error) {
	var names []string
	for _, name := range strings.Fields(strings.Join(r.Form["item"], " ")) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 2*inboxItems {
		return nil, &ralph.FieldError{Field: "item", Problem: fmt.Sprintf("names more than %d items", 2*inboxItems)}
	}
	return inbox.Named(tx, names)
}

// A manyView has the complete items to decide on together.
type manyView struct {
	Items []item
	Cost  string // cost of retrying failed tasks, in words

	YesOrNo, Resolvable, Failed, Questions int // numbers of items that a verdict fits
}

func (a *app) many(tx *store.Tx, r *http.Request) (view, error) {
	if err := r.ParseForm(); err != nil {
		return view{}, &ralph.FieldError{Field: "item", Problem: "cannot be read: " + err.Error()}
	}
	list, err := chosen(tx, r)
	if err != nil {
		return view{}, err
	}
	var v manyView
	var tasks []int64
	var changes []*shownChange
	for _, i := range list {
		it := newItem(i)
		if it.Form == inbox.FormPlan || it.Held() {
			if err := a.whole(tx, &it); err != nil {
				return view{}, err
			}
		}
		if it.Change != nil {
			it.Asks, changes = it.Change.Asks(), append(changes, it.Change)
		}
		v.Items = append(v.Items, it)
		switch {
		case inbox.YesOrNo(i):
			v.YesOrNo++
		case failed(i):
			v.Failed++
			tasks = append(tasks, i.TaskID)
		case asks(i):
			v.Questions++
		case resolvable(i):
			v.Resolvable++
		}
	}
	usd, err := tx.LikelyCost(tasks...)
	v.Cost = "about " + text.Money(usd)
	return view{title: "Decide on several", name: "many", nav: "/inbox", changes: changes, body: v}, err
}

// A manyDecision applies a verdict to one of several items.
type manyDecision struct {
	fits func(i store.InboxItem) bool
	why  string // the reason why it does not fit other items
	do   func(tx *store.Tx, i store.InboxItem, words, person string) (said string, err error)
}

// manyDecisions are the verdicts on several items at once.
var manyDecisions = map[string]manyDecision{
	"approve": {approvable, "which you write in the inbox", deciding(true)},
	"reject":  {inbox.YesOrNo, "which is not answered with yes or no", deciding(false)},
	"answer": {
		asks, "which asks nothing",
		func(tx *store.Tx, i store.InboxItem, words, person string) (string, error) {
			return "answered " + i.Item, tx.Answer(i.Ref.ID, words, person)
		},
	},
	"resolve": {
		resolvable, "which words do not resolve",
		func(tx *store.Tx, i store.InboxItem, words, person string) (string, error) {
			return "resolved " + i.Item, tx.Resolve(i.Ref.ID, words, person)
		},
	},
	"retry": {
		failed, "which has not failed",
		func(tx *store.Tx, i store.InboxItem, _, person string) (string, error) {
			return fmt.Sprintf("TASK-%d is back in the queue", i.TaskID), tx.Retry(i.TaskID, "retried by "+person)
		},
	},
	"cancel": {
		failed, "which has not failed",
		func(tx *store.Tx, i store.InboxItem, _, person string) (string, error) {
			_, err := tx.Cancel(i.TaskID, person)
			return fmt.Sprintf("TASK-%d is cancelled", i.TaskID), err
		},
	},
}

func failed(i store.InboxItem) bool { return inbox.KindOf(i.Kind).Form == inbox.FormRetry }

func asks(i store.InboxItem) bool { return inbox.KindOf(i.Kind).Form == inbox.FormAnswer }

func resolvable(i store.InboxItem) bool { return inbox.KindOf(i.Kind).Form == inbox.FormResolve }

func approvable(i store.InboxItem) bool { return inbox.YesOrNo(i) && !inbox.Alone(i) }

// deciding approves or rejects an item.
func deciding(approve bool) func(*store.Tx, store.InboxItem, string, string) (string, error) {
	return func(tx *store.Tx, i store.InboxItem, words, person string) (string, error) {
		return inbox.Decide(tx, i, approve, words, person)
	}
}

// decideMany applies one verdict to all named items, or to none. It skips items that the verdict does not fit, and
// names them. With the verdict "one", the items are equal: the first is approved, and the others are rejected as
// duplicates.
func (a *app) decideMany(tx *store.Tx, r *http.Request) (string, error) {
	list, err := chosen(tx, r)
	if errors.Is(err, ralph.ErrNotFound) || errors.Is(err, ralph.ErrConflict) {
		return "", ralph.Conflict("some of these do not wait any more, so nothing was decided: look at the inbox again")
	}
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "", &ralph.FieldError{Field: "item", Problem: "names nothing: choose at least one item; nothing was decided"}
	}
	verdict, words := r.PostFormValue("verdict"), written(r, "text")
	one := verdict == "one"
	if one {
		if verdict = "approve"; len(inbox.Groups(list)) != 1 {
			return "", ralph.Conflict("these do not say the same any more, so nothing was decided")
		}
	}
	decision, known := manyDecisions[verdict]
	if !known {
		return "", &ralph.FieldError{
			Field: "verdict", Problem: "is required", Accepted: slices.Sorted(maps.Keys(manyDecisions)),
		}
	}
	var said, left []string
	for n, i := range list {
		if !decision.fits(i) {
			left = append(left, leftOf(i, decision.why))
			continue
		}
		if one && n > 0 {
			decision, words = manyDecisions["reject"], "the same as "+list[0].Item
		}
		if verdict == "answer" {
			words = cmp.Or(
				written(r, "own-"+i.Item), written(r, "option-"+i.Item), written(r, "option"), written(r, "text"),
			)
			if words == "" {
				left = append(left, i.Item+" is left: it was given no answer.")
				continue
			}
		}
		line, err := decision.do(tx, i, words, a.Person)
		if err != nil {
			return "", fmt.Errorf("%s: %w; nothing was decided", i.Item, err)
		}
		said = append(said, sentence(line))
	}
	if n := len(said); n == 0 && len(left) > 0 {
		return "", ralph.Conflict("%s", strings.Join(left, " "))
	} else if n > 1 && !one {
		said = slices.Insert(said, 0, text.Count(n, "item")+" decided on.")
	}
	return strings.Join(append(said, left...), " "), nil
}

// leftOf reports that an item was skipped, because a verdict does not fit it.
func leftOf(i store.InboxItem, why string) string {
	if inbox.Alone(i) {
		return fmt.Sprintf("%s is left: it splits TASK-%d into parts, which you write in the inbox.", i.Item, i.TaskID)
	}
	return fmt.Sprintf("%s is left: it is a %s, %s.", i.Item, i.Kind, why)
}

// verdictOf parses which of two verdicts a form gives.
func verdictOf(r *http.Request, yes, no string) (bool, error) {
	switch r.PostFormValue("verdict") {
	case yes:
		return true, nil
	case no:
		return false, nil
	}
	return false, &ralph.FieldError{Field: "verdict", Problem: "is required", Accepted: []string{yes, no}}
}
