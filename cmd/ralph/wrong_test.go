package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// goWords are words of Go and of its libraries, which say nothing to a person.
var goWords = regexp.MustCompile(`strconv|parsing|parse |unmarshal|nil pointer|panic|goroutine|invalid syntax|invalid character|` +
	`\bEOF\b|json:|yaml:|sql:|lookup |dial |listen tcp|unknown shorthand|arg\(s\)|\.ralph-part|%!`)

// TestWrongInputs: each wrong input of testdata/wrong_inputs.list is answered in one line, with a status that is not 0
// and in words for people, and changes nothing.
func TestWrongInputs(t *testing.T) {
	long(t)
	t.Parallel()
	s := newScriptedProject(t, "task *\n  done {\"summary\": \"x\"}\n", "sandbox: off\nverify: ['true']\n")
	for name, text := range map[string]string{
		"list.md": "- [ ] A\n", "empty.md": "", "binary.bin": "\xff\xfe\x00\x01", "bin/keep": "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(s.dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		s.write(name, text)
	}
	s.git("add", "-A")
	s.git("commit", "-qm", "base")
	s.ralph(0, "task", "add", "First")
	const file = "testdata/wrong_inputs.list"
	table, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before := s.ralph(0, "export", "--format", "jsonl")
	lines := regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(string(table), -1)
	if len(lines) < 150 {
		t.Errorf("%s has %d inputs", file, len(lines))
	}
	answers := make([]string, len(lines))
	var group sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i, line := range lines {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			answers[i] = s.wrong(line[1])
		})
	}
	group.Wait()
	var now strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&now, "$ %s\n%s\n", line[1], answers[i])
	}
	if *update {
		if err := os.WriteFile(file, []byte(now.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if now.String() != string(table) {
		t.Errorf("the answers differ from %s (-update writes them; read it):\n%s", file, now.String())
	}
	if after := s.ralph(0, "export", "--format", "jsonl"); after != before {
		t.Errorf("the queue was changed:\n%s\nwas\n%s", after, before)
	}
}

// wrong runs a wrong input and returns its answer.
func (s *scriptedProject) wrong(input string) string {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", input)
	cmd.Dir, cmd.Env = s.dir, s.command().Env
	out, err := cmd.CombinedOutput()
	said := strings.ReplaceAll(strings.TrimSuffix(string(out), "\n"), s.dir, "PROJECT")
	if err == nil {
		s.t.Errorf("$ %s\nhas status 0: %s", input, said)
	}
	if strings.Contains(said, "\n") || !strings.HasPrefix(said, "ralph: ") || goWords.MatchString(said) {
		s.t.Errorf("$ %s\nis not answered in one line for people:\n%s", input, said)
	}
	return said
}
