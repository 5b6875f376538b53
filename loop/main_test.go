package loop_test

import (
	"os"
	"testing"

	"ralph/internal/proc"
)

// TestMain also acts as the supervisor of verification commands.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == proc.SuperviseArg {
		os.Exit(proc.Supervise())
	}
	os.Exit(m.Run())
}
