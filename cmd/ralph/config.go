package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ralph/internal/config"
)

func newConfig(a *app) *cobra.Command {
	show := &cobra.Command{
		Use: "show", Short: "Show every setting and where it came from", Example: "  ralph config show", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.showConfig(cmd) },
	}
	get := &cobra.Command{
		Use: "get KEY", Short: "Print one setting", Example: "  ralph config get limits.max_sessions", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.project(cmd.Context())
			if err != nil {
				return err
			}
			v, err := p.config.Get(args[0])
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) error { _, err := fmt.Fprintln(w, v.Value); return err })
		},
	}
	schema := &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of ralph.yaml", Example: "  ralph config schema > ralph.schema.json", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b, err := config.Schema()
			if err != nil {
				return err
			}
			_, err = a.out.Write(b)
			return err
		},
	}
	cmd := noun("config", "Show the configuration", show, get, schema)
	cmd.RunE = show.RunE
	return cmd
}

func (a *app) showConfig(cmd *cobra.Command) error {
	p, err := a.project(cmd.Context())
	if err != nil {
		return err
	}
	values := p.config.Values()
	return a.print(values, func(w io.Writer) error {
		for _, v := range values {
			if _, err := fmt.Fprintf(w, "%-28s %-34s %s\n", v.Key, v.Value, v.Source); err != nil {
				return err
			}
		}
		return nil
	})
}
