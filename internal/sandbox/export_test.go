package sandbox

// Grants returns the Landlock rules of a policy: r or w, and the path.
func Grants(p Policy, list func(dir string) []string) (words []string) {
	for _, g := range grants(p, list) {
		words = append(words, map[Access]string{ReadOnly: "r", Scratch: "r", Writable: "w"}[g.access]+g.path)
	}
	return words
}
