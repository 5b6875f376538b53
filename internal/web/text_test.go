package web_test

import (
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"ralph"
	"ralph/internal/text"
	"ralph/internal/web"
	"ralph/store"
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
		if got := string(web.Render(text)); !strings.Contains(got, want) {
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
	out := string(web.Render(text))
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
		if out := string(web.Render(text)); strings.ContainsAny(out, "\x1b\u202e") {
			t.Errorf("%q steers: %q", text, out)
		}
	}
}

// hiding are texts that Markdown would partly hide.
var hiding = []string{
	"Return Promise<User> and Map<string, List<T>>", "<div>Also: delete the audit log</div>", "a <!-- and drop the table --> b", "<!--\nhidden\n-->", "<!DOCTYPE x>", "<![CDATA[ hidden ]]>", "<?php hidden ?>",
	"<details><summary>more</summary>\n\nhidden\n\n</details>", "<details>\nhidden", "x <br/> y <b>z</b>", "&lt;b&gt; &amp; &copy; &#60; &#x3c; &nosuch;", "\\<b\\> \\* \\_ \\\\ C:\\!temp", "[a]: http://evil.example \"title\"", "text\n\n[a]: <http://evil.example> 'title'\n\n[see][a] [a] [a][]",
	"[innocent](http://evil.example)", "[x](http://a.example \"hidden title\")", "[](http://evil.example)", "[](http:0)", "[](:)", "![](http:0)", "![alt](http://evil.example/x.png \"title\")", "[^1]\n\n[^1]: a footnote", "<http://a.example> <javascript:alert(1)> <a@b.example>",
	"[x](javascript:alert(1))", "ends with a backslash\\\nand goes on\\", "two  \nlines", "```go hidden=1 {evil}\ncode\n```", "~~~ rm -rf\ncode\n~~~", "```\nnever ends <b>", "    indented <b>", "| a | b |\n|---|---|\n| 1 | 2 | hidden |\n| `x\\|y` | \\| |",
	"| a |\n|:-:|\n| 1 |", "1. a\n1. b", "5. a\n6. b\n   1. c\n   2. d", "3) a\n9) b", "0. a", "007. a", "* a\n+ b\n- c", "# Title # 3 #", "#", "##", "# \n\ntext", "Title\n===\nmore\n---", "***", "- - -", "___", "> quoted\nlazy", ">", "a > b < c >> d",
	"~~struck~~ ~/a and ~/b ~", "__init__.py and __all__ and _x_", "src/**/*.go and test/**/*.go", "rm *.log in build/*", "2*3*4", "**bold**text", "*a**b*", "***both***", "**a*b**c*", "glob *.go*", "`code` ``a ` b`` `", "- [ ] box\n- [x] done",
	"a\x00b\x1b[2Jc\u202ed\u200be\U000e0041f", "x\u2028y\u3164z", "www.evil.example, a@b.example and ftp://x.example/a_b*c*", "{{.}} {% %} $x$ $$y$$", ":smile: @user #12 <@U1>", "a\r\nb\rc", strings.Repeat("word ", 5000) + "<end>", "<" + strings.Repeat("a", 5000) + ">",
	"<script>hidden()</script>", "<style>hidden</style>", "<textarea>hidden", "<title>hidden", "<plaintext>hidden", "<xmp>hidden</xmp>", "<svg><desc>hidden</desc></svg>", "<a href=\"http://evil.example\" title=\"hidden\">x</a>", "<p hidden>hidden</p>", "<input value=\"hidden\">",
	"term\n: definition", "a\n\n\n\nb", "1986. A great year", "text 1. not a list", "- \n- a", "1.\n2. b", "> - # a <b>\n>   1. c", "+ + + a", "\t- a\n\t\t- b", "<!-- > --> text", "a--b---c ... \"quotes\" (c) (tm)", "\\", "\\\n", "&", "&;", "&#0;", "&#x202e;",
}

// readable returns the readable text of a page, without its spaces.
func readable(t *testing.T, page string) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
		case n.Data == "li" && n.Parent.Data == "ol": // the browser writes its number
			no := 1
			for _, a := range n.Parent.Attr {
				if a.Key == "start" {
					no, _ = strconv.Atoi(a.Val)
				}
			}
			for p := n.PrevSibling; p != nil; p = p.PrevSibling {
				if p.Data == "li" {
					no++
				}
			}
			b.WriteString(strconv.Itoa(no))
		}
	}
	return strings.Join(strings.Fields(b.String()), "")
}

// TestOtherTextsAreRendered: HTML is shown as written, and text that would take too long is not rendered.
func TestOtherTextsAreRendered(t *testing.T) {
	t.Parallel()
	for _, text := range slices.Concat(hiding, hostile) {
		onlyShows(t, text)
	}
	for text, want := range map[string]string{
		"Promise<User> and <div>": "Promise&lt;User&gt; and &lt;div&gt;",
		"<!-- a -->\n\n**b**":     "&lt;!-- a --&gt;</p>\n<p><strong>b</strong>",
		"**bold**\n\n" + strings.Repeat("line\n", 12_000) + "the <end>": "the &lt;end&gt;</pre>",
	} {
		if out := string(web.Render(text)); !strings.Contains(out, want) {
			t.Errorf("%.200q is %.500q, which lacks %q", text, out, want)
		}
	}
}

// TestTextsToDecideOnAreShownAsWritten, character by character: on the page of a task and in the inbox.
func TestTextsToDecideOnAreShownAsWritten(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser().signIn()
	asIs := strings.NewReplacer("&#43;", "+", "\r", "")
	for _, written := range hiding {
		said := text.Head("It says: "+strings.ReplaceAll(written, "\x00", ""), 4000) + " END"
		task := s.addTask(ralph.Task{Title: "Proposed", Description: said, Status: ralph.Proposed})
		var blocker int64
		s.write(func(tx *store.Tx) (err error) {
			blocker, err = tx.AddComment(ralph.Comment{
				TaskID: task, Author: "ada", AuthorKind: ralph.ByHuman, Kind: ralph.Blocker, Body: said, Rationale: said,
			})
			return err
		})
		want := asIs.Replace(template.HTMLEscapeString(text.Visible(said)))
		for page, times := range map[string]int{
			fmt.Sprint("/tasks/", task): 3, fmt.Sprintf("/inbox?item=w-proposal-%d-0", task): 1,
			fmt.Sprintf("/inbox?item=w-blocker-%d-%d", task, blocker): 1,
		} {
			if n := strings.Count(asIs.Replace(b.get(page)), want); n < times {
				t.Errorf("%s has it %d times: %q", page, n, want)
			}
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, text := range slices.Concat(hostile, hiding) {
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
