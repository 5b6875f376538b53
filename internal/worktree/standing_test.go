package worktree_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/internal/worktree"
)

var anyID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// TestStanding: the state in which a session left the repository, whatever it did.
func TestStanding(t *testing.T) {
	base := "git init -q -b main; echo a > a; git add a; git commit -qm one; echo b >> a; git commit -qam two"
	main := ralph.Standing{Git: true, Branch: "main", Commit: "x", Began: "main"}
	with := func(change func(*ralph.Standing)) ralph.Standing {
		s := main
		change(&s)
		return s
	}
	two := ralph.Commit{ID: "x", Subject: "two", Author: "a", From: "main"}
	for _, tt := range []struct {
		name, before, session string
		theirs                []string
		want                  ralph.Standing
	}{
		{"nothing", base, "true", nil, main},
		{"uncommitted files", base, "echo x > new; echo y >> a", nil, with(func(s *ralph.Standing) { s.Uncommitted = 2 })},
		{"before the first commit", "git init -q -b main", "echo x > new", nil, ralph.Standing{Git: true, Branch: "main", Began: "main", Uncommitted: 1}},
		{"the first commit", "git init -q -b main", "echo x > new; git add .; git commit -qm first", nil, main},
		{"a commit", base, "git commit -q --allow-empty -m three", nil, main},
		{"another branch", base, "git switch -qc side; git commit -q --allow-empty -m three", nil, with(func(s *ralph.Standing) { s.Branch, s.Switched = "side", true })},
		{"a detached HEAD", base, "git switch -q --detach", nil, with(func(s *ralph.Standing) { s.Branch, s.Switched = "", true })},
		{
			"a detached HEAD from the beginning", base + "; git switch -q --detach", "git commit -q --allow-empty -m three", nil,
			with(func(s *ralph.Standing) { s.Branch, s.Began = "", "" }),
		},
		{"a branch that was renamed", base, "git branch -m master", nil, with(func(s *ralph.Standing) { s.Branch, s.Switched = "master", true })},
		{
			"work on another branch, and back", base, "git switch -qc side; git commit -q --allow-empty -m three; git commit -q --allow-empty -m four; git switch -q main", nil,
			with(func(s *ralph.Standing) { s.Aside = []ralph.Aside{{Branch: "side", Commits: 2}} }),
		},
		{"work on another branch that was merged", base, "git switch -qc side; git commit -q --allow-empty -m three; git switch -q main; git merge -q side", nil, main},
		{"a branch moved to a commit of people's", base + "; git branch old main~1", "git branch -f old main", nil, main},
		{"moved back", base, "git reset -q --hard HEAD~1", nil, with(func(s *ralph.Standing) { s.Lost = []ralph.Commit{two} })},
		{"moved back, another branch has it", base + "; git branch keep", "git reset -q --hard HEAD~1", nil, with(func(s *ralph.Standing) { s.Lost = []ralph.Commit{two} })},
		{
			"moved back behind a graft", base, "git reset -q --hard HEAD~1; git commit -q --allow-empty -m three; git rev-parse main main~1 main@{2} | paste -sd' ' > .git/info/grafts", nil,
			with(func(s *ralph.Standing) { s.Lost = []ralph.Commit{two} }),
		},
		{
			"moved back behind a replaced commit", base, "git reset -q --hard HEAD~1; git commit -q --allow-empty -m three; git replace --graft main main~1 main@{2}; git reflog expire --expire=now --all", nil,
			with(func(s *ralph.Standing) {
				s.Lost = []ralph.Commit{two}
				s.Aside = []ralph.Aside{{Branch: "replace/x", Commits: 1}}
			}),
		},
		{
			"moved back, and the commit replaced by one that is there", base, "old=$(git rev-parse HEAD); git reset -q --hard HEAD~1; git replace $old HEAD", nil,
			with(func(s *ralph.Standing) { s.Lost = []ralph.Commit{two} }),
		},
		{
			"a secret in the first commit", "git init -q -b main; echo y > .env; git config log.showRoot false", "git add .env; git commit -qm all",
			[]string{".env"},
			with(func(s *ralph.Standing) { s.Taken, s.Secrets = []string{".env"}, []string{".env"} }),
		},
		{"amended", base, "git commit -q --amend -m better", nil, with(func(s *ralph.Standing) { s.Lost = []ralph.Commit{two} })},
		{
			"another branch was deleted", base + "; git switch -qc side; git commit -q --allow-empty -m theirs; git switch -q main", "git branch -qD side", nil,
			with(func(s *ralph.Standing) { s.Lost = []ralph.Commit{{ID: "x", Subject: "theirs", Author: "a"}} }),
		},
		{"a merged branch was deleted", base + "; git branch side", "git branch -qd side", nil, main},
		{"a branch that a tag has too", base + "; git switch -qc side; git commit -q --allow-empty -m theirs; git tag v1; git switch -q main", "git branch -qD side", nil, main},
		{
			"a tag was deleted", base + "; git switch -qc side; git commit -q --allow-empty -m theirs; git tag -m v1 v1; git switch -q main; git branch -qD side", "git tag -d v1", nil,
			with(func(s *ralph.Standing) { s.Lost = []ralph.Commit{{ID: "x", Subject: "theirs", Author: "a"}} }),
		},
		{"a remote's branch went on", base + "; git update-ref refs/remotes/origin/main main", "git update-ref refs/remotes/origin/main main~1", nil, main},
		{
			"ralph's own refs hold nothing", base + "; git update-ref refs/ralph/snapshots/1 main", "git reset -q --hard HEAD~1", nil,
			with(func(s *ralph.Standing) { s.Lost = []ralph.Commit{two} }),
		},
		{
			"lost and pruned", base, "git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now", nil,
			with(func(s *ralph.Standing) { s.Lost = []ralph.Commit{{ID: "x", From: "main"}} }),
		},
		{"stashed", base, "echo x >> a; git stash -qm mine", nil, with(func(s *ralph.Standing) { s.Stashes = []string{"On main: mine"} })},
		{
			"a person's stashes were dropped", base + "; echo x >> a; git stash -qm one; echo y >> a; git stash -qm two", "git stash clear", nil,
			with(func(s *ralph.Standing) {
				s.Lost = []ralph.Commit{{ID: "x", Subject: "On main: one", Author: "a"}, {ID: "x", Subject: "On main: two", Author: "a"}}
			}),
		},
		{
			"another stash upon a person's", base + "; echo x >> a; git stash -qm one", "echo y >> a; git stash -qm two", nil,
			with(func(s *ralph.Standing) { s.Stashes = []string{"On main: two"} }),
		},
		{
			"a person's file was committed", base + "; echo x > notes; echo y > .env; echo z >> a", "git add -A; git commit -qm all",
			[]string{".env", "a", "notes", "other"},
			with(func(s *ralph.Standing) { s.Taken, s.Secrets = []string{".env", "a", "notes"}, []string{".env"} }),
		},
		{
			"and that was undone", base + "; echo y > .env", "git add -A; git commit -qm all; git reset -q --mixed HEAD~1",
			[]string{".env"},
			with(func(s *ralph.Standing) { s.Uncommitted = 1 }),
		},
		{
			"and removed by another commit", base + "; echo y > .env", "git add -A; git commit -qm all; git rm -q --cached .env; git commit -qm oops",
			[]string{".env"},
			with(func(s *ralph.Standing) { s.Uncommitted, s.Taken, s.Secrets = 1, []string{".env"}, []string{".env"} }),
		},
		{
			"on another branch", base + "; echo y > .env", "git switch -qc side; git add -A; git commit -qm all; git switch -q main",
			[]string{".env"},
			with(func(s *ralph.Standing) {
				s.Taken, s.Secrets, s.Aside = []string{".env"}, []string{".env"}, []ralph.Aside{{Branch: "side", Commits: 1}}
			}),
		},
		{
			"a secret in a ref that is no branch", base + "; echo y > .env", "git add -A; git commit -qm all; git update-ref refs/notes/x HEAD; git reset -q HEAD~1",
			[]string{".env"},
			with(func(s *ralph.Standing) {
				s.Uncommitted, s.Taken, s.Secrets, s.Aside = 1, []string{".env"}, []string{".env"}, []ralph.Aside{{Branch: "notes/x", Commits: 1}}
			}),
		},
		{
			"a secret that was pushed", base + "; echo y > .env; echo y > b", "git add -A; git commit -qm all; git update-ref refs/remotes/origin/x HEAD; git reset -q HEAD~1",
			[]string{".env", "b"},
			with(func(s *ralph.Standing) { s.Uncommitted, s.Secrets = 2, []string{".env"} }),
		},
		{
			"an ignored secret", base + "; echo .env > .gitignore; git add .; git commit -qm ignore; echo y > .env", "git add -f .env; git commit -qm all",
			[]string{".env"},
			with(func(s *ralph.Standing) { s.Taken, s.Secrets = []string{".env"}, []string{".env"} }),
		},
		{
			"a secret that people have committed", base + "; echo y > .env; git add .env; git commit -qm env; echo z > .env", "git commit -qam all",
			[]string{".env"},
			with(func(s *ralph.Standing) { s.Taken = []string{".env"} }),
		},
		{"names with odd letters", base + "; echo y > 'ä b'", "git add -A; git commit -qm all", []string{"ä b"}, with(func(s *ralph.Standing) { s.Taken = []string{"ä b"} })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, scratch := t.TempDir(), t.TempDir()
			sh(t, dir, tt.before)
			tree, err := worktree.Open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			before, err := tree.Snapshot(t.Context(), scratch)
			if err != nil {
				t.Fatal(err)
			}
			sh(t, dir, tt.session)
			now, err := tree.Look(t.Context(), scratch)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tree.Standing(t.Context(), before, now, scratch, tt.theirs)
			if err != nil {
				t.Fatal(err)
			}
			if got.Commit != "" && got.Commit == now.Head {
				got.Commit = "x"
			}
			for i, a := range got.Aside {
				if strings.HasPrefix(a.Branch, "replace/") {
					got.Aside[i].Branch = "replace/x"
				}
			}
			for i := range got.Lost {
				if !anyID.MatchString(got.Lost[i].ID) {
					t.Errorf("no id: %q", got.Lost[i].ID)
				}
				got.Lost[i].ID = "x"
			}
			sorted := cmp.Transformer("subjects", func(list []ralph.Commit) map[string]int {
				m := map[string]int{}
				for _, c := range list {
					m[c.Subject+" "+c.Author+" "+c.From]++
				}
				return m
			})
			if diff := cmp.Diff(tt.want, got, sorted); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStandingBelowTheTop: only files of the project, a folder of the repository, count.
func TestStandingBelowTheTop(t *testing.T) {
	dir, scratch := t.TempDir(), t.TempDir()
	sh(t, dir, "git init -q -b main; mkdir web; echo a > web/a; git add .; git commit -qm one; echo x > web/.env; echo y > .env")
	tree, err := worktree.Open(t.Context(), filepath.Join(dir, "web"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := tree.Snapshot(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "git add -A; git commit -qm all")
	now, err := tree.Look(t.Context(), scratch)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tree.Standing(t.Context(), before, now, scratch, []string{".env"})
	if err != nil || len(got.Secrets) != 1 || got.Secrets[0] != ".env" {
		t.Errorf("got %+v, %v", got, err)
	}
}
