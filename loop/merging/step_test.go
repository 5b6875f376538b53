package merging

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
)

func TestNextStep(t *testing.T) {
	t.Parallel()
	on, now := Target{Point: "p", Tip: "t"}, time.Now()
	change := func(id int64, state ralph.ChangeState) ralph.Change {
		return ralph.Change{ID: id, TaskID: 10 + id, State: state, Updated: ralph.At(now)}
	}
	queued, other, third := change(1, ralph.Queued), change(2, ralph.Queued), change(3, ralph.Queued)
	verifying, also := change(1, ralph.Verifying), change(2, ralph.Verifying)
	ahead, behind := change(1, ralph.Checking), change(3, ralph.Checking)
	patient := other
	patient.Updated = ralph.At(now.Add(-time.Hour))
	move := func(id int64, from, to string) ralph.Change {
		c := change(id, ralph.Moving)
		c.From, c.To = from, to
		return c
	}
	moving := move(1, "p", "c")
	list := func(c ...ralph.Change) []ralph.Change { return c }
	// built is a stack of changes; the first ones are known to pass.
	built := func(known int, of ...ralph.Change) *Stack {
		s := &Stack{Target: on, Of: ids(of), Known: known}
		for _, c := range of {
			s.Links = append(s.Links, Link{Change: c})
		}
		return s
	}
	verified := func(n int, refused string, of ...ralph.Change) *Stack {
		s := built(0, of...)
		s.Verified, s.Refused = n, refused
		return s
	}
	without := func(s *Stack, n int) *Stack { // as the others conflict
		left := s.Links[n].Change
		s.Links, s.Left = s.Links[:n], &left
		return s
	}
	const minute = time.Minute
	for _, tt := range []struct {
		name    string
		q       Queue
		want    Action
		changes []int64
		reason  string
	}{
		{"an empty queue", Queue{Target: on}, Rest, nil, ""},
		{"one is being checked", Queue{Line: list(ahead), Target: on}, Rest, nil, ""},
		{"one waits", Queue{Line: list(queued), Target: on}, Build, []int64{1}, ""},
		{"several wait", Queue{Line: list(queued, other, third), Target: on}, Build, []int64{1, 2, 3}, ""},
		{"each has a branch of its own", Queue{Line: list(queued, other), Branch: true, Single: true, Target: on}, Build, []int64{1}, ""},
		{"one that is merged alone", Queue{Line: list(other, queued), Target: on, Alone: 12}, Build, []int64{2}, ""},
		{"one that is merged alone is worked on", Queue{Line: list(queued), Target: on, Alone: 12}, Rest, nil, "TASK-12 is to be merged alone"},
		{"one that is merged alone is being checked", Queue{Line: list(change(2, ralph.Checking), queued), Target: on, Alone: 12}, Rest, nil, "TASK-12 is to be merged alone"},
		{"it is paused", Queue{Line: list(queued), Target: on, Paused: "why"}, Rest, nil, "merging is paused: why"},
		{"the remote is waited for", Queue{Line: list(moving), Waits: true}, Rest, nil, "waiting for the remote"},
		{"the remote is waited for, and others wait", Queue{Line: list(moving, other), Waits: true}, Rest, nil, "waiting for the remote"},
		{"the remote is waited for, and nothing waits", Queue{Line: list(ahead), Waits: true}, Rest, nil, ""},
		{"the target is gone", Queue{Line: list(queued, other), Target: Target{Gone: "gone"}}, Block, []int64{1}, "gone"},
		{"a run was killed while it verified", Queue{Line: list(verifying, other), Target: on}, Requeue, []int64{1}, "killed"},

		{"all are known to pass", Queue{Line: list(queued, other), Target: on, Stack: built(2, queued, other)}, Move, []int64{1, 2}, ""},
		{"the first is known to pass", Queue{Line: list(queued, other), Target: on, Stack: built(1, queued, other)}, Move, []int64{1}, ""},
		{"one that is known to pass, behind one that is being checked", Queue{Line: list(ahead, other), Target: on, Stack: built(1, other)}, Move, []int64{2}, ""},
		{"none is known to pass", Queue{Line: list(queued, other), Target: on, Stack: built(0, queued, other)}, Verify, []int64{1, 2}, ""},
		{"those are merged one by one", Queue{Line: list(queued, other), Single: true, Target: on, Stack: built(0, queued, other)}, Verify, []int64{1}, ""},
		{"one that was left out is next", Queue{Line: list(queued, other), Most: 1, Target: on}, Build, []int64{1}, ""},
		{"it waits for one ahead", Queue{Line: list(ahead, other), Wait: minute, Now: now, Target: on, Stack: built(0, other)}, Await, nil, ""},
		{"it has waited for one ahead", Queue{Line: list(ahead, patient, third), Wait: minute, Now: now, Target: on, Stack: built(0, patient, third)}, Verify, []int64{2, 3}, ""},
		{"it does not wait for one behind", Queue{Line: list(queued, other, behind), Wait: minute, Now: now, Target: on, Stack: built(0, queued, other)}, Verify, []int64{1, 2}, ""},
		{"those before one that is being checked", Queue{Line: list(queued, change(4, ralph.Checking), other), Wait: minute, Now: now, Target: on, Stack: built(0, queued, other)}, Verify, []int64{1}, ""},
		{"two before one that is being checked", Queue{Line: list(queued, other, change(4, ralph.Checking), third), Wait: minute, Now: now, Target: on, Stack: built(0, queued, other, third)}, Verify, []int64{1, 2}, ""},
		{"nobody may wait", Queue{Line: list(ahead, other), Now: now, Target: on, Stack: built(0, other)}, Verify, []int64{2}, ""},
		{"another one came before it is verified", Queue{Line: list(queued, other), Target: on, Stack: built(0, queued)}, Build, []int64{1, 2}, ""},
		{"another one came meanwhile", Queue{Line: list(verifying, other), Target: on, Stack: verified(1, "", verifying)}, Move, []int64{1}, ""},
		{"another one is merged alone now", Queue{Line: list(other, verifying), Target: on, Alone: 12, Stack: verified(1, "", verifying)}, Build, []int64{2}, ""},
		{"it was built on another tip", Queue{Line: list(verifying), Target: Target{Point: "p", Tip: "u"}, Stack: verified(1, "", verifying)}, Build, []int64{1}, ""},
		{"another one was built", Queue{Line: list(other), Target: on, Stack: built(1, queued)}, Build, []int64{2}, ""},
		{"one of those verified was withdrawn", Queue{Line: list(verifying), Target: on, Stack: verified(2, "", verifying, also)}, Build, []int64{1}, ""},
		{"it conflicts", Queue{Line: list(queued), Target: on, Stack: without(built(0, queued), 0)}, SendBack, []int64{1}, "conflicts"},
		{"another one conflicts with it", Queue{Line: list(queued, other), Target: on, Stack: without(built(0, queued, other), 1)}, Verify, []int64{1}, ""},
		{"they hold together", Queue{Line: list(verifying, also, third), Target: on, Stack: verified(2, "", verifying, also)}, Move, []int64{1, 2}, ""},
		{"they are refused together", Queue{Line: list(verifying, also, third), Target: on, Stack: verified(3, "no", verifying, also, third)}, Build, []int64{1, 2}, "no"},
		{"two are refused together", Queue{Line: list(verifying, also), Target: on, Stack: verified(2, "no", verifying, also)}, Build, []int64{1}, "no"},
		{"it is refused", Queue{Line: list(verifying, other), Target: on, Stack: verified(1, "no", verifying, other)}, SendBack, []int64{1}, "merged, it is refused: no"},

		{"it was being merged, and merged", Queue{Line: list(moving), Target: on, Reached: true, Paused: "why"}, Complete, []int64{1}, ""},
		{"several were, together", Queue{Line: list(moving, move(2, "p", "c"), third), Target: on, Reached: true}, Complete, []int64{1, 2}, ""},
		{"several were, one by one", Queue{Line: list(moving, move(2, "c", "d"), third), Target: on, Reached: true}, Complete, []int64{1, 2}, ""},
		{"each into a branch of its own", Queue{Line: list(moving, move(2, "", "c")), Branch: true, Target: on, Reached: true}, Complete, []int64{1}, ""},
		{"it was being merged, and did not", Queue{Line: list(moving, move(2, "c", "d")), Target: on}, Move, []int64{1, 2}, ""},
		{"it was being merged, and is paused", Queue{Line: list(moving), Target: on, Paused: "why"}, Requeue, []int64{1}, "could not be merged"},
		{"it was being merged, and something else was merged", Queue{Line: list(moving), Target: Target{Point: "x"}}, Requeue, []int64{1}, "moved"},
		{"the machine that built it did not push it", Queue{Line: list(moving), Target: on, Elsewhere: true}, Requeue, []int64{1}, "did not push"},
	} {
		got := NextStep(tt.q)
		if got.Do != tt.want || !slices.Equal(ids(got.Changes), tt.changes) || !strings.Contains(got.Reason, tt.reason) || (got.Reason == "") != (tt.reason == "") {
			t.Errorf("%s: got %s of %v (%s), want %s of %v (%s)", tt.name, got.Do, ids(got.Changes), got.Reason, tt.want, tt.changes, tt.reason)
		}
	}
}

// TestHowManyAreMergedNext: fewer while one of them is at fault, and one that was left out by itself.
func TestHowManyAreMergedNext(t *testing.T) {
	t.Parallel()
	two := make([]ralph.Change, 2)
	refused, whole := &Stack{Refused: "no", Links: make([]Link, 4)}, &Stack{Links: make([]Link, 2)}
	left := &Stack{Links: make([]Link, 2), Left: &ralph.Change{}}
	for _, tt := range []struct {
		name  string
		do    Action
		stack *Stack
		most  int
		want  int
	}{
		{"they are built for the first time", Build, nil, 8, 8},
		{"they are built anew", Build, whole, 8, 8},
		{"refused together, they are halved", Build, refused, 8, 2},
		{"they are verified", Verify, whole, 8, 8},
		{"they are merged", Move, whole, 8, 4},
		{"a move is repeated after a kill", Move, nil, 8, 4},
		{"they are merged, and one is left out", Move, left, 8, 1},
		{"some of them are merged, and one is left out", Move, &Stack{Links: make([]Link, 3), Left: left.Left}, 8, 4},
		{"one is sent back", SendBack, refused, 8, 0},
	} {
		if got := (Queue{Most: tt.most, Stack: tt.stack}).after(Step{Do: tt.do, Changes: two}); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestTheLineAhead of a change: by place, with the task first that is merged alone, and whether it can be merged.
func TestTheLineAhead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		tasks []int64 // of the line, by place; 5 is the change's own
		alone int64
		rests bool
		ahead []int64
		lands bool
	}{
		{"it is the first", []int64{5, 1, 2}, 0, false, nil, true},
		{"two are ahead", []int64{2, 1, 5, 3}, 0, false, []int64{2, 1}, true},
		{"two are ahead, and merging rests", []int64{2, 1, 5, 3}, 0, true, []int64{2, 1}, false},
		{"it has left the line", []int64{1, 2}, 0, false, nil, true},
		{"it is merged alone", []int64{2, 1, 5, 3}, 5, false, nil, false},
		{"one ahead is merged alone", []int64{2, 1, 5, 3}, 1, false, []int64{1, 2}, true},
		{"one behind is merged alone", []int64{2, 1, 5, 3}, 3, false, []int64{3, 2, 1}, true},
		{"one that is worked on is merged alone", []int64{2, 1, 5, 3}, 4, false, []int64{2, 1}, false},
		{"one is merged alone, and it has left the line", []int64{1, 2}, 1, false, nil, false},
	} {
		var line []ralph.Change
		for _, id := range tt.tasks {
			line = append(line, ralph.Change{ID: id, TaskID: id, SessionID: fmt.Sprint(id)})
		}
		got := before(line, "5", tt.alone, tt.rests)
		if !slices.Equal(ids(got.ahead), tt.ahead) || got.lands != tt.lands {
			t.Errorf("%s: ahead are %v, landing: %t; want %v, %t", tt.name, ids(got.ahead), got.lands, tt.ahead, tt.lands)
		}
	}
}

// TestTheLineAheadHasChanged once one of it is another one, or has other work, or none of it can be merged any more.
func TestTheLineAheadHasChanged(t *testing.T) {
	t.Parallel()
	line := func(lands bool, names ...string) (s standing) {
		for _, name := range names {
			s.ahead = append(s.ahead, ralph.Change{SessionID: name[:1], Head: name[1:], State: ralph.ChangeState(name)})
		}
		s.lands = lands
		return s
	}
	was := line(true, "a1", "b1")
	queued := line(true, "a1", "b1")
	queued.ahead[0].State = ralph.Queued
	for _, tt := range []struct {
		name string
		now  standing
		same bool
	}{
		{"nothing has changed", was, true},
		{"one is queued now", queued, true},
		{"one has other work", line(true, "a1", "b2"), false},
		{"another one has the same work", line(true, "c1", "b1"), false},
		{"one has left", line(true, "b1"), false},
		{"they have changed places", line(true, "b1", "a1"), false},
		{"merging is paused", line(false, "a1", "b1"), false},
	} {
		if got := was.same(tt.now); got != tt.same {
			t.Errorf("%s: it is the same: %t", tt.name, got)
		}
	}
}

// TestTheNextStepOfACheck: a change waits for those ahead with which it conflicts or fails, as long as that may help.
func TestTheNextStepOfACheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		t    Trial
		want Action
	}{
		{"nothing is ahead", Trial{}, Verify},
		{"it passed", Trial{Verdict: Passed, Passed: true}, Pass},
		{"it failed", Trial{Verdict: Refused, Alone: Refused}, Refuse},
		{"it conflicts with the target", Trial{Conflicts: true}, SendBack},
		{"it conflicts with the target, after it has passed", Trial{Conflicts: true, Passed: true, Late: true}, SendBack},
		{"the target has moved", Trial{Passed: true, Moved: true}, Verify},
		{"the target has moved, and it is late", Trial{Passed: true, Moved: true, Late: true}, Pass},
		{"it fails since the target has moved", Trial{Verdict: Refused, Passed: true, Moved: true}, SendBack},
		{"it fails since one ahead has left", Trial{Verdict: Refused, Alone: Refused, Passed: true}, Refuse},
		{"it failed with some that have landed meanwhile", Trial{Verdict: Refused}, Verify},

		{"some are ahead", Trial{Behind: true, Lands: true}, Verify},
		{"it passed with them, before they were verified", Trial{Behind: true, Lands: true, Verdict: Passed, Passed: true}, Await},
		{"it passed with them", Trial{Behind: true, Lands: true, Known: true, Verdict: Passed, Passed: true}, Pass},
		{"it passed with them, and it is late", Trial{Behind: true, Lands: true, Late: true, Verdict: Passed, Passed: true}, Pass},
		{"it passed with them, and they do not land", Trial{Behind: true, Verdict: Passed, Passed: true}, Pass},
		{"it failed with them", Trial{Behind: true, Lands: true, Verdict: Refused}, Verify},
		{"it failed with them, and it is late", Trial{Behind: true, Lands: true, Late: true, Verdict: Refused}, Verify},
		{"it failed alone, too", Trial{Behind: true, Lands: true, Verdict: Refused, Alone: Refused}, Refuse},
		{"it passed alone", Trial{Behind: true, Lands: true, Verdict: Refused, Alone: Passed, Passed: true}, Await},
		{"it passed alone, and it is late", Trial{Behind: true, Lands: true, Late: true, Verdict: Refused, Alone: Passed, Passed: true}, Pass},
		{"it passed alone, and they do not land", Trial{Behind: true, Verdict: Refused, Alone: Passed, Passed: true}, Pass},

		{"it conflicts with one ahead", Trial{Clashes: true, Lands: true}, Await},
		{"it conflicts with one ahead, and it is late", Trial{Clashes: true, Lands: true, Late: true}, Verify},
		{"it conflicts with one that does not land", Trial{Clashes: true}, Verify},
		{"… and failed alone", Trial{Clashes: true, Alone: Refused}, Refuse},
		{"… and passed alone", Trial{Clashes: true, Alone: Passed, Passed: true}, Pass},
		{"… and passed otherwise, and it is late", Trial{Clashes: true, Late: true, Passed: true}, Pass},
	} {
		if got := tt.t.Next(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
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
		{"the branch is gone", Refs{Point: "ab", Seen: "ab"}, false, Stand{Target: Target{Point: "ab", Gone: "the branch main is gone: create it again (`git branch main ab`), or set merge.into to the branch with its work"}}},
		{"a remote", Refs{Point: "ab", Local: "ac"}, true, Stand{Target: Target{Point: "ab", Tip: "ab"}}},
		{"a remote that is ahead", Refs{Point: "ab", Local: "a"}, true, Stand{Target: Target{Point: "ab", Tip: "ab"}}},
		{"a remote without the branch", Refs{Local: "a"}, true, Stand{Target: Target{Gone: "the remote has no branch main"}}},
	} {
		got, err := Standing(tt.refs, "main", tt.remote, below)
		if err != nil || got != tt.want {
			t.Errorf("%s: got %+v, %v\nwant %+v", tt.name, got, err, tt.want)
		}
	}
	asked := 0
	failing := func(string, string) (bool, error) { // the first time
		if asked++; asked > 1 {
			return true, nil
		}
		return false, ralph.ErrNotFound
	}
	if _, err := Standing(Refs{Point: "ab", Local: "a", Seen: "a"}, "main", false, failing); err == nil {
		t.Error("a failure was taken for an answer")
	}
}
