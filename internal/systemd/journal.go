package systemd

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/coreos/go-systemd/v22/journal"
)

// Journalled reports whether f, standard output or standard error, goes to systemd's journal,
// according to JOURNAL_STREAM.
func Journalled(f io.Writer) bool {
	stream := journal.StderrIsJournalStream
	switch f {
	case os.Stderr:
	case os.Stdout:
		stream = journal.StdoutIsJournalStream
	default:
		return false
	}
	// An error means that the variable is not systemd's.
	yes, err := stream()
	return yes && err == nil
}

// Prefix returns the prefix that sets a line's priority in the journal, such as "<4>".
func Prefix(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "<3>"
	case level >= slog.LevelWarn:
		return "<4>"
	case level >= slog.LevelInfo:
		return "<6>"
	}
	return "<7>"
}

// NewHandler writes log records for the journal, one line each: it adds the priority in front, and
// omits time and level, which the journal adds itself.
func NewHandler(w io.Writer) slog.Handler {
	out := &prefixed{w: w}
	return handler{slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: withoutTime}), out}
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
		return slog.Attr{}
	}
	return a
}

// A handler sets the priority prefix of each record.
type handler struct {
	slog.Handler
	out *prefixed
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	h.out.prefix = Prefix(r.Level)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.out}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.out}
}

// prefixed writes each record, which is one call of Write, with a prefix.
type prefixed struct {
	w      io.Writer
	mu     sync.Mutex
	prefix string
}

func (p *prefixed) Write(record []byte) (int, error) {
	if _, err := p.w.Write(append([]byte(p.prefix), record...)); err != nil {
		return 0, err
	}
	return len(record), nil
}
