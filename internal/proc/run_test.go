package proc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"ralph/internal/proc"
)

func shell(script string) proc.Spec {
	return proc.Spec{Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

func TestRunKeepsTheBeginningAndTheEnd(t *testing.T) {
	tests := []struct {
		name, script string
		size         int
		want         string
		cut          int64
	}{
		{"nothing", `:`, 10, "", 0},
		{"both streams in their order", `echo 1; echo 2 >&2; echo 3; echo 4 >&2`, 10, "1\n2\n3\n4\n", 0},
		{"just as much as is kept", `printf 0123456789`, 10, "0123456789", 0},
		{"one byte more", `printf 0123456789a`, 10, "01234\n[… 1 bytes left out …]\n6789a", 1},
		{"lines", `printf 'a\nb\nc\nd\ne\nf\n'`, 8, "a\nb\n[… 4 bytes left out …]\ne\nf\n", 4},
		{"whole characters", `printf 'ääääää'`, 6, "ä\n[… 8 bytes left out …]\nä", 8},
		{"nothing is kept", `echo text`, 0, "[… 5 bytes left out …]\n", 5},
		{"what is no text", `printf '\377\377\377\377'`, 2, "\xff\n[… 2 bytes left out …]\n\xff", 2},
		{"pieces", `for i in 0 1 2 3 4 5 6 7 8 9; do printf "$i$i"; done`, 4, "00\n[… 16 bytes left out …]\n99", 16},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var whole bytes.Buffer
			got, err := proc.Run(t.Context(), shell(test.script), test.size, &whole)
			if err != nil {
				t.Fatal(err)
			}
			if got.Output != test.want || got.Cut != test.cut {
				t.Errorf("got %q without %d bytes, want %q without %d", got.Output, got.Cut, test.want, test.cut)
			}
			if got.Cut == 0 && got.Output != whole.String() {
				t.Errorf("got %q as the whole output, want %q", whole.String(), got.Output)
			}
		})
	}
}

func TestRunWithALargeOutput(t *testing.T) {
	const script = `i=0; while [ $i -lt 100000 ]; do echo "line $i"; i=$((i+1)); done; exit 9`
	var whole bytes.Buffer
	got, err := proc.Run(t.Context(), shell(script), 2000, &whole)
	if err != nil || got.Exit.Code != 9 || got.Stopped {
		t.Fatalf("got %+v, %v; want exit status 9", got.Exit, err)
	}
	if lines := bytes.Count(whole.Bytes(), []byte("\n")); lines != 100000 {
		t.Errorf("got %d lines as the whole output, want 100000", lines)
	}
	head, tail, found := strings.Cut(got.Output, fmt.Sprintf("[… %d bytes left out …]\n", got.Cut))
	if !found || !strings.HasPrefix(head, "line 0\nline 1\n") || !strings.HasSuffix(tail, "\nline 99999\n") {
		t.Errorf("got %q", got.Output)
	}
	if !strings.HasPrefix(whole.String(), head) {
		head = strings.TrimSuffix(head, "\n") // which begins the line between
	}
	if kept := len(head) + len(tail); kept > 2000 || kept < 1990 || int64(kept)+got.Cut != int64(whole.Len()) {
		t.Errorf("%d bytes are kept and %d are not, of %d", kept, got.Cut, whole.Len())
	}
}

// upWriter ends a context when it is told "up".
type upWriter struct{ cancel context.CancelFunc }

func (w upWriter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("up\n")) {
		w.cancel()
	}
	return len(p), nil
}

func TestRunStopsTheCommandWhenItsContextEnds(t *testing.T) {
	tests := []struct {
		name, script string
		grace        time.Duration
		want         proc.Exit
	}{
		{"that obeys", `trap 'exit 5' INT; echo up; sleep 1000 & wait`, patience, proc.Exit{Code: 5}},
		{"that does not", `trap '' INT; sleep 1000 & echo up; sleep 1000`, 1, proc.Exit{Code: -1, Signal: "SIGKILL"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			spec := shell(test.script)
			spec.KillGrace = test.grace
			got, err := proc.Run(ctx, spec, 100, upWriter{cancel})
			if err != nil || !got.Stopped || got.Output != "up\n" ||
				got.Exit.Code != test.want.Code || got.Exit.Signal != test.want.Signal {
				t.Errorf("got %+v, %v; want it stopped with %+v", got, err, test.want)
			}
		})
	}
}

func TestRunStartsNothingAfterItsContextEnded(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if _, err := proc.Run(ctx, proc.Spec{Args: []string{"/no/such/program"}}, 100, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got the error %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestRunReadsOnWhenTheOutputCannotBeSaved(t *testing.T) {
	closed, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	got, err := proc.Run(t.Context(), shell(`yes | head -c 1000000; echo end; exit 6`), 100, closed)
	if !errors.Is(err, fs.ErrClosed) {
		t.Errorf("got the error %v, want %v", err, fs.ErrClosed)
	}
	if got.Exit.Code != 6 || !strings.HasSuffix(got.Output, "\nend\n") {
		t.Errorf("got %+v, want all of it", got)
	}
}
