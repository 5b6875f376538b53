package proc

import (
	"context"
	"os"
	"os/exec"
)

// Foreground runs a program that a person works with, such as an editor, on the
// terminal of this one, and waits for its end. It is the person's, not a
// session's: it is neither supervised nor limited.
func Foreground(ctx context.Context, argv, env []string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
