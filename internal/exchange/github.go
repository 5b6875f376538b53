package exchange

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ralph"
	"ralph/internal/lazy"
	"ralph/internal/text"
)

type gitHubIssue struct {
	Number             int
	Title, Body, State string
	URL                string
	HTMLURL            string `json:"html_url"` // of the API, whose "url" is for programs
	PullRequest        any    `json:"pull_request"`
	Labels             []struct{ Name string }
	Milestone          *struct{ Title string }
	Comments           any // a list, or in the API a number
}

// comments returns the number of comments.
func (v gitHubIssue) comments() int {
	switch c := v.Comments.(type) {
	case []any:
		return len(c)
	case float64:
		return int(c)
	}
	return 0
}

const gitHubNumberForm = `(?:https://)?((?:[\w.-]+/)+[\w.-]+)?(?:#|/(?:-/)?issues/)(\d+)`

var (
	gitHubPriority = lazy.Regexp(`(?i)^(?:priority[:/ ]*)?p([0-9])$`)
	gitHubNumber   = lazy.Regexp(gitHubNumberForm)
	gitHubNeeds    = lazy.Regexp(`(?i)\b(?:depends on|blocked by)[\s:*_]+((?:` + gitHubNumberForm +
		`(?:\s*(?:,|and|&)\s*)*)+)`)
)

// readGitHub reads the output of `gh issue list --json number,title,body,labels,milestone,state,url`, of
// `gh issue view` with the same fields, or of the API.
func readGitHub(data []byte) (in ralph.Import, err error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) { // one issue
		data = slices.Concat([]byte("["), data, []byte("]"))
	}
	if err := whole(data); err != nil {
		return in, err
	}
	left, features := map[string]int{}, map[string]bool{}
	states := map[string]ralph.Status{"": ralph.Pending, "open": ralph.Pending, "closed": ralph.Completed}
	if err := each(&in, located{data, 1}, "the whole", func(line int, v gitHubIssue) (err error) {
		if v.Number <= 0 {
			return wrong(line, `an issue has no "number"`)
		}
		if v.PullRequest != nil {
			left["pull requests"]++
			return nil
		}
		v.URL = cmp.Or(v.HTMLURL, v.URL)
		left["comments (anyone can write them)"] += v.comments()
		in.Tasks = append(in.Tasks, v.task(&in, line))
		t := &in.Tasks[len(in.Tasks)-1]
		if t.Status, err = statusOf(line, v.State, states); err != nil {
			return err
		}
		if v.Milestone != nil && v.Milestone.Title != "" {
			t.Feature = text.Flat(v.Milestone.Title)
			if !features[t.Feature] {
				features[t.Feature] = true
				featureOf(&in, t.Feature, "")
			}
		}
		return nil
	}); err != nil {
		return in, err
	}
	note(&in, left)
	return in, nil
}

// repository returns the namespace of an issue's number, the address of its repository, so that
// issues of different repositories are not mixed up.
func (v gitHubIssue) repository() string {
	address, _, ok := strings.Cut(strings.TrimPrefix(v.URL, "https://"), "/issues/")
	if !ok {
		return "github"
	}
	return sourceOf("github", address)
}

func (v gitHubIssue) task(in *ralph.Import, line int) ralph.ImportedTask {
	return v.taskOf(in, line, v.repository())
}

// taskOf maps an issue of a repository.
func (v gitHubIssue) taskOf(in *ralph.Import, line int, space string) ralph.ImportedTask {
	t := ralph.ImportedTask{
		Line: line,
		Key:  ralph.ExternalKey(space, strconv.Itoa(v.Number)),
		Task: ralph.Task{Title: v.Title, Priority: ralph.DefaultPriority},
	}
	var labels []string
	for _, label := range v.Labels {
		if m := gitHubPriority().FindStringSubmatch(label.Name); m != nil {
			t.Priority = clamp(float64(m[1][0] - '0'))
			continue
		}
		labels = append(labels, label.Name)
	}
	body, refs := readBody(in, &t, v.Body)
	t.Description = paragraphs([2]string{"", body}, [2]string{"Labels", strings.Join(labels, ", ")},
		[2]string{"", cmp.Or(v.URL, fmt.Sprintf("issue #%d", v.Number))})
	seen := map[string]bool{}
	for _, m := range gitHubNeeds().FindAllStringSubmatch(v.Body, -1) {
		refs = append(refs, waitsFor{text: m[1]})
	}
	for _, ref := range refs {
		for _, n := range gitHubNumber().FindAllStringSubmatch(ref.text, -1) {
			id := ralph.ExternalKey(space, n[2])
			if n[1] != "" && !strings.HasSuffix(space, "/"+n[1]) {
				in.Notes = append(in.Notes, fmt.Sprintf("#%d waits for %s, which is in another repository: left out",
					v.Number, text.Line(n[0], 80)))
				continue
			}
			if id != t.Key && !seen[id] {
				seen[id] = true
				t.Needs = append(t.Needs, ralph.Need{Key: id, Optional: true})
			}
		}
	}
	return t
}

// An Issue is one of a forge.
type Issue struct {
	Source    string // of its number: the repository
	Number    int64
	Title     string
	Body      string
	Labels    []string
	Milestone string
	URL       string
	Trusted   bool // its commands verify the task; else they stay text
}

// verifyBlock is a fenced block of commands.
var verifyBlock = lazy.Regexp("(?ms)^```verify[ \\t]*\\r?\\n(.*?)^```[ \\t]*\\r?$")

// unseen matches text of an issue that a browser does not show. Nobody sees it before adding a label.
var unseen = lazy.Regexp(`(?s)<!--.*?(-->|\z)`)

// toIssue is a reference to an issue. A title becomes the subject of a commit, where "closes #7" closes that issue.
var toIssue = lazy.Regexp(`#(\d)`)

// FromIssue maps an issue to a task. Without trust it gives no commands, no rights, no files and no hidden text,
// and its title refers to no other issue.
func FromIssue(i Issue) ralph.Import {
	in := ralph.Import{Format: "forge", Live: true}
	v := gitHubIssue{Number: int(i.Number), Title: text.Line(i.Title, ralph.MaxTitle), Body: i.Body, URL: i.URL}
	for _, l := range i.Labels {
		v.Labels = append(v.Labels, struct{ Name string }{l})
	}
	var commands []string
	if !i.Trusted {
		v.Body, v.Title = unseen().ReplaceAllString(v.Body, ""), toIssue().ReplaceAllString(v.Title, "# $1")
	} else {
		for _, m := range verifyBlock().FindAllStringSubmatch(v.Body, -1) {
			commands = append(commands, strings.FieldsFunc(strings.ReplaceAll(m[1], "\r", ""), func(r rune) bool {
				return r == '\n'
			})...)
		}
		v.Body = verifyBlock().ReplaceAllString(v.Body, "")
	}
	t := v.taskOf(&in, 0, i.Source)
	t.ExternalSource, t.ExternalID = i.Source, strconv.FormatInt(i.Number, 10)
	if t.Verify = append(t.Verify, commands...); !i.Trusted {
		t.Description = paragraphs([2]string{"", t.Description},
			[2]string{"Suggested checks, which nobody runs", strings.Join(t.Verify, "; ")})
		t.Verify, t.Allow, t.Files = nil, nil, nil
	}
	t.Description = text.Clip(t.Description, ralph.MaxText/4)
	if i.Milestone != "" {
		t.Feature = text.Flat(i.Milestone)
		featureOf(&in, t.Feature, "")
	}
	in.Tasks, in.Offers = append(in.Tasks, t), nil
	return in
}
