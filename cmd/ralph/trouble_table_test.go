package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/inbox"
	"ralph/internal/machine"
	"ralph/internal/notify"
	"ralph/internal/show"
	"ralph/internal/term"
	"ralph/loop/order"
	"ralph/store"
)

// TestEachTroubleIsInInboxStatusAndNotification causes each problem that stops a night, and looks for it and its remedy
// in all three places.
func TestEachTroubleIsInInboxStatusAndNotification(t *testing.T) {
	t.Parallel()
	set := func(kind, command string) func(tx *store.Tx) error {
		return func(tx *store.Tx) error {
			return tx.SetTrouble(store.Trouble{Kind: kind, What: "it failed at night", Command: command})
		}
	}
	ends := func(status int) func(tx *store.Tx) error {
		return func(tx *store.Tx) error {
			r, err := tx.StartRun("", ralph.Limits{}, "")
			if err != nil {
				return err
			}
			return tx.EndRun(r.ID, status, "it failed at night")
		}
	}
	stopped, leave := machine.Join()
	leave()
	for name, c := range map[string]struct {
		happens func(tx *store.Tx) error
		command string
		told    notify.Type // "" if nothing that is stored can tell of it
	}{
		"a full disk": {func(*store.Tx) error { return nil }, "ralph doctor", ""},
		"a machine that stopped": {func(tx *store.Tx) error {
			_, err := tx.StartRun(stopped, ralph.Limits{}, "")
			return err
		}, "ralph run", ""},
		"merge.after":             {set(store.TroubleAfter, "ralph show 7"), "ralph show 7", notify.TroubleFound},
		"a receiver":              {set(store.TroubleNotify, "ralph notify"), "ralph notify", notify.TroubleFound},
		"the second receiver":     {set(store.TroubleNotify+"-2", "ralph notify"), "ralph notify", notify.TroubleFound},
		"a forge":                 {set(store.TroubleForge, "ralph doctor"), "ralph doctor", notify.TroubleFound},
		"a run that cannot begin": {set(store.TroubleRun, "ralph doctor"), "ralph doctor", notify.TroubleFound},
		"a run that cannot store": {ends(ralph.ExitFailure), "ralph doctor", notify.RunEnded},
		"a refused configuration": {ends(ralph.ExitUsage), "ralph doctor", notify.RunEnded},
		"refused credentials":     {ends(ralph.ExitAgent), "ralph doctor", notify.AgentUnavailable},
		"a limit":                 {ends(ralph.ExitLimit), "ralph run", notify.LimitReached},
		"merging that is paused":  {func(tx *store.Tx) error { return tx.PauseMerging("it failed at night") }, "ralph resume --merging", notify.TroubleFound},
		"a branch that is not fit": {func(tx *store.Tx) error {
			return tx.NoteBehind(ralph.TargetBehind{Branch: "main", Reason: "it failed at night", Command: "git merge x"})
		}, "git merge x", notify.TroubleFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ralph.db"), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			says := "it failed at night"
			switch name {
			case "a full disk":
				db.NoRoom = func() string { return "it failed at night: o'clock" }
			case "a machine that stopped":
				says = "did not end by itself"
			}
			var items []store.InboxItem
			var status show.StatusView
			var events []ralph.Event
			err = db.Tx(t.Context(), func(tx *store.Tx) error {
				if err := c.happens(tx); err != nil {
					return err
				}
				if items, err = inbox.All(tx); err != nil {
					return err
				}
				if status, err = show.ReadStatus(tx, order.Midnight, ralph.Time{}, nil); err != nil {
					return err
				}
				events, err = tx.Events(0, 99)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(items) != 1 || !strings.Contains(items[0].Command(), c.command) {
				t.Errorf("the inbox has %+v", items)
			}
			var out bytes.Buffer
			show.Status(&out, term.Screen{Columns: 80}, status, false)
			if said := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(said, says) || !strings.Contains(said, c.command) {
				t.Errorf("status says:\n%s", &out)
			}
			if c.told == "" {
				return
			}
			told := map[notify.Type]string{}
			for _, e := range events {
				notes, err := notify.From(e, notify.About{})
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range notes {
					told[n.Type] += n.Data.Text + " " + n.Data.Command
				}
			}
			if !strings.Contains(told[c.told], "it failed at night") || !strings.Contains(told[c.told], c.command) {
				t.Errorf("people are told %q", told)
			}
		})
	}
}
