package transcript

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"ralph/internal/text"
)

// Limits of what is shown of a call.
const (
	maxLine  = 200      // characters of a line
	maxDiff  = 24       // lines of an edit
	maxSide  = 64 << 10 // bytes of each side of an edit that are compared
	maxPairs = 6        // fields of a tool that is not known
)

// toolName is a tool as people know it: ralph's without what Claude puts before it.
func toolName(name string) string {
	if own, ok := strings.CutPrefix(name, "mcp__ralph__"); ok {
		name = strings.TrimPrefix(own, "ralph_")
	}
	return text.Short(name, 60)
}

// input are the fields of tools' inputs that matter.
type input struct {
	Command    string
	Background bool   `json:"run_in_background"`
	FilePath   string `json:"file_path"`
	Notebook   string `json:"notebook_path"`
	Offset     int
	Limit      int
	Path       string
	Pattern    string
	Content    string
	NewSource  string `json:"new_source"`
	edit
	Edits       []edit
	Subagent    string `json:"subagent_type"`
	Description string
	Prompt      string
	Todos       []struct{ Content, Status string }
}

type edit struct {
	Old string `json:"old_string"`
	New string `json:"new_string"`
	All bool   `json:"replace_all"`
}

// call is what matters of a tool call.
func (r *Reader) call(b block, depth int) Entry {
	e := Entry{Kind: Tool, Depth: depth, Tool: toolName(b.Name)}
	var in input
	_ = json.Unmarshal(b.Input, &in) // what cannot be read is shown as it is
	switch {
	case in.Command != "":
		e.Text = text.Short(in.Command, maxLine)
		if in.Background {
			e.Text += " (in the background)"
		}
	case in.FilePath != "" || in.Notebook != "":
		e.Text = text.Short(r.relative(in.FilePath+in.Notebook), maxLine)
		if in.Offset > 0 {
			e.Text += fmt.Sprintf(" from line %d", in.Offset)
		}
		if in.All {
			e.Text += " (every occurrence)"
		}
		e.Diff = in.diff()
	case in.Pattern != "":
		e.Text = text.Short(in.Pattern+" "+r.relative(in.Path), maxLine)
	case in.Subagent != "" || in.Prompt != "" && in.Description != "":
		e.Text = text.Short(in.Subagent+" "+in.Description, maxLine)
	case in.Todos != nil:
		e.Text = todos(in)
	default:
		e.Text = fields(b.Input)
	}
	return e
}

// relative is a path as seen from where the agent works.
func (r *Reader) relative(file string) string {
	if rest, ok := strings.CutPrefix(file, r.dir+"/"); ok && path.IsAbs(r.dir) {
		return rest
	}
	return file
}

func todos(in input) string {
	done, now := 0, ""
	for _, t := range in.Todos {
		switch t.Status {
		case "completed":
			done++
		case "in_progress":
			now = "; now: " + t.Content
		}
	}
	return text.Short(fmt.Sprintf("%d of %d done%s", done, len(in.Todos), now), maxLine)
}

// telling are the fields of which one says it all, in this order.
var telling = []string{"summary", "reason", "question", "what", "text", "on", "state", "subject", "url", "query", "body", "description", "prompt"}

// fields is what matters of the input of a tool that is not known.
func fields(raw json.RawMessage) string {
	var all map[string]any
	if json.Unmarshal(raw, &all) != nil {
		return text.Short(string(raw), maxLine)
	}
	for _, name := range telling {
		if s, ok := all[name].(string); ok && s != "" {
			return text.Short(s, maxLine)
		}
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch v := all[name].(type) {
		case string, float64, bool:
			if len(pairs) == maxPairs {
				return text.Short(strings.Join(append(pairs, "…"), " "), maxLine)
			}
			pairs = append(pairs, fmt.Sprintf("%s=%v", text.Head(name, 40), v))
		}
	}
	return text.Short(strings.Join(pairs, " "), maxLine)
}

// diff is what a call changes in a file.
func (in input) diff() []string {
	var lines []string
	for _, e := range append([]edit{in.edit}, in.Edits...) {
		if lines != nil && (e.Old != "" || e.New != "") {
			lines = append(lines, "…")
		}
		lines = append(lines, e.lines()...)
	}
	lines = append(lines, edit{New: in.Content + in.NewSource}.lines()...)
	if n := len(lines) - maxDiff; n > 1 {
		lines = append(lines[:maxDiff], "… "+text.Count(n, "more line"))
	}
	return lines
}

// lines compare the two sides, with what is around a change.
func (e edit) lines() (lines []string) {
	if e.Old == "" || e.New == "" {
		sign, text := "+", e.New
		if e.New == "" {
			sign, text = "-", e.Old
		}
		if text == "" {
			return nil
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			lines = append(lines, sign+" "+indented(line))
		}
		return lines
	}
	// The library wants whole lines, and begins with four of its own.
	unified := string(diff.Diff("", []byte(text.Head(e.Old, maxSide)+"\n"), "", []byte(text.Head(e.New, maxSide)+"\n")))
	for n, line := range strings.Split(strings.TrimSuffix(unified, "\n"), "\n") {
		switch {
		case n < 4:
		case line[0] == '@':
			lines = append(lines, "…")
		default:
			lines = append(lines, line[:1]+" "+indented(line[1:]))
		}
	}
	return lines
}
