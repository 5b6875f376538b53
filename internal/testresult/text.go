package testresult

import (
	"io"
	"regexp"
	"strconv"
	"strings"
)

// A form is how a runner prints the result of a test for people: the name, by its number among the groups, and the
// word of the status, or the status of all lines of that form.
type form struct {
	line         *regexp.Regexp
	name, status int
	is           Status
}

// forms are the lines of runners that print names where nothing else was asked for.
var forms = []form{
	// cargo
	{regexp.MustCompile(`^test (\S.*?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b`), 1, 2, ""},
	// unittest -v
	{regexp.MustCompile(`^\w+ \((\S+)\)(?:\s.*)? \.\.\. (ok|FAIL|ERROR|skipped|expected failure)\b`), 1, 2, ""},
	// pytest -v
	{regexp.MustCompile(`^(\S+::\S.*?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b`), 1, 2, ""},
	// go test -v
	{regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+) \(`), 2, 1, ""},
	// TAP
	{regexp.MustCompile(`^\s*(ok|not ok) \d+(?: -)? (.*)$`), 2, 1, ""},
	// vitest, jest, mocha, node
	{regexp.MustCompile(`^\s*[✓✔√] (.+)$`), 1, 0, Passed},
	{regexp.MustCompile(`^\s*[✗✖×✕] (.+)$`), 1, 0, Failed},
	{regexp.MustCompile(`^\s*[﹣○↓] (.+)$`), 1, 0, Skipped},
}

// statuses are the words of runners.
var statuses = map[string]Status{
	"ok": Passed, "PASSED": Passed, "PASS": Passed, "XPASS": Passed,
	"ignored": Skipped, "skipped": Skipped, "SKIPPED": Skipped, "SKIP": Skipped, "XFAIL": Skipped,
	"expected failure": Skipped,
}

// counts match the lines that say how many tests ran or passed.
var counts = []struct {
	line *regexp.Regexp
	all  bool // those that were skipped are counted, too
}{
	{regexp.MustCompile(`^Ran (\d+) tests? in `), true},                                 // unittest; [unpassed] follows
	{regexp.MustCompile(`^(?:=+ )?(?:\d+ failed, )?(\d+) passed\b`), false},             // pytest
	{regexp.MustCompile(`^\s*Tests:?\s+(?:\d+ \w+(?:,| \|) )*?(\d+) passed\b`), false},  // jest, vitest
	{regexp.MustCompile(`^\s*(\d+) passing\b`), false},                                  // mocha
	{regexp.MustCompile(`^(?:\d+ doctests?, )?(\d+) (?:examples|tests), \d+ fa`), true}, // rspec, mix
	{regexp.MustCompile(`^(?:OK \(|Tests: )(\d+)(?: tests?)?, `), true},                 // phpunit
	{regexp.MustCompile(`^ok \| (\d+) passed\b`), false},                                // deno
	{regexp.MustCompile(`^(?:\[\w+\] )?Tests run: (\d+), `), true},                      // maven
	{regexp.MustCompile(`^Passed!\s.*Passed:\s*(\d+)`), false},                          // dotnet
	{regexp.MustCompile(`^(?:#|ℹ) pass (\d+)$`), false},                                 // node
}

// unpassed matches how many of the tests of such a line have not passed, or of unittest's, in a line of its own.
var (
	unpassed = regexp.MustCompile(
		`\b(?:[Ss]kipped|Incomplete|expected failures)[=:] ?(\d+)|\b(\d+) (?:pending|skipped|excluded)\b`)
	unittest = regexp.MustCompile(`^OK \(.*=\d+\)$`)
)

// less returns how many tests a line says have not passed.
func less(line string) (sum int) {
	for _, m := range unpassed.FindAllStringSubmatch(line, -1) {
		if n, err := strconv.Atoi(m[1] + m[2]); err == nil {
			sum += n
		}
	}
	return sum
}

var (
	colour   = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
	duration = regexp.MustCompile(`(?:\s+\(?[0-9.]+\s*m?s\)?|\s+\(\d+ tests?[^)]*\)|\s+# time=\S+)+$`)
	running  = regexp.MustCompile(`^\s*(?:Running (?:unittests )?(\S+)|Doc-tests (\S+))`)
	skipping = regexp.MustCompile(`(?i)\s+# (?:skip|todo)\b.*$`)
)

// ParseText parses the output of a command for people, as far as it names its tests or counts them. It returns nil if
// it does neither. Such names tell what ran, and excuse nothing. The error is the reader's.
func ParseText(r io.Reader) (*Results, error) {
	results, suite, seen := &Results{}, "", false
	err := eachLine(r, func(raw []byte) {
		line := colour.ReplaceAllString(string(raw), "")
		if m := running.FindStringSubmatch(line); m != nil {
			suite = m[1] + m[2] + "::" // cargo says whose tests follow
			return
		}
		for _, f := range forms {
			m := f.line.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			name, status := strings.TrimSpace(m[f.name]), f.is
			if status == "" {
				if status = statuses[m[f.status]]; status == "" {
					status = Failed
				}
			}
			if plain := skipping.ReplaceAllString(name, ""); plain != name {
				name, status = plain, Skipped
			}
			seen = true
			results.add(suite+duration.ReplaceAllString(name, ""), status)
			return
		}
		if unittest.MatchString(line) {
			results.Count -= less(line)
			return
		}
		for _, c := range counts {
			if m := c.line.FindStringSubmatch(line); m != nil {
				if n, err := strconv.Atoi(m[1]); err == nil {
					seen = true
					results.Count += n
					if c.all {
						results.Count -= less(line)
					}
				}
				return
			}
		}
	})
	if err != nil || !seen {
		return nil, err
	}
	return results, nil
}
