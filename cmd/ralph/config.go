package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"ralph/internal/config"
	"ralph/internal/term"
)

func newConfig(a *app) *cobra.Command {
	var every bool
	cmd := newCommand("config [show|get|schema] [KEY]", func(cmd *cobra.Command, args []string) error {
		what := append(args, "show")[0]
		if !slices.Contains([]string{"show", "get", "schema"}, what) {
			return usage(fmt.Errorf("there is no `ralph config %s`; settings are lines in ralph.yaml, and `ralph config --all` "+
				"lists every key", what))
		}
		if (what == "get") != (len(args) == 2) {
			return usage(errors.New("a KEY belongs to `ralph config get KEY`, and to that alone"))
		}
		if what == "schema" {
			b, err := config.Schema()
			if err != nil {
				return err
			}
			_, err = a.out.Write(b)
			return err
		}
		p, err := a.project(cmd.Context())
		if err != nil {
			return err
		}
		if what == "get" {
			v, err := p.Config.Get(args[1])
			if err != nil {
				return err
			}
			return a.say(v, "%v", v.Value)
		}
		values := p.Config.Values()
		return a.print(values, func(w io.Writer) {
			t := term.Table{Head: []string{"KEY", "VALUE", "FROM"}, Flex: 1}
			for _, v := range values {
				if every || v.Source != "default" || slices.Contains(config.Common, v.Key) {
					t.Rows = append(t.Rows, []string{v.Key, fmt.Sprint(v.Value), v.Source})
				}
			}
			a.screen().Table(w, t)
			if !every {
				fmt.Fprintln(w, "`ralph config --all` shows every key")
			}
		})
	})
	cmd.Flags().BoolVar(&every, "all", false, "show every key")
	return cmd
}
