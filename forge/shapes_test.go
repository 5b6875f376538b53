package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ralph/store"
)

// A recorded answers with the documented shapes of an API, by method and path with its query.
type recorded struct {
	answers map[string]string
	asked   []string
	token   string
	fails   int // the status of all answers; 0 for none
	header  http.Header
}

func (r *recorded) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	key := q.Method + " " + q.URL.EscapedPath()
	r.token = q.Header.Get("Authorization") + q.Header.Get("Private-Token")
	for k := range r.header {
		w.Header().Set(k, r.header.Get(k))
	}
	if r.fails != 0 {
		w.WriteHeader(r.fails)
		_, _ = io.WriteString(w, `{"message": "no"}`)
		return
	}
	if n := q.URL.Query().Get("page"); n != "" && n != "1" {
		key += " page " + n
	}
	answer, ok := r.answers[key]
	if !ok {
		r.asked = append(r.asked, key+" ?")
		w.WriteHeader(http.StatusNotFound)
		return
	}
	tag := fmt.Sprintf(`"%x"`, len(answer))
	if q.Header.Get("If-None-Match") == tag {
		r.asked = append(r.asked, key+" unchanged")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	said := key
	if len(body) > 0 {
		var v any
		_ = json.Unmarshal(body, &v)
		b, _ := json.Marshal(v)
		said += " " + string(b)
	}
	r.asked = append(r.asked, said)
	w.Header().Set("ETag", tag)
	w.Header().Set("Content-Type", "application/json")
	if _, more := r.answers[key+" page 2"]; more {
		w.Header().Set("Link", `<http://`+q.Host+q.URL.Path+`?page=2>; rel="next"`)
		w.Header().Set("X-Next-Page", "2")
	}
	_, _ = io.WriteString(w, answer)
}

// at serves recorded answers as a forge.
func at(t *testing.T, kind string, r *recorded) Forge {
	t.Helper()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	f, err := New(Address{Kind: kind, URL: server.URL, Owner: "octo", Name: "app"}, "secret-token", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// allIssues reads all pages.
func allIssues(ctx context.Context, f Forge, since time.Time) (all []Issue, err error) {
	for page := 1; ; page++ {
		list, more, err := f.Issues(ctx, since, page)
		if all = append(all, list...); err != nil || !more {
			return all, err
		}
	}
}

const gitHubAPI = " /api/v3/repos/octo/app"

func gitHubAnswers() *recorded {
	return &recorded{answers: map[string]string{
		"GET" + gitHubAPI:                                   `{"permissions": {"push": true}}`,
		"GET /api/v3/user":                                  `{"login": "me"}`,
		"GET" + gitHubAPI + "/issues":                       `[{"number": 1, "title": "One", "body": "b", "state": "open", "user": {"login": "dev"}, "labels": [{"name": "ralph"}], "milestone": {"title": "m"}, "updated_at": "2026-11-01T10:00:00Z", "html_url": "u"}]`,
		"GET" + gitHubAPI + "/issues page 2":                `[{"number": 2, "title": "A pull", "state": "open", "labels": [{"name": "ralph"}], "updated_at": "2026-11-01T10:30:00Z", "pull_request": {"url": "x"}}, {"number": 3, "title": "Three", "state": "closed", "user": {"login": "x"}, "updated_at": "2026-11-01T11:00:00Z"}]`,
		"GET" + gitHubAPI + "/issues/1/events":              `[{"event": "labeled", "label": {"name": "other"}, "actor": {"login": "no"}, "created_at": "2026-11-01T10:00:00Z"}, {"event": "labeled", "label": {"name": "Ralph"}, "actor": {"login": "dev"}, "created_at": "2026-11-01T10:00:00Z"}]`,
		"GET" + gitHubAPI + "/collaborators/dev/permission": `{"permission": "write"}`,
		"GET" + gitHubAPI + "/collaborators/bob/permission": `{"permission": "read"}`,
		"GET" + gitHubAPI + "/pulls":                        `[{"number": 7, "state": "closed", "updated_at": "2026-11-01T10:00:00Z", "head": {"ref": "ralph/TASK-1", "repo": {"id": 2}}, "base": {"repo": {"id": 1}}}, {"number": 8, "state": "open", "updated_at": "2026-11-01T10:00:00Z", "head": {"ref": "ralph/TASK-1", "repo": {"id": 1}}, "base": {"repo": {"id": 1}}}, {"number": 6, "state": "open", "updated_at": "2026-09-01T10:00:00Z"}]`,
		"GET" + gitHubAPI + "/issues/8/comments":            `[{"id": 3, "body": "hi", "user": {"login": "dev"}}]`,
		"POST" + gitHubAPI + "/pulls/8/comments":            `{"id": 6}`,
		"PATCH" + gitHubAPI + "/pulls/8":                    `{"number": 8}`,
		"GET" + gitHubAPI + "/pulls/8":                      `{"number": 8, "state": "open", "html_url": "p", "draft": true, "mergeable": false, "head": {"sha": "abc"}, "base": {"ref": "main"}}`,
		"GET" + gitHubAPI + "/commits/abc/check-runs":       `{"total_count": 2, "check_runs": [{"name": "ci", "status": "completed", "conclusion": "failure", "output": {"text": "log"}}, {"name": "lint", "status": "in_progress"}]}`,
		"GET" + gitHubAPI + "/commits/abc/status":           `{"statuses": [{"context": "old", "state": "success"}]}`,
		"GET" + gitHubAPI + "/pulls/8/reviews":              `[{"id": 1, "state": "CHANGES_REQUESTED", "body": "no", "user": {"login": "dev"}, "commit_id": "abc"}, {"id": 2, "state": "APPROVED", "user": {"login": "dev"}, "commit_id": "abc"}]`,
		"GET" + gitHubAPI + "/pulls/8/comments":             `[{"id": 5, "path": "a.go", "line": 3, "body": "why", "user": {"login": "dev"}, "original_commit_id": "abc"}]`,
		"PUT" + gitHubAPI + "/pulls/8/merge":                `{"merged": true}`,
		"POST" + gitHubAPI + "/issues/1/comments":           `{"id": 99}`,
		"POST /api/graphql":                                 `{"data": {"repository": {"issue": {"editor": {"login": "rep"}, "lastEditedAt": "2026-11-01T10:00:00Z"}}}}`,
	}}
}

const gitLabAPI = " /api/v4/projects/octo%2Fapp"

func gitLabAnswers() *recorded {
	member := `{"username": "dev", "state": "active", "access_level": 30}`
	return &recorded{answers: map[string]string{
		"GET" + gitLabAPI:                                             `{"id": 1}`,
		"GET /api/v4/user":                                            `{"username": "me"}`,
		"GET" + gitLabAPI + "/members/all":                            `[{"username": "me", "state": "active", "access_level": 40}, {"username": "bob", "state": "active", "access_level": 20}]`,
		"GET" + gitLabAPI + "/members/all page 2":                     `[` + member + `]`,
		"GET" + gitLabAPI + "/issues":                                 `[{"id": 41, "iid": 1, "title": "One", "description": "b", "state": "opened", "author": {"username": "dev"}, "labels": ["ralph"], "milestone": {"title": "m"}, "updated_at": "2026-11-01T10:00:00Z", "web_url": "u"}]`,
		"GET" + gitLabAPI + "/issues page 2":                          `[{"id": 43, "iid": 3, "title": "Three", "state": "closed", "author": {"username": "x"}, "updated_at": "2026-11-01T11:00:00Z"}]`,
		"GET" + gitLabAPI + "/issues/1/resource_label_events":         `[{"action": "add", "label": {"name": "ralph"}, "user": {"username": "dev"}, "created_at": "2026-11-01T10:00:00Z"}]`,
		"GET" + gitLabAPI + "/merge_requests":                         `[{"iid": 7, "state": "closed", "updated_at": "2026-11-01T10:00:00Z", "source_branch": "ralph/TASK-1", "source_project_id": 2, "target_project_id": 1}, {"iid": 8, "state": "opened", "updated_at": "2026-11-01T10:00:00Z", "source_branch": "ralph/TASK-1", "source_project_id": 1, "target_project_id": 1}]`,
		"GET" + gitLabAPI + "/merge_requests/8":                       `{"iid": 8, "state": "opened", "web_url": "p", "sha": "abc", "draft": true, "target_branch": "main", "has_conflicts": true, "head_pipeline": {"id": 4, "sha": "abc"}}`,
		"GET" + gitLabAPI + "/pipelines/4/jobs":                       `[{"id": 6, "name": "ci", "status": "failed"}, {"id": 7, "name": "lint", "status": "running"}, {"id": 8, "name": "old", "status": "success"}]`,
		"GET" + gitLabAPI + "/jobs/6/trace":                           `log`,
		"GET" + gitLabAPI + "/merge_requests/8/approvals":             `{"approved_by": [{"user": {"username": "dev"}}]}`,
		"GET" + gitLabAPI + "/merge_requests/8/reviewers":             `[{"user": {"username": "bob"}, "state": "unreviewed"}]`,
		"GET" + gitLabAPI + "/merge_requests/8/discussions":           `[{"id": "d1", "notes": [{"id": 5, "body": "why", "author": {"username": "dev"}, "position": {"new_path": "a.go", "new_line": 3, "head_sha": "abc"}}, {"id": 6, "system": true, "body": "added 1 commit", "author": {"username": "dev"}}]}, {"id": "d2", "individual_note": true, "notes": [{"id": 3, "body": "hi", "author": {"username": "dev"}}]}]`,
		"POST" + gitLabAPI + "/merge_requests/8/discussions/d1/notes": `{"id": 6}`,
		"PUT" + gitLabAPI + "/merge_requests/8":                       `{"iid": 8}`,
		"PUT" + gitLabAPI + "/merge_requests/8/merge":                 `{"iid": 8}`,
		"POST" + gitLabAPI + "/issues/1/notes":                        `{"id": 99}`,
		"GET" + gitLabAPI + "/issues/1/notes": `[{"id": 7, "system": true, "body": "changed the description", "author": {"username": "rep"}, "created_at": "2026-11-01T10:00:00Z"},
			{"id": 8, "system": false, "body": "changed the description", "author": {"username": "guest"}, "created_at": "2026-11-01T11:00:00Z"},
			{"id": 9, "system": true, "body": "added ~bug label", "author": {"username": "guest"}, "created_at": "2026-11-01T11:00:00Z"}]`,
	}}
}

func TestRecordedShapes(t *testing.T) {
	for kind, answers := range map[string]func() *recorded{GitHub: gitHubAnswers, GitLab: gitLabAnswers} {
		t.Run(kind, func(t *testing.T) {
			r := answers()
			f := at(t, kind, r)
			ctx := t.Context()
			self, err := f.Self(ctx)
			if diff := cmp.Diff(Account{"me", true}, self); diff != "" || err != nil {
				t.Error(err, diff)
			}
			if !strings.Contains(r.token, "secret-token") {
				t.Errorf("the token was not sent: %q", r.token)
			}
			since := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
			issues, err := allIssues(ctx, f, since)
			issues = slices.DeleteFunc(issues, func(i Issue) bool { return i.Number == 2 && i.Labels == nil && i.Title == "" })
			if len(issues) != 2 || err != nil {
				t.Fatalf("%+v, %v: want both pages, and of the pull request nothing but its time", issues, err)
			}
			at := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
			if diff := cmp.Diff(Issue{1, "u", "One", "b", "dev", []string{"ralph"}, "m", false, at}, issues[0]); diff != "" {
				t.Error(diff)
			}
			r.asked = nil
			if again, err := allIssues(ctx, f, since); len(again) < 2 || err != nil || len(r.asked) != 2 ||
				!strings.HasSuffix(r.asked[0], "unchanged") || !strings.HasSuffix(r.asked[1], "unchanged") {
				t.Errorf("%v, %v: an unchanged list is asked for by its tag", r.asked, err)
			}
			for login, want := range map[string]bool{"dev": true, "bob": false, "nobody": false} {
				if got, err := f.CanWrite(ctx, login); got != want || err != nil {
					t.Errorf("%s may write: %v, %v", login, got, err)
				}
			}
			if who, when, err := f.Last(ctx, 1, Labelled, "ralph"); who != "dev" || !when.Equal(at) || err != nil {
				t.Errorf("labelled by %s at %s, %v", who, when, err)
			}
			if who, _, err := f.Last(ctx, 1, Edited, ""); who != "rep" || err != nil {
				t.Errorf("edited by %q, %v", who, err)
			}
			if id, err := f.Comment(ctx, 1, "hi"); id != "99" || err != nil {
				t.Errorf("comment %s, %v", id, err)
			}
			if n, err := f.PullOf(ctx, "ralph/TASK-1"); n != 8 || err != nil {
				t.Errorf("pull request %d, %v: want that of the repository, and not of a fork", n, err)
			}
			p, err := f.Pull(ctx, 8)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Checks) != 3 || !p.Checks[0].Red || p.Checks[0].Log != "log" || p.Checks[1].Done || p.Checks[2].Red ||
				len(p.Reviews) != 1 || !p.Reviews[0].Approves || p.Head != "abc" || p.Into != "main" || !p.Draft {
				t.Errorf("%+v", p)
			}
			if len(p.Remarks) != 1 || p.Remarks[0].File != "a.go" || p.Remarks[0].Line != 3 || p.Remarks[0].Author != "dev" {
				t.Errorf("%+v", p.Remarks)
			}
			if len(p.Comments) != 1 || p.Comments[0].Body != "hi" || p.Comments[0].Author != "dev" {
				t.Errorf("%+v", p.Comments)
			}
			changed, err := f.Changed(ctx, since)
			if diff := cmp.Diff([]Changed{{7, false, at}, {8, true, at}}, changed); diff != "" || err != nil {
				t.Error(err, diff)
			}
			if err := f.Say(ctx, 8, p.Remarks[0].Thread, "done"); err != nil {
				t.Error(err)
			}
			if last := r.asked[len(r.asked)-1]; !strings.Contains(last, `"in_reply_to":5`) && !strings.Contains(last, "discussions/d1/notes") {
				t.Errorf("%s is no answer to the thread", last)
			}
			if err := f.Close(ctx, 8); err != nil {
				t.Error(err)
			}
			if last := r.asked[len(r.asked)-1]; !strings.Contains(last, `"state":"closed"`) && !strings.Contains(last, `"state_event":"close"`) {
				t.Errorf("%s closes nothing", last)
			}
			if queued, err := f.Merge(ctx, 8, "abc"); err != nil || queued {
				t.Error(err)
			}
			if last := r.asked[len(r.asked)-1]; !strings.Contains(last, `"sha":"abc"`) {
				t.Errorf("%s merges whatever the head is", last)
			}
			limits(t, f, r)
		})
	}
}

// limits compares a forge's reports of its limits and rights.
func limits(t *testing.T, f Forge, r *recorded) {
	t.Helper()
	for _, tt := range []struct {
		status int
		header http.Header
		want   Kind
	}{
		{403, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1"}}, Limited},
		{403, http.Header{"Retry-After": {"7"}}, Limited},
		{429, http.Header{"Retry-After": {"7"}}, Limited},
		{401, nil, Token},
		{403, nil, Denied},
		{404, nil, Gone},
		{503, nil, Away},
	} {
		r.fails, r.header = tt.status, tt.header
		if _, err := f.Comment(t.Context(), 1, "x"); err == nil || KindOf(err) != tt.want {
			t.Errorf("%d %v: %v, want %s", tt.status, tt.header, err, tt.want)
		}
	}
}

// TestAnApp has a name of its own, and may lack the right to read checks: then it is not known whether they are green.
func TestAnApp(t *testing.T) {
	r := gitHubAnswers()
	r.answers["POST /api/graphql"] = `{"data": {"viewer": {"login": "my-app[bot]"}}}`
	denies := []string{"/api/v3/user", "/check-runs"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if slices.ContainsFunc(denies, func(end string) bool { return strings.HasSuffix(q.URL.Path, end) }) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"message": "Resource not accessible by integration"}`)
			return
		}
		r.ServeHTTP(w, q)
	}))
	defer server.Close()
	f, err := New(Address{Kind: GitHub, URL: server.URL, Owner: "octo", Name: "app"}, "secret-token", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if self, err := f.Self(t.Context()); err != nil || self != (Account{"my-app[bot]", true}) {
		t.Errorf("%+v, %v", self, err)
	}
	p, err := f.Pull(t.Context(), 8)
	if err != nil || !slices.ContainsFunc(p.Checks, func(c Check) bool { return !c.Done && !c.Red }) {
		t.Errorf("%+v, %v", p.Checks, err)
	}
	r.answers["POST /api/graphql"] = `{"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]}`
	if _, err := f.Merge(t.Context(), 8, "abc"); KindOf(err) != Limited {
		t.Errorf("it merges beside the merge queue: %v", err)
	}
	r.answers["POST /api/graphql"] = `{"errors": [{"type": "FORBIDDEN", "message": "Resource not accessible by integration"}]}`
	if who, _, err := f.Last(t.Context(), 1, Edited, ""); err == nil {
		t.Errorf("an editor that may not be looked up is %q", who)
	}
}

// TestAnIssueThatHasMoved to another repository gets no post: the client would read there instead of writing.
func TestAnIssueThatHasMoved(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.Contains(q.URL.Path, "/issues/1/") {
			http.Redirect(w, q, "/elsewhere", http.StatusMovedPermanently)
			return
		}
		_, _ = io.WriteString(w, `[]`)
	}))
	defer server.Close()
	for _, kind := range []string{GitHub, GitLab, Gitea} {
		f, err := New(Address{Kind: kind, URL: server.URL, Owner: "octo", Name: "app"}, "secret-token", time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Comment(t.Context(), 1, "x"); KindOf(err) != Gone {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestARenamedRepository is found by the redirects of its forge.
func TestARenamedRepository(t *testing.T) {
	r := gitHubAnswers()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if old, ok := strings.CutPrefix(q.URL.Path, "/api/v3/repos/octo/old"); ok {
			http.Redirect(w, q, "/api/v3/repos/octo/app"+old+"?"+q.URL.RawQuery, http.StatusTemporaryRedirect)
			return
		}
		r.ServeHTTP(w, q)
	}))
	defer server.Close()
	f, err := New(Address{Kind: GitHub, URL: server.URL, Owner: "octo", Name: "old"}, "secret-token", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := allIssues(t.Context(), f, time.Time{}); err != nil || len(list) == 0 || !strings.Contains(r.token, "secret-token") {
		t.Errorf("%v, %v", list, err)
	}
	if id, err := f.Comment(t.Context(), 1, "hi"); err != nil || id != "99" {
		t.Errorf("%s, %v", id, err)
	}
}

// TestShortPages: a server of Gitea may make its pages shorter than asked for. A look without news is one request.
func TestShortPages(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked++
		list := []string{}
		for n, from := 1, q.URL.Query().Get("page"); n <= 2 && from != "3"; n++ {
			list = append(list, fmt.Sprintf(`{"number": %s%d, "updated_at": "2026-11-01T10:00:00Z", "type": "label", "body": "1",
				"label": {"name": "ralph"}, "user": {"login": "of page %[1]s"}}`, from, n))
		}
		if !strings.Contains(q.URL.Path, "timeline") {
			w.Header().Set("X-Total-Count", "4")
		}
		fmt.Fprintf(w, "[%s]", strings.Join(list, ","))
	}))
	defer server.Close()
	f, err := New(Address{Kind: Gitea, URL: server.URL, Owner: "octo", Name: "app"}, "secret-token", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if list, _, err := f.Issues(t.Context(), time.Time{}, 1); len(list) != 4 || asked != 2 || err != nil {
		t.Errorf("%d issues by %d requests, %v", len(list), asked, err)
	}
	if list, err := f.Changed(t.Context(), time.Time{}); len(list) != 4 || asked != 4 || err != nil {
		t.Errorf("%d pull requests by %d requests, %v", len(list), asked, err)
	}
	if who, _, err := f.Last(t.Context(), 1, Labelled, "ralph"); who != "of page 2" || err != nil {
		t.Errorf("labelled by %q, %v", who, err)
	}
}

// TestLeads: a former name of a repository leads to it, and the name of another one does not.
func TestLeads(t *testing.T) {
	for kind, api := range map[string]string{
		GitHub: "/api/v3/repos/octo/", GitLab: "/api/v4/projects/octo%2F", Gitea: "/api/v1/repos/octo/",
	} {
		t.Run(kind, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				switch name := strings.TrimPrefix(q.URL.EscapedPath(), api); name {
				case "old":
					http.Redirect(w, q, api+"app", http.StatusMovedPermanently)
				case "app", "other":
					fmt.Fprintf(w, `{"full_name": "octo/%[1]s"}`, name)
				case "lab":
					fmt.Fprint(w, `{"path_with_namespace": "Octo/App"}`)
				default:
					w.WriteHeader(http.StatusNotFound)
				}
			}))
			defer server.Close()
			f, err := New(Address{Kind: kind, URL: server.URL, Owner: "octo", Name: "app"}, "secret-token", time.Now)
			if err != nil {
				t.Fatal(err)
			}
			host := strings.TrimPrefix(server.URL, "http://")
			for from, want := range map[string]bool{
				host + "/octo/old": true, host + "/octo/lab": true, host + "/octo/other": false, host + "/octo/none": false,
				"git.example.org/octo/old": false,
			} {
				if is, err := f.Leads(t.Context(), from); is != want || err != nil {
					t.Errorf("%s: %v, %v", from, is, err)
				}
			}
		})
	}
}

func TestTheTokenGoesToTheForgeAlone(t *testing.T) {
	other := &recorded{answers: map[string]string{"GET /elsewhere": `[]`}}
	elsewhere := httptest.NewServer(other)
	defer elsewhere.Close()
	here := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/elsewhere", http.StatusFound))
	defer here.Close()
	f, err := New(Address{Kind: GitHub, URL: here.URL, Owner: "octo", Name: "app"}, "secret-token", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := allIssues(t.Context(), f, time.Time{}); err != nil || len(other.asked) == 0 || other.token != "" {
		t.Errorf("%v, %v: the other host got %q", err, other.asked, other.token)
	}
}

// TestAForgeThatIsWrongEndsNothing: the client of GitLab panics at an issue without an id.
func TestAForgeThatIsWrongEndsNothing(t *testing.T) {
	r := gitLabAnswers()
	r.answers["GET"+gitLabAPI+"/issues"] = `[{"iid": 1}]`
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ralph.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	s := &Syncer{
		Forge: at(t, GitLab, r), Store: db, Label: "ralph", Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Mask: func(s string) string { return s },
	}
	if err := s.Once(t.Context()); KindOf(err) != Away {
		t.Errorf("got %v", err)
	}
}
