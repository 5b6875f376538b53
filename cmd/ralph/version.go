package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version returns the module's version, or the commit that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

func newVersion(a *app) *cobra.Command {
	return newCommand("version", func(*cobra.Command, []string) error {
		v := map[string]string{"version": version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}
		return a.say(v, "ralph %s (%s %s/%s)", v["version"], v["go"], v["os"], v["arch"])
	})
}
