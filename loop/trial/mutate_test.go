package trial

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestMutants: a literal keeps its type and form, and each round has another mutant of it.
func TestMutants(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string // what takes the place of the literal, by its variants; one of several separated by |
	}{
		{"number", `assert f() == 3`, []string{"2|4", "0|1|5|6|7|8|9"}},
		{"nothing", `assert f() == 0`, []string{"1"}},
		{"the largest of a byte", `assert f() == 255`, []string{"254"}},
		{"fraction", `assert f() == 1.5`, []string{"2.5|0.5"}},
		{"hexadecimal", `assert f() == 0x1F`, []string{"0x18|0x19|0x11|0x12|0x13|0x14|0x15|0x16|0x17"}},
		{"text", `assert f() == "one"`, []string{`"oneq"|"onex"|"onez"|"onej"|"onek"`, `"one7"|"one3"|"one9"|"one4"`}},
		{"truth", `assert f() == True`, []string{"False"}},
		{"a condition", `assert f(x)`, []string{"not (f(x))"}},
	} {
		for seed := range 20 {
			e := Read("a.py", []byte(c.text+"\n"))
			for variant, want := range c.want {
				// The first option again, however many there are.
				got := string(e.Mutant(strings.Repeat("s", seed), variant*len(e.list[0].options), nil))
				got = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(got, "assert "), "f() == "), "\n")
				if !strings.Contains("|"+want+"|", "|"+got+"|") {
					t.Errorf("%s: %s, want %s", c.name, got, want)
				}
			}
		}
	}
}

// TestMutantsRepeat: the same seed has the same mutants, another one has others.
func TestMutantsRepeat(t *testing.T) {
	text := "import p\n" + strings.Repeat("assert p.f(1, 2) == [3, 4, 5]\n", 20)
	e := Read("test_a.py", []byte(text))
	one := string(e.Mutant("a", 0, nil))
	if e.Len() != 20 || one != string(e.Mutant("a", 0, nil)) {
		t.Errorf("%d expectations\n%s", e.Len(), one)
	}
	if one == string(e.Mutant("b", 0, nil)) || one == string(e.Mutant("a", 1, nil)) || one == text {
		t.Error("mutants of other seeds or rounds are the same")
	}
	if changed := strings.Count(string(e.Mutant("a", 0, func(i int) bool { return i < 5 })), "[3, 4, 5]"); changed != 15 {
		t.Errorf("%d lines are as they were, want 15", changed)
	}
	if e.Mutant("a", 0, func(int) bool { return false }) != nil {
		t.Error("a mutant of nothing")
	}
}

// TestReadNeverPanics on any file.
func TestReadNeverPanics(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/tests.txtar")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range archive.Files {
		for range 200 {
			text := append([]byte{}, f.Data...)
			for range 1 + r.IntN(8) {
				at := r.IntN(len(text))
				switch r.IntN(3) {
				case 0:
					text[at] = "()[]{}\"'`/\\#\n.,=!$@\x00\xff\xe2"[r.IntN(22)]
				case 1:
					text = text[:at+1]
				case 2:
					text = append(text[:at], text[min(len(text), at+r.IntN(20)):]...)
				}
				if len(text) == 0 {
					text = []byte("x")
				}
			}
			e := Read(f.Name, text)
			for round := range Rounds {
				if m := e.Mutant("s", round, nil); m != nil && e.Len() == 0 {
					t.Fatal("a mutant of nothing")
				}
			}
		}
	}
}
