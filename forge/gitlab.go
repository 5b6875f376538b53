package forge

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"ralph/internal/text"
)

// A gitLabForge is a project on GitLab.
type gitLabForge struct {
	repository
	client  *gitlab.Client
	project string
}

func newGitLab(at Address, t *Transport) (Forge, error) {
	// The transport adds the token; the client tries nothing again, as the syncer does.
	client, err := gitlab.NewClient("", gitlab.WithBaseURL(at.URL), gitlab.WithHTTPClient(&http.Client{Transport: t}),
		gitlab.WithoutRetries(), gitlab.WithCustomLimiter(unlimited{}))
	if err != nil {
		return nil, err
	}
	t.Origin = client.BaseURL().Scheme + "://" + client.BaseURL().Host
	api := client.BaseURL().String() + "projects/"
	return &gitLabForge{repository{at, t, api}, client, at.Owner + "/" + at.Name}, nil
}

// unlimited is no limit: the syncer keeps to the forge's.
type unlimited struct{}

func (unlimited) Wait(context.Context) error { return nil }

// gitLabPages calls next with the numbers of pages until there is no other one.
func gitLabPages[T any](next func(o gitlab.ListOptions) ([]T, *gitlab.Response, error)) (all []T, err error) {
	o := gitlab.ListOptions{PerPage: 100}
	for {
		list, res, err := next(o)
		if all = append(all, list...); err != nil || res.NextPage == 0 {
			return all, err
		}
		o.Page = res.NextPage
	}
}

func (g *gitLabForge) Self(ctx context.Context) (a Account, err error) {
	user, _, err := g.client.Users.CurrentUser(gitlab.WithContext(ctx))
	if err != nil {
		return a, err
	}
	project, _, err := g.client.Projects.GetProject(g.project, nil, gitlab.WithContext(ctx))
	if err != nil {
		return a, err
	}
	write, err := g.CanWrite(ctx, user.Username)
	return Account{user.Username, write && !project.Archived}, err
}

func (g *gitLabForge) CanWrite(ctx context.Context, login string) (bool, error) {
	list, err := gitLabPages(func(o gitlab.ListOptions) ([]*gitlab.ProjectMember, *gitlab.Response, error) {
		return g.client.ProjectMembers.ListAllProjectMembers(g.project,
			&gitlab.ListProjectMembersOptions{ListOptions: o, Query: &login}, gitlab.WithContext(ctx))
	})
	return slices.ContainsFunc(list, func(m *gitlab.ProjectMember) bool {
		return strings.EqualFold(m.Username, login) && m.State == "active" && m.AccessLevel >= gitlab.DeveloperPermissions
	}), err
}

func (g *gitLabForge) Issues(ctx context.Context, since time.Time, page int) (list []Issue, more bool, err error) {
	by, sort := "updated_at", "asc"
	opts := &gitlab.ListProjectIssuesOptions{
		ListOptions: gitlab.ListOptions{PerPage: 100, Page: int64(page)}, OrderBy: &by, Sort: &sort,
	}
	if !since.IsZero() {
		opts.UpdatedAfter = &since
	}
	all, res, err := g.client.Issues.ListProjectIssues(g.project, opts, gitlab.WithContext(ctx))
	if err != nil {
		return nil, false, err
	}
	for _, i := range all {
		issue := Issue{
			Number: i.IID, URL: i.WebURL, Title: i.Title, Body: i.Description, Labels: i.Labels,
			Closed: i.State == "closed",
		}
		if i.Author != nil {
			issue.Author = i.Author.Username
		}
		if i.Milestone != nil {
			issue.Milestone = i.Milestone.Title
		}
		if i.UpdatedAt != nil {
			issue.Updated = *i.UpdatedAt
		}
		list = append(list, issue)
	}
	return list, res.NextPage != 0, nil
}

func (g *gitLabForge) Last(
	ctx context.Context, issue int64, act Act, label string,
) (who string, at time.Time, err error) {
	if act == Edited { // reporters edit issues and may not push; only the notes' words reveal edits
		list, err := g.notes(ctx, issue)
		for _, n := range list {
			about := strings.HasPrefix(n.Body, "changed the description") || strings.HasPrefix(n.Body, "changed title")
			if n.System && about && n.CreatedAt != nil && n.CreatedAt.After(at) {
				who, at = n.Author.Username, *n.CreatedAt
			}
		}
		return who, at, err
	}
	if act == Closed || act == Reopened {
		list, err := gitLabPages(func(o gitlab.ListOptions) ([]*gitlab.StateEvent, *gitlab.Response, error) {
			return g.client.ResourceStateEvents.ListIssueStateEvents(g.project, issue,
				&gitlab.ListStateEventsOptions{ListOptions: o}, gitlab.WithContext(ctx))
		})
		for _, e := range list {
			if string(e.State) == string(act) && e.User != nil && e.CreatedAt != nil {
				who, at = e.User.Username, *e.CreatedAt
			}
		}
		return who, at, err
	}
	list, err := gitLabPages(func(o gitlab.ListOptions) ([]*gitlab.LabelEvent, *gitlab.Response, error) {
		return g.client.ResourceLabelEvents.ListIssueLabelEvents(g.project, issue,
			&gitlab.ListLabelEventsOptions{ListOptions: o}, gitlab.WithContext(ctx))
	})
	action := map[Act]string{Labelled: "add", Unlabelled: "remove"}[act]
	for _, e := range list {
		if e.Action == action && strings.EqualFold(e.Label.Name, label) && e.CreatedAt != nil {
			who, at = e.User.Username, *e.CreatedAt
		}
	}
	return who, at, err
}

// mergeRequest begins the ids of notes on merge requests, which GitLab keeps apart from those on issues.
const mergeRequest = "mr"

// notes lists the notes on an issue, the system's too.
func (g *gitLabForge) notes(ctx context.Context, issue int64) ([]*gitlab.Note, error) {
	by, sort := "updated_at", "asc"
	return gitLabPages(func(o gitlab.ListOptions) ([]*gitlab.Note, *gitlab.Response, error) {
		return g.client.Notes.ListIssueNotes(g.project, issue,
			&gitlab.ListIssueNotesOptions{ListOptions: o, OrderBy: &by, Sort: &sort}, gitlab.WithContext(ctx))
	})
}

// GitLab numbers merge requests apart from issues.
func (g *gitLabForge) Comments(ctx context.Context, number int64, since time.Time) ([]Comment, error) {
	list, err := g.notes(ctx, number)
	return gitLabComments(list, since), err
}

// gitLabComments are people's notes since a moment.
func gitLabComments(list []*gitlab.Note, since time.Time) (comments []Comment) {
	for _, n := range list {
		if !n.System && n.UpdatedAt != nil && !n.UpdatedAt.Before(since) {
			comments = append(comments, Comment{strconv.FormatInt(n.ID, 10), n.Author.Username, n.Body, *n.UpdatedAt})
		}
	}
	return comments
}

func (g *gitLabForge) Comment(ctx context.Context, number int64, body string) (string, error) {
	n, _, err := g.client.Notes.CreateIssueNote(g.project, number, &gitlab.CreateIssueNoteOptions{Body: &body},
		gitlab.WithContext(ctx))
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(n.ID, 10), nil
}

func (g *gitLabForge) Edit(ctx context.Context, number int64, id, body string) error {
	n, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		_, _, err = g.client.Notes.UpdateIssueNote(g.project, number, n, &gitlab.UpdateIssueNoteOptions{Body: &body},
			gitlab.WithContext(ctx))
	}
	return err
}

func (g *gitLabForge) React(ctx context.Context, number int64, id string, r Reaction) error {
	id, pull := strings.CutPrefix(id, mergeRequest)
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return err
	}
	add := g.client.AwardEmoji.CreateIssuesAwardEmojiOnNote
	if pull {
		add = g.client.AwardEmoji.CreateMergeRequestAwardEmojiOnNote
	}
	name := map[Reaction]string{Taken: "thumbsup", Refused: "thumbsdown"}[r]
	_, _, err = add(g.project, number, n, &gitlab.CreateAwardEmojiOptions{Name: name}, gitlab.WithContext(ctx))
	return err
}

func (g *gitLabForge) SetLabel(ctx context.Context, issue int64, label string, without []string) error {
	add, remove := gitlab.LabelOptions{label}, gitlab.LabelOptions(without)
	opts := &gitlab.UpdateIssueOptions{AddLabels: &add, RemoveLabels: &remove}
	if label == "" {
		opts.AddLabels = nil
	}
	_, _, err := g.client.Issues.UpdateIssue(g.project, issue, opts, gitlab.WithContext(ctx))
	return err
}

func (g *gitLabForge) Changed(ctx context.Context, since time.Time) (all []Changed, err error) {
	state, by := "all", "updated_at"
	list, err := gitLabPages(func(o gitlab.ListOptions) ([]*gitlab.BasicMergeRequest, *gitlab.Response, error) {
		return g.client.MergeRequests.ListProjectMergeRequests(g.project, &gitlab.ListProjectMergeRequestsOptions{
			ListOptions: o, State: &state, OrderBy: &by, UpdatedAfter: &since,
		}, gitlab.WithContext(ctx))
	})
	for _, mr := range list {
		if mr.UpdatedAt != nil {
			all = append(all, Changed{mr.IID, mr.State == "opened", *mr.UpdatedAt})
		}
	}
	return all, err
}

func (g *gitLabForge) Said(ctx context.Context, pull int64) ([]Comment, error) {
	by, sort := "created_at", "asc"
	list, err := gitLabPages(func(o gitlab.ListOptions) ([]*gitlab.Note, *gitlab.Response, error) {
		return g.client.Notes.ListMergeRequestNotes(g.project, pull,
			&gitlab.ListMergeRequestNotesOptions{ListOptions: o, OrderBy: &by, Sort: &sort}, gitlab.WithContext(ctx))
	})
	return gitLabComments(list, time.Time{}), err
}

func (g *gitLabForge) Say(ctx context.Context, pull int64, thread, body string) (err error) {
	if thread == "" {
		_, _, err = g.client.Notes.CreateMergeRequestNote(g.project, pull,
			&gitlab.CreateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
		return err
	}
	_, _, err = g.client.Discussions.AddMergeRequestDiscussionNote(g.project, pull, thread,
		&gitlab.AddMergeRequestDiscussionNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	return err
}

func (g *gitLabForge) Close(ctx context.Context, pull int64) error {
	event := "close"
	_, _, err := g.client.MergeRequests.UpdateMergeRequest(g.project, pull,
		&gitlab.UpdateMergeRequestOptions{StateEvent: &event}, gitlab.WithContext(ctx))
	return err
}

func (g *gitLabForge) Pull(ctx context.Context, number int64) (p Pull, err error) {
	mr, _, err := g.client.MergeRequests.GetMergeRequest(g.project, number, nil, gitlab.WithContext(ctx))
	if err != nil {
		return p, err
	}
	p = Pull{
		Number: number, URL: mr.WebURL, Head: mr.SHA, Closed: mr.State == "closed" || mr.State == "merged",
		Into: mr.TargetBranch, Draft: mr.Draft,
	}
	if mr.UpdatedAt != nil {
		p.Updated = *mr.UpdatedAt
	}
	if mr.State == "merged" {
		p.Merged = cmp.Or(mr.MergeCommitSHA, mr.SquashCommitSHA, mr.SHA)
	}
	if p.Closed {
		return p, nil
	}
	if mr.HeadPipeline != nil && mr.HeadPipeline.SHA == mr.SHA {
		if err := g.jobs(ctx, mr.HeadPipeline.ID, &p); err != nil {
			return p, err
		}
	}
	return p, g.reviews(ctx, &p)
}

// jobs adds the jobs of a pipeline, with the end of the logs of failed ones.
func (g *gitLabForge) jobs(ctx context.Context, pipeline int64, p *Pull) error {
	list, err := gitLabPages(func(o gitlab.ListOptions) ([]*gitlab.Job, *gitlab.Response, error) {
		return g.client.Jobs.ListPipelineJobs(g.project, pipeline, &gitlab.ListJobsOptions{ListOptions: o},
			gitlab.WithContext(ctx))
	})
	if err != nil {
		return err
	}
	for _, j := range list {
		c := Check{
			Name: j.Name, URL: j.WebURL, Red: j.Status == "failed" && !j.AllowFailure,
			Done: slices.Contains([]string{"success", "failed", "canceled", "skipped", "manual"}, j.Status),
		}
		if c.Red {
			trace, _, err := g.client.Jobs.GetTraceFile(g.project, j.ID, gitlab.WithContext(ctx))
			if err != nil && KindOf(err).Passes() {
				return err
			}
			if err == nil { // it is in memory
				b, _ := io.ReadAll(trace)
				c.Log = text.Tail(string(b), maxLog)
			}
		}
		p.Checks = append(p.Checks, c)
	}
	return nil
}

// maxLog bounds the end of a log that is kept, in bytes.
const maxLog = 4000

// reviews adds approvals, requests for changes and notes. Notes in threads are remarks, the others are comments.
func (g *gitLabForge) reviews(ctx context.Context, p *Pull) error {
	approvals, _, err := g.client.MergeRequestApprovals.GetConfiguration(g.project, p.Number, gitlab.WithContext(ctx))
	if err != nil {
		return err
	}
	for _, a := range approvals.ApprovedBy {
		if a.User != nil {
			p.Reviews = append(p.Reviews, Review{
				ID: "approval-" + a.User.Username, Author: a.User.Username, Approves: true, Commit: p.Head,
			})
		}
	}
	reviewers, _, err := g.client.MergeRequests.GetMergeRequestReviewers(g.project, p.Number, gitlab.WithContext(ctx))
	if err != nil {
		return err
	}
	for _, r := range reviewers {
		if r.User != nil && r.State == "requested_changes" {
			p.Reviews = append(p.Reviews, Review{
				ID: "requested-" + r.User.Username, Author: r.User.Username, Objects: true, Commit: p.Head,
			})
		}
	}
	list, err := gitLabPages(func(o gitlab.ListOptions) ([]*gitlab.Discussion, *gitlab.Response, error) {
		return g.client.Discussions.ListMergeRequestDiscussions(g.project, p.Number,
			&gitlab.ListMergeRequestDiscussionsOptions{ListOptions: o}, gitlab.WithContext(ctx))
	})
	for _, d := range list {
		for _, n := range d.Notes {
			id := mergeRequest + strconv.FormatInt(n.ID, 10)
			switch at := cmp.Or(n.Position, &gitlab.NotePosition{}); {
			case n.System || n.Resolved:
			case n.Position != nil || n.Resolvable:
				p.Remarks = append(p.Remarks, Remark{
					ID: id, Thread: d.ID, Author: n.Author.Username, File: at.NewPath, Body: n.Body,
					Line: int(cmp.Or(at.NewLine, at.OldLine)), Commit: at.HeadSHA,
				})
			default:
				p.Comments = append(p.Comments, Comment{ID: id, Author: n.Author.Username, Body: n.Body})
			}
		}
	}
	return err
}

func (g *gitLabForge) PullOf(ctx context.Context, branch string) (int64, error) {
	state := "opened"
	list, _, err := g.client.MergeRequests.ListProjectMergeRequests(g.project,
		&gitlab.ListProjectMergeRequestsOptions{State: &state, SourceBranch: &branch}, gitlab.WithContext(ctx))
	for _, mr := range list {
		if mr.SourceBranch == branch && mr.SourceProjectID == mr.TargetProjectID {
			return mr.IID, nil
		}
	}
	return 0, err
}

func (g *gitLabForge) Open(ctx context.Context, p Proposal) (int64, error) {
	mr, _, err := g.client.MergeRequests.CreateMergeRequest(g.project, &gitlab.CreateMergeRequestOptions{
		Title: &p.Title, Description: &p.Body, SourceBranch: &p.Branch, TargetBranch: &p.Into,
	}, gitlab.WithContext(ctx))
	return cmp.Or(mr, &gitlab.MergeRequest{}).IID, err
}

// Merge puts the merge request on the merge train, if the project has them.
func (g *gitLabForge) Merge(ctx context.Context, number int64, head string) (queued bool, err error) {
	project, _, err := g.client.Projects.GetProject(g.project, nil, gitlab.WithContext(ctx))
	switch {
	case err != nil:
	case project.MergeTrainsEnabled:
		_, _, err = g.client.MergeTrains.GetMergeRequestOnAMergeTrain(g.project, number, gitlab.WithContext(ctx))
		if err != nil && KindOf(err) == Gone {
			_, _, err = g.client.MergeTrains.AddMergeRequestToMergeTrain(g.project, number,
				&gitlab.AddMergeRequestToMergeTrainOptions{AutoMerge: new(true), SHA: &head}, gitlab.WithContext(ctx))
		}
		queued = err == nil
	default:
		_, _, err = g.client.MergeRequests.AcceptMergeRequest(g.project, number,
			&gitlab.AcceptMergeRequestOptions{SHA: &head}, gitlab.WithContext(ctx))
	}
	return queued, err
}
