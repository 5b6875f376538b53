package claude

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"ralph/loop/agent"
	"ralph/loop/agent/process"
)

// Salvage reads the transcript of a session; see [agent.Agent]. The report of a session that printed nothing is
// empty.
func (a *Agent) Salvage(logDir string, d agent.Death) (agent.Report, error) {
	f, err := os.Open(filepath.Join(logDir, agent.TranscriptFile))
	if errors.Is(err, fs.ErrNotExist) {
		return agent.Report{}, nil
	}
	if err != nil {
		return agent.Report{}, fmt.Errorf("transcript: %w", err)
	}
	defer f.Close()
	h := history{tools: toolNames(agent.Assignment{})}
	if err := h.read(f, io.Discard); err != nil {
		return agent.Report{}, fmt.Errorf("transcript: %w", err)
	}
	if d.Stderr == "" {
		if d.Stderr, err = process.StderrTail(logDir); err != nil {
			return agent.Report{}, err
		}
	}
	return h.report(d), nil
}

// read processes a whole stream.
func (h *history) read(r io.Reader, spool io.Writer) error {
	lines := newLineReader(r, spool)
	for {
		line, err := lines.next()
		if e, ok := parse(line); ok {
			h.add(e)
		} else {
			h.addUnreadable(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
