package text_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"ralph/internal/text"
)

func TestCutting(t *testing.T) {
	t.Parallel()
	utf16Size := func(r rune) int { return utf16.RuneLen(r) }
	for _, c := range []struct{ what, got, want string }{
		{"a head that fits", text.Head("añb", 4), "añb"},
		{"a head", text.Head("añb", 3), "añ"},
		{"a head within a character", text.Head("añb", 2), "a"},
		{"a head of nothing", text.Head("añb", 0), ""},
		{"a head of bytes that are no characters", text.Head("\x80\x80\x80\x80\x80\x80", 5), "\x80\x80\x80\x80\x80"},
		{"a tail that fits", text.Tail("añb", 4), "añb"},
		{"a tail", text.Tail("añb", 3), "ñb"},
		{"a tail within a character", text.Tail("añb", 2), "b"},
		{"a tail of nothing", text.Tail("añb", 0), ""},
		{"a tail of bytes that are no characters", text.Tail("\x80\x80\x80", 2), ""},
		{"a text that fits", text.Clip("añb", 3), "añb"},
		{"a text that is cut", text.Clip("añbc", 3), "añ…"},
		{"a text that is cut to its mark", text.Clip("abc", 1), "…"},
		{"an end that fits", text.ClipEnd("añb", 3), "añb"},
		{"an end", text.ClipEnd("cañb", 3), "…ñb"},
		{"an end that is only its mark", text.ClipEnd("abc", 1), "…"},
		{"bytes that fit", text.ClipBy("añb", 4, utf8.RuneLen), "añb"},
		{"bytes", text.ClipBy("añbcd", 5, utf8.RuneLen), "a…"},
		{"UTF-16", text.ClipBy("👍👍👍", 5, utf16Size), "👍👍…"},
		{"a line", text.Line("a \t b\nc\x1b\r\n", 20), "a b c<U+001B>"},
		{"a line that is cut", text.Line("a b c d", 5), "a b …"},
		{"a line whose rest is not even looked at", text.Line("a"+strings.Repeat(" ", 99), 5), "a…"},
		{"a short one", text.Short("a \t b\nc\x1b[31md\u200b", 20), "a b cd"},
		{"a short one that is cut", text.Short("abcdef", 5), "abcd…"},
		{"the first line", text.FirstLine("\n \n b c \nd"), "b c"},
		{"the first line of none", text.FirstLine(" \n\n"), ""},
		{"the last line", text.LastLine("a\n b c \n\n"), "b c"},
		{"the last line of an error", text.LastLine("Error: no key\n    at main (a.js:1:2)\n    at async b\n"), "Error: no key"},
		{"the last line of none", text.LastLine("\n "), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, c.got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{text.Count(0, "session"), "0 sessions"},
		{text.Count(1, "session"), "1 session"},
		{text.Count(2, "session"), "2 sessions"},
		{text.Plural(1, "task"), "task"},
		{text.Plural(3, "task"), "tasks"},
		{text.Money(0), "$0.00"},
		{text.Money(12.346), "$12.35"},
		{text.Span(0), "0 s"},
		{text.Span(9.94), "9.9 s"},
		{text.Span(10.6), "10 s"},
		{text.Span(61), "1 min 1 s"},
		{text.Span(3599.9), "59 min 59 s"},
		{text.Span(3660), "1 h 1 min"},
		{text.Span(1e300), "277777 h 46 min"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		files []string
		most  int
		want  string
	}{
		{nil, 0, ""},
		{[]string{"a b.txt", "ünï.txt"}, 0, "a b.txt, ünï.txt"},
		{[]string{"a", "b", "c"}, 3, "a, b, c"},
		{[]string{"a", "b", "c"}, 2, "a, b and 1 more"},
		{[]string{"new\nline", "lat\xe9in", "tab\t"}, 5, `"new\nline", "lat\xe9in", "tab\t"`},
	} {
		if got := text.Names(tt.files, tt.most); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.files, got, tt.want)
		}
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"plain text\n\twith tabs – and ü, 你好, 👍", "plain text\n\twith tabs – and ü, 你好, 👍"},
		{"\n\n  a \n\n\t ", "  a"},
		{"a\r\nb\rc\u2028d\u0085e", "a\nb\nc\nd\ne"},
		{"\x1b[1;31mred\x1b[0m \x1b]0;title\x07name \x1bM", "red name"},
		{"a\x00b\x7fc\u009bd\x1b", "abcd"},
		{"\u202egnp.exe\u202c \u2066x\u2069 a\u200bb\ufeffc", "gnp.exe x abc"},
		{"👩\u200d💻 ❤\ufe0f می\u200cخواهم", "👩\u200d💻 ❤\ufe0f می\u200cخواهم"},
		{"tag\U000e0041\U000e007f", "tag"},
		{"broken \xff", "broken \uFFFD"},
	} {
		if got := text.Clean(c.text); got != c.want {
			t.Errorf("%q is %q, want %q", c.text, got, c.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\u202eb\x00\x1b]0;x\x07\xff\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{text.Clean(s), text.Short(s, 9), text.Line(s, 9)} {
			if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool {
				return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
			}) {
				t.Errorf("%q is %q", s, got)
			}
		}
		if n := utf8.RuneCountInString(text.Short(s, 9)); n > 9 {
			t.Errorf("%q has %d characters", s, n)
		}
		if clean := text.Clean(s); text.Clean(clean) != clean {
			t.Errorf("%q has two clean forms", s)
		}
	})
}
