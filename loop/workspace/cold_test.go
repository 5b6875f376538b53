package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWithoutLayersACheckStartsCold: after any earlier check, the next one finds only the commit, the set-up of the
// merged commit and the person's files.
func TestWithoutLayersACheckStartsCold(t *testing.T) {
	p := withWorkspaces(t, "echo deps >> .gitignore; echo mine >> .gitignore; echo mine > .worktreeinclude; "+
		"mkdir -p mine/deep; echo given > mine/deep/file; git init -q mine/repo; echo in > mine/repo/file; git -C mine/repo add -A; git -C mine/repo -c user.name=a -c user.email=a@b commit -qm in; echo one > setup; git add -A; git commit -qm setup")
	p.Setup = []string{"mkdir deps && cp setup deps/made && echo ran >> ../setups"}
	merged := tip(t, p)
	sh(t, p.Here.Dir, "echo two > setup; git commit -qam 'not merged'")
	changed := tip(t, p)
	p.Merged = func(context.Context) (string, error) { return merged, nil }
	at, err := p.Take(t.Context(), 1, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := at.Release(); err != nil {
			t.Error(err)
		}
	}()
	for round := range 2 {
		if err := at.At(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"deps/made": "one\n", "setup": "two\n", "sub/b": "b\n", // the set-up of the merged commit
			"mine/deep/file": "given\n", "mine/repo/file": "in\n",
			"deps/fake": "", "a.log": "", "sub/new/deep": "",
		} {
			got, err := os.ReadFile(filepath.Join(at.Dir, name))
			if string(got) != want || (err == nil) != (want != "") {
				t.Errorf("round %d: %s is %q, %v; want %q", round, name, got, err, want)
			}
		}
		if list, err := os.ReadDir(filepath.Join(at.Clone.folder, "home")); err != nil || len(list) > 0 {
			t.Errorf("round %d: its home has %v, %v", round, list, err)
		}
		if exists(filepath.Join(at.Clone.folder, "caches", "check", "x")) {
			t.Errorf("round %d: a cache of the last check is there", round)
		}
		sh(t, at.Dir, "echo fake > deps/fake; echo fake > deps/made; echo x > a.log; mkdir -p sub/new; echo x > sub/new/deep; "+
			"chmod -w deps; echo x > ../home/.profile; mkdir -p ../caches/check/x")
	}
	ran, err := os.ReadFile(filepath.Join(at.Clone.folder, "setups"))
	if err != nil || strings.Count(string(ran), "ran") != 2 {
		t.Errorf("set-up ran %q, %v; want twice", ran, err)
	}
	p.Setup = nil
	if err := at.At(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(at.Dir, "mine", "repo", "file")); string(got) != "in\n" {
		t.Errorf("without set-up the person's file is %q, %v", got, err)
	}
	if exists(filepath.Join(at.Dir, "deps")) {
		t.Error("without set-up its results are there")
	}
}
