package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// enumerated matches a usage that lists the accepted values.
var enumerated = regexp.MustCompile("`[A-Z]+`[^:(]*: [a-z.]+(, [a-z.]+)* or [a-z]+")

// TestEveryFlagWithKnownValuesCompletes walks the flags of all commands. A flag takes free text by the word in its usage,
// or the shell completes it.
func TestEveryFlagWithKnownValuesCompletes(t *testing.T) {
	t.Parallel()
	free := []string{
		"TEXT", "FILE", "DIR", "GLOB", "COMMAND", "TIME", "USD", "N", "CRITERION", "TITLE", "WORDS", "WINDOW", "CRON", "ADDRESS",
		"NUMBER", "JSON", "STATE", "USER",
	}
	ids := []string{"run", "priority"} // that have a number for their word
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			word, usage := pflag.UnquoteUsage(f)
			if f.Value.Type() == "bool" || f.Hidden || cmd.Hidden || f.Name == "name" {
				return
			}
			known := !slices.Contains(free, word) && strings.ToUpper(word) == word || slices.Contains(ids, f.Name) ||
				enumerated.MatchString(f.Usage)
			if _, completes := cmd.GetFlagCompletionFunc(f.Name); known && !completes {
				t.Errorf("%s --%s %s has no completion: %s", cmd.CommandPath(), f.Name, word, usage)
			}
		})
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(newRoot(&app{out: io.Discard, err: io.Discard}))
}
