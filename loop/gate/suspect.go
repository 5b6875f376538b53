package gate

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ralph"
)

// equal matches how code says of what it is equal to, by the ending of its file, up to where that begins. The group is
// the name of what it is compared with.
var equal = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		".py": either(`def __eq__\(\s*\w+\s*,\s*(\w+)[^\n]*?\)[^:\n]*:`, `__eq__\s*=\s*lambda\s+\w+\s*,\s*(\w+)\s*:`,
			`def __eq__\(\s*\*`, `["']__eq__["']`, `(?m)^\s*__eq__\s*=\s*\w+\s*$`, `\bmock\b.*\bANY\b`),
		".go":   either(`func \([^)]*\) Equal\((\w+)\s+[^)]+\)\s*bool\s*\{`, `func \([^)]*\) Equal\([^\s)]+\)\s*bool\s*\{`),
		".rs":   either(`fn eq\(\s*&self\s*,\s*(\w+)\s*:[^)]*\)\s*->\s*bool\s*\{`),
		".js":   either(`\[Symbol\.toPrimitive\]`, `\bvalueOf\s*(?:\(\s*\)\s*\{|[:=])`, `\basymmetricMatch\b`),
		".rb":   either(`def ==\(?\s*(\w+)\)?`),
		".java": either(`boolean equals\(\s*\w+\s+(\w+)\s*\)\s*\{`),
		".kt":   either(`fun equals\(\s*(\w+)\s*:[^)]*\)[^{=]*[{=]`),
		".cs":   either(`bool Equals\(\s*\w+\??\s+(\w+)\s*\)\s*(?:\{|=>)`),
	}
})

// observes matches how code asks whether it is under test, or reads tests.
var observes = sync.OnceValue(func() *regexp.Regexp {
	return either(`PYTEST_CURRENT_TEST|PYTEST_VERSION|\bJEST_WORKER_ID\b|\bVITEST(?:_\w+)?\b|\bNODE_TEST_CONTEXT\b`,
		`["'](?:_?pytest|unittest|nose|jest|vitest|mocha)["']\s+(?:not\s+)?in\s+(?:sys\.|globals|set\()`,
		`\btesting\.Testing\(\)|Lookup\("test\.|HasSuffix\(os\.Args\[0\],\s*"\.test"|\bcfg!\((?:not\()?test\b`,
		`\bRALPH_[A-Z]+\b|\bco_name\b|\bNODE_ENV\W{1,12}test\b|\bcfg\(not\(test\)\)`,
		`(?:open|[rR]ead\w*|Path|join|require|import)\s*\(.*["'][^"']*`+
			`(?:\btests?/|\btest_\w+\.py|_test\.(?:go|sh)|\.(?:test|spec)\.[cm]?[jt]s)`)
})

// replacing matches how code replaces what tests are written with, or ends their program, in languages without
// controls, by the ending of its file.
var replacing = sync.OnceValue(func() map[string]*regexp.Regexp {
	c := either(`^\s*#\s*(?:define|undef)\s+(?:assert\w*|NDEBUG|main|if|return|exit|abort)\b`,
		`^\s*#\s*(?:define|undef)\s+(?:ASSERT|EXPECT|CHECK|REQUIRE|TEST)\w*\b`,
		`\batexit\s*\(\s*_?exit\b`)
	return map[string]*regexp.Regexp{
		".c": c, ".h": c, ".cc": c, ".cpp": c, ".cxx": c, ".hpp": c, ".hh": c,
		".rb": either(`^\s*(?:class|module)\s+(?:Minitest|RSpec|Test::Unit)\b`, `\bdef\s+(?:assert|refute|expect)\w*`,
			`\b(?:Minitest|RSpec|Test::Unit)[\w:]*\.(?:class_eval|prepend|include|send|define_method)\b`, `\bexit!|\bat_exit\b`),
	}
})

// callers matches how code asks who calls it, and which program it is part of; naming how it names tests.
var (
	callers = sync.OnceValue(func() *regexp.Regexp {
		return either(`\bruntime\.Callers?\(|\bdebug\.(?:Stack|ReadBuildInfo)\(|\bos\.Args\[0\]|\bos\.Executable\(`,
			`\binspect\.(?:stack|currentframe|getframeinfo)\b|\b_getframe\b|\bf_back\b|\btraceback\.\w+_stack\b`,
			`\bsys\.(?:argv\[0\]|orig_argv)|\b__main__\b.*\b__file__\b`,
			`\.stack\b|\b(?:captureStackTrace|prepareStackTrace)\b|\brequire\.main\b|\bprocess\.(?:argv\[1\]|execArgv)`,
			`\bcaller(?:_locations)?\b|\bgetStackTrace\(|\bdebug_backtrace\(|\benv::(?:args|current_exe)\(`)
	})
	naming = sync.OnceValue(func() *regexp.Regexp {
		return either("[\"'`/][^\"'`\\n]*(?i:test|\\bspecs?\\b)")
	})
)

// ends matches where the next declaration begins.
var ends = regexp.MustCompile(`\n\s*(?:def|fn|fun|class|public|impl|@)\b`)

// followed is how much of a comparison is looked at, in bytes.
const followed = 400

// Suspects returns what a change adds to code that makes tests pass whatever they expect, as far as that can be read:
// comparisons that are true of everything, and code that knows when it is tested. Nobody but people can tell
// whether that is meant.
func Suspects(files []File, decides []Changed) (list []ralph.Weakening) {
	for _, f := range files {
		if f.Is == nil || slices.ContainsFunc(decides, func(c Changed) bool { return c.Path == f.Path && !c.Code }) {
			continue
		}
		add := func(why string) {
			list = append(list, ralph.Weakening{Kind: ralph.TestLoosened, Test: f.Path, Why: why})
		}
		l := language(f.Path)
		switch {
		case equals(l, f.Is) > equals(l, f.Was):
			add("what it compares does not depend on what that is compared with")
		case programs[l] && asks(added(f)):
			add("it asks whether it is tested, or reads tests")
		case replacing()[path.Ext(f.Path)] != nil && slices.ContainsFunc(added(f), replacing()[path.Ext(f.Path)].Match):
			add("it replaces what tests are written with, or ends their program")
		}
	}
	return list
}

// programs are the endings of what may ask whether it is tested.
var programs = map[string]bool{
	".go": true, ".py": true, ".js": true, ".rs": true, ".rb": true, ".java": true, ".kt": true, ".php": true, ".cs": true,
}

// asks reports whether lines ask whether they are tested.
func asks(lines [][]byte) bool {
	return slices.ContainsFunc(lines, observes().Match) ||
		slices.ContainsFunc(lines, callers().Match) && slices.ContainsFunc(lines, naming().Match)
}

// equals counts the comparisons in a text that do not look at what they compare with.
func equals(language string, text []byte) (n int) {
	begins := equal()[language]
	if begins == nil {
		return 0
	}
	for _, at := range begins.FindAllSubmatchIndex(text, -1) {
		body, other := string(text[at[1]:min(at[1]+followed, len(text))]), ""
		for i := 2; i+1 < len(at); i += 2 {
			if at[i] >= 0 {
				other = string(text[at[i]:at[i+1]])
			}
		}
		if next := ends.FindStringIndex(body); next != nil {
			body = body[:next[0]]
		}
		if other == "" || !looks(body, other) {
			n++
		}
	}
	return n
}

// looks reports whether code looks at what is in a name, or compares it.
func looks(body, name string) bool {
	return slices.ContainsFunc([]string{
		name + ".", name + "[", "= " + name, name + " =", "(" + name + ")", name + "?.", " is " + name,
		", " + name + ")", name + " !=",
	}, func(s string) bool { return strings.Contains(body, s) })
}
