package follow

import (
	"bytes"
	"io"
	"syscall"
	"testing"
)

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestAnOutputOutlivesItsReaderAndItsDisk: nothing that is written fails, and a full disk is told once.
func TestAnOutputOutlivesItsReaderAndItsDisk(t *testing.T) {
	var out bytes.Buffer
	for _, tt := range []struct {
		name string
		to   io.Writer
		told int
	}{
		{"written", &out, 0},
		{"its reader has left", failing{syscall.EPIPE}, 0},
		{"a closed terminal", failing{syscall.EIO}, 0},
		{"a full disk", failing{syscall.ENOSPC}, 1},
	} {
		told := 0
		l := &Lasting{Writer: tt.to, Lost: func(error) { told++ }}
		for range 3 {
			if n, err := l.Write([]byte("abc")); n != 3 || err != nil {
				t.Errorf("%s: %d, %v", tt.name, n, err)
			}
		}
		if told != tt.told {
			t.Errorf("%s: told %d times, want %d", tt.name, told, tt.told)
		}
	}
	if out.String() != "abcabcabc" {
		t.Errorf("it wrote %q", out.String())
	}
}
