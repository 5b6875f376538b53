package picturetest

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// plain returns the text of cells.
func plain(lines [][]cell) (list []string) {
	for _, line := range lines {
		said := ""
		for _, c := range line {
			said += c.text
		}
		list = append(list, said)
	}
	return list
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"one\ntwo\n", "one|two"},
		{"123456789012", "1234567890|12"},
		{"漢字漢字漢字", "漢字漢字漢|字"},
		{"12345678 \u65e5\u672c", "12345678 |日本"},
		{"status 1\r\x1b[Kdone", "done"},
		{"status 1\rS", "Status 1"},
		{"e\u0301a", "e\u0301a"},
		{"\x1b[31mred\x1b[0m", "red"},
	} {
		if got := strings.Join(plain(read(c.text, 10)), "|"); got != c.want {
			t.Errorf("%q is read as %q, want %q", c.text, got, c.want)
		}
	}
}

func TestSVG(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\x1b[1;31mred\x1b[m <&":         `<text x="0" y="14" textLength="25.2" class="s1 s31">red</text><text x="33.6" y="14" textLength="16.8">&lt;&amp;</text>`,
		"\x1b[32mgreen\x1b[39m no":       `class="s32">green</text>`,
		"\x1b[1mbold\x1b[22;34m blue":    `class="s34">blue</text>`,
		"first\nsecond":                  `y="32" textLength="50.4">second</text>`,
		"gone\nfirst\nsecond\nthe third": `y="32" textLength="75.6">the third</text>`,
	} {
		p := Picture{Text: text, Columns: 20, Rows: 2, Title: "a <b>"}
		got := p.SVG()
		if !strings.Contains(got, want) || strings.Contains(got, "gone") {
			t.Errorf("%q is drawn as\n%s\nwant\n%s", text, got, want)
		}
		p.Moves = true
		for _, svg := range []string{got, p.SVG()} {
			d := xml.NewDecoder(strings.NewReader(svg))
			var err error
			for err == nil {
				_, err = d.Token()
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}
