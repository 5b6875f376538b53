package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/uuid"

	"ralph/internal/proc"
	"ralph/internal/text"
)

const (
	commandGrace  = time.Second // between a command's interrupt and its end
	commandOutput = 2 << 10     // bytes kept of a command's output
)

// runCommand runs the receiver's command with the notification as JSON on standard input. Nothing
// that it started is alive afterwards.
func (l *line) runCommand(ctx context.Context, note Notification) (err error) {
	if l.to.Refusal != nil {
		if err := l.to.Refusal(ctx); err != nil {
			return err
		}
	}
	body, err := json.Marshal(note)
	if err != nil {
		return backoff.Permanent(err)
	}
	// A file, not a pipe: a command need not read its input.
	in, err := os.CreateTemp("", "ralph-notification-*.json")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close(), os.Remove(in.Name())) }()
	if _, err := in.Write(append(body, '\n')); err != nil {
		return err
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	marker := "RALPH_DELIVERY_ID=" + uuid.NewString()
	result, err := proc.Run(ctx, proc.Spec{
		Args: l.to.Command, Dir: l.to.Dir, Stdin: in, KillGrace: commandGrace, Marker: marker,
		Env: append(slices.Clone(l.to.Env), "RALPH_EVENT="+string(note.Type), marker),
	}, commandOutput, nil)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return backoff.Permanent(err)
	case result.Stopped:
		return context.Cause(ctx)
	case err != nil:
		return err
	case result.Exit.Signal != "":
		return fmt.Errorf("was ended by %s", result.Exit.Signal)
	case result.Exit.Code != 0:
		err := fmt.Errorf("exited with %d", result.Exit.Code)
		if said := text.Short(result.Output, maxShown); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return err
	}
	return nil
}
