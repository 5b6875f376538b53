package prompt

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"ralph"
	"ralph/internal/lazy"
	"ralph/internal/text"
)

// A Template arranges a prompt in a project's own way (docs/prompt.md).
type Template struct {
	name   string
	parsed *template.Template
}

// A Value is a value for templates. The sections are as ralph builds them: fenced, within the budget, "" if empty.
type Value struct {
	Role         string // role and rules, the signals, how done is checked
	Discipline   string // the instructions of the task's discipline
	Learnings    string // learnings of the project and the feature
	Task         string // the task with its criteria and dependencies
	Answers      string // people's answers to questions
	Continuation string // the state that earlier sessions left
	Problems     string // flags
	Comments     string // comments of people and other agents
	Files        string // files that earlier sessions changed
	Checkpoint   string // the state of an interrupted session
	LeftOut      string // a line on the parts that the budget omits

	Project        string // name of the project's directory
	TaskID         int64
	TaskTitle      string // on one line
	Feature        string // name, "" for none
	DisciplineName string // "" for none
	Attempt        int    // 1 for the first session
}

// OwnTemplate is the template equivalent of ralph's own prompts.
const OwnTemplate = "{{.Role}}{{.Discipline}}{{.Learnings}}{{.Task}}{{.Answers}}{{.Continuation}}" +
	"{{.Problems}}{{.Comments}}{{.Files}}{{.Checkpoint}}{{.LeftOut}}"

// ParseTemplate parses a template and tries it out. Errors name the place: "NAME:LINE:COLUMN: …".
func ParseTemplate(name, text, toolPrefix string) (*Template, error) {
	// A file's final line break does not belong to the template.
	parsed, err := template.New(name).Option("missingkey=error").Parse(strings.TrimSuffix(text, "\n"))
	if err != nil {
		return nil, templateError(name, err)
	}
	t := &Template{name: name, parsed: parsed}
	// A first session without anything, and a later one with everything: conditions take both ways.
	if _, err := t.execute(Value{Attempt: 1}); err != nil {
		return nil, templateError(name, err)
	}
	sample := Value{Project: "p", TaskID: 1, TaskTitle: "t", Feature: "f", DisciplineName: "d", Attempt: 2}
	const mark = "\x00"
	v := reflect.ValueOf(&sample).Elem()
	for _, s := range sectionFields {
		v.FieldByName(s).SetString(mark + s + mark)
	}
	out, err := t.execute(sample)
	if err != nil {
		return nil, templateError(name, err)
	}
	if !strings.Contains(out, mark+"Task"+mark) {
		return nil, fmt.Errorf("%s: it does not show {{.Task}}, so that the agent would not know its task", name)
	}
	for _, verb := range []ralph.Verb{ralph.VerbDone, ralph.VerbPartial, ralph.VerbStuck} {
		if !strings.Contains(out, mark+"Role"+mark) && !strings.Contains(out, toolPrefix+string(verb)) {
			return nil, fmt.Errorf("%s: it shows neither {{.Role}} nor the tool %s%s, "+
				"so that the agent would not know how to close its session", name, toolPrefix, verb)
		}
	}
	return t, nil
}

// sectionFields has the fields of [Value] that are sections, in the order of ralph's own prompts.
var sectionFields = []string{
	"Role", "Discipline", "Learnings", "Task", "Answers", "Continuation",
	"Problems", "Comments", "Files", "Checkpoint", "LeftOut",
}

// fieldOf returns the field of [Value] for a section.
func fieldOf(section string) string {
	if section == "left out" {
		return "LeftOut"
	}
	return strings.ToUpper(section[:1]) + section[1:]
}

func (t *Template) execute(v Value) (string, error) {
	var b strings.Builder
	err := t.parsed.Execute(&b, v)
	return b.String(), err
}

var (
	templatePlace = lazy.Regexp(`^template: (.*?):(\d+)(?::(\d+))?: (?:executing "[^"]*" at <[^>]*>: )?`)
	unknownField  = lazy.Regexp(`can't evaluate field (\w+) in type prompt\.Value`)
)

// templateError rewords an error of the template for people, with its place.
func templateError(name string, err error) error {
	text := strings.TrimSpace(err.Error())
	m := templatePlace().FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	what := text[len(m[0]):]
	if f := unknownField().FindStringSubmatch(what); f != nil {
		var fields []string
		for field := range reflect.TypeFor[Value]().Fields() {
			fields = append(fields, "."+field.Name)
		}
		what = fmt.Sprintf("there is no field .%s (accepted: %s)", f[1], strings.Join(fields, ", "))
	}
	column := m[3]
	if column == "" {
		column = "1" // a parse error only has the line
	}
	return errors.New(name + ":" + m[2] + ":" + column + ": " + what)
}

// build builds the prompt. The template's own text counts towards the budget.
func (t *Template) build(d Data, l *layout) Prompt {
	frame := Value{
		Project: d.Project, TaskID: d.Task.ID, TaskTitle: text.Flat(d.Task.Title), Feature: d.FeatureName,
		DisciplineName: d.Discipline.Name, Attempt: 1 + d.Task.Attempts,
	}
	own, err := t.execute(frame)
	if err != nil {
		return t.failed(err)
	}
	rest := d.MaxTokens - EstimateTokens(own)
	built := l.render(l.fit(rest), rest)
	whole := frame
	v, at := reflect.ValueOf(&whole).Elem(), 0
	for _, s := range built.Sections {
		v.FieldByName(fieldOf(s.Name)).SetString(built.Text[at : at+s.Bytes])
		at += s.Bytes
	}
	text, err := t.execute(whole)
	if err != nil {
		return t.failed(err)
	}
	nothing := func(s string) bool { return strings.HasPrefix(s, "nothing more") }
	out := Prompt{Text: text, LeftOut: slices.DeleteFunc(built.LeftOut, nothing)}
	for _, s := range built.Sections {
		if strings.Contains(text, v.FieldByName(fieldOf(s.Name)).String()) {
			out.Sections = append(out.Sections, s)
			continue
		}
		out.LeftOut = append(out.LeftOut, "the section "+s.Name+", which the template does not show")
	}
	out.Sections = append(out.Sections, SectionSize{Name: "template", Bytes: len(own), Tokens: EstimateTokens(own)})
	out.exceed(l, d.MaxTokens)
	return out
}

// failed returns a prompt with an error. A tried template fails only in
// functions such as index, whose arguments depend on the task.
func (t *Template) failed(err error) Prompt {
	return Prompt{Err: templateError(t.name, err)}
}
