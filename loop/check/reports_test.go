package check_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"ralph/loop/check"
)

// TestReportsOfACommand: only files count, and nothing that a command leaves in the place of one is waited for.
func TestReportsOfACommand(t *testing.T) {
	const report = `echo '<testsuite><testcase name="a"/></testsuite>' > `
	for name, c := range map[string]struct {
		script string
		tests  bool
	}{
		"a report":                    {report + "report.xml", true},
		"a link to a report":          {report + "report; ln -s report report.xml", true},
		"behind a link of the person": {"mkdir -p real/a; ln -s real linked; " + report + "real/a/report.txt", true},
		"a named pipe":                {"mkfifo report.xml", false},
		"a link to a named pipe":      {"mkfifo pipe; ln -s pipe report.xml", false},
		"a link to a device":          {"ln -s /dev/zero report.xml", false},
		"links in circles":            {"ln -s . a; ln -s . b", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := check.Rules{JUnit: []string{"**/*.xml", "linked/**/*.txt"}, Timeout: time.Minute, Env: []string{"PATH=" + os.Getenv("PATH")}}
			round := check.Round{Dir: dir, Session: t.Name(), Log: filepath.Join(t.TempDir(), "log")}
			list, err := r.Run(t.Context(), round, []string{c.script})
			if err != nil {
				t.Fatal(err)
			}
			if got := list[0].Tests != nil; got != c.tests || !list[0].Check.Passed {
				t.Errorf("it reports tests: %t; %+v", got, list[0])
			}
		})
	}
}
