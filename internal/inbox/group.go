package inbox

import (
	"cmp"
	"slices"
	"strings"

	"ralph/internal/lazy"
	"ralph/internal/text"
	"ralph/store"
)

// A Group holds items with the same cause, in their order. The inbox shows it as one row with one decision.
type Group []store.InboxItem

// Groups groups items by their cause, in the order of the first item of each group.
func Groups(list []store.InboxItem) (groups []Group) {
	at := map[string]int{}
	for _, i := range list {
		cause := Cause(i)
		if n, ok := at[cause]; ok && cause != "" {
			groups[n] = append(groups[n], i)
			continue
		}
		at[cause] = len(groups)
		groups = append(groups, Group{i})
	}
	return groups
}

// counted matches the differing parts in texts of one cause: numbers, and ids of commits and sessions.
var counted = lazy.Regexp(`\b[0-9a-f]{7,40}(-[0-9a-f-]+)?\b|\d+`)

// sameReason is equal for tasks that stopped for the same reason.
func sameReason(i store.InboxItem) string {
	return counted().ReplaceAllString(text.FirstLine(i.Text), "#")
}

// Cause returns the reason that an item shares with others; "" for an item without one.
func Cause(i store.InboxItem) string {
	same := kinds[i.Kind].same
	if same == nil {
		return ""
	}
	if cause := same(i); cause != "" {
		return i.Kind + "\x00" + cause
	}
	return ""
}

// A Section is a part of the inbox by how urgent its items are.
type Section int

// The sections, the most urgent first.
const (
	Holds   Section = iota // work cannot continue before a decision
	Failed                 // tasks that failed
	CanWait                // everything else
)

// String returns the section's heading.
func (s Section) String() string { return [...]string{"Holds work back", "Failed", "Can wait"}[s] }

// SectionOf returns the section of an item.
func SectionOf(i store.InboxItem) Section {
	switch form := kinds[i.Kind].Form; {
	case form == FormRetry:
		return Failed
	case i.Holding, i.Severity == "blocking", kinds[i.Kind].holds, form == FormHeld, form == FormDependency:
		return Holds
	}
	return CanWait
}

// A Filter narrows the inbox to the kinds of items with the same question to a person.
type Filter string

// The filters.
const (
	FilterAll       Filter = ""
	FilterDecide    Filter = "decide"    // yes or no, or one of two ways
	FilterFailed    Filter = "failed"    // tasks that failed
	FilterQuestions Filter = "questions" // words
	FilterRead      Filter = "read"      // nothing but to be read
)

// Filters are all filters, in the order in which they stand above the inbox.
var Filters = []Filter{FilterAll, FilterDecide, FilterFailed, FilterQuestions, FilterRead}

// Label returns the filter's name for people.
func (f Filter) Label() string {
	return map[Filter]string{
		FilterAll: "All", FilterDecide: "Decide", FilterFailed: "Failed", FilterQuestions: "Questions", FilterRead: "Read",
	}[f]
}

// Kinds returns the kinds of a filter's items, in the order of [store.InboxKinds]. The kinds above
// every page are in no filter.
func (f Filter) Kinds() (list []string) {
	for _, kind := range store.InboxKinds() {
		if k := kinds[kind]; !k.Band && (f == FilterAll || f == k.filter()) {
			list = append(list, kind)
		}
	}
	return list
}

// filter returns the only filter, apart from all, with a kind of item.
func (k Kind) filter() Filter {
	switch {
	case k.Form == FormRetry:
		return FilterFailed
	case k.Form == FormAnswer:
		return FilterQuestions
	case k.news:
		return FilterRead
	}
	return FilterDecide
}

// Sorted returns groups by section. Within each the order stays.
func Sorted(groups []Group) []Group {
	sorted := slices.Clone(groups)
	slices.SortStableFunc(sorted, func(a, b Group) int { return cmp.Compare(SectionOf(a[0]), SectionOf(b[0])) })
	return sorted
}

// sameText is equal for items with the same text, weight and choices.
func sameText(i store.InboxItem) string {
	return strings.Join(append([]string{i.Severity, i.Sort, i.Text}, i.Options...), "\x00")
}

// sameOfTask is equal for items of one task with the same text.
func sameOfTask(i store.InboxItem) string { return task(i) + "\x00" + i.Text }

// sameChange is equal for amendments with the same changes.
func sameChange(i store.InboxItem) string { return strings.Join(append(i.Diff, i.Text), "\x00") }

// sameApproval is equal for work held for the same files or tests.
func sameApproval(i store.InboxItem) string { return i.Asks }
