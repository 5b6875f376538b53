package signals_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ralph"
	"ralph/signals"
)

// TestBodies checks every verb's body, with and without its optional parts.
func TestBodies(t *testing.T) {
	for _, tt := range []struct {
		verb      ralph.Verb
		raw, body string
	}{
		{"done", `{"summary":"Implemented lobby WebSocket channel. Tests passing."}`, "✓ **Done:** Implemented lobby WebSocket channel. Tests passing."},
		{
			"partial", `{"summary":"Wrote 12 of 18 planned test cases for CRUD operations","remaining":"Need delete edge cases and bulk operations tests"}`,
			"⊙ **Partial:** Wrote 12 of 18 planned test cases for CRUD operations\n\n**Remaining:** Need delete edge cases and bulk operations tests",
		},
		{"stuck", `{"reason":"Cannot proceed"}`, "⚠ **Stuck:** Cannot proceed"},
		{
			"ask", `{"question":"Empty URLs?","blocking":true,"preferred":"Reject with error","options":["Reject with error","Skip silently"]}`,
			"❓ **Ask (blocking):** Empty URLs?\n\n**Preferred:** Reject with error\n\n**Options:**\n- Reject with error\n- Skip silently",
		},
		{"ask", `{"question":"Empty URLs?","blocking":false}`, "❓ **Ask (non-blocking):** Empty URLs?"},
		{
			"flag", `{"what":"Empty URL string passes bookmark validation","severity":"warning","category":"bug"}`,
			"🚩 **Flag (warning):** Empty URL string passes bookmark validation\n\n**Category:** bug",
		},
		{
			"learned", `{"text":"localStorage has a 5MB quota","kind":"discovery","rationale":"Needed it","scope":"feature"}`,
			"💡 **Learned (discovery):** localStorage has a 5MB quota\n\n**Rationale:** Needed it\n\n**Scope:** feature",
		},
		{"learned", `{"text":"x","kind":"decision"}`, "💡 **Learned (decision):** x"},
		{
			"suggest", `{"what":"Add endpoint","kind":"new_task","why":"Complex","feature":"audit-log"}`,
			"💭 **Suggest (new_task):** Add endpoint\n\n**Why:** Complex\n\n**Feature:** audit-log",
		},
		{"suggest", `{"what":"Add endpoint","kind":"split","why":"Complex"}`, "💭 **Suggest (split):** Add endpoint\n\n**Why:** Complex"},
		{"blocked", `{"on":"Redis missing","kind":"external","detail":"No instance"}`, "🚫 **Blocked (external):** Redis missing\n\n**Detail:** No instance"},
		{"blocked", `{"on":"#12","kind":"upstream_task"}`, "🚫 **Blocked (upstream_task):** #12"},
	} {
		p, err := signals.Parse(tt.verb, []byte(tt.raw))
		if err != nil {
			t.Errorf("%s %s: %v", tt.verb, tt.raw, err)
			continue
		}
		if got := p.Body(); got != tt.body {
			t.Errorf("%s: got %q, want %q", tt.verb, got, tt.body)
		}
	}
}

// TestTextsAreThoseOfAPayloadAlone: flags and lists are shown in other ways.
func TestTextsAreThoseOfAPayloadAlone(t *testing.T) {
	p, err := signals.Parse("ask", []byte(`{"question":"Empty URLs?","blocking":true,"preferred":"Reject","options":["Reject","Skip"]}`))
	want := []signals.Text{{"Question", "Empty URLs?"}, {"Preferred", "Reject"}}
	if diff := cmp.Diff(want, signals.Texts(p)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestParseRefusesAndNamesTheField(t *testing.T) {
	long := `"` + strings.Repeat("a", ralph.MaxText+1) + `"`
	for _, tt := range []struct{ verb, raw, field string }{
		{"done", `{}`, "summary"},
		{"done", `{"summary":"  "}`, "summary"},
		{"done", `{"summary":7}`, "summary"},
		{"done", `{"summary":null}`, "summary"},
		{"done", `{"summary":"a","colour":"red"}`, "colour"},
		{"done", `{"Summary":"a"}`, "Summary"},
		{"done", `{"summary":"a","summary":"b"}`, "summary"},
		{"done", `{"summary":` + long + `}`, "summary"},
		{"done", `[]`, "arguments"},
		{"done", ``, "arguments"},
		{"done", `{"summary":"a"} x`, "arguments"},
		{"done", "{\"summary\":\"\xff\"}", "arguments"},
		{"done", `{"summary":"a\u0000b"}`, "summary"},
		{"partial", `{"summary":"a"}`, "remaining"},
		{"ask", `{"question":"a"}`, "blocking"},
		{"ask", `{"question":"a","blocking":"yes"}`, "blocking"},
		{"ask", `{"question":"a","blocking":true,"options":["a",""]}`, "options[1]"},
		{"flag", `{"what":"a","severity":"urgent","category":"bug"}`, "severity"},
		{"flag", `{"what":"a","severity":"info"}`, "category"},
		{"learned", `{"text":"a","kind":"rumour"}`, "kind"},
		{"learned", `{"text":"a","kind":"decision","scope":"world"}`, "scope"},
		{"suggest", `{"what":"a","kind":"new_task"}`, "why"},
		{"blocked", `{"on":"a","kind":"magic"}`, "kind"},
		{"shout", `{}`, `verb "shout"`},
	} {
		_, err := signals.Parse(ralph.Verb(tt.verb), []byte(tt.raw))
		var field *ralph.FieldError
		if !errors.As(err, &field) || field.Field != tt.field {
			t.Errorf("%s %.60s: got %v, want an error on %s", tt.verb, tt.raw, err, tt.field)
		}
	}
}

// TestErrorsOfWrongCalls: an agent has only the message to correct its call.
func TestErrorsOfWrongCalls(t *testing.T) {
	text := func(n int) string { return strings.Repeat("a", n) }
	options := func(n int, option string) string {
		return `{"question":"a","blocking":true,"options":[` + strings.TrimSuffix(strings.Repeat(`"`+option+`",`, n), ",") + `]}`
	}
	for _, tt := range []struct{ verb, raw, want string }{
		{"done", `{"summary":"` + text(ralph.MaxText) + `"}`, ""},
		{"done", `{"summary":7}`, "summary must be a string, not a number"},
		{"done", `{"summary":null}`, "summary must not be null; leave it out"},
		{"done", `{"summary":"a","summary":"b"}`, "summary is given twice"},
		{"done", `{"colour":"red"}`, "colour is not a field of done (accepted: summary, tests_changed, flags_answered)"},
		{"ask", `{"colour":"red"}`, "colour is not a field of ask (accepted: question, blocking, options, preferred)"},
		{"done", `{"summary":`, "summary is not valid JSON"},
		{"done", `{"summary":"a"`, "arguments are not a JSON object"},
		{"done", `{7:1}`, "arguments are not a JSON object"},
		{"done", `{"summary":"a",}`, "arguments are not a JSON object"},
		{"done", `{"summary":"a"}{}`, "arguments have something after the object"},
		{"done", `"summary"`, "arguments are not a JSON object"},
		{"done", "\xff", "arguments are not valid UTF-8"},
		{"shout", `{}`, `verb "shout" is not one of the verbs`},
		{"ask", `{"question":"a"}`, "blocking is required (accepted: true, false)"},
		{"ask", `{"question":"a","blocking":"yes"}`, "blocking must be a boolean, not a string"},
		{"ask", `{"question":"a","blocking":true,"options":"x"}`, "options must be a list of strings, not a string"},
		{"ask", options(20, "x"), ""},
		{"ask", options(21, "x"), "options has more than 20 entries"},
		{"ask", options(16, text(ralph.MaxText/16)), ""},
		{"ask", options(17, text(ralph.MaxText/16)), "options are longer than 64 KiB together"},
		{"ask", `{"question":" ","blocking":true}`, "question is required"},
		{"ask", `{"question":"a","blocking":true,"preferred":"a\u0000"}`, "preferred"},
		{"flag", `{"what":"a","severity":"urgent","category":"bug"}`, "severity is not one of the accepted values (accepted: info, warning, blocking)"},
		{"flag", `{"what":"a","severity":"info"}`, "category is required (accepted: bug, stale, contradiction, ambiguity, overlap, performance, security, incomplete_prior)"},
		{"flag", `{"severity":"info","category":"bug"}`, "what is required"},
		{"learned", `{"kind":"decision"}`, "text is required"},
		{"learned", `{"text":"a","kind":"decision","rationale":"a\u0000"}`, "rationale"},
		{"learned", `{"text":"a","kind":"decision","scope":"world"}`, "scope is not one of the accepted values (accepted: project, feature, task)"},
		{"learned", `{"text":"a","kind":"rumour","scope":"task"}`, "kind is not one of the accepted values (accepted: discovery, decision, convention)"},
		{"learned", `{"text":"a","kind":"decision","scope":"task"}`, ""},
		{"suggest", `{"kind":"split","why":"a"}`, "what is required"},
		{"suggest", `{"what":"a","kind":"x","why":"a"}`, "kind is not one of the accepted values (accepted: new_task, split, refactor, alternative, deprecate)"},
		{"suggest", `{"what":"a","kind":"split","why":"a","feature":"a\u0000"}`, "feature"},
		{"blocked", `{"kind":"external"}`, "on is required"},
		{"blocked", `{"on":"a","kind":"external","detail":"a\u0000"}`, "detail"},
		{"stuck", `{}`, "reason is required"},
		{"partial", `{"remaining":"a"}`, "summary is required"},
		{"partial", `{"summary":"a"}`, "remaining is required"},
	} {
		p, err := signals.Parse(ralph.Verb(tt.verb), []byte(tt.raw))
		switch {
		case tt.want == "":
			if err != nil || p.Verb() != ralph.Verb(tt.verb) {
				t.Errorf("%s %.60s: got %v, %v", tt.verb, tt.raw, p, err)
			}
		case err == nil || !strings.HasPrefix(err.Error(), tt.want):
			t.Errorf("%s %.60s: got %v, want %s", tt.verb, tt.raw, err, tt.want)
		}
	}
}

// TestBlankOptionalTextsAreNotGiven: a blank optional field counts as omitted.
func TestBlankOptionalTextsAreNotGiven(t *testing.T) {
	yes := true
	for _, tt := range []struct {
		verb, raw string
		want      signals.Payload
	}{
		{"ask", `{"question":"a","blocking":true,"preferred":" "}`, signals.Ask{Question: "a", Blocking: &yes}},
		{"ask", `{"question":"a","blocking":true,"preferred":" b "}`, signals.Ask{Question: "a", Blocking: &yes, Preferred: " b "}},
		{"learned", `{"text":"a","kind":"decision","rationale":" ","scope":"\t"}`, signals.Learned{Text: "a", Kind: "decision"}},
		{"suggest", `{"what":"a","kind":"split","why":"b","feature":" "}`, signals.Suggest{What: "a", Kind: "split", Why: "b"}},
		{"blocked", `{"on":"a","kind":"external","detail":" "}`, signals.Blocked{On: "a", Kind: "external"}},
	} {
		got, err := signals.Parse(ralph.Verb(tt.verb), []byte(tt.raw))
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tt.raw, err, diff)
		}
	}
}

// FuzzParse: any input is refused, or can be stored and read back unchanged.
func FuzzParse(f *testing.F) {
	f.Add("done", []byte(`{"summary":"a"}`))
	f.Add("ask", []byte(`{"question":"a","blocking":true,"options":["b"]}`))
	f.Add("learned", []byte(`{"text":"a","kind":"decision","scope":" "}`))
	f.Fuzz(func(t *testing.T, verb string, raw []byte) {
		p, err := signals.Parse(ralph.Verb(verb), raw)
		if err != nil {
			return
		}
		stored, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := signals.Parse(p.Verb(), stored)
		if err != nil || again.Body() != p.Body() {
			t.Fatalf("%s is stored as %s and read back as %v, %v", raw, stored, again, err)
		}
	})
}
