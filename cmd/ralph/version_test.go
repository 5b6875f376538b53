package main

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	const revision, at = "9080eb50cd12aa00112233445566778899aabbcc", "2026-11-28T16:27:00Z"
	for want, settings := range map[string][]debug.BuildSetting{
		release + " (unknown commit)":                        nil,
		release + " (9080eb50cd12, 2026-11-28)":              {{Key: "vcs.revision", Value: revision}, {Key: "vcs.time", Value: at}, {Key: "vcs.modified", Value: "false"}},
		release + " (9080eb50cd12 with changes, 2026-11-28)": {{Key: "vcs.revision", Value: revision}, {Key: "vcs.time", Value: at}, {Key: "vcs.modified", Value: "true"}},
	} {
		if got := version(&debug.BuildInfo{Settings: settings}); got != want {
			t.Errorf("%v: %q, want %q", settings, got, want)
		}
	}
}
