package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"ralph"
	"ralph/internal/state"
	"ralph/store"
)

// TestFourSessionsAreReadOnAPhone.
func TestFourSessionsAreReadOnAPhone(t *testing.T) {
	t.Parallel()
	needChromium(t)
	s := newShowcase(t, friendly)
	db, err := store.Open(t.Context(), filepath.Join(s.state, state.Database), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d := serveProject(t, s.scriptedProject, "127.0.0.1:0")
	p := newTab(t)
	p.signIn(s.scriptedProject, d)
	unlock, err := state.Lock(s.state) // as a run does; from now on, what this process starts is taken for a session's
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unlock(); err != nil {
			t.Error(err)
		}
	}()
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		run, err := tx.StartRun("", ralph.Limits{MaxSessions: 10, MaxTasks: 10, MaxSeconds: 3600, MaxCostUSD: 5, MaxDayCostUSD: 10, MaxMonthCostUSD: 10, Parallel: 4}, "bubblewrap")
		if err != nil {
			return err
		}
		for number := range 3 {
			id, err := tx.AddTask(ralph.Task{Title: "Reject empty URLs in the bookmark form, as RFC 3986 has it", Priority: 2}, "human")
			if err != nil {
				return err
			}
			start := store.Start{ID: fmt.Sprintf("cccccccc-0000-4000-8000-00000000000%d", number), Task: id, Run: run.ID, Number: number + 1, Snapshot: struct{}{}, Hashes: struct{}{}}
			if _, err := tx.StartSession(start); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	p.look(390, 844, "light")
	p.open(d.url)
	p.sees("all are there", `document.querySelectorAll("li.running").length === 4`)
	p.reads("#sessions-h", "3 of 4")
	p.sees("it is as wide as the screen", "document.documentElement.scrollWidth <= 390")
	s.picture(p, "parallel-phone")
}

// picture leaves a picture of the page if pictures are asked for.
func (s *showcase) picture(p *tab, name string) {
	p.t.Helper()
	dir := os.Getenv("RALPH_TEST_SCREENSHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600)
	}
	if err != nil {
		p.t.Error(err)
	}
}
