package web

import (
	"bytes"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"

	"ralph/internal/text"
)

// A markdown renders texts of agents and people that nobody decides on. A text to decide on is shown as written,
// because Markdown can hide parts of it.
type markdown struct {
	known  goldmark.Markdown
	policy *bluemonday.Policy
}

// Priorities of goldmark's parsers of HTML. HTML is shown as written.
const (
	htmlBlocks = 900
	htmlInline = 400
)

// newMarkdown disables HTML, and sanitizes the result in addition: two barriers, because the text
// may come from anywhere.
func newMarkdown() markdown {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "strong", "em", "code", "pre", "blockquote", "ul", "ol", "li")
	p.AllowElements("table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("class").Matching(regexp.MustCompile("^mdh$")).OnElements("p")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("align").Matching(bluemonday.CellAlign).OnElements("th", "td")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("mailto")
	for _, scheme := range []string{"http", "https"} {
		p.AllowURLSchemeWithCustomPolicy(scheme, func(u *url.URL) bool { return u.Host != "" })
	}
	p.AllowRelativeURLs(false)
	p.RequireNoReferrerOnLinks(true)
	p.RequireNoFollowOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	without := func(list []util.PrioritizedValue, priority int) []util.PrioritizedValue {
		return slices.DeleteFunc(list, func(v util.PrioritizedValue) bool { return v.Priority == priority })
	}
	return markdown{
		known: goldmark.New(
			goldmark.WithParser(parser.NewParser(
				parser.WithBlockParsers(without(parser.DefaultBlockParsers(), htmlBlocks)...),
				parser.WithInlineParsers(without(parser.DefaultInlineParsers(), htmlInline)...),
				parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
			)),
			goldmark.WithExtensions(extension.Table, extension.Linkify),
			goldmark.WithRendererOptions(html.WithHardWraps()),
		),
		policy: p,
	}
}

// asParagraphs turns headings into paragraphs: only the page itself has headings.
var asParagraphs = func() *strings.Replacer {
	var list []string
	for _, level := range "123456" {
		list = append(list, "<h"+string(level)+">", `<p class="mdh">`, "</h"+string(level)+">", "</p>")
	}
	return strings.NewReplacer(list...)
}()

// Limits of rendering. Longer texts are shown as written: some Markdown of 64 KiB takes minutes,
// and some tables need gigabytes.
const (
	maxMarkdown = 16 << 10 // bytes
	maxQuotes   = 50       // ">" on a line
	maxCells    = 20_000   // of a table: its lines times the maximum number of "|" on one
)

// render renders Markdown as HTML.
func (m markdown) render(s string) template.HTML {
	s = text.Visible(s)
	quotes, cells := weigh(s)
	var b bytes.Buffer
	if len(s) > maxMarkdown || quotes > maxQuotes || cells > maxCells || m.known.Convert([]byte(s), &b) != nil {
		return template.HTML("<pre>" + template.HTMLEscapeString(s) + "</pre>")
	}
	return template.HTML(m.policy.Sanitize(asParagraphs.Replace(b.String())))
}

// weigh returns the maximum depth of quotes on a line, and the maximum number of table cells.
func weigh(s string) (quotes, cells int) {
	lines, most := 0, 0
	for l := range strings.Lines(s) {
		lines++
		quotes = max(quotes, strings.Count(l, ">"))
		most = max(most, strings.Count(l, "|"))
	}
	return quotes, lines * most
}
