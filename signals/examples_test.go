package signals_test

import (
	"encoding/json"
	"strings"
	"testing"

	"ralph"
	"ralph/signals"
)

// TestTheExamplesOfTheDesign checks that the design's example inputs are
// accepted, and yield exactly its example bodies.
func TestTheExamplesOfTheDesign(t *testing.T) {
	for _, tt := range []struct {
		name string
		verb ralph.Verb
		raw  string
		body string // "" if the design shows only the input
	}{
		{"done", "done", `{"summary": "Implemented lobby WebSocket channel with join/leave/chat/game_starting broadcasts. Fixed Phoenix 1.7.18 API change. Tests passing."}`, ""},
		{
			"done's body", "done", `{"summary":"Implemented lobby WebSocket channel with join/leave/chat broadcasts. Fixed Phoenix 1.7.18 API change. Tests passing."}`,
			"✓ **Done:** Implemented lobby WebSocket channel with join/leave/chat broadcasts. Fixed Phoenix 1.7.18 API change. Tests passing.",
		},
		{"partial", "partial", `{"summary": "Implemented hash chaining on audit log writes with SHA-256 and SELECT FOR UPDATE serialization.",
			"remaining": "Verification endpoint not included — streaming through millions of rows needs its own task. Suggested as separate task via suggest()."}`, ""},
		{
			"partial's body", "partial", `{"summary":"Wrote 12 of 18 planned test cases for CRUD operations","remaining":"Need delete edge cases and bulk operations tests"}`,
			"⊙ **Partial:** Wrote 12 of 18 planned test cases for CRUD operations\n\n**Remaining:** Need delete edge cases and bulk operations tests",
		},
		{"stuck", "stuck", `{"reason": "Can't test GPU allocation without GPU host. Config is written but untested on actual hardware. Need GPU-enabled Docker host."}`, ""},
		{
			"stuck's body", "stuck", `{"reason":"Cannot proceed with delete tests until the empty URL validation question is answered — test assertions depend on the expected behavior"}`,
			"⚠ **Stuck:** Cannot proceed with delete tests until the empty URL validation question is answered — test assertions depend on the expected behavior",
		},
		{"ask", "ask", `{"question": "Should retry logic be sync (fits current codebase) or async (fits task description)?",
			"options": ["keep-sync-add-simple-retry", "revert-to-async-queue", "rewrite-task-for-sync"], "preferred": "keep-sync-add-simple-retry", "blocking": true}`, ""},
		{
			"ask's body", "ask", `{"question":"Should empty URL strings be treated as validation errors or silently skipped?","blocking":true,"preferred":"Reject with error",
			"options":["Reject with error","Skip silently","Auto-fill with placeholder URL"]}`,
			"❓ **Ask (blocking):** Should empty URL strings be treated as validation errors or silently skipped?\n\n**Preferred:** Reject with error\n\n**Options:**\n- Reject with error\n- Skip silently\n- Auto-fill with placeholder URL",
		},
		{"flag", "flag", `{"what": "Route-level middleware (task #2) and new Eloquent scopes can disagree — middleware might allow a request that returns empty due to scope, or scope might allow data the middleware should block.",
			"severity": "warning", "category": "bug"}`, ""},
		{
			"flag's body", "flag", `{"what":"Empty URL string passes bookmark validation","severity":"warning","category":"bug"}`,
			"🚩 **Flag (warning):** Empty URL string passes bookmark validation\n\n**Category:** bug",
		},
		{"learned", "learned", `{"text": "Using SELECT FOR UPDATE to serialize hash chain writes.", "kind": "decision",
			"rationale": "Concurrent inserts could fork the chain. Serialization via row lock is acceptable because audit writes are not high-throughput.", "scope": "feature"}`, ""},
		{
			"learned's body", "learned", `{"text":"localStorage has a 5MB quota per origin in Chromium","kind":"discovery","rationale":"Needed to calculate max bookmarks before quota hit","scope":"feature"}`,
			"💡 **Learned (discovery):** localStorage has a 5MB quota per origin in Chromium\n\n**Rationale:** Needed to calculate max bookmarks before quota hit\n\n**Scope:** feature",
		},
		{
			"suggest", "suggest", `{"what": "Add audit chain verification endpoint — stream through audit_logs, recompute hash chain, report first broken link", "kind": "new_task",
			"why": "Verification logic is complex enough to be its own task — streaming millions of rows, pagination, caching", "feature": "audit-log"}`,
			"💭 **Suggest (new_task):** Add audit chain verification endpoint — stream through audit_logs, recompute hash chain, report first broken link\n\n" +
				"**Why:** Verification logic is complex enough to be its own task — streaming millions of rows, pagination, caching\n\n**Feature:** audit-log",
		},
		{
			"blocked", "blocked", `{"on": "Redis service and credentials missing from environment", "kind": "external", "detail": "No Redis instance found in .env.example, infrastructure code, or learnings from previous tasks"}`,
			"🚫 **Blocked (external):** Redis service and credentials missing from environment\n\n**Detail:** No Redis instance found in .env.example, infrastructure code, or learnings from previous tasks",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := signals.Parse(tt.verb, json.RawMessage(tt.raw))
			if err != nil {
				t.Fatal(err)
			}
			if tt.body != "" && p.Body() != tt.body {
				t.Errorf("got  %q\nwant %q", p.Body(), tt.body)
			}
		})
	}
}

// TestTheHardestSessionsOfTheDesign plays the four situations that the
// verbs were stress-tested with, as an agent would report them.
func TestTheHardestSessionsOfTheDesign(t *testing.T) {
	for _, tt := range []struct {
		name   string
		facts  signals.Facts
		status ralph.Status
		reason string // a part of the reason
		check  func(d signals.Decision) string
	}{
		{"a half-finished permission migration: two models side by side, and nobody says which one is to stay", signals.Facts{
			Said: say(
				signals.Flag{What: "Half of the routes check roles, half check scopes; the earlier migration stopped in the middle", Severity: "blocking", Category: "incomplete_prior"},
				signals.Flag{What: "The task says roles, the README says scopes", Severity: "warning", Category: "contradiction"},
				signals.Ask{Question: "Roles or scopes?", Options: []string{"roles", "scopes"}, Preferred: "scopes", Blocking: &yes},
				signals.Partial{Summary: "Listed every route and its model in AUDIT.md", Remaining: "Move the rest, once it is decided"},
			), Changed: true,
		}, ralph.NeedsInput, "waits for an answer", func(d signals.Decision) string {
			switch {
			case len(d.Announce) != 1 || d.Announce[0] != 1:
				return "the blocking flag is not announced alone"
			case len(d.Holds) != 1 || d.Holds[0].Comment != 3:
				return "the question does not hold the task"
			case d.StuckCount != 0:
				return "work that was done counts as stuck"
			}
			return ""
		}},
		{"a WebSocket performance trap: it works, and will not at scale", signals.Facts{
			Said: say(
				signals.Flag{What: "Each broadcast walks all sockets: 2 s at 10,000 players", Severity: "warning", Category: "performance"},
				signals.Learned{Text: "Broadcasts go through PubSub topics, one a lobby", Kind: "decision", Rationale: "A process a player does not scale", Scope: "feature"},
				signals.Ask{Question: "Is sharding by lobby acceptable?", Blocking: &no},
				signals.Suggest{What: "Shard lobbies over nodes", Kind: "new_task", Why: "One node is full at 10,000 players"},
				signals.Done{Summary: "Lobby channel works; tests pass"},
			), Changed: true, Task: signals.Task{Feature: "lobby"}, Verify: []ralph.Check{{Command: "mix test", Passed: true}},
		}, ralph.Completed, "done and verified", func(d signals.Decision) string {
			switch {
			case len(d.Learn) != 1 || d.Learn[0].Scope != "feature":
				return "the decision is not kept for the feature"
			case len(d.Propose) != 1 || d.Propose[0].Feature != "lobby" || d.Propose[0].Status != ralph.Proposed:
				return "the follow-up is not proposed"
			case len(d.Holds) != 0:
				return "a question that does not block holds a completed task"
			}
			return ""
		}},
		{"a review bot whose dependency is a stub and whose context is out of reach", signals.Facts{
			Task: signals.Task{ID: 9},
			Said: say(
				signals.Blocked{On: "#8", Kind: "upstream_task", Detail: "DiffParser returns an empty list"},
				signals.Blocked{On: "the Slack thread with the rules", Kind: "external"},
				signals.Stuck{Reason: "Nothing to review with"},
			), Upstream: map[int64]signals.Upstream{1: {Matches: []int64{8}}},
		}, ralph.Blocked, "waits for a blocker to be resolved and TASK-8", func(d signals.Decision) string {
			if len(d.DependsOn) != 1 || d.DependsOn[0] != 8 || len(d.Holds) != 1 || d.Holds[0].Comment != 2 {
				return "it does not wait for both"
			}
			return ""
		}},
		{"a weather station's batch race: the agent gives up on what it cannot reproduce, having said done before", signals.Facts{
			Said: say(
				signals.Done{Summary: "Added a lock around the batch"},
				signals.Flag{What: "Readings are duplicated when two batches overlap", Severity: "blocking", Category: "bug"},
				signals.Learned{Text: "The importer runs every 5 minutes and may take 7", Kind: "discovery", Scope: "project"},
				signals.Partial{Summary: "The lock holds on one host", Remaining: "Deduplicate what is there; the lock is not shared between hosts"},
			), Changed: true,
		}, ralph.Pending, "partial: Deduplicate", func(d signals.Decision) string {
			if d.Accepted || d.Closing != ralph.VerbPartial || len(d.Learn) != 1 {
				return "the last closing verb is not the one that counts"
			}
			return ""
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.facts.Ending, tt.facts.Rules = ralph.Finished, rules
			d := signals.Decide(tt.facts)
			if d.Status != tt.status || !strings.Contains(d.StatusReason, tt.reason) {
				t.Errorf("got %s: %s\nwant %s: …%s…", d.Status, d.StatusReason, tt.status, tt.reason)
			}
			if wrong := tt.check(d); wrong != "" {
				t.Errorf("%s: %+v", wrong, d)
			}
		})
	}
}
