package term

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"sync"
	"testing"
)

func TestLogIsForPeople(t *testing.T) {
	const at = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d `
	for _, c := range []struct {
		name     string
		terminal bool
		log      func(*slog.Logger)
		want     string
	}{
		{
			"a warning", false, func(l *slog.Logger) { l.Warn("cannot pack refs", "error", io.ErrShortWrite) },
			"^" + at + "warning: cannot pack refs: short write\n$",
		},
		{"an error with its subject", true, func(l *slog.Logger) {
			l.With("task", 3).Error("stuck", "free_bytes", 7, "error", errors.New("a\nb\x1b[31m"))
		}, "^\r\x1b\\[Kerror: stuck: a b\\S*\\[31m \\(task 3, free bytes 7\\)\n$"},
		{
			"information in a file", false, func(l *slog.Logger) { l.Info("removed a workspace") },
			"^" + at + "removed a workspace\n$",
		},
		{"information on a terminal", true, func(l *slog.Logger) { l.Info("removed a workspace") }, "^$"},
		{"details", false, func(l *slog.Logger) { l.Debug("request") }, "^$"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			c.log(slog.New(lines{mu: new(sync.Mutex), out: &out, terminal: c.terminal}))
			if !regexp.MustCompile(c.want).Match(out.Bytes()) {
				t.Errorf("%q does not match %q", out.String(), c.want)
			}
		})
	}
}
