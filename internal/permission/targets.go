package permission

import (
	"slices"
	"strings"

	"ralph/internal/lazy"
)

// filesOf returns the files that a command writes and reads according to its arguments.
func (s *shell) filesOf(c command) (list []file) {
	dirs := c.dirs
	if c.name() == "git" {
		for _, to := range optionValues(gitOptions(c), "C", "") {
			dirs = s.folders(dirs, to)
		}
	}
	by := &c
	add := func(f file, words ...string) {
		f.by = by
		for _, w := range words {
			f.paths = s.paths(dirs, w)
			list = append(list, f)
		}
	}
	writes, removes, filtered := s.targets(c)
	add(file{write: true}, writes...)
	add(file{write: true, removes: true, tracked: c.name() == "git"}, removes...)
	add(file{write: true, filter: true}, filtered...)
	if slices.Contains(readers, c.name()) {
		add(file{}, plain(c.args())...)
	}
	for _, w := range c.args() {
		if _, name, ok := strings.Cut(w, "@"); ok && c.name() == "curl" && !strings.Contains(w, "://") {
			add(file{}, name)
		} else if name, ok := strings.CutPrefix(w, "if="); ok && c.name() == "dd" {
			add(file{}, name)
		}
	}
	return list
}

// readers are programs that show the files in their arguments.
var readers = strings.Fields(`cat tac head tail less more nl od xxd hexdump strings base64 base32 sort uniq wc cut paste
	grep egrep fgrep rg sed awk gawk diff cmp cp source . bat jq yq rsync scp tar
	zip`)

// outputs are programs that write to the file given by an option, short and long.
var outputs = map[string][2]string{
	"curl": {"o", "output"}, "wget": {"O", "output-document"}, "sort": {"o", "output"}, "gcc": {"o", ""}, "g++": {"o", ""},
	"cc": {"o", ""}, "clang": {"o", ""}, "clang++": {"o", ""}, "ld": {"o", "output"}, "go": {"o", ""}, "tree": {"o", ""},
	"jq": {"", "output"}, "pandoc": {"o", "output"}, "openssl": {"", "out"}, "objcopy": {"", "dump-section"},
	"shuf": {"o", "output"}, "protoc": {"", "cpp_out"}, "gpg": {"o", "output"}, "as": {"o", ""}, "time": {"o", "output"},
	"strace": {"o", "output"}, "script": {"", "log-out"}, "rsync": {"", "log-file"}, "tcpdump": {"w", ""},
}

// targets returns the arguments for files that a command changes, files that it removes recursively, and folders in
// which it removes some files.
func (s *shell) targets(c command) (writes, removes, filtered []string) {
	args := c.args()
	names := plain(args)
	if option, ok := outputs[c.name()]; ok && !(c.name() == "go" && !has(args[:min(1, len(args))], "build", "test")) {
		writes = optionValues(args, option[0], option[1])
	}
	switch c.name() {
	case "rm", "rmdir", "unlink", "shred":
		removes = names
	case "mkdir", "touch", "tee", "sponge", "mkfifo", "mknod", "fallocate":
		writes = names
	case "mv":
		writes = slices.Concat(names, optionValues(args, "t", "target-directory"))
		removes = names[:max(len(names)-1, 0)]
	case "truncate":
		writes = operands(args, "-s -r --size --reference")
	case "split", "csplit":
		writes = lastOf(names)
	case "chmod", "chown", "chgrp", "setfacl", "chattr":
		writes = from(names, 1)
	case "cp", "ln", "install", "rsync", "scp", "ditto":
		writes, removes = copied(c, args, names)
	case "dd":
		for _, w := range names {
			if file, ok := strings.CutPrefix(w, "of="); ok {
				writes = append(writes, file)
			}
		}
	case "sed", "perl", "ruby", "awk", "gawk", "yq":
		writes = edited(args)
	case "ex", "ed", "patch":
		writes = append(names, optionValues(args, "o", "output")...)
	case "wget":
		writes = append(writes, optionValues(args, "P", "directory-prefix")...)
		writes = append(writes, optionValues(args, "o", "output-file")...)
	case "curl":
		for _, option := range [][2]string{{"", "output-dir"}, {"D", "dump-header"}, {"c", "cookie-jar"}, {"", "trace"}} {
			writes = append(writes, optionValues(args, option[0], option[1])...)
		}
	case "tar", "bsdtar":
		writes = archived(args)
	case "unzip":
		writes = optionValues(args, "d", "")
	case "zip", "7z":
		writes = names[:min(1, len(names))]
	case "find":
		removes, filtered = found(args)
	case "git":
		writes, removes = s.gitTargets(c)
	}
	return writes, removes, filtered
}

// copied returns the destination of a copy, and the files that it replaces.
func copied(c command, args, names []string) (writes, removes []string) {
	if writes = optionValues(args, "t", "target-directory"); len(writes) == 0 || c.name() == "rsync" {
		writes = append(writes, lastOf(names)...)
	}
	if c.name() == "install" && shortly(args, "d") {
		writes = names
	}
	if c.name() == "rsync" && slices.ContainsFunc(args, func(w string) bool { return strings.HasPrefix(w, "--delete") }) {
		removes = lastOf(names)
	}
	return writes, removes
}

// edited returns the files that an editor of streams changes in place.
func edited(args []string) []string {
	if edits := shortly(args, "i") || slices.ContainsFunc(args, func(w string) bool {
		return strings.HasPrefix(w, "--in-place") || strings.HasPrefix(w, "--inplace") || w == "inplace"
	}); !edits {
		return nil
	}
	writes := operands(args, "-e -f --expression --file")
	if !slices.ContainsFunc(args, givesScript().MatchString) {
		writes = from(writes, 1)
	}
	return writes
}

// archived returns the archive that tar writes, or the folder that it unpacks into.
func archived(args []string) []string {
	writes := optionValues(args, "C", "directory")
	if mode := strings.Join(args[:min(1, len(args))], ""); strings.ContainsAny(strings.TrimLeft(mode, "-"), "cru") &&
		!strings.HasPrefix(mode, "--") || has(args, "--create", "--append", "--update") {
		if writes = optionValues(args, "f", "file"); len(writes) == 0 && len(args) > 1 {
			writes = args[1:2]
		}
	}
	return writes
}

// givesScript matches the options of sed and its like that give the script, so that all other words
// are files.
var givesScript = lazy.Regexp(`^(-[a-zA-Z]*[ef]|--expression|--file)`)

// found returns the folders in which find deletes everything, or globs of the files that it selects.
func found(args []string) (removes, filtered []string) {
	if !has(args, "-delete") {
		return nil, nil
	}
	roots := roots(args)
	for i, w := range args[:len(args)-1] {
		if has([]string{w}, "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-newer", "-empty") {
			pattern := args[i+1]
			if strings.Trim(pattern, "*.?") == "" && w != "-empty" {
				continue
			}
			if w != "-name" && w != "-iname" {
				pattern = "**"
			}
			for _, root := range roots {
				filtered = append(filtered, root+"/**/"+pattern)
			}
			return nil, filtered
		}
	}
	return roots, nil
}
