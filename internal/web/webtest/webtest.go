// Package webtest fills a database with one rich night, for tests of screens: fifty tasks of four sessions at once,
// with flags, questions, changed tests, suggestions and a review. Fifteen tasks failed, for three reasons. It uses
// neither an agent nor git.
package webtest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"ralph"
	"ralph/internal/machine"
	"ralph/signals"
	"ralph/store"
)

// A Night is the written data, and the clock it was written by.
type Night struct {
	Running    []string          // ids of the sessions in progress
	Merged     []int64           // tasks
	Failed     []int64           // tasks
	Ended      map[int64]string  // the last session that ended, by task
	Permission int64             // the permission that a paused agent waits for
	Limits     *ralph.Limits     // limits of its runs; nil for high limits
	Morning    time.Time         // its end, where the clock stops; zero for the time of Fill, from which the clock runs
	Files      map[string]string // files of sessions, by "SESSION/transcript", "SESSION/prompt" and "SESSION/diffs"

	db    *store.DB
	ctx   context.Context
	run   ralph.Run
	tasks int
	count int // count of sessions

	mu    sync.Mutex
	at    time.Time // the clock; zero is the real one
	after time.Time // at once Fill has ended
}

// Now is the clock for [store.Options] of the database. Fill moves it; afterwards it stops at Morning, or is the
// real one.
func (n *Night) Now() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.at.IsZero() {
		return time.Now()
	}
	return n.at
}

func (n *Night) pass(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at = n.at.Add(d)
}

func (n *Night) set(at time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at = at
}

// titles are those of the tasks.
var titles = []string{
	"Block private addresses when a title is fetched", "Take links without a scheme", "Two-factor sign-in by TOTP",
	"Export bookmarks as CSV", "Import bookmarks from a browser's file", "Show how often a link was opened",
	"Sort links by their last visit", "Merge duplicate links", "Keep tags when a link is moved",
	"Answer HEAD for short links",
	"Rate-limit sign-in by address", "Rotate the session key each week", "Docs of the parser",
	"Search in titles and tags",
	"Page through long lists by a cursor", "Reject links longer than 2,000 characters", "Strip tracking parameters",
	"Check links for being alive once a day", "Remember the last folder", "Undo deleting a folder", "Print a folder",
	"Share a folder by a secret link", "Dark colours for the reader", "Keyboard shortcuts in lists",
	"Read RSS of a folder",
	"Take pictures of pages", "Store pictures as WebP", "Trim the log to a week", "Warn before a quota is reached",
	"Back up the database each night", "Hash passwords with argon2id", "A Dockerfile of two stages",
	"Health endpoint for probes",
	"Sign in by e-mail link", "Translate messages to German", "Show dates in the reader's zone",
	"Lock accounts after ten failures",
	"Log who shared what", "Send a digest on Mondays", "Serve fonts from the own host",
}

// reasons are those of the tasks that failed.
var reasons = []struct {
	times int
	say   func(n *Night) signals.Payload
}{
	{7, func(*Night) signals.Payload {
		return signals.Stuck{Reason: "the fixture server on :8080 does not answer"}
	}},
	{5, func(*Night) signals.Payload { return signals.Done{Summary: "all green here"} }},
	{3, func(*Night) signals.Payload { return nil }},
}

// commit names one of several commits.
func commit(of string, n int) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, of, n)))[:40]
}

// Fill writes the night into a database that was opened with [Night.Now].
func (n *Night) Fill(ctx context.Context, db *store.DB) error {
	if n.after = n.Morning; n.after.IsZero() {
		n.Morning = time.Now()
	}
	n.ctx, n.db, n.Files, n.Ended = ctx, db, map[string]string{}, map[int64]string{}
	n.set(n.Morning.Add(-9 * time.Hour))
	for _, step := range []func() error{n.queue, n.first, n.second, n.said, n.going} {
		if err := step(); err != nil {
			return err
		}
	}
	n.set(n.after)
	return n.tx(func(tx *store.Tx) error {
		_, err := tx.RenewRun(n.run.ID) // it has done so all the time
		return err
	})
}

func (n *Night) tx(f func(tx *store.Tx) error) error { return n.db.Tx(n.ctx, f) }

// Near are limits that the night's second run is about to reach.
func Near() *ralph.Limits {
	of := limits
	of.MaxSessions, of.MaxSeconds, of.MaxCostUSD, of.Usage = 70, 8*3600, 10, map[string]int{"five_hour": 60}
	return &of
}

// limits are those of the night's runs.
var limits = ralph.Limits{
	MaxSessions: 120, MaxTasks: 100, MaxSeconds: 12 * 3600, MaxCostUSD: 20, MaxDayCostUSD: 40, MaxMonthCostUSD: 400,
	Parallel:       4,
	SessionCostUSD: 4.96, Attempts: 3, SessionSeconds: 2700, IdleSeconds: 900, SessionTurns: 200, StagnantMaximum: 5,
}

// queue adds features and tasks.
func (n *Night) queue() error {
	return n.tx(func(tx *store.Tx) error {
		for _, f := range []ralph.Feature{
			{Name: "links", Description: "Keeping, finding and opening links.", Verify: []string{"npm test"}},
			{Name: "accounts", Description: "Who may see what.", Verify: []string{"npm test"}},
		} {
			if err := tx.PutFeature(f); err != nil {
				return err
			}
		}
		for i := range 50 {
			title := titles[i%len(titles)]
			if i >= len(titles) {
				title += ", second part"
			}
			t := ralph.Task{
				Title: title, Priority: 1 + i%3, Feature: []string{"links", "accounts"}[i%2],
				Description: "As somebody who keeps links I want this: " + strings.ToLower(
					title[:1],
				) + title[1:] + ".\n\nIt has to work with **ten thousand** links.",
				Acceptance: []string{
					"the new behaviour has a test",
					"nothing else changes",
				}, Verify: []string{"npm test"},
			}
			if i == 46 || i == 47 {
				t.DependsOn = []int64{2}
			}
			if _, err := tx.AddTask(t, "human"); err != nil {
				return err
			}
		}
		n.tasks = 50
		return nil
	})
}

// process is the worker: this one, as long as it lives.
var process = sync.OnceValue(func() string {
	identity, _ := machine.Join()
	return identity
})

// begin starts a run; usd is its limit, or 0 for the usual one.
func (n *Night) begin(usd float64) error {
	return n.tx(func(tx *store.Tx) (err error) {
		of := limits
		if n.Limits != nil {
			of = *n.Limits
		}
		of.MaxCostUSD = cmp.Or(usd, of.MaxCostUSD)
		n.run, err = tx.StartRun(process(), of, "bubblewrap")
		return err
	})
}

func (n *Night) end(status int, reason string) error {
	return n.tx(func(tx *store.Tx) error { return tx.EndRun(n.run.ID, status, reason) })
}

// agents are the workers, by turns.
var agents = []struct{ name, model string }{
	{"claude", "opus-5"},
	{"codex", "gpt-5.5"},
	{"claude", "opus-5"},
	{"claude", "sonnet-5"},
}

// start begins a session on a task.
func (n *Night) start(task int64) (id string, err error) {
	n.count++
	id = fmt.Sprintf("%08x-0000-4000-8000-%012x", 0x1a2b3c*n.count, n.count)
	who := agents[n.count%len(agents)]
	err = n.tx(func(tx *store.Tx) error {
		_, err := tx.StartSession(store.Start{
			ID: id, Task: task, Run: n.run.ID, Model: who.model, Agent: who.name, Number: 1 + n.count%4, Of: 4,
			CostLimitUSD: 4.96,
			Snapshot:     struct{}{}, Hashes: struct{}{},
		})
		if err == nil {
			_, err = tx.ReportState(id, ralph.PhaseAnalyzing, nil)
		}
		return err
	})
	return id, err
}

// file returns the file that a session on a task changes.
func file(i int64) (ralph.FileChange, ralph.FileDiff) {
	name := fmt.Sprintf("src/part%02d.js", i)
	diff := "@@ -1,4 +1,6 @@\n \"use strict\";\n-exports.limit = 10;\n+exports.limit = 2000;\n" +
		"+exports.strict = true;\n+exports.zone = \"local\";\n \n module.exports = exports;\n"
	return ralph.FileChange{Path: name, Added: 3, Removed: 1, Status: "modified"}, ralph.FileDiff{Path: name, Diff: diff}
}

// decide ends a session with its last signal, and returns the decision. more changes the facts.
func (n *Night) decide(
	task int64,
	id string,
	last signals.Payload,
	more func(f *signals.Facts),
) (d signals.Decision, err error) {
	for _, p := range []ralph.Phase{ralph.PhaseImplementing, ralph.PhaseTesting} {
		n.pass(90 * time.Second)
		if err := n.tx(func(tx *store.Tx) error { _, err := tx.ReportState(id, p, nil); return err }); err != nil {
			return d, err
		}
	}
	n.pass(40 * time.Second)
	if last != nil {
		if _, err := n.db.Say(n.ctx, task, id, "agent", last); err != nil {
			return d, err
		}
	}
	i := n.count
	changed, lines := file(task)
	test := ralph.FileChange{Path: fmt.Sprintf("test/part%02d.test.js", task), Added: 3, Status: "added"}
	added := "@@ -0,0 +1,3 @@\n+test(\"limit\", () => {\n+  assert.equal(limit, 2000);\n+});\n"
	err = n.tx(func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		f, err := tx.Facts(id)
		if err != nil {
			return err
		}
		f.Ending, f.Changed, f.Merges, f.Head = ralph.Finished, true, true, commit("head", i)
		f.Verify = []ralph.Check{{Command: "npm test", Passed: true, Seconds: 14.2, Tail: "# pass 214\n# fail 0\n"}}
		f.Rules = signals.Rules{StuckLimit: 3, VerifyFailures: 3, Attempts: 3, MaxSentBack: 3, AutoApprove: 5}
		s.Files = []ralph.FileChange{changed, test}
		if more != nil {
			more(&f)
		}
		d = signals.Decide(f)
		s.Ending, s.CostKnown, s.Turns = ralph.Finished, true, 20+i%30
		s.CostUSD = float64(4+i*7%23) / 100
		s.Tokens = ralph.Tokens{
			Input:     int64(9000 + i*311),
			Output:    int64(4000 + i*97),
			CacheRead: int64(400_000 + i*9001),
		}
		s.Verify, s.LastWords = f.Verify, "That is all: the tests are green."
		if !f.Changed {
			s.Files = nil
		} else {
			s.Change = &ralph.Change{Base: strings.Repeat("1", 40), Head: f.Head, Tree: f.Head}
		}
		return tx.Apply(s, f, d)
	})
	diffs, merr := json.Marshal(ralph.Differences{Files: []ralph.FileDiff{lines, {Path: test.Path, Diff: added}}})
	if err == nil {
		err = merr
	}
	n.Files[id+"/diffs"], n.Files[id+"/prompt"] = string(diffs), "# Your task\n\nDo it.\n"
	n.Files[id+"/transcript"], n.Ended[task] = transcript(task), id
	return d, err
}

// transcript returns the transcript of a session on a task.
func transcript(task int64) string {
	var b strings.Builder
	line := func(v any) {
		text, _ := json.Marshal(v)
		b.Write(append(text, '\n'))
	}
	type object = map[string]any
	line(object{"type": "system", "subtype": "init", "claude_code_version": "2.1.197", "model": "opus-5", "cwd": "/p"})
	say := func(content ...any) {
		line(
			object{
				"type": "assistant",
				"message": object{
					"content": content,
					"usage":   object{"input_tokens": 9000, "output_tokens": 700, "cache_read_input_tokens": 61000},
				},
			},
		)
	}
	say(object{"type": "text", "text": "I read the parser and its tests first."})
	say(
		object{
			"type":  "tool_use",
			"id":    "r",
			"name":  "Read",
			"input": object{"file_path": fmt.Sprintf("/p/src/part%02d.js", task)},
		},
	)
	say(
		object{
			"type": "tool_use",
			"id":   "e",
			"name": "Edit",
			"input": object{
				"file_path":  fmt.Sprintf("/p/src/part%02d.js", task),
				"old_string": "exports.limit = 10;",
				"new_string": "exports.limit = 2000;",
			},
		},
	)
	say(object{"type": "tool_use", "id": "b", "name": "Bash", "input": object{"command": "npm test"}})
	line(
		object{
			"type": "user",
			"message": object{
				"content": []any{object{"type": "tool_result", "tool_use_id": "b", "content": "# pass 214"}},
			},
		},
	)
	say(object{"type": "text", "text": "The tests pass; I look at the edge cases now."})
	return b.String()
}

// merge carries a queued change into main.
func (n *Night) merge(task int64, proof *ralph.Proof) error {
	n.pass(20 * time.Second)
	return n.tx(func(tx *store.Tx) error {
		c, _, err := tx.OpenChange(task)
		if err != nil {
			return err
		}
		c.From, c.To, c.Commit = commit("main", int(task)), c.Head, c.Head
		s, err := tx.Session(c.SessionID)
		if err != nil {
			return err
		}
		c.Files = s.Files
		if err := tx.BeginMove(c); err != nil {
			return err
		}
		if err := tx.CompleteChange(c, 0, "main", ""); err != nil {
			return err
		}
		n.Merged = append(n.Merged, task)
		if proof == nil {
			return nil
		}
		return tx.SetProof(c, *proof)
	})
}

// work has a session do a task, and merges it.
func (n *Night) work(task int64) error {
	id, err := n.start(task)
	if err != nil {
		return err
	}
	if _, err := n.decide(task, id, signals.Done{Summary: "Made it, with a test of its own"}, nil); err != nil {
		return err
	}
	proof := &ralph.Proof{Proved: []string{fmt.Sprintf("limit of part %02d", task)}, Tests: true}
	if task%7 == 0 {
		proof = &ralph.Proof{Tests: true}
	}
	return n.merge(task, proof)
}

// first is the run of the evening: it reached its limit.
func (n *Night) first() error {
	if err := n.begin(2.60); err != nil {
		return err
	}
	if err := n.tx(func(tx *store.Tx) error { return tx.SetTarget("main", false) }); err != nil {
		return err
	}
	for task := int64(17); task <= 33; task++ {
		if err := n.work(task); err != nil {
			return err
		}
	}
	n.pass(time.Minute)
	return n.end(ralph.ExitLimit, "the limit of $2.60 per run is reached ($2.65 spent)")
}

// second is the run of the night: fifteen tasks fail for three reasons, and twelve are merged.
func (n *Night) second() error {
	n.pass(10 * time.Minute)
	if err := n.begin(0); err != nil {
		return err
	}
	task := int64(3)
	for _, r := range reasons {
		for range r.times {
			if err := n.fail(task, r.say(n)); err != nil {
				return err
			}
			if task++; task == 17 {
				task = 34 // those of the first run lie between
			}
		}
	}
	for task := int64(35); task <= 46; task++ {
		if err := n.work(task); err != nil {
			return err
		}
	}
	return nil
}

// fail makes three sessions fail on a task.
func (n *Night) fail(task int64, last signals.Payload) error {
	for {
		id, err := n.start(task)
		if err != nil {
			return err
		}
		d, err := n.decide(task, id, last, func(f *signals.Facts) {
			switch last.(type) {
			case signals.Done:
				f.Verify = []ralph.Check{
					{Command: "npm test", Passed: true, Seconds: 14.2, Tail: "# pass 214\n"},
					{
						Command: "npm run lint", Exit: 1, Seconds: 3.1,
						Tail: "src/app.js\n  12:3  error  'zone' is not defined  no-undef\n",
					},
				}
			default:
				f.Changed, f.Untouched, f.Verify, f.Head = false, true, nil, ""
			}
		})
		if err != nil {
			return err
		}
		if d.Status == ralph.Failed {
			n.Failed = append(n.Failed, task)
			return nil
		}
		if d.Status != ralph.Pending {
			return fmt.Errorf("TASK-%d is %s: %s", task, d.Status, d.StatusReason)
		}
	}
}

// said adds waiting questions and flags of agents and people.
func (n *Night) said() error {
	say := func(id string, task int64, p signals.Payload) error {
		_, err := n.db.Say(n.ctx, task, id, "agent", p)
		return err
	}
	// A question that blocks TASK-2, and two others.
	id, err := n.start(2)
	if err == nil {
		err = say(id, 2, signals.Ask{
			Question: "Should `example.com` be taken as https?", Blocking: new(true),
			Options: []string{"yes", "no", "only with --lenient"}, Preferred: "yes",
		})
	}
	if err == nil {
		err = say(
			id,
			2,
			signals.Flag{
				What:     "SSRF: fetch_title() follows redirects to 169.254.169.254",
				Severity: "blocking",
				Category: "security",
			},
		)
	}
	for i, what := range []string{
		"The README names no port", "parse() swallows errors of the clock",
		"a test sleeps for a second", "src/app.js has 3,000 lines",
	} {
		if err == nil {
			err = say(
				id,
				2,
				signals.Flag{
					What:     what,
					Severity: "warning",
					Category: []string{"stale", "bug", "bug", "ambiguity"}[i],
				},
			)
		}
	}
	for range 3 {
		if err == nil {
			err = say(id, 2, signals.Suggest{What: "Test the redirects", Kind: "alternative", Why: "nobody does"})
		}
	}
	if err == nil {
		err = say(
			id,
			2,
			signals.Learned{
				Text:      "Links are stored without a trailing slash.",
				Kind:      "convention",
				Scope:     "project",
				Rationale: "the index is by text",
			},
		)
	}
	if err == nil {
		err = say(id, 2, signals.Partial{Summary: "Half of it is there.", Remaining: "the scheme"})
	}
	if err == nil {
		_, err = n.decide(2, id, nil, nil)
	}
	if err != nil {
		return err
	}
	// A done whose tests were changed waits for approval, after a review.
	if id, err = n.start(50); err != nil {
		return err
	}
	if err := n.review(50, id); err != nil {
		return err
	}
	if _, err := n.decide(50, id, signals.Done{
		Summary:      "Dates are local now",
		TestsChanged: "the task asks for local dates",
	}, func(f *signals.Facts) {
		f.Rules.TestsChanged, f.Rules.Lost = signals.PolicyAsk, signals.PolicyAsk
		f.Evidence.Gate = ralph.Gate{
			Weakened: []ralph.Weakening{{
				Kind: ralph.TestChanged, Test: "dates are UTC", Command: "npm test",
				Why: "it expects UTC, and the change prints local dates",
			}},
			Files: []ralph.Blob{{
				Path: "test/part50.test.js", From: strings.Repeat("a", 40),
				To: strings.Repeat("b", 40),
			}}, Tried: true, Reason: "the task asks for local dates",
		}
	}); err != nil {
		return err
	}
	return n.tx(func(tx *store.Tx) error {
		for _, title := range []string{
			"Follow no redirects to private addresses", "Split src/app.js",
			"Split src/app.js", "Split src/app.js",
		} {
			if _, err := tx.AddTask(ralph.Task{
				Title: title, Description: "It was found on the way.", Status: ralph.Proposed, Origin: ralph.ByAgent,
				Priority: 2,
			}, "agent"); err != nil {
				return err
			}
		}
		for _, c := range []ralph.Comment{
			{
				TaskID: 49, Author: "ada", AuthorKind: ralph.ByHuman, Kind: ralph.Question,
				Body: "Which bucket do pictures go to?",
			},
			{
				TaskID: 20, Author: "ada", AuthorKind: ralph.ByHuman, Kind: ralph.Note,
				Body: "Thank you, this is what I meant.",
			},
			{
				TaskID: 48, Author: "agent", AuthorKind: ralph.ByAgent, Kind: ralph.Nack,
				Body: "WebP is not wanted any more", Rationale: "AVIF came with TASK-26",
			},
		} {
			if _, err := tx.AddComment(c); err != nil {
				return err
			}
		}
		title := "Read RSS and Atom of a folder"
		if _, err := tx.Propose(ralph.Amendment{
			TaskID: 49, Author: "agent", AuthorKind: ralph.ByAgent, Rationale: "half of the feeds are Atom",
			Patch: ralph.Patch{Title: &title},
		}); err != nil {
			return err
		}
		if _, err := tx.AddLearning(ralph.Learning{
			Text: "Use node 24; node 22 has no WebSocket.", Kind: "convention", Scope: ralph.ScopeProject,
			Author: "ada", Pinned: true,
		}); err != nil {
			return err
		}
		return tx.PutUsageWindow(
			ralph.UsageWindow{
				Agent:       "claude",
				Name:        "five_hour",
				Utilization: 0.64,
				ResetsAt:    ralph.At(n.Morning.Add(2 * time.Hour)),
			},
		)
	})
}

// review has another agent review a session's change.
func (n *Night) review(task int64, of string) error {
	return n.tx(func(tx *store.Tx) error {
		s, err := tx.Session(of)
		if err != nil {
			return err
		}
		n.count++
		id := fmt.Sprintf("%08x-0000-4000-8000-%012x", 0x1a2b3c*n.count, n.count)
		r, err := tx.StartReview(store.Start{
			ID: id, Task: task, Run: n.run.ID, Model: "gpt-5.5", Agent: "codex", Number: s.Number,
			Snapshot: struct{}{}, Hashes: struct{}{},
		}, s)
		if err != nil {
			return err
		}
		r.Ending, r.CostUSD, r.CostKnown = ralph.Finished, 0.06, true
		if err := tx.EndReview(r, ralph.Review{
			Session: r.ID, Agent: "codex", Model: "gpt-5.5",
			Checked: "read the difference, and ran the tests without it",
			Objections: []ralph.Objection{{
				File: "src/dates.js", Line: 12, What: "the zone is read at each call",
				Why: "it is slow", Severity: ralph.ObjectionRemark,
			}},
		}); err != nil {
			return err
		}
		return tx.NoteChecking(of, "")
	})
}

// going adds work in progress: two sessions and two changes being merged. One session waits for a permission.
func (n *Night) going() error {
	for i, task := range []int64{1, 49} {
		n.set(n.Morning.Add(-time.Duration(18-6*i) * time.Minute))
		id, err := n.start(task)
		if err != nil {
			return err
		}
		n.Running = append(n.Running, id)
		n.Files[id+"/transcript"], n.Files[id+"/prompt"] = transcript(task), "# Your task\n\nDo it.\n"
		if err := n.tx(func(tx *store.Tx) error {
			_, err := tx.ReportState(id, ralph.PhaseImplementing,
				nil)
			return err
		}); err != nil {
			return err
		}
	}
	n.set(n.Morning.Add(-9 * time.Minute))
	for _, title := range []string{"Pictures for links without one", "A favicon for each folder"} {
		t, err := n.add(title)
		if err != nil {
			return err
		}
		id, err := n.start(t)
		if err != nil {
			return err
		}
		if _, err := n.decide(t, id, signals.Done{Summary: "Made it"}, nil); err != nil {
			return err
		}
	}
	n.set(n.Morning.Add(-41 * time.Second))
	if err := n.tx(func(tx *store.Tx) error {
		list, err := tx.QueuedChanges()
		for _, c := range list {
			if err == nil {
				err = tx.SetChange(c.ID, ralph.Queued, ralph.Verifying)
			}
		}
		return err
	}); err != nil {
		return err
	}
	for i := range 12 {
		if _, err := n.add(fmt.Sprintf("Next in the queue, part %d", i+1)); err != nil {
			return err
		}
	}
	n.set(n.Morning.Add(-2 * time.Minute))
	id, err := n.db.AddPermission(n.ctx, ralph.Permission{
		TaskID: 1, SessionID: n.Running[0], Tool: "Bash", Input: `{"command":"npm publish --tag next"}`,
		Decision: "ask",
		Expires:  ralph.At(n.Morning.Add(27 * time.Minute)),
	})
	n.Permission = id
	return err
}

func (n *Night) add(title string) (id int64, err error) {
	err = n.tx(func(tx *store.Tx) (err error) {
		id, err = tx.AddTask(
			ralph.Task{Title: title, Priority: 2, Feature: "links", Description: "As it says."},
			"human",
		)
		return err
	})
	return id, err
}
