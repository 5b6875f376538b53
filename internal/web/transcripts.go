package web

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"ralph/internal/transcript"
	"ralph/loop/agent"
)

// transcripts reads transcripts in parts. It remembers the positions of parts, so that reading from a long transcript
// is as fast as from a short one.
type transcripts struct {
	open   func(session string, file SessionFile) (io.ReadCloser, error)
	reader func() agent.Reader

	mu     sync.Mutex
	recent []*journal // the most recently used at the end
}

// recentJournals is the number of sessions that are remembered.
const recentJournals = 16

// journal returns the journal of a session's transcript.
func (t *transcripts) journal(session string) *journal {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.recent, func(j *journal) bool { return j.session == session }); i >= 0 {
		j := t.recent[i]
		t.recent = append(slices.Delete(t.recent, i, i+1), j)
		return j
	}
	reader := transcript.NewReader(t.reader())
	j := &journal{session: session, open: t.open, reader: reader, marks: []mark{{reader: reader.Clone()}}}
	if len(t.recent) >= recentJournals {
		t.recent = slices.Delete(t.recent, 0, 1)
	}
	t.recent = append(t.recent, j)
	return j
}

// used returns the reported use of a session in progress so far.
func (t *transcripts) used(session string) (agent.Event, error) {
	h, err := t.heard(session)
	return h.used, err
}

// A heard has the state of a session in progress from its transcript.
type heard struct {
	used agent.Event
	last transcript.Entry // last entry with words or an action
	at   time.Time        // when its agent last said or did something; zero if unknown
}

// heard returns the state of a session in progress.
func (t *transcripts) heard(session string) (heard, error) {
	j := t.journal(session)
	if _, err := j.catchUp(false); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return heard{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return heard{j.reader.Used(), j.last, j.written}, nil
}

// A journal is a transcript that may still grow.
type journal struct {
	session string
	open    func(session string, file SessionFile) (io.ReadCloser, error)

	mu      sync.Mutex
	reader  transcript.Reader
	read    int64 // bytes
	entries int
	last    transcript.Entry
	written time.Time // when the file was last written; zero if unknown
	ended   bool      // its last line is complete, or was accepted incomplete
	marks   []mark    // starting points, between lines
	edits   map[string][]transcript.Entry
	edited  int
}

// A mark is a position in a transcript.
type mark struct {
	read    int64
	entries int
	reader  transcript.Reader
}

// Distances of marks, and the maximum number of kept edits for changed files.
const (
	markEntries = 200
	markBytes   = 4 << 20
	maxEdits    = 400
)

// catchUp reads the new part of the transcript. After the end of the session, an incomplete last line counts. The error
// is [fs.ErrNotExist] if there is no transcript.
func (j *journal) catchUp(over bool) (entries int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return j.entries, nil
	}
	file, err := j.from(j.read)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if f, ok := file.(fs.File); ok {
		if info, err := f.Stat(); err == nil {
			j.written = info.ModTime()
		}
	}
	buffer := make([]byte, 64<<10)
	for {
		n, err := file.Read(buffer)
		j.feed(buffer[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return j.entries, err
		}
	}
	if over {
		j.take(j.reader.End())
		j.ended = true
	}
	return j.entries, nil
}

// from opens the transcript at a position.
func (j *journal) from(place int64) (io.ReadCloser, error) {
	file, err := j.open(j.session, Transcript)
	if err != nil || place == 0 {
		return file, err
	}
	if s, ok := file.(io.Seeker); ok {
		_, err = s.Seek(place, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, file, place)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// feed continues reading and sets marks between lines.
func (j *journal) feed(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			j.take(j.reader.Feed(p))
			j.read += int64(len(p))
			return
		}
		j.take(j.reader.Feed(p[:i+1]))
		j.read += int64(i + 1)
		p = p[i+1:]
		if last := j.marks[len(j.marks)-1]; j.entries-last.entries >= markEntries || j.read-last.read >= markBytes {
			j.marks = append(j.marks, mark{j.read, j.entries, j.reader.Clone()})
		}
	}
}

func (j *journal) take(list []transcript.Entry) {
	j.entries += len(list)
	for _, e := range list {
		if e.Kind == transcript.Tool || e.Kind == transcript.Text {
			j.last = e
		}
		if e.Diff == nil || j.edited >= maxEdits {
			continue
		}
		if j.edits == nil {
			j.edits = map[string][]transcript.Entry{}
		}
		j.edits[e.Text] = append(j.edits[e.Text], e)
		j.edited++
	}
}

// part returns at most n read entries, starting with entry from.
func (j *journal) part(from, n int) (list []transcript.Entry, err error) {
	j.mu.Lock()
	m := j.marks[0]
	for _, next := range j.marks {
		if next.entries > from {
			break
		}
		m = next
	}
	end, ended := j.read, j.ended
	n = min(n, j.entries-from)
	m.reader = m.reader.Clone()
	j.mu.Unlock()
	if n <= 0 {
		return nil, nil
	}
	file, err := j.from(m.read)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	skip := from - m.entries
	take := func(entries []transcript.Entry) {
		gone := min(skip, len(entries))
		skip -= gone
		list = append(list, entries[gone:]...)
	}
	rest := io.LimitReader(file, end-m.read)
	buffer := make([]byte, 64<<10)
	for len(list) < n {
		read, err := rest.Read(buffer)
		take(m.reader.Feed(buffer[:read]))
		if errors.Is(err, io.EOF) {
			if ended {
				take(m.reader.End())
			}
			break
		}
		if err != nil {
			return list, err
		}
	}
	return list[:min(n, len(list))], nil
}

// editsOf returns the kept edits by the agent's tools.
func (j *journal) editsOf() map[string][]transcript.Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	edits := make(map[string][]transcript.Entry, len(j.edits))
	for path, list := range j.edits {
		edits[path] = slices.Clone(list)
	}
	return edits
}
