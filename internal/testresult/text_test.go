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
		{
			"mocha with a failure", "  sums\n    ✔ adds\n    1) takes away\n\n  1 passing (5ms)\n  1 failing\n\n  1) sums\n       takes away:\n",
			results{"adds": "passed", "takes away": "failed", "sums": "failed"},
			1,
		},
		{
			"minitest -v", "TestSum#test_a = 0.00 s = .\nTestSum#test_b = 0.01 s = F\nTestSum#test_c = 0.00 s = S\n\n  1) Failure:\n" +
				"3 runs, 2 assertions, 1 failures, 0 errors, 1 skips\n",
			results{"TestSum#test_a": "passed", "TestSum#test_b": "failed", "TestSum#test_c": "skipped"},
			2,
		},
		{"jest", "PASS ./a.test.js\n  \x1b[32m✓\x1b[0m adds (2 ms)\n\nTests:       1 failed, 2 passed, 3 total\n", results{"adds": "passed"}, 2},
		{"vitest", " ✓ src/a.test.ts (3 tests) 4ms\n      Tests  3 passed (3)\n", results{"src/a.test.ts": "passed"}, 3},
		{"mocha", "    ✔ adds\n  1 passing (3ms)\n", results{"adds": "passed"}, 1},
		{"vitest of which some are skipped", " ✓ a.test.ts (3 tests | 1 skipped) 4ms\n  Tests  2 passed | 1 skipped (3)\n", results{"a.test.ts": "passed"}, 2},
		{"rspec", "3 examples, 0 failures\n", nil, 3},

		// Output of tests comes before a status, or before a line that is written at once.
		{"unittest, up to 3.10", "test_a (m.T) ... ok\ntest_b (m.T) ... ok\ntest_a (m.U) ... ok\nRan 3 tests in 0.001s\n", results{"m.T.test_a": "passed", "m.T.test_b": "passed", "m.U.test_a": "passed"}, 3},
		{"unittest with docstrings", "test_a (m.T.test_a)\nIs a test. ... ok\ntest_b (m.T.test_b)\nIs one. ... noise\nskipped 'why'\nRan 2 tests in 0.001s\n\nOK (skipped=1)\n", results{"m.T.test_a": "passed", "m.T.test_b": "skipped"}, 1},
		{"unittest with subtests", "test_a (m.T.test_a) ... \n  test_a (m.T.test_a) (i=1) ... skipped 'x'\ntest_b (m.T.test_b) ... ok\n", results{"m.T.test_a": "skipped", "m.T.test_b": "passed"}, 0},
		{"unittest that prints", "test_a (m.T.test_a) ... .ok\ntest_b (m.T.test_b) ... WARNING:root:careful\nok\ntest_c (m.T.test_c) ... \r50%\r\x1b[32m100%\x1b[0mskipped 'why'\n", results{"m.T.test_a": "passed", "m.T.test_b": "passed", "m.T.test_c": "skipped"}, 0},
		{"unittest without a status", "test_a (m.T.test_a) ... okT\ntest_b (m.T.test_b) ... ok\n", results{"m.T.test_a": "unknown", "m.T.test_b": "passed"}, 0},
		{"unittest that prints another status", "test_a (m.T.test_a) ... ok\nskipped 'why'\ntest_b (m.T.test_b) ... ok\n", results{"m.T.test_a": "unknown", "m.T.test_b": "passed"}, 0},
		{"unittest that ends early", "test_a (m.T.test_a) ... ok\ntest_b (m.T.test_b) ... ", results{"m.T.test_a": "passed", "m.T.test_b": "unknown"}, 0},
		{"unittest that prints before a name", "set uptest_a (m.T.test_a) ... ok\n", results{"m.T.test_a": "passed"}, 0},
		{"unittest that prints behind its tests", "test_a (m.T.test_a) ... T\n" + strings.Repeat("-", 70) + "\nRan 1 test in 0.001s\n\nok\n", results{"m.T.test_a": "unknown"}, 1},
		{"pytest with a live log", "t.py::test_a \n--- live log call ---\nERROR    root:t.py:5 PASSED it on\nPASSED   [ 50%]\nt.py::test_b[a b] .SKIPPED (why) [100%]\n", results{"t.py::test_a": "passed", "t.py::test_b[a b]": "skipped"}, 0},
		{"pytest with a fixture that prints", "t.py::test_a PASSEDbye\nt.py::test_b PASSED\n", results{"t.py::test_a": "unknown", "t.py::test_b": "passed"}, 0},
		{"go test -v that prints", "=== RUN   TestA\n.--- PASS: TestA (0.00s)\n=== RUN   TestB\nx--- SKIP: TestB (0.00s)\n", results{"TestA": "passed", "TestB": "skipped"}, 0},
		{"go test -v that ends early", "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\nok  \tm\t0.01s\n", results{"TestA": "passed"}, 0},
		{"cargo that prints", "hellotest tests::a ... ok\ntest tests::b ... .ok\ntest tests::c - should panic ... \nthread panicked\nok\ntest tests::d ... ignored, not ok\n", results{"tests::a": "passed", "tests::b": "passed", "tests::c": "passed", "tests::d": "skipped"}, 0},
		{"what is running", "Running the server\n--- PASS: TestA (0.00s)\n", results{"TestA": "passed"}, 0},
		{"TAP that prints", "x.ok 1 - adds\nynot ok 2 - fails\n# ok 3 - printed\n", results{"adds": "passed", "fails": "failed"}, 0},
		{"mocha that prints", ".    ✔ adds\n✔ built    ✔ is ✔ed (12ms)\n  2 passing (3ms)\n  1 pending\n", results{"adds": "passed", "is ✔ed": "passed"}, 2},
		{"node's suites", "x▶ all\n  ✔ adds (1ms)\n✔ all (2ms)\n# Subtest: more\n    ok 1 - more adds\nok 1 - more\n  ---\n  type: 'suite'\n", results{"adds": "passed", "more adds": "passed"}, 0},
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

// TestAsMany: counts hold where no summary was printed beside the runner's, and nothing else is skipped.
func TestAsMany(t *testing.T) {
	const two = "Ran 2 tests in 0.001s\n\nOK\n"
	for _, c := range []struct {
		name, before, after string
		want                bool
	}{
		{"as many", two, two, true},
		{"more", two, "Ran 3 tests in 0.001s\n", true},
		{"fewer", two, "Ran 1 test in 0.001s\n", false},
		{"one is skipped", two, "Ran 2 tests in 0.001s\n\nOK (skipped=1)\n", false},
		{"one is skipped, and one is new", two, "Ran 3 tests in 0.001s\n\nOK (skipped=1)\n", false},
		{"the new one is skipped by name", two, "test_a (m.T.test_a) ... skipped 'x'\nRan 3 tests in 0.001s\n\nOK (skipped=1)\n", true},
		{"one more summary", two, "Ran 2 tests in 0.001s\n" + two, false},
		{"one more summary in a line that goes on", "Ran 1 test in 0.001s\n", "xRan 1 test in 0.001s\nRan 2 tests in 0s\n", false},
		{"a summary of another runner", two, "  2 passing (1ms)\n", false},
		{"another one beside it", two, two + "  5 passing (1ms)\n", true},
		{"none", two, "--- PASS: TestA (0.00s)\n", false},
		{"none on the target", "--- PASS: TestA (0.00s)\n", two, false},
		{"a suite of cargo's is new", "   Doc-tests a\ntest result: ok. 1 passed; 0 failed\n", "   Doc-tests a\ntest result: ok. 1 passed; 0 failed\n   Doc-tests b\ntest result: ok. 1 passed; 0 failed\n", true},
		{"a suite of cargo's is gone", "   Doc-tests a\ntest result: ok. 1 passed; 0 failed\n", "   Doc-tests b\ntest result: ok. 2 passed; 0 failed\n", false},
	} {
		parse := func(text string) *testresult.Results {
			t.Helper()
			r, err := testresult.ParseText(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if got := testresult.AsMany(parse(c.before), parse(c.after)); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if testresult.AsMany(nil, nil) || testresult.AsMany(&testresult.Results{}, &testresult.Results{}) {
		t.Error("a report is no text")
	}
}
