package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"ralph/store"
)

// TestADecisionIsMadeOnce: the second of two equal forms, or of two persons, changes nothing and gets the reason.
func TestADecisionIsMadeOnce(t *testing.T) {
	t.Parallel()
	s, n := newNight(t)
	ids := map[string]int64{}
	s.write(func(tx *store.Tx) error {
		list, err := tx.InboxPart(nil, 200, 0)
		for _, i := range list {
			ids[i.Kind] = i.Ref.ID
		}
		return err
	})
	ada, bob := s.browser().signIn(), s.browser().signIn()
	last := func() (id int64) {
		s.write(func(tx *store.Tx) (err error) { id, err = tx.LastEvent(); return err })
		return id
	}
	for _, form := range [][]string{
		{"/permissions/1/decide", "verdict", "allow"},
		{"/amendments/1/decide", "verdict", "approve"},
		{"/tasks/51/approve"},
		{"/tasks/52/reject", "text", "no"},
		{fmt.Sprintf("/comments/%d/resolve", ids["tests changed"]), "verdict", "approve"},
		{fmt.Sprintf("/comments/%d/resolve", ids["nack"]), "verdict", "approve"},
		{fmt.Sprintf("/comments/%d/answer", ids["question"]), "text", "eu-1"},
		{fmt.Sprintf("/comments/%d/resolve", ids["flag"]), "text", "mended"},
		{fmt.Sprintf("/tasks/%d/retry", n.Failed[0])},
		{fmt.Sprintf("/tasks/%d/cancel", n.Failed[1])},
		{"/inbox/many", "item", fmt.Sprintf("TASK-%d TASK-%d", n.Failed[2], n.Failed[3]), "verdict", "retry"},
	} {
		if w := ada.post(form[0], form[1:]...); w.Code != http.StatusSeeOther {
			t.Errorf("%q: %d\n%s", form, w.Code, w.Body)
			continue
		}
		before := last()
		for _, b := range []*browser{ada, bob} {
			w := b.post(form[0], form[1:]...)
			if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), `class="flash bad"`) {
				t.Errorf("%q again: %d\n%s", form, w.Code, w.Body)
			}
		}
		if after := last(); after != before {
			t.Errorf("%q again: %d events", form, after-before)
		}
	}
}
