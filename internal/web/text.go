package web

import (
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
)

// span formats a duration in seconds.
func span(seconds float64) string { return text.Span(seconds) }

// moment formats a time, without the date if it is today.
func moment(t, now ralph.Time) string {
	at, here := t.Local(), now.Local()
	switch {
	case t.IsZero():
		return ""
	case at.Format(time.DateOnly) == here.Format(time.DateOnly):
		return at.Format("15:04")
	case at.Year() == here.Year():
		return at.Format("Jan 2, 15:04")
	}
	return at.Format("Jan 2 2006, 15:04")
}

// number formats a count with grouped thousands.
func number(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// plural formats a number of things.
func plural(n int, one string) string {
	return number(int64(n)) + " " + text.Plural(n, one)
}

// ago formats how long ago a time is, in its largest unit; of a time to come, how far it is away.
func ago(t, now ralph.Time) string {
	d := now.Sub(t.Time)
	in := ""
	if d < 0 {
		d, in = -d, "in "
	}
	switch {
	case t.IsZero():
		return ""
	case d < time.Minute:
		return fmt.Sprintf("%s%d s", in, int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%s%d min", in, int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%s%d h", in, int(d.Hours()))
	}
	return fmt.Sprintf("%s%d d", in, int(d.Hours()/24))
}

// behind are the lists behind the numbers of the summary's first line.
var behind = []struct{ number, to string }{
	{`\d+ runs?`, "/runs"},
	{`\d+ done`, "/tasks?status=completed"},
	{`\d+ failed`, "/tasks?status=failed"},
	{`\d+ being merged`, "/tasks?status=merging"},
	{`\d+ waiting for you`, "/inbox"},
	{`\d+ sessions?`, "/sessions"},
	{`\d+ tasks?`, "/tasks"},
	{`\$\d+\.\d+`, "/charts"},
}

var numbers = func() *regexp.Regexp {
	var all []string
	for _, b := range behind {
		all = append(all, "("+b.number+`\b)`)
	}
	return regexp.MustCompile(strings.Join(all, "|"))
}()

// counted is the first line of the summary, each of its numbers a link to the list behind it.
func counted(line string) template.HTML {
	var b strings.Builder
	from := 0
	for _, at := range numbers.FindAllStringSubmatchIndex(line, -1) {
		which := 0
		for at[2+2*which] < 0 {
			which++
		}
		b.WriteString(template.HTMLEscapeString(line[from:at[0]]))
		b.WriteString(`<a href="` + behind[which].to + `">` + template.HTMLEscapeString(line[at[0]:at[1]]) + "</a>")
		from = at[1]
	}
	b.WriteString(template.HTMLEscapeString(line[from:]))
	return template.HTML(b.String()) // escaped above
}

// An asked is what an agent asks to use: a tool, and its input as people read it.
type asked struct{ Tool, Input string }

// newAsked reads a request as it is stored: the tool and its input in JSON. The input is shown by its fields in their
// order, a value alone if there is but one; nothing of it is left out. What is no object of JSON is shown as it is.
func newAsked(stored string) asked {
	tool, input, ok := strings.Cut(stored, " ")
	if !ok {
		return asked{Input: stored}
	}
	d := json.NewDecoder(strings.NewReader(input))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return asked{Input: stored}
	}
	var names, values []string
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return asked{Input: stored}
		}
		said := string(value)
		if text := ""; json.Unmarshal(value, &text) == nil && strings.HasPrefix(said, `"`) {
			said = text
		}
		names, values = append(names, fmt.Sprint(name)), append(values, said)
	}
	if _, err := d.Token(); err != nil || strings.TrimSpace(input[d.InputOffset():]) != "" || len(names) == 0 {
		return asked{Input: stored}
	}
	if len(names) == 1 && names[0] == "command" {
		return asked{tool, values[0]}
	}
	var lines []string
	for i, name := range names { // further lines of a value are indented: none can pose as a field
		lines = append(lines, name+": "+strings.ReplaceAll(values[i], "\n", "\n  "))
	}
	return asked{tool, strings.Join(lines, "\n")}
}

// brief leaves out of a line of the summary where work is kept that is not merged.
func brief(line string) string {
	said, _, _ := strings.Cut(line, ", and kept as ")
	return said
}
