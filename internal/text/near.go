package text

import "strings"

// Distance returns the Levenshtein distance of two texts in bytes, cut off for texts that differ much in length.
func Distance(a, b string) int {
	if len(a) > 2*len(b)+4 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Near returns the known word closest to a mistyped one: at most two letters differ, ignoring case; "" for none.
func Near(typed string, known []string) (word string) {
	best := 3
	for _, k := range known {
		if d := Distance(strings.ToLower(typed), strings.ToLower(k)); d < best && d < len(k) {
			best, word = d, k
		}
	}
	return word
}
