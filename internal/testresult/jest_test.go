package testresult_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph/internal/testresult"
)

func TestJest(t *testing.T) {
	type results = map[string]testresult.Status
	for _, c := range []struct {
		name, report string
		want         results
		broken       string // its beginning
	}{
		{
			"passed, failed, skipped", `{"numFailedTests": 1, "testResults": [{"name": "/app/src/a.test.js", "status": "failed", "assertionResults": [
				{"ancestorTitles": ["sum", "of two"], "title": "adds", "status": "passed"},
				{"ancestorTitles": [], "title": "fails", "status": "failed"},
				{"ancestorTitles": [], "title": "waits", "status": "pending"}, {"ancestorTitles": [], "title": "later", "status": "todo"}]}]}`,
			results{
				"src/a.test.js > sum > of two > adds": "passed", "src/a.test.js > fails": "failed",
				"src/a.test.js > waits": "skipped", "src/a.test.js > later": "skipped",
			},
			"",
		},
		{"a file that cannot be loaded", `{"testResults": [{"name": "/app/a.test.js", "status": "failed", "assertionResults": []}]}`, results{"a.test.js": "failed"}, ""},
		{"a file elsewhere", `{"testResults": [{"name": "/other/a.test.js", "assertionResults": [{"title": "adds", "status": "passed"}]}]}`, results{"a.test.js > adds": "passed"}, ""},
		{"a failure without a name", `{"numFailedTests": 2, "testResults": []}`, nil, "jest counts 2 failures and names none"},
		{"no JSON", `{"testResults": [`, nil, "jest's report cannot be read: "},
		{"another form", `{"testResults": 3}`, nil, "jest's report cannot be read: "},
	} {
		got, err := testresult.ParseJest(strings.NewReader(c.report), "/app")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, got.Tests); diff != "" || !strings.HasPrefix(got.Broken, c.broken) || (got.Broken == "") != (c.broken == "") {
			t.Errorf("%s: %s%q", c.name, diff, got.Broken)
		}
	}
}
