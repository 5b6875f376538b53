package systemd

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/coreos/go-systemd/v22/journal"
)

// Journalled reports whether f, which is standard output or standard error, goes
// to systemd's journal: JOURNAL_STREAM names it.
func Journalled(f io.Writer) bool {
	stream := journal.StderrIsJournalStream
	switch f {
	case os.Stderr:
	case os.Stdout:
		stream = journal.StdoutIsJournalStream
	default:
		return false
	}
	// An error means that the variable is none of systemd's.
	yes, err := stream()
	return yes && err == nil
}

// Prefix is what the journal recognises a line's priority by, such as "<4>".
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

// NewHandler writes log records for the journal: a line each, that begins with
// its priority and leaves out what the journal adds itself, time and level.
func NewHandler(w io.Writer) slog.Handler {
	handlers := make(byLevel, 4)
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		prefix := Prefix(level)
		handlers[prefix] = slog.NewTextHandler(prefixed{w, prefix}, &slog.HandlerOptions{ReplaceAttr: withoutTime})
	}
	return handlers
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
		return slog.Attr{}
	}
	return a
}

// byLevel has a handler for each priority.
type byLevel map[string]slog.Handler

// Enabled implements slog.Handler.
func (h byLevel) Enabled(ctx context.Context, level slog.Level) bool {
	return h[Prefix(level)].Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h byLevel) Handle(ctx context.Context, r slog.Record) error {
	return h[Prefix(r.Level)].Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h byLevel) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.each(func(one slog.Handler) slog.Handler { return one.WithAttrs(attrs) })
}

// WithGroup implements slog.Handler.
func (h byLevel) WithGroup(name string) slog.Handler {
	return h.each(func(one slog.Handler) slog.Handler { return one.WithGroup(name) })
}

func (h byLevel) each(f func(slog.Handler) slog.Handler) byLevel {
	with := make(byLevel, len(h))
	for prefix, one := range h {
		with[prefix] = f(one)
	}
	return with
}

// prefixed writes each record, which is one call of Write, behind a prefix.
type prefixed struct {
	w      io.Writer
	prefix string
}

func (p prefixed) Write(record []byte) (int, error) {
	if _, err := p.w.Write(append([]byte(p.prefix), record...)); err != nil {
		return 0, err
	}
	return len(record), nil
}
