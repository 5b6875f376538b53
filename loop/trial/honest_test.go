package trial

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ralph/loop/gate"
)

// toolchains run a test file in a folder. At its beginning f() and n() return the code's results: a text and a number.
var toolchains = map[string]struct {
	file, begin string
	command     []string
}{
	"python": {"test_f.py", "import os, re\ndef f(): return os.environ['V']\ndef n(): return int(os.environ['V'])\n", []string{"python3"}},
	"node": {"f.test.js", `const assert = require('assert'); const f = () => process.env.V, n = () => Number(f());
const matchers = {toBe: (a, b) => a === b, toContain: (a, b) => a.includes(b), toMatch: (a, b) => b.test(a),
  toBeLessThan: (a, b) => a < b, oneOf: (a, b) => b.includes(a)};
function expect(a) { const all = {not: {}};
  for (const k in matchers) { all[k] = (b) => assert.ok(matchers[k](a, b)); all.not[k] = (b) => assert.ok(!matchers[k](a, b)); }
  all.to = {be: all, not: {be: all.not}}; return all; }
`, []string{"node"}},
	"go": {"f_test.go", `package main

import ("os"; "regexp"; "slices"; "strconv"; "strings")

type T struct{}

func (T) Errorf(string, ...any) { os.Exit(1) }
func f() string { return os.Getenv("V") }
func n() int { i, _ := strconv.Atoi(f()); return i }
var t T
var _, _, _ = regexp.MustCompile, slices.Contains[[]int], strings.Contains
func main() {
`, []string{"sh", "-c", "cp f_test.go main.go && go run main.go", "sh"}},
	"ruby": {"f_test.rb", `def f = ENV["V"]
def n = f.to_i
def assert(x) = (x or raise)
def refute(x) = (x and raise)
def assert_includes(a, b) = assert(a.include?(b))
def refute_includes(a, b) = refute(a.include?(b))
def assert_match(a, b) = assert(a =~ b)
def assert_operator(a, o, b) = assert(a.send(o, b))
def refute_operator(a, o, b) = refute(a.send(o, b))
`, []string{"ruby"}},
	"rust": {"f_test.rs", `fn f() -> String { std::env::var("V").unwrap() }
fn n() -> i32 { f().parse().unwrap() }
fn main() { let _ = (f(), n as fn() -> i32);
`, []string{"sh", "-c", "rustc -A warnings -o f f_test.rs 2>/dev/null && ./f", "sh"}},
	"sh": {"test_f.sh", "f() { echo \"$V\"; }\n", []string{"sh"}},
	"php": {"fTest.php", `<?php function f() { return getenv("V"); } function n() { return (int) f(); }
`, []string{"php", "-d", "zend.assertions=1", "-d", "assert.exception=1"}},
}

// TestHonestAlternatives: if a test accepts a changed result of the code, the change never counts as unnoticed,
// whichever literals the seed chooses.
func TestHonestAlternatives(t *testing.T) {
	if testing.Short() {
		t.Skip("runs other programs")
	}
	t.Parallel()
	for _, c := range []struct{ language, test, was, is string }{
		{"python", `assert f() in ("a", "b", "c", "d")`, "a", "d"},
		{"python", `assert n() in [1, 2, 3, 4]`, "2", "1"},
		{"python", `assert n() == 1 or n() == 2 or n() == 3 or n() == 4`, "1", "4"},
		{"python", `assert f().isalpha() or f() in ("1", "2")`, "1", "x"},
		{"python", `assert n() <= 5`, "5", "0"},
		{"python", `assert n() != 3`, "2", "7"},
		{"python", `assert re.match("a+|b+|c", f())`, "a", "bb"},
		{"python", `assert (f() == "a") or (len(f()) > 3 and f() != "word")`, "a", "words"},
		{"python", `assert f().startswith(("a", "b"))`, "ax", "bx"},
		{"python", `assert not f() == "c"`, "a", "b"},
		{"python", `assert n() % 2 == 0 or n() == 7`, "2", "7"},
		{"python", `assert [x for x in (1, 2, 3) if x == n()]`, "1", "3"},
		{"python", "if n() == 3:\n    raise SystemExit(1)", "4", "5"},
		{"python", "if n() != 3 and n() != 4:\n    raise SystemExit(1)", "4", "3"},
		{"sh", `[ "$(f)" != 3 ]`, "4", "5"},
		{"sh", `test "$(f)" -ne 3`, "2", "4"},
		{"sh", `if [ "$(f)" = 3 ]; then exit 1; fi`, "4", "5"},
		{"sh", `! [ "$(f)" = 3 ] || exit 1`, "4", "5"},
		{"sh", `[ "$(f)" = 3 ] && exit 1; true`, "4", "5"},
		{"sh", `if [ "$(f)" != 3 ]; then :; else exit 1; fi`, "4", "5"},
		{"sh", `[ "$(f)" -le 5 ]`, "5", "0"},
		{"sh", `[ "$(f)" = a ] || [ "$(f)" = b ]`, "a", "b"},
		{"sh", `f | grep -qE '^(a|b)$'`, "a", "b"},
		{"sh", `f | grep -q "[0-9]"`, "1", "7"},
		{"sh", `case "$(f)" in a|b|c) ;; *) exit 1 ;; esac`, "a", "c"},
		{"node", `assert.notEqual(n(), 3)`, "4", "2"},
		{"node", `assert.notStrictEqual(f(), 'c')`, "a", "b"},
		{"node", `expect(["a", "b", "c", "d"]).toContain(f())`, "a", "c"},
		{"node", `expect(f()).toMatch(/^a$|^b$/)`, "a", "b"},
		{"node", `expect(n()).toBeLessThan(9)`, "8", "1"},
		{"node", `expect(n()).not.toBe(3)`, "4", "9"},
		{"node", `expect(n() === 1 || n() === 2).toBe(true)`, "1", "2"},
		{"node", `assert.ok(n() === 1 || n() > 5)`, "1", "6"},
		{"node", `assert.match(f(), /one|two|three/)`, "two", "three"},
		{"node", `expect(n()).to.be.oneOf([1, 2, 3, 4])`, "4", "1"},
		{"go", `if got := f(); got != "a" && got != "b" && got != "c" && got != "d" { t.Errorf("%s", got) }`, "a", "d"},
		{"go", `if !slices.Contains([]string{"a", "b", "c", "d"}, f()) { t.Errorf("no") }`, "b", "c"},
		{"go", `if got := n(); got < 1 || got > 9 { t.Errorf("%d", got) }`, "9", "5"},
		{"go", `if n() == 3 { t.Errorf("three") }`, "2", "8"},
		{"go", `if n() != 1 && !strings.HasPrefix(f(), "7") { t.Errorf("no") }`, "1", "70"},
		{"go", "if !regexp.MustCompile(`^(a|b)$`).MatchString(f()) { t.Errorf(\"no\") }", "a", "b"},
		{"ruby", `assert_includes ["a", "b", "c", "d"], f`, "a", "d"},
		{"ruby", `assert n == 1 || n == 2`, "1", "2"},
		{"ruby", `assert_match(/a|b/, f)`, "a", "b"},
		{"ruby", `assert_operator n, :<, 9`, "8", "1"},
		{"ruby", `assert %w[a b c].include?(f)`, "a", "c"},
		{"rust", `assert!(n() == 1 || n() == 2 || n() == 3 || n() == 4);`, "1", "4"},
		{"rust", `assert!(matches!(n(), 1 | 2 | 3 | 4));`, "1", "4"},
		{"rust", `assert!(["a", "b", "c", "d"].contains(&f().as_str()));`, "a", "d"},
		{"rust", `assert!(n() < 9);`, "8", "1"},
		{"php", `assert(in_array(f(), ["a", "b", "c", "d"]));`, "a", "d"},
		{"php", `assert(n() === 1 || n() === 2);`, "1", "2"},
		{"php", `assert(preg_match('/^a$|^b$/', f()));`, "a", "b"},
		{"php", `assert(n() !== 3);`, "2", "9"},
	} {
		t.Run(c.language+" "+c.test, func(t *testing.T) {
			t.Parallel()
			tool := toolchains[c.language]
			for _, program := range []string{strings.Replace(c.language, "rust", "rustc", 1), tool.command[0]} {
				if _, err := exec.LookPath(program); err != nil && program != "python" {
					t.Skip(program + " is not installed")
				}
			}
			end := "\n"
			if c.language == "go" || c.language == "rust" {
				end = "\n}\n"
			}
			text := tool.begin + c.test + end
			from := len(tool.begin)
			e := Read(tool.file, []byte(text))
			dir := t.TempDir()
			passes := func(content []byte, v string) bool {
				if err := os.WriteFile(filepath.Join(dir, tool.file), content, 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command(tool.command[0], append(tool.command[1:], tool.file)...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "V="+v)
				return cmd.Run() == nil
			}
			if !passes([]byte(text), c.was) || !passes([]byte(text), c.is) {
				t.Fatalf("it does not pass as it is:\n%s", text)
			}
			seeds := 6
			if c.language == "python" { // slower to start
				seeds = 3
			}
			if end != "\n" { // compiled
				seeds = 2
			}
			failed := false
			for seed := range seeds {
				var rounds []Round
				var said []string
				for n := range Rounds {
					m := e.Mutant(fmt.Sprint(seed), n, func(i int) bool { return e.list[i].options[0].at >= from })
					if m == nil {
						return // it states nothing that can be changed
					}
					was, is := passes(m, c.was), passes(m, c.is)
					failed = failed || !was
					said = append(said, fmt.Sprintf("%s: %v, %v", strings.TrimSpace(string(m)[from:]), was, is))
					rounds = append(rounds, Round{
						[]gate.Run{{Command: "t", Passed: was}}, []gate.Run{{Command: "t", Passed: is}},
					})
				}
				if v := Judge([]gate.Run{{Command: "t", Passed: true}}, rounds); len(v.Neutralised) > 0 {
					t.Errorf("refused:\n%s", strings.Join(said, "\n"))
				}
			}
			if !failed {
				t.Errorf("no mutant fails with what it was:\n%s", text)
			}
		})
	}
}
