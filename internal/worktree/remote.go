package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"ralph/internal/lazy"
)

// remoteLimit is the time limit of one command against a remote.
const remoteLimit = 5 * time.Minute

// A Remote is a repository elsewhere. Git talks to it from ralph's own bare repository, which borrows the project's
// objects, in ralph's environment. It uses the user's keys and credentials, and of the project's configuration only the
// address.
type Remote struct {
	dir  string
	url  string
	env  []string
	have string
}

// repositoryEnv are the variables that select a repository.
var repositoryEnv = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
	"GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX",
}

// Remote opens a remote by name or by address. dir is ralph's own repository for it; env is git's
// environment.
func (t *Tree) Remote(ctx context.Context, name, dir string, env []string) (*Remote, error) {
	r := &Remote{dir: dir, url: name}
	out, err := t.run(ctx, nil, "remote", "get-url", "--push", name)
	if err == nil {
		r.url = strings.TrimSpace(string(out))
	} else if !complains(err) || ctx.Err() != nil {
		return nil, err
	}
	if at := filepath.Join(t.Top(), r.url); !strings.Contains(r.url, ":") && !filepath.IsAbs(r.url) && exists(at) {
		r.url = at
	}
	r.env = append(passedOn(env), "GIT_DIR="+dir, "GIT_OBJECT_DIRECTORY="+filepath.Join(t.common, "objects"))
	r.env = append(r.env, sshQuiet(env)...)
	if shallow := filepath.Join(t.common, "shallow"); exists(shallow) {
		r.env = append(r.env, "GIT_SHALLOW_FILE="+shallow)
	}
	if r.have = t.At(ctx); exists(filepath.Join(dir, "HEAD")) {
		return r, nil
	}
	format := "sha1"
	if t.longIDs {
		format = "sha256"
	}
	_, err = runWithin(ctx, gitLimit, filepath.Dir(dir), nil, "",
		"init", "--quiet", "--bare", "--object-format="+format, dir)
	return r, err
}

// run runs git against the remote. The error includes git's error output.
func (r *Remote) run(ctx context.Context, args ...string) ([]byte, error) {
	own := []string{"-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "maintenance.auto=false"}
	return runExactly(ctx, remoteLimit, r.dir, r.env, "", append(own, args...))
}

// complete fetches files of a commit that are missing in a partial clone, as the person's own git
// would for a checkout.
func (t *Tree) complete(ctx context.Context, commit string) error {
	list, err := t.configured(ctx, promisor())
	if err != nil || len(list) == 0 {
		return err
	}
	name := strings.TrimSuffix(strings.TrimPrefix(list[0].key, "remote."), ".promisor")
	env := slices.Concat(passedOn(os.Environ()), sshQuiet(os.Environ()), t.here())
	for lacks := ""; ; {
		out, err := t.run(ctx, nil, "rev-list", "--objects", "--missing=print", "--no-walk", commit)
		if err != nil {
			return err
		}
		var missing strings.Builder
		for line := range strings.Lines(string(out)) {
			if id, ok := strings.CutPrefix(line, "?"); ok {
				missing.WriteString(id)
			}
		}
		if missing.Len() == 0 {
			return nil
		}
		if missing.String() == lacks {
			return fmt.Errorf("remote %s does not have all files of %.10s, which this partial clone lacks", name, commit)
		}
		lacks = missing.String() // all files below a missing folder are missing
		if _, err := runExactly(ctx, remoteLimit, t.root, env, lacks, []string{
			"-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
			"-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head",
			"--no-recurse-submodules", "--filter=blob:none", "--stdin", name,
		}); err != nil {
			return fmt.Errorf("fetch objects that this partial clone lacks: %w", err)
		}
	}
}

// passedOn returns an environment for git with a remote, without variables that select another repository.
func passedOn(env []string) (list []string) {
	for _, entry := range env {
		if key, _, _ := strings.Cut(entry, "="); !slices.Contains(repositoryEnv, key) {
			list = append(list, entry)
		}
	}
	return append(list, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0")
}

// sshQuiet makes ssh ask no questions, unless the user has configured the ssh command.
func sshQuiet(env []string) []string {
	if slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "GIT_SSH") }) {
		return nil
	}
	return []string{"GIT_SSH_COMMAND=ssh -o BatchMode=yes"}
}

// Fetch fetches a branch of the remote into the repository and returns its commit; "" if the remote
// has no such branch. No ref of the repository changes.
func (r *Remote) Fetch(ctx context.Context, branch string) (string, error) {
	return r.FetchRef(ctx, "refs/heads/"+branch)
}

var fetches atomic.Int64 // of this process

// fetchTries is how often a fetch is tried while another process fetches the same branch: git refuses one of the two.
const fetchTries = 10

// FetchRef is [Remote.Fetch] of any ref of the remote, by its full name.
func (r *Remote) FetchRef(ctx context.Context, ref string) (string, error) {
	// Each ref has its own local ref, since several may be fetched at once, and a change twice at once. A branch keeps
	// its local ref, so that its objects are not sent again.
	branch := strings.HasPrefix(ref, "refs/heads/")
	fetched, have := "refs/ralph/fetched/"+ref, "refs/ralph/have"
	if !branch {
		fetched = fmt.Sprintf("refs/ralph/fetched/%d-%d/%s", os.Getpid(), fetches.Add(1), ref)
	}
	if r.have != "" { // so that existing objects are not sent again
		if _, err := r.run(ctx, "update-ref", have, r.have); err != nil {
			return "", err
		}
	}
	var err error
	for range fetchTries {
		_, err = r.run(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
			"--no-auto-maintenance", r.url, "+"+ref+":"+fetched)
		if err == nil || !moved().MatchString(err.Error()) {
			break
		}
	}
	if err != nil && strings.Contains(err.Error(), "couldn't find remote ref") {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	out, err := r.run(ctx, "rev-parse", "--verify", "--quiet", fetched)
	if err == nil && !branch { // a change is fetched only once
		_, err = r.run(ctx, "update-ref", "-d", fetched)
	}
	return strings.TrimSpace(string(out)), err
}

// A Pushed is the result of a push that reached the remote.
type Pushed struct {
	Stale   bool   // the branch was not at the expected commit, and was not changed
	Refused string // the remote's own reason for rejecting the push; "" if it accepted
}

// moved matches git's message about a ref that another push or fetch has just moved.
var moved = lazy.Regexp(`cannot lock ref '[^']*': (is at [0-9a-f]+ but expected|reference already exists)`)

// Push moves a branch of the remote from one commit to another; from "" creates it. If the branch
// is elsewhere, nothing changes.
func (r *Remote) Push(ctx context.Context, branch, from, to string) (p Pushed, err error) {
	ref := "refs/heads/" + branch
	out, err := r.run(ctx, "push", "--porcelain", "--atomic", "--no-verify", "--no-follow-tags", "--recurse-submodules=no",
		"--force-with-lease="+ref+":"+from, r.url, to+":"+ref)
	for line := range strings.Lines(string(out)) {
		f := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		if len(f) < 3 || f[0] != "!" {
			continue
		}
		if strings.Contains(f[2], "remote rejected") {
			_, why, _ := strings.Cut(f[2], "(")
			said := ""
			if err != nil {
				_, said, _ = strings.Cut(err.Error(), "remote: ")
				said, _, _ = strings.Cut(said, " error: failed to push")
			}
			if moved().MatchString(said) { // another push was faster
				return Pushed{Stale: true}, nil
			}
			return Pushed{Refused: strings.TrimSpace(strings.TrimSuffix(why, ")") + " " + said)}, nil
		}
		return Pushed{Stale: true}, nil
	}
	return p, err
}

// HandOver sets a ref of the remote that only ralph moves, such as a change's ref, to a commit.
func (r *Remote) HandOver(ctx context.Context, ref, commit string) error {
	_, err := r.run(ctx, "push", "--quiet", "--no-verify", "--no-follow-tags", "--recurse-submodules=no",
		r.url, "+"+commit+":"+ref)
	return err
}

// Drop deletes refs of the remote. Missing refs do not matter.
func (r *Remote) Drop(ctx context.Context, refs []string) error {
	out, err := r.run(ctx, append([]string{"ls-remote", "--quiet", r.url}, refs...)...)
	args := []string{"push", "--quiet", "--no-verify", r.url}
	asked := len(args)
	for line := range strings.Lines(string(out)) {
		if _, ref, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && slices.Contains(refs, ref) {
			args = append(args, ":"+ref)
		}
	}
	if err != nil || len(args) == asked {
		return err
	}
	_, err = r.run(ctx, args...)
	return err
}

// Whole returns the tree of a commit for the whole repository. The project may be a folder of it.
func (t *Tree) Whole(ctx context.Context, commit string) (string, error) {
	return t.treeOf(ctx, commit, "")
}

// RemoteAddress returns the address that a repository pushes to, for a remote's name.
func RemoteAddress(ctx context.Context, root, name string) (string, error) {
	out, err := runWithin(ctx, gitLimit, root, nil, "", "remote", "get-url", "--push", name)
	if err != nil {
		return "", fmt.Errorf("there is no remote %s: `git remote add %s ADDRESS` adds it, or name another one in merge.push",
			name, name)
	}
	return strings.TrimSpace(string(out)), nil
}
