package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"ralph/internal/text"
	"ralph/loop/agent"
)

// StderrFile is the file in a session's folder with the agent's standard error.
const StderrFile = "stderr.log"

// The part of standard error that is kept.
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
		transcript: &transcript{file: out, most: maxTranscript},
		stderr:     &bothEnds{file: stderr},
	}, nil
}

// openLog opens a file for appending that only its owner may read.
func openLog(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("session log: %w", err)
	}
	return f, nil
}

func (l *logs) close() error { return errors.Join(l.transcript.close(), l.stderr.close()) }

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

// A transcript stores the beginning and the end of the agent's output as it arrives, each up to
// half of a size.
type transcript struct {
	mu   sync.Mutex // a late message to the agent may be written while the transcript is closed
	file *os.File
	most int64 // the size
	size int64 // size of the file
	head int64 // size of the beginning, with the line after it, if something was left out; else 0
}

// cappedLine replaces an omitted part.
const cappedLine = "\n" + `{"type":"ralph","subtype":"transcript_full"}` + "\n"

// Write stores all of it, and leaves out the middle from time to time.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.file.Write(p)
	t.size += int64(n)
	if err == nil && t.size > t.most+t.most/2 {
		err = t.shorten()
	}
	if err != nil {
		return n, fmt.Errorf("transcript: %w", err)
	}
	return n, nil
}

// shorten leaves out the middle. A line is kept or left out completely.
func (t *transcript) shorten() error {
	b := make([]byte, t.most/2)
	capped := ""
	if t.head == 0 {
		if _, err := t.file.ReadAt(b, 0); err != nil {
			return err
		}
		t.head, capped = int64(bytes.LastIndexByte(b, '\n')+1), cappedLine
	}
	if _, err := t.file.ReadAt(b, t.size-int64(len(b))); err != nil {
		return err
	}
	end := []byte(capped)
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		end = append(end, b[i+1:]...)
	}
	if err := t.file.Truncate(t.head); err != nil {
		return err
	}
	n, err := t.file.Write(end)
	t.size, t.head = t.head+int64(n), t.head+int64(len(capped))
	return err
}

func (t *transcript) close() (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.size > t.most {
		err = t.shorten()
	}
	return errors.Join(err, t.file.Close())
}

// bothEnds stores the beginning of a stream in a file as it arrives, and adds the end on
// close, in bounded space.
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
