package proc_test

import (
	"fmt"
	"strings"
	"testing"

	"ralph/internal/proc"
)

func FuzzAClipDoesNotDependOnThePieces(f *testing.F) {
	f.Add(strings.Repeat("äbc\n", 50), uint8(20), uint8(1))
	for n := range 30 { // wherever the last piece ends
		f.Add("the quick brown fox jumps over the lazy dog, and it barks"[:27+n], uint8(14), uint8(n%3))
	}
	f.Add("short", uint8(0), uint8(5))
	f.Fuzz(func(t *testing.T, data string, size, step uint8) {
		var pieces [][]byte
		for rest := data; rest != ""; {
			n := min(len(rest), int(step)+1)
			pieces = append(pieces, []byte(rest[:n]))
			rest = rest[n:]
		}
		got, cut := proc.Clip(int(size), pieces...)
		if len(data) <= int(size) {
			if got != data || cut != 0 {
				t.Fatalf("got %q without %d bytes, want all of %q", got, cut, data)
			}
			return
		}
		line := fmt.Sprintf("[… %d bytes left out …]\n", cut)
		for i := range len(got) - len(line) + 1 { // the data may have such a line too
			head, found := strings.CutSuffix(got[:i+len(line)], line)
			tail := got[i+len(line):]
			if !found || !strings.HasSuffix(data, tail) {
				continue
			}
			for _, head := range []string{head, strings.TrimSuffix(head, "\n")} {
				kept := len(head) + len(tail)
				if strings.HasPrefix(data, head) && kept+int(cut) == len(data) && kept <= int(size) && kept > int(size)-8 {
					return
				}
			}
		}
		t.Errorf("got %q without %d bytes for %d bytes of %q", got, cut, size, data)
	})
}
