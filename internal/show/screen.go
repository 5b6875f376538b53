// Package show formats tasks and sessions as text for terminals and chats. Characters that would
// control a terminal, hide, or reorder text are made visible. The writers are buffers, so writing
// never fails.
package show

import (
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// A Screen describes the output.
type Screen struct {
	Columns int  // 0 if it is not a terminal: lines are not wrapped
	Colours bool // it is a terminal, and NO_COLOR is not set
}

// Terminal reports whether w is a terminal.
func Terminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// ScreenOf examines an output.
func ScreenOf(out io.Writer, getenv func(string) string) Screen {
	if !Terminal(out) {
		return Screen{}
	}
	columns, _, err := term.GetSize(int(out.(*os.File).Fd()))
	if err != nil || columns < 20 {
		columns = 80
	}
	return Screen{Columns: columns, Colours: getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// Paint colours a text; "" is no colour.
func (s Screen) Paint(colour, text string) string {
	if !s.Colours || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// wrap breaks a line between words so that it fits after a prefix of that width.
func (s Screen) wrap(line string, before int) []string {
	room := s.Columns - before
	if s.Columns == 0 || columnsOf(line) <= room || room < 10 {
		return []string{line}
	}
	blanks := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	if len(blanks) > room/2 {
		blanks = ""
	}
	var lines []string
	row := blanks
	for word := range strings.FieldsSeq(line) {
		for columnsOf(row)+columnsOf(word) > room {
			if strings.TrimSpace(row) != "" {
				lines, row = append(lines, strings.TrimRight(row, " ")), blanks
				continue
			}
			head := fit(word, room-columnsOf(row))
			lines, row, word = append(lines, row+head), blanks, word[len(head):]
		}
		row += word + " "
	}
	if strings.TrimSpace(row) != "" {
		lines = append(lines, strings.TrimRight(row, " "))
	}
	return lines
}

// fit returns as much of a text as fits into the columns, at least one character.
func fit(text string, columns int) string {
	used := 0
	for i, r := range text {
		if used += runeColumns(r); used > columns && i > 0 {
			return text[:i]
		}
	}
	return text
}

// columnsOf returns the width of a text on a terminal.
func columnsOf(text string) (n int) {
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
