package testresult

import (
	"io"
	"regexp"
	"strconv"
	"strings"

	"ralph/internal/lazy"
)

// A pattern is a regular expression and a part of all that it matches, which is looked for first since it is cheap.
type pattern struct {
	has        string
	expression func() *regexp.Regexp
}

func like(has, expression string) pattern { return pattern{has, lazy.Regexp(expression)} }

// find returns the groups of the match in a line, and the end of its last group; nil if there is no
// match.
func (p pattern) find(line string) (groups []string, end int) {
	if !strings.Contains(line, p.has) {
		return nil, 0
	}
	at := p.expression().FindStringSubmatchIndex(line)
	for i := 0; i < len(at); i += 2 {
		group := ""
		if at[i] >= 0 {
			group, end = line[at[i]:at[i+1]], at[i+1]
		}
		groups = append(groups, group)
	}
	return groups, end
}

// A form is a runner's line with a test and its status, written at once. Test output without a newline may precede it
// on the line. Name and status are numbers of groups; without a status, all lines of that form have is.
type form struct {
	line         pattern
	name, status int
	is           Status
}

// forms are the lines of runners that print a test when it has ended.
var forms = []form{
	// go test -v
	{like("--- ", `--- (PASS|FAIL|SKIP): (\S+) \(\d+\.\d+s\)`), 2, 1, ""},
	// TAP
	{like("ok ", `^\s*(ok|not ok) \d+(?: -)? (.*)$`), 2, 1, ""},
	{like("ok ", `(not ok|ok) \d+ - (.+)$`), 2, 1, ""},
	// minitest -v
	{like(" s = ", `(\w[\w:]*#\S+) = \d+\.\d+ s = (\.|F|E|S)$`), 1, 2, ""},
	// vitest, jest, mocha, node; marks begin with these bytes
	{like("\xe2", `^.*\S {2,}[✓✔√] (.+)$`), 1, 0, Passed},
	{like("\xe2", `^\s*[✓✔√] (.+)$`), 1, 0, Passed},
	{like("\xe2", `^\s*[✗✖✕] (.+)$`), 1, 0, Failed},
	{like("×", `^\s*× (.+)$`), 1, 0, Failed},
	{like(") ", `^\s{2,}\d+\) (.*[^:])$`), 1, 0, Failed}, // mocha's
	{like("\xe2", `^\s*[○↓] (?:skipped |todo )?(.+)$`), 1, 0, Skipped},
	{like("﹣", `^\s*﹣ (.+)$`), 1, 0, Skipped},
	{like("\xe2", `^.*[✓✔√] (.+)$`), 1, 0, Passed},
}

// A start is a runner's line for the beginning of a test. The status follows the test's output, in that line or a
// later one, and ends its line.
type start struct {
	line   pattern
	status func() *regexp.Regexp
	name   func(groups []string) string
}

var (
	cargoStatus  = lazy.Regexp(`(ok|FAILED|ignored)(?:, .*| <[\d.]+s>)?$`)
	pytestStatus = lazy.Regexp(`(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)(?: \(.*\))?\s*(?:\[ *\d+%\])?$`)
	pythonStatus = lazy.Regexp(
		`(ok|FAIL|ERROR|skipped|expected failure|unexpected success)(?: '.*'| ".*")?$`)
)

// starts are the lines of runners that print a test when it begins.
var starts = []start{
	// cargo
	{like("test ", `^test (\S.*?)(?: - should panic)? \.\.\. ?`), cargoStatus, first},
	{like("test ", `^.*test (\S+)(?: - should panic)? \.\.\. ?`), cargoStatus, first},
	// unittest -v, on whose second line a docstring may follow
	{like(" ... ", `^(?:.*\W)?(\w+) \(((?:[\w<>]+\.)+[\w<>]+)\)(?: .*?)? \.\.\. ?`), pythonStatus, method},
	{like(" (", `^(?:.*\W)?(test\w*) \(((?:[\w<>]+\.)+[\w<>]+)\)$`), pythonStatus, method},
	// pytest -v
	{like("::", `^(\S+\.\w+::[^\s\[]+(?:\[.*\])?) (?:PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b`), pytestStatus, first},
	{like("::", `^(\S+\.\w+::[^\s\[]+(?:\[.*?\])?) `), pytestStatus, first},
}

func first(groups []string) string { return groups[1] }

// method returns the name of a Python test. Up to Python 3.10 its class follows it, from 3.11 on
// its full name.
func method(groups []string) string {
	if i := strings.LastIndexByte(groups[2], '.'); strings.HasSuffix(groups[1], groups[2][i+1:]) {
		return groups[2]
	}
	return groups[2] + "." + groups[1]
}

// statuses are the words of runners.
var statuses = map[string]Status{
	"ok": Passed, "PASSED": Passed, "PASS": Passed, "XPASS": Passed, ".": Passed, "S": Skipped,
	"ignored": Skipped, "skipped": Skipped, "SKIPPED": Skipped, "SKIP": Skipped, "XFAIL": Skipped,
	"expected failure": Skipped,
}

// status returns the status for a word.
func status(word string) Status {
	if s := statuses[word]; s != "" {
		return s
	}
	return Failed
}

// counts match the lines with the number of tests that ran or passed.
var counts = []struct {
	runner string
	line   pattern
	all    bool // skipped ones are counted, too
}{
	{"unittest", like("Ran ", `Ran (\d+) tests? in `), true}, // [unpassed] follows
	{"cargo", like("test result", `test result: \w+\. (\d+) passed; `), false},
	{"pytest", like(" passed", `(?:^|=+ )(?:\d+ failed, )?(\d+) passed\b`), false},
	{"jest", like("Tests", `(?:^|\s)Tests:?\s+(?:\d+ \w+(?:,| \|) )*?(\d+) passed\b`), false}, // vitest, too
	{"minitest", like(" runs, ", `^(\d+) runs, \d+ assertions, `), true},
	{"mocha", like(" passing", `(?:^|\s)(\d+) passing\b`), false},
	{"rspec", like(", ", `^(?:\d+ doctests?, )?(\d+) (?:examples|tests), \d+ fa`), true}, // mix, too
	{"phpunit", like(", ", `^(?:OK \(|Tests: )(\d+)(?: tests?)?, `), true},
	{"deno", like("ok | ", `^ok \| (\d+) passed\b`), false},
	{"maven", like("Tests run: ", `^(?:\[\w+\] )?Tests run: (\d+), `), true},
	{"dotnet", like("Passed!", `^Passed!\s.*Passed:\s*(\d+)`), false},
	{"node", like(" pass ", `^(?:#|ℹ) pass (\d+)$`), false},
}

// unpassed matches the number of tests of such a line that have not passed. Some runners have a
// separate line for it.
var (
	unpassed = lazy.Regexp(`\b(?:[Ss]kipped|Incomplete|expected failures)[=:] ?(\d+)|` +
		`\b(\d+) (?:pending|skipped|skips|excluded|ignored|xfailed|todo)\b`)
	unittest = like("OK (", `^OK \(.*=\d+\)$`)
	mocha    = like(" pending", `^\s*(\d+) pending$`)
	node     = like("d", `^(?:#|ℹ) (?:skipped|todo) (\d+)$`)
)

// less returns the number of tests that a line reports as not passed.
func less(line string) (sum int) {
	for _, m := range unpassed().FindAllStringSubmatch(line, -1) {
		if n, err := strconv.Atoi(m[1] + m[2]); err == nil {
			sum += n
		}
	}
	return sum
}

var (
	colour    = lazy.Regexp("\x1b\\[[0-9;]*[A-Za-z]")
	duration  = lazy.Regexp(`(?:\s+\(?[0-9.]+\s*m?s\)?|\s+\(\d+ tests?[^)]*\)|\s+# time=\S+)+$`)
	running   = like("", `^\s*(?:Running (?:unittests )?(\S+) \(.*[/\\]deps[/\\].*\)|Doc-tests (\S+))$`) // of cargo
	skipping  = lazy.Regexp(`(?i)\s+# (?:skip|todo)\b.*$`)
	several   = lazy.Regexp(`\((\d+) tests?(?: \| (\d+) skipped)?[^)]*\)`) // of a file of vitest
	suiteName = like("▶", `^.*▶ (.+)$`)                                    // of node, before its tests
	suiteType = like("suite", `^\s*type: 'suite'$`)                        // of node, after its name
)

// separator is unittest's line behind its tests; pytest's is of another sign.
const separator = "----------------------------------------------------------------------"

// ParseText parses the output of a command for people, if it names its tests or counts them; otherwise it returns
// nil. Such names show which tests ran, and excuse nothing. The error is the reader's.
//
// A runner prints a name, then the test prints its output, then comes the status. So a name without a clear status is
// [Unknown], and a test with much output may have no name at all: [AsMany] compares counts.
func ParseText(r io.Reader) (*Results, error) {
	p := reader{Results: &Results{Text: true}, suites: map[string]bool{}}
	err := eachLine(r, func(raw []byte) { p.line(colour().ReplaceAllString(string(raw), "")) })
	p.end()
	if err != nil || !p.seen {
		return nil, err
	}
	return p.Results, nil
}

// A reader reads text.
type reader struct {
	*Results
	seen   bool            // a status or a count
	suite  string          // suite of the following tests, as cargo prints it
	suites map[string]bool // names that are not tests

	open *start // test that has begun; nil if there is none
	name string // its name
	says Status // its status if known; "" before any
	last string // the last name with its status
}

// line reads a line.
func (p *reader) line(line string) {
	if m, _ := running.find(line); m != nil {
		p.end()
		p.suite = m[1] + m[2] + "::"
		return
	}
	if p.count(line) || strings.HasPrefix(line, separator) || strings.HasPrefix(line, "=====") {
		p.end()
	} else if strings.HasPrefix(strings.TrimSpace(line), "#") { // TAP: the test's output
		return
	}
	for i, s := range starts {
		if groups, end := s.line.find(line); groups != nil {
			p.end()
			p.open, p.name = &starts[i], p.suite+s.name(groups)
			line = line[end:] // from the name on: the match may have the status
			break
		}
	}
	if p.open != nil {
		if m := p.open.status().FindStringSubmatch(line); m != nil {
			s := status(m[1])
			if p.says != "" && p.says != s {
				s = Unknown // one of them was printed
			}
			p.says = s
		}
	}
	p.whole(line)
}

// whole reads a line that has both a name and a status.
func (p *reader) whole(line string) {
	if m, _ := suiteName.find(line); m != nil {
		p.suites[duration().ReplaceAllString(m[1], "")] = true
		return
	}
	if m, _ := suiteType.find(line); m != nil && p.last != "" {
		if p.Tests[p.last] == Passed {
			p.Named--
		}
		delete(p.Tests, p.last)
		p.last = ""
		return
	}
	for _, f := range forms {
		m, _ := f.line.find(line)
		if m == nil {
			continue
		}
		name, is := strings.TrimSpace(m[f.name]), f.is
		if is == "" {
			is = status(m[f.status])
		}
		if plain := skipping().ReplaceAllString(name, ""); plain != name {
			name, is = plain, Skipped
		}
		tests := 1
		if m := several().FindStringSubmatch(name); m != nil {
			tests = atoi(m[1]) - atoi(m[2])
		}
		if name = duration().ReplaceAllString(name, ""); !p.suites[name] {
			p.take(p.suite+name, is, tests)
			p.last = p.suite + name
		}
		return
	}
}

// take adds the name of one or more tests.
func (p *reader) take(name string, s Status, tests int) {
	p.seen = p.seen || s != Unknown
	p.add(name, s)
	if s == Passed || s == Unknown {
		p.Named += tests
	}
}

// end adds the test that has begun.
func (p *reader) end() {
	if p.open != nil {
		if p.says == "" {
			p.says = Unknown
		}
		p.take(p.name, p.says, 1)
		p.open, p.says = nil, ""
	}
}

// count reads a line that counts tests.
func (p *reader) count(line string) bool {
	add := func(runner string, c Count) bool {
		if p.Counts == nil {
			p.Counts = map[string]Count{}
		}
		old := p.Counts[runner]
		p.Counts[runner] = Count{old.Lines + c.Lines, old.Passed + c.Passed, old.Skipped + c.Skipped}
		p.seen = true
		return true
	}
	if m, _ := unittest.find(line); m != nil {
		return add("unittest", Count{Passed: -less(line), Skipped: less(line)})
	}
	if m, _ := mocha.find(line); m != nil {
		return add("mocha", Count{Skipped: atoi(m[1])})
	}
	if m, _ := node.find(line); m != nil {
		return add("node", Count{Skipped: atoi(m[1])})
	}
	for _, c := range counts {
		m, _ := c.line.find(line)
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return true
		}
		found := Count{Lines: 1, Passed: n, Skipped: less(line)}
		if c.all {
			found.Passed -= found.Skipped
		}
		if c.runner == "cargo" {
			return add(strings.TrimSpace("cargo "+p.suite), found)
		}
		return add(c.runner, found)
	}
	return false
}

// atoi returns the number in a text; 0 if it has none.
func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
