package main

import (
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// A screen is what is known of where the output goes.
type screen struct {
	columns int  // 0 if it is no terminal: lines are as long as they are
	colours bool // a terminal, and nobody said NO_COLOR
}

// screen looks at standard output.
func (a *app) screen() screen {
	f, ok := a.out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return screen{}
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns < 20 {
		columns = 80
	}
	return screen{columns: columns, colours: a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"}
}

// paint colours a text; "" is no colour.
func (s screen) paint(colour, text string) string {
	if !s.colours || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// wrap breaks a line between words so that it fits beside what is before it.
func (s screen) wrap(line string, before int) []string {
	room := s.columns - before
	if s.columns == 0 || columnsOf(line) <= room || room < 10 {
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

// fit is as much of a text as has room in so many columns, one character at least.
func fit(text string, columns int) string {
	used := 0
	for i, r := range text {
		if used += runeColumns(r); used > columns && i > 0 {
			return text[:i]
		}
	}
	return text
}

// columnsOf is how many columns of a terminal a text takes.
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
