package text

import (
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// Escaping returns a writer of JSON that escapes characters that hide or control a terminal:
// programs read the same, and people see them. Each write must be a whole value.
func Escaping(w io.Writer) io.Writer { return escaping{w} }

type escaping struct{ w io.Writer }

// Write writes JSON.
func (e escaping) Write(b []byte) (int, error) {
	out := make([]byte, 0, len(b))
	for rest := b; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r < 0x7f || !odd(r):
			out = append(out, rest[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		rest = rest[size:]
	}
	if _, err := e.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
