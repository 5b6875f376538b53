package testresult_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph/internal/testresult"
)

func TestGoJSON(t *testing.T) {
	for _, tt := range []struct {
		name, output string
		want         map[string]testresult.Status
		broken       bool
	}{
		{"output without events is no report", "ok  \tralph\t0.1s\n{\"not\": \"an event\"}\n", nil, false},
		{"JSON that programs log is no report", `{"package":"left-pad","version":"1.0"}
{"level":"info","action":"fail","package":"auth","test":"x"}
{"Action":"Login","Package":"Premium"}`, nil, false},
		{"tests and subtests", `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
some output of a tool
{"Action":"output","Package":"p","Test":"TestA","Output":"x\n"}
{"Action":"run","Package":"p","Test":"TestA/sub_1"}
{"Action":"fail","Package":"p","Test":"TestA/sub_1"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"run","Package":"p","Test":"TestC"}
{"Action":"pass","Package":"p","Test":"TestC"}
{"Action":"fail","Package":"p"}
`, map[string]testresult.Status{"p.TestA": "failed", "p.TestA/sub_1": "failed", "p.TestB": "skipped", "p.TestC": "passed"}, false},
		{"a package that does not build fails as a whole", `{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"start","Package":"p"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p [p.test]"}`, map[string]testresult.Status{"p": "failed"}, false},
		{"a test that never ends has failed", `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`, map[string]testresult.Status{"p.TestA": "failed"}, false},
		{"output that is cut short is broken", `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"run","Pack`, map[string]testresult.Status{"p.TestA": "passed"}, true},
		{"a very long line is output", `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Output":"` + strings.Repeat("x", 2<<20) + `"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}`, map[string]testresult.Status{"p.TestA": "passed"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := testresult.ParseGoJSON(strings.NewReader(tt.output))
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == nil {
				if got != nil {
					t.Errorf("got %+v", got)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got.Tests); diff != "" || (got.Broken != "") != tt.broken {
				t.Errorf("%s%q", diff, got.Broken)
			}
		})
	}
}

func TestJUnit(t *testing.T) {
	for _, tt := range []struct {
		name, report string
		want         map[string]testresult.Status
		broken       string
	}{
		{
			"pytest", `<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" errors="0" failures="1" skipped="1" tests="3">
<testcase classname="tests.test_app" name="test_login" time="0.01"/><testcase classname="tests.test_app" name="test_logout"><failure message="no">trace <![CDATA[<x>]]></failure></testcase>
<testcase classname="tests.test_app" name="test_later"><skipped type="pytest.skip"/></testcase></testsuite></testsuites>`,
			map[string]testresult.Status{"tests.test_app.test_login": "passed", "tests.test_app.test_logout": "failed", "tests.test_app.test_later": "skipped"},
			"",
		},
		{
			"surefire, one suite as the root", `<testsuite name="com.acme.AppTest" tests="1" errors="1" failures="0"><properties><property name="a" value="b"/></properties>
<testcase name="boots" classname="com.acme.AppTest"><error type="E"/><system-out>text</system-out></testcase></testsuite>`,
			map[string]testresult.Status{"com.acme.AppTest.boots": "failed"},
			"",
		},
		{
			"jest without classes, nested suites", `<testsuites><testsuite name="math" failures="0"><testsuite name="add" failures="0"><testcase name="works"/></testsuite></testsuite></testsuites>`,
			map[string]testresult.Status{"add.works": "passed"},
			"",
		},
		{
			"of two with one name the failed one counts", `<testsuite name="s"><testcase name="a"><failure/></testcase><testcase name="a"/></testsuite>`,
			map[string]testresult.Status{"s.a": "failed"},
			"",
		},
		{"a suite that fails without a test", `<testsuite name="s" errors="1"><testcase name="a"/></testsuite>`, map[string]testresult.Status{"s.a": "passed"}, "counts 1 failures and names 0"},
		{"cut short in a test", `<testsuite name="s"><testcase name="a"><fail`, nil, "cut short"},
		{"cut short between tests", `<testsuite name="s"><testcase name="a"/>`, map[string]testresult.Status{"s.a": "passed"}, "not XML"},
		{"an entity of its own", `<!DOCTYPE x [<!ENTITY a "aaaa">]><testsuite name="s"><testcase name="&a;"/></testsuite>`, nil, "not XML"},
		{"an encoding that is not known", `<?xml version="1.0" encoding="x-nonsense"?><testsuite/>`, nil, "cannot be read"},
		{"another document", `<html><body/></html>`, nil, "not a JUnit report"},
		{"nothing", ``, nil, "not a JUnit report"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := testresult.ParseJUnit(strings.NewReader(tt.report))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Tests); diff != "" || (tt.broken == "") != (got.Broken == "") || !strings.Contains(got.Broken, tt.broken) {
				t.Errorf("%sbroken: %q, want %q", diff, got.Broken, tt.broken)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	type tests = map[string]testresult.Status
	for _, tt := range []struct {
		name          string
		before, after testresult.Results
		excused       bool
		fresh         []string
	}{
		{"only what failed before is excused", testresult.Results{Tests: tests{"a": "failed", "b": "passed"}}, testresult.Results{Tests: tests{"a": "failed", "b": "passed"}}, true, nil},
		{"a new failure is not", testresult.Results{Tests: tests{"a": "failed", "b": "passed"}}, testresult.Results{Tests: tests{"a": "failed", "b": "failed"}}, false, []string{"b"}},
		{"a new test that fails is not", testresult.Results{Tests: tests{"a": "failed"}}, testresult.Results{Tests: tests{"a": "failed", "c": "failed"}}, false, []string{"c"}},
		{"a test that was skipped and fails is not", testresult.Results{Tests: tests{"a": "failed", "b": "skipped"}}, testresult.Results{Tests: tests{"a": "failed", "b": "failed"}}, false, []string{"b"}},
		{"a test that passed and is gone is not", testresult.Results{Tests: tests{"a": "failed", "b": "passed"}}, testresult.Results{Tests: tests{"a": "failed"}}, false, []string{"b (gone)"}},
		{"a failed test that is gone is no loss", testresult.Results{Tests: tests{"a": "failed", "b": "failed"}}, testresult.Results{Tests: tests{"a": "failed"}}, true, nil},
		{"a command that fails without a failed test is not excused", testresult.Results{Tests: tests{"a": "failed"}}, testresult.Results{Tests: tests{"a": "passed"}}, false, nil},
		{"a broken report excuses nothing", testresult.Results{Tests: tests{"a": "failed"}}, testresult.Results{Tests: tests{"a": "failed"}, Broken: "cut"}, false, nil},
		{"a broken baseline excuses nothing", testresult.Results{Tests: tests{"a": "failed"}, Broken: "cut"}, testresult.Results{Tests: tests{"a": "failed"}}, false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := testresult.Compare(&tt.before, &tt.after)
			if diff := cmp.Diff(tt.fresh, c.New); diff != "" || c.Excused != tt.excused {
				t.Errorf("%sgot %+v", diff, c)
			}
		})
	}
}

func FuzzJUnit(f *testing.F) {
	f.Add(`<testsuite name="s"><testcase name="a"><failure/></testcase></testsuite>`)
	f.Fuzz(func(t *testing.T, report string) {
		if r, err := testresult.ParseJUnit(strings.NewReader(report)); err != nil || r == nil {
			t.Errorf("%v, %v", r, err)
		}
	})
}

func FuzzGoJSON(f *testing.F) {
	f.Add(`{"Action":"run","Package":"p","Test":"T"}`)
	f.Fuzz(func(t *testing.T, output string) {
		if _, err := testresult.ParseGoJSON(strings.NewReader(output)); err != nil {
			t.Error(err)
		}
	})
}
