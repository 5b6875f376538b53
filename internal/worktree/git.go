package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ralph/internal/environment"
	"ralph/internal/lazy"
)

// gitLimit is the time limit of one git command. It stops commands that hang; the largest work trees take a minute.
const gitLimit = 10 * time.Minute

// errSlow means that a git command was killed at its time limit.
var errSlow = errors.New("was killed")

// quiet has the options of every git command: the configuration must not start programs, reach the network or wait for
// input. [Tree.overrides] adds options that depend on the configuration.
var quiet = []string{
	"--no-optional-locks", "--no-pager",
	"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
	"-c", "core.alternateRefsCommand=", "-c", "core.sshCommand=false",
	"-c", "core.gitProxy=", "-c", "core.askPass=", "-c", "credential.helper=",
	"-c", "core.editor=:", "-c", "sequence.editor=:",
	"-c", "core.pager=cat", "-c", "interactive.diffFilter=", "-c", "uploadpack.packObjectsHook=",
	"-c", "commit.gpgSign=false", "-c", "tag.gpgSign=false", "-c", "log.showSignature=false", "-c", "gpg.program=false",
	"-c", "gpg.ssh.program=false", "-c", "gpg.ssh.defaultKeyCommand=", "-c", "gpg.x509.program=false",
	"-c", "init.templateDir=",
	"-c", "submodule.recurse=false", "-c", "status.submoduleSummary=false",
	"-c", "gc.auto=0", "-c", "maintenance.auto=false",
	"-c", "advice.addEmbeddedRepo=false", "-c", "advice.graftFileDeprecated=false",
	"-c", "core.quotePath=false", "-c", "core.compression=0",
	"-c", "core.bigFileThreshold=1m", "-c", "core.safecrlf=false",
}

// quietEnv does the same by the environment. It allows no transport, whatever the configuration says: a partial clone
// would fetch.
var quietEnv = []string{
	"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0",
	"GIT_ASKPASS=false", "SSH_ASKPASS=false", "GIT_EDITOR=:", "GIT_SEQUENCE_EDITOR=:",
	"GIT_PAGER=cat", "GIT_SSH_COMMAND=false", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1",
	// History is that of the commits, without replacements or grafts.
	"GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=/dev/null",
	// Index 0 is for [Tree.environment], the others are for [Tree.overrides].
	"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.untrackedCache", "GIT_CONFIG_VALUE_0=false",
}

// ErrNoGit means that there is no git program.
var ErrNoGit = errors.New("there is no git program in PATH; install git 2.38 or newer")

// exitError holds git's exit status and error output.
type exitError = exec.ExitError

// run runs git in the project's root. The error includes git's error output.
func (t *Tree) run(ctx context.Context, env []string, args ...string) ([]byte, error) {
	return t.runInput(ctx, env, "", args...)
}

// runInput is run with standard input. Git is told explicitly where the repository and its work tree are, to override
// the configuration.
func (t *Tree) runInput(ctx context.Context, env []string, input string, args ...string) ([]byte, error) {
	return runWithin(ctx, gitLimit, t.root, append(t.here(), env...), input, args...)
}

// here returns the environment that tells git where the repository and its work tree are.
func (t *Tree) here() []string { return []string{"GIT_DIR=" + t.git, "GIT_WORK_TREE=" + t.Top()} }

// stream is run with input and output that may be large; in may be nil.
func (t *Tree) stream(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	env := slices.Concat(inherited.of(os.Environ()), quietEnv, t.here())
	return stream(ctx, gitLimit, t.root, env, in, out, quietly(args))
}

// quietly adds the options of every command. A comparison shows each nested repository: no .gitmodules hides one, or
// stops git by a mistake.
func quietly(args []string) []string {
	if name := subcommand(args); name == "diff-tree" || name == "diff-index" {
		args = slices.Insert(slices.Clone(args), slices.Index(args, name)+1, "--ignore-submodules=none")
	}
	return append(slices.Clip(quiet), args...)
}

// runWithin runs git in dir with a time limit, without the programs that the environment or an
// agent's configuration would start. It returns the output even if the exit status is not 0.
func runWithin(
	ctx context.Context, limit time.Duration, dir string, env []string, input string, args ...string,
) ([]byte, error) {
	env = slices.Concat(inherited.of(os.Environ()), quietEnv, env)
	return runExactly(ctx, limit, dir, env, input, quietly(args))
}

// inherited is the part of ralph's own environment that git commands get.
var inherited passed

// passed is the part of an environment that is passed on. It is computed once: a session starts many
// git commands.
type passed struct {
	mu    sync.Mutex
	outer []string
	env   []string
}

// of returns the passed part of outer, without secrets: agents can read git's environment.
func (p *passed) of(outer []string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.env == nil || !slices.Equal(outer, p.outer) {
		p.outer = outer
		p.env = slices.DeleteFunc(environment.Of(outer, nil, nil),
			func(e string) bool { return strings.HasPrefix(e, "GIT_") })
	}
	return p.env
}

// runExactly runs git with exactly these arguments. It returns the output even if the exit status is not 0.
func runExactly(
	ctx context.Context, limit time.Duration, dir string, env []string, input string, args []string,
) ([]byte, error) {
	var out bytes.Buffer
	once := func() error {
		var in io.Reader
		if input != "" {
			in = strings.NewReader(input)
		}
		out.Reset()
		return stream(ctx, limit, dir, env, in, &out, args)
	}
	err := once()
	if Killed(err) && ctx.Err() == nil && reads[subcommand(args)] {
		err = once()
	}
	if err != nil && (ctx.Err() != nil || errors.Is(err, errSlow)) { // the output of a killed git is not an answer
		return nil, err
	}
	return out.Bytes(), err
}

// reads are the git commands that are repeated if another process killed them, such as the kernel without memory: they
// change nothing, or only add objects.
var reads = map[string]bool{
	"cat-file": true, "check-attr": true, "check-ignore": true, "commit-tree": true, "diff-index": true,
	"diff-tree": true, "for-each-ref": true, "hash-object": true, "log": true, "ls-files": true, "ls-tree": true,
	"merge-base": true, "merge-tree": true, "rev-list": true, "rev-parse": true, "show": true, "status": true,
	"var": true, "version": true, "worktree": true,
}

// Killed reports whether a git command was ended by a signal that ralph had not sent.
func Killed(err error) bool {
	var exit *exitError
	return errors.As(err, &exit) && !exit.Exited()
}

// stream runs git with exactly these arguments, input and output; in may be nil. All git commands start here; except
// for commands to a remote, they come through [runWithin] or [Tree.stream]. When ctx or the time ends, git and all its
// processes are killed.
func stream(
	ctx context.Context, limit time.Duration, dir string, env []string, in io.Reader, out io.Writer, args []string,
) error {
	slow := fmt.Errorf("%w after %s", errSlow, limit)
	within, cancel := context.WithTimeoutCause(ctx, limit, slow)
	defer cancel()
	cmd := exec.CommandContext(within, "git", args...)
	cmd.Dir, cmd.Env = dir, env
	asGroup(cmd)
	// A process that left the group may keep the output open forever. On a loaded machine, reading the output takes a
	// while.
	cmd.WaitDelay = 30 * time.Second
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &errs
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(within), errSlow):
		return fmt.Errorf("git %s: %w", subcommand(args), slow)
	}
	said := strings.Join(strings.Fields(errs.String()), " ")
	for _, v := range env {
		if file, ok := strings.CutPrefix(v, "GIT_INDEX_FILE="); ok {
			said = strings.ReplaceAll(said, file, "the index") // the name of a temporary copy would not help the reader
		}
	}
	if said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return fmt.Errorf("git %s: %w", subcommand(args), err)
}

// subcommand returns the git subcommand, without the options before it.
func subcommand(args []string) string {
	for len(args) > 2 && strings.HasPrefix(args[0], "-") {
		if args[0] == "-c" || args[0] == "-C" {
			args = args[1:]
		}
		args = args[1:]
	}
	return args[0]
}

// The keys read from the configuration.
var (
	programs      = lazy.Regexp(`^(filter|hook|merge)\.`)
	filterCommand = lazy.Regexp(`^filter\.(?s:.*)\.(clean|smudge|process)$`)
	filterLFS     = lazy.Regexp(`^filter\.lfs\.`)
	userIs        = lazy.Regexp(`^user\.(name|email)$`)
	promisor      = lazy.Regexp(`^remote\.(?s:.*)\.promisor$`)
)

// overrides returns the environment that disables the filters, hooks and merge drivers in the
// configuration, for commands that read or write files. Git LFS alone stays.
func (t *Tree) overrides(ctx context.Context) ([]string, error) {
	list, err := t.configured(ctx, programs())
	keys := make([]string, len(list))
	for i, s := range list {
		keys[i] = s.key
	}
	return asEnv(append(disabled(keys), t.lfs(ctx)...)), err
}

// lfsFilter is the filter of Git LFS. Any other filter could run a session's files.
var lfsFilter = map[string]string{
	"filter.lfs.clean": "git-lfs clean -- %f", "filter.lfs.smudge": "git-lfs smudge -- %f",
	"filter.lfs.process": "git-lfs filter-process", "filter.lfs.required": "true",
}

// lfs returns the settings of Git LFS if the person's git has it. The files come from the person's copies, without the
// network.
func (t *Tree) lfs(ctx context.Context) (list []setting) {
	of := t
	if t.lender != nil {
		of = t.lender
	}
	found, err := of.configured(ctx, filterLFS())
	if err != nil || len(found) == 0 {
		return nil
	}
	for _, s := range found {
		if want, ok := lfsFilter[s.key]; ok && s.value != want {
			return nil
		}
	}
	if _, err := exec.LookPath("git-lfs"); err != nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(lfsFilter)) {
		list = append(list, setting{key, lfsFilter[key]})
	}
	// Missing contents stay pointers, so that no address in a session's .lfsconfig is used.
	return append(list, setting{"lfs.url", "file:///nowhere"},
		setting{"lfs.skipdownloaderrors", "true"}, setting{"lfs.storage", filepath.Join(of.common, "lfs")})
}

// A setting is a key of the configuration with its value.
type setting struct{ key, value string }

// configured returns the settings whose keys match a pattern, in the order in which they apply.
func (t *Tree) configured(ctx context.Context, pattern *regexp.Regexp) (list []setting, err error) {
	// The digest is taken before git reads the configuration, so that a concurrent change is read
	// the next time.
	out, err := t.asked.answer(t.configDigest(), func() ([]byte, error) {
		return t.run(ctx, nil, "config", "-z", "--list")
	})
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		key, value, ok := strings.Cut(entry, "\n")
		if !ok {
			value = "true" // git reads a key without a value as true
		}
		if pattern.MatchString(key) {
			list = append(list, setting{key, value})
		}
	}
	return list, err
}

// disabled returns the settings that disable configuration keys.
func disabled(keys []string) (list []setting) {
	for _, key := range keys {
		dot := strings.LastIndexByte(key, '.')
		value := ""
		switch key[dot+1:] {
		case "clean", "smudge", "process", "command":
		case "driver":
			value = "false" // a merge by a program becomes a conflict
		case "required":
			value = "false"
		case "event":
			key, value = key[:dot]+".enabled", "false"
		default:
			continue
		}
		list = append(list, setting{key, value})
	}
	return list
}

// asEnv returns settings as environment variables. Options do not work: -c cannot express a key with an equals sign.
// The last of several values counts.
func asEnv(list []setting) (env []string) {
	for i, s := range list {
		env = append(env,
			fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i+1, s.key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i+1, s.value))
	}
	return append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(list)+1))
}
