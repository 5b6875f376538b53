package claude

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"ralph/internal/jsonl"
)

// What is kept of a line in memory. Files and images come as strings of many
// megabytes; none of what ralph looks at is that long.
const (
	maxString = 64 << 10 // bytes of each JSON string
	maxAnswer = 1 << 10  // bytes of each JSON string in what tools answer, which is most of a stream
	maxLine   = 4 << 20  // bytes of a line whose strings have been cut
)

// answer is how a line with the answer of a tool begins. One that begins otherwise is
// read like any other, only slower.
var answer = []byte(`{"type":"user",`)

// A lineReader cuts a stream into lines in bounded memory, whatever their
// length, and hands every byte to spool as it comes. Strings in a line are cut
// to maxString, those of a tool's answer to maxAnswer, which leaves JSON valid; of a
// line that is still too long the beginning is returned, which is not.
type lineReader struct {
	src   *bufio.Reader
	spool io.Writer
	line  jsonl.Squeezer
}

func newLineReader(r io.Reader, spool io.Writer) *lineReader {
	return &lineReader{
		src:   bufio.NewReaderSize(r, 64<<10),
		spool: spool,
		line:  jsonl.Squeezer{MaxString: maxString, MaxLine: maxLine},
	}
}

// next returns the next line without its newline; it is valid until the next
// call. The last line may be torn. The error is io.EOF at the end, and else the
// source's or the spool's. A line may come with an error.
func (r *lineReader) next() ([]byte, error) {
	r.line.Reset()
	for first := true; ; first = false {
		part, err := r.src.ReadSlice('\n')
		if _, e := r.spool.Write(part); e != nil {
			return nil, e
		}
		if first {
			r.line.MaxString = maxString
			if bytes.HasPrefix(part, answer) {
				r.line.MaxString = maxAnswer
			}
			if err == nil && len(part) <= r.line.MaxString {
				return part[:len(part)-1], nil // no string in it is too long
			}
		}
		r.line.Add(bytes.TrimSuffix(part, []byte("\n")))
		if err == nil {
			return r.line.Line(), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return r.line.Line(), err
		}
	}
}
