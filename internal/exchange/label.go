package exchange

import (
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/lazy"
)

// labels are the lists of a task that have their own lines in a checklist: "- Verify: make test".
var labels = []struct {
	name string
	of   func(t *ralph.Task) *[]string
}{
	{"Acceptance", func(t *ralph.Task) *[]string { return &t.Acceptance }},
	{"Verify", func(t *ralph.Task) *[]string { return &t.Verify }},
	{"Files", func(t *ralph.Task) *[]string { return &t.Files }},
	{"Allow", func(t *ralph.Task) *[]string { return &t.Allow }},
}

// dependsLabel is the label of a line that names a task to wait for.
const dependsLabel = "Depends on"

var labelLine = lazy.Regexp(`^\s*[-*+]\s+(Acceptance|Verify|Files|Allow|Depends on):\s+(\S.*?)\s*$`)

// labelled returns a value for a labelled line. It quotes values with several lines, and values
// that would be read as quoted.
func labelled(v string) string {
	if strings.ContainsAny(v, "\n\r`") || strings.TrimSpace(v) != v || strings.HasPrefix(v, `"`) {
		return strconv.Quote(v)
	}
	return v
}

// label reads a labelled line of a task, and reports whether it is one.
func (t *markdownTask) label(line string) bool {
	m := labelLine().FindStringSubmatch(line)
	if m == nil {
		return false
	}
	v := m[2]
	if quoted, err := strconv.Unquote(v); err == nil && strings.HasPrefix(v, `"`) {
		v = quoted
	} else if code := inlineCode().FindStringSubmatch(v); code != nil {
		v = code[1]
	}
	if m[1] == dependsLabel {
		t.on = append(t.on, v)
		return true
	}
	for _, l := range labels {
		if l.name == m[1] {
			list := l.of(&t.Task)
			*list = append(*list, v)
		}
	}
	return true
}
