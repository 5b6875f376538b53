package main

import (
	"runtime/debug"
	"strings"
)

// release is ralph's version. make dist takes its file names from it.
const release = "0.1.0"

// version returns the version with the commit and its date, such as "0.1.0 (9080eb50cd12, 2026-11-28)".
func version(info *debug.BuildInfo) string {
	var commit, date, changed string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.time":
			date, _, _ = strings.Cut(s.Value, "T")
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	if commit == "" {
		return release + " (unknown commit)"
	}
	return release + " (" + commit + changed + ", " + date + ")"
}

// built returns the version of this program.
func built() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return version(info)
}
