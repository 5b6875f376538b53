package session

import (
	"strings"
	"testing"

	"ralph"
	"ralph/signals"
)

// TestADeskTakesSoManyObjections and no more, and none that is empty or too long.
func TestADeskTakesSoManyObjections(t *testing.T) {
	t.Parallel()
	d := &desk{changed: signals.Changed{"a.txt": {{From: 1, To: 9}}}}
	o := ralph.Objection{File: "a.txt", Line: 1, What: "wrong", Why: "so", Severity: ralph.ObjectionRemark}
	for _, bad := range []ralph.Objection{
		{File: "a.txt", What: " ", Why: "so"},
		{File: "a.txt", What: strings.Repeat("x", 1<<20), Why: "so"},
		{File: "a.txt", What: "wrong", Why: "a\x00b"},
	} {
		if err := d.object(bad); err == nil {
			t.Errorf("an objection of %d bytes is taken", len(bad.What))
		}
	}
	refused := 0
	for range 1000 {
		if err := d.object(o); err != nil {
			refused++
		}
	}
	if len(d.seen.Objected) != mostObjections || refused != 1000-mostObjections {
		t.Errorf("%d objections are taken, %d refused", len(d.seen.Objected), refused)
	}
}
