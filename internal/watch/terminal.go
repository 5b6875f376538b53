package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	tea "charm.land/bubbletea/v2"
)

// frames is the number of times a second that a changed screen is drawn.
const frames = 20

// errGone ends a screen when its terminal hangs up.
var errGone = errors.New("the terminal is gone")

// keys are a terminal's input. Bubble Tea takes its end for silence, so a terminal that has hung up ends the screen
// here.
type keys struct {
	*os.File
	end context.CancelCauseFunc
}

func (k keys) Read(p []byte) (int, error) {
	n, err := k.File.Read(p)
	if errors.Is(err, io.EOF) {
		k.end(errGone)
	}
	return n, err
}

// Run shows the screen on a terminal until the person leaves it, the terminal is gone, the process is asked to end, or
// ctx ends. It waits for actions that are still being carried out.
func Run(ctx context.Context, s Source, in, out *os.File, environ []string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	shown, end := context.WithCancelCause(ctx)
	m := New(shown, s)
	defer m.works.Wait() // after stop, so that a signal ends a wait that takes too long
	defer stop()
	last, err := tea.NewProgram(m, tea.WithContext(shown), tea.WithoutSignalHandler(), tea.WithFPS(frames),
		tea.WithInput(keys{in, end}), tea.WithOutput(out), tea.WithEnvironment(environ)).Run()
	if left, ok := last.(Model); ok {
		_, _ = left.flush() // a decision is not lost, however the screen ends
	}
	switch cause := context.Cause(shown); {
	case errors.Is(cause, errGone):
		return cause
	case cause != nil:
		return nil
	case err != nil:
		return fmt.Errorf("the terminal cannot be used: %w", err)
	}
	return nil
}
