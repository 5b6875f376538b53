package merging

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ralph"
	"ralph/internal/lazy"
	"ralph/internal/proc"
	"ralph/internal/worktree"
	"ralph/store"
)

// remoteRef returns the ref for the remote's branch as it was last fetched.
func (m *Merger) remoteRef() string { return "refs/ralph/remote/" + m.Into }

// remote returns the remote, which is accessed from ralph's own folder.
func (m *Merger) remote(ctx context.Context) (*worktree.Remote, error) {
	return m.Tree.Remote(ctx, m.Push, filepath.Join(m.State, "remote.git"), m.AfterEnv)
}

// fetch returns the commit of the remote's target branch.
func (m *Merger) fetch(ctx context.Context) (string, error) {
	remote, err := m.remote(ctx)
	if err != nil {
		return "", err
	}
	commit, err := remote.Fetch(ctx, m.Into)
	if err != nil {
		return "", m.unreachable(ctx, err)
	}
	if commit == "" {
		return "", nil
	}
	return commit, m.sawRemote(ctx, commit)
}

// sawRemote records the position of the remote's branch.
func (m *Merger) sawRemote(ctx context.Context, commit string) error {
	if err := m.Tree.SetRef(ctx, m.remoteRef(), commit); err != nil {
		return err
	}
	m.Links.remote.seen.Store(new(time.Now()))
	return nil
}

// known returns the commit of the remote's branch or, while the remote
// cannot be reached, its last known commit; "" if it has no such branch.
func (m *Merger) known(ctx context.Context) (string, error) {
	away, err := store.Read(ctx, m.Store, (*store.Tx).RemoteAway)
	if err != nil {
		return "", err
	}
	if !away {
		commit, err := m.fetched(ctx)
		if !errors.Is(err, ErrAway) {
			return commit, err
		}
	}
	commit, err := m.Tree.Ref(ctx, m.remoteRef())
	if err == nil && commit == "" {
		err = fmt.Errorf("%w, and its branch %s was never seen from here", ErrAway, m.Into)
	}
	return commit, err
}

// ErrAway means that only the remote may know the answer, and cannot be reached: ralph asks again later. It wraps
// [ralph.ErrConflict].
var ErrAway = ralph.Conflict("the remote cannot be reached")

// remoteFresh is how long a look at the remote is valid. A merge that was built on an outdated look cannot be pushed.
const remoteFresh = 5 * time.Second

// A lookout holds the time of the last look at the remote of one target, by any goroutine of this process.
type lookout struct {
	fetching sync.Mutex
	seen     atomic.Pointer[time.Time] // nil if the last look does not count any more
}

// fetched returns the commit of the remote's branch. A process runs only one fetch at once, because git refuses
// others: a caller during a fetch, which may take long, gets the last known commit.
func (m *Merger) fetched(ctx context.Context) (string, error) {
	remote := &m.Links.remote
	if !remote.fetching.TryLock() {
		if commit, err := m.Tree.Ref(ctx, m.remoteRef()); err != nil || commit != "" {
			return commit, err
		}
		remote.fetching.Lock() // no commit is known yet
	}
	defer remote.fetching.Unlock()
	return m.latest(ctx)
}

// latest returns the commit of the remote's branch. A commit that this process has just pushed or seen counts. The
// caller holds the lock for fetches.
func (m *Merger) latest(ctx context.Context) (string, error) {
	if seen := m.Links.remote.seen.Load(); seen != nil && time.Since(*seen) < remoteFresh {
		return m.Tree.Ref(ctx, m.remoteRef())
	}
	return m.fetch(ctx)
}

// Limits for waiting for a remote.
const (
	waitFirst = 10 * time.Second
	waitMost  = 10 * time.Minute
)

// unreachable schedules the next try of the remote. The error wraps [ErrAway]: the next
// look at the queue notices that it has to wait.
func (m *Merger) unreachable(ctx context.Context, why error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	m.Log.Warn("the remote cannot be reached", "remote", m.Push, "error", why)
	return errors.Join(m.Store.Tx(ctx, func(tx *store.Tx) error { return tx.WaitForRemote(waitFirst, waitMost) }),
		fmt.Errorf("%w: %w", ErrAway, why))
}

// push moves the commit point at the remote, and reports whether it did. A lost lease is not an error:
// the next look notices it. If the remote's own rules refuse the push, the queue is paused.
func (m *Merger) push(ctx context.Context, c ralph.Change) (pushed bool, err error) {
	remote, err := m.remote(ctx)
	if err != nil {
		return false, err
	}
	branch := m.Into
	if m.Branch {
		if branch, err = m.branchOf(ctx, c); err != nil {
			return false, err
		}
	}
	said, err := remote.Push(ctx, branch, c.From, c.To)
	if err != nil {
		return false, m.unreachable(ctx, err)
	}
	switch {
	case said.Stale && m.Pulls:
		return false, m.stray(ctx, c)
	case said.Stale && m.Branch:
		said.Refused = "it has a branch of that name already"
	case said.Stale:
		m.Links.remote.seen.Store(nil)
	case said.Refused == "" && !m.Branch:
		if err := m.sawRemote(ctx, c.To); err != nil {
			return false, err
		}
	}
	return said == (worktree.Pushed{}), m.Store.Tx(ctx, func(tx *store.Tx) error {
		if said.Refused != "" {
			reason := fmt.Sprintf("%s refuses %s: %s", m.Push, branch, said.Refused)
			return tx.PauseMerging(reason + m.mended(said.Refused))
		}
		return tx.ReachedRemote()
	})
}

// mended returns the configuration key that may make the remote accept a refused push.
func (m *Merger) mended(refused string) string {
	switch of := unsigned().MatchString(refused); {
	case of && !m.Sign && m.Squash:
		return " (merge.sign: true signs ralph's merges with your key)"
	case of && !m.Sign:
		return " (merge.sign: true and merge.strategy: squash sign with your key what ralph puts there)"
	case of && !m.Squash:
		return " (merge.strategy: squash leaves no commits of sessions, which are not signed)"
	case !m.Branch:
		return " (merge.mode: branch leaves a branch for each task instead)"
	}
	return ""
}

// unsigned matches remotes' messages about a commit without a signature.
var unsigned = lazy.Regexp(`(?i)\b(un)?sign(ed|atures?)\b|\bgpg\b`)

// maxAfterOutput is the maximum number of quoted bytes of a failed command's output.
const maxAfterOutput = 2000

// runAfter runs the commands configured for a verified branch, at most once: their effects, such as a pull request, are
// visible to others and cannot be undone.
func (m *Merger) runAfter(ctx context.Context, c ralph.Change, branch string) (err error) {
	if len(m.After) == 0 {
		return nil
	}
	var first bool
	if err := m.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		first, err = tx.BeginAfter(c.ID)
		return err
	}); err != nil {
		return err
	}
	if !first {
		return errors.New("ralph was killed after it had begun; it is not run a second time; check its effects")
	}
	receipt, err := os.CreateTemp(m.State, "receipt-*.md")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(receipt.Name())) }()
	text, err := m.receipt(ctx, c, branch)
	if err == nil {
		_, err = receipt.WriteString(text)
	}
	if err = errors.Join(err, receipt.Close()); err != nil {
		return err
	}
	env := append(slices.Clone(m.AfterEnv),
		"RALPH_RECEIPT="+receipt.Name(), "RALPH_BRANCH="+branch, fmt.Sprintf("RALPH_TASK=%d", c.TaskID))
	for _, command := range m.After {
		limited, cancel := context.WithTimeout(ctx, m.Timeout)
		result, err := proc.Run(limited, proc.Spec{
			Args: []string{"/bin/sh", "-c", command}, Dir: m.Tree.Top(), Env: env,
		}, maxAfterOutput, nil)
		cancel()
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", command, err)
		case result.Stopped:
			return fmt.Errorf("%s: was stopped after %s: %s", command, m.Timeout, result.Output)
		case result.Exit.Signal != "":
			return fmt.Errorf("%s: was ended by %s: %s", command, result.Exit.Signal, result.Output)
		case result.Exit.Code != 0:
			return fmt.Errorf("%s: exited with %d: %s", command, result.Exit.Code, result.Output)
		}
	}
	return nil
}

// receipt describes a task's result for readers of the branch.
func (m *Merger) receipt(ctx context.Context, c ralph.Change, branch string) (string, error) {
	message, err := m.message(ctx, c)
	if err != nil {
		return "", err
	}
	s, err := store.Read(ctx, m.Store, func(tx *store.Tx) (ralph.Session, error) { return tx.Session(c.SessionID) })
	text := message + "\nVerified:\n\n"
	for _, v := range s.Verify {
		text += fmt.Sprintf("- `%s` (%.1f s)\n", v.Command, v.Seconds)
	}
	return text + fmt.Sprintf("\nBranch %s, commit %s\n", branch, c.To), err
}
