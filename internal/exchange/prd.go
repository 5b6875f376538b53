package exchange

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"ralph"
	"ralph/internal/text"
)

// readPRD reads prd.json of snarktank/ralph and ralph-tui: user stories with an order and a flag
// that says whether they pass. The list may have another name, as in feature_list.json, or be the whole document.
func readPRD(data []byte) (in ralph.Import, err error) {
	var head struct{ Project, Name, BranchName, Description string }
	if err := whole(data); err != nil {
		return in, err
	}
	doc := located{data, 1}
	name, list := cmp.Or(passing(gjson.ParseBytes(data)), "userStories"), doc
	if !gjson.ParseBytes(data).IsArray() {
		if err := doc.decode(&head); err != nil {
			return in, err
		}
		list = doc.child(gjson.GetBytes(data, name))
	}
	called := cmp.Or(head.Name, strings.TrimPrefix(head.BranchName, "ralph/"), head.Project)
	feature := featureOf(&in, called, head.Description)
	space := sourceOf("prd.json", cmp.Or(head.BranchName, head.Name, head.Project))
	type ordered struct {
		task     ralph.ImportedTask
		priority float64
	}
	type story struct {
		ID                                  ident
		Title, Description, Notes, Category string
		AcceptanceCriteria, Steps           entries
		Criteria                            entries `json:"acceptance_criteria"`
		Priority                            *urgency
		Passes                              bool
		Labels                              []string
		DependsOn, Dependencies             []ident
	}
	var stories []ordered
	err = each(&in, list, fmt.Sprintf("%q", name), func(line int, v story) error {
		if v.Title == "" {
			v.Title, v.Description = v.Description, ""
		}
		if v.ID == "" {
			v.ID = ident(titleKey(v.Title))
		}
		o := ordered{priority: ralph.DefaultPriority}
		if v.Priority != nil {
			o.priority = float64(*v.Priority)
		}
		status := ralph.Pending
		if v.Passes {
			status = ralph.Completed
		}
		o.task = ralph.ImportedTask{
			Line:  line,
			Key:   ralph.ExternalKey(space, string(v.ID)),
			Needs: needs(space, slices.Concat(v.DependsOn, v.Dependencies)),
			Task: ralph.Task{
				Title:    v.Title,
				Feature:  feature,
				Status:   status,
				Priority: clamp(o.priority),
				Description: paragraphs([2]string{"", v.Description}, [2]string{"Notes", v.Notes},
					[2]string{"Category", v.Category}, [2]string{"Labels", strings.Join(v.Labels, ", ")}),
			},
		}
		o.task.Acceptance, o.task.Verify = criteria(slices.Concat(v.AcceptanceCriteria, v.Criteria, v.Steps))
		stories = append(stories, o)
		return nil
	})
	// The lowest number goes first, also beyond ralph's lowest priority.
	slices.SortStableFunc(stories, func(a, b ordered) int { return cmp.Compare(a.priority, b.priority) })
	for _, o := range stories {
		in.Tasks = append(in.Tasks, o.task)
	}
	return in, err
}

// passing returns the name of the list in a document whose items have a flag for passing; "" if
// there is none.
func passing(doc gjson.Result) (name string) {
	doc.ForEach(func(key, list gjson.Result) bool {
		if list.IsArray() && list.Get("0.passes").IsBool() {
			name = key.Str
		}
		return name == ""
	})
	return name
}

// entries are the items of a list, or the lines of a text.
type entries []string

// UnmarshalJSON accepts a list or a string.
func (t *entries) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		return json.Unmarshal(b, (*[]string)(t))
	}
	for l := range strings.Lines(s) {
		*t = append(*t, strings.TrimLeft(l, "-*• "))
	}
	return nil
}

// An urgency is the priority of a story, a number or a word.
type urgency float64

// UnmarshalJSON accepts a number, or critical, high, medium or low.
func (r *urgency) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		return json.Unmarshal(b, (*float64)(r))
	}
	p, ok := masterPriority[strings.ToLower(strings.TrimSpace(s))]
	if *r = urgency(p); !ok {
		return fmt.Errorf("the priority %q is not known (accepted: a number, critical, high, medium, low)", s)
	}
	return nil
}

// clamp limits the number of a story to ralph's priorities.
func clamp(p float64) int {
	return int(max(ralph.HighestPriority, min(p, ralph.LowestPriority)))
}

// readStories reads prd-*.json of iannuttall/ralph.
func readStories(data []byte) (in ralph.Import, err error) {
	var head struct {
		Project, Description string
		QualityGates         []string
	}
	stories, err := within(data, &head, "stories")
	if err != nil {
		return in, err
	}
	feature := featureOf(&in, head.Project, head.Description)
	for _, gate := range trimmed(head.QualityGates) {
		in.Offers = append(in.Offers, ralph.Offer{Command: gate, Section: "qualityGates", Line: 1})
	}
	space := sourceOf("stories", head.Project)
	type story struct {
		ID                         ident
		Title, Status, Description string
		DependsOn                  []ident
		AcceptanceCriteria         []string
	}
	states := map[string]ralph.Status{
		"":            ralph.Pending,
		"open":        ralph.Pending,
		"in_progress": ralph.Pending,
		"done":        ralph.Completed,
	}
	return in, each(&in, stories, `"stories"`, func(line int, v story) (err error) {
		if v.ID == "" {
			return wrong(line, `a story has no "id"`)
		}
		t := ralph.ImportedTask{
			Line:  line,
			Key:   ralph.ExternalKey(space, string(v.ID)),
			Needs: needs(space, v.DependsOn),
			Task: ralph.Task{
				Title:       v.Title,
				Description: strings.TrimSpace(v.Description),
				Feature:     feature,
				Priority:    ralph.DefaultPriority,
			},
		}
		if t.Status, err = statusOf(line, v.Status, states); err != nil {
			return err
		}
		t.Acceptance, t.Verify = criteria(v.AcceptanceCriteria)
		in.Tasks = append(in.Tasks, t)
		return nil
	})
}

// statusOf looks up a status; the error for an unknown one lists the known ones.
func statusOf(line int, given string, known map[string]ralph.Status) (ralph.Status, error) {
	s, ok := known[strings.ToLower(strings.TrimSpace(given))]
	if ok {
		return s, nil
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(name string) bool { return name == "" })
	return "", wrong(line, "the status %q is not known (accepted: %s)", given, strings.Join(names, ", "))
}

// featureOf adds the feature that a file is about and returns its name; "" if it has none.
func featureOf(in *ralph.Import, name, description string) string {
	name = text.Flat(name)
	if name == "" {
		return ""
	}
	if r := []rune(name); len(r) > ralph.MaxTitle {
		name, description = string(r[:ralph.MaxTitle]), name+"\n\n"+description
	}
	in.Features = append(in.Features, ralph.ImportedFeature{
		Line: 1, Feature: ralph.Feature{Name: name, Description: strings.TrimSpace(description)},
	})
	return name
}

// needs returns the dependencies of a task within its file.
func needs(space string, ids []ident) (list []ralph.Need) {
	for _, id := range ids {
		if id != "" {
			list = append(list, ralph.Need{Key: ralph.ExternalKey(space, string(id))})
		}
	}
	return list
}

// criteria splits acceptance criteria into texts and commands (`accept: cmd`).
func criteria(list []string) (words, commands []string) {
	for _, c := range trimmed(list) {
		rest, cmds := acceptCommands(c)
		commands = append(commands, cmds...)
		if rest != "" {
			words = append(words, rest)
		}
	}
	return words, commands
}

func trimmed(list []string) (out []string) {
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// An ident is a JSON string or number: ids occur as either.
type ident string

// UnmarshalJSON accepts a string, a number or null.
func (t *ident) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = ident(strings.TrimSpace(s))
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("an id must be a text or a number, not %.40s", b)
	}
	*t = ident(n.String())
	return nil
}
