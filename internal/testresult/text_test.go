package testresult_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph/internal/testresult"
)

func TestText(t *testing.T) {
	type results = map[string]testresult.Status
	for _, c := range []struct {
		name, output string
		want         results
		count        int
	}{
		{"nothing", "built in 3 s\nok\n", nil, 0},
		{"cargo", `     Running unittests src/lib.rs (target/debug/deps/a-1)
running 3 tests
test tests::adds ... ok
test tests::slow ... ignored
test tests::fails ... FAILED
test result: FAILED. 1 passed; 1 failed; 1 ignored
   Doc-tests a
test src/lib.rs - add (line 3) ... ok
`, results{
			"src/lib.rs::tests::adds": "passed", "src/lib.rs::tests::slow": "skipped", "src/lib.rs::tests::fails": "failed",
			"a::src/lib.rs - add (line 3)": "passed",
		}, 1},
		{"unittest", "...\n----\nRan 3 tests in 0.001s\n\nOK\n", nil, 3},
		{"unittest of which some do not count", "Ran 4 tests in 0.001s\n\nOK (skipped=2, expected failures=1)\n", nil, 1},
		{"rspec with pending ones", "3 examples, 0 failures, 1 pending\n", nil, 2},
		{"phpunit with others", "Tests: 5, Assertions: 3, Skipped: 1, Incomplete: 1.\n", nil, 3},
		{"maven with skipped ones", "[INFO] Tests run: 4, Failures: 0, Errors: 0, Skipped: 1\n", nil, 3},
		{"unittest of one", "Ran 1 test in 0.001s\n", nil, 1},
		{"unittest -v", "test_a (tests.test_a.T.test_a) ... ok\ntest_b (tests.test_a.T.test_b) ... skipped 'why'\n" +
			"test_c (tests.test_a.T.test_c) ... FAIL\nRan 3 tests in 0.001s\n", results{
			"tests.test_a.T.test_a": "passed", "tests.test_a.T.test_b": "skipped", "tests.test_a.T.test_c": "failed",
		}, 3},
		{"pytest", "..s   [100%]\n2 passed, 1 skipped in 0.01s\n", nil, 2},
		{"pytest -v", "tests/test_a.py::test_a PASSED  [ 50%]\ntests/test_a.py::test_b[1-2] FAILED [100%]\n" +
			"===== 1 failed, 1 passed in 0.01s =====\n", results{"tests/test_a.py::test_a": "passed", "tests/test_a.py::test_b[1-2]": "failed"}, 1},
		{
			"go test -v", "=== RUN   TestA\n    --- PASS: TestA/b (0.00s)\n--- PASS: TestA (0.00s)\n--- SKIP: TestB (0.00s)\n",
			results{"TestA/b": "passed", "TestA": "passed", "TestB": "skipped"},
			0,
		},
		{
			"TAP", "TAP version 13\n# Subtest: adds\nok 1 - adds\n    not ok 1 - inner\nok 2 - later # SKIP\n1..2\n# pass 1\n",
			results{"adds": "passed", "inner": "failed", "later": "skipped"},
			1,
		},
		{
			"node", "✔ adds (0.5ms)\n▶ suite\n  ✔ inner 1.5 (1.2ms)\n  ﹣ later (0.1ms) # SKIP\n▶ suite (3ms)\n✖ fails (1ms)\nℹ pass 2\n",
			results{"adds": "passed", "inner 1.5": "passed", "later": "skipped", "fails": "failed"},
			2,
		},
		{"jest", "PASS ./a.test.js\n  \x1b[32m✓\x1b[0m adds (2 ms)\n\nTests:       1 failed, 2 passed, 3 total\n", results{"adds": "passed"}, 2},
		{"vitest", " ✓ src/a.test.ts (3 tests) 4ms\n      Tests  3 passed (3)\n", results{"src/a.test.ts": "passed"}, 3},
		{"mocha", "    ✔ adds\n  1 passing (3ms)\n", results{"adds": "passed"}, 1},
		{"rspec", "3 examples, 0 failures\n", nil, 3},
		{"mix", "1 doctest, 3 tests, 0 failures\n", nil, 3},
		{"phpunit", "OK (3 tests, 5 assertions)\n", nil, 3},
		{"maven", "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0\n", nil, 2},
		{"dotnet", "Passed!  - Failed:     0, Passed:     3, Skipped:     0\n", nil, 3},
	} {
		got, err := testresult.ParseText(strings.NewReader(c.output))
		switch {
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case got == nil:
			if c.want != nil || c.count != 0 {
				t.Errorf("%s: nothing", c.name)
			}
		default:
			if diff := cmp.Diff(c.want, got.Tests); diff != "" || got.Count() != c.count {
				t.Errorf("%s: %s%d tests", c.name, diff, got.Count())
			}
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("ok 1 - a\nRan 99999999999999999999 tests in 1s\n✓ \n")
	f.Fuzz(func(t *testing.T, output string) {
		if _, err := testresult.ParseText(strings.NewReader(output)); err != nil {
			t.Error(err)
		}
	})
}
