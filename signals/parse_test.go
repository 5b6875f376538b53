package signals_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ralph"
	"ralph/signals"
)

// TestBodies: every verb's body with its optional parts and without.
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

// FuzzParse: whatever comes is refused or can be stored and read back the same.
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
