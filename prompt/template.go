package prompt

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"ralph"
	"ralph/internal/text"
)

// A Template puts a prompt together in a project's own way (docs/prompt.md).
type Template struct {
	name   string
	parsed *template.Template
}

// A Value is what a template can show. The sections come as ralph makes them:
// fenced, within the budget, "" if there is nothing in them.
type Value struct {
	Role         string // role and rules, the signals, how done is checked
	Discipline   string // the instructions of the task's discipline
	Learnings    string // of the project and the feature
	Task         string // the task with its criteria and dependencies
	Answers      string // people's answers to questions
	Continuation string // where earlier sessions stopped
	Problems     string // flags
	Comments     string // of people and other agents
	Files        string // that earlier sessions changed
	Checkpoint   string // where the last session was cut off
	LeftOut      string // a line on what the budget had no room for

	Project        string // name of the project's directory
	TaskID         int64
	TaskTitle      string // on one line
	Feature        string // name, "" for none
	DisciplineName string // "" for none
	Attempt        int    // 1 for the first session
}

// OwnTemplate is what ralph's own prompts come to, as a template.
const OwnTemplate = "{{.Role}}{{.Discipline}}{{.Learnings}}{{.Task}}{{.Answers}}{{.Continuation}}" +
	"{{.Problems}}{{.Comments}}{{.Files}}{{.Checkpoint}}{{.LeftOut}}"

// ParseTemplate reads a template and tries it out. The error says where in it
// what is wrong, as "NAME:LINE:COLUMN: …".
func ParseTemplate(name, text, toolPrefix string) (*Template, error) {
	// A file ends with a line break that nobody meant.
	parsed, err := template.New(name).Option("missingkey=error").Parse(strings.TrimSuffix(text, "\n"))
	if err != nil {
		return nil, templateError(name, err)
	}
	if err := checkNames(parsed); err != nil {
		return nil, templateError(name, err)
	}
	t := &Template{name: name, parsed: parsed}
	sample := Value{Project: "p", TaskID: 1, TaskTitle: "t", Feature: "f", DisciplineName: "d", Attempt: 1}
	const mark = "\x00"
	v := reflect.ValueOf(&sample).Elem()
	for _, s := range sectionFields {
		v.FieldByName(s).SetString(mark + s + mark)
	}
	// A section may be empty, and a condition may ask for that.
	if _, err := t.execute(Value{}); err != nil {
		return nil, templateError(name, err)
	}
	out, err := t.execute(sample)
	if err != nil {
		return nil, templateError(name, err)
	}
	if !strings.Contains(out, mark+"Task"+mark) {
		return nil, fmt.Errorf("%s: it does not show {{.Task}}, so that the agent would not know what to do", name)
	}
	for _, verb := range []ralph.Verb{ralph.VerbDone, ralph.VerbPartial, ralph.VerbStuck} {
		if !strings.Contains(out, mark+"Role"+mark) && !strings.Contains(out, toolPrefix+string(verb)) {
			return nil, fmt.Errorf("%s: it shows neither {{.Role}} nor the tool %s%s, "+
				"so that the agent would not know how to close its session", name, toolPrefix, verb)
		}
	}
	return t, nil
}

// sectionFields are the fields of a [Value] that are sections, in the order in
// which ralph's own prompts have them.
var sectionFields = []string{
	"Role", "Discipline", "Learnings", "Task", "Answers", "Continuation",
	"Problems", "Comments", "Files", "Checkpoint", "LeftOut",
}

// fieldOf is the field of a [Value] that a section goes into.
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
	templatePlace = regexp.MustCompile(`^template: (.*?):(\d+)(?::(\d+))?: (?:executing "[^"]*" at <[^>]*>: )?`)
	unknownField  = regexp.MustCompile(`can't evaluate field (\w+) in type prompt\.Value`)
	otherDot      = regexp.MustCompile(`can't evaluate field (\w+) in type \w+$`)
)

// templateError says where a template is wrong in the words of people.
func templateError(name string, err error) error {
	text := strings.TrimSpace(err.Error())
	m := templatePlace.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	what := text[len(m[0]):]
	if f := unknownField.FindStringSubmatch(what); f != nil {
		var fields []string
		for i := range reflect.TypeFor[Value]().NumField() {
			fields = append(fields, "."+reflect.TypeFor[Value]().Field(i).Name)
		}
		what = fmt.Sprintf("there is no field .%s (accepted: %s)", f[1], strings.Join(fields, ", "))
	} else if f := otherDot.FindStringSubmatch(what); f != nil && isField(f[1]) {
		what = fmt.Sprintf("the dot is another value within {{with}}, {{range}} and {{template}}: write $.%s", f[1])
	}
	column := m[3]
	if column == "" {
		column = "1" // of an error while it is read only the line is known
	}
	return errors.New(name + ":" + m[2] + ":" + column + ": " + what)
}

// build makes the prompt. What the template says itself counts towards the budget.
func (t *Template) build(d Data, p *plan) Prompt {
	frame := Value{
		Project: d.Project, TaskID: d.Task.ID, TaskTitle: text.Flat(d.Task.Title), Feature: d.FeatureName,
		DisciplineName: d.Discipline.Name, Attempt: 1 + d.Task.Attempts,
	}
	own, err := t.execute(frame)
	if err != nil {
		return t.failed(err)
	}
	rest := d.MaxTokens - EstimateTokens(own)
	built := p.render(p.fit(rest), rest)
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
	out.exceed(p, d.MaxTokens)
	return out
}

// failed cannot be for a template that was tried out, but for functions such as
// index whose arguments depend on the task.
func (t *Template) failed(err error) Prompt {
	return Prompt{Err: templateError(t.name, err)}
}
