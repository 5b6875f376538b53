package forge

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"
)

// A giteaForge is a repository on Gitea or Forgejo.
type giteaForge struct {
	repository
	client *gitea.Client
}

func newGitea(at Address, t *Transport) (Forge, error) {
	// Without a version the client makes no request for it.
	client, err := gitea.NewClient(at.URL, gitea.SetGiteaVersion(""), gitea.SetHTTPClient(&http.Client{Transport: t}))
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(at.URL)
	if err != nil {
		return nil, err
	}
	t.Origin = u.Scheme + "://" + u.Host
	return &giteaForge{repository{at, t, at.URL + "/api/v1/repos/"}, client}, nil
}

// page is the number of entries of a list that a request asks for.
const page = 50

// with returns the client with ctx for its next requests.
func (g *giteaForge) with(ctx context.Context) *gitea.Client {
	g.client.SetContext(ctx)
	return g.client
}

// pages calls next with the numbers of pages until it has as many entries as the server counts, or none: a page may be
// shorter than asked for. Without a response from next it ends, too.
func pages[T any](next func(page int) ([]T, *gitea.Response, error)) (all []T, err error) {
	for n := 1; ; n++ {
		list, res, err := next(n)
		if all = append(all, list...); err != nil || len(list) == 0 || res == nil {
			return all, err
		}
		if total, err := strconv.Atoi(res.Header.Get("X-Total-Count")); err == nil && len(all) >= total {
			return all, nil
		}
	}
}

func (g *giteaForge) Self(ctx context.Context) (a Account, err error) {
	c := g.with(ctx)
	user, _, err := c.GetMyUserInfo()
	if err != nil {
		return a, err
	}
	repo, _, err := c.GetRepo(g.at.Owner, g.at.Name)
	if err != nil {
		return a, err
	}
	return Account{user.UserName, repo.Permissions != nil && repo.Permissions.Push && !repo.Archived}, nil
}

func (g *giteaForge) CanWrite(ctx context.Context, login string) (bool, error) {
	p, _, err := g.with(ctx).CollaboratorPermission(g.at.Owner, g.at.Name, login)
	if KindOf(err) == Gone {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.Contains([]string{"write", "admin", "owner"}, string(p.Permission)), nil
}

// Issues returns all of them as one page: this list cannot be ordered by the time of the change.
func (g *giteaForge) Issues(ctx context.Context, since time.Time, _ int) (issues []Issue, more bool, err error) {
	list, err := pages(func(n int) ([]*gitea.Issue, *gitea.Response, error) {
		return g.with(ctx).ListRepoIssues(g.at.Owner, g.at.Name, gitea.ListIssueOption{
			ListOptions: gitea.ListOptions{Page: n, PageSize: page}, State: gitea.StateAll, Type: gitea.IssueTypeIssue,
			Since: since,
		})
	})
	if err != nil {
		return nil, false, err
	}
	for _, i := range list {
		issue := Issue{
			Number: i.Index, URL: i.HTMLURL, Title: i.Title, Body: i.Body, Author: giteaUser(i.Poster),
			Closed: i.State == gitea.StateClosed, Updated: i.Updated,
		}
		for _, l := range i.Labels {
			issue.Labels = append(issue.Labels, l.Name)
		}
		if i.Milestone != nil {
			issue.Milestone = i.Milestone.Title
		}
		issues = append(issues, issue)
	}
	slices.SortStableFunc(issues, func(a, b Issue) int { return a.Updated.Compare(b.Updated) })
	return issues, false, nil
}

func giteaUser(u *gitea.User) string {
	if u == nil {
		return ""
	}
	return u.UserName
}

func (g *giteaForge) Last(
	ctx context.Context, issue int64, act Act, label string,
) (login string, at time.Time, err error) {
	if act == Edited {
		return "", at, nil
	}
	path := fmt.Sprintf("%s/issues/%d/timeline?limit=%d&page=", g.path(g.at.Owner, g.at.Name), issue, page)
	list, err := pages(func(n int) (list []giteaEvent, _ *gitea.Response, err error) {
		err = g.get(ctx, path+strconv.Itoa(n), &list)
		return list, &gitea.Response{Response: &http.Response{}}, err // its count is that of the page
	})
	for _, e := range list {
		done := e.Type == map[Act]string{Closed: "close", Reopened: "reopen"}[act]
		if e.Type == "label" && (act == Labelled && e.Body == "1" || act == Unlabelled && e.Body != "1") {
			done = strings.EqualFold(e.Label.Name, label)
		}
		if done {
			login, at = e.User.Login, e.Created
		}
	}
	return login, at, err
}

// A giteaEvent is one event in the history of an issue. The client expects a list of labels in it,
// but there is only one.
type giteaEvent struct {
	Type    string                 `json:"type"`
	Body    string                 `json:"body"`
	Created time.Time              `json:"created_at"`
	User    struct{ Login string } `json:"user"`
	Label   struct{ Name string }  `json:"label"`
}

func (g *giteaForge) Comments(ctx context.Context, number int64, since time.Time) ([]Comment, error) {
	// This list has no pages: the forge returns all of it.
	list, _, err := g.with(ctx).ListIssueComments(g.at.Owner, g.at.Name, number,
		gitea.ListIssueCommentOptions{Since: since})
	comments := make([]Comment, 0, len(list))
	for _, l := range list {
		comments = append(comments, Comment{strconv.FormatInt(l.ID, 10), giteaUser(l.Poster), l.Body, l.Updated})
	}
	return comments, err
}

func (g *giteaForge) Comment(ctx context.Context, number int64, body string) (string, error) {
	made, _, err := g.with(ctx).CreateIssueComment(g.at.Owner, g.at.Name, number,
		gitea.CreateIssueCommentOption{Body: body})
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(made.ID, 10), nil
}

func (g *giteaForge) Edit(ctx context.Context, _ int64, id, body string) error {
	n, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		_, _, err = g.with(ctx).EditIssueComment(g.at.Owner, g.at.Name, n, gitea.EditIssueCommentOption{Body: body})
	}
	return err
}

func (g *giteaForge) React(ctx context.Context, _ int64, id string, r Reaction) error {
	n, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		_, _, err = g.with(ctx).PostIssueCommentReaction(g.at.Owner, g.at.Name, n, string(r))
	}
	return err
}

func (g *giteaForge) SetLabel(ctx context.Context, issue int64, label string, without []string) error {
	c := g.with(ctx)
	known, err := pages(func(n int) ([]*gitea.Label, *gitea.Response, error) {
		return c.ListRepoLabels(g.at.Owner, g.at.Name, gitea.ListLabelsOptions{
			ListOptions: gitea.ListOptions{Page: n, PageSize: page},
		})
	})
	if err != nil {
		return err
	}
	has, _, err := c.GetIssueLabels(g.at.Owner, g.at.Name, issue, gitea.ListLabelsOptions{})
	if err != nil {
		return err
	}
	var id int64
	for _, l := range known {
		if l.Name == label {
			id = l.ID
		}
	}
	if id == 0 && label != "" {
		made, _, err := c.CreateLabel(g.at.Owner, g.at.Name, gitea.CreateLabelOption{Name: label, Color: "#6e7781"})
		if err != nil {
			return err
		}
		id = made.ID
	}
	if id != 0 && !slices.ContainsFunc(has, func(l *gitea.Label) bool { return l.ID == id }) {
		add := gitea.IssueLabelsOption{Labels: []int64{id}}
		if _, _, err = c.AddIssueLabels(g.at.Owner, g.at.Name, issue, add); err != nil {
			return err
		}
	}
	for _, l := range has {
		if slices.Contains(without, l.Name) {
			if _, err := c.DeleteIssueLabel(g.at.Owner, g.at.Name, issue, l.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *giteaForge) Changed(ctx context.Context, since time.Time) (all []Changed, err error) {
	return pages(func(n int) (found []Changed, _ *gitea.Response, err error) {
		list, res, err := g.with(ctx).ListRepoPullRequests(g.at.Owner, g.at.Name, gitea.ListPullRequestsOptions{
			ListOptions: gitea.ListOptions{Page: n, PageSize: page}, State: gitea.StateAll, Sort: "recentupdate",
		})
		for _, pr := range list {
			if pr.Updated == nil || pr.Updated.Before(since) {
				return found, nil, err
			}
			found = append(found, Changed{pr.Index, pr.State == gitea.StateOpen, *pr.Updated})
		}
		return found, res, err
	})
}

func (g *giteaForge) Said(ctx context.Context, pull int64) ([]Comment, error) {
	return g.Comments(ctx, pull, time.Time{})
}

// Say ignores the thread: the forge has no request for a reply.
func (g *giteaForge) Say(ctx context.Context, pull int64, _, body string) error {
	_, err := g.Comment(ctx, pull, body)
	return err
}

func (g *giteaForge) Close(ctx context.Context, pull int64) error {
	_, _, err := g.with(ctx).EditPullRequest(g.at.Owner, g.at.Name, pull,
		gitea.EditPullRequestOption{State: new(gitea.StateClosed)})
	return err
}

func (g *giteaForge) Pull(ctx context.Context, number int64) (p Pull, err error) {
	c := g.with(ctx)
	pr, _, err := c.GetPullRequest(g.at.Owner, g.at.Name, number)
	if err != nil {
		return p, err
	}
	p = Pull{
		Number: number, URL: pr.HTMLURL, Closed: pr.State == gitea.StateClosed, Draft: pr.Draft,
	}
	if pr.Base != nil {
		p.Into = pr.Base.Ref
	}
	if pr.Updated != nil {
		p.Updated = *pr.Updated
	}
	if pr.Head != nil {
		p.Head = pr.Head.Sha
	}
	if pr.HasMerged && pr.MergedCommitID != nil {
		p.Merged = *pr.MergedCommitID
	}
	if p.Closed {
		return p, nil
	}
	if p.Comments, err = g.Comments(ctx, number, time.Time{}); err != nil {
		return p, err
	}
	status, _, err := c.GetCombinedStatus(g.at.Owner, g.at.Name, p.Head)
	if err != nil && KindOf(err) != Gone {
		return p, err
	}
	if err == nil && status != nil {
		for _, s := range status.Statuses {
			p.Checks = append(p.Checks, Check{
				Name: s.Context, Done: s.State != gitea.StatusPending, URL: s.TargetURL, Log: s.Description,
				Red: s.State == gitea.StatusFailure || s.State == gitea.StatusError,
			})
		}
	}
	return p, g.reviews(c, number, &p)
}

// reviews adds the last review of each reviewer, and the remarks on lines.
func (g *giteaForge) reviews(c *gitea.Client, number int64, p *Pull) error {
	list, err := pages(func(n int) ([]*gitea.PullReview, *gitea.Response, error) {
		return c.ListPullReviews(g.at.Owner, g.at.Name, number, gitea.ListPullReviewsOptions{
			ListOptions: gitea.ListOptions{Page: n, PageSize: page},
		})
	})
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.Dismissed || r.Reviewer == nil || r.State == gitea.ReviewStatePending {
			continue
		}
		p.Reviews = append(p.Reviews, Review{
			ID: strconv.FormatInt(r.ID, 10), Author: giteaUser(r.Reviewer), Body: r.Body, Commit: r.CommitID,
			Approves: r.State == gitea.ReviewStateApproved, Objects: r.State == gitea.ReviewStateRequestChanges,
		})
		if r.CodeCommentsCount == 0 {
			continue
		}
		remarks, _, err := c.ListPullReviewComments(g.at.Owner, g.at.Name, number, r.ID)
		if err != nil {
			return err
		}
		for _, m := range remarks {
			p.Remarks = append(p.Remarks, Remark{
				ID: strconv.FormatInt(m.ID, 10), Author: giteaUser(m.Reviewer), File: m.Path, Body: m.Body,
				Line: int(cmp.Or(m.LineNum, m.OldLineNum)), Commit: cmp.Or(r.CommitID, m.CommitID),
			})
		}
	}
	p.Reviews = lastOf(p.Reviews)
	return nil
}

// lastOf keeps the last approving or objecting review of each reviewer, and all reviews that only
// comment.
func lastOf(all []Review) (list []Review) {
	for i, r := range all {
		decides := r.Approves || r.Objects
		later := slices.ContainsFunc(all[i+1:], func(o Review) bool {
			return decides && o.Author == r.Author && (o.Approves || o.Objects)
		})
		if !later {
			list = append(list, r)
		}
	}
	return list
}

func (g *giteaForge) PullOf(ctx context.Context, branch string) (int64, error) {
	list, err := pages(func(n int) ([]*gitea.PullRequest, *gitea.Response, error) {
		return g.with(ctx).ListRepoPullRequests(g.at.Owner, g.at.Name, gitea.ListPullRequestsOptions{
			ListOptions: gitea.ListOptions{Page: n, PageSize: page}, State: gitea.StateOpen,
		})
	})
	for _, pr := range list {
		if pr.Head != nil && pr.Head.Ref == branch && pr.Base != nil && pr.Head.RepoID == pr.Base.RepoID {
			return pr.Index, nil
		}
	}
	return 0, err
}

func (g *giteaForge) Open(ctx context.Context, p Proposal) (int64, error) {
	pr, _, err := g.with(ctx).CreatePullRequest(g.at.Owner, g.at.Name, gitea.CreatePullRequestOption{
		Head: p.Branch, Base: p.Into, Title: p.Title, Body: p.Body,
	})
	if err != nil {
		return 0, err
	}
	return pr.Index, nil
}

// Merge merges at once: these forges have no merge queue.
func (g *giteaForge) Merge(ctx context.Context, number int64, head string) (queued bool, err error) {
	_, _, err = g.with(ctx).MergePullRequest(g.at.Owner, g.at.Name, number, gitea.MergePullRequestOption{
		Style: gitea.MergeStyleMerge, HeadCommitId: head,
	})
	return false, err
}
