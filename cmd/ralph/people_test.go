package main

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestEveryCommandReadsOrDecides: no command is forgotten, and each deciding one has advice for sessions.
func TestEveryCommandReadsOrDecides(t *testing.T) {
	root := newRoot(&app{out: &bytes.Buffer{}, err: &bytes.Buffer{}})
	unknown := maps.Clone(powers)
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			check(sub)
		}
		name := strings.TrimPrefix(c.CommandPath(), "ralph ")
		if _, ok := powers[name]; ok && c.HasSubCommands() && c.RunE != nil {
			delete(unknown, name) // it does something of its own, too
		}
		if c.HasSubCommands() || c.IsAdditionalHelpTopicCommand() || name == "help" || strings.HasPrefix(name, "completion ") {
			return
		}
		if long, ok := shortcuts[name]; ok {
			name = long
		}
		if _, ok := powers[name]; !ok {
			t.Errorf("`ralph %s` is not in the table of who may give it", name)
		}
		delete(unknown, name)
	}
	check(root)
	for name := range unknown {
		t.Errorf("the table names `ralph %s`, which does not exist", name)
	}
	for _, flags := range []map[string]string{readsAfterAll, decidesAfterAll} {
		for name, flag := range flags {
			cmd, _, err := root.Find(strings.Fields(name))
			if err != nil || cmd.Flags().Lookup(flag) == nil {
				t.Errorf("`ralph %s` has no flag --%s", name, flag)
			}
		}
	}
}
