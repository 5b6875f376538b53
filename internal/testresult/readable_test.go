package testresult_test

import (
	"strings"
	"testing"

	"ralph/internal/testresult"
)

func TestGoTestIsReadable(t *testing.T) {
	event := func(fields string) string { return `{"Time":"2026-11-21T00:00:00Z",` + fields + "}\n" }
	for name, c := range map[string]struct {
		in, want string
		ok       bool
		limit    int
	}{
		"nothing":     {in: ""},
		"other":       {in: "--- FAIL: TestA\nFAIL\n"},
		"other JSON":  {in: `{"level":"info"}` + "\n"},
		"a log":       {in: `{"action":"fail","package":"auth"}` + "\n"},
		"no package":  {in: `{"Action":"fail"}` + "\n"},
		"all passed":  {in: event(`"Action":"run","Package":"app","Test":"TestA"`) + event(`"Action":"output","Package":"app","Test":"TestA","Output":"noise\n"`) + event(`"Action":"pass","Package":"app","Test":"TestA"`) + event(`"Action":"output","Package":"app","Output":"PASS\n"`) + event(`"Action":"output","Package":"app","Output":"ok  \tapp\t0.1s\n"`) + event(`"Action":"pass","Package":"app"`), want: "ok  \tapp\t0.1s\n", ok: true},
		"one failed":  {in: event(`"Action":"output","Package":"app","Test":"TestA","Output":"=== RUN   TestA\n"`) + event(`"Action":"output","Package":"app","Test":"TestA","Output":"    a_test.go:5: want 4\n"`) + event(`"Action":"output","Package":"app","Test":"TestB","Output":"fine\n"`) + event(`"Action":"pass","Package":"app","Test":"TestB"`) + event(`"Action":"output","Package":"app","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"`) + event(`"Action":"fail","Package":"app","Test":"TestA"`) + event(`"Action":"output","Package":"app","Output":"FAIL\tapp\t0.1s\n"`) + event(`"Action":"fail","Package":"app"`), want: "    a_test.go:5: want 4\n--- FAIL: TestA (0.00s)\nFAIL\tapp\t0.1s\n", ok: true},
		"not built":   {in: event(`"ImportPath":"app [app.test]","Action":"build-output","Output":"./a.go:3:1: syntax error\n"`) + event(`"ImportPath":"app [app.test]","Action":"build-fail"`) + event(`"Action":"output","Package":"app","Output":"FAIL\tapp [build failed]\n"`) + event(`"Action":"fail","Package":"app"`), want: "./a.go:3:1: syntax error\nFAIL\tapp [build failed]\n", ok: true},
		"lines amid":  {in: "make: Entering\n" + event(`"Action":"fail","Package":"app"`), want: "make: Entering\n", ok: true},
		"no room":     {in: event(`"Action":"output","Package":"app","Test":"TestA","Output":"12345\n"`) + event(`"Action":"fail","Package":"app","Test":"TestA"`) + event(`"Action":"output","Package":"app","Test":"TestB","Output":"12345\n"`) + event(`"Action":"fail","Package":"app","Test":"TestB"`), limit: 8, want: "12345\n… and 1 more that failed\n", ok: true},
		"long output": {in: event(`"Action":"output","Package":"app","Test":"TestA","Output":"`+strings.Repeat("x", 5000)+`\nthe end\n"`) + event(`"Action":"fail","Package":"app","Test":"TestA"`), want: "… (its beginning is left out)\nthe end\n", ok: true},
	} {
		limit := c.limit
		if limit == 0 {
			limit = 4096
		}
		got, ok, err := testresult.Readable(strings.NewReader(c.in), limit)
		if err != nil || ok != c.ok || got != c.want {
			t.Errorf("%s: %q, %v, %v; want %q, %v", name, got, ok, err, c.want, c.ok)
		}
	}
}
