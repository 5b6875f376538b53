package watch_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"ralph"
	"ralph/internal/advice"
	"ralph/internal/inbox"
	"ralph/internal/transcript"
	"ralph/internal/watch"
	"ralph/store"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A fake is a source with a test's data.
type fake struct {
	snapshot watch.Snapshot
	entries  []transcript.Entry
	acted    []watch.Action
	change   string // lines of held changes
	number   int    // last followed
	looks    int
	err      error
}

func (f *fake) Snapshot(_ context.Context, number int) (watch.Snapshot, error) {
	f.number = number
	f.looks++
	return f.snapshot, f.err
}

func (f *fake) Read(context.Context, string) ([]transcript.Entry, error) {
	e := f.entries
	f.entries = nil
	return e, nil
}

func (f *fake) Change(context.Context, store.InboxItem) (string, error) { return f.change, nil }

func (f *fake) Act(_ context.Context, a watch.Action) (string, error) {
	f.acted = append(f.acted, a)
	if a.Text == "refuse" || strings.HasSuffix(fmt.Sprint(a.Commands), "refuse]]") {
		return "", errors.New("it is answered already")
	}
	return "done: " + a.Do, nil
}

// A screen drives a model as the library does.
type screen struct {
	t     *testing.T
	model tea.Model
	quit  bool
	later []chan tea.Msg
}

func show(t *testing.T, f *fake, width, height int) *screen {
	t.Helper()
	s := &screen{t: t, model: watch.New(t.Context(), f)}
	t.Cleanup(func() { time.Sleep(time.Minute) }) // what only lets time pass comes to its end
	s.send(tea.WindowSizeMsg{Width: width, Height: height})
	s.do(s.model.Init())
	return s
}

func (s *screen) send(msg tea.Msg) {
	var cmd tea.Cmd
	s.model, cmd = s.model.Update(msg)
	s.do(cmd)
}

// do carries out a command of the model. The message of a timer comes later, by pass. The tests have a time of their own,
// which passes when there is nothing else to do.
func (s *screen) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	out := make(chan tea.Msg, 1)
	go func() { out <- cmd() }()
	select {
	case msg := <-out:
		s.take(msg)
	case <-time.After(time.Millisecond): // a tick, or the blinking of a cursor
		s.later = append(s.later, out)
	}
}

func (s *screen) take(msg tea.Msg) {
	switch msg := msg.(type) {
	case tea.QuitMsg:
		s.quit = true
	case tea.BatchMsg:
		for _, cmd := range msg {
			s.do(cmd)
		}
	case nil:
	default:
		s.send(msg)
	}
}

// pass lets time pass, and handles the messages of timers.
func (s *screen) pass(d time.Duration) {
	time.Sleep(d)
	later := s.later
	s.later = nil
	for _, out := range later {
		select {
		case msg := <-out:
			s.take(msg)
		default:
			s.later = append(s.later, out)
		}
	}
}

// inTime is a subtest with a time of its own.
func inTime(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func (s *screen) press(keys ...string) {
	for _, k := range keys {
		switch k {
		case "enter":
			s.send(tea.KeyPressMsg{Code: tea.KeyEnter})
		case "esc":
			s.send(tea.KeyPressMsg{Code: tea.KeyEscape})
		case "up":
			s.send(tea.KeyPressMsg{Code: tea.KeyUp})
		case "down":
			s.send(tea.KeyPressMsg{Code: tea.KeyDown})
		case "pgdown":
			s.send(tea.KeyPressMsg{Code: tea.KeyPgDown})
		case "pgup":
			s.send(tea.KeyPressMsg{Code: tea.KeyPgUp})
		default:
			for _, r := range k {
				s.send(tea.KeyPressMsg{Code: r, Text: string(r)})
			}
		}
	}
}

func (s *screen) text() string {
	lines := strings.Split(ansi.Strip(s.model.View().Content), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func at(minute, second int) ralph.Time {
	return ralph.At(time.Date(2026, 3, 1, 22, minute, second, 0, time.UTC))
}

// item returns an item that waits.
func item(i store.InboxItem) watch.Waiting {
	i.Item, i.Commands = inbox.Of(i)
	return watch.Waiting{InboxItem: i}
}

// decide returns the action of a command.
func decide(command ...string) watch.Action {
	return watch.Action{Do: "decide", Commands: [][]string{command}}
}

// of is a reference.
func of(id int64) store.Reference { return store.Reference{ID: id} }

// running returns a run in the middle of a session.
func running() *fake {
	exit := 3
	return &fake{
		snapshot: watch.Snapshot{
			At: at(42, 7), Project: "shop", Running: true, State: "running", Since: at(1, 0), Exit: &exit,
			Sessions: 3, MaxSessions: 100, CostUSD: 1.2, MaxCostUSD: 50, DayUSD: 4.5, MaxDayUSD: 100, SessionUSD: 10,
			Task: ralph.Task{ID: 12, Title: "Reject empty URLs in the bookmark form"}, ContextUsed: 92_000, ContextSize: 200_000, SpentUSD: 0.8,
			Session: &ralph.Session{ID: "s", Attempt: 2, State: "testing", History: []ralph.PhaseChange{
				{State: "idle", Timestamp: at(30, 0)}, {State: "analyzing", Timestamp: at(30, 2)}, {State: "implementing", Timestamp: at(33, 0)}, {State: "testing", Timestamp: at(41, 20)},
			}},
			Merged: 12, Failed: 1,
			Windows: []ralph.UsageWindow{{Name: "five_hour", Utilization: 0.45}, {Name: "seven_day", Utilization: 0.83}}, MaxWindow: map[string]int{"five_hour": 80},
			Counts: map[string]int{"queued": 3, "running": 1, "needs_you": 1, "merged": 12},
			Queue:  []ralph.Task{{ID: 13, Title: "Import bookmarks"}, {ID: 15, Title: "Export bookmarks"}, {ID: 16, Title: "Show favicons"}},
			Waiting: []watch.Waiting{
				item(store.InboxItem{Kind: "question", TaskID: 9, Ref: of(31), Text: "Sync or async?", Holding: true}),
				item(store.InboxItem{Kind: "failed", TaskID: 4, Text: "stuck 3 times"}),
				item(store.InboxItem{Kind: "proposal", TaskID: 17, Title: "Verify the chain", Text: "Verify the chain"}),
			},
		},
		entries: []transcript.Entry{
			{Kind: transcript.Start, Text: "claude 2.1.197, model claude-sonnet-5"},
			{Kind: transcript.Text, Text: "I look at the form first. It has a validator already, which accepts the empty text; I will make it refuse that, with a message."},
			{Kind: transcript.Tool, Tool: "Read", Text: "src/form/url.ts"},
			{Kind: transcript.Tool, Tool: "Edit", Text: "src/form/url.ts", Diff: []string{"- return true", "+ return url !== \"\""}},
			{Kind: transcript.Tool, Tool: "Bash", Text: "npm test"},
			{Kind: transcript.Error, Tool: "Bash", Text: "1 failing\nexpected false to be true", Seconds: 12},
			{Kind: transcript.Told, Text: "A person (ann) has just commented on your task: mind unicode"},
		},
	}
}

func empty() *fake { return &fake{snapshot: watch.Snapshot{At: at(0, 0), Project: "shop"}} }

func failed() *fake {
	exit := 3
	return &fake{snapshot: watch.Snapshot{
		At: at(50, 0), Project: "shop", State: "ended", Reason: "failed: TASK-5", Exit: &exit,
		Morning: []string{"11 done, 1 failed, 2 waiting for you: 14 sessions on 12 tasks, $4.50, 49m0s", "ended: failed: TASK-5 (exit status 3)", "changed: 11 commits on main, 30 files (+900 -120)"}, Since: at(1, 0),
		Counts:  map[string]int{"failed": 1, "merged": 2},
		Merging: []string{"merging: TASK-3 + TASK-6 on main, verifying for 41s", "TASK-7 Rename it waits for its merge (3 of 4)", "TASK-8 Move it waits for its merge (4 of 4)", "main is 2 commits ahead of your checkout (your edits in app.go): git merge --ff-only refs/ralph/target/main"},
		Waiting: []watch.Waiting{item(store.InboxItem{Kind: "failed", TaskID: 5, Text: "done was refused: `make test` exits 2; refused 3 times"})},
	}}
}

func waiting() *fake {
	return &fake{snapshot: watch.Snapshot{
		At: at(10, 0), Project: "shop", Running: true, State: "waiting", Reason: "rate limited: the usage window five_hour is used up", Until: at(55, 30), Since: at(1, 0),
		Sessions: 2, MaxSessions: 10, CostUSD: 0.4, MaxCostUSD: 5, Counts: map[string]int{"queued": 2}, Queue: []ralph.Task{{ID: 1, Title: "One"}},
	}}
}

// long returns a session that has gone on for hours, with everything that breaks screens.
func long() *fake {
	f := running()
	f.snapshot.Task.Title = "\x1b[2J\u202eHostile " + strings.Repeat("title ", 60)
	f.snapshot.Waiting[0].InboxItem.Text = strings.Repeat("漢字", 80) + "\n\x07"
	for i := range 300 {
		f.entries = append(f.entries, transcript.Entry{Kind: transcript.Tool, Tool: "Bash", Text: fmt.Sprintf("step %d", i)})
	}
	f.entries = append(f.entries, transcript.Entry{Kind: transcript.Text, Text: strings.Repeat("word ", 100) + strings.Repeat("x", 1000)})
	return f
}

// parallel are four sessions: the second is followed and the last is free.
func parallel() *fake {
	f := running()
	of := func(n int, id int64, title string, state ralph.Phase, since ralph.Time) advice.Session {
		return advice.Session{
			Number: n, Task: ralph.Task{ID: id, Title: title},
			Session: &ralph.Session{ID: fmt.Sprint("s", n), State: state, StartedAt: since, Number: n},
		}
	}
	verifies := of(3, 40, "Rename Frob to what it is called in the documentation", "testing", at(41, 30))
	verifies.Session.Checking, verifies.Session.CheckingSince = "make test", at(41, 50)
	f.snapshot.Parallel = []advice.Session{
		of(1, 31, "Add the parser", "implementing", at(30, 0)), of(2, 12, f.snapshot.Task.Title, "testing", at(30, 0)), verifies,
		{Number: 4, Idle: "$0.30 are left that no session in progress may spend"},
	}
	f.snapshot.Session.ID = "s2"
	return f
}

// eight has eight sessions at work and a flag that blocks. The last session stands still.
func eight() *fake {
	f := parallel()
	for n := 4; n <= 8; n++ {
		l, s := f.snapshot.Parallel[0], *f.snapshot.Parallel[0].Session
		s.ID, s.Number = fmt.Sprint("s", n), n
		l.Number, l.Task.ID, l.Session, l.Still = n, int64(50+n), &s, n == 8
		f.snapshot.Parallel = append(f.snapshot.Parallel[:n-1], l)
	}
	f.snapshot.Waiting = append([]watch.Waiting{
		item(store.InboxItem{Kind: "permission", TaskID: 58, Ref: of(7), Session: "s8", Text: `Bash {"command":"npm publish"}`}),
		item(store.InboxItem{Kind: "flag", TaskID: 2, Ref: of(8), Severity: "blocking", Sort: "security", Text: "SSRF in fetch_title()"}),
	}, f.snapshot.Waiting...)
	return f
}

func TestScreens(t *testing.T) {
	for name, data := range map[string]func() *fake{"running": running, "empty": empty, "failed": failed, "waiting": waiting, "long": long, "parallel": parallel, "eight": eight} {
		for _, size := range [][2]int{{80, 24}, {100, 30}, {120, 40}, {200, 50}, {40, 12}} {
			inTime(t, fmt.Sprintf("%s_%dx%d", name, size[0], size[1]), func(t *testing.T) {
				s := show(t, data(), size[0], size[1])
				content := s.model.View().Content
				lines := strings.Split(content, "\n")
				if len(lines) != size[1] {
					t.Errorf("%d lines, want %d", len(lines), size[1])
				}
				for i, l := range lines {
					if w := ansi.StringWidth(l); w > size[0] {
						t.Errorf("line %d is %d wide, want at most %d: %q", i+1, w, size[0], l)
					}
				}
				if stripped := ansi.Strip(content); strings.ContainsAny(stripped, "\x1b\x07\u202e\t\r") {
					t.Errorf("what an agent wrote steers the terminal: %q", stripped)
				}
				golden := filepath.Join("testdata", filepath.Base(t.Name())+".golden")
				got := s.text()
				if *update {
					if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil || got != string(want) {
					t.Errorf("not as in %s (%v):\n%s", golden, err, got)
				}
			})
		}
	}
}

func TestEachStateHasItsIconAndColour(t *testing.T) { synctest.Test(t, eachStateHasItsIconAndColour) }

func eachStateHasItsIconAndColour(t *testing.T) {
	for phase, want := range map[ralph.Phase]string{
		"idle": "\x1b[2m○ idle", "analyzing": "\x1b[34m◐ analyzing", "implementing": "\x1b[33m◑ implementing", "testing": "\x1b[36m◒ testing",
		"committing": "\x1b[32m◓ committing", "reviewing": "\x1b[35m◔ reviewing",
	} {
		f := running()
		f.snapshot.Session.History = []ralph.PhaseChange{{State: phase, Timestamp: at(41, 0)}}
		if content := show(t, f, 100, 30).model.View().Content; !strings.Contains(content, want) {
			t.Errorf("%q is not in\n%q", want, content)
		}
	}
}

func (s *screen) has(texts ...string) {
	s.t.Helper()
	for _, want := range texts {
		if !strings.Contains(s.text(), want) {
			s.t.Errorf("%q is not shown:\n%s", want, s.text())
		}
	}
}

// TestPermissionsComeFirst on the screen, in full before the decision.
func TestPermissionsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := running()
		ask := item(store.InboxItem{Kind: "permission", TaskID: 12, Ref: of(7), Text: "Bash {\"command\":\"npm publish \u202e\"}", Expires: ralph.At(f.snapshot.At.Add(27 * time.Minute))})
		others := f.snapshot.Waiting
		f.snapshot.Waiting = append([]watch.Waiting{ask}, others...)
		s := show(t, f, 80, 24)
		if !strings.HasPrefix(s.text(), "⏸ needs you now: TASK-12 stands still  answers itself with deny in 27m00s\n  Bash: npm publish <U+202E>\n  A allow  D deny\n") {
			t.Errorf("it is not the first:\n%s", s.text())
		}
		s.press("D")
		ask.InboxItem.Text = "Bash " + strings.Repeat("word ", 200) + "and the end"
		f.snapshot.Waiting = append([]watch.Waiting{ask}, others...)
		s = show(t, f, 80, 24)
		s.has("Enter shows all 14 lines of it")
		s.press("A") // which shows it first
		s.has("and the end", "A allow  D deny")
		s.press("A")
		if want := []watch.Action{decide("reject", "P7"), decide("approve", "P7")}; fmt.Sprint(f.acted) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", f.acted, want)
		}
	})
}

// TestADraftIsKept for the item that it is about.
func TestADraftIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := running()
		f.snapshot.Waiting = append(f.snapshot.Waiting[:1], item(store.InboxItem{Kind: "question", TaskID: 9, Ref: of(32), Text: "Which port?"}))
		s := show(t, f, 120, 40)
		s.press("a", "perhaps", "esc", "down", "a")
		s.has("Which port?")
		s.press("6379", "enter", "q")
		if fmt.Sprint(f.acted) != fmt.Sprint([]watch.Action{decide("answer", "32", "--", "6379")}) {
			t.Errorf("got %v", f.acted)
		}
		s.press("up", "a")
		s.has("Sync or async?", "> perhaps")
	})
}

// TestAQuestionIsAnsweredInFullView, with its options by number.
func TestAQuestionIsAnsweredInFullView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := running()
		f.snapshot.Waiting[0].InboxItem.Text = strings.Repeat("word ", 100) + "and the end?"
		f.snapshot.Waiting[0].Options = []string{"red", "blue " + strings.Repeat("sky ", 40) + "above"}
		s := show(t, f, 80, 24)
		s.press("o")
		s.has("and the end?", "above", "stuck 3 times", "Verify the chain")
		s.press("esc", "1") // which shows it first
		s.has("and the end?", "1  red", "above", "1-2 choose")
		s.press("1", "q")
		if fmt.Sprint(f.acted) != fmt.Sprint([]watch.Action{decide("answer", "31", "--", "red")}) {
			t.Errorf("got %v", f.acted)
		}
	})
}

// TestRowsAreSelectedAndOpened: a session is followed; an item is shown in full and decided on there.
func TestRowsAreSelectedAndOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := eight()
		f.snapshot.Waiting = f.snapshot.Waiting[1:]
		f.snapshot.Waiting[0].InboxItem.Text = strings.Repeat("word ", 60) + "and the end"
		s := show(t, f, 80, 24)
		s.has("▸ flag TASK-2", "⏸ 8  TASK-58 ", "stands still", "     and 3 more sessions")
		s.press("enter")
		s.has("and the end", "→ ralph resolve C8")
		s.press("esc", "down")
		s.has("▸ question TASK-9")
		s.press("down", "down", "down", "down")
		s.has("▸ proposal TASK-17")
		for range 9 {
			s.press("up")
		}
		s.press("enter")
		if f.number != 2 {
			t.Errorf("session %d is followed, want 2", f.number)
		}
		s.has("↑↓ scroll  Esc back")
		if whole := s.text(); strings.Contains(whole, "queue") || strings.Contains(whole, "▸") {
			t.Errorf("the transcript does not fill the screen:\n%s", whole)
		}
		s.press("up")
		s.has("1 line below")
		s.press("esc")
		s.has("queue", "↑↓ Enter open")
	})
}

// TestEveryKindIsDecidedByTheBrowsersKeys, once it is seen whole: in the panel of a wide screen, or opened.
func TestEveryKindIsDecidedByTheBrowsersKeys(t *testing.T) {
	words := func(key string) []string { return []string{key, "so", "enter"} }
	decided := map[string]map[string]struct { // the command of keys, by kind and action
		keys []string
		want string
	}{
		"permission":    {"": {[]string{"a"}, "approve P9"}, "no": {[]string{"r"}, "reject P9"}},
		"question":      {"": {words("a"), "answer 9 -- so"}, "option": {[]string{"2"}, "answer 9 -- blue"}},
		"merging":       {"": {[]string{"a"}, "resume --merging"}},
		"trouble":       {"": {[]string{"a"}, "approve run"}},
		"blocker":       {"": {words("a"), "resolve 9 -- so"}, "undo": {[]string{"d"}, "undo 7"}},
		"flag":          {"": {words("a"), "resolve 9 -- so"}, "seen": {[]string{"a", "enter"}, "resolve 9"}},
		"tests changed": {"": {[]string{"a"}, "approve C9"}, "no": {words("r"), "reject C9 -- so"}},
		"review":        {"": {[]string{"a"}, "approve C9"}, "no": {[]string{"r", "enter"}, "reject C9"}},
		"nack":          {"": {[]string{"a"}, "approve C9"}, "no": {words("r"), "reject C9 -- so"}},
		"dependency":    {"": {[]string{"a"}, "task retry 9"}, "no": {[]string{"d"}, "task unblock 7 --on 9"}},
		"failed":        {"": {[]string{"a"}, "task retry 7"}, "no": {[]string{"d"}, "task cancel 7"}},
		"claim":         {"": {[]string{"a"}, "chat complete 7"}, "no": {[]string{"d"}, "chat release 7"}},
		"plan":          {"": {[]string{"a"}, "plan approve --feature=T -- A3"}, "no": {words("r"), "plan reject --feature=T --reason=so -- A3"}},
		"amendment":     {"": {[]string{"a"}, "approve A9"}, "no": {words("r"), "reject A9 -- so"}},
		"proposal":      {"": {[]string{"a"}, "approve TASK-7"}, "no": {words("r"), "reject TASK-7 -- so"}},
		"suggestion": {
			"task": {[]string{"a"}, "approve C9 --task"}, "adopt": {[]string{"a"}, "approve C9"}, "": {words("r"), "reject C9 -- so"},
			"split": {words("r"), "reject C9 -- so"},
		},
		"learning": {"": {[]string{"a"}, "approve L9"}, "no": {[]string{"r"}, "reject L9"}},
		"behind":   {"": {[]string{"a"}, ""}}, // by git, in a terminal
	}
	for _, kind := range store.InboxKinds() {
		if decided[kind] == nil {
			t.Errorf("nothing says how %q is decided", kind)
		}
		for action, tt := range decided[kind] {
			for _, width := range []int{80, 120} {
				synctest.Test(t, func(t *testing.T) {
					f := running()
					i := store.InboxItem{
						Kind: kind, TaskID: 7, Ref: of(9), Sort: "run", Title: "T", Text: "so it is", Action: action, Commands: []string{"git merge --ff-only x"},
						Parts: []store.InboxItem{{Item: "A3"}},
					}
					if kind == "question" {
						i.Options = []string{"red", "blue"}
					}
					f.snapshot.Waiting = []watch.Waiting{item(i)}
					s := show(t, f, width, 40)
					s.has("▸ " + kind)
					if width < 110 { // a narrow screen shows it whole first
						s.press("enter")
					}
					s.press(tt.keys...)
					if kind == "behind" {
						s.press("esc", "a")
						s.has("in a terminal: git merge")
					}
					s.press("q")
					got := ""
					for _, a := range f.acted {
						got += strings.Join(a.Commands[0], " ")
					}
					if got != tt.want {
						t.Errorf("%s %s, %d columns: %q, want %q\n%s", kind, action, width, got, tt.want, s.text())
					}
				})
			}
		}
	}
}

// TestADecisionCanBeTakenBack for ten seconds, or until the next one; it is carried out when the screen is left.
func TestADecisionCanBeTakenBack(t *testing.T) {
	retry := decide("task", "retry", "4")
	for name, tt := range map[string]struct {
		keys []string
		wait time.Duration
		want []watch.Action
	}{
		"not yet":             {nil, 9 * time.Second, nil},
		"after ten seconds":   {nil, 11 * time.Second, []watch.Action{retry}},
		"taken back":          {[]string{"u"}, 11 * time.Second, nil},
		"and decided again":   {[]string{"u", "d"}, 11 * time.Second, []watch.Action{decide("task", "cancel", "4")}},
		"the next one":        {[]string{"a"}, 0, []watch.Action{retry}}, // of the proposal below it
		"left":                {[]string{"q"}, 0, []watch.Action{retry}},
		"taken back too late": {[]string{"a", "u", "u"}, 11 * time.Second, []watch.Action{retry}},
	} {
		inTime(t, name, func(t *testing.T) {
			f := running()
			f.snapshot.Waiting = f.snapshot.Waiting[1:]
			s := show(t, f, 120, 40)
			s.press("a")
			s.has("TASK-4: retry; u takes it back", "▸ proposal TASK-17", "u undo")
			s.press(tt.keys...)
			s.pass(tt.wait)
			if fmt.Sprint(f.acted) != fmt.Sprint(tt.want) {
				t.Errorf("got %v, want %v", f.acted, tt.want)
			}
		})
	}
}

// TestEqualItemsAreOneRow, decided together; of equal proposals one is taken up.
func TestEqualItemsAreOneRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := running()
		failed := item(store.InboxItem{Kind: "failed", TaskID: 4, Text: "stuck"})
		failed.Also = []store.InboxItem{item(store.InboxItem{Kind: "failed", TaskID: 5, Text: "stuck"}).InboxItem}
		same := item(store.InboxItem{Kind: "proposal", TaskID: 17, Title: "Verify"})
		same.Also = []store.InboxItem{item(store.InboxItem{Kind: "proposal", TaskID: 18, Title: "Verify"}).InboxItem}
		f.snapshot.Waiting = []watch.Waiting{failed, same}
		s := show(t, f, 120, 40)
		s.has("×2", "of TASK-4, 5")
		s.press("a", "a", "q")
		want := []watch.Action{
			{Do: "decide", Commands: [][]string{{"task", "retry", "4"}, {"task", "retry", "5"}}},
			{Do: "decide", Commands: [][]string{{"approve", "TASK-17"}, {"reject", "TASK-18", "--", "the same as TASK-17"}}},
		}
		if fmt.Sprint(f.acted) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", f.acted, want)
		}
	})
}

// TestAHeldChangeIsSeenBesideItsDecision, and whole before it is decided on.
func TestAHeldChangeIsSeenBesideItsDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := running()
		f.change = "ci.yml\n+on: push\n-on: tag\n"
		f.snapshot.Waiting = []watch.Waiting{item(store.InboxItem{Kind: "review", TaskID: 4, Ref: of(3), Text: "It changes your CI."})}
		s := show(t, f, 120, 40)
		s.has("It changes your CI.", "+on: push", "a approve")
		if !strings.Contains(s.model.View().Content, "\x1b[32m  +on: push") {
			t.Error("what is added is not green")
		}
		f.change = strings.Repeat("+more\n", 60) + "+and the end"
		s = show(t, f, 120, 40)
		s.has("lines more: Enter")
		s.press("a") // which shows it whole
		s.press("pgdown", "pgdown")
		s.has("+and the end")
		s.press("a", "q")
		if fmt.Sprint(f.acted) != fmt.Sprint([]watch.Action{decide("approve", "C3")}) {
			t.Errorf("got %v", f.acted)
		}
	})
}

// TestTheSelectedItemIsAlwaysInView, with its keys in the last line.
func TestTheSelectedItemIsAlwaysInView(t *testing.T) {
	for name, data := range map[string]func() *fake{"1": running, "4": parallel, "8": eight} {
		for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}} {
			inTime(t, fmt.Sprintf("%s sessions %dx%d", name, size[0], size[1]), func(t *testing.T) {
				f := data()
				for n := range int64(30) {
					f.snapshot.Waiting = append(f.snapshot.Waiting, item(store.InboxItem{Kind: "failed", TaskID: 100 + n, Text: "stuck"}))
				}
				s := show(t, f, size[0], size[1])
				for n := range f.snapshot.Waiting {
					w := f.snapshot.Waiting[n]
					s.has(fmt.Sprintf("▸ %s TASK-%d ", w.Kind, w.TaskID), "a ")
					s.press("down")
				}
			})
		}
	}
}

// TestADecisionIsAboutTheItemInView: if the request ends while a person reads it, no other one takes its place.
func TestADecisionIsAboutTheItemInView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := running()
		ask := item(store.InboxItem{Kind: "permission", TaskID: 12, Ref: of(7), Text: "npm publish"})
		other := item(store.InboxItem{Kind: "permission", TaskID: 13, Ref: of(8), Text: "rm -r build"})
		f.snapshot.Waiting = []watch.Waiting{ask, other}
		s := show(t, f, 80, 24)
		s.press("enter")
		s.has("npm publish", "a allow  r deny")
		f.snapshot.Waiting = []watch.Waiting{other}
		s.do(s.model.Init())
		s.has("it does not wait for you any more")
		s.press("A")
		if len(f.acted) > 0 {
			t.Errorf("something else was decided: %v", f.acted)
		}
	})
}

// TestANoteLeavesTheKeysWhereTheyAre in the last line.
func TestANoteLeavesTheKeysWhereTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := show(t, empty(), 80, 24)
		lines := strings.Split(strings.TrimSpace(s.text()), "\n")
		keys := lines[len(lines)-1]
		s.press("p")
		s.has("no run is active\n" + keys)
		if len(keys) == 0 || strings.Contains(keys, "…") {
			t.Errorf("the keys do not fit: %q", keys)
		}
	})
}

func TestKeys(t *testing.T) { synctest.Test(t, keys) }

func keys(t *testing.T) {
	f := running()
	s := show(t, f, 100, 30)
	s.press("c")
	s.has("\ncomment on TASK-12 >")
	s.press("mind IPv6", "enter")
	s.has("done: comment")
	s.press("enter", "a")
	s.has("Sync or async?", "Q31: your answer >")
	s.press("refuse", "enter", "p")
	s.pass(11 * time.Second)
	s.has("it is answered already", "question TASK-9")
	s.press("s")
	s.has("stop this session and go on with another task? y/n")
	s.press("n")
	s.has("nothing was done")
	s.press("s", "y", "x", "y")
	s.press("c", "never sent", "esc", "c")
	s.has("comment on TASK-12 > never sent")
	s.send(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}) // leaves the input, and not the screen
	s.press("c")
	s.has("comment on TASK-12 > never sent")
	s.send(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl})
	s.press("enter")
	s.has("nothing was sent")
	want := []watch.Action{
		{Do: "comment", ID: 12, Text: "mind IPv6"}, {Do: "pause"}, decide("answer", "31", "--", "refuse"), {Do: "skip", Text: "s"}, {Do: "stop"},
	}
	if fmt.Sprint(f.acted) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", f.acted, want)
	}
	f.snapshot.Control = "stop"
	show(t, f, 100, 30).has("ends after this session")
	f.snapshot.Control = "pause"
	s = show(t, f, 100, 30)
	s.has("pauses after this session")
	s.press("p")
	if last := f.acted[len(f.acted)-1]; last.Do != "resume" {
		t.Errorf("a pause that has not begun cannot be taken back: %v", last)
	}
	f.snapshot.State = "paused"
	s = show(t, f, 100, 30)
	s.has("paused")
	s.press("p")
	if last := f.acted[len(f.acted)-1]; last.Do != "resume" {
		t.Errorf("got %v", last)
	}
	s.press("?")
	s.has("skip: stop this session")
	s.send(tea.WindowSizeMsg{Width: 80, Height: 30})
	if all := s.text(); strings.Contains(all, "…") {
		t.Errorf("80 columns have no room for\n%s", all)
	}
	s.press("z")
	s.has("queue")
	s.press("q")
	if !s.quit {
		t.Error("q does not leave")
	}
}

func TestAWorkersSessionSaysWhoseItIs(t *testing.T) { synctest.Test(t, aWorkersSessionSaysWhoseItIs) }

func aWorkersSessionSaysWhoseItIs(t *testing.T) {
	f := running()
	f.entries, f.snapshot.Session.Worker, f.snapshot.ContextUsed = nil, "codex", 0
	s := show(t, f, 100, 30)
	s.has("attempt 2, worker codex", "a worker's words are not seen here")
	if strings.Contains(s.text(), "of $10.00") {
		t.Errorf("a worker has no such limit:\n%s", s.text())
	}
}

func TestScrollingBackAndFiltering(t *testing.T) { synctest.Test(t, scrollingBackAndFiltering) }

func scrollingBackAndFiltering(t *testing.T) {
	s := show(t, long(), 80, 24)
	s.press("g")
	s.has("claude 2.1.197", "lines below, G the newest")
	s.press("G", "pgup")
	s.has("12 lines below")
	s.press("/", "step 29", "enter")
	s.has("→ Bash step 29", "→ Bash step 299", "filter: step 29")
	if strings.Contains(s.text(), "step 28 ") {
		t.Error("the filter lets other lines through")
	}
	s.press("/")
	for range 10 {
		s.send(tea.KeyPressMsg{Code: tea.KeyBackspace})
	}
	s.press("nowhere", "enter")
	s.has(`nothing has "nowhere" in it`)
}

func TestInputIsVisibleOnTheSmallestScreen(t *testing.T) {
	synctest.Test(t, whatIsWrittenIsSeenOnTheSmallestScreen)
}

func whatIsWrittenIsSeenOnTheSmallestScreen(t *testing.T) {
	for height := 3; height <= 16; height++ {
		s := show(t, running(), 40, height)
		s.press("c", "mind IPv6")
		s.has("comment on TASK-12 > mind IPv6")
		s = show(t, running(), 20, height)
		s.press("c", "mind IPv6")
		s.has("> mind IPv6")
	}
}

// TestNothingIsDecidedUnseen on a small screen: a permission is read first, and a confirmation shows its subject whole.
func TestNothingIsDecidedUnseen(t *testing.T) { synctest.Test(t, nothingIsDecidedUnseen) }

func nothingIsDecidedUnseen(t *testing.T) {
	for height := 3; height <= 16; height++ {
		f := running()
		f.snapshot.Waiting = []watch.Waiting{item(store.InboxItem{Kind: "permission", TaskID: 12, Ref: of(7), Text: "run x"})}
		s := show(t, f, 20, height)
		if seen := strings.Contains(s.text(), "run x"); !seen {
			s.press("A")
		}
		s.has("run x")
		s.press("A")
		if len(f.acted) != 1 {
			t.Errorf("%d lines: what was seen and allowed came to %v", height, f.acted)
		}
		s = show(t, running(), 20, max(height, 5))
		s.press("x")
		s.has("y/n")
	}
}

func TestWithoutARunKeysSayWhy(t *testing.T) { synctest.Test(t, withoutARunKeysSayWhy) }

func withoutARunKeysSayWhy(t *testing.T) {
	s := show(t, empty(), 80, 24)
	for key, want := range map[string]string{"c": "no session is running", "a": "nothing waits for you", "p": "no run is active", "s": "no session is running", "x": "no run is active"} {
		s.press(key)
		s.has(want)
	}
	s = show(t, &fake{err: errors.New("database is gone")}, 80, 24)
	s.has("database is gone")
}

// TestHowOftenAScreenLooks: seldom while nothing moves, at once when something changes, and never more often for keys
// that look by themselves.
func TestHowOftenAScreenLooks(t *testing.T) {
	session := &ralph.Session{ID: "s", Number: 1}
	sessions := []advice.Session{{Number: 1, Session: session}, {Number: 2, Session: session}}
	for _, tt := range []struct {
		name     string
		snapshot watch.Snapshot
		change   bool // something changes after 31 seconds
		keys     int  // that follow another session, at the beginning
		looks    int  // in 61 seconds
	}{
		{"nothing moves", watch.Snapshot{}, false, 0, 7},
		{"something changes", watch.Snapshot{}, true, 0, 8},
		{"a session works", watch.Snapshot{Session: session}, false, 0, 123},
		{"a run waits for a time", watch.Snapshot{Until: ralph.At(time.Now())}, false, 0, 123},
		{"a permission is denied soon", watch.Snapshot{Waiting: []watch.Waiting{{InboxItem: store.InboxItem{Expires: ralph.At(time.Now())}}}}, false, 0, 123},
		{"somebody goes from session to session", watch.Snapshot{Session: session, Parallel: sessions}, false, 20, 143},
	} {
		inTime(t, tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f := &fake{snapshot: tt.snapshot}
			changed := make(chan struct{})
			f.snapshot.Changed = changed
			var model tea.Model = watch.New(ctx, f)
			msgs := make(chan tea.Msg)
			do := func(cmd tea.Cmd) {
				if cmd != nil {
					go func() {
						select {
						case msgs <- cmd():
						case <-ctx.Done():
						}
					}()
				}
			}
			do(model.Init())
			over, half := time.After(61*time.Second+time.Millisecond), time.After(31*time.Second)
			for keys := tt.keys; ctx.Err() == nil; {
				var cmd tea.Cmd
				select {
				case <-over:
					cancel()
				case <-half:
					if tt.change {
						f.snapshot.Changed = make(chan struct{})
						close(changed)
					}
				case msg := <-msgs:
					model, cmd = model.Update(msg)
					do(cmd)
					if keys > 0 {
						keys--
						model, cmd = model.Update(tea.KeyPressMsg{Code: tea.KeyTab})
						do(cmd)
					}
				}
			}
			synctest.Wait()
			if f.looks != tt.looks {
				t.Errorf("%d looks in 61 seconds, want %d", f.looks, tt.looks)
			}
		})
	}
}
