package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph/internal/config"
)

func newConfig(a *app) *cobra.Command {
	show := newCommand("show", func(cmd *cobra.Command, _ []string) error {
		p, err := a.project(cmd.Context())
		if err != nil {
			return err
		}
		values := p.Config.Values()
		return a.print(values, func(w io.Writer) {
			for _, v := range values {
				fmt.Fprintf(w, "%-28s %-34s %s\n", v.Key, v.Value, v.Source)
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
	return cmd
}
