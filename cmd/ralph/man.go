package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan writes the manual pages for a release or a distribution's package.
func newMan(a *app) *cobra.Command {
	cmd := newCommand("man DIR", func(cmd *cobra.Command, args []string) error {
		date := time.Now()
		if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
			n, err := strconv.ParseInt(epoch, 10, 64)
			if err != nil {
				return usage(fmt.Errorf("SOURCE_DATE_EPOCH %q is not a number of seconds", epoch))
			}
			date = time.Unix(n, 0)
		}
		date = date.UTC()
		if err := os.MkdirAll(args[0], 0o755); err != nil {
			return err
		}
		root := cmd.Root()
		root.DisableAutoGenTag = true
		header := &doc.GenManHeader{Section: "1", Date: &date, Source: "ralph " + release, Manual: "ralph"}
		if err := doc.GenManTree(root, header, args[0]); err != nil {
			return fmt.Errorf("manual pages: %w", err)
		}
		_, err := fmt.Fprintf(a.err, "manual pages written to %s\n", args[0])
		return err
	})
	cmd.Hidden = true
	return cmd
}
