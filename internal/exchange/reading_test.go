package exchange

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ralph"
)

// everything returns the text of an import, in which nothing of a file may be missing that was not left out.
func everything(in ralph.Import) string {
	var b strings.Builder
	for _, f := range in.Features {
		fmt.Fprintln(&b, f.Name, f.Description)
	}
	for _, t := range in.Tasks {
		fmt.Fprintln(&b, t.Key, t.Title, t.Description, t.Acceptance, t.Verify, t.Files, t.Allow, t.Needs)
	}
	return b.String()
}

// token is a word that stands on one line of a generated document.
var token = regexp.MustCompile(`qz\d+x`)

// audit fails if the count of lines is wrong, or a line is neither in the import nor left out with a note.
func audit(t *testing.T, text string) {
	t.Helper()
	r := readDocument("", []byte(text))
	if len(r.in.Tasks) == 0 {
		return
	}
	for name, c := range map[string]ralph.Tally{"boxes": r.in.Read.Boxes, "headings": r.in.Read.Headings, "lines": r.in.Read.Lines} {
		if c.Read != c.Made+c.Folded+c.Left {
			t.Errorf("%s: %+v is no sum, in:\n%s", name, c, text)
		}
	}
	if c := r.in.Read; c.Boxes.Made+c.Headings.Made != len(r.in.Tasks) || c.Lines.Made != 0 {
		t.Errorf("%+v, and %d tasks, in:\n%s", c, len(r.in.Tasks), text)
	}
	leftOut := 0
	all := everything(r.in)
	for _, l := range r.lines {
		if l.fate == left {
			leftOut++
		}
		for _, word := range token.FindAllString(l.raw, -1) {
			if strings.Contains(all, word) == (l.fate == left) {
				t.Errorf("line %d (%q): fate %d, in:\n%s\n→\n%s", l.n, l.raw, l.fate, text, all)
			}
		}
	}
	if said := strings.Contains(strings.Join(r.in.Notes, "\n"), "left out: "); said != (leftOut > 0) {
		t.Errorf("%d lines left out, notes: %q, in:\n%s", leftOut, r.in.Notes, text)
	}
}

// TestNothingIsDroppedSilently reads generated documents of the pieces that people's plans are made of.
func TestNothingIsDroppedSilently(t *testing.T) {
	pieces := []string{
		"# %s", "## %s", "### %s", "#### %s", "## Phase 2: %s", "### Task %d: %s", "### Задача %d: %s", "### US-%d: %s", "### Story %d.1: %s",
		"### T%d: %s", "## %d. %s", "### [ ] %s", "%s\n=====", "## Acceptance Criteria", "### Success criteria", "## Overview", "## Context (from discovery)",
		"## Future", "### Optional", "## Quality Gates", "## Validation Commands", "## Definition of Done", "**Acceptance Criteria:**", "Acceptance criteria:",
		"  - Acceptance criteria:", "**Depends on:** US-%d %s", "**%s:**", "- [ ] %s", "- [ ]%s", "> - [ ] %s", "> - [x]%s", "- [D] %s", "**Depends on:**", "#### Dependencies", "- [x] %s", "- [X] %s", "- [/] %s", "- [-] %s", "- [~] %s", "- [!] %s",
		"- [>] %s", "- [?] %s", "- [] %s", "- [ ]* %d.1 %s", "* [ ] %s", "1. [ ] %s", "[ ] %s", "- ☐ %s", "  - [ ] %s", "    - [x] %s", "\t- [ ] %s", "- [ ] T0%d [P] %s",
		"- [ ] [bd-%d] %s", "- [ ] US-%d: %s", "- %s", "  - %s", "    %s", "1. %s", "%s", "%s", "> %s", "", "", "---", "| %s | b |", "| A%d | %s | [ ] |", "| [x] | %s | | |", "| %s | [ ] | [x] |", "| # | Depends on | Task | ok |\n|---|:-:|---|---|\n| %d | A1 | %s | ☐ |", "```\n%s\n```", "  ```sh\n  %s\n  ```",
		"<!-- %s -->", "<!--\n- [ ] %s\n-->", "- `make %s`", "- `go vet ./%s` - checks", "- Verify: make %s", "  - Verify: make %s", "- [ ] `accept: make %s`",
		"**Given** %s", "**When** %s", "- GIVEN %s", "  - THEN %s",
	}
	for seed := range uint64(4000) {
		random := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		n := 0
		for range 1 + random.IntN(30) {
			n++
			piece := strings.ReplaceAll(pieces[random.IntN(len(pieces))], "%d", fmt.Sprint(n))
			b.WriteString(strings.Replace(piece, "%s", fmt.Sprintf("word qz%dx", n), 1) + "\n")
		}
		if audit(t, b.String()); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestFixturesAreReadWhole is the same for documents of the kinds that tools write: each line gets a word of its own.
func TestFixturesAreReadWhole(t *testing.T) {
	files, err := filepath.Glob("testdata/*.md")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		ends := regexp.MustCompile(`(?m)[^\s:*)#\x60>-]$`)
		audit(t, ends.ReplaceAllStringFunc(string(text), func(end string) string {
			n++
			return fmt.Sprintf("%s qz%dx", end, n)
		}))
		audit(t, string(text))
	}
}
