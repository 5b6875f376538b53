package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestDamagedState: after any damage to a state folder, no command ends with status 0 and fewer tasks than before. Each
// names a remedy, which restores the contents of the last copy. RALPH_TEST_DAMAGES is the number of damages for each
// project.
func TestDamagedState(t *testing.T) {
	long(t)
	t.Parallel()
	times, random := testNumber(t, "RALPH_TEST_DAMAGES", 4), chance(t)
	for _, kind := range []struct {
		name         string
		tasks        int
		killed, live bool
	}{{"small", 3, false, false}, {"large", 300, false, false}, {"killed", 20, true, false}, {"running", 20, true, true}} {
		seed := random.Uint64()
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			d := newDamaged(t, kind.tasks, kind.killed)
			n := times
			if kind.live {
				n = (times + 9) / 10
			}
			for i := range n {
				d.random = rand.New(rand.NewPCG(seed, uint64(i)))
				d.once(fmt.Sprintf("seed %d, %d", seed, i), kind.live)
			}
			t.Logf("%d damages: %d without effect, %d named, of those %d by db restore of a copy", n, d.harmless, d.named, d.restored)
		})
	}
}

// A damagedProject is a project whose state is damaged again and again.
type damagedProject struct {
	*scriptedProject
	random                    *rand.Rand
	tasks                     int
	folder, saved             string // the state, and a copy of it that is whole
	harmless, named, restored int
}

func newDamaged(t *testing.T, tasks int, killed bool) *damagedProject {
	t.Helper()
	s := newScriptedProject(t, "task task 0\n  run echo x > made.txt\n  done {\"summary\": \"made\"}\ntask *\n  learned {\"text\": \"x\", \"kind\": \"discovery\"}\n  hang\n",
		"sandbox: off\nverify: {on_red: go}\nlimits: {max_sessions: 1}\n")
	d := &damagedProject{scriptedProject: s, tasks: tasks, saved: filepath.Join(t.TempDir(), "saved")}
	var list strings.Builder
	for i := range tasks {
		fmt.Fprintf(&list, "- [ ] task %d\n", i)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "list.md"), []byte(list.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.git("add", "-A")
	s.git("commit", "-qm", "base")
	s.ralph(0, "import", "list.md")
	d.folder = s.state()
	s.ralph(5, "run") // the limit
	if killed {
		d.start().kill()
	}
	d.copy(d.folder, d.saved)
	return d
}

// A hanging is a run whose session does nothing more.
type hanging struct {
	*exec.Cmd
	out *bytes.Buffer
}

func (d *damagedProject) start() hanging {
	cmd, said := d.command("run"), &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	var out []byte
	d.t.Cleanup(func() {
		if d.t.Failed() {
			d.t.Logf("the run: %s\nstatus: %s", said, out)
		}
	})
	waitFor(d.t, func() (working bool) {
		out, _ = d.command("status").CombinedOutput() // its output says whether it has failed
		return strings.Contains(string(out), "working")
	})
	return hanging{cmd, said}
}

func (h hanging) kill() {
	_ = h.Process.Signal(syscall.SIGKILL) // or it has ended by itself
	_ = h.Wait()
}

// copy copies a folder with the times of its files.
func (d *damagedProject) copy(from, to string) {
	d.t.Helper()
	if err := os.RemoveAll(to); err != nil {
		d.t.Fatal(err)
	}
	if out, err := exec.CommandContext(d.t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
}

// hurt damages one to three files, and says how.
func (d *damagedProject) hurt() (what []string) {
	var files []string
	err := filepath.WalkDir(d.folder, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && !strings.Contains(path, "/backups/") && !strings.Contains(path, "/workspaces/") {
			files = append(files, path)
			if name := e.Name(); name == "ralph.db" || name == "ralph.db-wal" {
				files = append(files, path, path, path, path)
			}
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	for range 1 + d.random.IntN(2)*d.random.IntN(3) {
		path := files[d.random.IntN(len(files))]
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it was removed
		}
		name := strings.TrimPrefix(path, d.folder)
		switch way := d.random.IntN(6); {
		case way == 0 || len(text) == 0:
			what = append(what, "removed "+name)
			err = os.Remove(path)
		case way == 1:
			at := d.random.IntN(len(text))
			what = append(what, fmt.Sprintf("cut %s at %d", name, at))
			err = os.Truncate(path, int64(at))
		case way == 2 && len(text) >= 4096:
			at := d.random.IntN(len(text)/4096) * 4096
			what = append(what, fmt.Sprintf("zeroed %s at %d", name, at))
			err = d.write(path, make([]byte, 4096), int64(at))
		default:
			at, bit := d.random.IntN(len(text)), byte(1)<<d.random.IntN(8)
			what = append(what, fmt.Sprintf("flipped %s at %d, %d", name, at, bit))
			err = d.write(path, []byte{text[at] ^ bit}, int64(at))
		}
		if err != nil {
			d.t.Fatal(err)
		}
	}
	return what
}

func (d *damagedProject) write(path string, part []byte, at int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(part, at)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// try runs a command.
func (d *damagedProject) try(args ...string) (status int, out string) {
	cmd := d.command(args...)
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		d.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// listed counts the tasks that are listed; -1 if the command fails.
func (d *damagedProject) listed() (n int, out string) {
	status, out := d.try("task", "list", "--all", "--json")
	var tasks []struct{}
	if begin := strings.IndexByte(out, '['); status == 0 && begin >= 0 && json.Unmarshal([]byte(out[begin:]), &tasks) == nil {
		return len(tasks), out
	}
	if status == 0 {
		return 0, out
	}
	return -1, out
}

// Remedies that an error names.
var (
	remedyRestore = regexp.MustCompile("`ralph db restore ([^`]*/backups/[^`]*)`")
	remedyRemove  = regexp.MustCompile(`(\S+) is not as ralph wrote it: remove it`)
	remedyNote    = regexp.MustCompile(`restore|remove|\.mark|init|RALPH_STATE_DIR`)
)

func (d *damagedProject) once(name string, live bool) {
	t := d.t
	t.Helper()
	d.copy(d.saved, d.folder)
	var run hanging
	if live {
		run = d.start()
	}
	what := d.hurt()
	fail := func(format string, args ...any) {
		t.Errorf("%s: %s: %s", name, strings.Join(what, ", "), fmt.Sprintf(format, args...))
	}
	count := func() (int, string) {
		n, out := d.listed()
		if n >= 0 && n != d.tasks {
			fail("%d of %d tasks are listed, with status 0: %.300s", n, d.tasks, out)
		}
		return n, out
	}
	n, out := count()
	commands := [][]string{{"status"}, {"db", "check"}, {"doctor"}}
	thorough := d.random.IntN(4) == 0 // the others take ten times as long
	for _, args := range commands[d.random.IntN(2):] {
		if args[0] == "doctor" && !thorough {
			continue
		}
		status, said := d.try(args...)
		unread := args[0] == "status" && strings.Contains(out, "a value in the database") // of what it does not show
		if n < 0 && status == 0 && !live && !unread {
			fail("ralph %s ends with 0: %.300s\nand the list with: %s", args[0], said, out)
		}
	}
	if live {
		run.kill()
		n, out = count()
	}
	if n < 0 {
		d.named++
		d.mend(out, fail)
		return
	}
	if !thorough {
		d.harmless++
		return
	}
	status, said := d.try("run", "1") // which is completed
	if n, _ := d.listed(); n != d.tasks {
		if n >= 0 || status == 0 {
			fail("after a run that ended with %d, %d tasks are listed", status, n)
		}
		d.named++
		d.mend(said, fail)
		return
	}
	d.harmless++
}

// mend follows the remedy of an error.
func (d *damagedProject) mend(out string, fail func(string, ...any)) {
	said := out
	for range 4 {
		if !remedyNote.MatchString(out) {
			fail("it does not say what to do: %s", out)
			return
		}
		if m := remedyRemove.FindStringSubmatch(out); m != nil {
			if err := os.Remove(m[1]); err != nil && !errors.Is(err, fs.ErrNotExist) { // the first of two remedies
				d.t.Fatal(err)
			}
		}
		if m := remedyRestore.FindStringSubmatch(out); m != nil {
			d.restored++
			_, out = d.try("db", "restore", m[1])
		}
		n, listed := d.listed()
		if n == d.tasks {
			return
		}
		out += listed
	}
	fail("what it says does not help: %s\nthen: %s", said, out)
}
