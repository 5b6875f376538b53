package gate_test

import (
	"testing"

	"ralph"
	"ralph/loop/gate"
)

func TestUnseen(t *testing.T) {
	blob := func(path, from, to string) ralph.Blob { return ralph.Blob{Path: path, From: from, To: to} }
	type change = []ralph.Blob
	added, changed := blob("a_test.go", "", "1"), blob("a_test.go", "1", "2")
	shown := func(b ralph.Blob) []ralph.Approval { return []ralph.Approval{{Files: change{b}}} }
	for _, c := range []struct {
		name     string
		files    change
		merged   []change
		approved []ralph.Approval
		want     bool
	}{
		{"a person's", change{changed}, nil, nil, false},
		{"a session's", change{changed}, []change{{added}}, nil, true},
		{"several sessions'", change{blob("a_test.go", "2", "3")}, []change{{added}, {changed}}, nil, true},
		{"in another order", change{blob("a_test.go", "2", "3")}, []change{{changed}, {added}}, nil, true},
		{"removed", change{blob("a_test.go", "1", "")}, []change{{added}}, nil, true},
		{"a person has edited it since", change{blob("a_test.go", "2", "3")}, []change{{added}}, nil, false},
		{"a session has edited a person's", change{blob("a_test.go", "2", "3")}, []change{{changed}}, nil, false},
		{"another's file beside it", change{changed, blob("b_test.go", "4", "5")}, []change{{added}}, nil, false},
		{"a new file beside it", change{changed, blob("b_test.go", "", "5")}, []change{{added}}, nil, true},
		{"another file of the same content", change{blob("b_test.go", "1", "2")}, []change{{added}}, nil, false},
		{"moved out of a person's file", change{changed}, []change{{added, blob("b_test.go", "4", "5")}}, nil, false},
		{"moved out of a session's file", change{changed}, []change{{blob("b_test.go", "", "4")}, {added, blob("b_test.go", "4", "")}}, nil, true},
		{"a person has seen it", change{changed}, []change{{added}}, shown(added), false},
		{"a person has seen an earlier one", change{blob("a_test.go", "2", "3")}, []change{{added}, {changed}}, shown(added), true},
	} {
		if got := gate.Unseen(c.files, c.merged, c.approved); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
