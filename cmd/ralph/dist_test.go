package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ralph/internal/state"
)

// TestDist builds a release twice with separate build caches and compares every byte. The binaries are static, and the
// one for this machine works. It takes minutes and runs if RALPH_TEST_DIST is set.
func TestDist(t *testing.T) {
	if os.Getenv("RALPH_TEST_DIST") == "" {
		t.Skip("skipped: RALPH_TEST_DIST is not set")
	}
	commit := strings.TrimSpace(wantStatus(t, exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD"), 0))
	first, second := buildDist(t, commit), buildDist(t, commit)
	for name, data := range first {
		if !bytes.Equal(data, second[name]) {
			t.Errorf("%s differs the second time", name)
		}
	}
	kinds := map[string]int{}
	for name := range first {
		kinds[filepath.Ext(name)]++
	}
	n := kinds[".gz"] // architectures with a compiler
	if want := map[string]int{".gz": n, ".deb": n, ".rpm": n, ".json": n, "": 1}; n == 0 || !maps.Equal(kinds, want) {
		t.Errorf("files %v, want %v", kinds, want)
	}
	for name, data := range first {
		if !strings.HasSuffix(name, ".tar.gz") {
			continue
		}
		dir := t.TempDir()
		unpack(t, data, dir)
		for _, part := range []string{"ralph", "README.md", "LICENSE", "docs/tutorial.md", "man/man1/ralph-run.1", "completions/_ralph", "licences/go.txt", "licences/README.txt"} {
			if !state.Exists(filepath.Join(dir, part)) {
				t.Errorf("%s lacks %s", name, part)
			}
		}
		binary := filepath.Join(dir, "ralph")
		if dynamic(t, binary) {
			t.Errorf("the binary of %s is not static", name)
		}
		if strings.Contains(name, runtime.GOARCH) {
			wantStatus(t, exec.CommandContext(t.Context(), binary, "demo"), 0)
		}
	}
}

// buildDist builds a release of a commit and returns its files.
func buildDist(t *testing.T, commit string) map[string][]byte {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "clone")
	wantStatus(t, exec.CommandContext(t.Context(), "git", "clone", "-q", filepath.Join("..", ".."), clone), 0)
	wantStatus(t, exec.CommandContext(t.Context(), "git", "-C", clone, "checkout", "-q", "--detach", commit), 0)
	cmd := exec.CommandContext(t.Context(), filepath.Join(clone, ".ci", "dist"))
	cmd.Env = append(os.Environ(), "GOCACHE="+t.TempDir())
	wantStatus(t, cmd, 0)
	files := map[string][]byte{}
	names, err := filepath.Glob(filepath.Join(clone, "dist", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if files[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// unpack unpacks an archive without its top folder.
func unpack(t *testing.T, data []byte, dir string) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(zip)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(h.Name, "/")
		path := filepath.Join(dir, filepath.FromSlash(name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var text []byte
			if text, err = io.ReadAll(archive); err == nil {
				err = os.WriteFile(path, text, h.FileInfo().Mode())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// dynamic tells whether a program needs a loader.
func dynamic(t *testing.T, path string) bool {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return true
		}
	}
	return false
}
