package check

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestBounded: of an output the beginning and the end are kept, however it is written.
func TestBounded(t *testing.T) {
	for _, size := range []int{0, 1, maxOutput, maxOutput + 1, 2 * maxOutput, 2*maxOutput + 1, 5 * maxOutput} {
		f, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		b := &bounded{to: f, left: maxOutput}
		whole := bytes.Repeat([]byte("0123456"), size/7+1)[:size]
		for at := 0; at < size; at += 3 << 20 {
			if _, err := b.Write(whole[at:min(at+3<<20, size)]); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.finish(); err != nil {
			t.Fatal(err)
		}
		want := whole
		if lost := size - 2*maxOutput; lost > 0 {
			said := fmt.Sprintf("\n[… %d bytes left out …]\n", lost)
			want = append(append(bytes.Clone(whole[:maxOutput]), said...), whole[size-maxOutput:]...)
		}
		if got, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("of %d bytes %d are kept, want %d, %v", size, len(got), len(want), err)
		}
	}
}
