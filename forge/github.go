package forge

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v84/github"

	"ralph/internal/text"
)

// A gitHubForge is a repository on GitHub or GitHub Enterprise.
type gitHubForge struct {
	repository
	client *github.Client
}

func newGitHub(at Address, t *Transport) (Forge, error) {
	client := github.NewClient(&http.Client{Transport: t})
	client.DisableRateLimitCheck = true // the transport handles limits
	if at.URL != "https://github.com" {
		var err error
		if client, err = client.WithEnterpriseURLs(at.URL, at.URL); err != nil {
			return nil, err
		}
	}
	t.Origin = client.BaseURL.Scheme + "://" + client.BaseURL.Host
	return &gitHubForge{repository{at, t, client.BaseURL.String() + "repos/"}, client}, nil
}

// gitHubPages calls next with the numbers of pages until there is no other one.
func gitHubPages[T any](next func(o github.ListOptions) ([]T, *github.Response, error)) (all []T, err error) {
	o := github.ListOptions{PerPage: 100}
	for {
		list, res, err := next(o)
		if all = append(all, list...); err != nil || res.NextPage == 0 {
			return all, err
		}
		o.Page = res.NextPage
	}
}

func (g *gitHubForge) Self(ctx context.Context) (a Account, err error) {
	repo, _, err := g.client.Repositories.Get(ctx, g.at.Owner, g.at.Name)
	if err != nil {
		return a, err
	}
	a.Write = repo.GetPermissions().GetPush() && !repo.GetArchived()
	user, _, err := g.client.Users.Get(ctx, "")
	if err != nil && KindOf(err) == Denied { // the token of an app, as of a workflow
		var is struct{ Viewer struct{ Login string } }
		err = g.graphQL(ctx, "query { viewer { login } }", nil, &is)
		return Account{is.Viewer.Login, a.Write}, err
	}
	return Account{user.GetLogin(), a.Write}, err
}

func (g *gitHubForge) CanWrite(ctx context.Context, login string) (bool, error) {
	p, _, err := g.client.Repositories.GetPermissionLevel(ctx, g.at.Owner, g.at.Name, login)
	if err != nil && KindOf(err) == Gone { // an app, or an account that is gone
		return false, nil
	}
	return slices.Contains([]string{"write", "admin"}, p.GetPermission()), err
}

func (g *gitHubForge) Issues(ctx context.Context, since time.Time, page int) (list []Issue, more bool, err error) {
	all, res, err := g.client.Issues.ListByRepo(ctx, g.at.Owner, g.at.Name, &github.IssueListByRepoOptions{
		State: "all", Sort: "updated", Direction: "asc", Since: since,
		ListOptions: github.ListOptions{PerPage: 100, Page: page},
	})
	if err != nil {
		return nil, false, err
	}
	for _, i := range all {
		if i.IsPullRequest() { // only the time counts: the next look begins there
			list = append(list, Issue{Number: int64(i.GetNumber()), Updated: i.GetUpdatedAt().Time})
			continue
		}
		issue := Issue{
			Number: int64(i.GetNumber()), URL: i.GetHTMLURL(), Title: i.GetTitle(), Body: i.GetBody(),
			Author: i.GetUser().GetLogin(), Milestone: i.GetMilestone().GetTitle(), Closed: i.GetState() == "closed",
			Updated: i.GetUpdatedAt().Time,
		}
		for _, l := range i.Labels {
			issue.Labels = append(issue.Labels, l.GetName())
		}
		list = append(list, issue)
	}
	return list, res.NextPage != 0, nil
}

func (g *gitHubForge) Last(
	ctx context.Context, issue int64, act Act, label string,
) (who string, at time.Time, err error) {
	if act == Edited {
		return g.edited(ctx, issue)
	}
	list, err := gitHubPages(func(o github.ListOptions) ([]*github.IssueEvent, *github.Response, error) {
		return g.client.Issues.ListIssueEvents(ctx, g.at.Owner, g.at.Name, int(issue), &o)
	})
	for _, e := range list {
		about := act == Labelled || act == Unlabelled
		if e.GetEvent() == string(act) && (!about || strings.EqualFold(e.GetLabel().GetName(), label)) {
			who, at = e.GetActor().GetLogin(), e.GetCreatedAt().Time
		}
	}
	return who, at, err
}

// edited returns the last editor of an issue's text, which REST does not tell; "" if nobody has edited it.
func (g *gitHubForge) edited(ctx context.Context, issue int64) (who string, at time.Time, err error) {
	var is struct {
		Issue struct {
			Editor       struct{ Login string }
			LastEditedAt time.Time
		}
	}
	err = g.field(ctx, "issue(number: $number) { editor { login } lastEditedAt }", issue, &is)
	return is.Issue.Editor.Login, is.Issue.LastEditedAt, err
}

func (g *gitHubForge) Comments(ctx context.Context, number int64, since time.Time) ([]Comment, error) {
	list, err := gitHubPages(func(o github.ListOptions) ([]*github.IssueComment, *github.Response, error) {
		opts := &github.IssueListCommentsOptions{ListOptions: o}
		if !since.IsZero() {
			opts.Since = &since
		}
		return g.client.Issues.ListComments(ctx, g.at.Owner, g.at.Name, int(number), opts)
	})
	comments := make([]Comment, 0, len(list))
	for _, c := range list {
		comments = append(comments, Comment{
			strconv.FormatInt(c.GetID(), 10), c.GetUser().GetLogin(), c.GetBody(), c.GetUpdatedAt().Time,
		})
	}
	return comments, err
}

func (g *gitHubForge) Comment(ctx context.Context, number int64, body string) (string, error) {
	c, _, err := g.client.Issues.CreateComment(ctx, g.at.Owner, g.at.Name, int(number), &github.IssueComment{Body: &body})
	return strconv.FormatInt(c.GetID(), 10), err
}

func (g *gitHubForge) Edit(ctx context.Context, _ int64, id, body string) error {
	n, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		_, _, err = g.client.Issues.EditComment(ctx, g.at.Owner, g.at.Name, n, &github.IssueComment{Body: &body})
	}
	return err
}

func (g *gitHubForge) React(ctx context.Context, _ int64, id string, r Reaction) error {
	n, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		_, _, err = g.client.Reactions.CreateIssueCommentReaction(ctx, g.at.Owner, g.at.Name, n, string(r))
	}
	return err
}

func (g *gitHubForge) SetLabel(ctx context.Context, issue int64, label string, without []string) error {
	has, _, err := g.client.Issues.ListLabelsByIssue(ctx, g.at.Owner, g.at.Name, int(issue),
		&github.ListOptions{PerPage: 100})
	if err == nil && label != "" {
		has, _, err = g.client.Issues.AddLabelsToIssue(ctx, g.at.Owner, g.at.Name, int(issue), []string{label})
	}
	for _, l := range has {
		if err == nil && slices.Contains(without, l.GetName()) {
			_, err = g.client.Issues.RemoveLabelForIssue(ctx, g.at.Owner, g.at.Name, int(issue), l.GetName())
			if err != nil && KindOf(err) == Gone { // somebody has removed it
				err = nil
			}
		}
	}
	return err
}

func (g *gitHubForge) Changed(ctx context.Context, since time.Time) (all []Changed, err error) {
	o := &github.PullRequestListOptions{
		State: "all", Sort: "updated", Direction: "desc", ListOptions: github.ListOptions{PerPage: 100},
	}
	for {
		list, res, err := g.client.PullRequests.List(ctx, g.at.Owner, g.at.Name, o)
		if err != nil {
			return nil, err
		}
		for _, pr := range list {
			if pr.GetUpdatedAt().Before(since) {
				return all, nil
			}
			all = append(all, Changed{int64(pr.GetNumber()), pr.GetState() == "open", pr.GetUpdatedAt().Time})
		}
		if o.Page = res.NextPage; o.Page == 0 {
			return all, nil
		}
	}
}

func (g *gitHubForge) Said(ctx context.Context, pull int64) (list []Comment, err error) {
	if list, err = g.Comments(ctx, pull, time.Time{}); err != nil {
		return nil, err
	}
	remarks, err := g.remarks(ctx, pull)
	for _, m := range remarks {
		list = append(list, Comment{m.ID, m.Author, m.Body, time.Time{}})
	}
	return list, err
}

func (g *gitHubForge) Say(ctx context.Context, pull int64, thread, body string) error {
	if thread == "" {
		_, err := g.Comment(ctx, pull, body)
		return err
	}
	n, err := strconv.ParseInt(thread, 10, 64)
	if err == nil {
		_, _, err = g.client.PullRequests.CreateCommentInReplyTo(ctx, g.at.Owner, g.at.Name, int(pull), body, n)
	}
	return err
}

func (g *gitHubForge) Close(ctx context.Context, pull int64) error {
	closed := "closed"
	_, _, err := g.client.PullRequests.Edit(ctx, g.at.Owner, g.at.Name, int(pull), &github.PullRequest{State: &closed})
	return err
}

func (g *gitHubForge) Pull(ctx context.Context, number int64) (p Pull, err error) {
	pr, _, err := g.client.PullRequests.Get(ctx, g.at.Owner, g.at.Name, int(number))
	if err != nil {
		return p, err
	}
	p = Pull{
		Number: number, URL: pr.GetHTMLURL(), Head: pr.GetHead().GetSHA(), Closed: pr.GetState() == "closed",
		Updated: pr.GetUpdatedAt().Time, Into: pr.GetBase().GetRef(), Draft: pr.GetDraft(),
	}
	if pr.GetMerged() {
		p.Merged = pr.GetMergeCommitSHA()
	}
	if p.Closed {
		return p, nil
	}
	if p.Comments, err = g.Comments(ctx, number, time.Time{}); err != nil {
		return p, err
	}
	if err := g.checks(ctx, &p); err != nil {
		return p, err
	}
	return p, g.reviews(ctx, &p)
}

// checks adds the results of checks and statuses.
func (g *gitHubForge) checks(ctx context.Context, p *Pull) error {
	runs, err := gitHubPages(func(o github.ListOptions) ([]*github.CheckRun, *github.Response, error) {
		list, res, err := g.client.Checks.ListCheckRunsForRef(ctx, g.at.Owner, g.at.Name, p.Head,
			&github.ListCheckRunsOptions{ListOptions: o})
		return cmp.Or(list, &github.ListCheckRunsResults{}).CheckRuns, res, err
	})
	if err != nil && KindOf(err) == Denied { // as for a fine-grained token: whether they are green is not known
		p.Checks = append(p.Checks, Check{Name: "checks that the token may not read"})
	} else if err != nil {
		return err
	}
	for _, r := range runs {
		out := r.GetOutput()
		p.Checks = append(p.Checks, Check{
			Name: r.GetName(), Done: r.GetStatus() == "completed", URL: r.GetHTMLURL(),
			Red: slices.Contains([]string{"failure", "timed_out", "startup_failure", "action_required"}, r.GetConclusion()),
			Log: cmp.Or(out.GetText(), out.GetSummary(), out.GetTitle()),
		})
	}
	status, _, err := g.client.Repositories.GetCombinedStatus(ctx, g.at.Owner, g.at.Name, p.Head,
		&github.ListOptions{PerPage: 100})
	if err != nil {
		return err
	}
	for _, s := range status.Statuses {
		p.Checks = append(p.Checks, Check{
			Name: s.GetContext(), Done: s.GetState() != "pending", Red: s.GetState() == "failure" || s.GetState() == "error",
			URL: s.GetTargetURL(), Log: s.GetDescription(),
		})
	}
	return nil
}

// reviews adds the last review of each reviewer, and the remarks on lines.
func (g *gitHubForge) reviews(ctx context.Context, p *Pull) error {
	list, err := gitHubPages(func(o github.ListOptions) ([]*github.PullRequestReview, *github.Response, error) {
		return g.client.PullRequests.ListReviews(ctx, g.at.Owner, g.at.Name, int(p.Number), &o)
	})
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.GetState() == "DISMISSED" || r.GetState() == "PENDING" {
			continue
		}
		p.Reviews = append(p.Reviews, Review{
			ID: strconv.FormatInt(r.GetID(), 10), Author: r.GetUser().GetLogin(), Body: r.GetBody(), Commit: r.GetCommitID(),
			Approves: r.GetState() == "APPROVED", Objects: r.GetState() == "CHANGES_REQUESTED",
		})
	}
	p.Reviews = lastOf(p.Reviews)
	p.Remarks, err = g.remarks(ctx, p.Number)
	return err
}

// remarks lists the comments on lines of a pull request.
func (g *gitHubForge) remarks(ctx context.Context, pull int64) (all []Remark, err error) {
	list, err := gitHubPages(func(o github.ListOptions) ([]*github.PullRequestComment, *github.Response, error) {
		return g.client.PullRequests.ListComments(ctx, g.at.Owner, g.at.Name, int(pull),
			&github.PullRequestListCommentsOptions{ListOptions: o})
	})
	for _, m := range list {
		all = append(all, Remark{
			ID: strconv.FormatInt(m.GetID(), 10), Thread: strconv.FormatInt(cmp.Or(m.GetInReplyTo(), m.GetID()), 10),
			Author: m.GetUser().GetLogin(), File: m.GetPath(), Body: m.GetBody(),
			Line: cmp.Or(m.GetLine(), m.GetOriginalLine()), Commit: cmp.Or(m.GetOriginalCommitID(), m.GetCommitID()),
		})
	}
	return all, err
}

func (g *gitHubForge) PullOf(ctx context.Context, branch string) (int64, error) {
	list, _, err := g.client.PullRequests.List(ctx, g.at.Owner, g.at.Name, &github.PullRequestListOptions{
		State: "open", Head: g.at.Owner + ":" + branch,
	})
	for _, pr := range list {
		if pr.GetHead().GetRef() == branch && pr.GetHead().GetRepo().GetID() == pr.GetBase().GetRepo().GetID() {
			return int64(pr.GetNumber()), nil
		}
	}
	return 0, err
}

func (g *gitHubForge) Open(ctx context.Context, p Proposal) (int64, error) {
	pr, _, err := g.client.PullRequests.Create(ctx, g.at.Owner, g.at.Name, &github.NewPullRequest{
		Title: &p.Title, Body: &p.Body, Head: &p.Branch, Base: &p.Into,
	})
	return int64(pr.GetNumber()), err
}

// graphQL asks for what REST does not have: merge queues, editors, and the account of an app.
func (g *gitHubForge) graphQL(ctx context.Context, query string, variables map[string]any, data any) error {
	out := struct {
		Data   any
		Errors []struct{ Type, Message string }
	}{Data: data}
	r, err := g.client.NewRequest(http.MethodPost, "../graphql", map[string]any{"query": query, "variables": variables})
	if err == nil {
		_, err = g.client.Do(ctx, r, &out)
	}
	if err == nil && len(out.Errors) > 0 {
		is := &Error{Kind: Invalid, Said: text.Line(out.Errors[0].Message, 300)}
		if err = is; out.Errors[0].Type == "RATE_LIMITED" {
			is.Kind, is.Until = Limited, g.transport.Now().Add(limitWait)
		}
	}
	return err
}

// field asks for a field of the repository, about an issue or a pull request.
func (g *gitHubForge) field(ctx context.Context, of string, number int64, into any) error {
	const about = "query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) { "
	return g.graphQL(ctx, about+of+" } }", map[string]any{"owner": g.at.Owner, "name": g.at.Name, "number": number},
		&struct{ Repository any }{into})
}

// Merge merges at once if GraphQL fails: an older server knows no merge queue.
func (g *gitHubForge) Merge(ctx context.Context, number int64, head string) (queued bool, err error) {
	var at struct {
		PullRequest struct {
			ID                                  string
			IsInMergeQueue, IsMergeQueueEnabled bool
		}
	}
	err = g.field(ctx, "pullRequest(number: $number) { id isInMergeQueue isMergeQueueEnabled }", number, &at)
	pr := at.PullRequest
	switch {
	case err != nil && KindOf(err).Passes():
	case err == nil && pr.IsInMergeQueue:
		return true, nil
	case err == nil && pr.IsMergeQueueEnabled:
		err = g.graphQL(ctx, `mutation($id: ID!, $head: GitObjectID!) {
			enqueuePullRequest(input: {pullRequestId: $id, expectedHeadOid: $head}) { clientMutationId } }`,
			map[string]any{"id": pr.ID, "head": head}, &struct{}{})
		return err == nil, err
	default:
		_, _, err = g.client.PullRequests.Merge(ctx, g.at.Owner, g.at.Name, int(number), "",
			&github.PullRequestOptions{SHA: head})
	}
	return false, err
}
