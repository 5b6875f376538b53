package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"ralph"
	"ralph/internal/exchange"
	"ralph/internal/text"
	"ralph/store"
)

// A Syncer keeps the queue and a forge in step. Set its fields before the first call.
type Syncer struct {
	Forge  Forge
	Store  *store.DB
	Label  string   // issues with it become tasks; "" for none
	People []string // accounts that may decide; empty: everyone with write access
	Into   string   // the branch that pull requests go into
	Git    Git      // nil if no pull requests are opened
	Auto   bool     // merge.auto
	Rounds int      // limits.review_rounds
	Mask   func(string) string
	Log    *slog.Logger
	Now    func() time.Time
	Stands func(Standing) // called with the forge's state after each look; may be nil

	queue  string  // names the queue in marks; "" before the first look
	source string  // the repository's name in the queue, which stays when it is renamed
	self   Account // account of the token; asked for once, and again after a failure
	rights map[string]right
	sure   bool      // every post has a known end; if not, search for a post before sending it
	told   string    // the latest reported trouble of the forge; "" for none
	wait   time.Time // no look before this time
	failed bool      // the last look failed
	asked  time.Time // when the forge was read last

	edge    map[int64]bool      // issues of the last second of changes that were read when it was over
	due     map[int64]time.Time // by pull request: no read before this time
	tip     string              // commit of the target at the last look
	refused string              // the last post or issue of this look that the forge refuses
	dirty   map[int64]bool      // tasks whose status may have changed since it was posted; nil: all
}

// A Git works on the branches of pull requests.
type Git interface {
	// Tip returns the commit of the target.
	Tip(ctx context.Context) (string, error)
	// Pull fetches the branch of a pull request, with people's commits; the change's next session starts from there.
	// It returns the commit and its tree: those of the change if the branch was deleted, "" if that is not here.
	Pull(ctx context.Context, c ralph.Change, branch string) (commit, tree string, err error)
	// Conflicts reports whether a branch conflicts with the target, both as they are on the remote
	// or were fetched last.
	Conflicts(ctx context.Context, branch string, fetch bool) (bool, error)
	// Landed fetches into, where a branch was merged, and returns the effect there: the commit below it ("" for the
	// first parent of commit) and the changed files. head is the tip of the branch.
	Landed(ctx context.Context, into, branch, commit, head string) (base string, files []ralph.FileChange, err error)
	// DropBranch deletes a merged branch, unless it has commits beyond head.
	DropBranch(ctx context.Context, branch, head string) error
}

// A right is the cached right of an account.
type right struct {
	write bool
	until time.Time
}

// rightLasts is the time for which a right is cached.
const rightLasts = 5 * time.Minute

// A Standing is the state of the connection to the forge.
type Standing struct {
	Repository string     `json:"repository"`
	Looked     ralph.Time `json:"looked"`            // the last look that succeeded
	Failed     string     `json:"failed"`            // why the last look failed; "" if it did not
	Kind       Kind       `json:"kind,omitempty"`    // kind of that failure
	Until      ralph.Time `json:"until,omitzero"`    // no look before this time
	Posts      int        `json:"posts"`             // posts that wait to be sent
	Left       *int       `json:"left,omitempty"`    // requests left of the rate limit
	Login      string     `json:"login,omitempty"`   // the token's account
	Refused    string     `json:"refused,omitempty"` // the last post that the forge refused for good
	RefusedAt  ralph.Time `json:"refused_at,omitzero"`
}

// interval is the time between two looks.
const interval = time.Minute

// forgeLease lets one process at a time follow the forge.
const forgeLease = "forge"

// Run looks at once, then once a minute and after a webhook, until over is closed or ctx ends. In between it posts the
// queue's events. It then looks once more, for at most drain. While another process follows the forge, it waits.
func (s *Syncer) Run(ctx context.Context, over <-chan struct{}, drain time.Duration) {
	release := s.lease(ctx, over)
	if release == nil {
		return
	}
	defer func() {
		if err := release(); err != nil {
			s.Log.Warn("the lease of the forge was not released", "error", err)
		}
	}()
	for last := false; ; {
		changed := s.Store.Changed()
		limited, cancel := ctx, context.CancelFunc(func() {})
		if last {
			limited, cancel = context.WithTimeout(ctx, drain)
		}
		if err := s.look(limited, last); err != nil && ctx.Err() == nil {
			s.Log.Debug("the forge is not up to date; trying again", "error", err) // `ralph status` shows it
		}
		cancel()
		if last || ctx.Err() != nil {
			return
		}
		if last = !s.rest(ctx, over, changed); last && ctx.Err() != nil {
			return
		}
	}
}

// lease waits for the lease; nil if the run is over before.
func (s *Syncer) lease(ctx context.Context, over <-chan struct{}) (release func() error) {
	for {
		release, holder, err := s.Store.Lease(ctx, forgeLease, time.Second)
		if s.dirty = nil; err == nil && holder == "" {
			return release
		}
		select {
		case <-ctx.Done():
			return nil
		case <-over:
			return nil
		case <-time.After(interval):
		}
	}
}

// settle is the delay after an event, because others often follow.
const settle = 2 * time.Second

// rest waits for the next look; it returns false if that is the last one.
func (s *Syncer) rest(ctx context.Context, over, changed <-chan struct{}) bool {
	tick := time.NewTimer(max(interval-s.Now().Sub(s.asked), s.wait.Sub(s.Now()), settle))
	defer tick.Stop()
	if s.failed || s.Now().Before(s.wait) {
		changed = nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-over:
		return false
	case <-tick.C:
		return true
	case <-changed:
	}
	select {
	case <-ctx.Done():
		return false
	case <-over:
		return false
	case <-time.After(settle):
	}
	return true
}

// ErrFollowed means that another process follows the forge for this queue.
var ErrFollowed = errors.New("another process follows the forge for this queue")

// Once reads the forge's news and then posts the queue's. The error is the forge's or the database's; completed steps
// stay done, and the next call continues. The error is [ErrFollowed] while another process follows the forge.
func (s *Syncer) Once(ctx context.Context) (err error) {
	release, holder, err := s.Store.Lease(ctx, forgeLease, time.Second)
	if err != nil {
		return err
	}
	s.dirty = nil // another process may have posted
	if holder != "" {
		return fmt.Errorf("%w: %s", ErrFollowed, holder)
	}
	defer func() { err = errors.Join(err, release()) }()
	return s.look(ctx, true)
}

// look performs one look, for the holder of the lease. It reads the forge if a look is due or all
// is set, and posts.
func (s *Syncer) look(ctx context.Context, all bool) error {
	if s.Now().Before(s.wait) {
		return nil
	}
	known, err := store.Read(ctx, s.Store, (*store.Tx).Forge)
	if err != nil {
		return err
	}
	read := all || s.Now().Sub(s.asked) >= interval || known.Woken.After(s.asked)
	if read {
		s.asked = s.Now()
	}
	s.refused = ""
	err = s.step(ctx, read)
	s.failed = err != nil
	st := Standing{Repository: s.Forge.Repository(), Looked: ralph.At(s.Now()), Login: s.self.Login}
	if left, ok := s.Forge.Limit(); ok {
		st.Left = &left
	}
	if err != nil {
		s.sure = false // a request may have arrived
		if k := KindOf(err); k == Token || k == Denied {
			s.self = Account{}
		}
		st.Looked, st.Failed, st.Kind = ralph.Time{}, text.Line(s.Mask(err.Error()), 500), KindOf(err)
		if e, ok := errors.AsType[*Error](err); ok && e.Kind == Limited {
			s.wait, st.Until = e.Until, ralph.At(e.Until)
		}
	}
	posts, perr := s.waiting(ctx)
	if s.refused != "" {
		st.Refused, st.RefusedAt = s.refused, ralph.At(s.Now())
	}
	if st.Posts = posts; s.Stands != nil {
		s.Stands(st)
	}
	return errors.Join(err, perr, s.trouble(ctx, st))
}

// trouble tells a person that a token does not work.
func (s *Syncer) trouble(ctx context.Context, st Standing) error {
	what := ""
	if slices.Contains([]Kind{Token, Denied, Gone, Elsewhere}, st.Kind) {
		what = st.Repository + ": " + st.Failed + "; tasks go on without it"
	}
	has, err := store.Read(ctx, s.Store, func(tx *store.Tx) (bool, error) { return tx.HasTrouble(store.TroubleForge) })
	if err != nil || has == (what != "") && what == s.told || what == "" && st.Failed != "" {
		return err
	}
	s.told = what
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		if what == "" {
			return tx.ClearTrouble(store.TroubleForge)
		}
		return tx.SetTrouble(store.Trouble{Kind: store.TroubleForge, Command: "ralph doctor", What: what})
	})
}

// step does the work of a look. It recovers panics of the forges' clients, which some unexpected
// answers cause.
func (s *Syncer) step(ctx context.Context, read bool) (err error) {
	defer func() {
		err = Unaddressed(err)
		if p := recover(); p != nil {
			err = &Error{Kind: Away, Said: text.Line(fmt.Sprint("an answer that cannot be read: ", p), 300)}
		}
	}()
	if s.self.Login == "" {
		if s.self, err = s.Forge.Self(ctx); err != nil {
			return err
		}
	}
	if s.queue == "" {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	if _, err := s.position(ctx); err != nil { // before any event that will be posted
		return err
	}
	if err := s.pulls(ctx, read); err != nil {
		return err
	}
	if read {
		if err := s.issues(ctx); err != nil {
			return err
		}
	}
	return s.posts(ctx)
}

// begin makes sure that the queue belongs to this repository, whose numbers mean something else in another one. The
// first look chooses it, and names the queue.
func (s *Syncer) begin(ctx context.Context) error {
	known, err := store.Read(ctx, s.Store, (*store.Tx).Forge)
	if err != nil {
		return err
	}
	here := s.Forge.Repository()
	if known.Repository != "" && known.Repository != here {
		same, err := s.Forge.Leads(ctx, known.Repository)
		if err != nil {
			return err
		}
		if !same {
			return &Error{Kind: Elsewhere, Said: fmt.Sprintf("the queue belongs to %s, and the remote is %s now",
				known.Repository, here)}
		}
	}
	s.source, s.queue = cmp.Or(known.Repository, here), cmp.Or(known.Queue, uuid.NewString()[:8])
	if known.Repository == s.source && known.Queue == s.queue {
		return nil
	}
	return s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.FollowForge(s.source, s.queue) })
}

// person reports whether an account may decide.
func (s *Syncer) person(ctx context.Context, login string) (bool, error) {
	if login == "" {
		return false, nil
	}
	if len(s.People) > 0 {
		return slices.ContainsFunc(s.People, func(p string) bool { return strings.EqualFold(p, login) }), nil
	}
	if login == s.self.Login && s.self.Write && !strings.HasSuffix(login, botSuffix) {
		return true, nil
	}
	key := strings.ToLower(login)
	if r, ok := s.rights[key]; ok && s.Now().Before(r.until) {
		return r.write, nil
	}
	write, err := s.Forge.CanWrite(ctx, login)
	if err != nil {
		return false, err
	}
	if s.rights == nil {
		s.rights = map[string]right{}
	}
	s.rights[key] = right{write, s.Now().Add(rightLasts)}
	return write, nil
}

// botSuffix ends the names of GitHub's apps. Workflows of others share them, and repeat what strangers write.
const botSuffix = "[bot]"

// issues reads the issues that have changed, and their comments.
func (s *Syncer) issues(ctx context.Context) error {
	if s.Label == "" {
		return nil
	}
	known, err := store.Read(ctx, s.Store, (*store.Tx).Forge)
	if err != nil {
		return err
	}
	since := known.Since
	// The oldest change comes first, and each page begins at the last change of the previous one. An interrupted
	// first look at many issues can continue, and skips no issue that changes during the look.
	for page, asked := 1, 0; ; asked++ {
		if asked == maxPages {
			return &Error{Kind: Away, Said: "its list of issues has no end"}
		}
		list, more, err := s.Forge.Issues(ctx, since.Time, page)
		if err != nil {
			return err
		}
		from := since
		if since, err = s.walk(ctx, list, since); err != nil || !more {
			return err
		}
		if page++; since.After(from.Time) {
			page = 1
		}
	}
}

// maxPages bounds the pages of issues that a look reads.
const maxPages = 10_000

// noted is the number of issues after which the position is stored.
const noted = 100

// walk reads issues in the order of their changes, and stores its position. A forge's times have a resolution of
// seconds: the issues of the last second are returned and read again until they are quiet.
func (s *Syncer) walk(ctx context.Context, list []Issue, since ralph.Time) (ralph.Time, error) {
	from := since
	note := func() error {
		return s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.SetForgeSince(since) })
	}
	for n, i := range list {
		if i.Updated.After(since.Time) {
			s.edge, since = nil, ralph.At(i.Updated)
		}
		if !s.edge[i.Number] {
			if err := s.alone(ctx, fmt.Sprintf("#%d", i.Number), s.issue(ctx, i)); err != nil {
				return since, fmt.Errorf("issue #%d: %w", i.Number, err)
			}
			s.edge = with(s.edge, i.Number, s.Now().Sub(i.Updated) > quiet)
		}
		if n%noted == noted-1 {
			if err := note(); err != nil {
				return since, err
			}
		}
	}
	if since == from {
		return since, nil
	}
	return since, note()
}

// issue reacts to an issue, and takes its comments.
func (s *Syncer) issue(ctx context.Context, i Issue) error {
	link, known, task, pull, err := s.linked(ctx, i.Number)
	if err != nil {
		return err
	}
	seen := Seen{
		Label: s.Label, Closed: i.Closed, Known: known, Wanted: link.Wanted, Status: task.Status,
		Has: slices.ContainsFunc(i.Labels, func(l string) bool { return strings.EqualFold(l, s.Label) }),
	}
	if !known && !seen.wants() {
		return nil
	}
	text := digest(i.Title, "\x00", i.Body, "\x00", s.labels(i), "\x00", i.Milestone)
	seen.Changed = known && link.Digest != text
	if seen.Author, err = s.wrote(ctx, i, seen.Changed || !known); err != nil {
		return err
	}
	if i.Closed && link.Wanted && pull.Open { // a merge closes it, too, and is read with the pull requests
		p, err := s.Forge.Pull(ctx, pull.Number)
		if err != nil {
			return err
		}
		seen.Review = p.Closed
	}
	if !known || link.Wanted != seen.wants() {
		if seen.Acted, seen.Late, err = s.acted(ctx, i, known, link.Wanted); err != nil {
			return err
		}
	}
	action := Decide(seen)
	if action != Ignore || known && seen.Acted {
		if link, err = s.apply(ctx, action, i, seen, link, text); err != nil {
			return err
		}
		known = known || link.TaskID != 0
	}
	if !known {
		return nil
	}
	return s.comments(ctx, link, i.Updated)
}

// wrote reports whether a person with the right wrote an issue, and edited it last if that counts.
func (s *Syncer) wrote(ctx context.Context, i Issue, edited bool) (bool, error) {
	is, err := s.person(ctx, i.Author)
	if err != nil || !is || !edited {
		return is, err
	}
	who, _, err := s.Forge.Last(ctx, i.Number, Edited, "")
	if err != nil || who == "" {
		return err == nil, err
	}
	return s.person(ctx, who)
}

// acted reports whether a person with the right made an issue wanted, or not wanted any more, and whether the issue has
// changed since.
func (s *Syncer) acted(ctx context.Context, i Issue, known, wanted bool) (person, late bool, err error) {
	act := Labelled
	switch {
	case known && wanted && i.Closed:
		act = Closed
	case known && wanted:
		act = Unlabelled
	}
	who, at, err := s.Forge.Last(ctx, i.Number, act, s.Label)
	if err != nil {
		return false, false, err
	}
	if known && !wanted { // it may have been reopened since
		by, when, err := s.Forge.Last(ctx, i.Number, Reopened, "")
		if err != nil {
			return false, false, err
		}
		if when.After(at) {
			who, at = by, when
		}
	}
	person, err = s.person(ctx, who)
	return person, i.Updated.After(at.Add(lateAfter)), err
}

// labels returns the labels of an issue that are about its task.
func (s *Syncer) labels(i Issue) (list []string) {
	for _, l := range i.Labels {
		if !strings.EqualFold(l, s.Label) && !strings.HasPrefix(l, labelPrefix) {
			list = append(list, l)
		}
	}
	slices.Sort(list)
	return list
}

// linked returns the task of an issue, and its newest pull request if it has one.
func (s *Syncer) linked(
	ctx context.Context, number int64,
) (link store.ForgeIssue, ok bool, t ralph.Task, p store.ForgePull, err error) {
	err = s.Store.View(ctx, func(tx *store.Tx) error {
		if link, ok, err = tx.ForgeIssue(number); err != nil || !ok {
			return err
		}
		if p, _, err = tx.ForgePullOf(link.TaskID); err != nil {
			return err
		}
		t, err = tx.Task(link.TaskID)
		return err
	})
	return link, ok, t, p, err
}

// apply carries an action out, in one transaction with the record of the issue.
func (s *Syncer) apply(
	ctx context.Context, do Action, i Issue, seen Seen, link store.ForgeIssue, digest string,
) (store.ForgeIssue, error) {
	err := s.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		link.Number, link.URL, link.Wanted = i.Number, i.URL, seen.wants()
		if do == Create || do == Propose || do == Change || do == Requeue && seen.Author {
			if link.TaskID, err = s.importIssue(tx, i, do, seen.Author); err != nil {
				return err
			}
			link.Digest = digest
		}
		by := "issue #" + fmt.Sprint(i.Number)
		switch do {
		case Cancel:
			_, err = tx.Cancel(link.TaskID, by)
		case Requeue:
			err = tx.Retry(link.TaskID, by)
		}
		if errors.Is(err, ralph.ErrConflict) { // a change is being merged this moment, or another person was faster
			s.Log.Warn("an issue could not be followed", "issue", i.Number, "action", do, "error", err)
			err = nil
		}
		return errors.Join(err, tx.PutForgeIssue(link))
	})
	return link, err
}

// importIssue adds or edits the task of an issue.
func (s *Syncer) importIssue(tx *store.Tx, i Issue, do Action, trusted bool) (int64, error) {
	in := exchange.FromIssue(exchange.Issue{
		Source: s.source, Number: i.Number, Title: s.Mask(i.Title), Body: s.Mask(i.Body), Labels: s.labels(i),
		Milestone: i.Milestone, URL: i.URL, Trusted: trusted,
	})
	if do == Propose {
		in.Tasks[0].Status = ralph.Proposed
	}
	r, err := tx.Import(in)
	if err != nil {
		return 0, err
	}
	return r.Tasks[0].ID, nil
}

// comments takes people's comments on an issue that changed at a time. It ignores commands from before its task, which
// were for nobody or for a former queue.
func (s *Syncer) comments(ctx context.Context, link store.ForgeIssue, changed time.Time) error {
	list, err := s.Forge.Comments(ctx, link.Number, link.ReadTo.Time)
	if err != nil {
		return err
	}
	to, first := link.ReadTo.Time, link.ReadTo.IsZero()
	if first {
		to = changed
	}
	for _, c := range list {
		reply := store.ForgeReply{ID: onIssue + c.ID, Number: link.Number}
		if command, ok := Parse(c.Body); first && (!ok || command.Verb != Say) {
			err = s.Store.Tx(ctx, func(tx *store.Tx) error {
				_, err := tx.TakeForgeComment(reply)
				return err
			})
		} else {
			err = s.comment(ctx, link.TaskID, reply, c)
		}
		if err != nil {
			return err
		}
		if c.Updated.After(to) {
			to = c.Updated
		}
	}
	if !to.After(link.ReadTo.Time) {
		return nil
	}
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		now, ok, err := tx.ForgeIssue(link.Number)
		if err != nil || !ok {
			return err
		}
		now.ReadTo = ralph.At(to)
		return tx.PutForgeIssue(now)
	})
}

// maxShown bounds the comment of a stranger that is kept for the dashboard, in bytes.
const maxShown = 4000

// The first letter of a [store.ForgeReply]'s id is the kind of comment: on an issue, in the conversation of a pull
// request, in a thread of a review, or a review.
const (
	onIssue      = "c"
	conversation = "d"
	onThread     = "m"
	onReview     = "r"
)

// comment takes one comment about a task, once.
func (s *Syncer) comment(ctx context.Context, task int64, reply store.ForgeReply, c Comment) error {
	_, ours := Marked(c.Body)
	if ours && strings.EqualFold(c.Author, s.self.Login) {
		return nil
	}
	took, err := store.Read(ctx, s.Store, func(tx *store.Tx) (bool, error) { return tx.TookForgeComment(reply.ID) })
	if err != nil || took {
		return err
	}
	command, ok := Parse(c.Body)
	person, err := s.person(ctx, c.Author)
	if err != nil || ours && person { // of the queue of another person
		return err
	}
	reply.Reaction = string(Taken)
	switch {
	case !person:
		reply.Author, reply.Body, reply.Created = c.Author, text.Clip(s.Mask(c.Body), maxShown), ralph.At(c.Updated)
		if reply.Reaction = ""; command.Verb != Say || strings.HasPrefix(strings.TrimSpace(c.Body), "/") {
			reply.Reaction = string(Refused)
		}
	case !ok:
		reply.Reaction = string(Refused)
		reply.Text = fmt.Sprintf("There is no command /%s. There are: %s.", command.Verb, Commands)
	}
	obeys := person && ok
	command.Text = s.Mask(command.Text)
	err = s.Store.Tx(ctx, func(tx *store.Tx) error {
		first, err := tx.TakeForgeComment(reply)
		if err != nil || !first || !obeys {
			return err
		}
		return obey(tx, task, command, c.Author)
	})
	if err == nil || store.Failed(err) || ctx.Err() != nil {
		return err
	}
	// The wish cannot be fulfilled: tell why.
	reply.Reaction, reply.Text = string(Refused), cmp.Or(text.Line(err.Error(), 500), "that is not possible")
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.TakeForgeComment(reply)
		return err
	})
}
