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

	"golang.org/x/tools/txtar"

	"ralph/internal/state"
	"ralph/loop/agent/scripted"
)

// TestDist builds a release twice with separate build caches and compares every byte. The binaries are static, and the
// one for this machine works. It takes minutes and runs if RALPH_TEST_DIST is set.
func TestDist(t *testing.T) {
	if os.Getenv("RALPH_TEST_DIST") == "" {
		t.Skip("skipped: RALPH_TEST_DIST is not set")
	}
	commit := strings.TrimSpace(wantStatus(t, exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD"), 0))
	first, second := buildDist(t, commit, "GOCACHE="+t.TempDir()), buildDist(t, commit, "GOCACHE="+t.TempDir())
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

// TestInstalled installs the Debian package in an empty Debian, and follows the README there as an ordinary user. The
// release leaves the other architecture out.
func TestInstalled(t *testing.T) {
	if os.Getenv("RALPH_TEST_DIST") == "" {
		t.Skip("skipped: RALPH_TEST_DIST is not set")
	}
	if _, err := exec.LookPath("mmdebstrap"); err != nil || os.Getuid() != 0 {
		t.Skip("skipped: an empty Debian takes mmdebstrap, and root")
	}
	commit := strings.TrimSpace(wantStatus(t, exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD"), 0))
	archive, err := txtar.ParseFile(filepath.Join("testdata", "pages", "README.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	script := "set -e\ncd\n"
	for _, b := range readPage(t, filepath.Join("..", "..", "README.md")).blocks {
		for _, c := range b.commands {
			script += c.text + "\n"
		}
	}
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	dir := t.TempDir()
	name := "ralph_" + release + "_" + runtime.GOARCH + ".deb"
	for file, text := range map[string][]byte{
		name: buildDist(t, commit, "CC_"+other+"=absent")[name], "README.sh": []byte(script), "agent.script": archive.Files[0].Data,
		"claude": []byte("#!/bin/sh\n[ \"$*\" = --version ] && { echo '" + scripted.Version + "'; exit; }\n" +
			"RALPH_SCRIPT=/usr/local/bin/agent.script exec ralph scripted-agent \"$@\"\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(t.TempDir(), "root")
	wantStatus(t, exec.CommandContext(t.Context(), "mmdebstrap", "--variant=minbase", "--include=make",
		"--customize-hook=copy-in "+filepath.Join(dir, name)+" /var/tmp",
		`--customize-hook=chroot "$1" apt-get install -y --install-recommends /var/tmp/`+name,
		`--customize-hook=chroot "$1" useradd -m ada`,
		"--customize-hook=copy-in "+filepath.Join(dir, "claude")+" "+filepath.Join(dir, "agent.script")+" "+filepath.Join(dir, "README.sh")+" /usr/local/bin",
		"bookworm", root), 0)
	// Not chroot: bubblewrap makes no namespace in one.
	const enter = `mount --rbind "$1" "$1" && cd "$1" && mkdir old && pivot_root . old && mount -t proc proc /proc &&
		mount -t tmpfs -o mode=1777 tmpfs /tmp && mount --rbind /old/dev /dev && umount -l /old &&
		exec setpriv --reuid=ada --regid=ada --init-groups env -i HOME=/home/ada PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 \
		ANTHROPIC_API_KEY=fake GIT_AUTHOR_NAME=Ada GIT_AUTHOR_EMAIL=ada@example.com GIT_COMMITTER_NAME=Ada GIT_COMMITTER_EMAIL=ada@example.com \
		sh /usr/local/bin/README.sh`
	out := wantStatus(t, exec.CommandContext(t.Context(), "unshare", "-m", "-p", "-f", "sh", "-c", enter, "sh", root), 0)
	for _, want := range []string{"sandbox     bubblewrap\n", "  failed      Add square root", "TASK-1 merged into main", "1 merged (1 proved)"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not print %q:\n%s", want, out)
		}
	}
}

// buildDist builds a release of a commit with additional variables, and returns its files.
func buildDist(t *testing.T, commit string, environ ...string) map[string][]byte {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "clone")
	wantStatus(t, exec.CommandContext(t.Context(), "git", "clone", "-q", filepath.Join("..", ".."), clone), 0)
	wantStatus(t, exec.CommandContext(t.Context(), "git", "-C", clone, "checkout", "-q", "--detach", commit), 0)
	cmd := exec.CommandContext(t.Context(), filepath.Join(clone, ".ci", "dist"))
	cmd.Env = append(os.Environ(), environ...)
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
