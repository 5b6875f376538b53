package doctor

import (
	"regexp"

	"ralph/internal/secret"
)

// Public returns findings for a bug report: without secrets, and with ~ for the home directory.
func Public(findings []Finding, mask *secret.Mask, home string) []Finding {
	clean := mask.Text
	if len(home) > 1 {
		path := regexp.MustCompile(`(^|[^\w/])` + regexp.QuoteMeta(home) + `(\W|$)`)
		clean = func(s string) string { return path.ReplaceAllString(mask.Text(s), "${1}~${2}") }
	}
	list := make([]Finding, len(findings))
	for i, f := range findings {
		list[i] = Finding{clean(f.Check), f.OK, clean(f.Found), clean(f.Mend)}
	}
	return list
}
