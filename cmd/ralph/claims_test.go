package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"ralph/internal/state"
)

// TestTheThreatModelsClaims: each claim names an existing test.
func TestTheThreatModelsClaims(t *testing.T) {
	page, err := os.ReadFile("../../docs/explanation/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	situations := map[string]bool{}
	for _, s := range numbered(nil, liars("")) {
		situations[s.id] = true
	}
	claims, _, _ := strings.Cut(string(page), "## What needs the sandbox")
	_, claims, _ = strings.Cut(claims, "## What holds")
	form := regexp.MustCompile("T[0-9]+[a-z](–[a-z])?|`Test[A-Za-z]+`|story `[a-z_]+`")
	for line := range strings.Lines(claims) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 4 || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| claim") {
			continue
		}
		if !form.MatchString(cells[2]) && !strings.Contains(cells[2], "all situations") {
			t.Errorf("nothing shows %s", cells[1])
		}
	}
	for _, name := range form.FindAllString(string(page), -1) {
		story, isStory := strings.CutPrefix(strings.ReplaceAll(name, "`", ""), "story ")
		there := false
		switch {
		case isStory:
			there = state.Exists("testdata/"+story+".txtar") || state.Exists("testdata/rare/"+story+".txtar")
		case strings.HasPrefix(name, "`"):
			there = exec.CommandContext(t.Context(), "grep", "-rq", "--include=*_test.go", "^func "+strings.Trim(name, "`")+"(", "../..").Run() == nil
		default:
			first, last, more := strings.Cut(name, "–")
			if there = situations[first]; more {
				there = there && situations[first[:len(first)-1]+last]
			}
		}
		if !there {
			t.Errorf("there is no %s", name)
		}
	}
}
