package proc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adoptsOrphans tells that becomeSubreaper works here.
const adoptsOrphans = true

// A hunt finds and kills processes, and remembers them.
type hunt struct {
	find    func() (found []process, sure bool, err error)
	sure    bool // the last look has missed nothing
	groups  []cgroup
	command int    // process id that is no leftover
	wrapper string // the name of processes that are none either; "" is none
	seen    map[identity]bool
	prey    []process
	kept    map[identity]bool // what is frozen with the command and is no leftover either
}

// newHunt hunts all descendants of this process, a supervisor, and what is in
// the command's cgroup.
func newHunt(leader int, wrapped bool, group cgroup) *hunt {
	h := &hunt{find: family, command: leader, seen: map[identity]bool{}}
	if wrapped {
		if p, err := readProcess(leader); err == nil { // it is not reaped yet, so there is none
			h.wrapper = p.name
		}
	}
	if group != "" {
		h.groups = []cgroup{group}
	}
	return h
}

// family lists the descendants of this process, parents first. It is sure of
// them if none of the processes has vanished meanwhile, perhaps after it had
// started another one.
func family() (found []process, sure bool, err error) {
	all, sure, err := processes()
	return descendants(all, os.Getpid()), sure, err
}

// look lists what there is to hunt, parents first, once each.
func (h *hunt) look() (found []process, err error) {
	if found, h.sure, err = h.find(); err != nil || len(h.groups) == 0 {
		return found, err
	}
	known := map[identity]bool{}
	for _, p := range found {
		known[p.identity] = true
	}
	for _, g := range h.groups {
		for _, p := range g.members() {
			if !known[p.identity] {
				known[p.identity] = true
				found = append(found, p)
			}
		}
	}
	return found, nil
}

// members describes processes of a command. The wrapper is the command's first
// process, and its children of the same name.
func (h *hunt) members(list []process) []Member {
	var members []Member
	wrappers := map[int]bool{}
	for _, p := range list {
		if p.dead() {
			continue
		}
		m := Member{Pid: p.pid, Parent: p.parent, Command: p.named().command, Exe: program(p.pid)}
		m.Wrapper = h.wrapper != "" && p.name == h.wrapper && (p.pid == h.command || wrappers[p.parent])
		wrappers[p.pid] = m.Wrapper
		members = append(members, m)
	}
	return members
}

// interrupt passes a wrapper by: it interrupts its command, or all of its group,
// and returns false if there is no command (yet).
func (h *hunt) interrupt(all bool) (any bool) {
	found, err := h.look()
	if err != nil {
		return false
	}
	for _, p := range found {
		if p.name == h.wrapper || p.group != h.command { // whose group it is
			continue
		}
		// If it cannot be, the grace will end all the same.
		any = p.signal(syscall.SIGINT) == nil || any
		if any && !all {
			break
		}
	}
	return any
}

// strike stops what is found, looks again until nothing new turns up, and then
// kills all of it: what is stopped can start nothing and restart nothing. The
// error says why some could not be signalled.
func (h *hunt) strike() error {
	var caught []process
	stopped := map[identity]bool{}
	for _, g := range h.groups {
		_ = g.freeze(true) // what is not held by it is stopped below
	}
	for begin := time.Now(); time.Since(begin) < patience; {
		found, err := h.look()
		if err != nil {
			return err
		}
		before := len(caught)
		for _, p := range found {
			if p.dead() || stopped[p.identity] {
				continue
			}
			stopped[p.identity] = true
			// If it cannot be stopped, it cannot be killed, which is reported below.
			_ = p.signal(syscall.SIGSTOP)
			h.note(p)
			caught = append(caught, p)
		}
		if len(caught) == before {
			break
		}
	}
	var errs []error
	for _, p := range slices.Backward(caught) { // an orphan may be woken by the kernel
		if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, fmt.Errorf("process %d: %w", p.pid, err))
		}
	}
	for _, g := range h.groups {
		errs = append(errs, g.kill())
	}
	return errors.Join(errs...)
}

// note remembers p, with its command line while there still is one.
func (h *hunt) note(p process) {
	if h.seen[p.identity] {
		return
	}
	h.seen[p.identity] = true
	h.prey = append(h.prey, p.named())
}

// leftovers lists what was hunted, the command itself excepted.
func (h *hunt) leftovers() []Leftover {
	var list []Leftover
	for _, p := range h.prey {
		if p.pid != h.command && !h.kept[p.identity] && (h.wrapper == "" || p.name != h.wrapper) {
			list = append(list, Leftover{p.pid, p.command})
		}
	}
	return list
}

// alive lists what was hunted and lives.
func (h *hunt) alive() []process {
	var list []process
	for _, p := range h.prey {
		if p.alive() {
			list = append(list, p)
		}
	}
	return list
}

// survivors says in words what could not be killed, and why.
func (h *hunt) survivors(cause error) string {
	var names []string
	for _, p := range h.alive() {
		names = append(names, p.String())
	}
	text := "not all processes could be killed"
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	if cause != nil {
		text += ": " + cause.Error()
	}
	return text
}

// becomeSubreaper makes orphaned descendants this process's children.
func becomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper of the command's orphans: %w", err)
	}
	return nil
}

// stopped tells whether a process is.
func stopped(pid int) bool {
	p, err := readProcess(pid)
	return err == nil && p.state == 'T'
}

// rescue kills all below a supervisor that does not stay awake: one of them stops
// it as often as it is woken. What cannot be killed here, it cannot kill either,
// and will say so.
func (p *Process) rescue() []Leftover {
	find := func() ([]process, bool, error) {
		all, sure, err := processes()
		return descendants(all, p.supervisor.Process.Pid), sure, err
	}
	h := &hunt{find: find, command: p.pid, seen: map[identity]bool{}}
	_ = h.strike()
	return h.leftovers()
}

// supervisorAttr is how a supervisor is started. The kernel wakes it at ralph's
// death, in case the agent has stopped it. (It also does at the end of the thread
// that has started it, which does no harm.)
func supervisorAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT}
}

// executable is this program even after its file was replaced or removed.
func executable() (string, error) { return "/proc/self/exe", nil }
