package web

import (
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
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

// behind are the lists behind the numbers of the summary's first line; "" for none, that of the inbox is of all times.
var behind = []struct{ number, to string }{
	{`\d+ runs?`, "/runs?"},
	{`\d+ done`, "/tasks?status=completed"},
	{`\d+ failed`, "/tasks?status=failed"},
	{`\d+ being merged`, "/tasks?status=merging"},
	{`\d+ waiting for you`, "/inbox"},
	{`\d+ sessions?`, "/sessions?work=yes"},
	{`\d+ tasks?`, "/tasks?"},
	{`about \$\d+\.\d+`, ""},
	{`\$\d+\.\d+`, "/sessions?sort=cost"},
}

var numbers = func() *regexp.Regexp {
	var all []string
	for _, b := range behind {
		all = append(all, "("+b.number+`\b)`)
	}
	return regexp.MustCompile(strings.Join(all, "|"))
}()

// counted is the first line of the summary, each of its numbers a link to the list behind it. of are the conditions of
// the sessions that it counts.
func counted(line string, of url.Values) template.HTML {
	var b strings.Builder
	from := 0
	for _, at := range numbers.FindAllStringSubmatchIndex(line, -1) {
		which := 0
		for at[2+2*which] < 0 {
			which++
		}
		to := behind[which].to
		if to == "" {
			continue
		}
		if page, fixed, narrowed := strings.Cut(to, "?"); narrowed {
			q, err := url.ParseQuery(fixed)
			if maps.Copy(q, of); err == nil && len(q) > 0 {
				page += "?" + q.Encode()
			}
			to = page
		}
		b.WriteString(template.HTMLEscapeString(line[from:at[0]]))
		said := template.HTMLEscapeString(line[at[0]:at[1]])
		b.WriteString(`<a href="` + template.HTMLEscapeString(to) + `">` + said + "</a>")
		from = at[1]
	}
	b.WriteString(template.HTMLEscapeString(line[from:]))
	return template.HTML(b.String()) // escaped above
}

// conditionsOf are the conditions of a filter as parameters of lists.
func conditionsOf(f store.SessionFilter) url.Values {
	q := url.Values{}
	if !f.Active.IsZero() {
		q.Set("active", f.Active.String())
	}
	if f.Run != 0 {
		q.Set("run", strconv.FormatInt(f.Run, 10))
	}
	return q
}

// An asked is what an agent asks to use: a tool, and its input as people read it.
type asked struct{ Tool, Input string }

// newAsked reads a request as it is stored.
func newAsked(stored string) asked {
	tool, input := text.Asked(stored)
	return asked{tool, input}
}

// brief leaves out of a line of the summary where work is kept that is not merged.
func brief(line string) string {
	said, _, _ := strings.Cut(line, ", and kept as ")
	return said
}
