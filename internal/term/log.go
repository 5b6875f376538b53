package term

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"ralph/internal/text"
)

// A lines is a log for people. It writes one line a record, such as "warning: cannot pack refs: no space left
// (task 3)".
type lines struct {
	mu       *sync.Mutex
	out      io.Writer
	terminal bool
	attrs    []slog.Attr // attributes of every record
}

// Log returns a log for people. On a terminal it erases the status line first and leaves out information; elsewhere
// each line begins with the local time.
func Log(out io.Writer) *slog.Logger {
	return slog.New(lines{mu: new(sync.Mutex), out: out, terminal: Is(out)})
}

// Enabled implements slog.Handler.
func (l lines) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || level == slog.LevelInfo && !l.terminal
}

// WithAttrs implements slog.Handler.
func (l lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	l.attrs = slices.Concat(l.attrs, attrs)
	return l
}

// WithGroup implements slog.Handler. A person needs no groups.
func (l lines) WithGroup(string) slog.Handler { return l }

// Handle implements slog.Handler.
func (l lines) Handle(_ context.Context, r slog.Record) error {
	line, about := text.VisibleLine(r.Message), []string{}
	add := func(a slog.Attr) bool {
		value := text.VisibleLine(a.Value.Resolve().String())
		if a.Key == "error" {
			line += ": " + value
		} else {
			about = append(about, strings.ReplaceAll(a.Key, "_", " ")+" "+value)
		}
		return true
	}
	for _, a := range l.attrs {
		add(a)
	}
	r.Attrs(add)
	if len(about) > 0 {
		line += " (" + strings.Join(about, ", ") + ")"
	}
	if r.Level >= slog.LevelWarn {
		line = map[bool]string{true: "error: ", false: "warning: "}[r.Level >= slog.LevelError] + line
	}
	before := r.Time.Local().Format(time.DateTime) + " "
	if l.terminal {
		before = "\r\x1b[K"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.out, before+line+"\n")
	return err
}
