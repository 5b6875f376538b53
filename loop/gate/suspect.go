package gate

import (
	"bytes"
	"path"
	"slices"

	"ralph"
	"ralph/internal/lazy"
)

// languages maps file endings to the ending that stands for the language.
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

// programs are the languages of programs.
var programs = map[string]bool{
	".go": true, ".py": true, ".js": true, ".rs": true, ".rb": true, ".java": true, ".kt": true, ".php": true, ".cs": true,
	".sh": true,
}

// observes matches code that detects tests, or reads them. Callers matches code that inspects its callers and its
// program; naming matches their names for tests.
var (
	observes = lazy.Regexp(`PYTEST_CURRENT_TEST|PYTEST_VERSION`,
		`\bJEST_WORKER_ID\b|\bVITEST(?:_\w+)?\b|\bNODE_TEST_CONTEXT\b`,
		`["'](?:_?pytest|unittest|nose|jest|vitest|mocha)["']\s+(?:not\s+)?in\s+(?:sys\.|globals|set\()`,
		`\btesting\.Testing\(\)|Lookup\("test\.|HasSuffix\(os\.Args\[0\],\s*"\.test"|\bcfg!\((?:not\()?test\b`,
		`\bseen/tree\b|\bworkspaces/(?:seen|check-)`,
		`\bRALPH_[A-Z]+\b|\bco_name\b|\bNODE_ENV\W{1,12}test\b|\bcfg\(not\(test\)\)`,
		`(?:open|[rR]ead\w*|Path|join|require|import)\s*\(.*["'][^"']*`+
			`(?:\btests?/|\btest_\w+\.py|_test\.(?:go|sh)|\.(?:test|spec)\.[cm]?[jt]s)`)
	callers = lazy.Regexp(`\bruntime\.Callers?\(|\bdebug\.(?:Stack|ReadBuildInfo)\(|\bos\.Args\[0\]|\bos\.Executable\(`,
		`\binspect\.(?:stack|currentframe|getframeinfo)\b|\b_getframe\b|\bf_back\b|\btraceback\.\w+_stack\b`,
		`\bsys\.(?:argv\[0\]|orig_argv)|\b__main__\b.*\b__file__\b`,
		`\.stack\b|\b(?:captureStackTrace|prepareStackTrace)\b|\brequire\.main\b|\bprocess\.(?:argv\[1\]|execArgv)`,
		`\bcaller(?:_locations)?\b|\bgetStackTrace\(|\bdebug_backtrace\(|\benv::(?:args|current_exe)\(`)
	naming = lazy.Regexp("[\"'`/][^\"'`\\n]*(?i:test|\\bspecs?\\b)")
)

// Suspects returns additions to code that detect a test run, if they are readable: such code can also satisfy
// mutants of tests. Only people can tell whether that is intended.
func Suspects(files []File, decides []Changed) (list []ralph.Weakening) {
	for _, f := range files {
		if f.Is == nil || slices.ContainsFunc(decides, func(c Changed) bool { return c.Path == f.Path && !c.Code }) {
			continue
		}
		lines := added(f)
		l := language(f.Path)
		if programs[l] && l != ".sh" && (slices.ContainsFunc(lines, observes().Match) ||
			slices.ContainsFunc(lines, callers().Match) && slices.ContainsFunc(lines, naming().Match)) {
			list = append(list, ralph.Weakening{
				Kind: ralph.TestLoosened, Test: f.Path, Why: "it asks whether it is tested, or reads tests",
			})
		}
	}
	return list
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
