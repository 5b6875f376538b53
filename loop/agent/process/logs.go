package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ralph/internal/text"
	"ralph/loop/agent"
)

// StderrFile is the file in a session's folder with the agent's standard error.
const StderrFile = "stderr.log"

// How much of the standard error is kept.
const (
	maxStderr = 1 << 20 // bytes at the beginning of the file
	maxTail   = 8 << 10 // bytes at its end, and in the report
)

// logs are the files kept for a session.
type logs struct {
	transcript *transcript
	stderr     *bothEnds
}

func openLogs(dir string, maxTranscript int64) (*logs, error) {
	out, err := openLog(dir, agent.TranscriptFile)
	if err != nil {
		return nil, err
	}
	stderr, err := openLog(dir, StderrFile)
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return &logs{
		transcript: &transcript{file: out, left: maxTranscript},
		stderr:     &bothEnds{file: stderr},
	}, nil
}

// openLog opens a file for appending that only its owner may read.
func openLog(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("session log: %w", err)
	}
	return f, nil
}

func (l *logs) close() error { return errors.Join(l.transcript.file.Close(), l.stderr.close()) }

// StderrTail returns the end of the standard error kept in a session's folder; "" if there is none.
func StderrTail(logDir string) (string, error) {
	f, err := os.Open(filepath.Join(logDir, StderrFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var b []byte
	if err == nil {
		defer f.Close()
		var size int64
		if size, err = f.Seek(0, io.SeekEnd); err == nil {
			b, err = io.ReadAll(io.NewSectionReader(f, max(size-maxTail, 0), maxTail))
		}
	}
	if err != nil {
		return "", fmt.Errorf("standard error of the agent: %w", err)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), nil
}

// A transcript stores the agent's output, byte for byte, up to a size.
type transcript struct {
	file *os.File
	left int64 // bytes that may still be written
	full bool
}

// cappedLine ends a transcript that reached its maximum size.
const cappedLine = "\n" + `{"type":"ralph","subtype":"transcript_full"}` + "\n"

// Write stores what there is room for and drops the rest.
func (t *transcript) Write(p []byte) (int, error) {
	if t.full {
		return len(p), nil
	}
	rest := p[:min(int64(len(p)), t.left)]
	n, err := t.file.Write(rest)
	t.left -= int64(n)
	if err == nil && len(rest) < len(p) {
		t.full = true
		_, err = t.file.WriteString(cappedLine)
	}
	if err != nil {
		return n, fmt.Errorf("transcript: %w", err)
	}
	return len(p), nil
}

// bothEnds stores the beginning of a stream in a file as it comes, and
// adds the end on close, in bounded space.
type bothEnds struct {
	file *os.File
	size int64
	end  []byte
	err  error
}

// take reads the stream to its end in any case: the agent must never block on its standard error.
func (k *bothEnds) take(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		k.add(buf[:n])
		if err != nil {
			return // the end, or the deadline after the agent's death
		}
	}
}

func (k *bothEnds) add(p []byte) {
	if room := maxStderr - k.size; room > 0 && k.err == nil {
		_, k.err = k.file.Write(p[:min(int64(len(p)), room)])
	}
	k.size += int64(len(p))
	k.end = append(k.end, p...)
	if len(k.end) > 2*maxTail {
		k.end = append(k.end[:0], k.end[len(k.end)-maxTail:]...)
	}
}

// tail returns the end of the stream.
func (k *bothEnds) tail() string {
	return strings.ToValidUTF8(text.ClipEnd(string(k.end), maxTail), "\uFFFD")
}

func (k *bothEnds) close() error {
	if k.size > maxStderr+maxTail && k.err == nil {
		_, k.err = fmt.Fprintf(k.file, "\n[… left out …]\n%s", k.tail())
	} else if k.size > maxStderr && k.err == nil {
		rest := k.end[len(k.end)-int(min(k.size-maxStderr, int64(len(k.end)))):]
		_, k.err = k.file.Write(rest)
	}
	if k.err != nil {
		k.err = fmt.Errorf("standard error of the agent: %w", k.err)
	}
	if err := k.file.Close(); k.err == nil {
		k.err = err
	}
	return k.err
}
