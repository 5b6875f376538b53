// Package term arranges text for people's terminals: colours, widths, wrapped lines and columns. Text that it is given
// must be visible already (package text).
package term

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"ralph/internal/lazy"
)

// A Style is how a terminal shows a text; "" is plain.
type Style string

// The styles, as parameters of SGR.
const (
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Blue   Style = "34"
	Purple Style = "35"
	Cyan   Style = "36"
)

// Looks maps the colour of each look to its style.
var Looks = map[string]Style{
	"green": Green, "red": Red, "yellow": Yellow, "orange": Yellow, "blue": Blue, "purple": Purple, "gray": Dim,
	"teal": Cyan,
}

// A Screen describes the output. The zero Screen is a file or a pipe: nothing is coloured or wrapped.
type Screen struct {
	Columns int // 0 if it is not a terminal
	Colours bool
}

// Is reports whether v is a terminal.
func Is(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Of examines an output. NO_COLOR and TERM=dumb switch colours off.
func Of(out io.Writer, getenv func(string) string) Screen {
	if !Is(out) {
		return Screen{}
	}
	columns, _, err := term.GetSize(int(out.(*os.File).Fd()))
	if err != nil || columns < 20 {
		columns = 80
	}
	return Screen{Columns: columns, Colours: getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// Paint returns a text in a style.
func (s Screen) Paint(style Style, text string) string {
	if !s.Colours || style == "" || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// gaps matches the indentation of a line, and the blanks between columns.
var gaps = lazy.Regexp(`^ +| {2,}`)

// Width returns the columns that a text takes.
func Width(text string) int { return ansi.StringWidth(text) }

// Wrap breaks a line between words, so that each part fits into that number of columns.
func (s Screen) Wrap(line string, before int) []string {
	room := s.Columns - before
	if s.Columns == 0 || Width(line) <= room || room < 10 {
		return []string{line}
	}
	blanks := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	if len(blanks) > room/2 {
		blanks = ""
	}
	rows := strings.Split(ansi.Wrap(strings.TrimLeft(line, " \t"), room-len(blanks), "/"), "\n")
	for i, row := range rows {
		rows[i] = blanks + strings.TrimRight(row, " ")
	}
	return rows
}

// Hang wraps a text after a first part, and aligns its further lines with the text's beginning.
func (s Screen) Hang(first, text string) string {
	before := Width(first)
	return first + strings.Join(s.Wrap(text, before), "\n"+strings.Repeat(" ", before))
}

// Fit wraps the lines of a text that are wider than the screen. It aligns continuation lines with the last column in
// the line's first half. Columns are separated by two blanks.
func (s Screen) Fit(lines string) string {
	if s.Columns == 0 {
		return lines
	}
	var fit strings.Builder
	for line := range strings.Lines(lines) {
		line, end := strings.CutSuffix(line, "\n")
		plain, from := ansi.Strip(line), 0
		for _, gap := range gaps().FindAllStringIndex(plain, -1) {
			if at := Width(plain[:gap[1]]); at <= s.Columns/2 {
				from = at
			}
		}
		first, rest := ansi.Cut(line, 0, from), ansi.Cut(line, from, Width(line))
		fit.WriteString(s.Hang(first, rest))
		if end {
			fit.WriteByte('\n')
		}
	}
	return fit.String()
}

// Clip cuts a text to that number of columns, with "…" at its end, if the output is a terminal.
func (s Screen) Clip(text string, columns int) string {
	if s.Columns == 0 {
		return text
	}
	return ansi.Truncate(text, max(columns, 1), "…")
}

// Pad fills a text with blanks to that number of columns.
func Pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-Width(text)))
}

// A Table is text in columns, two blanks apart.
type Table struct {
	Head  []string // names of the columns, for terminals; nil for none
	Rows  [][]string
	Right []int // columns that are aligned to the right
	Flex  int   // the column that gives way where a row is wider than the screen: it is cut
}

// Table writes a table.
func (s Screen) Table(w io.Writer, t Table) {
	rows := t.Rows
	if t.Head != nil && s.Columns > 0 { // a program that reads the rows wants no other line
		head := make([]string, len(t.Head))
		for i, name := range t.Head {
			head[i] = s.Paint(Bold, name)
		}
		rows = append([][]string{head}, rows...)
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	all := 2 * (len(widths) - 1)
	for _, n := range widths {
		all += n
	}
	if s.Columns > 0 && all > s.Columns && t.Flex < len(widths) {
		widths[t.Flex] = max(10, widths[t.Flex]-(all-s.Columns))
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			cell = s.Clip(cell, widths[i])
			blanks := strings.Repeat(" ", max(0, widths[i]-Width(cell)))
			if i > 0 {
				line.WriteString("  ")
			}
			if slices.Contains(t.Right, i) {
				line.WriteString(blanks + cell)
			} else {
				line.WriteString(cell + blanks)
			}
		}
		io.WriteString(w, strings.TrimRight(line.String(), " ")+"\n") //nolint:errcheck // buffers
	}
}
