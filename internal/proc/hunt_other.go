//go:build !linux

package proc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// adoptsOrphans means that there is no subreaper here.
const adoptsOrphans = false

// A hunt kills the command's process group, because there is no subreaper.
type hunt struct{ group int }

func newHunt(leader int, _ string) *hunt { return &hunt{leader} }

// interrupt cannot distinguish a wrapper from the command here.
func (h *hunt) interrupt(bool) bool { return false }

func (*hunt) endedByItself() {}

func (h *hunt) strike() error {
	if err := syscall.Kill(-h.group, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process group %d: %w", h.group, err)
	}
	return nil
}

func (h *hunt) leftovers() []Leftover { return nil }

func (h *hunt) survivors(cause error) string {
	text := fmt.Sprintf("not all processes of group %d could be killed", h.group)
	if cause != nil {
		text += ": " + cause.Error()
	}
	return text
}

// obey is not called here: no order is sent.
func (s *supervisor) obey(order) {}

// Sweep is not supported here; the error is [errors.ErrUnsupported].
func Sweep(string) ([]Leftover, error) {
	return nil, fmt.Errorf("find processes by their environment: %w", errors.ErrUnsupported)
}

func becomeSubreaper() error { return nil }

func stopped(int) bool { return false }

func (p *Process) rescue() []Leftover { return nil }

func supervisorAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func executable() (string, error) { return os.Executable() }
