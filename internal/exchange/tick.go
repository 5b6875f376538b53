package exchange

import (
	"strings"

	"ralph"
)

// Tick ticks the boxes of the tasks on these lines (from 1) of a checklist, and the boxes of their
// criteria; n is how many were open. Everything else stays as it is.
func Tick(data []byte, done map[int]bool) (ticked []byte, n int) {
	var b strings.Builder
	fence, below := "", 0 // level of the heading of a done task that contains the line; 0 for none
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		bare := strings.TrimRight(text, "\r\n")
		before := fence
		fence = fenced(fence, bare)
		if before == "" && fence == "" {
			if m := heading.FindStringSubmatch(bare); m != nil {
				level := len(m[1])
				switch {
				case done[line]:
					below = level
				case level <= below:
					below = 0
				}
			} else if m := box.FindStringSubmatchIndex(bare); m != nil && (done[line] || below > 0) {
				if state := m[4]; !strings.EqualFold(bare[m[4]:m[5]], "x") {
					text = text[:state] + "x" + text[state+1:]
					n++
				}
			}
		}
		b.WriteString(text)
	}
	return []byte(b.String()), n
}

// InOrder makes each task wait for the one before it, unless that would close a circle with the
// file's own dependencies.
func InOrder(tasks []ralph.ImportedTask) {
	for i := 1; i < len(tasks); i++ {
		tasks[i].Needs = append(tasks[i].Needs, ralph.Need{Key: tasks[i-1].Key, Optional: true})
	}
}
