package inbox

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ralph/internal/term"
	"ralph/store"
)

// TestEveryKindIsKnown: each kind that the database finds has a name, a look and a command, and a way to decide on it;
// and nothing else is a kind.
func TestEveryKindIsKnown(t *testing.T) {
	all := store.InboxKinds()
	for _, kind := range all {
		k, ok := kinds[kind]
		if !ok || k.Look.Icon == "" || k.Look.Label == "" || k.Look.Colour == "" {
			t.Errorf("%s: its look is %+v", kind, k.Look)
			continue
		}
		for _, action := range []string{"", "task", "split", "adopt", "undo"} {
			i := store.InboxItem{Kind: kind, TaskID: 7, Ref: store.Reference{ID: 9}, Sort: "run", Action: action, Commands: []string{"ralph x"}}
			name, commands := Of(i)
			command := strings.Join(commands, " ")
			if !strings.HasPrefix(command, "ralph ") || strings.ContainsAny(name+command, "{}") || name == "" {
				t.Errorf("%s (%s): %q, %q", kind, action, name, command)
			}
		}
		if (k.approve == nil) != (k.reject == nil) {
			t.Errorf("%s can be decided on one way alone", kind)
		}
		if k.Form == FormDecide && k.approve == nil {
			t.Errorf("%s has a form that nothing answers", kind)
		}
	}
	for _, f := range Filters[1:] {
		all = slices.DeleteFunc(all, func(kind string) bool { return slices.Contains(f.Kinds(), kind) })
	}
	if want := []string{"permission", "merging"}; !slices.Equal(all, want) {
		t.Errorf("under no filter are %q, want %q", all, want)
	}
	all = store.InboxKinds()
	for kind := range kinds {
		if !slices.Contains(all, kind) {
			t.Errorf("nothing finds items of %q", kind)
		}
	}
	if name, commands := Of(store.InboxItem{Kind: "unheard"}); name != "" || commands != nil || Cause(store.InboxItem{}) != "" {
		t.Errorf("a kind that is not known is %q, %q", name, commands)
	}
}

// TestTextsOfItems: the kind of a flag or suggestion comes before its text, and its words decide nothing.
func TestTextsOfItems(t *testing.T) {
	for _, tt := range []struct {
		item        store.InboxItem
		label, said string
		name        string
	}{
		{store.InboxItem{Kind: "flag", Severity: "blocking", Sort: "security", Text: "split: a"}, "blocking, security", "blocking, security: split: a", "C0"},
		{store.InboxItem{Kind: "suggestion", Sort: "refactor", Text: "split: a", Action: "task"}, "refactor", "refactor: split: a", "C0"},
		{store.InboxItem{Kind: "question", Text: "blocking, security: why?"}, "", "blocking, security: why?", "Q0"},
		{store.InboxItem{Kind: "dependency", TaskID: 7, Ref: store.Reference{ID: 9}, Text: "x"}, "", "x", "TASK-7"},
	} {
		name, _ := Of(tt.item)
		if Label(tt.item) != tt.label || Said(tt.item) != tt.said || name != tt.name {
			t.Errorf("%s: %q, %q, %q", tt.item.Kind, Label(tt.item), Said(tt.item), name)
		}
	}
}

// TestATitleIsWrittenOnce: an item whose text begins with its title has that in its head alone.
func TestATitleIsWrittenOnce(t *testing.T) {
	var b strings.Builder
	Item(&b, term.Screen{}, store.InboxItem{Kind: "proposal", Item: "TASK-8", Title: "Cache it", Text: "Cache it\n\nWhy: slow"}, false, time.Now())
	if got, want := b.String(), "TASK-8    proposal Cache it\n          Why: slow\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestABlockerNamesTheRetryThatReleasesIt: as it is only where there is a change to merge.
func TestABlockerNamesTheRetryThatReleasesIt(t *testing.T) {
	for action, want := range map[string]string{
		"":      `ralph resolve C3 "DECISION"`,
		"retry": `ralph retry 7 "HOW"`,
		"as is": `ralph retry 7 --as-is, ralph retry 7 "HOW"`,
	} {
		item := store.InboxItem{Kind: "blocker", TaskID: 7, Ref: store.Reference{ID: 3}, Action: action}
		if _, commands := Of(item); strings.Join(commands, ", ") != want {
			t.Errorf("%q: %q", action, commands)
		}
		merges := slices.ContainsFunc(kinds["blocker"].choices(item), func(c Choice) bool { return slices.Contains(c.Args, "--as-is") })
		if merges != (action == "as is") {
			t.Errorf("%q: merges as it is: %t", action, merges)
		}
	}
}
