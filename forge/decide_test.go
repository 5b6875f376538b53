package forge

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph"
)

func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		name string
		seen Seen
		want Action
	}{
		{"no label is configured", Seen{Has: true, Acted: true, Author: true}, Ignore},
		{"an issue without the label", Seen{Label: "r", Acted: true, Author: true}, Ignore},
		{"a closed one", Seen{Label: "r", Has: true, Closed: true, Acted: true, Author: true}, Ignore},
		{"a person labels", Seen{Label: "r", Has: true, Acted: true, Author: true}, Create},
		{"a stranger labels", Seen{Label: "r", Has: true, Author: true}, Ignore},
		{"a stranger labels their own", Seen{Label: "r", Has: true}, Ignore},
		{"a person labels a stranger's", Seen{Label: "r", Has: true, Acted: true}, Create},
		{"which was changed since", Seen{Label: "r", Has: true, Acted: true, Late: true}, Propose},
		{"a person's that was changed since", Seen{Label: "r", Has: true, Acted: true, Author: true, Late: true}, Create},

		{"nothing new", Seen{Label: "r", Has: true, Known: true, Wanted: true, Author: true, Status: ralph.Pending}, Ignore},
		{"an edit", Seen{Label: "r", Has: true, Known: true, Wanted: true, Changed: true, Author: true, Status: ralph.InProgress}, Change},
		{"a stranger's edit", Seen{Label: "r", Has: true, Known: true, Wanted: true, Changed: true, Status: ralph.Pending}, Ignore},
		{"an edit of what is done", Seen{Label: "r", Has: true, Known: true, Wanted: true, Changed: true, Author: true, Status: ralph.Completed}, Ignore},
		{"a person closes", Seen{Label: "r", Has: true, Closed: true, Known: true, Wanted: true, Acted: true, Status: ralph.Pending}, Cancel},
		{"a stranger closes", Seen{Label: "r", Has: true, Closed: true, Known: true, Wanted: true, Status: ralph.Pending}, Ignore},
		{"a person takes the label away", Seen{Label: "r", Known: true, Wanted: true, Acted: true, Status: ralph.InProgress}, Cancel},
		{"closed by its pull request", Seen{Label: "r", Has: true, Closed: true, Known: true, Wanted: true, Acted: true, Review: true, Status: ralph.Merging}, Ignore},
		{"closed when it is done", Seen{Label: "r", Has: true, Closed: true, Known: true, Wanted: true, Acted: true, Status: ralph.Completed}, Ignore},
		{"reopened", Seen{Label: "r", Has: true, Known: true, Acted: true, Status: ralph.Cancelled}, Requeue},
		{"reopened by a stranger", Seen{Label: "r", Has: true, Known: true, Status: ralph.Cancelled}, Ignore},
		{"reopened after it was done", Seen{Label: "r", Has: true, Known: true, Acted: true, Status: ralph.Completed}, Ignore},
	} {
		if got := Decide(tt.seen); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestParse(t *testing.T) {
	for body, want := range map[string]string{
		"looks good":                        "comment 0 looks good true",
		"/answer 2":                         "answer 0 2 true",
		"  /answer use\nthe second\n":       "answer 0 use\nthe second true",
		"> **Question Q31:** which?\n\nA":   "answer 31 A true",
		"> Question Q31: which?\n/answer B": "answer 31 B true",
		"> Question Q31\n/cancel":           "cancel 31  true",
		"> something else\nyes":             "comment 0 yes true",
		"/approve":                          "approve 0  true",
		"/REJECT no\r\nreally":              "reject 0 no\nreally true",
		"/retry":                            "retry 0  true",
		"/cancel":                           "cancel 0  true",
		"/comment x":                        "comment 0 x true",
		"/usr/bin is full":                  "comment 0 /usr/bin is full true",
		"/merge":                            "merge 0  false",
		"/approve.":                         "approve 0  true",
		"/Retry: smaller steps":             "retry 0 smaller steps true",
		"/answer\u00a02":                    "answer 0 2 true",
		"/tmp: is full":                     "comment 0 /tmp: is full true",
		"please /cancel":                    "comment 0 please /cancel true",
		"    /cancel":                       "comment 0 /cancel true",
		"\t/cancel":                         "comment 0 /cancel true",
		"\n   /cancel":                      "cancel 0  true",
		"```\n/cancel\n```":                 "comment 0 ```\n/cancel\n``` true",
		"~~~\n> Q7\n~~~\nx":                 "comment 0 ~~~\n> Q7\n~~~\nx true",
		"  > Q7\n\nred":                     "answer 7 red true",
		"> /cancel":                         "comment 0  true",
		"Q31 is mine":                       "comment 0 Q31 is mine true",
		"":                                  "comment 0  true",
	} {
		c, ok := Parse(body)
		if got := fmt.Sprintf("%s %d %s %v", c.Verb, c.Question, c.Text, ok); got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}

func TestFollow(t *testing.T) {
	red, said := []Check{{Name: "ci", Done: true, Red: true}}, []Review{{Body: "no"}}
	for _, tt := range []struct {
		name string
		news News
		want Step
	}{
		{"nothing", News{}, Wait},
		{"merged", News{Merged: true, Closed: true}, Done},
		{"closed", News{Closed: true}, Drop},
		{"red", News{Red: red}, Work},
		{"red while others run", News{Red: red, Pending: true}, Wait},
		{"a review", News{Reviews: said, Pending: true}, Work},
		{"a remark", News{Remarks: []Remark{{Body: "x"}}}, Work},
		{"a conflict", News{Conflict: true}, Work},
		{"too often", News{Reviews: said, Rounds: 3}, Ask},
		{"far too often", News{Reviews: said, Rounds: 9}, Ask},
		{"merged in spite of it", News{Reviews: said, Merged: true, Rounds: 3}, Done},
		{"approved", News{Approved: true}, Wait},
		{"approved, and auto", News{Approved: true, Auto: true}, MergeNow},
		{"auto without approval", News{Auto: true}, Wait},
		{"auto while checks run", News{Approved: true, Auto: true, Pending: true}, Wait},
		{"auto while another objects", News{Approved: true, Objects: true, Auto: true}, Wait},
		{"auto and red", News{Approved: true, Red: red, Auto: true}, Work},
		{"auto and a conflict", News{Approved: true, Conflict: true, Auto: true}, Work},
		{"its task was cancelled", News{Unwanted: true, Reviews: said}, Withdraw},
		{"its task was cancelled, and it was merged", News{Unwanted: true, Merged: true, Closed: true}, Done},
	} {
		tt.news.Open, tt.news.Reviewing, tt.news.Most = true, true, 3
		if got := Follow(tt.news); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	for name, tt := range map[string]struct {
		news News
		want Step
	}{
		"a session works":               {News{Open: true, Reviews: said, Red: red, Conflict: true, Most: 3}, Wait},
		"a session works, and merged":   {News{Open: true, Merged: true, Closed: true}, Done},
		"it was closed before":          {News{Closed: true}, Wait},
		"it was merged before":          {News{Closed: true, Merged: true}, Wait},
		"it was reopened":               {News{Reviewing: true}, Resume},
		"it was reopened, not wanted":   {News{Unwanted: true}, Resume},
		"no round is allowed":           {News{Open: true, Reviewing: true, Reviews: said}, Ask},
		"no round is allowed, and none": {News{Open: true, Reviewing: true}, Wait},
	} {
		if got := Follow(tt.news); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestClassify(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	for _, tt := range []struct {
		name   string
		status int
		header http.Header
		body   string
		want   Kind
		wait   time.Duration
	}{
		{"revoked token", 401, nil, `{"message":"Bad credentials"}`, Token, 0},
		{"no right, locked or archived", 403, nil, `{"message":"Repository was archived so is read-only."}`, Denied, 0},
		{"primary limit", 403, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1800000120"), "", Limited, 2 * time.Minute},
		{"secondary limit", 403, header("Retry-After", "30"), "", Limited, 30 * time.Second},
		{"secondary limit without a time", 403, nil, `{"message":"You have exceeded a secondary rate limit."}`, Limited, time.Minute},
		{"a date", 429, header("Retry-After", now.Add(90*time.Second).UTC().Format(http.TimeFormat)), "", Limited, 90 * time.Second},
		{"too many requests", 429, header("RateLimit-Reset", "1800000010"), "", Limited, 10 * time.Second},
		{"a limit in the past", 429, header("RateLimit-Reset", "1"), "", Limited, time.Minute},
		{"a limit of a year", 429, header("Retry-After", "31536000"), "", Limited, time.Hour},
		{"deleted issue", 410, nil, "", Gone, 0},
		{"transferred, or not seen", 404, nil, "", Gone, 0},
		{"comment too long", 422, nil, `{"message":"body is too long"}`, Invalid, 0},
		{"larger than allowed", 413, nil, "", Invalid, 0},
		{"broken", 502, nil, "<html>", Away, 0},
		{"time-out", 504, nil, "", Away, 0},
	} {
		e := Classify(tt.status, tt.header, tt.body, now)
		if e.Kind != tt.want || tt.wait != 0 && !e.Until.Equal(now.Add(tt.wait)) {
			t.Errorf("%s: %s until %s, want %s", tt.name, e.Kind, e.Until.Sub(now), tt.want)
		}
	}
	if Passes := Away.Passes() && Limited.Passes() && Token.Passes(); !Passes || Denied.Passes() || Gone.Passes() || Invalid.Passes() {
		t.Error("what passes is what a later try may change")
	}
}

func TestLocate(t *testing.T) {
	for remote, want := range map[string]string{
		"https://github.com/octo/app.git":           "github https://github.com octo app",
		"git@github.com:octo/app.git":               "github https://github.com octo app",
		"ssh://git@gitlab.com:2222/group/sub/app":   "gitlab https://gitlab.com group/sub app",
		"ssh://git@ssh.github.com:443/octo/app.git": "github https://github.com octo app",
		"https://user:pw@codeberg.org/octo/app/":    "gitea https://codeberg.org octo app",
		"http://127.0.0.1:3000/octo/app":            "error",
		"/srv/git/app.git":                          "error",
		"https://github.com/app":                    "error",
		"file:///srv/git/app.git":                   "error",
	} {
		got := "error"
		if a, err := Locate(remote, "", ""); err == nil {
			got = fmt.Sprint(a.Kind, " ", a.URL, " ", a.Owner, " ", a.Name)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
	a, err := Locate("ssh://git@git.example.org/code/octo/app.git", Gitea, "https://git.example.org/code/")
	if diff := cmp.Diff(Address{Gitea, "https://git.example.org/code", "octo", "app"}, a); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestPlain(t *testing.T) {
	got := Plain("/merge\n  /close\ncloses #3, @boss; !12 <!-- ralph: TASK-1 status --> a@b # title, fixes GH-4, fixes " +
		"https://github.com/o/a/issues/5, closes https://gitlab.com/o/a/-/merge_requests/6")
	for _, bad := range []string{"#3", "@boss", "!12", "<!--", "GH-4", "issues/5", "requests/6"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q has %s", got, bad)
		}
	}
	for line := range strings.Lines(got) {
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), "/") {
			t.Errorf("%q is a command", line)
		}
	}
}
