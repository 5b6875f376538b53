package gate

import (
	"bytes"
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ralph/internal/lazy"
)

// imports are the lines of languages that refer to other files, as whole lines. The group is the target. When files
// are moved, the rest of such a line stays the same.
var imports = sync.OnceValue(func() map[string][]*regexp.Regexp {
	list := map[string][]string{
		".py": {`^from ([\w.]+) import [^;#]*$`, `^import ([\w.]+)(?: as \w+)?$`},
		".js": {
			`^(?:import|export)\b[\w\s{},*$]*['"]([^'"]+)['"];?$`, `^\} from ['"]([^'"]+)['"];?$`,
			`^(?:const|let|var) [\w\s{}:,$]+ = require\(['"]([^'"]+)['"]\)(?:\.\w+)?;?$`, `^require\(['"]([^'"]+)['"]\);?$`,
		},
		".go":   {`^(?:import )?(?:[\w.]+ )?"([^"]+)"$`},
		".rs":   {`^(?:pub(?:\([\w ]+\))? )?(?:use|mod) ([\w:]+)(?:\{[^;]*\}|\*| as \w+)?;$`},
		".java": {`^(?:import(?: static)?|package) ([\w.]+?)(?:\.\*)?;?$`},
		".cs":   {`^(?:using(?: static)?|namespace) ([\w.]+)(?:;| \{)?$`},
		".rb":   {`^require(?:_relative)? ?\(?['"]([^'"]+)['"]\)?$`},
		".php": {
			`^(?:use(?: function| const)?|namespace) ([\w\\]+)(?: as \w+)?;$`,
			`^(?:require|include)(?:_once)?[ (]+(?:__DIR__ ?\. ?)?['"]([^'"]+)['"]\)?;$`,
		},
		".c": {`^#\s*include [<"]([^>"]+)[>"]$`},
	}
	all := map[string][]*regexp.Regexp{}
	for ending, lines := range list {
		for _, line := range lines {
			all[ending] = append(all[ending], regexp.MustCompile(line))
		}
	}
	return all
})

// alike maps endings to those of [imports].
var alike = map[string]string{
	".kt": ".java", ".kts": ".java", ".scala": ".java", ".groovy": ".java",
	".h": ".c", ".cc": ".c", ".cpp": ".c", ".cxx": ".c", ".hpp": ".c", ".hh": ".c",
}

// A link is a line that refers to another file.
type link struct {
	line   string
	around string // the line without its target
	target string
	from   string // its file
}

// linkOf reads a line of a file; ok is false if it is not such a line.
func linkOf(file, line string) (r link, ok bool) {
	ending := cmp.Or(alike[path.Ext(file)], language(file))
	for _, re := range imports()[ending] {
		if m := re.FindStringSubmatchIndex(line); m != nil {
			return link{line, line[:m[2]] + "\x00" + line[m[3]:], line[m[2]:m[3]], file}, true
		}
	}
	return r, false
}

// A body is a file's lines without blank ones. References between other lines may be in any order.
type body struct {
	lines []string // others
	refs  [][]link // before each of the lines, and after the last one
}

func bodyOf(file string, content []byte) body {
	b := body{refs: [][]link{nil}}
	for raw := range bytes.Lines(content) {
		line := strings.TrimSpace(string(raw))
		if line == "" {
			continue
		}
		if r, ok := linkOf(file, line); ok {
			last := len(b.refs) - 1
			b.refs[last] = append(b.refs[last], r)
			continue
		}
		if path.Ext(file) == ".go" && goPackage().MatchString(line) {
			line = "package" // it has the name of its folder
		}
		b.lines, b.refs = append(b.lines, line), append(b.refs, nil)
	}
	return b
}

var goPackage = lazy.Regexp(`^package \w+$`)

// moves are the former paths of files that a change moves, and their present ones.
type moves map[string]string

// Moves reports whether a change removes files and adds others.
func Moves(files []File) bool {
	return slices.ContainsFunc(files, func(f File) bool { return f.Was == nil }) &&
		slices.ContainsFunc(files, func(f File) bool { return f.Is == nil })
}

// Moved reports whether a change only moves files: each added file equals a removed one, and other lines change only
// in references to them, as whole lines. Moved code cannot be tried with its tests in their old place. Names are the
// files of the target.
func Moved(files []File, names []string) bool {
	var gone, new, stay []File
	for _, f := range files {
		switch {
		case path.Ext(f.Path) == ".md":
		case f.Was == nil:
			new = append(new, f)
		case f.Is == nil:
			gone = append(gone, f)
		default:
			stay = append(stay, f)
		}
	}
	m, more, ok := pair(gone, new)
	if !ok || len(m) == 0 || m.hidden(names) {
		return false
	}
	is := map[string]body{}
	for _, f := range new {
		is[f.Path] = bodyOf(f.Path, f.Is)
	}
	for _, f := range gone {
		if to, ok := m[f.Path]; ok && !m.same(bodyOf(f.Path, f.Was), is[to]) {
			return false
		}
	}
	for _, f := range stay {
		if !m.same(bodyOf(f.Path, f.Was), bodyOf(f.Path, f.Is)) {
			return false
		}
	}
	return !slices.ContainsFunc(more, func(f File) bool { return !m.leads(bodyOf(f.Path, f.Is)) })
}

// pair matches old files with new ones: among several that are alike, it prefers the same name. More are the additional
// files; ok is false if a file with contents was removed.
func pair(gone, new []File) (m moves, more []File, ok bool) {
	shape := func(file string, content []byte) string {
		b := bodyOf(file, content)
		var text strings.Builder
		text.WriteString(language(file))
		for i, refs := range b.refs {
			var around []string
			for _, r := range refs {
				around = append(around, r.around)
			}
			slices.Sort(around)
			text.WriteString("\n" + strings.Join(around, "\n"))
			if i < len(b.lines) {
				text.WriteString("\n" + b.lines[i])
			}
		}
		return text.String()
	}
	is := make([]string, len(new)) // each once: files may be large
	for i, n := range new {
		is[i] = shape(n.Path, n.Is)
	}
	m, left := moves{}, slices.Clone(new)
	for _, base := range []bool{true, false} {
		for _, f := range gone {
			if m[f.Path] != "" {
				continue
			}
			was := shape(f.Path, f.Was)
			for i, n := range left {
				if (!base || path.Base(n.Path) == path.Base(f.Path)) && is[i] == was {
					m[f.Path] = n.Path
					left, is = slices.Delete(left, i, i+1), slices.Delete(is, i, i+1)
					break
				}
			}
		}
	}
	ok = !slices.ContainsFunc(gone, func(f File) bool { return m[f.Path] == "" && len(bytes.TrimSpace(f.Was)) > 0 })
	return m, left, ok
}

// stem returns the form in which a path is referred to: without its ending, or as its folder if it
// stands for that.
func stem(file string) string {
	s := strings.TrimSuffix(file, path.Ext(file))
	switch path.Base(s) {
	case "index", "__init__", "mod":
		return path.Dir(s)
	}
	return s
}

// hidden reports whether another file of the target, or one of its folders, has the same reference
// as a moved one, before or after.
func (m moves) hidden(names []string) bool {
	stems := map[string]bool{}
	for was, is := range m {
		stems[stem(was)], stems[stem(is)] = true, true
	}
	for _, name := range names {
		if m[name] != "" {
			continue
		}
		if stems[stem(name)] && language(name) != ".h" {
			return true
		}
	}
	for was, is := range m {
		for _, folder := range []string{stem(was) + "/", stem(is) + "/"} {
			if language(was) != ".go" && path.Base(folder) != "." &&
				slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, folder) && m[n] == "" }) {
				return true
			}
		}
		if language(was) == ".go" && path.Dir(was) != path.Dir(is) && !m.whole(was, is, names) {
			return true
		}
	}
	return false
}

// whole reports whether the complete package of a Go file is moved into a folder that had none.
func (m moves) whole(was, is string, names []string) bool {
	return !slices.ContainsFunc(names, func(n string) bool {
		return path.Ext(n) == ".go" && m[n] == "" && (path.Dir(n) == path.Dir(was) || path.Dir(n) == path.Dir(is))
	})
}

// same reports whether two bodies differ in references to moved files at most.
func (m moves) same(was, is body) bool {
	if !slices.Equal(was.lines, is.lines) {
		return false
	}
	for i, refs := range was.refs {
		left := slices.Clone(is.refs[i])
		for _, r := range refs {
			at := slices.IndexFunc(left, func(n link) bool {
				return r.around == n.around && (r.target == n.target && r.from == n.from || m.fits(r, n))
			})
			if at < 0 {
				return false
			}
			left = slices.Delete(left, at, at+1)
		}
		if len(left) > 0 {
			return false
		}
	}
	return true
}

// leads reports whether a body has nothing but references to moved files.
func (m moves) leads(b body) bool {
	if len(b.lines) > 0 {
		return false
	}
	for _, r := range b.refs[0] {
		at, relative := r.at()
		if !relative || !slices.Contains(slices.Sorted(maps.Values(m)), at) && !slices.ContainsFunc(
			slices.Sorted(maps.Values(m)), func(to string) bool { return stem(to) == at }) {
			return false
		}
	}
	return true
}

// at returns the path that a link leads to, relative to its file.
func (r link) at() (file string, relative bool) {
	dir, ending := path.Dir(r.from), language(r.from)
	switch {
	case ending == ".py" && strings.HasPrefix(r.target, "."):
		name := strings.TrimLeft(r.target, ".")
		up := strings.Repeat("../", len(r.target)-len(name)-1)
		return path.Join(dir, up, strings.ReplaceAll(name, ".", "/")), true
	case ending == ".rs" && strings.Contains(r.around, "mod \x00"):
		if name := path.Base(r.from); name != "lib.rs" && name != "main.rs" && name != "mod.rs" {
			dir = stem(r.from)
		}
		return path.Join(dir, r.target), true
	case ending == ".js" && strings.HasPrefix(r.target, "."), strings.Contains(r.around, "require_relative"):
		return path.Join(dir, r.target), true
	case strings.Contains(r.around, "__DIR__"), strings.Contains(r.around, `include "`):
		return path.Join(dir, r.target), true
	}
	return "", false
}

// separators are between the parts of targets.
var separators = lazy.Regexp(`[/\\.:]+`)

// fits reports whether a link changed because files were moved: its own file, or its target.
func (m moves) fits(was, is link) bool {
	before, relative := was.at()
	after, also := is.at()
	if relative != also {
		return false
	}
	if relative && before == after {
		return true
	}
	if !relative && was.target == is.target { // in a file that was moved
		return true
	}
	t, u := separators().Split(was.target, -1), separators().Split(is.target, -1)
	prefixes := slices.Contains([]string{".go", ".rs", ".php", ".cs"}, language(was.from))
	declares := strings.HasPrefix(was.around, "package ") || strings.HasPrefix(was.around, "namespace ")
	for from, to := range m {
		switch {
		case relative:
			if before == from && after == to || before == stem(from) && after == stem(to) {
				return true
			}
			continue
		case declares && was.from != from:
			continue // a file's reference to itself
		}
		p, q := strings.Split(stem(from), "/"), strings.Split(stem(to), "/")
		if declares || language(from) == ".go" {
			p, q = p[:len(p)-1], q[:len(q)-1]
		}
		if renames(t, u, p, q, prefixes) {
			return true
		}
	}
	return false
}

// renames reports whether t has become u as the path p has become q. Both may lack the common root of the paths,
// have the same suffix, which names tests in that file, and, with prefixes, the same prefix.
func renames(t, u, p, q []string, prefixes bool) bool {
	for root := 0; root <= len(p) && root <= len(q) && slices.Equal(p[:root], q[:root]); root++ {
		p, q := p[root:], q[root:]
		for before := 0; before+len(p) <= len(t) && before+len(q) <= len(u) && (before == 0 || prefixes); before++ {
			behind := t[before+len(p):]
			if (len(p) > 0 || len(q) > 0) && len(p)+before > 0 && len(q)+before > 0 && slices.Equal(t[:before], u[:before]) &&
				slices.Equal(t[before:before+len(p)], p) && slices.Equal(u[before:before+len(q)], q) &&
				slices.Equal(behind, u[before+len(q):]) {
				return true
			}
		}
	}
	return false
}
