package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"ralph/internal/text"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"plain text\n\twith tabs – and ü, 你好, 👍", "plain text\n\twith tabs – and ü, 你好, 👍"},
		{"a\r\nb\rc", "a\nb<U+000D>c"},
		{"\x1b[31mred\x1b[0m", "<U+001B>[31mred<U+001B>[0m"},
		{"a\x00b\x7fc\u009bd", "a<U+0000>b<U+007F>c<U+009B>d"},
		{"\u202egnp.exe\u202c \u2066x\u2069 \u200f", "<U+202E>gnp.exe<U+202C> <U+2066>x<U+2069> <U+200F>"},
		{"a\u200bb\u2060c\ufeffd\u00ade\u180ef", "a<U+200B>b<U+2060>c<U+FEFF>d<U+00AD>e<U+180E>f"},
		{"\U000e0041\U000e007f", "<U+E0041><U+E007F>"},
		{"a\u2028b\u2029c\u2800d\u3164e\u115ff", "a<U+2028>b<U+2029>c<U+2800>d<U+3164>e<U+115F>f"},
		{"hid\u200dden wo\u200cords", "hid<U+200D>den wo<U+200C>ords"},
		{"👩\u200d💻 ❤\ufe0f می\u200cخواهم 1\ufe0f\u20e3 क्\u200dष", "👩\u200d💻 ❤\ufe0f می\u200cخواهم 1\ufe0f\u20e3 क्\u200dष"},
		{"👍\ufe00\U000e0100 a\ufe0f 👍\ufe0f\ufe0f", "👍<U+FE00><U+E0100> a<U+FE0F> 👍\ufe0f<U+FE0F>"},
		{"broken \xff", "broken \uFFFD"},
	} {
		if got := text.Visible(c.text); got != c.want {
			t.Errorf("%q is shown as %q, want %q", c.text, got, c.want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\u202eb\x00\x1b]0;x\x07\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := text.Visible(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\r\u202e\u200b\u2066") {
			t.Errorf("%q is shown as %q", s, got)
		}
		if text.Visible(got) != got {
			t.Errorf("%q is shown in two ways", s)
		}
	})
}
