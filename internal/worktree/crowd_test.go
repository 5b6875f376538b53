package worktree_test

import (
	"fmt"
	"strings"
	"testing"
)

// bomb commits a tree of two entries, each again such a tree, that many times: 2^depth paths.
const bomb = `b=$(printf x | git hash-object -w --stdin); t=$(printf "100644 blob $b\tx\n" | git mktree)
for i in $(seq %d); do t=$(printf "040000 tree $t\ta\n040000 tree $t\tb\n" | git mktree); done
c=$(git commit-tree -p HEAD -m bomb $t); %s`

// TestCrowdedCommits: a .git with commits of more paths than an index holds is replaced, at HEAD or being merged; the
// files in the folder count.
func TestCrowdedCommits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		depth   int
		then    string
		renewed bool
	}{
		"at HEAD":                      {24, `git update-ref HEAD $c`, true},
		"before HEAD":                  {24, `git update-ref HEAD $(git commit-tree -p $c -m fine HEAD^{tree})`, false},
		"being merged":                 {24, `echo $c > .git/MERGE_HEAD`, true},
		"behind a tag":                 {24, `git tag t $c`, false},
		"few enough":                   {10, `git update-ref HEAD $c`, false},
		"in a repository of its own":   {24, `git update-ref HEAD $c; echo /elsewhere > .git/objects/info/alternates`, true},
		"many commits of few paths":    {0, `for i in 1 2 3; do echo $i > f; git add f; git commit -qm $i; done`, false},
		"a merge of what is merged":    {0, `git commit -q --allow-empty -m a; git checkout -q -b x HEAD~1; git commit -q --allow-empty -m b; git merge -q -m m HEAD@{1}`, false},
		"a history without a relation": {24, `git update-ref HEAD $(git commit-tree -m root $t)`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, clone := cloned(t, "true")
			sh(t, clone.Top(), "set -e; "+fmt.Sprintf(bomb, c.depth, c.then)+"\necho kept > kept.txt")
			s, err := clone.Snapshot(t.Context(), clone.Scratch())
			if err != nil {
				t.Fatal(err)
			}
			var why string
			if len(s.Untaken) > 0 {
				why = s.Untaken[0].Why
			}
			if got := strings.Contains(why, "has a commit of more than 1000000 files and folders: ralph has put a new one"); got != c.renewed {
				t.Errorf("renewed: %v; %+v", got, s.Untaken)
			}
		})
	}
}
