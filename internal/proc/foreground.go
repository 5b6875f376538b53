package proc

import (
	"context"
	"io"
	"os"
	"os/exec"
)

// Foreground runs an interactive program, such as an editor, on this terminal, and waits for its
// end. The program reads from in, or from the terminal if in is nil. It is neither supervised nor
// limited.
func Foreground(ctx context.Context, argv, env []string, in io.Reader) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, os.Stdout, os.Stderr
	if in == nil {
		cmd.Stdin = os.Stdin
	}
	return cmd.Run()
}
