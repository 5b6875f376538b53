package permission

import (
	"slices"
	"strings"
)

// An inner is a command that another command runs: words, or a script.
type inner struct {
	words []string
	sets  []string
	dir   string // working directory, if it differs from that of the outer command
	text  *string
}

func script(text string) []inner { return []inner{{text: &text}} }

// A wrapper is a program that runs the command in its arguments.
type wrapper struct {
	valued string // options that take a value
	skip   int    // words before the command
}

// wrappers are programs, some with a subcommand, by name.
var wrappers = map[string]wrapper{
	"env":      {"-u -C -S --unset --chdir --split-string", 0},
	"nohup":    {},
	"time":     {"-f -o --format --output", 0},
	"nice":     {"-n --adjustment", 0},
	"ionice":   {"-c -n -p -P -u --class --classdata", 0},
	"timeout":  {"-s -k --signal --kill-after", 1},
	"gtimeout": {"-s -k --signal --kill-after", 1},
	"xargs": {"-I -n -P -L -d -a -E -s --max-args --max-procs --max-lines --delimiter --arg-file --max-chars " +
		"--replace --process-slot-var", 0},
	"command":  {},
	"builtin":  {},
	"exec":     {"-a", 0},
	"stdbuf":   {"-i -o -e --input --output --error", 0},
	"setsid":   {},
	"unbuffer": {},
	"watch":    {"-n --interval", 0},
	"chroot":   {"", 1},
	"taskset":  {"", 1},
	"chrt":     {"", 1},
	"strace":   {"-e -o -p -s -u -E", 0},
	"ltrace":   {"-e -o -p -s -u", 0},
	"busybox":  {},
	"toybox":   {},
	"flock":    {"-w -E --timeout --conflict-exit-code", 1},
	"unshare":  {"-S -G -R -w --root --wd", 0},
	"nsenter":  {"-t -S -G", 0},
	"setpriv": {"--reuid --regid --ruid --euid --rgid --egid --groups --inh-caps --ambient-caps --bounding-set " +
		"--securebits --pdeathsig --selinux-label --apparmor-profile", 0},
	"xvfb-run":    {"-e -f -n -p -s -w --error-file --auth-file --server-num --server-args --xauth-protocol --wait", 0},
	"systemd-run": {"-p -u -E -M -H --unit --property --setenv --slice --description", 0},
	"parallel":    {"-j -N --jobs", 0},
	"entr":        {},
	"screen":      {"-c -e -h -p -s -S -t -T", 0},
	"sudo": {"-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot --close-from " +
		"--role --type --other-user --command-timeout", 0},
	"doas":   {"-u -C", 0},
	"pkexec": {"-u --user", 0},
	"run0":   {"-u -g -D --user --group --chdir --unit --property --setenv --slice --nice", 0},
	"npx":    {"-p -w --package --workspace", 0},
	"bunx":   {"-p --package", 0},
	"pnpx":   {"-p --package", 0},
	"uvx":    {"-p --from --with --python --index", 0},

	"tmux new":         {tmuxValued, 0},
	"tmux new-session": {tmuxValued, 0},
	"tmux new-window":  {tmuxValued, 0},

	"npm exec":    {"-p -w --package --workspace", 0},
	"npm x":       {"-p -w --package --workspace", 0},
	"pnpm dlx":    {"-p --package", 0},
	"pnpm exec":   {},
	"yarn dlx":    {"-p --package", 0},
	"yarn exec":   {},
	"bun x":       {"-p --package", 0},
	"uv run":      {"-p --from --with --python --index --env-file --project --directory", 0},
	"pipx run":    {"--spec --python", 0},
	"poetry run":  {},
	"bundle exec": {},
}

const tmuxValued = "-c -e -f -F -n -s -t -x -y"

// transparent are programs that need no rule themselves: only the command after them is judged.
var transparent = []string{
	"env", "nohup", "time", "nice", "ionice", "timeout", "gtimeout", "xargs", "command", "builtin", "exec", "stdbuf",
	"setsid", "sh", "bash", "dash", "zsh", "ksh", "ash", "eval",
}

// shellValued are the options of shells that take a value.
const shellValued = "-o -O --rcfile --init-file"

var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "csh", "tcsh", "fish", "rbash"}

// inside returns the command inside a command, and whether running it is the outer one's only purpose.
func inside(c command) (list []inner, found bool) {
	name, args := c.name(), c.args()
	switch {
	case slices.Contains(shells, name):
		rest := afterOptions(args, shellValued)
		if options := args[:len(args)-len(rest)]; shortly(options, "c") {
			if len(rest) == 0 {
				rest = []string{unknown}
			}
			return script(rest[0]), true
		}
		return nil, c.stdin != nil && readsScript(c)
	case name == "eval":
		return script(strings.Join(args, " ")), true
	case name == "trap":
		if rest := afterOptions(args, ""); len(rest) > 1 {
			return script(rest[0]), true
		}
		return nil, false
	case name == "alias":
		for _, w := range args {
			if _, text, ok := strings.Cut(w, "="); ok {
				list = append(list, script(text)...)
			}
		}
		return list, false
	case name == "command" && shortly(args[:min(1, len(args))], "vV"):
		return nil, false
	case name == "find" || name == "fd" || name == "fdfind":
		return executed(name, args), false
	case name == "git":
		return gitRuns(c), false
	}
	for option, programs := range map[string][]string{
		"command": {"su", "sg", "script", "flock", "runuser"}, "call": {"npx", "npm"},
	} {
		if slices.Contains(programs, name) {
			for _, text := range optionValues(args, "c", option) {
				list = append(list, script(text)...)
			}
			if len(list) > 0 {
				return list, false
			}
		}
	}
	w, ok := wrappers[name]
	if !ok && len(args) > 0 {
		sub := afterOptions(args, globals[name])
		if len(sub) > 0 {
			w, ok = wrappers[name+" "+sub[0]]
			args = sub[1:]
		}
	}
	if !ok {
		return nil, false
	}
	return wrapped(name, w, args)
}

// wrapped returns the command after a wrapper.
func wrapped(name string, w wrapper, args []string) (list []inner, found bool) {
	words := afterOptions(args, w.valued)
	words = words[min(w.skip, len(words)):]
	var in inner
	if name == "env" || name == "sudo" {
		for len(words) > 0 && strings.Contains(words[0], "=") {
			in.sets, words = append(in.sets, words[0]), words[1:]
		}
	}
	options := args[:len(args)-len(words)]
	switch name {
	case "env":
		if texts := optionValues(options, "S", "split-string"); len(texts) > 0 {
			return script(texts[0] + " " + strings.Join(words, " ")), true
		}
		if dirs := optionValues(options, "C", "chdir"); len(dirs) > 0 {
			in.dir = dirs[0]
		}
	case "watch", "parallel", "entr", "tmux":
		if given := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, ":::") }); given == 0 {
			for _, w := range words[1:] {
				list = append(list, script(w)...)
			}
			return list, true
		} else if given > 0 {
			words = words[:given]
		}
		if len(words) > 0 {
			return script(strings.Join(words, " ")), true
		}
	case "xargs":
		words = slices.Clone(words)
		marks := append(optionValues(options, "I", "replace"), "{}")
		for _, w := range options {
			if mark, ok := strings.CutPrefix(w, "-i"); ok && mark != "" {
				marks = append(marks, mark)
			}
		}
		for _, variable := range optionValues(options, "", "process-slot-var") {
			in.sets = append(in.sets, variable+"="+unknown)
		}
		for _, mark := range marks {
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], mark, unknown)
			}
		}
		if len(words) > 0 {
			words = append(words, unknown)
		}
	}
	if len(words) == 0 {
		return nil, false
	}
	in.words = words
	return []inner{in}, true
}

// executed returns the commands of find's -exec, for each folder that it searches.
func executed(name string, args []string) (list []inner) {
	found := []string{unknown}
	if name == "find" {
		found = nil
		for _, root := range roots(args) {
			found = append(found, root+"/"+unknown)
		}
	}
	for i, w := range args {
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}, w) {
			continue
		}
		words := args[i+1:]
		if end := slices.IndexFunc(words, func(w string) bool { return w == ";" || w == "+" }); end >= 0 {
			words = words[:end]
		}
		for _, file := range found {
			each := slices.Clone(words)
			for i := range each {
				each[i] = strings.ReplaceAll(each[i], "{}", file)
			}
			if len(each) > 0 {
				list = append(list, inner{words: each})
			}
		}
	}
	return list
}

// roots returns the folders that find searches.
func roots(args []string) []string {
	for len(args) > 0 && (has(args[:1], "-H", "-L", "-P") || strings.HasPrefix(args[0], "-O")) {
		args = args[1:]
	}
	if i := slices.IndexFunc(args, func(w string) bool {
		return len(w) > 1 && strings.HasPrefix(w, "-") || w == "(" || w == "!"
	}); i >= 0 {
		args = args[:i]
	}
	if len(args) == 0 {
		return []string{"."}
	}
	return args
}

// readsScript reports whether a command runs its input, or a file whose name is computed.
func readsScript(c command) bool {
	args := c.args()
	switch name := c.name(); {
	case name == "source" || name == ".":
		return len(args) == 0 || strings.Contains(args[0], unknown) || strings.HasPrefix(args[0], "/dev/") ||
			strings.HasPrefix(args[0], "/proc/")
	case name == "parallel":
		return len(afterOptions(args, wrappers[name].valued)) == 0
	case slices.Contains(shells, name):
		files := afterOptions(args, shellValued)
		if has(args[:len(args)-len(files)], "--rcfile", "--init-file") {
			return true
		}
		if shortly(args[:len(args)-len(files)], "c") || has(args, "--version", "--help") {
			return false
		}
		return len(files) == 0 || shortly(args[:len(args)-len(files)], "s") ||
			strings.Contains(files[0], unknown) || files[0] == "-" || strings.HasPrefix(files[0], "/dev/")
	}
	return false
}
