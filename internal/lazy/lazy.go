// Package lazy makes values when they are first used. ralph is started for each command, session and connection of an
// agent, and compiling all its regular expressions took half the time of a start.
package lazy

import (
	"regexp"
	"strings"
	"sync"
)

// Regexp returns a function that compiles a regular expression when it is first called; then it returns the same one.
// Several expressions are alternatives. The function panics if the expression is wrong.
func Regexp(alternatives ...string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(strings.Join(alternatives, "|")) })
}
