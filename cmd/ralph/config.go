package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"ralph/internal/config"
)

func newConfig(a *app) *cobra.Command {
	var every bool
	show := newCommand("show", func(cmd *cobra.Command, _ []string) error {
		p, err := a.project(cmd.Context())
		if err != nil {
			return err
		}
		values := p.Config.Values()
		return a.print(values, func(w io.Writer) {
			for _, v := range values {
				if !every && v.Source == "default" && !slices.Contains(config.Common, v.Key) {
					continue
				}
				fmt.Fprintf(w, "%-28s %-34s %s\n", v.Key, v.Value, v.Source)
			}
			if !every {
				fmt.Fprintln(w, "`ralph config --all` shows every key")
			}
		})
	})
	get := newCommand("get KEY", func(cmd *cobra.Command, args []string) error {
		p, err := a.project(cmd.Context())
		if err != nil {
			return err
		}
		v, err := p.Config.Get(args[0])
		if err != nil {
			return err
		}
		return a.say(v, "%v", v.Value)
	})
	schema := newCommand("schema", func(*cobra.Command, []string) error {
		b, err := config.Schema()
		if err != nil {
			return err
		}
		_, err = a.out.Write(b)
		return err
	})
	cmd := noun("config", show, get, schema)
	cmd.RunE = show.RunE
	for _, c := range []*cobra.Command{cmd, show} {
		c.Flags().BoolVar(&every, "all", false, "show every key, not only those that people set")
	}
	return cmd
}
