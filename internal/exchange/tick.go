package exchange

import (
	"bytes"
	"slices"
	"strings"

	"ralph"
)

// Tick ticks the boxes of the tasks on these lines (from 1) of a checklist, and the boxes of their
// criteria; n is how many were open. Everything else stays as it is.
func Tick(data []byte, done map[int]bool) (ticked []byte, n int) {
	var b strings.Builder
	if bare, ok := bytes.CutPrefix(data, []byte(byteOrder)); ok {
		b.WriteString(byteOrder)
		data = bare
	}
	lines := scan(data)
	below := 0 // level of the heading of a done task that contains the line; 0 for none
	i := 0
	for text := range strings.Lines(string(data)) {
		l := lines[i]
		i++
		if l.kind == titled {
			if done[l.n] {
				below = l.level
			} else if l.level <= below {
				below = 0
			}
			if m := headingBox().FindStringSubmatchIndex(l.raw); m != nil && done[l.n] {
				l.kind, l.at, l.mark = boxed, [2]int{m[2], m[3]}, strings.TrimSpace(l.raw[m[2]:m[3]])
			}
		}
		if l.kind == boxed && (done[l.n] || below > 0) && !l.done() {
			mark := "x"
			if l.mark != "" && slices.Contains(openMarks, l.mark) {
				mark = "☑"
			}
			text = text[:l.at[0]] + mark + text[l.at[1]:]
			n++
		}
		b.WriteString(text)
	}
	return []byte(b.String()), n
}

// InOrder makes each task wait for the previous one, unless that would close a cycle with the
// file's own dependencies.
func InOrder(tasks []ralph.ImportedTask) {
	for i := 1; i < len(tasks); i++ {
		tasks[i].Needs = append(tasks[i].Needs, ralph.Need{Key: tasks[i-1].Key, Optional: true})
	}
}
