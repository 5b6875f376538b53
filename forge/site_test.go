package forge

import (
	"encoding/base64"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ralph"
	"ralph/store"
)

// A giteaSite is a real Gitea.
type giteaSite struct{ *realGitea }

func (g *giteaSite) at() (kind, url, token string) { return Gitea, g.url, g.token[boss] }

func (g *giteaSite) halt() { g.stop() }

func (g *giteaSite) resume() { g.start() }

func (g *giteaSite) newIssue(as, title string) (n int64) {
	path := g.issue(as, title, "Please do it.")
	_, _ = fmt.Sscan(path[strings.LastIndexByte(path, '/')+1:], &n)
	return n
}

func (g *giteaSite) setLabel(as string, issue int64) {
	if g.label == "" {
		id := g.call(boss, "POST", "/repos/boss/app/labels", `{"name": "ralph", "color": "#00f"}`)["id"]
		g.label = fmt.Sprintf(`{"labels": [%v]}`, id)
	}
	g.call(as, "POST", path("issues", issue)+"/labels", g.label)
}

// path returns the path of an issue or a pull request.
func path(kind string, n int64) string { return fmt.Sprintf("/repos/boss/app/%s/%d", kind, n) }

func (g *giteaSite) shut(as string, issue int64) {
	g.call(as, "PATCH", path("issues", issue), `{"state": "closed"}`)
}

func (g *giteaSite) comment(as string, issue int64, body string) {
	g.call(as, "POST", path("issues", issue)+"/comments", fmt.Sprintf(`{"body": %q}`, body))
}

func (g *giteaSite) commentPull(as string, pull int64, body string) { g.comment(as, pull, body) }

// head returns a field of a pull request's branch.
func (g *giteaSite) head(pull int64, field string) string {
	head, _ := g.call(boss, "GET", path("pulls", pull), "")["head"].(map[string]any)
	return fmt.Sprint(head[field])
}

func (g *giteaSite) redden(pull int64, log string) {
	g.call(dev, "POST", "/repos/boss/app/statuses/"+g.head(pull, "sha"),
		fmt.Sprintf(`{"state": "failure", "context": "ci", "description": %q}`, log))
}

func (g *giteaSite) object(as string, pull int64, body, file, remark string) {
	g.call(as, "POST", path("pulls", pull)+"/reviews", fmt.Sprintf(`{"event": "REQUEST_CHANGES", "body": %q,
		"comments": [{"path": %q, "body": %q, "new_position": 1}]}`, body, file, remark))
}

func (g *giteaSite) commit(as string, pull int64, file, content string) {
	branch, method, sha := "main", "POST", ""
	if pull != 0 {
		branch = g.head(pull, "ref")
	}
	at := "/repos/boss/app/contents/" + file
	if was, ok := g.call(as, "GET", at+"?ref="+branch, "")["sha"]; ok {
		method, sha = "PUT", fmt.Sprintf(`, "sha": %q`, was)
	}
	g.call(as, method, at, fmt.Sprintf(`{"content": %q, "message": "Mine", "branch": %q%s}`,
		base64.StdEncoding.EncodeToString([]byte(content)), branch, sha))
}

func (g *giteaSite) mergePull(as string, pull int64, style string) {
	g.t.Helper()
	for range 100 { // Gitea works out whether it conflicts, and says nothing until then
		said, failed := g.call(as, "POST", path("pulls", pull)+"/merge", fmt.Sprintf(`{"Do": %q}`, style))["message"]
		if !failed {
			return
		}
		if !strings.Contains(fmt.Sprint(said), "try again later") {
			g.t.Fatalf("#%d cannot be merged: %v", pull, said)
		}
		time.Sleep(200 * time.Millisecond)
	}
	g.t.Fatalf("#%d is not merged", pull)
}

func (g *giteaSite) seen(issue int64) (is seenIssue) {
	at := path("issues", issue)
	list, _ := g.call(boss, "GET", at+"/labels", "")["list"].([]any)
	for _, l := range list {
		is.labels = append(is.labels, fmt.Sprint(l.(map[string]any)["name"]))
	}
	is.closed, is.comments = g.call(boss, "GET", at, "")["state"] == "closed", g.comments(at)
	return is
}

func (g *giteaSite) pulls() (all []seenPull) {
	list, _ := g.call(boss, "GET", "/repos/boss/app/pulls?state=all&limit=50", "")["list"].([]any)
	for _, p := range list {
		m := p.(map[string]any)
		n := int64(m["number"].(float64))
		all = append(all, seenPull{
			n, fmt.Sprint(m["title"]), m["state"] == "closed", m["merged"] == true, g.comments(path("issues", n)),
		})
	}
	return all
}

// A hubSite is a hub on which people act.
type hubSite struct{ *hub }

// acts plays people, between two requests.
func (h *hubSite) acts(do func()) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
}

func (h *hubSite) at() (kind, url, token string) { return h.kindOf, h.url, hubToken }

func (h *hubSite) halt() { h.stop() }

func (h *hubSite) resume() { h.start() }

func (h *hubSite) newIssue(as, title string) (n int64) {
	h.acts(func() { n = h.issue(as, title, "Please do it.") })
	return n
}

func (h *hubSite) setLabel(as string, issue int64) {
	h.acts(func() { h.label(as, issue, "ralph", true) })
}

func (h *hubSite) shut(as string, issue int64) { h.acts(func() { h.closes(as, issue, true) }) }

func (h *hubSite) comment(as string, issue int64, body string) {
	h.acts(func() { h.says(as, issue, body) })
}

func (h *hubSite) commentPull(as string, pull int64, body string) {
	h.acts(func() { h.saysOn(as, pull, body) })
}

func (h *hubSite) redden(pull int64, log string) {
	h.acts(func() {
		h.changes(pull, func(p *fakePull) { p.Checks = []Check{{Name: "ci", Done: true, Red: true, Log: log}} })
	})
}

// object adds a review; on GitLab its text is a comment.
func (h *hubSite) object(as string, pull int64, body, file, remark string) {
	h.acts(func() {
		h.changes(pull, func(p *fakePull) {
			r := Review{ID: strconv.FormatInt(h.id(), 10), Author: as, Objects: true, Body: body, Commit: p.Head}
			id := strconv.FormatInt(h.id(), 10)
			p.Reviews = append(p.Reviews, r)
			p.Remarks = append(p.Remarks, Remark{ID: id, Thread: id, Author: as, File: file, Line: 1, Body: remark, Commit: p.Head})
		})
		if h.kindOf == GitLab {
			h.saysOn(as, pull, body)
		}
	})
}

func (h *hubSite) commit(as string, pull int64, file, content string) {
	h.acts(func() {
		branch := "main"
		if pull != 0 {
			branch = h.hub.pulls[pull].Branch
		}
		h.write(as, branch, file, content)
	})
}

func (h *hubSite) mergePull(as string, pull int64, style string) {
	h.acts(func() { h.mergeAs(as, pull, style) })
}

func (h *hubSite) seen(issue int64) (is seenIssue) {
	h.acts(func() {
		i := h.issues[issue]
		is.labels, is.closed = slices.Clone(i.Labels), i.Closed
		for _, c := range i.comments {
			is.comments = append(is.comments, c.Body)
		}
	})
	return is
}

func (h *hubSite) pulls() (all []seenPull) {
	h.acts(func() {
		for n, p := range h.hub.pulls {
			is := seenPull{number: n, title: p.Title, closed: p.Closed, merged: p.Merged != ""}
			for _, c := range p.comments {
				is.comments = append(is.comments, c.Body)
			}
			for _, thread := range p.threads {
				is.comments = append(is.comments, thread...)
			}
			all = append(all, is)
		}
	})
	return all
}

// beside returns a world whose syncer works with the hub. The world's own fake is the hub's.
func (h *hub) beside(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.fake = h.fake
	f, err := New(Address{Kind: h.kindOf, URL: h.url, Owner: boss, Name: "app"}, hubToken, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	w.s.Forge, w.s.Now = f, func() time.Time { return w.now }
	h.clock = func() time.Time { return w.now.Add(time.Second) }
	return w
}

// reviewed has a task whose pull request is open. The branch of its change is on the hub.
func (h *hub) reviewed(w *world) (task int64, p *fakePull) {
	h.t.Helper()
	task, _ = w.works(0)
	branch := fmt.Sprintf("ralph/TASK-%d-1", task)
	git(h.t, h.dir, "branch", branch, "main")
	h.write(dev, branch, "work.txt", branch)
	if err := w.s.Once(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return task, h.pulls[w.pullOf(task).Number]
}

// again looks some minutes later.
func (w *world) again() {
	w.t.Helper()
	for range 2 {
		w.now = w.now.Add(11 * time.Minute)
		if err := w.s.Once(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestTheMergeQueue: an approved pull request is put into the merge queue once, and again after its branch has moved. If
// the queue drops it, a person decides. Without a queue it is merged.
func TestTheMergeQueue(t *testing.T) {
	for _, kind := range []string{GitHub, GitLab} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, kind)
			w := h.beside(t)
			w.s.Auto, h.queue = true, true
			_, p := h.reviewed(w)
			h.changes(p.Number, func(p *fakePull) {
				p.Checks, p.Reviews = []Check{{Name: "ci", Done: true}}, []Review{{ID: "1", Author: guest, Approves: true}}
			})
			if w.again(); len(h.queued) != 0 {
				t.Fatalf("a stranger's approval queues %q", h.queued)
			}
			h.changes(p.Number, func(p *fakePull) { p.Reviews = []Review{{ID: "2", Author: dev, Approves: true}} })
			w.again()
			if want := fmt.Sprint(p.Number, " ", p.Head); !slices.Equal(h.queued, []string{want}) || p.Closed {
				t.Fatalf("queued %q, want %q", h.queued, want)
			}
			h.queued = nil // the queue drops it
			h.changes(p.Number, func(*fakePull) {})
			if w.again(); len(h.queued) != 0 {
				t.Fatalf("it was queued again: %q", h.queued)
			}
			h.write(dev, p.Branch, "more.txt", "more")
			h.changes(p.Number, func(p *fakePull) { p.Checks = []Check{{Name: "ci", Done: true}} })
			if w.again(); len(h.queued) != 1 {
				t.Fatalf("the new head is not queued: %q", h.queued)
			}
			h.queue, h.queued = false, nil
			h.write(dev, p.Branch, "last.txt", "last")
			h.changes(p.Number, func(p *fakePull) { p.Checks = []Check{{Name: "ci", Done: true}} })
			if w.again(); p.Merged == "" {
				t.Error("it is not merged without a queue")
			}
		})
	}
}

// TestTheConversation of a pull request: comments of people are comments of its task, and commands are obeyed, once.
// Strangers change nothing.
func TestTheConversation(t *testing.T) {
	for _, kind := range []string{GitHub, GitLab} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, kind)
			w := h.beside(t)
			first := h.issue(guest, "Other", "not a task") // has the number of the merge request on GitLab
			task, p := h.reviewed(w)
			notes := func() (list []string) {
				w.tx(func(tx *store.Tx) error {
					all, err := tx.Undelivered(task, ralph.Time{})
					for _, c := range all {
						list = append(list, c.Body)
					}
					return err
				})
				return list
			}
			evil := h.saysOn(guest, p.Number, "/cancel EVIL")
			h.saysOn(guest, p.Number, "me too, EVIL")
			good := h.saysOn(dev, p.Number, "mind the gap")
			h.saysOn(dev, p.Number, "/comment and s3cret")
			h.saysOn(dev, p.Number, "/retry")
			for range 3 {
				w.again()
			}
			if got := notes(); !slices.Equal(got, []string{"mind the gap", "and [masked]"}) {
				t.Errorf("the task has the comments %q", got)
			}
			thumbs := map[string][2]string{GitHub: {"+1", "-1"}, GitLab: {"thumbsup", "thumbsdown"}}[kind]
			if h.reactions[good+" "+thumbs[0]] != 1 || h.reactions[evil+" "+thumbs[1]] != 1 {
				t.Errorf("the reactions are %v", h.reactions)
			}
			said := ""
			for _, c := range p.comments {
				if _, ours := Marked(c.Body); ours {
					said += c.Body + "\n"
				}
			}
			if strings.Count(said, "<!--") != 1 || !strings.Contains(said, "only an ended task can be retried") || strings.Contains(said, "EVIL") {
				t.Errorf("ralph says %q", said)
			}
			if is := w.task(task); is.Status != ralph.Merging {
				t.Errorf("the task is %s: %s", is.Status, is.StatusReason)
			}
			var strangers []store.ForgeReply
			w.tx(func(tx *store.Tx) (err error) { strangers, err = tx.ForgeStrangers(task, 10); return err })
			if len(strangers) != 2 || len(h.issues[first].comments) != 0 {
				t.Errorf("shown of strangers: %+v", strangers)
			}
			h.saysOn(dev, p.Number, "/cancel")
			w.again()
			if is := w.task(task); is.Status != ralph.Cancelled || !p.Closed {
				t.Errorf("the task is %s, and its pull request closed: %v", is.Status, p.Closed)
			}
		})
	}
}

// TestTheCostOfALook at 10,000 issues and 100 open pull requests without news: two requests, which the forge answers
// from their tags. The log has the CPU time, that of the hub included.
func TestTheCostOfALook(t *testing.T) {
	if testing.Short() {
		t.Skip("a first look at 10,000 issues")
	}
	for _, kind := range []string{GitHub, GitLab} {
		t.Run(kind, func(t *testing.T) {
			h := newHub(t, kind)
			h.page = 100
			w := h.beside(t)
			h.clock = nil
			for n := range 10_000 {
				h.issue(guest, fmt.Sprint("Issue ", n), "x")
			}
			var refs strings.Builder
			for range 100 {
				id, _ := w.works(0)
				fmt.Fprintf(&refs, "create refs/heads/ralph/TASK-%d-1 %s\n", id, h.tip("main"))
			}
			cmd := exec.Command("git", "-C", h.dir, "update-ref", "--stdin")
			cmd.Stdin = strings.NewReader(refs.String())
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			w.again()
			for _, p := range h.pulls {
				h.changes(p.Number, func(p *fakePull) { p.Checks = []Check{{Name: "ci", Done: true}} })
			}
			if w.again(); len(h.pulls) != 100 {
				t.Fatalf("there are %d pull requests", len(h.pulls))
			}
			w.again()
			const looks = 20
			before, began, spent := h.count, h.requested, cpu(t)
			for range looks {
				w.look()
			}
			each := (cpu(t) - spent) / looks
			if n := h.requested - began; n > 2*looks || h.count != before {
				t.Errorf("%d looks cost %d requests, %d of which counted", looks, n, h.count-before)
			}
			t.Logf("a look without news took %s of CPU", each)
		})
	}
}

// cpu returns the CPU time of the process.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
