package web

import (
	"bytes"
	"html/template"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	goldtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	nethtml "golang.org/x/net/html"

	"ralph/internal/text"
)

// A markdown renders texts of agents and people. A person must see everything that the agent is
// given, so it supports only the parts of Markdown that cannot hide anything. HTML, links with a
// separate text, images, link definitions, entities and escapes are shown as written.
type markdown struct {
	tables goldmark.Markdown
	plain  goldmark.Markdown // without tables
	policy *bluemonday.Policy
}

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
	return markdown{
		tables: newParser(extension.NewTable(extension.WithTableHTMLOptions(html.WithWriter(literal{})))),
		plain:  newParser(),
		policy: p,
	}
}

func newParser(more ...goldmark.Extender) goldmark.Markdown {
	known := parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(emphasis{parser.NewEmphasisParser()}, 500),
		),
	)
	return goldmark.New(
		goldmark.WithParser(known), goldmark.WithExtensions(append(more, extension.Linkify)...),
		goldmark.WithRendererOptions(
			html.WithHardWraps(), html.WithWriter(literal{}),
			renderer.WithNodeRenderers(util.Prioritized(literal{}, 100)),
		),
	)
}

// An emphasis treats stars as markup only around words, and not in src/**/*.go, build/* or 2*3*4.
// Underscores are never markup: they occur in names such as __init__.py.
type emphasis struct{ parser.InlineParser }

func (emphasis) Trigger() []byte { return []byte{'*'} }

func (e emphasis) Parse(parent ast.Node, block goldtext.Reader, pc parser.Context) ast.Node {
	rest, segment := block.PeekLine()
	n := len(rest) - len(bytes.TrimLeft(rest, "*"))
	before := block.PrecendingCharacter()
	after, _ := utf8.DecodeRune(rest[n:])
	opens := (n == len(rest) || unicode.IsLetter(after) || unicode.IsDigit(after) ||
		strings.ContainsRune("`([\"'“‘", after)) &&
		(unicode.IsSpace(before) || strings.ContainsRune("([\"'“‘", before))
	ended, _ := utf8.DecodeRune(bytes.TrimLeft(rest[n:], ".,;:!?)]\"'”’"))
	closes := (ended == utf8.RuneError || unicode.IsSpace(ended)) &&
		(unicode.IsLetter(before) || unicode.IsDigit(before) || strings.ContainsRune("`.,;:!?)]\"'”’", before))
	if opens || closes {
		return e.InlineParser.Parse(parent, block, pc)
	}
	block.Advance(n)
	return ast.NewTextSegment(segment.WithStop(segment.Start + n))
}

// CloseBlock forwards to the wrapped parser.
func (e emphasis) CloseBlock(parent ast.Node, block goldtext.Reader, pc parser.Context) {
	if c, ok := e.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, block, pc)
	}
}

// A literal writes texts unchanged, without resolving entities and escapes, and includes what other
// renderers omit: the language of code, an empty heading, the backslash at the end of a line.
type literal struct{}

func (literal) Write(w util.BufWriter, source []byte) { html.DefaultWriter.RawWrite(w, source) }

func (literal) RawWrite(w util.BufWriter, source []byte) { html.DefaultWriter.RawWrite(w, source) }

func (literal) SecureWrite(w util.BufWriter, source []byte) { html.DefaultWriter.RawWrite(w, source) }

// RegisterFuncs implements goldmark's renderer.NodeRenderer.
func (l literal) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, l.heading)
	r.Register(ast.KindFencedCodeBlock, l.code)
	r.Register(ast.KindText, l.text)
}

// heading renders a heading as a paragraph: only the page itself has headings.
func (l literal) heading(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, err := w.WriteString("</p>\n")
		return ast.WalkContinue, err
	}
	_, err := w.WriteString(`<p class="mdh">`)
	if h, ok := node.(*ast.Heading); ok && !h.HasChildren() && err == nil {
		_, err = w.WriteString(strings.Repeat("#", h.Level))
	}
	return ast.WalkContinue, err
}

func (l literal) code(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, err := w.WriteString("</code></pre>\n")
		return ast.WalkContinue, err
	}
	if n, ok := node.(*ast.FencedCodeBlock); ok && n.Info != nil {
		said := `<p class="mdh">` + template.HTMLEscapeString(string(n.Info.Segment.Value(source))) + "</p>\n"
		if _, err := w.WriteString(said); err != nil {
			return ast.WalkStop, err
		}
	}
	_, err := w.WriteString("<pre><code>")
	for _, s := range node.Lines().Sliced(0, node.Lines().Len()) {
		l.Write(w, s.Value(source))
	}
	return ast.WalkContinue, err
}

func (l literal) text(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n, ok := node.(*ast.Text)
	if !entering || !ok {
		return ast.WalkContinue, nil
	}
	l.Write(w, n.Segment.Value(source))
	var err error
	if n.HardLineBreak() && n.Segment.Stop < len(source) && source[n.Segment.Stop] == '\\' {
		err = w.WriteByte('\\')
	}
	if n.HardLineBreak() || n.SoftLineBreak() {
		_, err = w.WriteString("<br>\n")
	}
	return ast.WalkContinue, err
}

// Limits of rendering. Beyond them a text is shown as written: some Markdown of 64 KiB takes
// minutes, and some tables gigabytes.
const (
	maxMarkdown = 16 << 10 // bytes; the rest is not rendered
	maxQuotes   = 50       // ">" on a line
	maxCells    = 20_000   // of a table: its lines times the maximum number of "|" on one
)

// render renders Markdown as HTML. If any part of the text would be missing, the text is shown as
// written.
func (m markdown) render(s string) template.HTML {
	s = text.Visible(s)
	head, rest := s, ""
	if len(s) > maxMarkdown {
		head = text.Head(s, maxMarkdown)
		if i := strings.LastIndexByte(head, '\n'); i > 0 {
			head = head[:i+1]
		}
		rest = s[len(head):]
	}
	quotes, cells := weigh(head)
	known := m.tables
	if cells > maxCells {
		known = m.plain
	}
	var b bytes.Buffer
	if quotes > maxQuotes || known.Convert([]byte(head+"\n"), &b) != nil {
		return preformatted(s)
	}
	clean := m.policy.Sanitize(b.String())
	if !complete(head, clean) {
		return preformatted(s)
	}
	out := template.HTML(clean)
	if rest != "" {
		out += preformatted(rest)
	}
	return out
}

func preformatted(s string) template.HTML {
	return template.HTML("<pre>" + template.HTMLEscapeString(s) + "</pre>")
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

// Markup that is not visible itself: before a list item, quotation or heading, lines that consist
// of markup, and code fences.
var (
	markers = regexp.MustCompile(`^[ \t]*(?:(?:>[ \t]*|(?:[-+*]|#{1,6}|\d{1,9}[.)])(?:[ \t]+|$)))*`)
	rules   = regexp.MustCompile(`^[-=*_|: \t]*$`)
	fences  = regexp.MustCompile("^(?:`{3,}|~{3,})")
)

// complete reports whether the rendered page contains the whole text, except for spaces and markup.
func complete(source, page string) bool {
	rest := []rune(visible(page))
	table, bold := strings.Contains(page, "<table>"), strings.Contains(page, "<strong>") || strings.Contains(page, "<em>")
	at := 0
	for l := range strings.SplitSeq(source, "\n") {
		start := len(markers.FindString(l))
		markup := start + len(fences.FindString(l[start:]))
		if rules.MatchString(l[start:]) {
			markup = len(l)
		}
		for i, r := range l {
			switch {
			case unicode.IsSpace(r):
			case at < len(rest) && rest[at] == r:
				at++
			case i < markup && !unicode.IsDigit(r), r == '`', r == '*' && bold, r == '|' && table:
			default:
				return false
			}
		}
	}
	return at == len(rest)
}

// visible returns the visible text of a page without spaces, including the numbers of its lists.
func visible(page string) string {
	var b strings.Builder
	var lists []int // next number of each open list; -1 for an unnumbered one
	z := nethtml.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case nethtml.ErrorToken:
			return strings.Join(strings.Fields(b.String()), "")
		case nethtml.TextToken:
			b.Write(z.Text())
		case nethtml.StartTagToken:
			switch t := z.Token(); {
			case t.Data == "ul":
				lists = append(lists, -1)
			case t.Data == "ol":
				lists = append(lists, 1)
				if len(t.Attr) == 1 {
					lists[len(lists)-1], _ = strconv.Atoi(t.Attr[0].Val)
				}
			case t.Data == "li" && len(lists) > 0 && lists[len(lists)-1] >= 0:
				b.WriteString(strconv.Itoa(lists[len(lists)-1]))
				lists[len(lists)-1]++
			}
		case nethtml.EndTagToken:
			if name, _ := z.TagName(); len(lists) > 0 && (string(name) == "ol" || string(name) == "ul") {
				lists = lists[:len(lists)-1]
			}
		}
	}
}
