package inbox

import (
	"bufio"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"ralph/internal/term"
	"ralph/store"
)

// reader returns the lines of a text, one by one, and then calls end.
type reader struct {
	lines []string
	end   func() error
}

// Read reads a line.
func (r *reader) Read(p []byte) (int, error) {
	if len(r.lines) == 0 {
		return 0, r.end()
	}
	n := copy(p, r.lines[0]+"\n")
	r.lines = r.lines[1:]
	return n, nil
}

// TestHeldDecisions: a decision that can still be taken back is carried out however the dialogue ends, but not
// if another person has decided meanwhile.
func TestHeldDecisions(t *testing.T) {
	failed := store.InboxItem{Kind: "failed", TaskID: 1, Item: "TASK-1"}
	flag := store.InboxItem{Kind: "flag", TaskID: 2, Item: "C3", Ref: store.Reference{Of: store.OfComment, ID: 3}}
	merged, question := flag, flag
	merged.Action = "undo"
	question.Kind = "question"
	for _, tt := range []struct {
		name   string
		typed  string
		cut    bool // it is interrupted; else the input ends
		before store.InboxItem
		after  []store.InboxItem // once the person has decided
		want   string            // the command; "" for none
	}{
		{"the input ends", "d", false, failed, []store.InboxItem{failed}, "task cancel 1"},
		{"it is interrupted", "d", true, failed, []store.InboxItem{failed}, "task cancel 1"},
		{"another person has retried the task", "d", false, failed, nil, ""},
		{"the flag's task is merged", "d", false, merged, []store.InboxItem{merged}, "undo 2"},
		{"another person has undone the flag's task", "d", false, merged, []store.InboxItem{flag}, ""},
		{"another person has answered, as the command tells", "blue", false, question, nil, "answer 3 -- blue"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			list := []store.InboxItem{tt.before}
			in := &reader{[]string{tt.typed}, func() error {
				if !tt.cut {
					return io.EOF
				}
				cancel()
				<-t.Context().Done()
				return io.EOF
			}}
			var out strings.Builder
			got := ""
			d := Dialogue{
				In: bufio.NewScanner(in), Out: &out, Screen: term.Screen{},
				Inbox:  func(context.Context) ([]store.InboxItem, error) { return slices.Clone(list), nil },
				Change: func(context.Context, store.InboxItem) error { list = tt.after; return nil },
				Do: func(ctx context.Context, args []string) error {
					got = strings.Join(args, " ")
					return ctx.Err()
				},
			}
			if err := d.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if refused := strings.Contains(out.String(), "was decided meanwhile"); got != tt.want || refused != (tt.want == "") {
				t.Errorf("it runs %q, want %q; it prints\n%s", got, tt.want, out.String())
			}
		})
	}
}
