package ralph

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// Diff returns the changes of a patch field by field, as lines that begin with "-",
// "+" or " ". Before has the replaced values of the same fields, see [Patch.Of].
func (p Patch) Diff(before Patch) (lines []string) {
	field := func(name string, old, new []string) {
		lines = append(lines, "  "+name)
		lines = append(lines, lineDiff(old, new)...)
	}
	one := func(s *string) []string {
		if s == nil || *s == "" {
			return nil
		}
		return strings.Split(strings.TrimRight(*s, "\n"), "\n")
	}
	if p.Title != nil {
		field("title", one(before.Title), one(p.Title))
	}
	if p.Priority != nil && before.Priority != nil {
		field("priority", []string{strconv.Itoa(*before.Priority)}, []string{strconv.Itoa(*p.Priority)})
	}
	if p.Description != nil {
		field("description", one(before.Description), one(p.Description))
	}
	if p.Contracts == nil || before.Contracts == nil {
		return lines
	}
	for _, part := range []struct {
		name     string
		old, new *[]string
	}{
		{"acceptance", before.Contracts.Acceptance, p.Contracts.Acceptance},
		{"verify", before.Contracts.Verify, p.Contracts.Verify},
	} {
		if part.new != nil && part.old != nil {
			field(part.name, folded(*part.old), folded(*part.new))
		}
	}
	return lines
}

// folded returns each text as a single line.
func folded(list []string) []string {
	lines := make([]string, len(list))
	for i, s := range list {
		lines[i] = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(s)
	}
	return lines
}

// lineDiff marks the lines that only one of two texts has.
func lineDiff(old, new []string) (lines []string) {
	text := func(list []string) string { return strings.Join(append(slices.Clone(list), ""), "\n") }
	d := diffmatchpatch.New()
	was, is, known := d.DiffLinesToRunes(text(old), text(new))
	marks := map[diffmatchpatch.Operation]string{
		diffmatchpatch.DiffEqual: "    ", diffmatchpatch.DiffDelete: "-   ", diffmatchpatch.DiffInsert: "+   ",
	}
	for _, part := range d.DiffCharsToLines(d.DiffMainRunes(was, is, false), known) {
		for line := range strings.SplitSeq(strings.TrimSuffix(part.Text, "\n"), "\n") {
			lines = append(lines, marks[part.Type]+line)
		}
	}
	return lines
}
