package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

const hostile = "a]]>b<script>alert(1)</script>\n::error::x\r\n| x | `y` @all \x1b[31m\x00 [z](javascript:1) \u2028%0A"

// everything says of each session that it worked in the time of the report.
func everything(ralph.Session) bool { return true }

func sample(text string) report.Report {
	at := func(s int) ralph.Time {
		return ralph.At(time.Date(2026, 6, 1, 22, 0, s, 0, time.UTC))
	}
	tasks := map[int64]ralph.Task{
		1: {ID: 1, Title: "Reject empty URLs " + text, Status: ralph.Completed, StatusReason: "done and verified: " + text, Attempts: 2, Feature: "bookmarks"},
		2: {ID: 2, Title: "Sort them", Status: ralph.Failed, StatusReason: "done was refused: " + text, Attempts: 1},
		3: {ID: 3, Title: "Ask", Status: ralph.NeedsInput, StatusReason: "waits for an answer", Waits: ralph.Waits{Questions: 1}},
	}
	r := report.New([]ralph.Session{
		{ID: "a", TaskID: 1, Number: 1, StartedAt: at(0), CompletedAt: at(30), CostUSD: 0.5, CostKnown: true, Agent: "codex", AgentVersion: "codex-cli 0.169.0", Model: "gpt-5.5", Tokens: ralph.Tokens{Input: 10, Output: 5}},
		{TaskID: 2, Number: 2, StartedAt: at(31), CompletedAt: at(41), CostUSD: 0.25, CostKnown: true, Verify: []ralph.Check{{Command: "make test " + text, Exit: 2, Tail: "line one\n" + text}}},
		{TaskID: 1, Number: 3, StartedAt: at(42), CompletedAt: at(52), CostUSD: 0.1, Agent: "claude", AgentVersion: "2.1.197 (Claude Code)", Verify: []ralph.Check{{Command: "make test", Passed: true}}},
		{TaskID: 3, StartedAt: at(53), CompletedAt: at(55)},
	}, tasks, map[string][]report.Flag{"a": {{Comment: 8, Severity: "blocking", Category: "bug", What: "broken " + text}}}, everything)
	r.Tasks[0].MergeSeconds, r.Tasks[0].TimesSentBack = 12.5, 1
	status := 3
	r.RunID, r.ExitStatus, r.Reason, r.Sandbox = 7, &status, "failed: TASK-2 "+text, "bubblewrap"
	r.Merging = []string{"TASK-4 Merge waits for its merge (1 of 1) " + text}
	r.Waiting = []report.Waiting{
		{
			Kind: "question", Item: "Q5", TaskID: 3, Asks: "red or blue? " + text, Text: "red or blue? " + text,
			Commands: []string{`ralph answer Q5 "TEXT"`},
		},
		{Kind: "failed", Item: "TASK-2", TaskID: 2, Asks: "x", Text: "x", Commands: []string{`ralph retry 2 "HOW"`, "ralph cancel 2"}},
	}
	return r
}

func TestReportsAreAsTheGoldenFiles(t *testing.T) {
	for _, format := range append(report.Formats, "github") {
		var b bytes.Buffer
		var err error
		if format == "github" {
			err = sample("").Annotate(&b)
		} else {
			err = sample("").Write(&b, format)
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "report."+format)
		if *update {
			if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || b.String() != string(want) {
			t.Errorf("%s is not as %s (%v):\n%s", format, path, err, b.String())
		}
	}
}

// TestHiddenCharactersAreNamed in the report, as everywhere in a terminal.
func TestHiddenCharactersAreNamed(t *testing.T) {
	var b bytes.Buffer
	if err := sample("safe\u202e\u200b.").Write(&b, "text"); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "safe<U+202E><U+200B>."); n < 5 {
		t.Errorf("it is named %d times:\n%s", n, b.String())
	}
}

// TestQuestionsAreReportedInFull: no line of a question or a flag is joined or cut.
func TestQuestionsAreReportedInFull(t *testing.T) {
	long := "1. " + strings.Repeat("x", 600) + "end"
	text := "Which one?\n" + long + "\n\n  2. neither"
	r := sample("")
	r.Waiting[0].Text, r.Waiting[0].Asks = text, text
	r.Tasks[0].Flags[0].What = text
	for format, want := range map[string][]string{
		"text": {
			" Which one?\n          " + long + "\n\n            2. neither\n          ralph answer Q5 \"TEXT\"\n",
			"flagged (blocking, bug): Which one?\n            " + long + "\n\n              2. neither\n          ralph resolve C8 \"DECISION\"",
		},
		"md": {
			"- question TASK-3: Which one?<br>" + long + "<br><br>  2. neither — `ralph answer Q5 \"TEXT\"`\n",
			"bug\\): Which one?<br>" + long + "<br><br>  2. neither → ralph resolve C8",
		},
	} {
		var b strings.Builder
		if err := r.Write(&b, format); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s is without %q:\n%s", format, w, b.String())
			}
		}
	}
}

// TestHostileTextIsHarmless: text of an agent or a person cannot pass for the report's own.
func TestHostileTextIsHarmless(t *testing.T) {
	r := sample(hostile)
	var b bytes.Buffer
	if err := r.Write(&b, "junit"); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(&b)
	cases := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the XML is not well-formed: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			if e.Name.Local == "testcase" {
				cases++
			}
			if e.Name.Local == "script" {
				t.Error("an element was injected")
			}
		}
	}
	if cases != 3 {
		t.Errorf("%d test cases, want 3", cases)
	}

	b.Reset()
	if err := r.Annotate(&b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n != 4 {
		t.Errorf("%d annotations, want 4:\n%s", n, b.String())
	}
	for l := range strings.Lines(b.String()) {
		if !strings.HasPrefix(l, "::error title=TASK-2") && !strings.HasPrefix(l, "::warning title=question TASK-3::") && !strings.HasPrefix(l, "::warning title=flag TASK-1::") && !strings.HasPrefix(l, "::notice title=ralph::") {
			t.Errorf("an annotation was injected: %s", l)
		}
	}

	b.Reset()
	if err := r.Write(&b, "md"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "<script>") && !strings.Contains(b.String(), "    a]]>b<script>") || strings.ContainsAny(b.String(), "\x1b\x00\r") || strings.Contains(b.String(), "\n::error") {
		t.Errorf("the Markdown is not harmless:\n%s", b.String())
	}
	for l := range strings.Lines(b.String()) {
		if strings.HasPrefix(l, "| 1 |") {
			if n := strings.Count(strings.ReplaceAll(l, `\|`, ""), "|"); n != 6 {
				t.Errorf("a cell was broken: %s", l)
			}
		}
	}

	b.Reset()
	if err := r.Write(&b, "json"); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("the JSON is not valid: %v", err)
	}
}

func TestFormatsByEnding(t *testing.T) {
	for file, want := range map[string]string{"a.xml": "junit", "a.MD": "md", "b/a.json": "json", "a.txt": "", "a": ""} {
		if got := report.FormatOf(file); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
	if err := sample("").Write(io.Discard, "pdf"); err == nil {
		t.Error("a format that is none was written")
	}
}

// TestAnUnwritableReportIsAnError: a full disk must not pass for a report.
func TestAnUnwritableReportIsAnError(t *testing.T) {
	for _, format := range report.Formats {
		if err := sample("").Write(full{}, format); !errors.Is(err, errFull) {
			t.Errorf("%s: got %v, want %v", format, err, errFull)
		}
	}
	if err := sample("").Annotate(full{}); !errors.Is(err, errFull) {
		t.Errorf("annotations: got %v, want %v", err, errFull)
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestARunWithoutTasksThatFailedIsNoSuccessInJUnit(t *testing.T) {
	for status, want := range map[int]string{ralph.ExitOK: `errors="0"`, ralph.ExitLimit: `errors="0"`, ralph.ExitFailure: `errors="1"`, ralph.ExitAgent: `errors="1"`} {
		r := report.New(nil, nil, nil, nil)
		r.ExitStatus = &status
		var b strings.Builder
		if err := r.Write(&b, "junit"); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("status %d: want %s (%v):\n%s", status, want, err, b.String())
		}
	}
}
