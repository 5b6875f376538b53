package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAGuardedFileIsShownWholeEverywhere: `ralph diff`, the inbox, the dashboard and the reviewer's prompt show the
// same lines to approve, with a NUL byte, after a megabyte of spaces, or where attributes hide differences. None shows
// work that the agent has merged from the branch.
func TestAGuardedFileIsShownWholeEverywhere(t *testing.T) {
	t.Parallel()
	needChromium(t)
	s := newScriptedProject(t, `task review of One
  run cat a.txt
  call review.approve {"checked": "read it"}
task One
  run (cd "$RALPH_ROOT" && echo x > theirs.txt && git add theirs.txt && git commit -qm theirs)
  run git fetch -q "$RALPH_ROOT" main && git merge -q -m merge FETCH_HEAD
  run mkdir -p .husky; printf '#!/bin/sh\n# \0\necho evil-nul\n' > .husky/pre-push
  run (echo '# '; head -c 1100000 /dev/zero | tr '\0' ' '; echo 'echo evil-large'; head -c 900000 /dev/zero | tr '\0' y) > .husky/pre-commit
  run printf '.husky/* -diff\n*.js binary\n' > .gitattributes
  run printf '\211PNG\0\n%s\n1\n2\n3\nend of picture\n' "$(head -c 9000 /dev/zero | tr '\0' z)" > pic.png
  run seq 20000 > a.txt
  done {"summary": "made it"}
`, "sandbox: off\npermissions: {guards: false}\nagents: {critic: {kind: claude}}\nreview: [{agent: critic}]\nverify: ['true']\n")
	s.ralph(0, "task", "add", "One")
	s.ralph(4, "run")
	item := regexp.MustCompile(`\bC\d+\b`).FindString(s.ralph(0, "inbox"))
	var reviewed string
	if err := filepath.WalkDir(s.state(), func(path string, _ os.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "prompt.md" {
			text, rerr := os.ReadFile(path)
			if strings.Contains(string(text), "You review a change") {
				reviewed = string(text)
			}
			return rerr
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	d := serveProject(t, s, "127.0.0.1:0")
	p := newTab(t)
	p.signIn(s, d)
	lines := `[...document.querySelectorAll("details.file[open] .numbered > span")].map((e) => e.lastChild.textContent).join("\n")`
	page := func(path string) string {
		p.open(d.url + path)
		return eval[string](p, lines)
	}
	large := "+" + strings.Repeat(" ", 1100000) + "echo evil-large\n+" + strings.Repeat("y", 900000)
	for name, said := range map[string]string{
		"diff": s.ralph(0, "diff", "1"), "diff of the item": s.ralph(0, "diff", item), "inbox": s.ralph(0, "inbox", item),
		"reviewer": reviewed, "inbox page": page("/inbox"), "task page": page("/tasks/1"),
	} {
		for _, line := range []string{"+# <U+0000>\n+echo evil-nul", large, "+.husky/* -diff\n+*.js binary"} {
			if !strings.Contains(said, line) {
				t.Errorf("%s lacks %.80q: %.1500q", name, line, said)
			}
		}
		for _, not := range []string{"theirs.txt", "end of picture"} {
			if strings.Contains(said, not) {
				t.Errorf("%s has %q", name, not)
			}
		}
	}
	said := s.ralph(0, "diff", "1")
	s.has(said, "# .husky/pre-push has binary contents: 1 NUL byte. All of it follows as text.", "# pic.png has binary contents: 1 NUL byte. Its first lines follow as text; ", "+20000\n")
	if !strings.Contains(reviewed, "(Cut: the rest of the change, ") {
		t.Error("the reviewer is not told what is missing")
	}
}
