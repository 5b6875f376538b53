package dashboard

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"time"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"ralph"
	"ralph/internal/transcript"
)

// plain is a text without what steers a terminal, is not to be seen, or turns the
// order of letters around. html/template does the rest.
func plain(s string) string { return transcript.Clean(s) }

// line is a text on one line of at most n characters.
func line(n int, s string) string {
	s = strings.Join(strings.Fields(plain(head(s, 8*n))), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// head is the beginning of a text, so that no more of it is looked at.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// A markdown renders texts of agents and people.
type markdown struct {
	tables goldmark.Markdown
	plain  goldmark.Markdown // without tables
	policy *bluemonday.Policy
}

// newMarkdown leaves out raw HTML when it renders, and then lets only harmless
// elements through: two walls, because the text may come from anywhere.
func newMarkdown() markdown {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("class").Matching(regexp.MustCompile("^mdh$")).OnElements("p")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("align").Matching(bluemonday.CellAlign).OnElements("th", "td")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.AllowRelativeURLs(false)
	p.RequireNoReferrerOnLinks(true)
	p.RequireNoFollowOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	wrapped := goldmark.WithRendererOptions(html.WithHardWraps())
	return markdown{
		tables: goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify), wrapped),
		plain:  goldmark.New(goldmark.WithExtensions(extension.Strikethrough, extension.Linkify), wrapped),
		policy: p,
	}
}

// Limits of what is rendered. Beyond them a text is shown as it is written: there
// are Markdown of 64 KiB that takes minutes, and tables that take gigabytes.
const (
	maxMarkdown = 16 << 10 // bytes; what follows is not rendered
	maxQuotes   = 50       // ">" in a line
	maxBrackets = 1000     // "[" in all
	maxCells    = 20_000   // of a table: its lines times the most "|" in one of them
)

// render makes HTML of Markdown. Headings become lines, because those of the page
// are its own; images are left out, because nothing may ask another host.
func (m markdown) render(s string) template.HTML {
	s = plain(s)
	text, rest := s, ""
	if len(s) > maxMarkdown {
		text = head(s, maxMarkdown)
		if i := strings.LastIndexByte(text, '\n'); i > 0 {
			text = text[:i+1]
		}
		rest = s[len(text):]
	}
	quotes, cells := weigh(text)
	parser := m.tables
	if cells > maxCells {
		parser = m.plain
	}
	var b bytes.Buffer
	if quotes > maxQuotes || strings.Count(text, "[") > maxBrackets || parser.Convert([]byte(text), &b) != nil {
		return preformatted(s)
	}
	out := template.HTML(m.policy.Sanitize(heading.ReplaceAllString(heads.ReplaceAllString(b.String(), `<p class="mdh">`), "</p>")))
	if rest != "" {
		out += preformatted(rest)
	}
	return out
}

func preformatted(s string) template.HTML {
	return template.HTML("<pre>" + template.HTMLEscapeString(s) + "</pre>")
}

// What goldmark writes for headings; what others wrote is escaped or left out there.
var (
	heads   = regexp.MustCompile("<h[1-6]>")
	heading = regexp.MustCompile("</h[1-6]>")
)

// weigh is the most quotes that a line opens, and how many cells a table can have.
func weigh(s string) (quotes, cells int) {
	lines, most := 0, 0
	for l := range strings.Lines(s) {
		lines++
		quotes = max(quotes, strings.Count(l, ">"))
		most = max(most, strings.Count(l, "|"))
	}
	return quotes, lines * most
}

// money is an amount for people.
func money(usd float64) string { return fmt.Sprintf("$%.2f", usd) }

// span is a time in seconds for people.
func span(seconds float64) string { return transcript.Span(max(0, seconds)) }

// moment is a time as it is shown: of today without the date.
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

// number is a count with its thousands apart.
func number(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// plural is a number of things.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%s %ss", number(int64(n)), one)
}
