// Package check verifies agents' claims. It runs the verification commands, compares their results with those before
// the work, and finds changed files that belong to people.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/proc"
	"ralph/internal/testresult"
	"ralph/loop/workspace"
	"ralph/store"
)

// Rules configure how a done is checked.
type Rules struct {
	Commands    []string                  // the project's; features and tasks add their own
	Hidden      []ralph.Hidden            // the project's checks that no session sees; tasks add their own
	HiddenFiles string                    // folder of the files that these need, outside of the project; "" for none
	Timeout     time.Duration             // per command
	Env         []string                  // the environment of the commands
	Through     func(io.Reader) io.Reader // masks secrets in their output; nil masks nothing
	Retry       bool                      // run a failed command once more on the same commit
	Strict      bool                      // refuse tests that failed before the task began, too
	JUnit       []string                  // globs of the files into which commands write JUnit XML, relative to the root
	Protect     []string                  // globs of the files that a session must not change, relative to the root
	Proof       string                    // [ProofAuto] and so on; "" is never
	Trial       string                    // [TrialAuto] and so on; "" is never
	Tests       []string                  // globs of test files, "auto" for the conventions
	Guard       Guard                     // further files that people decide on
	Enter       proc.Enter                // runs the commands in a sandbox; nil is no sandbox
	Withheld    []ralph.Cause             // withheld from them by the sandbox, though the machine may have it
}

// The values of [Rules.Proof]: when the tests of a change also run on the former code.
const (
	ProofAuto    = "auto"    // after the merge, if a check takes less than a minute
	ProofAlways  = "always"  // after the merge
	ProofRequire = "require" // before it is merged: a done without a proof needs a reason
	ProofOff     = "off"
)

// The values of [Rules.Trial]: when the target's tests are run with other expectations before a change is merged.
const (
	TrialAuto   = "auto"   // where a check takes less than a minute, and where the change alters gate files
	TrialAlways = "always" // for every change
	TrialOff    = "off"
)

// verifyTail is the number of bytes of a failed command's output that are quoted.
const verifyTail = 4 << 10

// maxOutput is the number of bytes of a command's output that are kept from its beginning, and from
// its end.
const maxOutput = 10 << 20

// Commands are the commands that check a task's done.
type Commands struct {
	Shared []string // the project's and the feature's
	Own    []string // the task's, without those
	Hidden []ralph.Hidden
}

// All returns all that a session may see.
func (c Commands) All() []string { return slices.Concat(c.Shared, c.Own) }

// Of returns the commands that check a task's done, each once.
func (r Rules) Of(tx *store.Tx, t ralph.Task) (c Commands, err error) {
	c.Shared = Once(nil, r.Commands)
	if t.Feature != "" {
		f, err := tx.Feature(t.Feature)
		if err != nil {
			return c, err
		}
		c.Shared = Once(c.Shared, f.Verify)
	}
	// The baseline never excuses a task's own command, even if the project has it too.
	c.Shared = slices.DeleteFunc(c.Shared, func(s string) bool { return slices.Contains(t.Verify, s) })
	c.Own, c.Hidden = Once(nil, t.Verify), slices.Concat(r.Hidden, t.Hidden)
	return c, nil
}

// Once appends the strings of more that list lacks.
func Once(list, more []string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// A Round configures one run of the verification. Its processes are marked
// as the session's, and its output goes into a log file.
type Round struct {
	Dir     string
	Session string
	Made    string   // folder with the commands' files of Dir; "" is Dir
	Env     []string // variables of the workspace, in addition to the rules'
	Log     string
	copied  []ralph.Copied       // folders of the person's in it
	at      *workspace.Workspace // is kept from filling the disk; nil for none
	fixed   []string             // files below Dir that the commands cannot change, where there is a sandbox
	Between func()               // called after each command; nil for none
	Slow    func(command string) // called with a command that runs longer than a second; may be nil
}

// slow is the time after which people see the running command.
const slow = time.Second

// Run runs every command, so that the agent sees all failures at once. Their output goes
// into the round's log, up to its limit. No process of a command survives it. Commands
// that ctx stopped count as failed.
func (r Rules) Run(ctx context.Context, round Round, commands []string) (results []Outcome, err error) {
	log, err := os.OpenFile(round.Log, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of the verification: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if round.at != nil {
		whole := ctx
		var ended func() bool
		ctx, ended = watched(ctx, round.at)
		defer func() {
			if ended() || workspace.Full(round.at.Dir) {
				err = errors.Join(err, round.at.Shed(context.WithoutCancel(whole)))
			}
		}()
	}
	for _, command := range commands {
		result, err := r.one(ctx, round, command, log)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
		if round.Between != nil {
			round.Between()
		}
	}
	return results, nil
}

// one runs one command.
func (r Rules) one(ctx context.Context, round Round, command string, log *os.File) (Outcome, error) {
	if _, err := fmt.Fprintf(log, "$ %s\n", command); err != nil {
		return Outcome{}, fmt.Errorf("log of the verification: %w", err)
	}
	begin, err := log.Seek(0, 2)
	if err != nil {
		return Outcome{}, err
	}
	run, report := named(command, round.Dir)
	if report != "" {
		r.JUnit = Once([]string{report}, r.JUnit)
	}
	before, err := r.reports(cmp.Or(round.Made, round.Dir))
	if err != nil {
		return Outcome{}, err
	}
	limited, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	started := time.Now()
	whole := &bounded{to: log, left: maxOutput}
	marker := workspace.Marker(round.Session)
	spec := proc.Spec{
		Args: []string{"/bin/sh", "-c", run}, Dir: round.Dir,
		Marker: marker, Env: proc.Joined(r.Env, round.Env, []string{marker}), Through: r.Through, Fixed: round.fixed,
	}
	leave, err := r.Enter.Enter(&spec)
	if err != nil {
		return Outcome{}, err
	}
	if round.Slow != nil {
		told := make(chan struct{})
		late := time.AfterFunc(slow, func() { defer close(told); round.Slow(command) })
		defer func() {
			if !late.Stop() {
				<-told
			}
		}()
	}
	result, err := proc.Run(limited, spec, verifyTail, whole)
	err = errors.Join(err, whole.finish())
	leave()
	check := ralph.Check{
		Command: command, Exit: result.Exit.Code, Tail: result.Output, Copied: round.copied,
		Seconds: time.Since(started).Round(time.Millisecond).Seconds(),
	}
	if why := r.unended(ctx, limited, result, err); why != "" {
		check.Exit, check.Error = -1, why
	}
	check.Passed = check.Exit == 0
	if check.Exit == NoProgram {
		check.Error = missing(check.Tail)
	}
	for _, l := range result.Exit.Leftovers {
		if _, err := fmt.Fprintf(log, "killed a process that it left running: %d %s\n", l.Pid, l.Command); err != nil {
			return Outcome{}, err
		}
	}
	tests, err := r.tests(cmp.Or(round.Made, round.Dir), log, begin, whole.lost > 0, before)
	if err != nil {
		return Outcome{}, fmt.Errorf("tests of %s: %w", command, err)
	}
	var said *testresult.Results
	if tests != nil {
		check.Tail, err = readable(log, begin, check.Tail)
	} else {
		said, err = output(log, begin)
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("output of %s: %w", command, err)
	}
	if !check.Passed {
		if check.Cause, err = r.cause(log, begin, check.Tail); err != nil {
			return Outcome{}, fmt.Errorf("output of %s: %w", command, err)
		}
	}
	_, err = fmt.Fprintf(log, "\n→ exit %d after %.1f s %s\n\n", check.Exit, check.Seconds, check.Error)
	return Outcome{Check: check, Tests: tests, Text: said}, err
}

// causeHead is the number of bytes from the beginning of a failed command's output that are
// searched for a cause, besides its end.
const causeHead = 64 << 10

// cause returns the cause of a failed command if the sandbox is the reason.
func (r Rules) cause(log *os.File, begin int64, tail string) (ralph.Cause, error) {
	if len(r.Withheld) == 0 {
		return "", nil
	}
	head, err := io.ReadAll(io.NewSectionReader(log, begin, causeHead))
	cause := ralph.CauseOf(string(head) + "\n" + tail)
	if !slices.Contains(r.Withheld, cause) {
		cause = ""
	}
	return cause, err
}

// unended returns why a command did not end by itself; "" if it did. Limited is ctx with the command's time limit.
func (r Rules) unended(ctx, limited context.Context, result proc.Result, err error) string {
	switch {
	case errors.Is(context.Cause(ctx), errFilled):
		return errFilled.Error()
	case ctx.Err() != nil:
		return "was stopped with the run"
	case limited.Err() != nil:
		return fmt.Sprintf("took longer than %s", r.Timeout)
	case err != nil:
		return err.Error()
	case result.Exit.Signal != "":
		return "was ended by signal " + result.Exit.Signal
	}
	return ""
}

// output returns the test counts in a command's printed output.
func output(log *os.File, begin int64) (*testresult.Results, error) {
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	return testresult.ParseText(io.NewSectionReader(log, begin, end-begin))
}

// readable returns the end of a command's output, which starts at begin in the log.
// Output of `go test -json` is converted to plain text.
func readable(log *os.File, begin int64, tail string) (string, error) {
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	text, ok, err := testresult.Readable(io.NewSectionReader(log, begin, end-begin), verifyTail)
	if err != nil || !ok {
		return tail, err
	}
	return text, nil
}

// NoProgram is the exit status of a shell that does not find a program.
const NoProgram = 127

// missing names the missing program, according to the shell's last message about it.
func missing(tail string) string {
	lines := strings.Split(strings.TrimSpace(tail), "\n")
	said := ""
	for _, line := range slices.Backward(lines) {
		if strings.Contains(line, "not found") || strings.Contains(line, "No such file") {
			said = " (" + strings.TrimSpace(line) + ")"
			break
		}
	}
	return "exits 127: a program that it needs is not installed, or not in PATH" + said
}

// bounded writes the beginning of an output to a file as it arrives, and its end when it is
// complete.
type bounded struct {
	to   *os.File
	left int64  // bytes of the beginning
	end  []byte // at most twice the size that is kept
	lost int64  // bytes between the two
}

// Write keeps as many bytes as there is room for.
func (b *bounded) Write(p []byte) (int, error) {
	head := p[:min(int64(len(p)), b.left)]
	n, err := b.to.Write(head)
	if b.left -= int64(n); err != nil {
		return n, err
	}
	b.end = append(b.end, p[len(head):]...)
	if len(b.end) > 2*maxOutput {
		b.drop()
	}
	return len(p), nil
}

// drop leaves out all but the size that is kept of the end.
func (b *bounded) drop() {
	over := max(len(b.end)-maxOutput, 0)
	b.lost += int64(over)
	b.end = append(b.end[:0], b.end[over:]...)
}

// finish writes the end.
func (b *bounded) finish() (err error) {
	if b.drop(); b.lost > 0 {
		_, err = fmt.Fprintf(b.to, "\n[… %d bytes left out …]\n", b.lost)
	}
	if err == nil {
		_, err = b.to.Write(b.end)
	}
	return err
}
