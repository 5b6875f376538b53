package main

import (
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const sample = `package p

const limit = 3

type kind [4]int

func (k *kind) full(n int, on bool) bool {
	if n < limit && on {
		n++
		n = 2 * -1
		n = k.rest() // the rest
	}
	for range n {
		if !on {
			continue
		}
		if n == 3 {
			k.Log.Warn("three")
		}
	}
	switch {
	case on:
		return true
	}
	return n >= 7
}
`

func TestKindsOfMutants(t *testing.T) {
	list, err := mutants("p.go", []byte(sample), func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range list {
		got = append(got, strings.TrimPrefix(m.key(), "p.go"))
		if m.function == "" != (m.body == [2]int{}) {
			t.Errorf("%s: body %v", m.key(), m.body)
		}
		if mutated := m.apply([]byte(sample)); string(mutated) == sample {
			t.Errorf("%s changes nothing", m.key())
		} else if _, err := format.Source(mutated); err != nil {
			t.Errorf("%s: %v", m.key(), err)
		}
	}
	slices.Sort(got)
	want := []string{
		": number: 3 => 4",
		"kind.full: branch: continue => break",
		"kind.full: constant: true => false",
		"kind.full: drop: for range n { if !on { continue } if n == 3 { k.Log.Warn(\"th… => nothing",
		"kind.full: drop: if !on { continue } => nothing",
		"kind.full: drop: if n < limit && on { n++ n = 2 * -1 n = k.rest() } => nothing",
		"kind.full: drop: n = k.rest() => nothing",
		"kind.full: drop: n++ => nothing",
		"kind.full: drop: switch { case on: return true } => nothing",
		"kind.full: forget: n = 2 * -1 => _ = 2 * -1",
		"kind.full: forget: n = k.rest() => _ = k.rest()",
		"kind.full: negate: on => !on",
		"kind.full: negate: on => !on",
		"kind.full: not: !on => on",
		"kind.full: number: 2 => 3",
		"kind.full: operator: 2 * -1 => 2 / -1",
		"kind.full: operator: n < limit && on => n < limit || on",
		"kind.full: operator: n < limit => n <= limit",
		"kind.full: operator: n < limit => n >= limit",
		"kind.full: operator: n >= 7 => n < 7",
		"kind.full: operator: n >= 7 => n > 7",
		"kind.full: operator: n++ => n--",
		"kind.full: remove case: case on: return true => nothing",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestThePartsOfATest are run by themselves, also if the test prints without an end of line.
func TestThePartsOfATest(t *testing.T) {
	said := "=== RUN   TestA\n=== RUN   TestA/one_(1)\nprinted=== RUN   TestA/two/deep\n=== RUN   TestA/two/deeper\n--- PASS: TestA (0.00s)\n"
	if got := strings.Join(partsOf(said), " "); got != "one_(1) two" {
		t.Errorf("got %q", got)
	}
}

// TestMutantsOfOneBinary: the file for all mutants has each of them once, and as many lines before the following code
// as the original.
func TestMutantsOfOneBinary(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "p.go"), []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := mutants("p.go", []byte(sample), func(f string) bool { return f != "" })
	if err != nil {
		t.Fatal(err)
	}
	var suspects []suspect
	for _, m := range list {
		suspects = append(suspects, suspect{mutant: m})
	}
	b := &bench{root: root}
	files, err := b.instrument(suspects, map[int]bool{1: true})
	if err != nil {
		t.Fatal(err)
	}
	text := string(files["p.go"])
	if _, err := format.Source(files["p.go"]); err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
	for i := range suspects {
		n := strings.Count(text, fmt.Sprintf("\ncase %d:\n", i))
		if want := map[bool]int{true: 0, false: 1}[i == 1]; n != want {
			t.Errorf("mutant %d is there %d times", i, n)
		}
	}
	if !strings.Contains(text, "\n//line p.go:7\n\n\tif n < limit && on {") {
		t.Errorf("the original does not follow:\n%s", text)
	}
}

func TestSurvivorsNeedAReason(t *testing.T) {
	one, other := suspect{mutant: mutant{file: "a.go", was: "x"}}, suspect{mutant: mutant{file: "b.go", was: "x"}}
	for _, tt := range []struct {
		name     string
		alive    []suspect
		accepted map[string]string
		want     string
	}{
		{"none survived", nil, nil, ""},
		{"one has no reason", []suspect{one}, nil, "1 survived without a reason"},
		{"one has", []suspect{one}, map[string]string{one.key(): "why"}, ""},
		{"one that has a reason is found", []suspect{other}, map[string]string{one.key(): "why", other.key(): "why"}, "this one is found by now, take it out: a.go"},
	} {
		err := compare([]suspect{one, other}, tt.alive, tt.accepted)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

// TestTheListOfAcceptedSurvivors: each is a mutant, and has its reason.
func TestTheListOfAcceptedSurvivors(t *testing.T) {
	accepted, err := parseAccepted(acceptedList)
	if err != nil {
		t.Fatal(err)
	}
	found, err := inScope(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if err := unknown(accepted, found); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"a\nb\n", "a\n\treason\na\n\treason\n"} {
		if got, err := parseAccepted(wrong); err == nil {
			t.Errorf("%q is taken for %v", wrong, got)
		}
	}
	if got, err := parseAccepted("# x\na\nb\n\tone\n\ttwo\n\nc\n three\n"); err != nil || got["a"] != "one two" || got["b"] != "one two" || got["c"] != "three" {
		t.Errorf("got %v, %v", got, err)
	}
}
