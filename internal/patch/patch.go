// Package patch reads git's differences, and prepares them for a person's decision.
package patch

import (
	"fmt"
	"strconv"
	"strings"

	"ralph/internal/lazy"
	"ralph/internal/text"
)

// A File is the difference of one file.
type File struct {
	Path   string // "" if the lines name none
	Status string // "added", "deleted", "renamed" or "modified"
	Notes  string // lines of ralph's before it, each after "# "
	Head   string // git's lines before the first hunk
	Body   string // the hunks
	Mode   string // git's mode after the change, if it is new; otherwise ""
	Opaque bool   // git shows no lines, since it takes the contents for binary
}

// Split divides git's output into files. Lines before the first file are left out.
func Split(patch string) (files []File) {
	notes, in := "", false         // in is whether the last line was part of a hunk
	var head, body strings.Builder // parts of the last file, which may be large
	end := func() {
		if last := len(files) - 1; last >= 0 {
			files[last].Head, files[last].Body = head.String(), body.String()
		}
		head.Reset()
		body.Reset()
	}
	for line := range strings.Lines(patch) {
		switch {
		case strings.HasPrefix(line, "diff --git "):
			end()
			files, in = append(files, File{Path: named(line), Status: "modified", Notes: notes}), false
			head.WriteString(line)
			notes = ""
		case strings.HasPrefix(line, "# "):
			notes, in = notes+line, false
		case len(files) == 0:
		case in || strings.HasPrefix(line, "@@ "):
			body.WriteString(line)
			in = true
		default:
			head.WriteString(line)
			files[len(files)-1].header(strings.TrimRight(line, "\r\n"))
		}
	}
	end()
	return files
}

// String returns the file's part of the patch, unchanged.
func (f File) String() string { return f.Notes + f.Head + f.Body }

// header reads a line before the first hunk of the file.
func (f *File) header(line string) {
	switch {
	case strings.HasPrefix(line, "new file mode "):
		f.Status, f.Mode = "added", line[len("new file mode "):]
	case strings.HasPrefix(line, "new mode "):
		f.Mode = line[len("new mode "):]
	case strings.HasPrefix(line, "deleted file"):
		f.Status = "deleted"
	case strings.HasPrefix(line, "rename to "):
		f.Status, f.Path = "renamed", unquoted(line[len("rename to "):])
	case strings.HasPrefix(line, "Binary files"), strings.HasPrefix(line, "GIT binary patch"):
		f.Opaque = true
	case strings.HasPrefix(line, "--- ") && !strings.HasPrefix(line, "--- /dev/null"):
		f.Path = side(line[len("--- "):], "a/")
	case strings.HasPrefix(line, "+++ ") && !strings.HasPrefix(line, "+++ /dev/null"):
		f.Path = side(line[len("+++ "):], "b/")
	}
}

// Modes explains the new mode of the file in sentences.
func (f File) Modes() []string {
	switch f.Mode {
	case "100755":
		return []string{"It is executable now."}
	case "120000":
		return []string{"It is a symbolic link now: its text is where that leads."}
	case "160000":
		return []string{"It is a repository of its own now."}
	case "100644":
		if f.Status != "added" {
			return []string{"It is not executable any more."}
		}
	}
	return nil
}

// named returns the file named in the first line of a difference. Both sides have the same name, unless later lines
// name another.
func named(line string) string {
	both := strings.TrimRight(strings.TrimPrefix(line, "diff --git "), "\r\n")
	if at := strings.Index(both, `" "b/`); at > 0 && strings.HasPrefix(both, `"`) {
		return side(both[at+2:], "b/")
	}
	if half := len(both) / 2; half > 0 && both[half] == ' ' {
		return side(both[half+1:], "b/")
	}
	_, name, _ := strings.Cut(both, " b/")
	return name
}

// side returns the file that a side of a difference names. Git quotes some names, and ends others with a tab.
func side(name, prefix string) string {
	return strings.TrimPrefix(unquoted(strings.TrimSuffix(name, "\t")), prefix)
}

// unquoted undoes git's quotes.
func unquoted(name string) string {
	if plain, err := strconv.Unquote(name); err == nil && strings.HasPrefix(name, `"`) {
		return plain
	}
	return name
}

// A Hunk is the head of a hunk: the first line and the number of lines on either side. From is the line before on a
// side without lines.
type Hunk struct{ OldFrom, OldLines, NewFrom, NewLines int }

// hunk matches the head of a hunk. Git leaves a count of 1 out.
var hunk = lazy.Regexp(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@`)

// ParseHunk reads the head of a hunk, such as "@@ -1 +1,2 @@ func main".
func ParseHunk(line string) (h Hunk, ok bool) {
	m := hunk().FindStringSubmatch(line)
	if m == nil {
		return h, false
	}
	for i, to := range []*int{&h.OldFrom, &h.OldLines, &h.NewFrom, &h.NewLines} {
		if *to = 1; m[i+1] != "" {
			*to, _ = strconv.Atoi(m[i+1]) // at most nine digits
		}
	}
	return h, true
}

// A Line is a line of a difference. Its numbers are 0 on a side that has no such line.
type Line struct {
	Kind     Kind
	Old, New int
	Text     string // with its sign
}

// A Kind tells whether a line is added, removed or kept.
type Kind string

// The kinds of lines. Other lines, such as the remark that the last line does not end, have the kind "".
const (
	Head    Kind = "hunk"
	Added   Kind = "add"
	Removed Kind = "del"
	Context Kind = "context"
)

// Lines numbers the lines of hunks.
func Lines(hunks string) (lines []Line) {
	var old, now int
	for text := range strings.Lines(hunks) {
		l := Line{Text: strings.TrimSuffix(text, "\n")}
		switch sign := text[0]; {
		case sign == '@':
			h, ok := ParseHunk(text)
			if !ok {
				break
			}
			l.Kind, old, now = Head, h.OldFrom, h.NewFrom
			if h.OldLines == 0 {
				old++
			}
			if h.NewLines == 0 {
				now++
			}
		case sign == '+':
			l.Kind, l.New = Added, now
			now++
		case sign == '-':
			l.Kind, l.Old = Removed, old
			old++
		case sign == ' ' || sign == '\n': // git may leave the space of an empty line out
			l.Kind, l.Old, l.New = Context, old, now
			old, now = old+1, now+1
		}
		lines = append(lines, l)
	}
	return lines
}

// Bounds of binary contents that nobody has to decide on: lines, and bytes of each line.
const (
	binaryLines = 3
	binaryBytes = 200
)

// Prepare marks files with binary contents. It keeps all lines of a file that whole reports. For other binary files
// it keeps the first lines, and says how much is missing. Other files stay as they are.
func Prepare(patch string, whole func(path string) bool) string {
	var b strings.Builder
	for _, f := range Split(patch) {
		n := strings.Count(f.Body, "\x00")
		said := fmt.Sprintf("# %s has binary contents: %s. ", text.VisibleLine(f.Path), text.Count(n, "NUL byte"))
		switch {
		case n == 0:
		case whole(f.Path):
			f.Notes += said + "All of it follows as text.\n"
		default:
			shown, left := beginning(f.Body)
			f.Notes += said + "Its first lines follow as text"
			if f.Body = shown; left > 0 {
				f.Notes += fmt.Sprintf("; %s more are not shown", text.Count(left, "byte"))
			}
			f.Notes += ".\n"
		}
		b.WriteString(f.String())
	}
	return b.String()
}

// beginning returns the first lines of hunks, each cut, and how many bytes are left out.
func beginning(hunks string) (shown string, left int) {
	n := 0
	for line := range strings.Lines(hunks) {
		if n++; n > binaryLines+1 {
			break
		}
		head := text.Head(strings.TrimSuffix(line, "\n"), binaryBytes)
		shown += head + "\n"
	}
	return shown, max(0, len(hunks)-len(shown))
}
