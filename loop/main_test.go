package loop_test

import (
	"os"
	"testing"

	"ralph/internal/proc"
)

// TestMain is also the supervisor of the commands that verify.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == proc.SuperviseArg {
		os.Exit(proc.Supervise())
	}
	os.Exit(m.Run())
}
