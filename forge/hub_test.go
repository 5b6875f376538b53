package forge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A lossy hub answers every limitedEvery-th request with a rate limit, and loses the answer to every lostEvery-th write,
// which it carries out.
const (
	limitedEvery = 211
	lostEvery    = 7
)

// A hub serves a [fake] by the documented REST API of GitHub or GitLab, with git over HTTP: with pages, tags, rate
// limits and rights. People act on the fake itself, ralph by requests with boss's token.
type hub struct {
	*fake
	t         *testing.T
	kindOf    string
	dir       string // of the bare repository boss/app.git
	url       string
	page      int        // the longest page of a list: short, so that a night has several
	mu        sync.Mutex // one request or act at a time
	count     int        // of requests that cost something
	writes    int
	requested int
	lossy     bool     // lose some answers and limit some requests
	queue     bool     // the target has a merge queue
	queued    []string // what was put into it, as number and head
	asked     []string // requests that were not answered from a tag
	unknown   []string // requests that it does not know
	server    *http.Server
	api       *http.ServeMux
}

const hubToken = "hub-token-of-boss"

// newHub starts a hub of a kind. Its repository has a commit on main.
func newHub(t *testing.T, kind string) *hub {
	t.Helper()
	h := &hub{fake: newFake(), t: t, kindOf: kind, page: 5, dir: filepath.Join(t.TempDir(), "boss", "app.git"), api: http.NewServeMux()}
	h.apart = kind == GitLab
	h.clock = func() time.Time {
		return time.Now().Truncate(map[string]time.Duration{GitHub: time.Second, GitLab: time.Millisecond}[kind])
	}
	git(t, "", "init", "-q", "--bare", "--initial-branch=main", h.dir)
	git(t, h.dir, "config", "http.receivepack", "true")
	h.write(boss, "main", "README.md", "app\n")
	if kind == GitHub {
		h.serveGitHub()
	} else {
		h.serveGitLab()
	}
	h.api.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.unknown = append(h.unknown, r.Method+" "+r.URL.String())
		h.answer(w, http.StatusNotFound, m{"message": "404 Not Found"})
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.url = "http://" + l.Addr().String()
	h.serve(l)
	t.Cleanup(h.stop)
	return h
}

func (h *hub) serve(l net.Listener) {
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = h.server.Serve(l) }()
}

func (h *hub) stop() { _ = h.server.Close() }

func (h *hub) start() {
	l, err := net.Listen("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.serve(l)
}

// git runs git in a folder.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := gitIn(dir, args...)
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return out
}

func gitIn(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=P", "GIT_AUTHOR_EMAIL=p@example.test", "GIT_COMMITTER_NAME=P", "GIT_COMMITTER_EMAIL=p@example.test")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// in works in a clone of the repository, and pushes.
func (h *hub) in(does func(git func(args ...string)), push ...string) {
	h.t.Helper()
	dir := h.t.TempDir()
	git(h.t, "", "clone", "-q", h.dir, dir)
	does(func(args ...string) { h.t.Helper(); git(h.t, dir, args...) })
	git(h.t, dir, append([]string{"push", "-q", "--force", "origin"}, push...)...)
	h.pushed()
}

// write has somebody commit a file to a branch.
func (h *hub) write(_, branch, file, text string) {
	h.t.Helper()
	h.in(func(git func(args ...string)) {
		if branch != "main" {
			git("checkout", "-q", branch)
		}
		git("-c", "alias.put=!printf %s '"+text+"' >"+file, "put")
		git("add", "-A")
		git("commit", "-qm", "Write "+file)
	}, "HEAD:refs/heads/"+branch)
}

// tip returns the commit of a branch; "" if there is none.
func (h *hub) tip(branch string) string {
	out, err := gitIn(h.dir, "rev-parse", "-q", "--verify", "refs/heads/"+branch)
	if err != nil {
		return ""
	}
	return out
}

// pushed notes the new heads of pull requests.
func (h *hub) pushed() {
	for n, p := range h.pulls {
		if tip := h.tip(p.Branch); !p.Closed && tip != "" && tip != p.Head {
			h.changes(n, func(p *fakePull) { p.Head, p.Checks = tip, nil })
		}
	}
}

// mergeAs merges a pull request, and closes the issues that it names.
func (h *hub) mergeAs(as string, n int64, style string) {
	h.t.Helper()
	p := h.pulls[n]
	target := []string{"HEAD:refs/heads/main"}
	if h.kindOf == GitLab && style == "rebase" { // the branch itself is rebased, and fast-forwarded
		target = append(target, "HEAD:refs/heads/"+p.Branch)
	}
	h.in(func(git func(args ...string)) {
		switch style {
		case "merge":
			git("merge", "-q", "--no-ff", "-m", "Merge "+p.Branch, "origin/"+p.Branch)
		case "squash":
			git("merge", "-q", "--squash", "origin/"+p.Branch)
			git("commit", "-qm", "Squash "+p.Branch)
		case "rebase":
			git("checkout", "-q", "-B", "rebased", "origin/"+p.Branch)
			git("rebase", "-q", "origin/main")
		}
	}, target...)
	h.changes(n, func(p *fakePull) { p.Closed, p.Merged, p.style = true, h.tip("main"), style })
	for number, i := range h.issues {
		if !i.Closed && strings.Contains(p.Body, fmt.Sprintf("Closes #%d\n", number)) {
			h.closes(as, number, true)
		}
	}
}

// m is a JSON object.
type m = map[string]any

// ServeHTTP serves git and the API.
func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/boss/app.git/") {
		if _, password, ok := r.BasicAuth(); !ok || password != hubToken {
			w.Header().Set("WWW-Authenticate", `Basic realm="hub"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		path := git(h.t, "", "--exec-path")
		(&cgi.Handler{Path: filepath.Join(path, "git-http-backend"), Root: "/", Env: []string{
			"GIT_PROJECT_ROOT=" + filepath.Dir(filepath.Dir(h.dir)), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=boss",
		}}).ServeHTTP(w, r)
		h.pushed()
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+hubToken && r.Header.Get("Private-Token") != hubToken {
		h.answer(w, http.StatusUnauthorized, m{"message": "Bad credentials"})
		return
	}
	if h.count++; h.lossy && h.count%limitedEvery == 0 {
		w.Header().Set("Retry-After", "1")
		status := map[string]int{GitHub: http.StatusForbidden, GitLab: http.StatusTooManyRequests}[h.kindOf]
		h.answer(w, status, m{"message": "You have exceeded a secondary rate limit."})
		return
	}
	h.requested++
	body := httptest.NewRecorder()
	h.api.ServeHTTP(body, r)
	if r.Method != http.MethodGet {
		h.writes++
	}
	if h.lossy && r.Method != http.MethodGet && h.writes%lostEvery == 0 {
		h.answer(w, http.StatusBadGateway, m{"message": "Bad Gateway"})
		return
	}
	for k, v := range body.Header() {
		w.Header()[k] = v
	}
	w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(100_000-h.count))
	if r.Method == http.MethodGet && body.Code == http.StatusOK {
		tag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(fmt.Append(body.Body.Bytes(), body.Header())))
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			h.count--
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.asked = append(h.asked, r.Method+" "+r.URL.Path)
	w.WriteHeader(body.Code)
	_, _ = w.Write(body.Body.Bytes())
}

// answer answers with an object.
func (h *hub) answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// failed answers with the failure of the fake.
func (h *hub) failed(w http.ResponseWriter, err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		h.answer(w, e.Status, m{"message": e.Said})
	}
	return err != nil
}

// list answers with a page of a list.
func (h *hub) list(w http.ResponseWriter, r *http.Request, all []any) {
	q := r.URL.Query()
	page, _ := strconv.Atoi(q.Get("page"))
	page = max(page, 1)
	from, to := min(len(all), (page-1)*h.page), min(len(all), page*h.page)
	if to < len(all) {
		q.Set("page", strconv.Itoa(page+1))
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, h.url, r.URL.EscapedPath(), q.Encode()))
		w.Header().Set("X-Next-Page", strconv.Itoa(page+1))
	}
	h.answer(w, http.StatusOK, append([]any{}, all[from:to]...))
}

// on serves a route below the repository. The handler gets the request's number and fields, and an answer or a list.
func (h *hub) on(route string, does func(n int64, r *http.Request, in m) (any, error)) {
	method, path, _ := strings.Cut(route, " ")
	base := map[string]string{GitHub: "/api/v3/repos/boss/app", GitLab: "/api/v4/projects/{project}"}[h.kindOf]
	h.api.HandleFunc(method+" "+base+path, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.ParseInt(r.PathValue("n"), 10, 64)
		var in m
		b, _ := io.ReadAll(r.Body)
		if json.Unmarshal(b, &in) != nil {
			_ = json.Unmarshal(append(append([]byte(`{"list": `), b...), '}'), &in)
		}
		out, err := does(n, r, in)
		if h.failed(w, err) {
			return
		}
		if list, ok := out.([]any); ok {
			h.list(w, r, list)
			return
		}
		status := http.StatusOK
		if r.Method == http.MethodPost {
			status = http.StatusCreated
		}
		if text, ok := out.(string); ok {
			_, _ = w.Write([]byte(text))
			return
		}
		h.answer(w, status, out)
	})
}

// str returns a field of a request.
func str(in m, name string) string { s, _ := in[name].(string); return s }

// sorted lists the issues or the pull requests that changed since a moment, by the time of their change.
func sorted[T any](all map[int64]T, at func(T) time.Time, since string) (list []T) {
	from, _ := time.Parse(time.RFC3339, since)
	var numbers []int64
	for n, v := range all {
		if !at(v).Before(from) {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(a, b int64) int { return cmp.Or(at(all[a]).Compare(at(all[b])), cmp.Compare(a, b)) })
	for _, n := range numbers {
		list = append(list, all[n])
	}
	return list
}

// account returns an account in an answer.
func account(login string) m { return m{"login": login, "username": login, "id": 1} }

// idOf returns a comment's id in an answer.
func idOf(id string) int64 { n, _ := strconv.ParseInt(id, 10, 64); return n }

func stateOf(closed bool) string { return map[bool]string{true: "closed", false: "open"}[closed] }

// hubIssue returns an issue in an answer of GitHub.
func (h *hub) hubIssue(i *fakeIssue) m {
	labels := []any{}
	for _, l := range i.Labels {
		labels = append(labels, m{"name": l})
	}
	return m{
		"number": i.Number, "title": i.Title, "body": i.Body, "state": stateOf(i.Closed), "user": account(i.Author), "labels": labels,
		"updated_at": i.Updated, "html_url": h.url + "/boss/app/issues/" + fmt.Sprint(i.Number),
	}
}

// hubPull returns a pull request in an answer of GitHub.
func (h *hub) hubPull(p *fakePull) m {
	return m{
		"number": p.Number, "state": stateOf(p.Closed), "title": p.Title, "body": p.Proposal.Body, "updated_at": p.Updated,
		"merged": p.Merged != "", "merge_commit_sha": p.Merged, "html_url": h.url + "/boss/app/pull/" + fmt.Sprint(p.Number),
		"head": m{"ref": p.Branch, "sha": p.Head, "repo": m{"id": 1}}, "base": m{"ref": p.Pull.Into, "repo": m{"id": 1}}, "draft": p.Draft,
	}
}

func hubNotes(list []Comment, since string) (all []any) {
	from, _ := time.Parse(time.RFC3339, since)
	for _, c := range list {
		if !c.Updated.Before(from) {
			all = append(all, m{"id": idOf(c.ID), "user": account(c.Author), "body": c.Body, "updated_at": c.Updated})
		}
	}
	return append([]any{}, all...)
}

// said returns the comments of an issue or, on GitHub, of a pull request.
func (h *hub) said(n int64) *[]Comment {
	if i, ok := h.issues[n]; ok {
		return &i.comments
	}
	if p, ok := h.pulls[n]; ok {
		return &p.comments
	}
	return new([]Comment)
}

// serveGitHub serves the API of GitHub.
func (h *hub) serveGitHub() {
	ctx := context.Background()
	h.api.HandleFunc("GET /api/v3/user", func(w http.ResponseWriter, _ *http.Request) { h.answer(w, http.StatusOK, account(boss)) })
	h.on("GET ", func(int64, *http.Request, m) (any, error) { return m{"id": 1, "permissions": m{"push": true}}, nil })
	h.on("GET /collaborators/{login}/permission", func(_ int64, r *http.Request, _ m) (any, error) {
		ok, err := h.CanWrite(ctx, r.PathValue("login"))
		return m{"permission": map[bool]string{true: "write", false: "read"}[ok]}, err
	})
	h.on("GET /issues", func(_ int64, r *http.Request, _ m) (any, error) {
		all := []any{}
		for _, i := range sorted(h.issues, func(i *fakeIssue) time.Time { return i.Updated }, r.URL.Query().Get("since")) {
			all = append(all, h.hubIssue(i))
		}
		for _, p := range sorted(h.pulls, func(p *fakePull) time.Time { return p.Updated }, r.URL.Query().Get("since")) {
			is := h.hubPull(p)
			is["pull_request"] = m{"url": "x"} // they are issues, too
			all = append(all, is)
		}
		slices.SortStableFunc(all, func(a, b any) int { return a.(m)["updated_at"].(time.Time).Compare(b.(m)["updated_at"].(time.Time)) })
		return all, nil
	})
	h.on("GET /issues/{n}/events", func(n int64, _ *http.Request, _ m) (any, error) {
		all := []any{}
		if i, ok := h.issues[n]; ok {
			for _, a := range i.acts {
				all = append(all, m{"event": a.act, "actor": account(a.who), "label": m{"name": a.label}, "created_at": a.at})
			}
		}
		return all, nil
	})
	h.on("GET /issues/{n}/comments", func(n int64, r *http.Request, _ m) (any, error) {
		return hubNotes(*h.said(n), r.URL.Query().Get("since")), nil
	})
	h.on("POST /issues/{n}/comments", func(n int64, _ *http.Request, in m) (any, error) {
		return m{"id": idOf(h.says(boss, n, str(in, "body")))}, nil
	})
	h.on("PATCH /issues/comments/{n}", func(n int64, _ *http.Request, in m) (any, error) {
		for issue, i := range h.issues {
			if slices.ContainsFunc(i.comments, func(c Comment) bool { return idOf(c.ID) == n }) {
				return m{"id": n}, h.Edit(ctx, issue, fmt.Sprint(n), str(in, "body"))
			}
		}
		return nil, errGone
	})
	h.on("POST /issues/comments/{n}/reactions", func(n int64, _ *http.Request, in m) (any, error) {
		h.reacts(fmt.Sprint(n), str(in, "content"))
		return m{"id": 1}, nil
	})
	labels := func(n int64) (any, error) {
		if i, ok := h.issues[n]; ok {
			return h.hubIssue(i)["labels"], nil
		}
		return nil, errGone
	}
	h.on("GET /issues/{n}/labels", func(n int64, _ *http.Request, _ m) (any, error) { return labels(n) })
	h.on("POST /issues/{n}/labels", func(n int64, _ *http.Request, in m) (any, error) {
		if i, ok := h.issues[n]; ok {
			for _, l := range in["list"].([]any) {
				if !slices.Contains(i.Labels, l.(string)) {
					h.label(boss, n, l.(string), true)
				}
			}
		}
		return labels(n)
	})
	h.on("DELETE /issues/{n}/labels/{name}", func(n int64, r *http.Request, _ m) (any, error) {
		if i, ok := h.issues[n]; !ok || !slices.Contains(i.Labels, r.PathValue("name")) {
			return nil, errGone
		}
		h.label(boss, n, r.PathValue("name"), false)
		return labels(n)
	})
	h.serveGitHubPulls(ctx)
	h.serveGraphQL()
}

// serveGitHubPulls serves the pull requests of GitHub.
func (h *hub) serveGitHubPulls(ctx context.Context) {
	h.on("GET /pulls", func(_ int64, r *http.Request, _ m) (any, error) {
		all := []any{}
		for _, p := range slices.Backward(sorted(h.pulls, func(p *fakePull) time.Time { return p.Updated }, "")) {
			if head := r.URL.Query().Get("head"); (head == "" || head == "boss:"+p.Branch) &&
				(r.URL.Query().Get("state") == "all" || !p.Closed) {
				all = append(all, h.hubPull(p))
			}
		}
		return all, nil
	})
	h.on("POST /pulls", func(_ int64, _ *http.Request, in m) (any, error) {
		n, err := h.opens(Proposal{str(in, "title"), str(in, "body"), str(in, "head"), str(in, "base")})
		return m{"number": n}, err
	})
	pull := func(route string, does func(p *fakePull, in m) (any, error)) {
		h.on(route, func(n int64, _ *http.Request, in m) (any, error) {
			if p, ok := h.pulls[n]; ok {
				return does(p, in)
			}
			return nil, errGone
		})
	}
	pull("GET /pulls/{n}", func(p *fakePull, _ m) (any, error) { return h.hubPull(p), nil })
	pull("PATCH /pulls/{n}", func(p *fakePull, in m) (any, error) {
		if str(in, "state") != "closed" {
			return nil, &Error{Status: 422, Said: "Validation Failed"}
		}
		return h.hubPull(p), h.Close(ctx, p.Number)
	})
	pull("GET /pulls/{n}/reviews", func(p *fakePull, _ m) (any, error) {
		all := []any{}
		for _, r := range p.Reviews {
			is := "COMMENTED"
			if r.Approves {
				is = "APPROVED"
			} else if r.Objects {
				is = "CHANGES_REQUESTED"
			}
			all = append(all, m{"id": idOf(r.ID), "user": account(r.Author), "body": r.Body, "state": is, "commit_id": r.Commit})
		}
		return all, nil
	})
	pull("GET /pulls/{n}/comments", func(p *fakePull, _ m) (any, error) {
		all := []any{}
		for _, r := range p.Remarks {
			all = append(all, m{"id": idOf(r.ID), "user": account(r.Author), "body": r.Body, "path": r.File, "line": r.Line})
			for i, body := range p.threads[r.Thread] {
				all = append(all, m{
					"id": idOf(r.ID)*1000 + int64(i), "in_reply_to_id": idOf(r.ID), "user": account(boss), "body": body,
				})
			}
		}
		return all, nil
	})
	pull("POST /pulls/{n}/comments", func(p *fakePull, in m) (any, error) {
		return m{"id": 1}, h.Say(ctx, p.Number, fmt.Sprint(in["in_reply_to"]), str(in, "body"))
	})
	pull("PUT /pulls/{n}/merge", func(p *fakePull, in m) (any, error) {
		if h.queue {
			return nil, &Error{Status: 405, Said: "Repository rule violations found: Changes must be made through the merge queue"}
		}
		return m{"merged": true}, h.accepts(p, str(in, "sha"))
	})
	h.on("GET /commits/{sha}/check-runs", func(_ int64, r *http.Request, _ m) (any, error) {
		all := []any{}
		for _, p := range h.pulls {
			for _, c := range p.Checks {
				if p.Head == r.PathValue("sha") {
					all = append(all, m{
						"name": c.Name, "status": "completed", "output": m{"text": c.Log},
						"conclusion": map[bool]string{true: "failure", false: "success"}[c.Red],
					})
				}
			}
		}
		return m{"total_count": len(all), "check_runs": all}, nil
	})
	h.on("GET /commits/{sha}/status", func(int64, *http.Request, m) (any, error) { return m{"statuses": []any{}}, nil })
}

// serveGraphQL serves the query and the mutation for the merge queue.
func (h *hub) serveGraphQL() {
	h.api.HandleFunc("POST /api/graphql", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Query     string
			Variables struct {
				Number   int64
				ID, Head string
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		v := in.Variables
		p, ok := h.pulls[v.Number+idOf(v.ID)]
		switch {
		case !ok || strings.Contains(in.Query, "enqueuePullRequest") && (!h.queue || v.Head != p.Head || h.isQueued(p)):
			h.answer(w, http.StatusOK, m{"data": nil, "errors": []any{m{"message": "Could not resolve to a node"}}})
		case strings.Contains(in.Query, "enqueuePullRequest"):
			h.queued = append(h.queued, fmt.Sprint(p.Number, " ", p.Head))
			h.answer(w, http.StatusOK, m{"data": m{"enqueuePullRequest": m{}}})
		default:
			h.answer(w, http.StatusOK, m{"data": m{"repository": m{"pullRequest": m{
				"id": fmt.Sprint(p.Number), "isInMergeQueue": h.isQueued(p), "isMergeQueueEnabled": h.queue,
			}}}})
		}
	})
}

// isQueued reports whether the head of a pull request is in the merge queue.
func (h *hub) isQueued(p *fakePull) bool {
	return slices.Contains(h.queued, fmt.Sprint(p.Number, " ", p.Head))
}

// opens opens a pull request of a branch that was pushed.
func (h *hub) opens(p Proposal) (int64, error) {
	if h.tip(p.Branch) == "" || slices.ContainsFunc(slices.Collect(maps.Values(h.pulls)), func(o *fakePull) bool {
		return !o.Closed && o.Branch == p.Branch
	}) {
		return 0, &Error{Status: 422, Said: "Validation Failed"}
	}
	n, err := h.Open(context.Background(), p)
	h.pulls[n].Head = h.tip(p.Branch)
	return n, err
}

// accepts merges a pull request for ralph.
func (h *hub) accepts(p *fakePull, head string) error {
	if head != p.Head {
		return &Error{Status: http.StatusConflict, Said: "Head branch was modified. Review and try the merge again."}
	}
	h.mergeAs(boss, p.Number, "merge")
	return nil
}

// labMerge returns a merge request in an answer of GitLab.
func (h *hub) labMerge(p *fakePull) m {
	is := m{
		"iid": p.Number, "state": "opened", "title": p.Title, "description": p.Proposal.Body, "updated_at": p.Updated,
		"source_branch": p.Branch, "target_branch": p.Pull.Into, "draft": p.Draft, "source_project_id": 1, "target_project_id": 1, "sha": p.Head,
		"web_url": h.url + "/boss/app/-/merge_requests/" + fmt.Sprint(p.Number),
	}
	if len(p.Checks) > 0 {
		is["head_pipeline"] = m{"id": 1000 + p.Number, "sha": p.Head}
	}
	if p.Closed {
		is["state"] = "closed"
	}
	if p.Merged != "" {
		is["state"] = "merged"
		if field := map[string]string{"merge": "merge_commit_sha", "squash": "squash_commit_sha"}[p.style]; field != "" {
			is[field] = p.Merged
		}
	}
	return is
}

// labNote returns a comment in an answer of GitLab.
func labNote(id int64, as, body string, at time.Time) m {
	return m{"id": id, "author": account(as), "body": body, "updated_at": at, "created_at": at}
}

func labNotes(list []Comment) []any {
	all := []any{m{"id": 1, "system": true, "author": account(guest), "body": "/cancel", "updated_at": time.Now()}}
	for _, c := range list {
		all = append(all, labNote(idOf(c.ID), c.Author, c.Body, c.Updated))
	}
	return all
}

// discussions returns the discussions of a merge request: a thread for each remark, and the other comments.
func discussions(p *fakePull) []any {
	all := []any{}
	for _, r := range p.Remarks {
		first := labNote(idOf(r.ID), r.Author, r.Body, p.Updated)
		first["resolvable"] = true
		first["position"] = m{"new_path": r.File, "new_line": r.Line, "head_sha": r.Commit}
		notes := []any{first}
		for i, body := range p.threads["t"+r.Thread] {
			notes = append(notes, labNote(idOf(r.ID)*1000+int64(i), boss, body, p.Updated))
		}
		all = append(all, m{"id": "t" + r.Thread, "notes": notes})
	}
	for _, c := range p.comments {
		all = append(all, m{
			"id": "c" + c.ID, "individual_note": true, "notes": []any{labNote(idOf(c.ID), c.Author, c.Body, c.Updated)},
		})
	}
	return all
}

// serveGitLab serves the API of GitLab.
func (h *hub) serveGitLab() {
	ctx := context.Background()
	h.api.HandleFunc("GET /api/v4/user", func(w http.ResponseWriter, _ *http.Request) { h.answer(w, http.StatusOK, account(boss)) })
	h.on("GET ", func(int64, *http.Request, m) (any, error) { return m{"id": 1, "merge_trains_enabled": h.queue}, nil })
	h.on("GET /members/all", func(_ int64, r *http.Request, _ m) (any, error) {
		all := []any{}
		for login, level := range map[string]int{boss: 40, dev: 30, guest: 20} {
			if strings.Contains(login, r.URL.Query().Get("query")) {
				all = append(all, m{"username": login, "state": "active", "access_level": level})
			}
		}
		return all, nil
	})
	h.on("GET /issues", func(_ int64, r *http.Request, _ m) (any, error) {
		all := []any{}
		for _, i := range sorted(h.issues, func(i *fakeIssue) time.Time { return i.Updated }, r.URL.Query().Get("updated_after")) {
			all = append(all, m{
				"id": 1000 + i.Number, "iid": i.Number, "title": i.Title, "description": i.Body, "author": account(i.Author),
				"state": map[bool]string{true: "closed", false: "opened"}[i.Closed], "labels": append([]string{}, i.Labels...),
				"updated_at": i.Updated, "web_url": h.url + "/boss/app/-/issues/" + fmt.Sprint(i.Number),
			})
		}
		return all, nil
	})
	h.on("PUT /issues/{n}", func(n int64, _ *http.Request, in m) (any, error) {
		return m{"id": 1000 + n, "iid": n}, h.SetLabel(ctx, n, str(in, "add_labels"), strings.Split(str(in, "remove_labels"), ","))
	})
	events := func(names map[Act]string, field string) func(int64, *http.Request, m) (any, error) {
		return func(n int64, _ *http.Request, _ m) (any, error) {
			all := []any{}
			for _, a := range h.issues[n].acts {
				if name, ok := names[a.act]; ok {
					all = append(all, m{field: name, "label": m{"name": a.label}, "user": account(a.who), "created_at": a.at})
				}
			}
			return all, nil
		}
	}
	h.on("GET /issues/{n}/resource_label_events", events(map[Act]string{Labelled: "add", Unlabelled: "remove"}, "action"))
	h.on("GET /issues/{n}/resource_state_events", events(map[Act]string{Closed: "closed", Reopened: "reopened"}, "state"))
	h.on("GET /issues/{n}/notes", func(n int64, _ *http.Request, _ m) (any, error) { return labNotes(h.issues[n].comments), nil })
	h.on("POST /issues/{n}/notes", func(n int64, _ *http.Request, in m) (any, error) {
		id, err := h.Comment(ctx, n, str(in, "body"))
		return m{"id": idOf(id)}, err
	})
	h.on("PUT /issues/{n}/notes/{id}", func(n int64, r *http.Request, in m) (any, error) {
		return m{"id": idOf(r.PathValue("id"))}, h.Edit(ctx, n, r.PathValue("id"), str(in, "body"))
	})
	award := func(_ int64, r *http.Request, in m) (any, error) {
		h.reacts(r.PathValue("id"), str(in, "name"))
		return m{"id": 1}, nil
	}
	h.on("POST /issues/{n}/notes/{id}/award_emoji", award)
	h.on("POST /merge_requests/{n}/notes/{id}/award_emoji", award)
	h.serveGitLabMerges(ctx)
}

// serveGitLabMerges serves the merge requests of GitLab.
func (h *hub) serveGitLabMerges(ctx context.Context) {
	h.on("GET /merge_requests", func(_ int64, r *http.Request, _ m) (any, error) {
		q, all := r.URL.Query(), []any{}
		for _, p := range sorted(h.pulls, func(p *fakePull) time.Time { return p.Updated }, q.Get("updated_after")) {
			if branch := q.Get("source_branch"); (branch == "" || branch == p.Branch) && (q.Get("state") == "all" || !p.Closed) {
				all = append(all, h.labMerge(p))
			}
		}
		return all, nil
	})
	h.on("POST /merge_requests", func(_ int64, _ *http.Request, in m) (any, error) {
		n, err := h.opens(Proposal{
			str(in, "title"), str(in, "description"), str(in, "source_branch"), str(in, "target_branch"),
		})
		return m{"iid": n}, err
	})
	merge := func(route string, does func(p *fakePull, r *http.Request, in m) (any, error)) {
		h.on(route, func(n int64, r *http.Request, in m) (any, error) {
			if p, ok := h.pulls[n]; ok {
				return does(p, r, in)
			}
			return nil, errGone
		})
	}
	merge("GET /merge_requests/{n}", func(p *fakePull, _ *http.Request, _ m) (any, error) { return h.labMerge(p), nil })
	merge("PUT /merge_requests/{n}", func(p *fakePull, _ *http.Request, in m) (any, error) {
		if str(in, "state_event") != "close" {
			return nil, &Error{Status: 400, Said: "state_event does not have a valid value"}
		}
		return h.labMerge(p), h.Close(ctx, p.Number)
	})
	merge("PUT /merge_requests/{n}/merge", func(p *fakePull, _ *http.Request, in m) (any, error) {
		if h.queue {
			return nil, &Error{Status: 405, Said: "405 Method Not Allowed"}
		}
		return h.labMerge(p), h.accepts(p, str(in, "sha"))
	})
	merge("GET /merge_requests/{n}/approvals", func(p *fakePull, _ *http.Request, _ m) (any, error) {
		all := []any{}
		for _, r := range p.Reviews {
			if r.Approves {
				all = append(all, m{"user": account(r.Author)})
			}
		}
		return m{"approved_by": all}, nil
	})
	merge("GET /merge_requests/{n}/reviewers", func(p *fakePull, _ *http.Request, _ m) (any, error) {
		all := []any{}
		for _, r := range p.Reviews {
			if r.Objects {
				all = append(all, m{"user": account(r.Author), "state": "requested_changes"})
			}
		}
		return all, nil
	})
	merge("GET /merge_requests/{n}/discussions", func(p *fakePull, _ *http.Request, _ m) (any, error) { return discussions(p), nil })
	merge("GET /merge_requests/{n}/notes", func(p *fakePull, _ *http.Request, _ m) (any, error) {
		all := labNotes(p.comments)
		for _, d := range discussions(p)[:len(p.Remarks)] {
			all = append(all, d.(m)["notes"].([]any)...)
		}
		return all, nil
	})
	merge("POST /merge_requests/{n}/notes", func(p *fakePull, _ *http.Request, in m) (any, error) {
		return m{"id": h.last}, h.Say(ctx, p.Number, "", str(in, "body"))
	})
	merge("POST /merge_requests/{n}/discussions/{thread}/notes", func(p *fakePull, r *http.Request, in m) (any, error) {
		return m{"id": 1}, h.Say(ctx, p.Number, r.PathValue("thread"), str(in, "body"))
	})
	merge("GET /merge_trains/merge_requests/{n}", func(p *fakePull, _ *http.Request, _ m) (any, error) {
		if !h.isQueued(p) {
			return nil, errGone
		}
		return m{"id": 1, "status": "fresh"}, nil
	})
	merge("POST /merge_trains/merge_requests/{n}", func(p *fakePull, _ *http.Request, in m) (any, error) {
		if str(in, "sha") != p.Head || h.isQueued(p) {
			return nil, &Error{Status: 409, Said: "The merge request is not mergeable"}
		}
		h.queued = append(h.queued, fmt.Sprint(p.Number, " ", p.Head))
		return []any{m{"id": 1}}, nil
	})
	h.on("GET /pipelines/{n}/jobs", func(n int64, _ *http.Request, _ m) (any, error) {
		all := []any{}
		for i, c := range h.pulls[n-1000].Checks {
			all = append(all, m{
				"id": n*100 + int64(i), "name": c.Name, "status": map[bool]string{true: "failed", false: "success"}[c.Red],
			})
		}
		return all, nil
	})
	h.on("GET /jobs/{n}/trace", func(n int64, _ *http.Request, _ m) (any, error) {
		return h.pulls[n/100-1000].Checks[n%100].Log, nil
	})
}
