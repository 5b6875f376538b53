package proc

import (
	"fmt"
	"unicode/utf8"
)

// A clip keeps the beginning and the end of its input, using about one and a half times its size of memory.
type clip struct {
	head, tail         []byte
	headSize, tailSize int
	total              int64
}

func newClip(size int) *clip {
	size = max(size, 0)
	return &clip{headSize: size / 2, tailSize: size - size/2}
}

// Write never fails.
func (c *clip) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	room := min(c.headSize-len(c.head), n)
	c.head = append(c.head, p[:room]...)
	p = p[room:]
	if len(p) > c.tailSize {
		p = p[len(p)-c.tailSize:]
	}
	if len(c.tail)+len(p) > 2*c.tailSize {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-c.tailSize:]...)
	}
	c.tail = append(c.tail, p...)
	return n, nil
}

// text returns the kept text and the number of bytes left out. If there are any, a line about
// them separates the two parts; no character is cut.
func (c *clip) text() (string, int64) {
	if c.total <= int64(c.headSize+c.tailSize) {
		return string(c.head) + string(c.tail), 0
	}
	head, tail := wholeEnd(c.head), wholeBegin(c.tail[max(len(c.tail)-c.tailSize, 0):])
	cut := c.total - int64(len(head)+len(tail))
	line := fmt.Sprintf("[… %d bytes left out …]\n", cut)
	if len(head) > 0 && head[len(head)-1] != '\n' {
		line = "\n" + line
	}
	return string(head) + line + string(tail), cut
}

// wholeEnd returns b without an incomplete character at its end.
func wholeEnd(b []byte) []byte {
	for i := len(b) - 1; i >= max(len(b)-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(b[i]) {
			if utf8.FullRune(b[i:]) {
				return b
			}
			return b[:i]
		}
	}
	return b
}

// wholeBegin returns b without an incomplete character at its beginning.
func wholeBegin(b []byte) []byte {
	for i := range min(len(b), utf8.UTFMax) {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}
