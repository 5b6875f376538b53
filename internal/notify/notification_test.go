package notify_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/notify"
)

var noon = ralph.At(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))

func event(kind, payload string) ralph.Event {
	return ralph.Event{ID: 7, Type: kind, TaskID: 3, SessionID: "s", RunID: 2, Created: noon, Payload: json.RawMessage(payload)}
}

func TestNotificationsOfEachEvent(t *testing.T) {
	tests := []struct {
		name  string
		event ralph.Event
		want  []string // type: title | text | command
	}{
		{
			"a blocking question", event(ralph.EventType(ralph.SignalGiven{}), `{"verb":"ask","commentId":9,"payload":{"question":"red or blue?","blocking":true,"options":["red","blue"],"preferred":"blue"}}`),
			[]string{"question.asked: TASK-3 asks: Paint it | red or blue?\n- red\n- blue (preferred) | ralph answer Q9 TEXT"},
		},
		{
			"a question that holds nothing up", event(ralph.EventType(ralph.SignalGiven{}), `{"verb":"ask","commentId":9,"payload":{"question":"red?","blocking":false}}`),
			[]string{"question.asked: TASK-3 asks: Paint it | red?\nThe work goes on meanwhile. | ralph answer Q9 TEXT"},
		},
		{
			"an agent's question in the discussion", event(ralph.EventType(ralph.CommentAdded{}), `{"taskId":3,"commentId":9,"kind":"question","authorKind":"agent","authorId":"x"}`),
			[]string{"question.asked: TASK-3 asks: Paint it | why? | ralph comment 3 TEXT --reply-to 9"},
		},
		{
			"a request for permission", event(ralph.EventType(ralph.PermissionAsked{}), `{"permissionId":6,"tool":"Bash","input":"{\"command\":\"npm publish\"}","expires":"2026-11-20T12:30:00.000Z"}`),
			[]string{"permission.asked: TASK-3 waits for your permission: Paint it | Bash: npm publish | ralph approve P6, or ralph reject P6"},
		},
		{"a person's question", event(ralph.EventType(ralph.CommentAdded{}), `{"commentId":9,"kind":"question","authorKind":"human"}`), nil},
		{"an agent's note", event(ralph.EventType(ralph.CommentAdded{}), `{"commentId":9,"kind":"note","authorKind":"agent"}`), nil},
		{
			"a blocking flag", event(ralph.EventType(ralph.SignalGiven{}), `{"verb":"flag","commentId":9,"payload":{"what":"the roof leaks","severity":"blocking","category":"bug"}}`),
			[]string{"flag.blocking: TASK-3 flags a blocking problem: Paint it | bug: the roof leaks | ralph comment 3 TEXT"},
		},
		{"a flag that is a warning", event(ralph.EventType(ralph.SignalGiven{}), `{"verb":"flag","commentId":9,"payload":{"what":"x","severity":"warning","category":"bug"}}`), nil},
		{"another signal", event(ralph.EventType(ralph.SignalGiven{}), `{"verb":"done","commentId":9,"payload":{"summary":"x"}}`), nil},
		{
			"a task that failed", event(ralph.EventType(ralph.TaskStatusChanged{}), `{"from":"in_progress","to":"failed","reason":"stuck"}`),
			[]string{"task.failed: TASK-3 failed: Paint it | stuck | ralph task retry 3"},
		},
		{
			"a task that completed", event(ralph.EventType(ralph.TaskStatusChanged{}), `{"from":"in_progress","to":"completed","reason":"done"}`),
			[]string{"task.completed: TASK-3 completed: Paint it | done | "},
		},
		{
			"a task that waits for people", event(ralph.EventType(ralph.TaskStatusChanged{}), `{"from":"in_progress","to":"blocked","reason":"waits","waits":{"blockers":1,"tasks":[4]}}`),
			[]string{"task.blocked: TASK-3 is blocked: Paint it | waits | ralph inbox"},
		},
		{"a task that waits for another task alone", event(ralph.EventType(ralph.TaskStatusChanged{}), `{"from":"pending","to":"blocked","reason":"waits","waits":{"tasks":[4]}}`), nil},
		{"a task that is queued again", event(ralph.EventType(ralph.TaskStatusChanged{}), `{"from":"blocked","to":"pending","reason":""}`), nil},
		{
			"a long wait for the agent", event(ralph.EventType(ralph.RunWaiting{}), `{"reason":"rate limit: x","until":"2026-11-20T15:00:00.000Z","agent":true}`),
			[]string{"agent.unavailable: The agent is unavailable | rate limit: x\nThe run waits until " +
				time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC).Local().Format("15:04") + ", and goes on by itself. | ralph status"},
		},
		{"a short wait for the agent", event(ralph.EventType(ralph.RunWaiting{}), `{"reason":"x","until":"2026-11-20T12:04:59.000Z","agent":true}`), nil},
		{"a wait for the evening", event(ralph.EventType(ralph.RunWaiting{}), `{"reason":"x","until":"2026-11-20T22:00:00.000Z","agent":false}`), nil},
		{"a wait without an end", event(ralph.EventType(ralph.RunWaiting{}), `{"reason":"x","until":null,"agent":false}`), nil},
		{
			"the end of a run", event(ralph.EventType(ralph.RunEnded{}), `{"exit_status":0,"reason":"nothing is left to do","sessions":4,"tasks":3,"cost_usd":1.5}`),
			[]string{"run.ended: Run 2 ended | nothing is left to do\n4 sessions on 3 tasks, $1.50, exit status 0 | ralph inbox"},
		},
		{
			"a limit", event(ralph.EventType(ralph.RunEnded{}), `{"exit_status":5,"reason":"r","sessions":4,"tasks":3,"cost_usd":1.5}`),
			[]string{"run.ended: Run 2 ended | r\n4 sessions on 3 tasks, $1.50, exit status 5 | ralph run", "limit.reached: Run 2 reached a limit | r\n4 sessions on 3 tasks, $1.50, exit status 5 | ralph run"},
		},
		{
			"no agent", event(ralph.EventType(ralph.RunEnded{}), `{"exit_status":6,"reason":"r"}`),
			[]string{"run.ended: Run 2 ended | r\n0 sessions on 0 tasks, $0.00, exit status 6 | ralph doctor", "agent.unavailable: The agent cannot be used | r\n0 sessions on 0 tasks, $0.00, exit status 6 | ralph doctor"},
		},
		{
			"a trouble", event(ralph.EventType(ralph.TroubleFound{}), `{"kind":"merge.after","what":"make deploy failed","command":"ralph show 7"}`),
			[]string{"trouble.found: Trouble: make deploy failed | make deploy failed | ralph show 7"},
		},
		{
			"merging that is paused", event(ralph.EventType(ralph.QueuePaused{}), `{"reason":"the merged result fails"}`),
			[]string{"trouble.found: Merging is paused | the merged result fails | ralph resume --merging"},
		},
		{
			"a branch that lacks merged work", event(ralph.EventType(ralph.TargetBehind{}), `{"branch":"main","reason":"your edits in a","command":"git merge x"}`),
			[]string{"trouble.found: Not on main yet | your edits in a | git merge x"},
		},
		{"a branch that has caught up", event(ralph.EventType(ralph.TargetBehind{}), `{"branch":"main","reason":""}`), nil},
		{"an event of no interest", event(ralph.EventType(ralph.SessionStarted{}), `{"reason":5}`), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			notes, err := notify.From(tt.event, notify.About{Project: "house", TaskTitle: "Paint it", Comment: "why?"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range notes {
				got = append(got, fmt.Sprintf("%s: %s | %s | %s", n.Type, n.Data.Title, n.Data.Text, n.Data.Command))
				if n.Timestamp != noon || n.Data.EventID != 7 || n.Data.Project != "house" {
					t.Errorf("got %+v", n)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPayloadThatCannotBeReadIsAnError(t *testing.T) {
	if notes, err := notify.From(event(ralph.EventType(ralph.RunEnded{}), `{"exit_status":"x"}`), notify.About{}); err == nil || notes != nil {
		t.Errorf("got %v, %v", notes, err)
	}
}

// TestIDs checks that the same news has the same id, and other news another one, as receivers expect.
func TestIDs(t *testing.T) {
	ended := event(ralph.EventType(ralph.RunEnded{}), `{"exit_status":5}`)
	other := ended
	other.ID++
	elsewhere := ended
	elsewhere.Created = ralph.At(noon.Add(time.Millisecond))
	seen := map[string]bool{}
	for _, e := range []ralph.Event{ended, other, elsewhere} {
		first, err := notify.From(e, notify.About{Project: "a", TaskTitle: "b"})
		if err != nil {
			t.Fatal(err)
		}
		again, err := notify.From(e, notify.About{Project: "renamed", TaskTitle: "c"})
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range first {
			if n.ID != again[i].ID {
				t.Errorf("%s became %s", n.ID, again[i].ID)
			}
			if seen[n.ID] {
				t.Errorf("%s is there twice", n.ID)
			}
			seen[n.ID] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("got %d ids", len(seen))
	}
}

func TestTheConfigurationAcceptsAllEvents(t *testing.T) {
	for _, k := range config.Keys() {
		for _, item := range k.Items {
			var want []string
			switch item.Name {
			case "events":
				for _, e := range notify.Types {
					want = append(want, string(e))
				}
			case "preset":
				for _, p := range []notify.Preset{notify.Generic, notify.Slack, notify.Discord, notify.Telegram, notify.Ntfy} {
					want = append(want, string(p))
				}
			}
			if want != nil && !slices.Equal(item.Accepted, want) {
				t.Errorf("%s accepts %q, want %q", item.Name, item.Accepted, want)
			}
		}
	}
}
