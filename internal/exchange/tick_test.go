package exchange_test

import (
	"strings"
	"testing"

	"ralph"
	"ralph/internal/exchange"
)

func TestTickChangesNothingElse(t *testing.T) {
	const text = "# Plan\r\n- [ ] a `[ ]`\r\n  * [/] b\n```\n- [ ] code\n```\n" +
		"### Task 3: c\n- [ ] one\n- [X] two\n## d\n1. [ ] e"
	const table = "| # | Work | ok |\n|---|---|---|\n| 1 | a | [ ] |\n| 2 | b | ☐ |\n| 3 | [ ] | [ ] |\n"
	const marked, web = "\ufeff- [ ] a\n", "-\u00a0[\u00a0] a\n"
	for _, tt := range []struct {
		name string
		done []int
		want string
		n    int
	}{
		{"a file with a byte order mark", []int{1}, "\ufeff- [x] a\n", 1},
		{"blanks of web pages", []int{1}, "-\u00a0[x] a\n", 1},
		{"nothing", nil, text, 0},
		{"lines that are no boxes", []int{5, 6, 99}, text, 0},
		{
			"boxes", []int{2, 3, 11}, "# Plan\r\n- [x] a `[ ]`\r\n  * [x] b\n```\n- [ ] code\n```\n" +
				"### Task 3: c\n- [ ] one\n- [X] two\n## d\n1. [x] e", 3,
		},
		{
			"the criteria of a heading", []int{7}, "# Plan\r\n- [ ] a `[ ]`\r\n  * [/] b\n```\n- [ ] code\n```\n" +
				"### Task 3: c\n- [x] one\n- [X] two\n## d\n1. [ ] e", 1,
		},
		{
			"rows of a table",
			[]int{2, 3, 4, 5},
			"| # | Work | ok |\n|---|---|---|\n| 1 | a | [x] |\n| 2 | b | ☑ |\n| 3 | [ ] | [ ] |\n", 2,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			done := map[int]bool{}
			for _, line := range tt.done {
				done[line] = true
			}
			in := text
			for _, other := range []string{table, marked, web} {
				if strings.HasPrefix(tt.want, other[:3]) {
					in = other
				}
			}
			got, n := exchange.Tick([]byte(in), done)
			if string(got) != tt.want || n != tt.n {
				t.Errorf("%d ticked, want %d:\n%q", n, tt.n, got)
			}
		})
	}
}

func TestInOrderEachWaitsForTheOneBefore(t *testing.T) {
	tasks := []ralph.ImportedTask{{Key: "a"}, {Key: "b", Needs: []ralph.Need{{Key: "x"}}}, {Key: "c"}}
	exchange.InOrder(tasks)
	if n := tasks[0].Needs; len(n) != 0 {
		t.Errorf("the first waits for %v", n)
	}
	if n := tasks[1].Needs; len(n) != 2 || n[1] != (ralph.Need{Key: "a", Optional: true}) {
		t.Errorf("the second waits for %v", n)
	}
	if n := tasks[2].Needs; len(n) != 1 || n[0].Key != "b" {
		t.Errorf("the third waits for %v", n)
	}
}
