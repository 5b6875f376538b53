package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"ralph"
)

// A diffLine is a line of a difference with its numbers before and after; "" where it is not.
type diffLine struct{ Class, Old, New, Text string }

// numbered numbers the lines of a unified diff.
func numbered(unified string) (lines []diffLine) {
	var old, now int
	for line := range strings.Lines(unified) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "@@"):
			if _, err := fmt.Sscanf(line, "@@ -%d,%d +%d", &old, new(int), &now); err != nil {
				old, now = 0, 0
			}
			lines = append(lines, diffLine{Class: "hunk", Text: line})
		case strings.HasPrefix(line, "+"):
			lines = append(lines, diffLine{"add", "", fmt.Sprint(now), line})
			now++
		case strings.HasPrefix(line, "-"):
			lines = append(lines, diffLine{"del", fmt.Sprint(old), "", line})
			old++
		case strings.HasPrefix(line, " "):
			lines = append(lines, diffLine{"", fmt.Sprint(old), fmt.Sprint(now), line})
			old, now = old+1, now+1
		default: // that the last line does not end
			lines = append(lines, diffLine{Text: line})
		}
	}
	return lines
}

// maxDiffs bounds the file of a session's differences, which are limited to some megabytes.
const maxDiffs = 32 << 20

// differences returns what a session changed line by line; nothing if it was not kept.
func (a *app) differences(session string) (d ralph.Differences, err error) {
	file, err := a.Open(session, Diffs)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxDiffs))
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil {
		err = fmt.Errorf("what session %.8s changed: %w", session, err)
	}
	return d, err
}
