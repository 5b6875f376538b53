package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/mcpserver"
)

var update = flag.Bool("update", false, "write the golden file anew")

// A designed field is a parameter of a tool as the design words it.
type designedField struct {
	kind     string
	required bool
	enum     []string
	words    string
}

// designed has the eight tools in the words of the design, which are normative: the sentences below each verb's heading
// and the descriptions of its parameters teach a model how to use them. A tool's other words come after them.
var designed = map[ralph.Verb]struct {
	words  string
	fields map[string]designedField
}{
	ralph.VerbDone: {"Signal that the task is fully complete and tested.", map[string]designedField{
		"summary":        {"string", true, nil, "What was accomplished. Include key decisions and outcomes."},
		"tests_changed":  {"string", false, nil, ""},
		"flags_answered": {"string", false, nil, ""},
	}},
	ralph.VerbPartial: {"Signal that progress was made but the task couldn't be fully completed. The remaining work will be picked up in a future session.", map[string]designedField{
		"summary":   {"string", true, nil, "What was accomplished so far."},
		"remaining": {"string", true, nil, "What still needs to be done and why you stopped. Be specific."},
	}},
	ralph.VerbStuck: {"Signal that you cannot make meaningful progress on this task.", map[string]designedField{
		"reason": {"string", true, nil, "Why you're stuck. Be specific about what's blocking your ability to work."},
	}},
	ralph.VerbAsk: {"Ask a question that you need answered to do this task well. If `blocking: true`, you should also call `partial` to pause the task until the question is answered.", map[string]designedField{
		"question":  {"string", true, nil, "The specific question you need answered."},
		"options":   {"array", false, nil, "If you've identified possible answers, list them."},
		"preferred": {"string", false, nil, "If you have a recommendation, state it."},
		"blocking":  {"boolean", true, nil, "True if you cannot proceed without the answer. False if nice-to-know but you can continue with your best judgment."},
	}},
	ralph.VerbFlag: {"Report a problem you discovered during this task.", map[string]designedField{
		"what":     {"string", true, nil, "Clear description of the problem."},
		"severity": {"string", true, []string{"info", "warning", "blocking"}, "info (FYI, no action needed now), warning (should be addressed, doesn't block this task), blocking (this task can't be fully completed because of this)"},
		"category": {"string", true, []string{"bug", "stale", "contradiction", "ambiguity", "overlap", "performance", "security", "incomplete_prior"}, ""},
	}},
	ralph.VerbLearned: {"Record knowledge that will be useful for future tasks on this project.", map[string]designedField{
		"text":      {"string", true, nil, "The knowledge to record. Should be specific enough that a different developer on a different task would benefit from it."},
		"kind":      {"string", true, []string{"discovery", "decision", "convention"}, "discovery (factual finding about the codebase), decision (judgment call with rationale), convention (project pattern to follow)"},
		"rationale": {"string", false, nil, "For decisions: why you chose this approach and what alternatives you rejected."},
		"scope":     {"string", false, []string{"project", "feature", "task"}, "project (always relevant), feature (relevant to same feature's tasks), task (only relevant if this task is re-attempted). Default: feature."},
	}},
	ralph.VerbSuggest: {"Recommend an action that should be taken but is outside the scope of your current task.", map[string]designedField{
		"what":    {"string", true, nil, "What should be done."},
		"kind":    {"string", true, []string{"new_task", "split", "refactor", "alternative", "deprecate"}, ""},
		"why":     {"string", true, nil, "Why this is needed."},
		"feature": {"string", false, nil, "Which feature this relates to (for new_task suggestions)."},
	}},
	ralph.VerbBlocked: {"Report that you cannot complete part of your task because something outside your control is missing or broken.", map[string]designedField{
		"on":     {"string", true, nil, "What is blocking you."},
		"kind":   {"string", true, []string{"upstream_task", "external"}, "upstream_task (dependency on another task that's incomplete) or external (credentials, services, human decisions, infrastructure)"},
		"detail": {"string", false, nil, "Additional context about the blocker."},
	}},
}

// TestTheToolsAreAsTheDesignWordsThem compares the tools that a client sees with the design.
func TestTheToolsAreAsTheDesignWordsThem(t *testing.T) {
	list, err := connect(t, mcpserver.Options{}).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Tools) != len(designed) {
		t.Errorf("there are %d tools, not %d", len(list.Tools), len(designed))
	}
	for _, tool := range list.Tools {
		verb := ralph.Verb(strings.TrimPrefix(tool.Name, "ralph.signal."))
		want, ok := designed[verb]
		if !ok {
			t.Errorf("the design has no tool %s", tool.Name)
			continue
		}
		if !strings.HasPrefix(tool.Description, want.words) {
			t.Errorf("%s says %q, which does not begin with %q", tool.Name, tool.Description, want.words)
		}
		raw, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			Type       string   `json:"type"`
			Required   []string `json:"required"`
			Properties map[string]struct {
				Type        string   `json:"type"`
				Enum        []string `json:"enum"`
				Description string   `json:"description"`
				Items       struct {
					Type string `json:"type"`
				} `json:"items"`
			} `json:"properties"`
		}
		if err := json.Unmarshal(raw, &schema); err != nil {
			t.Fatal(err)
		}
		got := map[string]designedField{}
		for name, p := range schema.Properties {
			words := want.fields[name].words
			if !strings.HasPrefix(p.Description, words) || p.Description == "" {
				t.Errorf("%s says of %s %q, which does not begin with %q", tool.Name, name, p.Description, words)
			}
			if p.Type == "array" && p.Items.Type != "string" {
				t.Errorf("%s: %s is a list of %q", tool.Name, name, p.Items.Type)
			}
			got[name] = designedField{p.Type, slices.Contains(schema.Required, name), p.Enum, words}
		}
		if diff := cmp.Diff(want.fields, got, cmp.AllowUnexported(designedField{})); diff != "" || schema.Type != "object" {
			t.Errorf("%s is of type %q (-design +tool):\n%s", tool.Name, schema.Type, diff)
		}
	}
}

// TestTheToolsAreFrozen: changing the golden file changes an interface, which needs a review.
func TestTheToolsAreFrozen(t *testing.T) {
	client := connect(t, mcpserver.Options{SetState: func(context.Context, mcpserver.StateChange) (mcpserver.StateReply, error) {
		return mcpserver.StateReply{}, nil
	}})
	list, err := client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(list.Tools, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const golden = "testdata/tools.json"
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the tools are not as in %s (%v): run with -update and read the difference", golden, err)
	}
}
