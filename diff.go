package ralph

import (
	"strconv"
	"strings"
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

// maxTable limits the size of the comparison table. Longer texts (thousands
// of lines that nearly all differ) are shown as wholly replaced.
const maxTable = 4 << 20

// lineDiff marks the lines that only one of two texts has, based on their
// longest common subsequence.
func lineDiff(old, new []string) (lines []string) {
	head := 0
	for head < len(old) && head < len(new) && old[head] == new[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(new)-head && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
	}
	for _, l := range old[:head] {
		lines = append(lines, "    "+l)
	}
	lines = append(lines, middleDiff(old[head:len(old)-tail], new[head:len(new)-tail])...)
	for _, l := range old[len(old)-tail:] {
		lines = append(lines, "    "+l)
	}
	return lines
}

func middleDiff(old, new []string) (lines []string) {
	length := commonLengths(old, new)
	i, j := 0, 0
	for i < len(old) || j < len(new) {
		switch {
		case length != nil && i < len(old) && j < len(new) && old[i] == new[j]:
			lines = append(lines, "    "+old[i])
			i, j = i+1, j+1
		case i < len(old) && (length == nil || j == len(new) || length[i+1][j] >= length[i][j+1]):
			lines = append(lines, "-   "+old[i])
			i++
		default:
			lines = append(lines, "+   "+new[j])
			j++
		}
	}
	return lines
}

// commonLengths returns, for each pair of lines, the length of the longest
// common subsequence from there on; nil if the table would be too large.
func commonLengths(old, new []string) [][]int {
	if (len(old)+1)*(len(new)+1) > maxTable {
		return nil
	}
	length := make([][]int, len(old)+1)
	for i := range length {
		length[i] = make([]int, len(new)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(new) - 1; j >= 0; j-- {
			if old[i] == new[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	return length
}
