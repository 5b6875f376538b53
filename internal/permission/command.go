package permission

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A command is one simple command of a shell command, normalized.
type command struct {
	words []string // as the program gets them; unknown where computed
	sets  []string // variables set for it, as NAME=value
	dirs  []string // where it may run, likeliest first; unknown if computed
	stdin *string  // a here-document with readable text

	outer *command // the command that runs this one, as timeout does
	// through means that the command only runs another one, which is judged instead.
	through bool
	// real means that this is the previous command under the name of the file that its program
	// links to.
	real bool
}

// name returns the program without its folder.
func (c command) name() string {
	if len(c.words) == 0 {
		return ""
	}
	return path.Base(c.words[0])
}

// args returns the words after the program.
func (c command) args() []string { return c.words[min(1, len(c.words)):] }

// takesValue reports whether an option's value is the next word.
func takesValue(valued []string, w string) bool {
	if off, ok := strings.CutPrefix(w, "+"); ok {
		w = "-" + off
	}
	if slices.Contains(valued, w) {
		return true
	}
	if len(w) > 2 && w[0] == '-' && w[1] != '-' {
		for i := 1; i < len(w); i++ {
			if slices.Contains(valued, "-"+w[i:i+1]) {
				return i == len(w)-1
			}
		}
	}
	return false
}

// afterOptions returns the words after leading options; options of shells and cargo may also start
// with "+".
func afterOptions(words []string, valued string) []string {
	list := strings.Fields(valued)
	for len(words) > 0 && len(words[0]) > 1 && strings.ContainsAny(words[0][:1], "-+") {
		if words[0] == "--" {
			return words[1:]
		}
		if takesValue(list, words[0]) && len(words) > 1 {
			words = words[1:]
		}
		words = words[1:]
	}
	return words
}

// least is the minimum length of an abbreviated long option.
const least = 3

// optionValues returns the values of an option in all its spellings. short is one letter.
func optionValues(words []string, short, long string) (values []string) {
	for i, w := range words {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		name, v, given := strings.Cut(w, "=")
		if name, ok := strings.CutPrefix(name, "--"); ok && long != "" &&
			(name == long || len(name) >= least && strings.HasPrefix(long, name)) {
			if given {
				values = append(values, v)
			} else if next != "" {
				values = append(values, next)
			}
		} else if short != "" && len(w) > 1 && w[0] == '-' && w[1] != '-' {
			if at := strings.Index(w, short); at > 0 && at+1 < len(w) {
				values = append(values, strings.TrimPrefix(w[at+1:], "="))
			} else if at > 0 && next != "" {
				values = append(values, next)
			}
		}
	}
	return values
}

func has(words []string, options ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(options, w) })
}

// shortly reports whether a word is a cluster of short options with one of the letters.
func shortly(words []string, letters string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.ContainsAny(w, letters)
	})
}

// globals are the options with a value before a program's subcommand.
var globals = map[string]string{
	"tmux": "-c -f -L -S -T", "ralph": "-C --directory",
	"git": "-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix --attr-source",
	"gh":  "-R --repo", "docker": "-H -c -l --host --context --config --log-level",
	"podman": "-c --connection --url --root", "helm": "-n --namespace --kube-context",
	"kubectl": "-n -s --namespace --context --kubeconfig --cluster --user --server --token",
	"npm":     "-w --prefix --workspace --userconfig", "pnpm": "-C -F --dir --filter", "yarn": "--cwd",
	"cargo": "-C -Z --config --color", "go": "-C", "terraform": "", "systemctl": "-H -M --host --machine",
	"aws": "--profile --region --endpoint-url --output", "gcloud": "--project --account --configuration",
	"make": "-C -f -j -I", "uv": "--project --directory --config-file", "poetry": "-C --directory --project",
}

// subcommand returns the words after the program's own options.
func subcommand(c command) []string {
	valued, ok := globals[c.name()]
	if !ok {
		return c.args()
	}
	return afterOptions(c.args(), valued)
}

// plain returns the arguments that are not options.
func plain(args []string) (list []string) { return operands(args, "") }

// operands returns the arguments that are neither options nor values of the given options.
func operands(args []string, valued string) (list []string) {
	options := strings.Fields(valued)
	for i := 0; i < len(args); i++ {
		switch w := args[i]; {
		case w == "--":
			return append(list, args[i+1:]...)
		case w != "" && (w[0] != '-' || w == "-"):
			list = append(list, w)
		case takesValue(options, w):
			i++
		}
	}
	return list
}

func lastOf(list []string) []string { return list[max(len(list)-1, 0):] }

func from(list []string, i int) []string { return list[min(i, len(list)):] }

// system are the folders whose programs can be trusted by their names.
var system = []string{
	"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin",
}

// texts returns the forms of a command that deny and ask rules match: as written, by the program's
// base name, and without the options before its subcommand.
func (c command) texts() []string {
	if len(c.words) == 0 {
		return nil
	}
	written := strings.Join(c.words, " ")
	based := strings.Join(append([]string{c.name()}, c.args()...), " ")
	list := []string{written, based, strings.Join(append([]string{c.name()}, subcommand(c)...), " ")}
	if len(c.sets) > 0 {
		list = append(list, strings.Join(c.sets, " ")+" "+written)
	}
	return readable(list)
}

// allowed returns the forms of a command that allow rules match.
func (c command) allowed() []string {
	if len(c.words) == 0 || c.real {
		return nil
	}
	list := []string{strings.Join(c.words, " ")}
	if slices.Contains(system, filepath.Dir(c.words[0])) {
		list = append(list, strings.Join(append([]string{c.name()}, c.args()...), " "))
	}
	if c.words[0] == "git" && plainGit(c) {
		list = append(list, strings.Join(append([]string{c.words[0]}, subcommand(c)...), " "))
	}
	return readable(list)
}

// readable replaces computed text by "$".
func readable(list []string) []string {
	for i, text := range list {
		list[i] = strings.ReplaceAll(text, unknown, "$")
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// plainVariables do not change the relevant effects of a program.
var plainVariables = strings.Fields(`CI DEBUG VERBOSE NO_COLOR FORCE_COLOR CLICOLOR COLUMNS LINES TERM TZ LANG LANGUAGE
	NODE_ENV RAILS_ENV RACK_ENV APP_ENV GOOS GOARCH CGO_ENABLED RUST_BACKTRACE RUST_LOG PYTHONUNBUFFERED
	PYTHONDONTWRITEBYTECODE`)

// harmless reports whether setting a variable needs no rule. For a command, only variables known to
// be harmless qualify. In the shell itself, lower-case variables qualify too, because no program
// reads them.
func harmless(set string, shell bool) bool {
	name, _, _ := strings.Cut(set, "=")
	return slices.Contains(plainVariables, name) || strings.HasPrefix(name, "LC_") ||
		shell && name == strings.ToLower(name) && !strings.HasSuffix(name, "_proxy")
}
