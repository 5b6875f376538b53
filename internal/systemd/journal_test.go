package systemd_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"testing"

	"ralph/internal/systemd"
)

func TestTheJournalGetsPrioritiesAndNoTimes(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(systemd.NewHandler(&out))
	log.Debug("not shown")
	log.Info("decided", "session", "s 1")
	log.With("task", 3).Warn("odd")
	log.WithGroup("git").Error("two\nlines", "time", "kept")
	log.Log(context.Background(), slog.LevelError+4, "worse")
	want := `<6>msg=decided session="s 1"
<4>msg=odd task=3
<3>msg="two\nlines" git.time=kept
<3>msg=worse
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestOnlyTheJournalIsTheJournal(t *testing.T) {
	for _, stream := range []string{"", "1:2", "nonsense"} {
		t.Setenv("JOURNAL_STREAM", stream)
		if systemd.Journalled(os.Stderr) || systemd.Journalled(os.Stdout) || systemd.Journalled(&bytes.Buffer{}) {
			t.Errorf("JOURNAL_STREAM=%s makes any output the journal", stream)
		}
	}
}
