package gate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ralph/internal/testresult"
)

// A control is a test that must fail, added to a test file. If the commands pass with it, something keeps tests from
// failing: code that exits, that replaces assertions, that forges results.

// either returns a pattern that matches what one of several does.
func either(patterns ...string) *regexp.Regexp {
	return regexp.MustCompile(strings.Join(patterns, "|"))
}

// interferes matches what code needs to keep tests from failing, by the ending of its file. Honest code has it, too:
// it costs a verification.
var interferes = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		".go": either(`\b(Exit|Args|Goexit|Kill|Setenv|unsafe|plugin|linkname|reflect)\b`,
			`"(syscall|os/exec|os/signal|testing|C|golang\.org/x/sys[^"]*)"`),
		".py": either(`\b_?(exit|quit|abort|kill|killpg|fork|exec[lvpe]*|eval|compile|open)\b`,
			`\b_?(unittest|pytest|pluggy|doctest|nose|hypothesis|mock|AssertionError)\b`,
			`\b(atexit|inspect|importlib|import_module|ctypes|subprocess|signal|gc|builtins|faulthandler|modules)\b`,
			`\b_?(settrace|setprofile|getframe|getattr|setattr|globals|vars|locals)\b`,
			`\b(SystemExit|KeyboardInterrupt|BaseException)\b|import \*`,
			`__(import|dict|debug|builtins|getattribute|class|bases|del|subclasses)__`),
		".js": either(`\b(process|globalThis|global|eval|Function|Proxy|Reflect|prototype|constructor|defineProperty)\b`,
			`\b(assert|expect|jest|vi|vitest|mocha|chai|test|child_process|worker_threads|Module|createRequire)\b`,
			`require\s*\(\s*(?:[^"'\s]|[^)]*[+,])|import\s*\(|\]\s*=[^=]`),
		".rs": either(`\b(exit|abort|macro_rules|macro_use|link_section|no_mangle|panic|set_hook|catch_unwind)\b`,
			`\b(libc|extern|unsafe|asm|ctor)\b`),
		".sh": either(`\b(exit|kill|exec|trap|PPID|eval|alias|unset)\b|>`),
	}
})

// languages maps endings to those of [interferes].
var languages = map[string]string{
	".jsx": ".js", ".mjs": ".js", ".cjs": ".js", ".ts": ".js", ".tsx": ".js", ".mts": ".js", ".cts": ".js", ".vue": ".js",
	".svelte": ".js", ".bash": ".sh", ".pyi": ".py", ".pyw": ".py",
}

func language(name string) string {
	ext := path.Ext(name)
	if l, ok := languages[ext]; ok {
		return l
	}
	return ext
}

// Interferes reports whether what a change adds to code can keep tests from failing, as far as that can be read.
// What cannot be read can.
func Interferes(files []File, decides []Changed) bool {
	return slices.ContainsFunc(files, func(f File) bool {
		if f.Is == nil || slices.ContainsFunc(decides, func(c Changed) bool { return c.Path == f.Path && !c.Code }) {
			return false // gate files are tried otherwise
		}
		if words := interferes()[language(f.Path)]; words != nil {
			return slices.ContainsFunc(added(f), words.Match)
		}
		return bytes.IndexByte(f.Is, 0) >= 0 || path.Ext(f.Path) == "" && bytes.HasPrefix(f.Is, []byte("#!"))
	})
}

// added returns the lines that a file has and had not.
func added(f File) (lines [][]byte) {
	had := map[string]bool{}
	for line := range bytes.Lines(f.Was) {
		had[string(bytes.TrimSpace(line))] = true
	}
	for line := range bytes.Lines(f.Is) {
		if line = bytes.TrimSpace(line); !had[string(line)] {
			lines = append(lines, line)
		}
	}
	return lines
}

// Controls returns how test files get tests that must fail, and the files by the marks of their controls. Names are
// the files of a tree, read returns their contents. Seed makes the marks of a trial its own: what is tested must not
// know them.
func (r Rules) Controls(names []string, read func(name string) []byte, seed string) ([]Edit, map[string]string) {
	patterns := slices.Clone(r.Tests)
	if slices.Contains(patterns, Auto) {
		patterns = slices.Concat(tests, patterns)
	}
	run, _ := r.run(names, read)
	found := map[string]string{} // the file with the control of a package or file
	for _, name := range slices.Sorted(slices.Values(names)) {
		test := matches(patterns, name) && !matches(settings, name)
		switch l := language(name); {
		case l == ".go" && strings.HasSuffix(name, "_test.go") && test:
			if has := found[path.Dir(name)]; has == "" || !constrained(read(name)) || constrained(read(has)) {
				found[path.Dir(name)] = name // the last of a package runs last
			}
		case l == ".py" && path.Base(name) != "__init__.py" && (test || run[name]),
			l == ".js" && (test || run[name]), l == ".rs", l == ".bats" && test, l == ".sh" && test:
			found[name] = name
		}
	}
	var edits []Edit
	marks := map[string]string{}
	for _, name := range slices.Sorted(maps.Values(found)) {
		if len(edits) == mostControls {
			break
		}
		sum := sha256.Sum256([]byte(seed + "\x00" + name))
		mark := hex.EncodeToString(sum[:testresult.MarkSize])
		if text := control(name, read(name), mark); text != nil {
			edits = append(edits, Edit{name, text})
			marks[testresult.Control(mark)] = name
		}
	}
	return edits, marks
}

// mostControls is in how many files controls are tried.
const mostControls = 200

// constrained reports whether a Go file is not always built.
func constrained(text []byte) bool {
	return bytes.Contains(text, []byte("\n//go:build ")) || bytes.HasPrefix(text, []byte("//go:build "))
}

var (
	importsTesting = regexp.MustCompile(`(?m)^(import\s+|\s+)"testing"$`)
	mainGuard      = regexp.MustCompile(`(?m)^if __name__\b`)
	definesTests   = regexp.MustCompile(`(?m)^\s*(async )?def test|unittest|pytest`)
	testCall       = regexp.MustCompile(`(?m)^\s*(test|it)(?:\.\w+)*\s*\(`)
	esm            = regexp.MustCompile(`(?m)^\s*(import\s*[\w{*"']|export\s)`)
)

// control returns a test file with a test that fails, saying the mark; nil if it is not known how to add one.
func control(name string, text []byte, mark string) []byte {
	if len(text) == 0 {
		return nil
	}
	in := string(text)
	said := testresult.Control(mark)
	switch language(name) {
	case ".go":
		if !importsTesting.Match(text) {
			return nil
		}
		return fmt.Appendf(nil, "%s\n\nfunc TestZ%s(t *testing.T) { t.Fatal(%q) }\n", in, mark, said)
	case ".py":
		main := fmt.Sprintf("\n\nif __name__ == \"__main__\":\n    assert False, %q\n", said)
		if !definesTests.Match(text) {
			return []byte(in + main)
		}
		test := fmt.Sprintf("\n\ndef test_z%s():\n    assert False, %q\n", mark, said) // pytest's
		if strings.Contains(in, "TestCase") {
			test = fmt.Sprintf(pythonControl, mark, mark, mark, said)
		}
		if at := mainGuard.FindStringIndex(in); at != nil {
			return []byte(in[:at[0]] + test + "\n\n" + in[at[0]:] + main)
		}
		return []byte(in + test + main)
	case ".js":
		module := `require("node:assert")`
		if esm.MatchString(in) || path.Ext(name) == ".mjs" {
			module, in = "assert"+mark, "import assert"+mark+" from \"node:assert\";"+in
		}
		body := fmt.Sprintf(jsControl, module, said)
		if m := testCall.FindStringSubmatch(in); m != nil {
			return fmt.Appendf(nil, "%s\n;%s(%q, () => %s);\n", in, m[1], mark, body)
		}
		return fmt.Appendf(nil, "%s\n;(() => %s)();\n", in, body)
	case ".rs":
		if !strings.Contains(in, "#[test]") && !strings.HasSuffix(name, "src/lib.rs") {
			return nil
		}
		return fmt.Appendf(nil, rustControl, in, mark, mark, said)
	case ".sh":
		return fmt.Appendf(nil, "%s\necho %s >&2\nexit 1\n", in, said)
	case ".bats":
		return fmt.Appendf(nil, "%s\n@test %q { echo %s; false; }\n", in, mark, said)
	}
	return nil
}

const rustControl = "%s\n#[cfg(test)]\nmod z%s {\n    #[test]\n    fn z%s() { assert_eq!(1, 2, %q); }\n}\n"

// pythonControl fails if assertions do.
const pythonControl = `

import unittest as unittest_%s


class Z%s(unittest_%s.TestCase):
    def test_z(self):
        for name, args in (
            ("assertEqual", (1, 2)), ("assertNotEqual", (1, 1)), ("assertTrue", (False,)), ("assertFalse", (True,)),
            ("assertIs", (1, 2)), ("assertIn", (1, [])), ("assertIsNone", (1,)), ("assertAlmostEqual", (1, 2)),
            ("assertGreater", (1, 2)), ("assertListEqual", ([1], [2])), ("assertDictEqual", ({}, {1: 2})),
        ):
            try:
                getattr(self, name)(*args)
            except AssertionError:
                continue
            return
        assert False, %q
`

// jsControl fails if assertions do.
const jsControl = `{
  const assert = %s;
  const checks = [() => assert(false), () => assert.ok(false), () => assert.equal(1, 2), () => assert.strictEqual(1, 2),
    () => assert.deepEqual([1], [2]), () => assert.deepStrictEqual([1], [2]), () => assert.notEqual(1, 1),
    () => assert.throws(() => {})];
  if (typeof expect === "function") checks.push(() => expect(1).toBe(2), () => expect(1).toEqual(2));
  for (const c of checks) { let ok = true; try { c(); } catch { ok = false; } if (ok) return; }
  throw new Error(%q);
}`

// Inert returns why a change is refused whose tests cannot fail; "" if it is not. The runs are those of the target
// and of the candidate with controls, whose files are by their marks.
func Inert(target, now []Run, targets, nows map[string]string) string {
	for _, was := range target {
		is := of(now, was.Command)
		if is == nil || was.Passed { // controls say nothing of such a command
			continue
		}
		in := func(marks []string, files map[string]string) (list []string) {
			for _, m := range marks {
				if file, ok := files[m]; ok {
					list = append(list, file)
				}
			}
			return list
		}
		had, has := in(was.Controls, targets), in(is.Controls, nows)
		silent := slices.DeleteFunc(slices.Clone(had), func(file string) bool {
			return slices.Contains(has, file) || !slices.Contains(slices.Collect(maps.Values(nows)), file)
		})
		switch {
		case is.Passed && len(silent) > 0:
			return fmt.Sprintf("`%s` passes even when tests in %s are made to fail", was.Command, shown(silent))
		case is.Passed && len(had) == 0 && len(nows) > 0:
			return fmt.Sprintf("`%s` passes even when its tests are made to fail", was.Command)
		case len(silent) > 0 && len(has) < len(had): // a runner that stops at the first names another
			return fmt.Sprintf("`%s` does not see it when tests in %s are made to fail", was.Command, shown(silent))
		}
	}
	return ""
}

// shown names a few files.
func shown(files []string) string {
	const most = 3
	if len(files) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(files[:most], ", "), len(files)-most)
	}
	return strings.Join(files, ", ")
}

// Covered reports whether all controls fail as they must.
func Covered(now []Run, marks map[string]string) bool {
	left := maps.Clone(marks)
	for _, r := range now {
		for _, m := range r.Controls {
			delete(left, m)
		}
	}
	return len(left) == 0
}
