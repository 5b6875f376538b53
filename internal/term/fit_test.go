package term_test

import (
	"testing"

	"ralph/internal/term"
)

func TestFit(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		columns          int
	}{
		{"a file", "a long line of words\n", "a long line of words\n", 0},
		{"a line that fits", "short\n\nend", "short\n\nend", 20},
		{"below the last column", "12  now  a line of many words\n", "12  now  a line of\n         many words\n", 20},
		{"a column in the second half", "a wide first part  b c d e f\n", "a wide first part  b\nc d e f\n", 21},
		{"indented", "  - one two three four\n", "  - one two three\n  four\n", 18},
		{"coloured", "x  \x1b[31mone two three\x1b[0m\n", "x  \x1b[31m\x1b[0m\x1b[31mone two\n   three\x1b[0m\n", 14},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := (term.Screen{Columns: c.columns}).Fit(c.text); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
