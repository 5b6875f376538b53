package forge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/internal/inbox"
	"ralph/internal/lazy"
	"ralph/internal/text"
	"ralph/signals"
	"ralph/store"
)

// The log of events is the outbox: ralph makes each post from an event, in order, and moves its position on after
// sending. Each post has a recorded mark. If a failure leaves the outcome unknown, ralph searches the forge for the
// mark before it sends the post again.

// A post is a comment about an event.
type post struct {
	issue int64
	mark  string // its subject; each is posted once
	body  string
}

// posts sends the events after the last post, then the replies, then the status of each issue.
func (s *Syncer) posts(ctx context.Context) error {
	from, err := s.position(ctx)
	if err != nil {
		return err
	}
	at := from
	for e, err := range s.Store.EventsAfter(ctx, from) {
		if err != nil {
			return err
		}
		all, err := s.about(ctx, e)
		if err != nil {
			return err
		}
		for _, p := range all {
			if err := s.send(ctx, p); err != nil {
				return err
			}
		}
		s.touch(e.TaskID)
		if at = e.ID; len(all) > 0 {
			if err := s.setPosition(ctx, at); err != nil {
				return err
			}
		}
	}
	if at != from {
		if err := s.setPosition(ctx, at); err != nil {
			return err
		}
	}
	if err := s.replies(ctx); err != nil {
		return err
	}
	if err := s.statuses(ctx); err != nil {
		return err
	}
	s.sure = true
	return nil
}

// position returns the last posted event. The first look sets the position: earlier events are not posted.
func (s *Syncer) position(ctx context.Context) (at int64, err error) {
	var ok bool
	if err := s.Store.View(ctx, func(tx *store.Tx) error {
		at, ok, err = tx.ReaderPosition(store.ForgePoster)
		return err
	}); err != nil || ok {
		return at, err
	}
	err = s.Store.Tx(ctx, func(tx *store.Tx) error {
		if at, err = tx.LastEvent(); err != nil {
			return err
		}
		return tx.SetReaderPosition(store.ForgePoster, at)
	})
	return at, err
}

func (s *Syncer) setPosition(ctx context.Context, at int64) error {
	return s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.SetReaderPosition(store.ForgePoster, at) })
}

// waiting counts the unsent posts.
func (s *Syncer) waiting(ctx context.Context) (n int, err error) {
	at, err := s.position(ctx)
	if err != nil {
		return 0, err
	}
	replies, err := store.Read(ctx, s.Store, (*store.Tx).ForgeReplies)
	if err != nil {
		return 0, err
	}
	n = len(replies)
	for e, err := range s.Store.EventsAfter(ctx, at) {
		if err != nil {
			return n, err
		}
		posts, err := s.about(ctx, e)
		if n += len(posts); err != nil {
			return n, err
		}
	}
	return n, nil
}

// about returns the posts about an event.
func (s *Syncer) about(ctx context.Context, e ralph.Event) ([]post, error) {
	return store.Read(ctx, s.Store, func(tx *store.Tx) ([]post, error) { return postsFor(tx, e) })
}

// send sends a post, unless it was sent. It gives up a post that the forge will never accept.
func (s *Syncer) send(ctx context.Context, p post) error {
	key := "post " + p.mark
	sent, err := store.Read(ctx, s.Store, func(tx *store.Tx) (bool, error) { return tx.TookForgeComment(key) })
	if err != nil || sent {
		return err
	}
	if _, err = s.say(ctx, p.issue, p.mark, p.body); err != nil {
		if err = s.alone(ctx, fmt.Sprintf("#%d", p.issue), err); err != nil {
			return err
		}
	}
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.TakeForgeComment(store.ForgeReply{ID: key, Number: p.issue})
		return err
	})
}

// maxPost bounds the text of a post: the smallest limit of the forges is 65,536 characters.
const maxPost = 60000

// alone returns nil if a failure is that of one request only, which is given up and noted. Nothing is given up while
// the account cannot see the repository, or may not write there.
func (s *Syncer) alone(ctx context.Context, on string, err error) error {
	if e, ok := errors.AsType[*Error](err); !ok || e.Kind.Passes() {
		return err
	}
	self, failed := s.Forge.Self(ctx)
	if failed != nil {
		return failed
	}
	if s.self = self; !self.Write {
		return &Error{Kind: Denied, Said: self.Login + " may not write to " + s.Forge.Repository()}
	}
	s.refused = on + ": " + text.Line(s.Mask(err.Error()), 300)
	s.Log.Warn("the forge refused", "on", on, "error", err)
	return nil
}

// touch notes that the status of a task may have changed.
func (s *Syncer) touch(task int64) {
	if s.dirty != nil {
		s.dirty[task] = true
	}
}

// say adds a comment with a mark to an issue, and returns its id.
func (s *Syncer) say(ctx context.Context, issue int64, of, body string) (string, error) {
	return s.once(of, body, func() ([]Comment, error) { return s.Forge.Comments(ctx, issue, time.Time{}) },
		func(body string) (string, error) { return s.Forge.Comment(ctx, issue, body) })
}

// tell adds a comment with a mark to a pull request: to a thread, unless that is "".
func (s *Syncer) tell(ctx context.Context, pull int64, thread, of, body string) error {
	_, err := s.once(of, body, func() ([]Comment, error) { return s.Forge.Said(ctx, pull) },
		func(body string) (string, error) { return "", s.Forge.Say(ctx, pull, thread, body) })
	return err
}

// once adds a comment with a mark. If the end of an earlier try may be unknown, it looks for the mark first.
func (s *Syncer) once(
	of, body string, list func() ([]Comment, error), add func(body string) (string, error),
) (string, error) {
	if !s.sure {
		all, err := list()
		if err != nil {
			return "", err
		}
		for _, c := range all {
			if strings.HasPrefix(c.Body, mark(of, s.queue)) && strings.EqualFold(c.Author, s.self.Login) {
				return c.ID, nil
			}
		}
	}
	id, err := add(text.Clip(mark(of, s.queue)+"\n"+s.Mask(body), maxPost))
	if err != nil && KindOf(err).Passes() {
		s.sure = false
	}
	return id, err
}

// replies sends the reactions and answers to comments that were taken.
func (s *Syncer) replies(ctx context.Context) error {
	list, err := store.Read(ctx, s.Store, (*store.Tx).ForgeReplies)
	if err != nil {
		return err
	}
	for _, r := range list {
		if err := s.alone(ctx, fmt.Sprintf("#%d", r.Number), s.reply(ctx, r)); err != nil {
			return err
		}
		if err := s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.SentForgeReply(r.ID) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *Syncer) reply(ctx context.Context, r store.ForgeReply) error {
	kind, id, thread := r.ID[:1], r.ID[1:], ""
	if r.Reaction != "" {
		if err := s.Forge.React(ctx, r.Number, id, Reaction(r.Reaction)); err != nil {
			return err
		}
	}
	switch {
	case r.Text == "":
		return nil
	case kind == onIssue:
		_, err := s.say(ctx, r.Number, "reply "+r.ID, r.Text)
		return err
	case kind == onThread:
		thread, _, _ = strings.Cut(id, "/")
	}
	return s.tell(ctx, r.Number, thread, "reply "+r.ID, r.Text)
}

// labelPrefix begins the labels that ralph sets.
const labelPrefix = "ralph:"

// stateLabels are the labels for the words of tasks; the others have none.
var stateLabels = map[string]string{
	"queued": "ralph:queued", "waiting": "ralph:queued", "running": "ralph:running", "merging": "ralph:running",
	"in review": "ralph:in-review",
	"needs you": "ralph:needs-you", "merged": "ralph:done", "failed": "ralph:failed",
}

// statuses brings the status comment and the label of each issue up to date.
func (s *Syncer) statuses(ctx context.Context) error {
	list, err := store.Read(ctx, s.Store, (*store.Tx).ForgeIssues)
	if err != nil {
		return err
	}
	if s.dirty != nil {
		list = slices.DeleteFunc(list, func(i store.ForgeIssue) bool { return !s.dirty[i.TaskID] })
	}
	for _, i := range list {
		var body, label string
		if err := s.Store.View(ctx, func(tx *store.Tx) (err error) {
			body, label, err = statusOf(tx, i.TaskID)
			return err
		}); err != nil {
			return err
		}
		is := digest(body, "\x00", label)
		if is == i.Posted {
			continue
		}
		id, err := s.status(ctx, i, body, label)
		if err = s.alone(ctx, fmt.Sprintf("#%d", i.Number), err); err != nil {
			return err
		}
		if err := s.Store.Tx(ctx, func(tx *store.Tx) error {
			now, ok, err := tx.ForgeIssue(i.Number)
			if err != nil || !ok {
				return err
			}
			now.Status, now.Posted = id, is
			return tx.PutForgeIssue(now)
		}); err != nil {
			return err
		}
	}
	s.dirty = map[int64]bool{}
	return nil
}

// status writes the status comment of an issue, and sets its label.
func (s *Syncer) status(ctx context.Context, i store.ForgeIssue, body, label string) (id string, err error) {
	of := fmt.Sprintf("TASK-%d status", i.TaskID)
	id = i.Status
	if id != "" {
		err = s.Forge.Edit(ctx, i.Number, id, mark(of, s.queue)+"\n"+s.Mask(body))
		if err != nil && KindOf(err) == Gone { // somebody has deleted it
			id, err = "", nil
		}
	}
	if id == "" && err == nil {
		id, err = s.say(ctx, i.Number, of, body)
	}
	if err != nil {
		return id, err
	}
	var without []string
	for _, l := range stateLabels {
		if l != label && !slices.Contains(without, l) {
			without = append(without, l)
		}
	}
	slices.Sort(without)
	return id, s.Forge.SetLabel(ctx, i.Number, label, without)
}

// statusOf returns the text of a status comment, and the label.
func statusOf(tx *store.Tx, task int64) (body, label string, err error) {
	t, err := tx.Task(task)
	if err != nil {
		return "", "", err
	}
	sessions, err := tx.Sessions(store.SessionFilter{Task: task})
	if err != nil {
		return "", "", err
	}
	cost := 0.0
	for _, x := range sessions {
		if !x.CompletedAt.IsZero() {
			cost += x.CostUSD
		}
	}
	parts := []string{fmt.Sprintf("**TASK-%d**", t.ID), t.Word()}
	if len(sessions) > 0 {
		parts = append(parts, text.Count(len(sessions), "session"), fmt.Sprintf("$%.2f", cost))
	}
	body = strings.Join(parts, " · ")
	if p, ok, err := tx.ForgePullOf(task); err != nil {
		return "", "", err
	} else if ok {
		body += fmt.Sprintf(" · pull request [#%d](%s)", p.Number, p.URL) // on GitLab #34 alone is an issue
	}
	if t.StatusReason != "" && (t.Status.Ended() || t.NeedsPerson()) {
		body += "\n\n" + Plain(text.Clip(t.StatusReason, 1000))
	}
	body += "\n\nralph keeps this comment up to date. Commands: " + Commands + "."
	return body, stateLabels[t.Word()], nil
}

// postsFor returns the posts about an event: a question, work that waits for approval, a failure or a result. Tasks
// without an issue have none.
func postsFor(tx *store.Tx, e ralph.Event) (list []post, err error) {
	p, err := e.Read()
	if err != nil || e.TaskID == 0 {
		return nil, err
	}
	link, ok, err := tx.ForgeIssueOf(e.TaskID)
	if err != nil || !ok {
		return nil, err
	}
	about := func(mark, body string) {
		list = append(list, post{link.Number, fmt.Sprintf("TASK-%d %s", e.TaskID, mark), body})
	}
	event := fmt.Sprintf("event %d %d", e.ID, e.Created.Unix()) // a new queue counts from 1 again
	switch p := p.(type) {
	case ralph.SignalGiven:
		if p.Verb != ralph.VerbAsk {
			return nil, nil
		}
		said, err := signals.Parse(p.Verb, p.Payload)
		if err != nil {
			return nil, err
		}
		if ask, ok := said.(signals.Ask); ok {
			about(fmt.Sprintf("Q%d %d", p.CommentID, e.Created.Unix()), question(p.CommentID, ask))
		}
	case ralph.TaskStatusChanged:
		switch p.To {
		case ralph.Failed:
			about(event, "**Failed:** "+Plain(p.Reason)+"\n\n`/retry HINT` has it tried again.")
		case ralph.Completed:
			body, err := receipt(tx, e.TaskID)
			if err != nil {
				return nil, err
			}
			about(event, "**Done:** "+Plain(p.Reason)+"\n\n"+body)
		case ralph.NeedsInput, ralph.Blocked:
			items, err := waits(tx, e.TaskID)
			if err != nil {
				return nil, err
			}
			for _, i := range items {
				if inbox.YesOrNo(i) && !inbox.Alone(i) && i.Holding {
					about(i.Item, "**Waits for a yes:** "+Plain(i.Asks+"\n\n"+text.Clip(i.Text, 4000))+
						"\n\n`/approve` or `/reject WHY`")
				}
			}
		}
	}
	return list, nil
}

// question returns the comment for a question. It names the question, so that a reply that quotes it answers it.
func question(id int64, ask signals.Ask) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**Question Q%d:** %s\n", id, Plain(ask.Question))
	for n, o := range ask.Options {
		fmt.Fprintf(&b, "\n%d. %s", n+1, Plain(o))
		if o == ask.Preferred {
			b.WriteString(" (the agent would take this)")
		}
	}
	how := "`/answer TEXT`"
	if len(ask.Options) > 0 {
		how = "`/answer NUMBER` or `/answer TEXT`"
	}
	b.WriteString("\n\nReply with " + how + ".")
	return b.String()
}

// receipt describes a task's last session and its checks.
func receipt(tx *store.Tx, task int64) (string, error) {
	list, err := tx.Sessions(store.SessionFilter{Task: task})
	if err != nil || len(list) == 0 {
		return "", err
	}
	var b strings.Builder
	cost := 0.0
	for _, x := range list {
		cost += x.CostUSD
	}
	last := list[0]
	said, err := tx.SessionSignals(last.ID)
	if err != nil {
		return "", err
	}
	for _, x := range slices.Backward(said) {
		if done, ok := x.Payload.(signals.Done); ok {
			b.WriteString(Plain(done.Summary) + "\n\n")
			break
		}
	}
	for _, v := range last.Verify {
		fmt.Fprintf(&b, "- passed: `%s` (%.1f s)\n", strings.ReplaceAll(v.Command, "`", "'"), v.Seconds)
	}
	if len(last.Verify) == 0 {
		b.WriteString("- nothing verified it\n")
	}
	if last.Reason != "" {
		b.WriteString("- " + Plain(text.Line(last.Reason, 1000)) + "\n")
	}
	fmt.Fprintf(&b, "- %s, $%.2f, agent %s\n", text.Count(len(list), "session"), cost, Plain(last.Agent))
	return b.String(), nil
}

var (
	reference = lazy.Regexp(`([#!@]|\bGH-|/(?:issues|pull|pulls|merge_requests)/)([A-Za-z0-9_])`)
	slashed   = lazy.Regexp(`(?m)^([ \t]*)/`)
)

// Plain returns an agent's text in a form that is safe on the forge: it mentions nobody, closes no issue, gives no
// command to the forge (as "/merge" on GitLab) or to a bot, and does not resemble a mark.
func Plain(s string) string {
	s = reference().ReplaceAllString(text.Clean(s), "$1\u200b$2")
	s = slashed().ReplaceAllString(s, "$1\u200b/")
	return strings.ReplaceAll(s, "<!--", "&lt;!--")
}
