package worktree

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// Resolving a name (a ref, a commit's tree, a folder in it) is the most frequent question. One git process answers it,
// and stays alive between questions.

// idleNames is how long an idle git stays alive.
const idleNames = time.Second

// names is a "git cat-file --batch-check".
type names struct {
	mu     sync.Mutex
	cmd    *exec.Cmd // nil if none runs
	in     *os.File
	out    *os.File
	answer *bufio.Reader
	idle   *time.Timer
}

// resolve returns the id of the named object; "" if there is none.
func (t *Tree) resolve(ctx context.Context, name string) (id string, err error) {
	if strings.ContainsAny(name, "\n\x00") {
		return t.resolveAlone(ctx, name)
	}
	said, err := t.names.ask(ctx, t, name)
	if err != nil { // it was killed, or could not start: another git reports the error
		return t.resolveAlone(ctx, name)
	}
	if fields := strings.Fields(said); len(fields) == 3 && objectID().MatchString(fields[0]) { // with its type and size
		return fields[0], nil
	}
	return "", t.Intact() // a removed repository has no objects either
}

// resolveAlone is resolve by a separate git.
func (t *Tree) resolveAlone(ctx context.Context, name string) (string, error) {
	out, err := t.run(ctx, nil, "rev-parse", "--verify", "--quiet", name)
	if complains(err) && ctx.Err() == nil {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}

// ask asks for a name, and repeats the question once if git was killed.
func (n *names) ask(ctx context.Context, t *Tree, name string) (said string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range 2 {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if said, err = n.once(ctx, t, name); err == nil {
			n.idle.Reset(idleNames)
			return said, nil
		}
		n.end()
	}
	return "", err
}

func (n *names) once(ctx context.Context, t *Tree, name string) (string, error) {
	if n.cmd == nil {
		if err := n.start(t); err != nil {
			return "", err
		}
	}
	n.idle.Stop()
	if err := n.out.SetReadDeadline(time.Now().Add(gitLimit)); err != nil {
		return "", err
	}
	defer context.AfterFunc(ctx, func() { _ = n.out.SetReadDeadline(time.Now()) })()
	if _, err := n.in.WriteString(name + "\n"); err != nil {
		return "", err
	}
	return n.answer.ReadString('\n')
}

// start starts the git. It outlives the question, until n.end or the end of this process.
func (n *names) start(t *Tree) error {
	stdin, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		return errors.Join(err, in.Close())
	}
	defer stdout.Close()
	cmd := exec.CommandContext(context.Background(), "git", append(slices.Clip(quiet), "cat-file", "--batch-check")...)
	cmd.Dir, cmd.Env = t.root, slices.Concat(inherited.of(os.Environ()), quietEnv, t.here())
	cmd.Stdin, cmd.Stdout = stdin, stdout
	asGroup(cmd)
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("git cat-file: %w", err), in.Close(), out.Close())
	}
	n.cmd, n.in, n.out, n.answer = cmd, in, out, bufio.NewReader(out)
	n.idle = time.AfterFunc(idleNames, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.cmd == cmd {
			n.end()
		}
	})
	return nil
}

// end ends the git process, which may be stopped, or wait for something that a session has put in the place of a file.
func (n *names) end() {
	if n.cmd == nil {
		return
	}
	n.idle.Stop()
	_, _ = n.in.Close(), n.out.Close()
	_ = n.cmd.Cancel() // all answers were read
	_ = n.cmd.Wait()
	n.cmd = nil
}
