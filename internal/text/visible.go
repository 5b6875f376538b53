package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns a text for a person's decision: nothing is removed; characters that are invisible, control a terminal
// or reorder text are shown by number, as in <U+202E>. Line breaks and tabs stay.
func Visible(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	if !strings.ContainsFunc(s, odd) {
		return s
	}
	var b strings.Builder
	before := rune(0)
	for i, r := range s {
		if odd(r) && !joins(r, before, s[i+utf8.RuneLen(r):]) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

// VisibleLine is [Visible] on one line.
func VisibleLine(s string) string { return fields(Visible(s)) }

// odd reports whether a character is invisible or may hide others.
func odd(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x7f:
		return r < ' '
	case r == 0x2800, r == 0x2028, r == 0x2029, r == 0x180e, // blank letters and line ends
		0xe0000 <= r && r <= 0xe0fff, // tags, and the range reserved for similar characters
		0xfff0 <= r && r <= 0xfffb, 0x1d173 <= r && r <= 0x1d17a:
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// joins reports whether a joiner or variation selector is legitimate in its context: between
// letters of non-Latin scripts or between symbols.
func joins(r, before rune, rest string) bool {
	const zwnj, zwj = 0x200c, 0x200d
	next, _ := utf8.DecodeRuneInString(rest)
	switch r {
	case zwj, zwnj:
		left := unicode.In(before, unicode.M, unicode.So, unicode.Sk) || before == 0xfe0f ||
			before > 0x24f && unicode.IsLetter(before)
		return left && (unicode.Is(unicode.So, next) || next > 0x24f && unicode.IsLetter(next))
	case 0xfe0e, 0xfe0f:
		return unicode.Is(unicode.So, before) ||
			strings.ContainsRune("#*0123456789‼⁉↔↕↖↗↘↙↩↪", before) && before < 0x80 == (next == 0x20e3)
	}
	return false
}
