package dashboard_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"ralph/internal/dashboard"
)

func TestMarkdownIsRendered(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a **b** `c`":                 "<p>a <strong>b</strong> <code>c</code></p>",
		"# Title\n\ntext":             `<p class="mdh">Title</p>`,
		"- one\n- two":                "<li>two</li>",
		"one\ntwo":                    "<br",
		"| a | b |\n|---|---|\n|1|2|": "<td>2</td>",
		"see https://go.dev/x":        `<a href="https://go.dev/x"`,
		"[x](https://go.dev)":         "noopener",
		"```\n<b>\n```":               "&lt;b&gt;",
		"":                            "",
	} {
		if got := string(dashboard.Render(text)); !strings.Contains(got, want) {
			t.Errorf("%q is %q, which lacks %q", text, got, want)
		}
	}
}

// hostile are texts that want to be more than texts.
var hostile = []string{
	"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](data:text/html,<script>)", "![x](https://evil.example/x.png)",
	"[x](vbscript:x)", "<a href=\"javascript:alert(1)\">x</a>", "<svg/onload=alert(1)>", "</p></main><form action=https://evil.example>", "<iframe src=//evil.example>", "<style>*{display:none}</style>",
	"\x1b[31mred\x1b[0m \u202egnp.exe", "<h1 class=x onclick=y>", "```html\n</code></pre><script>\n```", "[x](/sign-out)", "[x](//evil.example)", "<p class=\"card red\">", "&#60;script&#62;", "<!-- --><script>",
	strings.Repeat(">", 70_000), strings.Repeat("[a](", 20_000), "|" + strings.Repeat("a|", 8_000) + "\n|" + strings.Repeat("-|", 8_000) + "\n" + strings.Repeat("|x\n", 8_000),
}

// elements and attributes that Markdown may become.
var (
	elements   = strings.Fields("p br hr strong em del code pre blockquote ul ol li table thead tbody tr th td a")
	attributes = strings.Fields("class start align href rel target")
)

// onlyShows fails where a rendered text could do anything.
func onlyShows(t *testing.T, text string) {
	t.Helper()
	out := string(dashboard.Render(text))
	if len(out) > 64*len(text)+1000 {
		t.Fatalf("%d bytes become %d", len(text), len(out))
	}
	z := html.NewTokenizer(strings.NewReader(out))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				t.Fatal(z.Err())
			}
			return
		case html.CommentToken, html.DoctypeToken:
			t.Errorf("%.200q becomes %.200q", text, out)
		case html.StartTagToken, html.SelfClosingTagToken:
			tag := z.Token()
			if !slices.Contains(elements, tag.Data) {
				t.Errorf("%.200q has an element %s: %.200q", text, tag.Data, out)
			}
			for _, a := range tag.Attr {
				ok := slices.Contains(attributes, a.Key)
				switch a.Key {
				case "href":
					ok = strings.HasPrefix(a.Val, "http://") || strings.HasPrefix(a.Val, "https://") || strings.HasPrefix(a.Val, "mailto:")
				case "class":
					ok = a.Val == "mdh"
				}
				if !ok {
					t.Errorf("%.200q has %s=%q: %.200q", text, a.Key, a.Val, out)
				}
			}
		}
	}
}

func TestHostileMarkdownOnlyShows(t *testing.T) {
	t.Parallel()
	for _, text := range hostile {
		onlyShows(t, text)
		if out := string(dashboard.Render(text)); strings.ContainsAny(out, "\x1b\u202e") {
			t.Errorf("%q steers: %q", text, out)
		}
	}
}

// TestALongTextIsShownToItsEnd, although only its beginning is rendered.
func TestALongTextIsShownToItsEnd(t *testing.T) {
	t.Parallel()
	out := string(dashboard.Render("**bold**\n\n" + strings.Repeat("line\n", 12_000) + "the <end>"))
	for _, want := range []string{"<strong>bold</strong>", "the &lt;end&gt;"} {
		if !strings.Contains(out, want) {
			t.Errorf("it lacks %q", want)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, text := range hostile {
		if len(text) < 1000 {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 64<<10 {
			onlyShows(t, text)
		}
	})
}
