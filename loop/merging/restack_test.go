package merging

import (
	"fmt"
	"strings"
	"testing"

	"ralph"
	"ralph/store"
)

// TestRestack: branches that stand on one that people have merged, squashed or rebased are rebuilt on the target.
func TestRestack(t *testing.T) {
	for name, tt := range map[string]struct {
		lands  func(y *yard, branch string)
		verify string
		why    string // the trouble; "" if the branch is rebuilt
	}{
		"merged": {func(y *yard, branch string) { y.git("merge", "-q", "--no-ff", "-m", "Merge", branch) }, "true", "-"},
		"squashed": {func(y *yard, branch string) {
			y.git("merge", "-q", "--squash", branch)
			y.git("commit", "-qm", "Squashed (#1)")
		}, "true", ""},
		"rebased": {func(y *yard, branch string) {
			y.write("c", "mine\n")
			y.git("commit", "-qam", "Mine")
			y.git("cherry-pick", "-m", "1", branch)
		}, "true", ""},
		"squashed, and changed since": {func(y *yard, branch string) {
			y.git("merge", "-q", "--squash", branch)
			y.git("commit", "-qm", "Squashed (#1)")
			y.write("a", edit(edit(lines("a"), 1, "first"), 8, "later"))
			y.git("commit", "-qam", "Later")
		}, "true", ""},
		"squashed, and the next one conflicts": {func(y *yard, branch string) {
			y.git("merge", "-q", "--squash", branch)
			y.git("commit", "-qm", "Squashed (#1)")
			y.write("a", edit(edit(lines("a"), 1, "first"), 2, "another"))
			y.git("commit", "-qam", "Later")
		}, "true", "it conflicts in a"},
		"squashed, and checked out": {func(y *yard, branch string) {
			y.git("merge", "-q", "--squash", branch)
			y.git("commit", "-qm", "Squashed (#1)")
			y.git("worktree", "add", "-q", y.t.TempDir(), "ralph/TASK-2-second")
		}, "true", "is checked out"},
		"squashed with something that breaks it": {func(y *yard, branch string) {
			y.git("merge", "-q", "--squash", branch)
			y.write("bad", "x\n")
			y.git("add", "bad")
			y.git("commit", "-qm", "Squashed (#1)")
		}, "! test -e bad || ! grep -q second a", "exits 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, tt.verify)
			y.Branch = true
			first := y.work("First", map[string]string{"a": edit(lines("a"), 1, "first")})
			y.merge()
			first = y.change(first.ID)
			var second ralph.Change
			y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) (err error) {
				second.TaskID, err = tx.AddTask(ralph.Task{Title: "Second", DependsOn: []int64{first.TaskID}, Priority: 2}, "human")
				return err
			}))
			base, err := y.Base(t.Context(), second.TaskID)
			y.no(err)
			made := y.made(base, "Second", map[string]string{"a": edit(edit(lines("a"), 1, "first"), 2, "second")})
			made.TaskID = second.TaskID
			second = y.queue("", made)
			y.merge()
			before := y.git("rev-parse", "ralph/TASK-2-second")
			tt.lands(y, "ralph/TASK-1-first")
			y.merge()
			now := y.git("rev-parse", "ralph/TASK-2-second")
			y.git("merge-base", "--is-ancestor", before, now) // no push is forced
			trouble := ""
			y.no(y.Store.View(t.Context(), func(tx *store.Tx) error {
				list, err := tx.InboxOf("trouble")
				for _, i := range list {
					trouble += i.Text
				}
				return err
			}))
			switch {
			case tt.why == "":
				if diff := y.git("diff", "main..."+now); strings.Count(diff, "\n+") != 2 || !strings.Contains(diff, "+second") {
					t.Errorf("the branch shows\n%s", diff)
				}
				var said []ralph.Comment
				y.no(y.Store.View(t.Context(), func(tx *store.Tx) (err error) {
					said, err = tx.Timeline(second.TaskID, store.CommentFilter{})
					return err
				}))
				if why := fmt.Sprint(said); !strings.Contains(why, "since main has TASK-1") || trouble != "" {
					t.Errorf("%q, %q\n%s\n%s", why, trouble, y.git("log", "--graph", "--oneline", now, "main"), y.git("diff", "main..."+now))
				}
				if y.change(second.ID).To != now {
					t.Error("those that stand on it begin with the old branch")
				}
				y.git("merge-tree", "--write-tree", "main", now)
			case now != before:
				t.Errorf("it was moved: %s", y.git("log", "--graph", "--oneline", now))
			case tt.why != "-" && !strings.Contains(trouble, tt.why):
				t.Errorf("the trouble is %q, want %q", trouble, tt.why)
			case tt.why == "-" && trouble != "":
				t.Error(trouble)
			}
			seen := len(y.checked)
			if y.merge(); len(y.checked) != seen || y.git("rev-parse", "ralph/TASK-2-second") != now {
				t.Error("it was looked at again")
			}
			next := int64(0) // a task that depends on the first begins without its branch
			y.no(y.Store.Tx(t.Context(), func(tx *store.Tx) (err error) {
				next, err = tx.AddTask(ralph.Task{Title: "Third", DependsOn: []int64{first.TaskID}, Priority: 2}, "human")
				return err
			}))
			if got, err := y.Base(t.Context(), next); err != nil || got != y.git("rev-parse", "main") {
				t.Errorf("it begins with %s, %v", got, err)
			}
		})
	}
}
