package web

import (
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/report"
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

// ago formats how long ago a time is, in its largest unit; for a future time, how far away it is.
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

// behind has the lists behind the figures of a headline.
var behind = map[report.Group]struct {
	page string
	q    url.Values
	all  bool // the list covers all times
}{
	report.Runs:     {page: "/runs"},
	report.Tasks:    {page: "/tasks"},
	report.Merged:   {page: "/tasks", q: url.Values{"status": {"merged"}}},
	report.Failed:   {page: "/tasks", q: url.Values{"status": {"failed"}}},
	report.NeedsYou: {page: "/inbox", all: true},
	report.Costs:    {page: "/sessions", q: url.Values{"sort": {"cost"}}},
}

// counted returns a headline whose figures link to their lists. of has the conditions of the counted sessions; without
// them there are no links.
func counted(headline []report.Part, of url.Values) template.HTML {
	var b strings.Builder
	for _, p := range headline {
		said := template.HTMLEscapeString(p.Text)
		to, known := behind[p.Group]
		if !known || of == nil {
			b.WriteString(said)
			continue
		}
		q := maps.Clone(to.q)
		if !to.all {
			if q == nil {
				q = url.Values{}
			}
			maps.Copy(q, of)
		}
		if len(q) > 0 {
			to.page += "?" + q.Encode()
		}
		b.WriteString(`<a href="` + template.HTMLEscapeString(to.page) + `">` + said + "</a>")
	}
	return template.HTML(b.String()) // escaped above
}

// figure returns the address of the list behind a figure; of has the conditions of the counted sessions.
func figure(g report.Group, of url.Values) string {
	to := behind[g]
	q := url.Values{}
	maps.Copy(q, to.q)
	if !to.all {
		maps.Copy(q, of)
	}
	return link(to.page, q)
}

// proofs counts the merged tasks by proof: "11 proved · 7 by your commands".
func proofs(f report.Figures) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{f.Proved, "proved"},
		{f.ByCommands, "by your commands"},
		{f.Unproved, "unproved"},
		{f.Unknown, "not looked at"},
		{f.Expectations, "with changed expectations"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprint(p.n, " ", p.what))
		}
	}
	return strings.Join(parts, " · ")
}

// coded returns a line as HTML, with text in backticks as code.
func coded(line string) template.HTML {
	parts := strings.Split(line, "`")
	if len(parts)%2 == 0 { // an unmatched backtick
		return template.HTML(template.HTMLEscapeString(line)) //nolint:gosec // escaped
	}
	var b strings.Builder
	for n, part := range parts {
		part = template.HTMLEscapeString(part)
		if n%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String()) //nolint:gosec // escaped
}

// conditionsOf returns the conditions of a filter as parameters of lists.
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

// An asked is an agent's request: a tool, and its input in a form for people.
type asked struct{ Tool, Input string }

// newAsked reads a stored request.
func newAsked(stored string) asked {
	tool, input := text.Asked(stored)
	return asked{tool, input}
}

// brief removes from a line of the summary the refs of unmerged work.
func brief(line string) string {
	said, _, _ := strings.Cut(line, ", and kept as ")
	return said
}
