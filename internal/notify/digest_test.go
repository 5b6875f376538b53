package notify_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph/internal/notify"
	"ralph/signals"
)

// news returns a notification about a task.
func news(t notify.Type, task int64, title, text string) notify.Notification {
	n := notify.Notification{ID: fmt.Sprint(t, task, title), Type: t}
	n.Data = notify.Data{TaskID: task, Title: title, Text: text, URL: fmt.Sprint("http://box/tasks/", task)}
	return n
}

func TestDigests(t *testing.T) {
	t.Parallel()
	failed := news(notify.TaskFailed, 1, "TASK-1 failed: Hint", "refused 3 times\nand more")
	tests := []struct {
		name    string
		waiting []notify.Notification
		want    []string // type: title | text
	}{
		{"nothing", nil, nil},
		{"one stays as it is", []notify.Notification{failed}, []string{"task.failed: TASK-1 failed: Hint | refused 3 times\nand more"}},
		{
			"several of one type keep it",
			[]notify.Notification{failed, news(notify.TaskFailed, 2, "TASK-2 failed: Lie", "")},
			[]string{"task.failed: 2 failed | TASK-1 failed: Hint (refused 3 times and more)\nTASK-2 failed: Lie"},
		},
		{
			"news of tasks are one, those that need a person before those that do not",
			[]notify.Notification{
				news(notify.TaskCompleted, 3, "TASK-3 completed: Paint", "done and verified"), failed,
				news(notify.TaskBlocked, 4, "TASK-4 is blocked: Key", "waits"), news(notify.FlagBlocking, 4, "TASK-4 flags a blocking problem: Key", "bug"),
				news(notify.QuestionAsked, 5, "TASK-5 asks: Which", "red?"), news(notify.TaskFailed, 2, "TASK-2 failed: Lie", ""),
			},
			[]string{
				"digest: 2 failed, 2 need you, 1 merged | TASK-3 completed: Paint\nTASK-1 failed: Hint (refused 3 times and more)\nTASK-4 is blocked: Key (waits)\n" +
					"TASK-4 flags a blocking problem: Key (bug)\nTASK-5 asks: Which (red?)\nTASK-2 failed: Lie",
			},
		},
		{
			"the end of a run is by itself",
			[]notify.Notification{
				failed, news(notify.RunEnded, 0, "Run 2 ended: 1 failed", "why"), news(notify.TaskFailed, 2, "TASK-2 failed: Lie", ""),
			},
			[]string{"task.failed: 2 failed | TASK-1 failed: Hint (refused 3 times and more)\nTASK-2 failed: Lie", "run.ended: Run 2 ended: 1 failed | why"},
		},
		{
			"other news are counted",
			[]notify.Notification{news(notify.RunEnded, 0, "Run 2 ended", "a"), news(notify.RunEnded, 0, "Run 3 ended: 1 merged", "b")},
			[]string{"run.ended: Run 3 ended: 1 merged (2 times) | Run 2 ended (a)\nRun 3 ended: 1 merged (b)"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			kept := 0
			for _, n := range notify.Digests(tt.waiting, "http://box/") {
				got = append(got, fmt.Sprintf("%s: %s | %s", n.Type, n.Data.Title, n.Data.Text))
				if kept += max(1, len(n.Data.Digest)); len(n.Data.Digest) > 0 && n.Data.URL != "http://box/inbox" {
					t.Errorf("leads to %s", n.Data.URL)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || kept != len(tt.waiting) {
				t.Errorf("has %d of %d: %s", kept, len(tt.waiting), diff)
			}
		})
	}
}

// TestALongDigestNamesEveryTask looks for each of many tasks in the text, however long their titles are.
func TestALongDigestNamesEveryTask(t *testing.T) {
	t.Parallel()
	var waiting []notify.Notification
	for id := range int64(150) {
		waiting = append(waiting, news(notify.TaskFailed, 1000+id, fmt.Sprintf("TASK-%d failed: %s", 1000+id, strings.Repeat("x ", 200)), "why"))
	}
	got := notify.Digests(waiting, "")
	if len(got) != 1 || got[0].Data.Title != "150 failed" {
		t.Fatalf("got %d: %+v", len(got), got)
	}
	for id := range 150 {
		if !strings.Contains(got[0].Data.Text, strconv.Itoa(1000+id)) {
			t.Fatalf("TASK-%d is not in %s", 1000+id, got[0].Data.Text)
		}
	}
}

// TestDigestsAreAMinuteApart asks questions that hold nothing all the time, and one that holds its task in between.
func TestDigestsAreAMinuteApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProject(t)
		defer p.close()
		r := &receiver{}
		n := p.notifier(notify.Receiver{URL: "https://example.com/hook", Preset: notify.Generic})
		over, ended := make(chan struct{}), make(chan error)
		n.Transport, n.Over = r, over
		go func() { ended <- n.Run(t.Context()) }()
		aside := 0
		wonder := func() {
			aside++
			held := false
			if _, err := p.db.Say(t.Context(), p.task, p.session.ID, "agent", signals.Ask{Question: fmt.Sprint("aside ", aside), Blocking: &held}); err != nil {
				t.Fatal(err)
			}
		}
		for range 25 {
			wonder()
			time.Sleep(10 * time.Second)
		}
		p.ask("red or blue?")
		asked := time.Now()
		time.Sleep(time.Second)
		wonder()
		wonder()
		last := time.Now()
		close(over)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		var at []time.Time
		told := 0
		for _, req := range r.got() {
			var n notify.Notification
			if err := json.Unmarshal([]byte(req.body), &n); err != nil {
				t.Fatal(err)
			}
			if n.Data.Blocking != nil && *n.Data.Blocking {
				if !req.at.Equal(asked) {
					t.Errorf("the question was sent %s late", req.at.Sub(asked))
				}
				continue
			}
			at, told = append(at, req.at), told+max(1, len(n.Data.Digest))
		}
		if told != aside || !at[len(at)-1].Equal(last) {
			t.Errorf("%d of %d questions were told of, the last %s late", told, aside, at[len(at)-1].Sub(last))
		}
		for i := range at[:len(at)-2] { // the last one does not wait: nothing more comes
			if gap := at[i+1].Sub(at[i]); gap < time.Minute {
				t.Errorf("digests %d and %d are %s apart", i, i+1, gap)
			}
		}
	})
}
