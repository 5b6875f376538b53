package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// gitLimit is the time that one git may take. It is for those that would never end;
// the largest work trees take a minute.
const gitLimit = 10 * time.Minute

// errSlow says that a git was killed because its time was up.
var errSlow = fmt.Errorf("was killed after %s", gitLimit)

// quiet are the options of every git: what is configured may start no program, reach
// no network and wait for nobody. [Tree.overrides] has those that only a look at the
// configuration tells.
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
	"-c", "advice.addEmbeddedRepo=false", "-c", "core.quotePath=false", "-c", "core.compression=0",
	"-c", "core.bigFileThreshold=1m", "-c", "core.safecrlf=false",
}

// quietEnv is the same for the environment. No transport is allowed, whatever the
// configuration says of one: a partial clone would fetch with it.
var quietEnv = []string{
	"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0",
	"GIT_ASKPASS=false", "SSH_ASKPASS=false", "GIT_EDITOR=:", "GIT_SEQUENCE_EDITOR=:",
	"GIT_PAGER=cat", "GIT_SSH_COMMAND=false", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1",
	// History is what the commits say, and not what somebody has put in their place here.
	"GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=/dev/null",
	// The first place is for [Tree.environment], the others are for [Tree.overrides].
	"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.untrackedCache", "GIT_CONFIG_VALUE_0=false",
}

// command makes a process of git's. Every git of ralph's is made here: deaf to what
// the environment and an agent's configuration would have it run, and killed with
// all that it started when ctx ends.
func command(ctx context.Context, dir string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append(slices.Clip(quiet), args...)...)
	cmd.Dir = dir
	inherited := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "GIT_") })
	cmd.Env = append(inherited, quietEnv...)
	cmd.Env = append(cmd.Env, env...)
	asGroup(cmd)
	// What has left the group may hold the output open for ever; on a loaded machine it
	// takes its time to be read.
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// errNoGit says that something is done by native git alone.
var errNoGit = errors.New("there is no git program in PATH, and this needs one")

// exitError is what git says with its exit status.
type exitError = exec.ExitError

// run runs git in the project's root. The error carries what git said.
func (t *Tree) run(ctx context.Context, env []string, args ...string) ([]byte, error) {
	return t.runInput(ctx, env, "", args...)
}

// runInput is run with something on standard input. Where the repository and its work
// tree are git is told, whatever the repository's configuration says of that.
func (t *Tree) runInput(ctx context.Context, env []string, input string, args ...string) ([]byte, error) {
	here := []string{"GIT_DIR=" + t.git, "GIT_WORK_TREE=" + t.top()}
	return runWithin(ctx, gitLimit, t.root, append(here, env...), input, args...)
}

// runWithin runs git in dir, for so long at most.
func runWithin(
	ctx context.Context, limit time.Duration, dir string, env []string, input string, args ...string,
) ([]byte, error) {
	within, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
	defer cancel()
	cmd := command(within, dir, env, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	err := cmd.Run()
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(context.Cause(within), errSlow):
		return nil, fmt.Errorf("git %s: %w", subcommand(args), errSlow)
	}
	said := strings.Join(strings.Fields(errs.String()), " ")
	for _, v := range env {
		if file, ok := strings.CutPrefix(v, "GIT_INDEX_FILE="); ok {
			said = strings.ReplaceAll(said, file, "the index") // of which it is a copy that nobody knows
		}
	}
	if said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return nil, fmt.Errorf("git %s: %w", subcommand(args), err)
}

// subcommand is the command of git's, without the options before it.
func subcommand(args []string) string {
	for len(args) > 2 && (args[0] == "-c" || args[0] == "-C") {
		args = args[2:]
	}
	return args[0]
}

// overrides are the environment that switches off what only the configuration names:
// its filters and hooks. It is for those commands that read or write files.
func (t *Tree) overrides(ctx context.Context) ([]string, error) {
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	// Taken before git reads it: what is changed meanwhile is read again.
	digest := t.configDigest()
	if digest != "" && digest == t.known.config {
		return t.known.overrides, nil
	}
	t.known.config = ""
	out, err := t.run(ctx, nil, "config", "--name-only", "-z", "--get-regexp", `^(filter|hook)\.`)
	var none *exitError // exit status 1: there are none
	if err != nil && (!errors.As(err, &none) || none.ExitCode() != 1) {
		return nil, err
	}
	t.known.config, t.known.overrides = digest, overridesOf(strings.Split(string(out), "\x00"))
	return t.known.overrides, nil
}

// overridesOf are the settings against keys of the configuration. They are no options:
// of a key with an equals sign in it -c would make another one.
func overridesOf(keys []string) (env []string) {
	n := 1
	for _, key := range keys {
		dot := strings.LastIndexByte(key, '.')
		value := ""
		switch key[dot+1:] {
		case "clean", "smudge", "process", "command":
		case "required":
			value = "false"
		case "event":
			key, value = key[:dot]+".enabled", "false"
		default:
			continue
		}
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, value))
		n++
	}
	return append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", n))
}
