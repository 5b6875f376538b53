package merging

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
)

func TestNextStep(t *testing.T) {
	t.Parallel()
	on := Target{Point: "p", Tip: "t"}
	queued := ralph.Change{ID: 1, TaskID: 11, State: ralph.Queued}
	other := ralph.Change{ID: 2, TaskID: 12, State: ralph.Queued}
	building := ralph.Change{ID: 1, TaskID: 11, State: ralph.Building}
	merging := ralph.Change{ID: 1, TaskID: 11, State: ralph.Moving, From: "p", To: "c"}
	third := ralph.Change{ID: 3, TaskID: 13, State: ralph.Queued}
	late := ralph.Change{ID: 2, TaskID: 12, State: ralph.Moving, From: "p", To: "c"}
	built := func(b Built, of ...int64) *Built {
		if b.Target = on; of == nil {
			of = []int64{1}
		}
		b.Changes = of
		return &b
	}
	list := func(c ...ralph.Change) []ralph.Change { return c }
	for _, tt := range []struct {
		name    string
		q       Queue
		want    Action
		changes []int64
		reason  string
	}{
		{"an empty queue", Queue{Target: on}, Rest, nil, ""},
		{"one waits", Queue{Changes: list(queued, other), Target: on}, Build, []int64{1}, ""},
		{"several are a batch", Queue{Changes: list(queued, other, third), Batch: true, Target: on}, Build, []int64{1, 2, 3}, ""},
		{"a batch was refused", Queue{Changes: list(queued, other, third), Batch: true, Suspects: []int64{1, 2, 3}, Target: on}, Build, []int64{1, 2}, ""},
		{"the half of it was merged", Queue{Changes: list(third, other), Batch: true, Suspects: []int64{1, 2}, Target: on}, Build, []int64{2}, ""},
		{"all of it is gone", Queue{Changes: list(other, third), Batch: true, Suspects: []int64{1}, Target: on}, Build, []int64{2, 3}, ""},
		{"one that is merged alone waits behind another one", Queue{Changes: list(queued, other), Batch: true, Target: on, Alone: 12}, Build, []int64{2}, ""},
		{"one that is merged alone is worked on", Queue{Changes: list(queued), Target: on, Alone: 12}, Rest, nil, "TASK-12 is to be merged alone"},
		{"it is paused", Queue{Changes: list(queued), Target: on, Paused: "why"}, Rest, nil, "merging is paused: why"},
		{"the remote is waited for", Queue{Changes: list(merging), Waits: true}, Rest, nil, "waiting for the remote"},
		{"the target is gone", Queue{Changes: list(queued, other), Batch: true, Target: Target{Gone: "gone"}}, Block, []int64{1}, "gone"},
		{"a run was killed while it built", Queue{Changes: list(building, other), Target: on}, Requeue, []int64{1}, "killed"},
		{"it is built", Queue{Changes: list(building), Target: on, Built: built(Built{Commit: "c"})}, Verify, []int64{1}, ""},
		{"another one came meanwhile", Queue{Changes: list(other, building), Batch: true, Target: on, Built: built(Built{Commit: "c"})}, Verify, []int64{1}, ""},
		{"another one is merged alone now", Queue{Changes: list(building, other), Target: on, Alone: 12, Built: built(Built{Commit: "c", Verified: true})}, Build, []int64{2}, ""},
		{"it was built on another tip", Queue{Changes: list(building), Target: Target{Point: "p", Tip: "u"}, Built: built(Built{Commit: "c"})}, Build, []int64{1}, ""},
		{"another one was built", Queue{Changes: list(other), Target: on, Built: built(Built{Commit: "c"})}, Build, []int64{2}, ""},
		{"one of the batch was withdrawn", Queue{Changes: list(building), Batch: true, Target: on, Built: built(Built{Commit: "c", Verified: true}, 1, 2)}, Build, []int64{1}, ""},
		{"it conflicts", Queue{Changes: list(building), Target: on, Built: built(Built{Conflicts: []string{"a"}})}, SendBack, []int64{1}, "conflicts"},
		{"it is refused", Queue{Changes: list(building), Target: on, Built: built(Built{Commit: "c", Verified: true, Refused: "no"})}, SendBack, []int64{1}, "merged, it is refused: no"},
		{"they are refused together", Queue{Changes: list(queued, other), Batch: true, Target: on, Built: built(Built{Commit: "c", Verified: true, Refused: "no"}, 1, 2)}, Split, []int64{1, 2}, "no"},
		{"it holds", Queue{Changes: list(building), Target: on, Built: built(Built{Commit: "c", Verified: true})}, Move, []int64{1}, ""},
		{"they hold together", Queue{Changes: list(queued, other, third), Batch: true, Target: on, Built: built(Built{Commit: "c", Verified: true}, 1, 2)}, Move, []int64{1, 2}, ""},
		{"it was being merged, and merged", Queue{Changes: list(merging), Target: on, Reached: map[int64]bool{1: true}, Paused: "why"}, Complete, []int64{1}, ""},
		{"a batch was being merged, and merged", Queue{Changes: list(merging, late, third), Target: on, Reached: map[int64]bool{1: true}}, Complete, []int64{1, 2}, ""},
		{"it was being merged, and did not", Queue{Changes: list(merging, late), Target: on}, Move, []int64{1, 2}, ""},
		{"it was being merged, and is paused", Queue{Changes: list(merging), Target: on, Paused: "why"}, Requeue, []int64{1}, "could not be merged"},
		{"it was being merged, and something else was merged", Queue{Changes: list(merging), Target: Target{Point: "x"}}, Requeue, []int64{1}, "moved"},
	} {
		got := NextStep(tt.q)
		if got.Do != tt.want || !slices.Equal(ids(got.Changes), tt.changes) || !strings.Contains(got.Reason, tt.reason) || (got.Reason == "") != (tt.reason == "") {
			t.Errorf("%s: got %s of %v (%s), want %s of %v (%s)", tt.name, got.Do, ids(got.Changes), got.Reason, tt.want, tt.changes, tt.reason)
		}
	}
}

// TestWhatIsExpected is waited for, or verified early, before what is queued is merged, and while nothing is.
func TestWhatIsExpected(t *testing.T) {
	t.Parallel()
	const most = 8 * time.Second
	on, queued := Target{Point: "p", Tip: "t"}, []ralph.Change{{ID: 1, State: ralph.Queued}}
	for _, tt := range []struct {
		name  string
		crowd Crowd
		want  Action // where something is queued; nothing is awaited with the same, or else rested
		wait  time.Duration
	}{
		{"nothing", Crowd{Most: most}, Build, 0},
		{"a check is about to begin", Crowd{Most: most, Enters: true}, Await, 2 * time.Second},
		{"it has not begun for a while", Crowd{Most: most, Enters: true, Since: time.Second}, Await, time.Second},
		{"it does not come soon", Crowd{Most: most, Enters: true, Since: 2 * time.Second}, Build, 0},
		{"one is being checked", Crowd{Most: most, Others: 1}, Early, 0},
		{"one is being checked, and another one about to be", Crowd{Most: most, Others: 1, Enters: true}, Await, 2 * time.Second},
		{"what is queued is known to pass", Crowd{Most: most, Others: 1, Enters: true, Known: true}, Build, 0},
		{"nobody may wait", Crowd{Others: 1, Enters: true, Missing: true, Left: time.Second}, Build, 0},
		{"they did not pass together", Crowd{Most: most, Others: 1, Enters: true, Tried: true, Left: time.Second}, Build, 0},
		{"they passed, and one is not queued yet", Crowd{Most: most, Others: 1, Tried: true, Missing: true, Left: time.Second}, Await, time.Second},
		{"that one takes too long", Crowd{Most: most, Others: 1, Tried: true, Missing: true}, Build, 0},
	} {
		crowd := tt.crowd
		if got := NextStep(Queue{Changes: queued, Batch: true, Target: on, Crowd: &crowd}); got.Do != tt.want || got.Wait != tt.wait {
			t.Errorf("%s: %s for %s, want %s for %s", tt.name, got.Do, got.Wait, tt.want, tt.wait)
		}
		idle := tt.want
		if idle == Build {
			idle = Rest
		}
		if got := NextStep(Queue{Batch: true, Crowd: &crowd}); got.Do != idle {
			t.Errorf("%s, while nothing is queued: %s, want %s", tt.name, got.Do, idle)
		}
		built := &Built{Changes: []int64{1}, Target: on, Commit: "c"}
		if got := NextStep(Queue{Changes: queued, Target: on, Built: built, Crowd: &crowd}); got.Do != Verify {
			t.Errorf("%s, while something is built: %s", tt.name, got.Do)
		}
	}
}

// TestStanding names commits by their history: a commit is below another
// one if that begins with its name.
func TestStanding(t *testing.T) {
	t.Parallel()
	below := func(commit, of string) (bool, error) { return strings.HasPrefix(of, commit), nil }
	for _, tt := range []struct {
		name   string
		refs   Refs
		remote bool
		want   Stand
	}{
		{"nothing has been merged", Refs{Local: "a"}, false, Stand{Target: Target{Tip: "a"}}},
		{"what was merged is followed", Refs{Point: "ab", Local: "ab", Seen: "ab"}, false, Stand{Target: Target{Point: "ab", Tip: "ab"}}},
		{"people went on", Refs{Point: "ab", Local: "abc", Seen: "ab"}, false, Stand{Target: Target{Point: "ab", Tip: "abc"}}},
		{"it could not follow", Refs{Point: "ab", Local: "a", Seen: "a"}, false, Stand{Target: Target{Point: "ab", Tip: "ab"}}},
		{"it could not follow, and was never seen", Refs{Point: "ab", Local: "a"}, false, Stand{Target: Target{Point: "ab", Tip: "ab"}}},
		{"people committed beside it", Refs{Point: "ab", Local: "ac", Seen: "a"}, false, Stand{Target: Target{Point: "ab", Tip: "ab", Also: "ac"}}},
		{"people took it back", Refs{Point: "ab", Local: "a", Seen: "ab"}, false, Stand{Target: Target{Point: "a", Tip: "a"}, Rewritten: true}},
		{"people amended it", Refs{Point: "ab", Local: "ac", Seen: "ab"}, false, Stand{Target: Target{Point: "ac", Tip: "ac"}, Rewritten: true}},
		{"people rebased what it was merged into before it could follow", Refs{Point: "abL", Local: "ac", Seen: "ab"}, false, Stand{Target: Target{Point: "abL", Tip: "abL", Also: "ac"}}},
		{"people went back behind that", Refs{Point: "abL", Local: "a", Seen: "ab"}, false, Stand{Target: Target{Point: "a", Tip: "a"}, Rewritten: true}},
		{"the branch is gone", Refs{Point: "ab", Seen: "ab"}, false, Stand{Target: Target{Point: "ab", Gone: "the branch main is gone"}}},
		{"a remote", Refs{Point: "ab", Local: "ac"}, true, Stand{Target: Target{Point: "ab", Tip: "ab"}}},
		{"a remote that is ahead", Refs{Point: "ab", Local: "a"}, true, Stand{Target: Target{Point: "ab", Tip: "ab"}}},
		{"a remote without the branch", Refs{Local: "a"}, true, Stand{Target: Target{Gone: "the remote has no branch main"}}},
	} {
		got, err := Standing(tt.refs, "main", tt.remote, below)
		if err != nil || got != tt.want {
			t.Errorf("%s: got %+v, %v\nwant %+v", tt.name, got, err, tt.want)
		}
	}
	failing := func(string, string) (bool, error) { return false, ralph.ErrNotFound }
	if _, err := Standing(Refs{Point: "ab", Local: "a"}, "main", false, failing); err == nil {
		t.Error("what cannot be looked at is no answer")
	}
}
