package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// drainTime is the time for reading the output after the command has ended.
const drainTime = 5 * time.Second

// A Result is the outcome of a command that was [Run].
type Result struct {
	// Output is standard output and standard error in the order of writing: all of it, or its
	// beginning and end, separated by a line that says how much was left out.
	Output  string
	Cut     int64 // bytes missing from Output
	Exit    Exit
	Stopped bool // ctx ended before the command did
}

// Run runs a command, such as a verification, to its end. When ctx ends, its process group is
// interrupted, and killed after spec.KillGrace. maxOutput is the size of Result.Output in bytes,
// not counting the line about omitted text; all output also goes to whole, unless that is nil.
// Spec.Stdout and Spec.Stderr are not used.
//
// A command that fails, or that ctx ends, is not an error. Errors are those of [Start], of
// [Process.Wait] and of writing to whole; the known parts of the Result are valid in any
// case.
func Run(ctx context.Context, spec Spec, maxOutput int, whole io.Writer) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return Result{}, fmt.Errorf("run %v: %w", spec.Args, err)
	}
	defer r.Close()
	defer w.Close()
	spec.Stdout, spec.Stderr = w, w
	p, err := Start(spec)
	if err != nil {
		return Result{}, err
	}
	// From here on only the command's processes hold it open.
	closed := w.Close()
	out := newClip(maxOutput)
	read := make(chan error, 1)
	var output io.Reader = r
	if spec.Through != nil {
		output = spec.Through(r)
	}
	go func() { read <- drain(output, out, whole) }()

	var result Result
	result.Exit, result.Stopped, err = waitOrStop(ctx, p)
	// A process that could not be killed may keep the pipe open for ever, and so may one that is not the
	// command's: the command has sent it the pipe, or it has opened the pipe by /proc.
	limited := r.SetReadDeadline(time.Now().Add(drainTime))
	err = errors.Join(err, limited, <-read, closed)
	result.Output, result.Cut = out.text()
	return result, err
}

// waitOrStop waits for p and interrupts it when ctx ends.
func waitOrStop(ctx context.Context, p *Process) (exit Exit, stopped bool, err error) {
	stop := make(chan error, 1)
	unhook := context.AfterFunc(ctx, func() { stop <- p.InterruptGroup() })
	exit, err = p.Wait()
	if unhook() {
		return exit, false, err
	}
	interrupted := <-stop
	if errors.Is(interrupted, os.ErrProcessDone) {
		return exit, false, err
	}
	return exit, true, errors.Join(err, interrupted)
}

// drain reads everything, so that the command never blocks on its output.
func drain(r io.Reader, out *clip, whole io.Writer) error {
	if whole == nil {
		_, err := io.Copy(out, r)
		return late(err)
	}
	_, err := io.Copy(io.MultiWriter(out, whole), r)
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	_, rest := io.Copy(out, r)
	return errors.Join(fmt.Errorf("keep the output: %w", err), late(rest))
}

// late drops the deadline's error: all that the command wrote has been read.
func late(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}
