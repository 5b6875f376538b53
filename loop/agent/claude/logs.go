package claude

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

// Files in the directory of a session's logs.
const (
	TranscriptFile = agent.TranscriptFile // what the agent printed, byte for byte
	StderrFile     = "stderr.log"         // its standard error
	ServerFile     = "mcp.log"            // the standard error of ralph's MCP server
)

// What is kept of the standard error.
const (
	maxStderr = 1 << 20 // bytes at the beginning of the file
	maxTail   = 8 << 10 // bytes at its end, and in the report
)

// logs are the files that are kept of a session.
type logs struct {
	transcript *transcript
	stderr     *bothEnds
}

func mcpLog(a agent.Assignment) string { return filepath.Join(a.LogDir, ServerFile) }

func openLogs(dir string, maxTranscript int64) (*logs, error) {
	out, err := openLog(dir, TranscriptFile)
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

// openLog opens a file for appending; only its owner may read what an agent says.
func openLog(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("session log: %w", err)
	}
	return f, nil
}

func (l *logs) close() error { return errors.Join(l.transcript.file.Close(), l.stderr.close()) }

// fileTail is the end of a file; "" if there is none.
func fileTail(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, max(info.Size()-maxTail, 0), maxTail))
	return strings.ToValidUTF8(string(b), "\uFFFD"), err
}

// A transcript takes what the agent prints, byte for byte, up to a size.
type transcript struct {
	file *os.File
	left int64 // bytes that may still be written
	full bool
}

// cappedLine ends a transcript that has reached its size.
const cappedLine = "\n" + `{"type":"ralph","subtype":"transcript_full"}` + "\n"

// Write writes what there is room for and takes the rest for written.
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

// bothEnds writes the beginning of a stream to a file as it comes and adds its
// end when it is closed, in bounded space.
type bothEnds struct {
	file *os.File
	size int64
	end  []byte
	err  error
}

// take reads the stream to its end, come what may: the agent must not wait for
// its standard error to be taken.
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

// tail is the end of the stream.
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
