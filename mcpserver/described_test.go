package mcpserver

import (
	"fmt"
	"slices"
	"testing"

	"ralph"
)

// TestDescribedValues checks that the values listed in tools.json are the accepted ones.
func TestDescribedValues(t *testing.T) {
	texts := func(list []any) (texts []string) {
		for _, v := range list {
			texts = append(texts, fmt.Sprint(v))
		}
		return texts
	}
	var kinds, phases []string
	for _, k := range ralph.CommentKinds {
		kinds = append(kinds, string(k))
	}
	for _, p := range ralph.ReportedPhases {
		phases = append(phases, string(p))
	}
	for _, tt := range []struct {
		tool, field string
		want        []string
	}{
		{"comment_on_task", "kind", kinds},
		{"list_task_comments", "kind", kinds},
		{StateTool, "state", phases},
	} {
		if got := texts(describedTools()[tt.tool].Input.Properties[tt.field].Enum); !slices.Equal(got, tt.want) {
			t.Errorf("%s of %s: %q, want %q", tt.field, tt.tool, got, tt.want)
		}
	}
}
