package files_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ralph/internal/files"
)

// removes is the variable with which the test binary is the user nobody, and removes.
const removes = "RALPH_TEST_REMOVE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(removes); dir != "" {
		if err := files.RemoveAll(dir); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// TestRemoveAllNeedsAName: a path that was lost on the way is not the folder that ralph works in.
func TestRemoveAllNeedsAName(t *testing.T) {
	top := t.TempDir()
	kept := filepath.Join(top, "dir", "kept")
	if err := errors.Join(os.MkdirAll(filepath.Dir(kept), 0o700), os.WriteFile(kept, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(kept))
	for _, path := range []string{"", ".", "./", "..", "../dir/.", "../dir/..", kept + "/..", kept + "/../."} {
		if err := files.RemoveAll(path); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v", path, err)
		}
		if _, err := os.Stat(kept); err != nil {
			t.Fatalf("%q: %v", path, err)
		}
	}
}

func TestRemoveAllWhateverTheModes(t *testing.T) {
	top := t.TempDir()
	dir, outside := filepath.Join(top, "dir"), filepath.Join(top, "outside")
	script := `mkdir -p dir/a/b dir/closed/c outside && mkfifo dir/a/pipe && touch dir/a/b/f dir/closed/c/f outside/f && ln -s ../../outside dir/a/link &&
		chmod 500 outside dir/a/b dir/a && chmod 0 dir/closed/c dir/closed && chmod 500 dir`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = top
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if os.Getuid() != 0 {
		if err := files.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	} else { // whom no mode holds
		if out, err := exec.CommandContext(t.Context(), "chown", "-R", "65534:65534", top).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for at := top; at != "/" && at != os.TempDir(); at = filepath.Dir(at) {
			if err := os.Chmod(at, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		self, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(top, "test")
		if err := os.WriteFile(program, self, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env, cmd.Dir = append(os.Environ(), removes+"="+dir), top
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("it is there: %v", err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("what a link leads to has changed: %v, %v", info, err)
	}
}

// TestRemoveAllHoweverDeep: neither the length of a path nor the number of open files is a limit, and a
// path through a file leads to nothing.
func TestRemoveAllHoweverDeep(t *testing.T) {
	top := t.TempDir()
	var made []*os.Root
	long := strings.Repeat("0", 200)
	at, err := os.OpenRoot(top)
	for name := "dir"; err == nil && len(made) < 400; name = long {
		made = append(made, at)
		if err = at.Mkdir(name, 0o700); err == nil {
			at, err = at.OpenRoot(name)
		}
	}
	for _, dir := range made {
		err = errors.Join(err, dir.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dir/" + long + "/none", "none", "dir", "dir"} {
		if err := files.RemoveAll(filepath.Join(top, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := os.ReadDir(top); err != nil || len(list) > 0 {
		t.Errorf("there are %v, %v", list, err)
	}
}

// TestOpenNeverWaits, and opens only files.
func TestOpenNeverWaits(t *testing.T) {
	t.Chdir(t.TempDir())
	script := `echo a > file && ln -s file link && mkfifo pipe && ln -s pipe to-pipe && mkdir dir && ln -s /dev/zero device && ln -s none lost`
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, want := range map[string]error{
		"file": nil, "link": nil, "pipe": files.ErrIrregular, "to-pipe": files.ErrIrregular, "dir": files.ErrIrregular,
		"device": files.ErrIrregular, "lost": fs.ErrNotExist,
	} {
		f, err := files.Open(name)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = f.Close()
		}
	}
}
