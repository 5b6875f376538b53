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

// adoptsOrphans means that becomeSubreaper works here.
const adoptsOrphans = true

// A hunt finds and kills processes, and remembers them.
type hunt struct {
	find    func() (found []process, sure bool, err error)
	sure    bool   // the last look has missed nothing
	command int    // process id of the command, which is not a leftover
	wrapper string // name of wrapper processes, which are not leftovers either; "" for none
	seen    map[identity]bool
	prey    []process
	kept    map[identity]bool // the last Prune's: if it is killed before its end, they are not leftovers either
}

// newHunt hunts all descendants of this process, a supervisor. wrapper is the file name of the program that the leader
// has just started to execute; the process itself may still have the name of this one.
func newHunt(leader int, wrapper string) *hunt {
	const longest = 15 // length of a process's name
	return &hunt{find: family, command: leader, wrapper: wrapper[:min(len(wrapper), longest)], seen: map[identity]bool{}}
}

// family lists the descendants of this process, parents first. sure is false if a process has
// vanished meanwhile: it may have started another one before.
func family() (found []process, sure bool, err error) {
	all, sure, err := processes()
	return descendants(all, os.Getpid()), sure, err
}

// list lists the processes to hunt, each once, parents first.
func (h *hunt) list() (found []process, err error) {
	found, h.sure, err = h.find()
	return found, err
}

// members describes processes of a command. Wrappers are the command's first process and its
// children of the same name.
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

// interrupt skips a wrapper: it interrupts the command itself, or all of its group, and returns
// false if there is no command (yet).
func (h *hunt) interrupt(all bool) (any bool) {
	found, err := h.list()
	if err != nil {
		return false
	}
	for _, p := range found {
		if p.name == h.wrapper || p.group != h.command { // the wrapper's own group counts, too
			continue
		}
		// If that fails, the grace period ends anyway.
		any = p.signal(syscall.SIGINT) == nil || any
		if any && !all {
			break
		}
	}
	return any
}

// strike kills everything: it stops the processes that it finds before it kills them. The error explains why
// some could not be signalled.
func (h *hunt) strike() error {
	caught, err := h.kill(nil)
	for _, p := range caught {
		h.note(p)
	}
	return err
}

// kill stops the processes that it finds, except those to keep, until it finds no new ones. Then it kills all of
// them: a stopped process cannot start or restart another. It returns them with their command lines where
// readable.
func (h *hunt) kill(keep []int) (caught []process, err error) {
	stopped := map[identity]bool{}
	for begin := time.Now(); time.Since(begin) < patience; {
		found, err := h.list()
		if err != nil {
			return caught, err
		}
		before := len(caught)
		for _, p := range found {
			if slices.Contains(keep, p.pid) {
				h.kept[p.identity] = true
				continue
			}
			if p.dead() || stopped[p.identity] {
				continue
			}
			stopped[p.identity] = true
			// If it cannot be stopped, it cannot be killed either, which is reported below.
			_ = p.signal(syscall.SIGSTOP)
			caught = append(caught, p.named())
		}
		if len(caught) == before {
			break
		}
	}
	var errs []error
	for _, p := range slices.Backward(caught) { // the kernel may wake an orphan
		if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, fmt.Errorf("process %s cannot be killed: %w", p, err))
		}
	}
	return caught, errors.Join(errs...)
}

// note remembers p, with its command line if it can still be read.
func (h *hunt) note(p process) {
	if h.seen[p.identity] {
		return
	}
	h.seen[p.identity] = true
	h.prey = append(h.prey, p.named())
}

// leftovers lists the hunted processes without the command itself.
func (h *hunt) leftovers() []Leftover {
	var list []Leftover
	for _, p := range h.prey {
		if p.pid != h.command && !h.kept[p.identity] && (h.wrapper == "" || p.name != h.wrapper) {
			list = append(list, Leftover{p.pid, p.command})
		}
	}
	return list
}

// endedByItself drops the state kept for the command, which needs it no more.
func (h *hunt) endedByItself() { h.kept = nil }

// alive lists the hunted processes that are alive.
func (h *hunt) alive() []process {
	var list []process
	for _, p := range h.prey {
		if p.alive() {
			list = append(list, p)
		}
	}
	return list
}

// survivors describes the processes that could not be killed, and why.
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

// becomeSubreaper makes orphaned descendants children of this process.
func becomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper of the command's orphans: %w", err)
	}
	return nil
}

// stopped reports whether a process is stopped.
func stopped(pid int) bool {
	p, err := readProcess(pid)
	return err == nil && p.state == 'T'
}

// rescue kills all processes below a supervisor that one of them keeps stopping. The supervisor reports the processes
// that cannot be killed here, as it cannot kill them either.
func (p *Process) rescue() []Leftover {
	find := func() ([]process, bool, error) {
		all, sure, err := processes()
		return descendants(all, p.supervisor.Process.Pid), sure, err
	}
	h := &hunt{find: find, command: p.pid, seen: map[identity]bool{}}
	_ = h.strike()
	return h.leftovers()
}

// supervisorAttr returns the attributes of a supervisor process. The kernel wakes it when ralph
// dies, in case the agent has stopped it. The kernel also wakes it when the starting thread
// ends, which is harmless.
func supervisorAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT}
}

// executable returns this program, even if its file was replaced or removed.
func executable() (string, error) { return "/proc/self/exe", nil }
