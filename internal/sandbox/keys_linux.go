package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// An arch is an architecture in the numbers of the kernel's audit, with its calls of the kernel's keyrings.
type arch struct {
	audit uint32
	calls []uint32 // add_key, request_key, keyctl
}

// x32 marks the calls of a second table on amd64.
const x32 = 0x40000000

// keyCalls lists the architectures of the same kernel, by Go's names. A process of any other cannot make system calls.
var keyCalls = map[string][]arch{
	"amd64": {
		{unix.AUDIT_ARCH_X86_64, []uint32{248, 249, 250, x32 | 248, x32 | 249, x32 | 250}},
		{unix.AUDIT_ARCH_I386, []uint32{286, 287, 288}},
	},
	"arm64": {
		{unix.AUDIT_ARCH_AARCH64, []uint32{217, 218, 219}}, {unix.AUDIT_ARCH_ARM, []uint32{309, 310, 311}},
	},
	"riscv64": {{unix.AUDIT_ARCH_RISCV64, []uint32{217, 218, 219}}},
	"ppc64le": {{unix.AUDIT_ARCH_PPC64LE, []uint32{269, 270, 271}}},
	"s390x":   {{unix.AUDIT_ARCH_S390X, []uint32{278, 279, 280}}, {unix.AUDIT_ARCH_S390, []uint32{278, 279, 280}}},
}

// refusesKeys reports whether commands can be kept from the kernel's keyrings on this architecture.
func refusesKeys() bool { return keyCalls[runtime.GOARCH] != nil }

// keyFilter returns the program that makes the kernel refuse the calls of its keyrings. The data that it reads
// begins with the number of the call and the architecture.
func keyFilter(archs []arch) (program []bpf.Instruction) {
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	deny := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	program = append(program, bpf.LoadAbsolute{Off: 4, Size: 4})
	for _, a := range archs {
		block := []bpf.Instruction{bpf.LoadAbsolute{Off: 0, Size: 4}}
		for _, call := range a.calls {
			block = append(block, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1}, deny)
		}
		block = append(block, allow)
		skip := bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: a.audit, SkipTrue: uint8(len(block))} //nolint:gosec // at most 14
		program = append(append(program, skip), block...)
	}
	return append(program, deny)
}

// withoutKeys gives this thread and its programs an empty session keyring, and refuses them all keyring calls: the
// keyrings hold the user's keys (Kerberos, fscrypt), and one session could leave keys there for the next one.
func withoutKeys() error {
	if !refusesKeys() {
		return nil // Cannot reports that
	}
	runtime.LockOSThread()
	// ENOSYS: the kernel has no keyrings; EPERM: a container's filter refuses them already.
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("a session keyring: %w", err)
	}
	raw, err := bpf.Assemble(keyFilter(keyCalls[runtime.GOARCH]))
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("refuse keyrings: %w", err)
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]} //nolint:gosec // a few dozen
	err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
	runtime.KeepAlive(filter)
	if err != nil {
		return fmt.Errorf("refuse keyrings: %w", err)
	}
	return nil
}
