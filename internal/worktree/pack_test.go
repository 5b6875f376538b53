package worktree_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// TestManyLooseObjectsArePacked: and few are not, nothing is lost, and unreachable objects stay.
func TestManyLooseObjectsArePacked(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, `git init -q -b main; git commit -q --allow-empty -m x
		git update-ref refs/ralph/changes/one HEAD; echo unreachable | git hash-object -w --stdin >id`)
	tree := open(t, dir)
	loose := func() int {
		names, err := filepath.Glob(filepath.Join(dir, ".git/objects/??/*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	few := loose()
	if err := tree.Pack(t.Context()); err != nil || loose() != few {
		t.Fatalf("%d of %d loose objects are left: %v", loose(), few, err)
	}
	many := "" // objects of the folder that is counted
	for i, n := 0, 0; n < 20; i++ {
		content := fmt.Sprintln(i)
		if plumbing.ComputeHash(plumbing.BlobObject, []byte(content))[0] == 0x17 {
			many += fmt.Sprintf("echo %d | git hash-object -w --stdin; ", i)
			n++
		}
	}
	sh(t, dir, many)
	if err := tree.Pack(t.Context()); err != nil || loose() != 0 {
		t.Fatalf("%d loose objects are left: %v", loose(), err)
	}
	sh(t, dir, "git cat-file -e $(cat id); git rev-parse --verify -q refs/ralph/changes/one; git fsck --full 2>&1")
}
