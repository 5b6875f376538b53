package watch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ralph/loop/agent"
)

// TestALongTranscriptIsShownFromItsEnd at once, with the contents of its first line, and then as it grows.
func TestALongTranscriptIsShownFromItsEnd(t *testing.T) {
	t.Parallel()
	s := &Queue{State: t.TempDir()}
	path := filepath.Join(s.State, "sessions", "s", agent.TranscriptFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	say := func(text string) string {
		return `{"type":"assistant","message":{"content":[{"type":"text","text":"` + text + `"}]}}` + "\n"
	}
	long := `{"type":"system","subtype":"init","model":"m","claude_code_version":"1"}` + "\n" + strings.Repeat(say("old "+strings.Repeat("x", 1000)), 3*maxWatched/1000) + say("new")
	if err := os.WriteFile(path, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	texts := func() (list []string) {
		entries, err := s.Read(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			list = append(list, strings.TrimRight(e.Text, "x"))
		}
		return list
	}
	got := texts()
	if got[0] != "claude 1, model m" || got[1] != "… (`ralph session log` has all of it)" || got[2] != "old " || got[len(got)-1] != "new" {
		t.Errorf("got %d entries: %q … %q", len(got), got[:3], got[len(got)-1])
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(say("newer"))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if got := texts(); len(got) != 1 || got[0] != "newer" {
		t.Errorf("got %q", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
