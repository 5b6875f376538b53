package sandbox_test

import (
	"encoding/binary"
	"fmt"
	"os/exec"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"ralph/internal/sandbox"
)

func TestCallsOfKeyringsAreRefused(t *testing.T) {
	const allow = unix.SECCOMP_RET_ALLOW
	deny := unix.SECCOMP_RET_ERRNO | int(unix.EPERM)
	for _, c := range []struct {
		goarch string
		audit  uint32
		call   uint32
		want   int
	}{
		{"amd64", unix.AUDIT_ARCH_X86_64, 248, deny},
		{"amd64", unix.AUDIT_ARCH_X86_64, 249, deny},
		{"amd64", unix.AUDIT_ARCH_X86_64, 250, deny},
		{"amd64", unix.AUDIT_ARCH_X86_64, 0x40000000 | 250, deny},
		{"amd64", unix.AUDIT_ARCH_X86_64, 286, allow},
		{"amd64", unix.AUDIT_ARCH_X86_64, 0, allow},
		{"amd64", unix.AUDIT_ARCH_I386, 288, deny},
		{"amd64", unix.AUDIT_ARCH_I386, 250, allow},
		{"amd64", unix.AUDIT_ARCH_AARCH64, 0, deny},
		{"arm64", unix.AUDIT_ARCH_AARCH64, 219, deny},
		{"arm64", unix.AUDIT_ARCH_AARCH64, 250, allow},
		{"arm64", unix.AUDIT_ARCH_ARM, 309, deny},
		{"s390x", unix.AUDIT_ARCH_S390X, 280, deny},
	} {
		vm, err := bpf.NewVM(sandbox.KeyFilter(c.goarch))
		if err != nil {
			t.Fatal(err)
		}
		data := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, c.call), c.audit) // as the VM reads it
		if got, err := vm.Run(data); err != nil || uint32(got) != uint32(c.want) {
			t.Errorf("%s: call %d of %#x: %#x, %v", c.goarch, c.call, c.audit, got, err)
		}
	}
}

// TestKeyringsAreOutOfReach adds a key to each keyring that one session could share with the next one, and reads.
func TestKeyringsAreOutOfReach(t *testing.T) {
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("skipped without perl, which makes the calls")
	}
	each(t, func(t *testing.T, m sandbox.Mechanism) {
		r := run(t, inside(t, m, t.TempDir(), fmt.Sprintf(`perl -e '
			my ($type, $name, $text) = ("user", "ralph-test", "secret");
			for my $ring (-3, -4, -5) { print syscall(%d, $type, $name, $text, 6, $ring), " $!; "; }
			print syscall(%d, $type, $name, 0, -3), " $!; ", syscall(%d, 0, -3, 0), " $!"'`,
			unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL), nil))
		const no = "-1 Operation not permitted"
		if want := no + "; " + no + "; " + no + "; " + no + "; " + no; r.Output != want {
			t.Errorf("got %q", r.Output)
		}
	})
}
