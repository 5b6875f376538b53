// Package picturetest draws the text of a terminal as SVG, for the documentation and for tests that leave pictures.
package picturetest

import (
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A Picture is a terminal's text with colours (SGR), and how to draw it.
type Picture struct {
	Text          string
	Columns, Rows int
	Title         string // for readers without a view of it
	Scheme        string // "dark" or "light"; "" follows the viewer's
	Moves         bool   // lines appear one after the other; else the last Rows lines are shown
}

// Sizes in pixels. A column is textLength of one character.
const (
	column = 8.4
	row    = 18
	edge   = 14
)

// Times in seconds between lines that appear.
const (
	perLine    = 0.12
	perCommand = 0.7
)

// A cell is a character with its style: the parameters of SGR that are in force, in ascending order.
type cell struct{ text, style string }

// A terminal of any height, which knows text, colours, and the line that is written again.
type terminal struct {
	columns int
	lines   [][]cell
	x       int
	style   []int
}

func read(text string, columns int) [][]cell {
	t := &terminal{columns: columns, lines: [][]cell{nil}}
	p := ansi.NewParser()
	p.SetHandler(ansi.Handler{Print: t.print, Execute: t.control, HandleCsi: t.sequence})
	for _, b := range []byte(strings.TrimRight(text, "\n")) {
		p.Advance(b)
	}
	return t.lines
}

func (t *terminal) line() *[]cell { return &t.lines[len(t.lines)-1] }

func (t *terminal) print(r rune) {
	width := ansi.StringWidth(string(r))
	if width == 0 && t.x > 0 {
		(*t.line())[t.x-1].text += string(r)
		return
	}
	if t.x+width > t.columns {
		t.control('\n')
	}
	line := t.line()
	for len(*line) < t.x+width {
		*line = append(*line, cell{text: " "})
	}
	(*line)[t.x] = cell{string(r), fmt.Sprint(t.style)}
	for i := 1; i < width; i++ {
		(*line)[t.x+i] = cell{}
	}
	t.x += width
}

func (t *terminal) control(c byte) {
	switch c {
	case '\r':
		t.x = 0
	case '\n':
		t.lines, t.x = append(t.lines, nil), 0
	}
}

func (t *terminal) sequence(c ansi.Cmd, params ansi.Params) {
	switch c.Final() {
	case 'K':
		if line := t.line(); t.x < len(*line) {
			*line = (*line)[:t.x]
		}
	case 'm':
		if len(params) == 0 {
			t.style = nil
		}
		params.ForEach(0, func(_, n int, _ bool) {
			colour := func(s int) bool { return s >= 30 }
			switch {
			case n == 0:
				t.style = nil
			case n == 22:
				t.style = slices.DeleteFunc(t.style, func(s int) bool { return s < 3 })
			case n == 27:
				t.style = slices.DeleteFunc(t.style, func(s int) bool { return s == 7 })
			default:
				if colour(n) {
					t.style = slices.DeleteFunc(t.style, colour)
				}
				if n != 39 && !slices.Contains(t.style, n) {
					t.style = append(t.style, n)
					slices.Sort(t.style)
				}
			}
		})
	}
}

// themes have the colours of SGR 30 to 37, after those of the background and of text.
var themes = map[string][]string{
	"dark": {
		"#0d1117", "#e6edf3", "#484f58", "#ff7b72", "#3fb950", "#d29922", "#79a8ff", "#d2a8ff", "#56d4dd", "#b1bac4",
	},
	"light": {
		"#ffffff", "#1f2328", "#24292f", "#cf222e", "#116329", "#7d4e00", "#0550ae", "#8250df", "#1b7c83", "#6e7781",
	},
}

func variables(scheme string) string {
	var b strings.Builder
	b.WriteString("svg{")
	for i, c := range themes[scheme] {
		fmt.Fprintf(&b, "--c%d:%s;", i, c)
	}
	return b.String() + "}"
}

// style returns the style sheet.
func (p Picture) style() string {
	var b strings.Builder
	if p.Scheme == "" {
		b.WriteString(variables("dark") + "@media(prefers-color-scheme:light){" + variables("light") + "}")
	} else {
		b.WriteString(variables(p.Scheme))
	}
	b.WriteString("text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans " +
		"Mono',monospace;white-space:pre;" +
		"fill:var(--c1)}.s1{font-weight:bold}.s2{opacity:.65}")
	for i := range 8 {
		fmt.Fprintf(&b, ".s%d{fill:var(--c%d)}", 30+i, 2+i)
	}
	return b.String()
}

// text draws a line, a run of cells of one style after the other.
func text(line []cell, y int) string {
	var b strings.Builder
	for x := 0; x < len(line); {
		end, said := x, ""
		for ; end < len(line) && (line[end].style == line[x].style || line[end].text == ""); end++ {
			said += line[end].text
		}
		if strings.TrimSpace(said) != "" {
			class := ""
			if fields := strings.Fields(strings.Trim(line[x].style, "[]")); len(fields) > 0 {
				class = fmt.Sprintf(` class="s%s"`, strings.Join(fields, " s"))
			}
			from := x + len(said) - len(strings.TrimLeft(said, " "))
			to := end - len(said) + len(strings.TrimRight(said, " "))
			fmt.Fprintf(&b, `<text x="%s" y="%d" textLength="%s"%s>%s</text>`,
				number(float64(from)*column), y, number(float64(to-from)*column), class, html.EscapeString(strings.Trim(said, " ")))
		}
		x = end
	}
	return b.String()
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 32) }

// SVG draws the picture. The same picture gives the same bytes.
func (p Picture) SVG() string {
	lines := read(p.Text, p.Columns)
	if !p.Moves {
		lines = lines[max(0, len(lines)-p.Rows):]
	}
	var drawn, steps strings.Builder
	up := max(0, len(lines)-p.Rows)
	at, times := 0.3, make([]float64, len(lines))
	for i, line := range lines {
		times[i] = at
		if at += perLine; len(line) > 1 && line[0].text == "$" {
			at += perCommand
		}
		delay := ""
		if p.Moves {
			delay = fmt.Sprintf(` style="animation-delay:%ss"`, strconv.FormatFloat(times[i], 'f', 2, 64))
		}
		if said := text(line, i*row+14); said != "" {
			fmt.Fprintf(&drawn, "<g%s>%s</g>\n", delay, said)
		}
	}
	for i, t := range times {
		if by := i + 1 - p.Rows; by > 0 {
			fmt.Fprintf(&steps, "%s%%{transform:translateY(-%dpx)}", strconv.FormatFloat(100*t/at, 'f', 2, 64), by*row)
		}
	}
	style := p.style()
	if p.Moves {
		style += "@keyframes on{from{opacity:0}}@keyframes up{0%{transform:none}" + steps.String() + "}" +
			fmt.Sprintf("@media(prefers-reduced-motion:no-preference){.all{animation:up %.2fs step-end}.all "+
				"g{animation:on .01s backwards}}", at)
	}
	width, height := number(float64(p.Columns)*column), p.Rows*row
	whole := func(inner float64) string { return number(inner + 2*edge) }
	w, h := whole(float64(p.Columns)*column), whole(float64(height))
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" role="img"
 width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s">
<title>%[3]s</title><style>%[4]s</style>
<rect x=".5" y=".5" width="%[5]s" height="%[6]s" rx="8" fill="var(--c0)" stroke="#8885"/>
<svg x="%[7]d" y="%[7]d" width="%[8]s" height="%[9]d"><g class="all" transform="translate(0,-%[10]d)">
%[11]s</g></svg></svg>
`, w, h, html.EscapeString(p.Title), style, whole(float64(p.Columns)*column-1), whole(float64(height)-1), edge,
		width, height, up*row, drawn.String())
}
