//go:build linux

package sandbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"ralph/internal/proc"
	"ralph/internal/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLandlockRulesOfAPolicy(t *testing.T) {
	entries := map[string][]string{
		"/": {"/home", "/usr"}, "/home": {"/home/u"}, "/home/u": {"/home/u/.ssh", "/home/u/a", "/home/u/p"},
		"/home/u/.ssh": {"/home/u/.ssh/key", "/home/u/.ssh/known_hosts"},
	}
	tests := []struct {
		name  string
		paths map[string]sandbox.Access
		want  string
	}{
		{"nothing hidden", map[string]sandbox.Access{"/": sandbox.ReadOnly, "/home/u/p": sandbox.Writable}, "r/ w/home/u/p"},
		{
			"the siblings of what is hidden",
			map[string]sandbox.Access{"/": sandbox.ReadOnly, "/home/u/p": sandbox.Writable, "/home/u/.ssh": sandbox.Hidden},
			"r/home/u/a w/home/u/p r/usr",
		},
		{
			"what is shown of it",
			map[string]sandbox.Access{"/": sandbox.ReadOnly, "/home/u/.ssh": sandbox.Hidden, "/home/u/.ssh/known_hosts": sandbox.ReadOnly},
			"r/home/u/.ssh/known_hosts r/home/u/a r/home/u/p r/usr",
		},
		{
			"a folder in a hidden one",
			map[string]sandbox.Access{"/": sandbox.ReadOnly, "/home": sandbox.Hidden, "/home/u/p": sandbox.Writable},
			"w/home/u/p r/usr",
		},
		{
			"what is read-only in a writable folder cannot be kept so",
			map[string]sandbox.Access{"/": sandbox.ReadOnly, "/home/u/p": sandbox.Writable, "/home/u/p/.git/hooks": sandbox.ReadOnly},
			"r/ w/home/u/p",
		},
		{
			"new entries cannot be made in a scratch folder",
			map[string]sandbox.Access{"/": sandbox.ReadOnly, "/home/u": sandbox.Scratch, "/home/u/a": sandbox.Writable},
			"r/ w/home/u/a",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := sandbox.Grants(sandbox.Policy{Paths: test.paths}, func(dir string) []string { return entries[dir] })
			if diff := cmp.Diff(strings.Fields(test.want), got); diff != "" {
				t.Errorf("grants (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGapsOfAMechanismAreNamed(t *testing.T) {
	policy := sandbox.Policy{Network: true, Paths: map[string]sandbox.Access{"/": sandbox.ReadOnly, "/p": sandbox.Writable, "/p/.git/hooks": sandbox.ReadOnly, "/p/.env": sandbox.Hidden}}
	const (
		sockets = "sockets in the file system, docker's among them, can be talked to"
		scopes  = "abstract sockets can be talked to, and other processes of the user be signalled"
		env     = "/p/.env can be read and written to, as the folders around can"
		hooks   = "/p/.git/hooks can be written to, as the folders around can"
		modes   = "the modes, owners and times of files can be changed"
	)
	tests := []struct {
		mechanism sandbox.Mechanism
		refuses   bool
		want      []string
	}{
		{sandbox.Mechanism{Name: sandbox.Bubblewrap, ABI: 7}, true, nil},
		{sandbox.Mechanism{Name: sandbox.Bubblewrap, ABI: 5}, true, []string{"abstract sockets of other programs can be talked to"}},
		{sandbox.Mechanism{Name: sandbox.Landlock, ABI: 9}, true, []string{env, hooks, modes}},
		{sandbox.Mechanism{Name: sandbox.Landlock, ABI: 8}, false, []string{env, hooks, modes, sockets}},
		{sandbox.Mechanism{Name: sandbox.Landlock, ABI: 5}, false, []string{env, hooks, modes, sockets, scopes}},
		{sandbox.Mechanism{Name: sandbox.Landlock, ABI: 2}, false, []string{env, hooks, modes, sockets, scopes, "files that can be read can be emptied"}},
		{sandbox.Mechanism{Name: sandbox.Landlock, ABI: 1}, false, []string{
			env, hooks, modes, sockets, scopes, "files that can be read can be emptied", "files cannot be moved to another folder",
		}},
		{sandbox.Mechanism{Name: sandbox.None}, false, []string{"the agent reads and writes all your files"}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, test.mechanism.Cannot(policy)); diff != "" || test.mechanism.RefusesSockets() != test.refuses {
			t.Errorf("%+v: refuses sockets: %v; cannot (-want +got):\n%s", test.mechanism, test.mechanism.RefusesSockets(), diff)
		}
	}
}

func TestWithoutBwrapTheRemedyIsNamed(t *testing.T) {
	why := func(path string) string {
		m := sandbox.Find(t.Context(), path, sandbox.Policy{})
		if m.Name == sandbox.Bubblewrap {
			t.Errorf("found %+v", m)
		}
		return strings.Join(m.Why, "; ")
	}
	if got := why(t.TempDir()); !strings.Contains(got, "install bubblewrap") {
		t.Errorf("got %q, want how to install it", got)
	}
	if got := why(brokenBwrap(t) + ":" + os.Getenv("PATH")); !strings.Contains(got, "uid map: Permission denied") || !strings.Contains(got, "user namespaces") {
		t.Errorf("got %q, want a word of bwrap's and what to allow", got)
	}
}

// brokenBwrap returns a folder with a bwrap that does not work.
func brokenBwrap(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte("#!/bin/sh\necho setting up uid map: Permission denied\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// mechanisms returns the mechanisms that work on this machine.
func mechanisms(t *testing.T) (list []sandbox.Mechanism) {
	t.Helper()
	for _, path := range []string{os.Getenv("PATH"), brokenBwrap(t) + ":" + os.Getenv("PATH")} {
		m := sandbox.Find(t.Context(), path, sandbox.Policy{Network: true, Paths: map[string]sandbox.Access{"/": sandbox.ReadOnly}})
		if len(list) == 0 || list[0].Name != m.Name {
			list = append(list, m)
		}
	}
	if list[0].Name == sandbox.None {
		t.Skip("skipped without a sandbox: ", list[0].Why)
	}
	return list
}

// each runs a test with each mechanism that works here.
func each(t *testing.T, test func(t *testing.T, m sandbox.Mechanism)) {
	t.Helper()
	for _, m := range mechanisms(t) {
		t.Run(m.Name, func(t *testing.T) { test(t, m) })
	}
}

// only skips a test where a mechanism is not to be had.
func only(t *testing.T, name string) sandbox.Mechanism {
	t.Helper()
	list := mechanisms(t)
	for _, m := range list {
		if m.Name == name {
			return m
		}
	}
	t.Skipf("skipped without %s: %v", name, list[0].Why)
	return sandbox.Mechanism{}
}

// inside returns a shell script in a real sandbox, in which dir is writable.
func inside(t *testing.T, m sandbox.Mechanism, dir, script string, more func(p *sandbox.Policy)) proc.Spec {
	t.Helper()
	p := sandbox.Policy{Network: true}
	p.Add(sandbox.ReadOnly, "/")
	p.Add(sandbox.Hidden, "/dev")
	p.Add(sandbox.Writable, "/dev/null", dir)
	if more != nil {
		more(&p)
	}
	p.Replace("/tmp")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.Show(self)
	marker := "SANDBOX_TEST=" + filepath.Base(filepath.Dir(dir))
	spec := proc.Spec{
		Args: []string{"sh", "-c", script}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH"), marker}, Marker: marker,
		KillGrace: time.Minute,
	}
	leave, err := sandbox.Box{Mechanism: m, Policy: p}.Enter(&spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leave)
	return spec
}

func run(t *testing.T, spec proc.Spec) proc.Result {
	t.Helper()
	r, err := proc.Run(t.Context(), spec, 10_000, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o666)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOnlyWritableFoldersCanBeWritten(t *testing.T) {
	each(t, func(t *testing.T, m sandbox.Mechanism) {
		dir, other := t.TempDir(), t.TempDir()
		readable := write(t, filepath.Join(other, "readable"), "read\n")
		spec := inside(t, m, dir, `
			echo 1 > inside && cat inside
			cat "$0"
			(echo 2 >> "$0") 2>/dev/null || echo refused
			(mv "$0" inside) 2>/dev/null || echo refused
			(truncate -s 0 "$0") 2>/dev/null || echo refused
			(ln "$0" linked) 2>/dev/null || echo refused
			mkdir a b && mv inside a/ && mv a/inside b/ && echo moved
			echo 3 > /dev/null && echo no more
			exit 3`, func(p *sandbox.Policy) { p.Add(sandbox.ReadOnly, other) })
		spec.Args = append(spec.Args, readable)
		r := run(t, spec)
		if want := "1\nread\nrefused\nrefused\nrefused\nrefused\nmoved\nno more\n"; r.Exit.Code != 3 || r.Output != want {
			t.Errorf("got %+v; want exit status 3 and %q", r, want)
		}
		if text, err := os.ReadFile(readable); err != nil || string(text) != "read\n" {
			t.Errorf("the file is now %q, %v", text, err)
		}
	})
}

func TestHiddenFilesCannotBeRead(t *testing.T) {
	each(t, func(t *testing.T, m sandbox.Mechanism) {
		dir, other := t.TempDir(), t.TempDir()
		write(t, filepath.Join(other, "open"), "open\n")
		write(t, filepath.Join(other, "secrets/key"), "secret\n")
		write(t, filepath.Join(other, "secrets/shown"), "shown\n")
		write(t, filepath.Join(other, "netrc"), "password\n")
		if err := os.Symlink(filepath.Join(other, "secrets"), filepath.Join(other, "link")); err != nil {
			t.Fatal(err)
		}
		spec := inside(t, m, dir, `cd "$0" || exit 4
			cat open secrets/shown
			for f in secrets/key link/key netrc; do cat $f 2>/dev/null; done
			for f in secrets/new secrets/key netrc; do echo x 2>/dev/null > $f; done
			ls secrets | grep key
			umount secrets 2>/dev/null && echo unmounted
			mount -o remount,rw,bind / 2>/dev/null && echo remounted
			echo done`, func(p *sandbox.Policy) {
			p.Add(sandbox.ReadOnly, other, filepath.Join(other, "secrets/shown"))
			p.Add(sandbox.Hidden, filepath.Join(other, "secrets"), filepath.Join(other, "netrc"))
		})
		spec.Args = append(spec.Args, other)
		spec.Stderr = nil
		r := run(t, spec)
		said := regexp.MustCompile(`(?m)^.*(denied|Read-only).*\n`).ReplaceAllString(r.Output, "")
		if want := "open\nshown\ndone\n"; said != want {
			t.Errorf("got %q, want %q", r.Output, want)
		}
		for file, want := range map[string]string{"secrets/key": "secret\n", "netrc": "password\n"} {
			if text, err := os.ReadFile(filepath.Join(other, file)); err != nil || string(text) != want {
				t.Errorf("%s is now %q, %v", file, text, err)
			}
		}
	})
}

func TestACommandHasTemporaryFilesOfItsOwn(t *testing.T) {
	each(t, func(t *testing.T, m sandbox.Mechanism) {
		dir, err := os.MkdirTemp("/tmp", "ralph-sandbox-test-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		others := filepath.Join(dir, "file")
		write(t, others, "another one's\n")
		r := run(t, inside(t, m, t.TempDir(), `cat `+others+` 2>/dev/null; echo x > $TMPDIR/file && cat $TMPDIR/file && echo $TMPDIR`, nil))
		lines := strings.Split(r.Output, "\n")
		if len(lines) != 3 || lines[0] != "x" {
			t.Fatalf("got %q", r.Output)
		}
		if _, err := os.Stat(filepath.Join(lines[1], "file")); m.Name == sandbox.Bubblewrap && err == nil {
			t.Errorf("%s is seen by everybody", lines[1])
		}
	})
}

func TestTheFolderOfACommandIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	each(t, func(t *testing.T, m sandbox.Mechanism) {
		var p sandbox.Policy
		p.Add(sandbox.ReadOnly, "/")
		enter := func() func() {
			leave, err := sandbox.Box{Mechanism: m, Policy: p}.Enter(&proc.Spec{})
			if err != nil {
				t.Fatal(err)
			}
			return leave
		}
		folders := func() int {
			left, err := os.ReadDir(os.Getenv("TMPDIR"))
			if err != nil {
				t.Fatal(err)
			}
			return len(left)
		}
		// The folders of a killed ralph belong to nobody.
		left := filepath.Join(os.Getenv("TMPDIR"), fmt.Sprintf("ralph-%d-left", os.Getuid()))
		write(t, filepath.Join(left, "mod/file"), "")
		if err := os.Chmod(filepath.Join(left, "mod"), 0o500); err != nil {
			t.Fatal(err)
		}
		one, two := enter(), enter()
		if n := folders(); n != 2 {
			t.Errorf("%d folders, want those of two commands", n)
		}
		one()
		two()
		if n := folders(); n != 0 {
			t.Errorf("%d folders are left", n)
		}
	})
}

func TestReadOnlyFilesInAWritableFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".git/config"), "theirs\n")
	r := run(t, inside(t, only(t, sandbox.Bubblewrap), dir, `
		(echo mine > .git/config) 2>/dev/null || echo refused
		(echo mine > .git/new && mv .git/new .git/config) 2>/dev/null || echo refused
		mv .git other 2>/dev/null || echo refused
		echo x > .git/index && echo written`, func(p *sandbox.Policy) {
		p.Add(sandbox.Writable, filepath.Join(dir, ".git"))
		p.Add(sandbox.ReadOnly, filepath.Join(dir, ".git/config"))
	}))
	if want := "refused\nrefused\nrefused\nwritten\n"; r.Output != want {
		t.Errorf("got %q, want %q", r.Output, want)
	}
}

func TestAScratchFolderKeepsItsContent(t *testing.T) {
	dir, own := t.TempDir(), t.TempDir()
	write(t, filepath.Join(own, "settings.json"), "theirs\n")
	write(t, filepath.Join(own, "credentials"), "old\n")
	r := run(t, inside(t, only(t, sandbox.Bubblewrap), dir, `cd `+own+`
		cat settings.json
		(echo mine > settings.json) 2>/dev/null || echo refused
		mkdir hooks && echo mine > hooks/x && echo made
		cp settings.json new && (mv new credentials) 2>/dev/null || echo new > credentials`, func(p *sandbox.Policy) {
		p.Add(sandbox.Scratch, own)
		p.Add(sandbox.Writable, filepath.Join(own, "credentials"))
	}))
	if want := "theirs\nrefused\nmade\n"; r.Output != want {
		t.Errorf("got %q, want %q", r.Output, want)
	}
	if text, err := os.ReadFile(filepath.Join(own, "credentials")); err != nil || string(text) != "new\n" {
		t.Errorf("the credentials are %q, %v", text, err)
	}
	if left, err := os.ReadDir(own); err != nil || len(left) != 2 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

// TestACopyInAScratchFolder: a program can change and replace the copy of a file, and cannot replace read-only files,
// folders or links. Nothing of it lasts.
func TestACopyInAScratchFolder(t *testing.T) {
	dir, own, other := t.TempDir(), t.TempDir(), t.TempDir()
	registry, settings := filepath.Join(own, "registry.json"), write(t, filepath.Join(other, "settings.json"), "theirs\n")
	for _, path := range []string{registry, filepath.Join(own, "changed.json"), filepath.Join(own, "hooks/x"), filepath.Join(other, "skills/x")} {
		write(t, path, "theirs\n")
	}
	kept := filepath.Join(other, "kept")
	for link, target := range map[string]string{
		"settings.json": settings, "skills": filepath.Join(other, "skills"), "kept": kept, "gone": filepath.Join(other, "gone"),
	} {
		if err := os.Symlink(target, filepath.Join(own, link)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(kept, "log"), "")
	r := run(t, inside(t, only(t, sandbox.Bubblewrap), dir, `cd `+own+`
		cat registry.json
		echo mine > new && mv new registry.json && cat registry.json
		echo mine > changed.json && cat changed.json
		for entry in hooks skills settings.json; do (rm -rf $entry; mv $entry moved || echo $entry stays) 2>/dev/null; done
		cat hooks/x skills/x settings.json
		test -L gone && echo more > kept/log`, func(p *sandbox.Policy) {
		p.Add(sandbox.ReadOnly, other)
		p.Add(sandbox.Scratch, own, registry, filepath.Join(own, "changed.json"))
		p.Add(sandbox.Writable, kept)
	}))
	if want := "theirs\nmine\nmine\nhooks stays\nskills stays\nsettings.json stays\ntheirs\ntheirs\ntheirs\n"; r.Exit.Code != 0 || r.Output != want {
		t.Errorf("got %+v, want %q", r, want)
	}
	for path, want := range map[string]string{registry: "theirs\n", settings: "theirs\n", filepath.Join(kept, "log"): "more\n"} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s is now %q, %v", path, text, err)
		}
	}
}

func TestProcessesOutsideAreOutOfSight(t *testing.T) {
	r := run(t, inside(t, only(t, sandbox.Bubblewrap), t.TempDir(), `cat /proc/[0-9]*/comm`, nil))
	if want := "bwrap\nsh\n"; r.Output != want {
		t.Errorf("got the processes %q, want %q", r.Output, want)
	}
}

// TestTheKernelIsLeftAlone: root needs no capability for most files in /proc, and the kernel runs programs named in
// some of them outside of every sandbox. Nothing is written here: a file is opened for it, as it is.
func TestTheKernelIsLeftAlone(t *testing.T) {
	const script = `for f in $(find /proc/sys /proc/sysrq-trigger /proc/irq /proc/bus /proc/fs /proc/mtrr -type f 2>/dev/null); do ` +
		`{ true >> $f; } 2>/dev/null && echo $f; done; mount -o remount,rw /proc/sys 2>/dev/null && echo mounted; umount /proc/sys 2>/dev/null && echo gone; ` +
		`unshare -Urpf --mount-proc sh -c '(: >> /proc/sys/kernel/core_pattern)' 2>/dev/null && echo another; cat /proc/sys/kernel/core_pattern`
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil {
		t.Skip("skipped without /proc/sys: ", err)
	}
	each(t, func(t *testing.T, m sandbox.Mechanism) {
		if r := run(t, inside(t, m, t.TempDir(), script, nil)); r.Output != string(pattern) {
			t.Errorf("could be written to: %s", r.Output)
		}
	})
}

func TestOtherProcessesAreLeftAlone(t *testing.T) {
	each(t, func(t *testing.T, m sandbox.Mechanism) {
		if m.ABI < 6 {
			t.Skip("skipped: the kernel's Landlock has no scopes")
		}
		r := run(t, inside(t, m, t.TempDir(), fmt.Sprintf(`kill -0 %d 2>/dev/null && echo reached; cat /proc/%[1]d/environ 2>/dev/null | wc -c`, os.Getpid()), nil))
		if r.Output != "0\n" {
			t.Errorf("got %q", r.Output)
		}
	})
}

// TestSockets: one that the sandbox hides, and one without a name in the file system,
// cannot be talked to where the mechanism can refuse it.
func TestSockets(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("skipped without python3, which opens sockets")
	}
	hidden := filepath.Join(t.TempDir(), "docker.sock")
	abstract := fmt.Sprintf("@ralph-test-%d", os.Getpid())
	for _, name := range []string{hidden, abstract} {
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	each(t, func(t *testing.T, m sandbox.Mechanism) {
		for name, refused := range map[string]bool{hidden: m.RefusesSockets(), abstract: m.ABI >= 6} {
			spec := inside(t, m, t.TempDir(), "", func(p *sandbox.Policy) { p.Add(sandbox.Hidden, filepath.Dir(hidden)) })
			spec.Args = []string{
				python, "-c", `import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1].replace("@", "\0"))`, name,
			}
			if r := run(t, spec); (r.Exit.Code != 0) != refused {
				t.Errorf("%s, to be refused: %v: %+v", name, refused, r)
			}
		}
	})
}

func TestTheNetworkIsTakenAwayOnRequest(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, m sandbox.Mechanism) {
		for _, network := range []bool{true, false} {
			// bash opens /dev/tcp itself, so that no other program is needed.
			spec := inside(t, m, t.TempDir(), "", func(p *sandbox.Policy) { p.Network = network })
			spec.Args = []string{"bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/$0`, port}
			r := run(t, spec)
			if reached := r.Exit.Code == 0; reached != (network || m.Name == sandbox.Landlock && m.ABI < 4) {
				t.Errorf("with network %v: %+v", network, r)
			}
		}
	})
}

func TestAMissingProgramIsFoundBeforeTheSandbox(t *testing.T) {
	each(t, func(t *testing.T, m sandbox.Mechanism) {
		spec := inside(t, m, t.TempDir(), "", nil)
		spec.Args = []string{"no-such-program"}
		if _, err := proc.Start(spec); !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("got the error %v, want %v", err, exec.ErrNotFound)
		}
	})
}

// TestAsAnotherUser: the sandbox of somebody without privileges, and where there are no
// user namespaces for bubblewrap.
func TestAsAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("skipped: only root can be another user")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	user := []string{"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"}
	for name, prefix := range map[string][]string{
		"a user": user,
		"without user namespaces": append(user, "unshare", "--user", "--map-root-user", "sh", "-c",
			`echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --no-new-privs "$@"`, "sh"),
		"root in a container": {"setpriv", "--bounding-set", "-sys_admin"},
	} {
		t.Run(name, func(t *testing.T) {
			tests := "^(TestOnlyWritableFoldersCanBeWritten|TestHiddenFilesCannotBeRead|TestACommandHasTemporaryFilesOfItsOwn|TestSockets)$"
			program, err := exec.LookPath(prefix[0])
			if err != nil {
				t.Skip("skipped without ", prefix[0])
			}
			dir := t.TempDir()
			copied, err := os.ReadFile(self)
			if err != nil {
				t.Fatal(err)
			}
			self := write(t, filepath.Join(dir, "sandbox.test"), string(copied))
			if err := os.Chmod(self, 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), program, append(prefix[1:], self, "-test.run", tests, "-test.v")...)
			if err := os.Chown(dir, 65534, 65534); err != nil {
				t.Fatal(err)
			}
			for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
				if err := os.Chmod(at, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd.Env, cmd.Dir = append(os.Environ(), "TMPDIR="+dir), dir
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "/"+sandbox.Landlock) {
				t.Errorf("%v\n%s", err, out)
			}
			if bubblewrap := strings.Contains(string(out), "/"+sandbox.Bubblewrap); name != "a user" && bubblewrap {
				t.Errorf("bubblewrap works:\n%s", out)
			}
		})
	}
}

// talk starts a script that prints "up" and returns its further output.
func talk(t *testing.T, spec proc.Spec) (*proc.Process, *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	spec.Stdout, spec.Stderr = w, os.Stderr
	p, err := proc.Start(spec)
	if err := errors.Join(err, w.Close(), r.SetReadDeadline(time.Now().Add(20*time.Second))); err != nil {
		t.Fatal(err)
	}
	output := bufio.NewReader(r)
	if line, err := output.ReadString('\n'); line != "up\n" {
		t.Errorf("read %q, %v; want up", line, err)
	}
	return p, output
}

func TestAnInterruptReachesTheCommandAndNotTheSandbox(t *testing.T) {
	for name, interrupt := range map[string]func(*proc.Process) error{
		"the command alone": (*proc.Process).Interrupt, "its group": (*proc.Process).InterruptGroup,
	} {
		t.Run(name, func(t *testing.T) {
			p, output := talk(t, inside(t, only(t, sandbox.Bubblewrap), t.TempDir(), `trap 'echo bye; exit 7' INT; sleep 1000 & echo up; wait`, nil))
			if err := interrupt(p); err != nil {
				t.Fatal(err)
			}
			line, err := output.ReadString('\n')
			if line != "bye\n" {
				t.Errorf("read %q, %v; want bye", line, err)
			}
			exit, err := p.Wait()
			// A shell's background jobs ignore interrupts.
			if err != nil || exit.Code != 7 || len(exit.Leftovers) != 1 || exit.Leftovers[0].Command != "sleep 1000" {
				t.Errorf("got %+v, %v; want exit status 7 and sleep left over", exit, err)
			}
		})
	}
}

func TestNothingInASandboxOutlivesIt(t *testing.T) {
	const family = `(setsid sh -c 'exec env -i sleep 1000 >/dev/null 2>&1' &); setsid sleep 1000 & trap '' INT TERM; echo up; `
	deaths := map[string]struct {
		script string
		end    func(*proc.Process) error
		code   int
	}{
		"when the command ends": {family + "exit 3", func(*proc.Process) error { return nil }, 3},
		"when it is killed":     {family + "while :; do sleep 1000; done", (*proc.Process).Kill, -1},
		"when its time is up":   {family + "while :; do sleep 1000; done", (*proc.Process).Interrupt, -1},
	}
	each(t, func(t *testing.T, m sandbox.Mechanism) {
		for name, death := range deaths {
			t.Run(name, func(t *testing.T) {
				spec := inside(t, m, t.TempDir(), death.script, nil)
				spec.KillGrace = time.Millisecond
				p, output := talk(t, spec)
				if err := death.end(p); err != nil {
					t.Fatal(err)
				}
				exit, err := p.Wait()
				if err != nil || exit.Code != death.code || len(exit.Leftovers) < 2 {
					t.Errorf("got %+v, %v; want the exit status %d and two leftovers", exit, err, death.code)
				}
				for _, l := range exit.Leftovers {
					if strings.Contains(l.Command, "bwrap") {
						t.Errorf("the sandbox itself is a leftover: %+v", l)
					}
					if err := syscall.Kill(l.Pid, 0); !errors.Is(err, syscall.ESRCH) {
						t.Errorf("%+v: %v, want %v", l, err, syscall.ESRCH)
					}
				}
				if _, err := io.Copy(io.Discard, output); err != nil {
					t.Errorf("the output is still held open: %v", err)
				}
			})
		}
	})
}

// TestALostSupervisorTakesAllOfBubblewrapWithIt: even a process that cleared its environment ends with the namespace.
func TestALostSupervisorTakesAllOfBubblewrapWithIt(t *testing.T) {
	const script = `(setsid env -i sleep 1000 &); echo up; while :; do sleep 1000; done`
	spec := inside(t, only(t, sandbox.Bubblewrap), t.TempDir(), script, nil)
	p, output := talk(t, spec)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	var supervisor int
	_, rest, _ := strings.Cut(string(stat), "\nPPid:")
	if _, err := fmt.Sscan(rest, &supervisor); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); !errors.Is(err, proc.ErrSupervisorLost) {
		t.Errorf("got %v, want %v", err, proc.ErrSupervisorLost)
	}
	if _, err := io.Copy(io.Discard, output); err != nil {
		t.Errorf("the output is still held open: %v", err)
	}
}
