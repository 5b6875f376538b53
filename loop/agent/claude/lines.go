package claude

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"ralph/internal/jsonl"
)

// The part of a line that is kept in memory. Files and images come as strings of many
// megabytes; ralph needs nothing that long.
const (
	maxString = 64 << 10 // bytes of each JSON string
	maxAnswer = 1 << 10  // bytes of each JSON string in tools' answers, which are most of a stream
	maxLine   = 4 << 20  // bytes of a line, with its strings cut
)

// answer is the usual beginning of a line with a tool's answer. Lines with another
// beginning are only read more slowly.
var answer = []byte(`{"type":"user",`)

// A lineReader splits a stream into lines of any length in bounded memory, and passes every byte to spool at once. It
// cuts strings to maxString, or to maxAnswer in a tool's answer, which keeps the JSON valid. For a line that is still
// too long it returns the beginning, which is not valid JSON.
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

// next returns the next line without its newline, valid until the next
// call. The last line may be incomplete. The error is io.EOF at the end,
// or else the source's or the spool's. A line may come with an error.
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
				return part[:len(part)-1], nil // no string in it can be too long
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
