package retention_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph/internal/retention"
)

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func TestDecide(t *testing.T) {
	session := func(name string, days int, files ...retention.File) retention.Session {
		return retention.Session{Name: name, Last: now.Add(-time.Duration(days) * 24 * time.Hour), Files: files}
	}
	stream := func(size int64) retention.File { return retention.File{Name: "stream.jsonl", Size: size} }
	zipped := func(size int64) retention.File { return retention.File{Name: "stream.jsonl.gz", Size: size} }
	limits := retention.Limits{Size: 100_000, Age: 30 * 24 * time.Hour}
	for _, tt := range []struct {
		name     string
		sessions []retention.Session
		want     retention.Cleanup
	}{
		{"nothing to do", nil, retention.Cleanup{}},
		{"fresh files stay as they are", []retention.Session{session("a", 0, stream(90_000))}, retention.Cleanup{}},
		{"what rests is compressed", []retention.Session{session("a", 2, stream(50_000), retention.File{Name: "prompt.md", Size: 100})}, retention.Cleanup{Compress: []string{"a/stream.jsonl"}}},
		{"what is compressed stays so", []retention.Session{session("a", 2, zipped(50_000))}, retention.Cleanup{}},
		{"what is too old is dropped", []retention.Session{session("a", 31, zipped(10)), session("b", 29, zipped(10))}, retention.Cleanup{Drop: []string{"a"}}},
		{"compressing comes before dropping", []retention.Session{session("a", 9, zipped(60_000)), session("b", 2, stream(60_000))}, retention.Cleanup{Compress: []string{"b/stream.jsonl"}}},
		{"the oldest are dropped until it fits", []retention.Session{session("c", 2, zipped(60_000)), session("a", 9, zipped(60_000)), session("b", 5, zipped(60_000))}, retention.Cleanup{Drop: []string{"a", "b"}}},
		{"fresh ones too, if nothing else is left", []retention.Session{session("a", 0, stream(200_000))}, retention.Cleanup{Drop: []string{"a"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, retention.Decide(tt.sessions, limits, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestACompressedTranscriptIsReadAsBefore(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("a line of a transcript\n", 10_000)
	for _, name := range []string{"resting", "working"} {
		path := filepath.Join(dir, name, "stream.jsonl")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if old := now.Add(-48 * time.Hour); os.Chtimes(path, old, old) != nil {
			t.Fatal("cannot set the time")
		}
	}
	if err := retention.Apply(t.Context(), dir, map[string]bool{"working": true}, retention.Limits{Size: 1 << 20, Age: 1000 * time.Hour}, now); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]string{"resting": ".gz", "working": ""} {
		path := filepath.Join(dir, name, "stream.jsonl")
		if _, err := os.Stat(path + end); err != nil {
			t.Error(err)
		}
		f, err := retention.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil || string(got) != text {
			t.Errorf("%s: read %d bytes, %v", name, len(got), err)
		}
	}
	if err := retention.Apply(t.Context(), dir, nil, retention.Limits{Size: 10, Age: 1000 * time.Hour}, now); err != nil {
		t.Fatal(err)
	}
	if _, err := retention.Open(filepath.Join(dir, "resting", "stream.jsonl")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
