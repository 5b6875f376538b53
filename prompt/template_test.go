package prompt_test

import (
	"strings"
	"testing"

	"ralph/prompt"
)

const prefix = "mcp__ralph__ralph_signal_"

func TestRalphsOwnTemplateMakesItsOwnPrompts(t *testing.T) {
	own, err := prompt.ParseTemplate("own", prompt.OwnTemplate, prefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		d := s.data()
		want := prompt.Build(d)
		d.Template = own
		if got := prompt.Build(d); got.Err != nil || got.Text != want.Text {
			t.Errorf("%s: a different prompt, %v", s.name, got.Err)
		}
	}
}

func TestABrokenTemplateSaysWhere(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"an action that does not end", "{{.Role}}\n{{.Task", "t.md:2:1: unclosed action"},
		{"an unknown function", "{{.Role}}\n\n{{shout .Task}}", "t.md:3:1: function \"shout\" not defined"},
		{"an unknown field", "{{.Role}}\nHello {{.Taks}}", "t.md:2:8: there is no field .Taks (accepted: .Role, .Discipline, .Learnings, .Task,"},
		{"a field of a field", "{{.Role}}{{.Task.Title}}", "t.md:1:16: "},
		{"an unknown field where nothing comes by at first", "{{.Role}}{{.Task}}{{if gt .Attempt 1}}\n{{.Nope}}{{end}}", "t.md:2:2: there is no field .Nope (accepted: .Role,"},
		{"an unknown field of the whole", "{{.Role}}{{.Task}}{{if gt .Attempt 1}}{{with .Feature}}{{$.Nope}}{{end}}{{end}}", "t.md:1:58: there is no field .Nope"},
		{"an unknown field in a template of its own", "{{.Role}}{{.Task}}{{define \"x\"}}{{if .Nope}}{{end}}{{end}}{{template \"x\" .}}", "t.md:1:37: there is no field .Nope"},
		{"an unknown field in a comparison", "{{.Role}}{{.Task}}{{if .Feature}}{{else if eq .Nope 1}}{{end}}", "t.md:1:46: there is no field .Nope"},
		{"an unknown template", "{{.Role}}{{.Task}}{{if gt .Attempt 1}}{{template \"x\"}}{{end}}", "t.md:1:49: template \"x\" not defined"},
		{"a field where the dot is another one", "{{.Role}}{{with .Feature}}{{.Task}}{{end}}", "t.md:1:28: can't evaluate field Task in type string"},
		{"no task", "{{.Role}}", "t.md: it does not show {{.Task}}"},
		{"neither rules nor tools", "Do it: {{.Task}}", "t.md: it shows neither {{.Role}} nor the tool mcp__ralph__ralph_signal_done"},
		{"a tool that is missing", "Call mcp__ralph__ralph_signal_done or mcp__ralph__ralph_signal_partial. {{.Task}}", "ralph_signal_stuck"},
		{"an index that is out of range", "{{.Role}}{{.Task}}{{index .Feature 9}}", "t.md:1:20: error calling index"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := prompt.ParseTemplate("t.md", tt.text, prefix)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want …%s…", err, tt.want)
			}
		})
	}
}

func TestATemplateStaysWithinTheBudget(t *testing.T) {
	own, err := prompt.ParseTemplate("t.md", strings.Repeat("Mind the style guide. ", 100)+"{{.Role}}{{.Task}}{{if .Checkpoint}}It was cut off.{{end}}{{.Answers}}{{.Continuation}}{{.Comments}}", prefix)
	if err != nil {
		t.Fatal(err)
	}
	d := tight()
	d.Template = own
	d.MaxTokens = 9000
	got := prompt.Build(d)
	if n := prompt.EstimateTokens(got.Text); n > d.MaxTokens {
		t.Errorf("%d tokens, the budget is %d", n, d.MaxTokens)
	}
	if !strings.Contains(got.Text, "It was cut off.") {
		t.Error("the condition does not see the section")
	}
	said := strings.Join(got.LeftOut, "; ")
	if !strings.Contains(said, "the section files, which the template does not show") || !strings.Contains(said, "the section learnings") {
		t.Errorf("left out: %s", said)
	}
	last := got.Sections[len(got.Sections)-1]
	if last.Name != "template" || last.Bytes < 2200 {
		t.Errorf("the template's own text is %+v", last)
	}
}
