package proc

import (
	"context"
	"os"
	"os/exec"
)

// Foreground runs an interactive program, such as an editor, on this terminal, and waits for it to
// end. It is neither supervised nor limited.
func Foreground(ctx context.Context, argv, env []string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
