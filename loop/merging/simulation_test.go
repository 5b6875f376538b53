package merging

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/internal/worktree"
	"ralph/loop/check"
	"ralph/signals"
	"ralph/store"
)

// A lines is a file of the model, and a tree has as many of them.
type (
	lines64 [64]int32
	tree    []*lines64
)

// files returns the number of files of a project: with more workers it is larger, so that about as many of their
// changes conflict.
func files(workers int) int { return 32 * max(1, workers/40) }

// A node is a commit of the model.
type node struct {
	tree    string
	parents []string
	depth   int // of its longest line of parents
}

// A model is git as far as merges need it: commits are trees with parents, and a merge
// conflicts where both sides have changed a line.
type model struct {
	Git                                    // of what no simulated merge asks
	before func(ref, from, to string) bool // whether a ref can be moved, when it is about to be

	mu      sync.Mutex // of the maps: their entries never change
	refs    map[string]string
	commits map[string]node
	trees   map[string]tree
}

func (m *model) addTree(t tree) string {
	var all []byte
	for _, f := range t {
		for _, line := range f {
			all = binary.LittleEndian.AppendUint32(all, uint32(line))
		}
	}
	sum := sha256.Sum256(all)
	id := hex.EncodeToString(sum[:20])
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trees[id] = t
	return id
}

func (m *model) commit(id string) node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commits[id]
}

func (m *model) of(commit string) tree {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trees[m.commits[commit].tree]
}

func (m *model) Ref(_ context.Context, name string) (string, error) {
	if child, ok := strings.CutSuffix(name, "^1"); ok {
		return m.commit(child).parents[0], nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refs[name], nil
}

func (m *model) Refs(_ context.Context, prefix string) (map[string]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	some := map[string]string{}
	for name, id := range m.refs {
		if strings.HasPrefix(name, prefix) {
			some[name] = id
		}
	}
	return some, nil
}

func (m *model) SetRef(_ context.Context, name, commit string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refs[name] = commit; commit == "" {
		delete(m.refs, name)
	}
	return nil
}

func (m *model) Move(ctx context.Context, ref, from, to, _ string) (bool, error) {
	is, err := m.Ref(ctx, ref)
	if err != nil || is != from || !m.before(ref, from, to) {
		return is == to, err
	}
	return true, m.SetRef(ctx, ref, to)
}

// over returns the commits from tips down to a depth.
func (m *model) over(depth int, tips ...string) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := map[string]bool{}
	for queue := tips; len(queue) > 0; queue = queue[1:] {
		if id := queue[0]; !seen[id] && m.commits[id].depth >= depth {
			seen[id] = true
			queue = append(queue, m.commits[id].parents...)
		}
	}
	return seen
}

func (m *model) Ancestor(_ context.Context, commit, of string) (bool, error) {
	return m.over(m.commit(commit).depth, of)[commit], nil
}

func (m *model) Begin(_ context.Context, base, _ string, _ ...string) (string, error) {
	return base, nil
}

func (m *model) Symlinks(context.Context, string) (map[string]string, error) { return nil, nil }

func (m *model) History(_ context.Context, tips []string) (map[string]bool, error) {
	all := m.over(0, tips[0])
	if without, out := strings.CutPrefix(tips[len(tips)-1], "^"); out {
		for id := range m.over(0, without) {
			delete(all, id)
		}
		return all, nil
	}
	return m.over(0, tips...), nil
}

func (m *model) Count(ctx context.Context, lacks, of string) (n int, err error) {
	tip, err := m.Ref(ctx, lacks)
	for below := m.over(0, tip); err == nil && !below[of]; n++ {
		parents := m.commit(of).parents
		if len(parents) == 0 {
			return n + 1, nil
		}
		of = parents[0]
	}
	return n, err
}

func (m *model) Whole(_ context.Context, commit string) (string, error) {
	return m.commit(commit).tree, nil
}

func (m *model) Pack(context.Context) error { return nil }

func (m *model) Patch(context.Context, string, string, []string, ...string) (string, error) {
	return "", nil
}

func (m *model) Below(path string) string { return path }

func (m *model) Pairs(context.Context, string, string) ([]worktree.Pair, error) { return nil, nil }

func (m *model) Content(context.Context, string, string) []byte { return nil }

func (m *model) Variant(context.Context, string, string) (string, error) { return "", nil }

func (m *model) Names(context.Context, string) ([]string, error) { return nil, nil }

func (m *model) Exchanged(context.Context, string, string, []worktree.Exchange, string) (string, error) {
	return "", nil
}

func (m *model) Files(_ context.Context, from, to string) (names []string, err error) {
	then := m.of(to)
	for i, f := range m.of(from) {
		if f != then[i] && *f != *then[i] {
			names = append(names, fmt.Sprint("file", i))
		}
	}
	return names, nil
}

func (m *model) Changes(ctx context.Context, from, to string) (list []ralph.FileChange, err error) {
	names, err := m.Files(ctx, from, to)
	for _, name := range names {
		list = append(list, ralph.FileChange{Path: name})
	}
	return list, err
}

// base returns the deepest commit below both.
func (m *model) base(a, b string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	sides, at := map[string]int{}, map[int][]string{}
	mark := func(id string, side int) {
		if depth := m.commits[id].depth; sides[id] == 0 {
			at[depth] = append(at[depth], id)
		}
		sides[id] |= side
	}
	mark(a, 1)
	mark(b, 2)
	for depth := max(m.commits[a].depth, m.commits[b].depth); ; depth-- {
		for _, id := range at[depth] {
			if sides[id] == 1|2 {
				return id
			}
			for _, p := range m.commits[id].parents {
				mark(p, sides[id])
			}
		}
	}
}

func (m *model) MergeTree(_ context.Context, ours, theirs string) (worktree.Merge, error) {
	base, a, b := m.of(m.base(ours, theirs)), m.of(ours), m.of(theirs)
	merged, conflicts := slices.Clone(a), []string{}
	for i := range merged {
		switch {
		case a[i] == b[i], b[i] == base[i], *a[i] == *b[i], *b[i] == *base[i]:
			continue
		case *a[i] == *base[i]:
			merged[i] = b[i]
			continue
		}
		file, clash := *a[i], false
		for n, is := range b[i] {
			if was := base[i][n]; is != was && a[i][n] != was && is != a[i][n] {
				clash = true
			} else if is != was {
				file[n] = is
			}
		}
		if merged[i] = &file; clash {
			conflicts = append(conflicts, fmt.Sprint("file", i))
		}
	}
	return worktree.Merge{Tree: m.addTree(merged), Conflicts: conflicts}, nil
}

func (m *model) CommitTree(
	_ context.Context, tree string, parents []string, _ string, _ [2]string,
) (id string, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := node{tree: tree, parents: parents}
	for _, p := range parents {
		n.depth = max(n.depth, m.commits[p].depth+1)
	}
	id = fmt.Sprintf("%040x", len(m.commits)+1)
	m.commits[id] = n
	return id, nil
}

func (*model) User(context.Context) [2]string { return [2]string{"ann", "ann@localhost"} }

func (*model) Checkouts(context.Context) ([]worktree.Checkout, error) { return nil, nil }
func (*model) In(context.Context, string) (*worktree.Tree, error) {
	return nil, errors.New("it is checked out nowhere")
}

// passes is the verification: of no two lines that belong together both are odd.
func (t tree) passes() bool {
	for _, f := range t {
		for i := 0; i < len(f); i += 2 {
			if f[i]&f[i+1]&1 == 1 {
				return false
			}
		}
	}
	return true
}

// A fleet has workers on two machines that claim tasks of a queue and work on them for minutes, two processes that
// merge their work, at once, and people that act now and then. All of it but one waits at any moment, and random draws
// are independent: with a seed each run is the same.
type fleet struct {
	t     *testing.T
	db    *store.DB
	git   *model
	tasks int
	files int
	began time.Time
	first map[int64]int64   // the task that another one waits for
	then  map[int64][]int64 // the tasks that wait for one

	mu       sync.Mutex // of all that follows
	calm     bool       // nothing fails any more, and people do nothing
	seen     int64      // the newest event that was looked at
	status   map[int64]ralph.Status
	in       map[ralph.Status]int // how many tasks have it
	claimant map[int64]string     // the open session of a task
	decided  map[string]bool
	verified map[string]bool // trees that passed
	merged   map[int64]bool
	count    map[string]int // what has happened, for the log
}

// An actor is one of a fleet: a worker, the process that merges, or people.
type actor struct {
	*fleet
	merger Merger
	random *rand.Rand
}

// fail ends the simulation, from any goroutine.
func (f *fleet) fail(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// know reads or records events.
func (f *fleet) know(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// happens counts something.
func (f *fleet) happens(what string) { f.know(func() { f.count[what]++ }) }

// isCalm reports whether nothing fails any more.
func (f *fleet) isCalm() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calm
}

// chance is true so often.
func (f *actor) chance(percent float64) bool { return f.random.Float64()*100 < percent }

// wait lets time pass, about so much of it: never to the same instant as another one does.
func (f *actor) wait(d time.Duration) {
	time.Sleep(time.Duration(float64(d)*math.Exp(f.random.NormFloat64()/2)) + time.Duration(f.random.IntN(1e6)))
}

// errKilled is thrown where a process is killed.
var errKilled = errors.New("killed")

// mishap may come between any two steps of a process.
func (f *actor) mishap(what string) {
	f.look()
	switch {
	case f.isCalm():
	case f.chance(1):
		f.happens("killed: " + what)
		panic(errKilled)
	case f.chance(0.2):
		f.happens("paused: " + what)
		f.wait(10 * time.Minute)
	}
}

// goesOn is a mishap at a point at which others may be woken, too, at the instant at which somebody else
// goes on: each has a moment of its own.
func (f *actor) goesOn(point string, moment time.Duration) {
	if point == "woken" {
		time.Sleep(moment)
	}
	f.mishap(point)
}

// Verify is the check workspace.
func (f *actor) Verify(_ context.Context, commit string, commands []string) ([]check.Outcome, error) {
	f.happens("verified")
	f.wait(30 * time.Second)
	f.mishap("verification")
	passed := f.git.of(commit).passes()
	if passed && !f.isCalm() && f.chance(2) {
		f.happens("flaky")
		passed = false
	}
	if passed {
		f.vouch(commit)
	}
	return []check.Outcome{{Check: ralph.Check{Command: commands[0], Passed: passed}}}, nil
}

// vouch notes that a commit passes.
func (f *fleet) vouch(commit string) {
	tree := f.git.commit(commit).tree
	f.know(func() { f.verified[tree] = true })
}

func (f *fleet) no(err error) {
	f.t.Helper()
	if err != nil && !errors.Is(err, ralph.ErrConflict) {
		f.fail("%v", err)
	}
}

// tx is a transaction, in which somebody else may have been faster.
func (f *fleet) tx(do func(tx *store.Tx) error) (ok bool) {
	f.t.Helper()
	err := f.db.Tx(f.t.Context(), do)
	f.no(err)
	f.look()
	return err == nil
}

// become notes the status of a task.
func (f *fleet) become(task int64, now ralph.Status) {
	f.in[f.status[task]]--
	f.in[now]++
	f.status[task] = now
}

// look compares the events with the possible ones.
func (f *fleet) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var completed []int64
	for e, err := range f.db.EventsAfter(f.t.Context(), f.seen) {
		f.no(err)
		if f.seen++; e.ID != f.seen {
			f.fail("event %d comes after %d", e.ID, f.seen-1)
		}
		f.count[e.Type]++
		switch e.Type {
		case "task.status_changed":
			var p ralph.TaskStatusChanged
			f.no(json.Unmarshal(e.Payload, &p))
			if is := f.status[e.TaskID]; is != p.From {
				f.fail("TASK-%d goes from %s to %s, and was %s", e.TaskID, p.From, p.To, is)
			}
			if f.become(e.TaskID, p.To); p.To != ralph.Completed {
				continue
			}
			if completed = append(completed, e.TaskID); !f.merged[e.TaskID] {
				f.fail("TASK-%d is completed and has not been merged", e.TaskID)
			}
		case "session.started":
			if at := f.claimant[e.TaskID]; at != "" {
				f.fail("TASK-%d is claimed by %s and by %s", e.TaskID, at, e.SessionID)
			}
			if before := f.first[e.TaskID]; before != 0 && f.status[before] != ralph.Completed {
				f.fail("TASK-%d is claimed and depends on TASK-%d, which is %s", e.TaskID, before, f.status[before])
			}
			f.claimant[e.TaskID] = e.SessionID
		case "session.ended":
			if f.claimant[e.TaskID] != e.SessionID || f.decided[e.SessionID] {
				f.fail("session %s of TASK-%d is decided, which is claimed by %s", e.SessionID, e.TaskID, f.claimant[e.TaskID])
			}
			f.decided[e.SessionID] = true
			delete(f.claimant, e.TaskID)
		case "change.merged":
			var p ralph.ChangeMerged
			f.no(json.Unmarshal(e.Payload, &p))
			point, _ := f.git.Ref(f.t.Context(), PointRef("main"))
			if below, _ := f.git.Ancestor(f.t.Context(), p.Commit, point); !below || f.merged[e.TaskID] {
				f.fail("TASK-%d has been merged as %s, which is in the target: %t; before: %t", e.TaskID, p.Commit, below, f.merged[e.TaskID])
			}
			f.merged[e.TaskID] = true
			f.calm = len(f.merged) > f.tasks*9/10
		}
	}
	for _, id := range completed {
		for _, waits := range f.then[id] {
			if is := f.status[waits]; is != ralph.Pending {
				f.fail("TASK-%d is completed, and TASK-%d, which depends on it alone, is %s", id, waits, is)
			}
		}
	}
	if time.Since(f.began) > 60*24*time.Hour {
		f.fail("%d of %d tasks have been merged: %v", len(f.merged), f.tasks, f.status)
	}
}

// moves looks at each move of a ref before it happens: the target's new commit descends from the old one, and was
// verified.
func (f *actor) moves(ref, from, to string) bool {
	if ref != PointRef("main") {
		return true
	}
	for at := to; at != from && (from != "" || at == to); at = f.git.commit(at).parents[0] {
		n, verified := f.git.commit(at), false
		f.know(func() { verified = f.verified[n.tree] })
		if !verified || !f.git.of(at).passes() || len(n.parents) == 0 {
			f.fail("the target goes from %s to %s, by %s; verified: %t", from, to, at, verified)
		}
	}
	if !f.isCalm() && f.chance(1) {
		f.happens("swap lost")
		return false
	}
	return true
}

// alive does something as a process that may be killed at any moment; it tells whether it was not.
func (f *fleet) alive(do func()) (ok bool) {
	defer func() {
		if err := recover(); err != nil && err != errKilled { //nolint:errorlint // it is thrown as it is
			panic(err)
		}
	}()
	do()
	return true
}

// work has a worker do one task after the other until all are done.
func (f *actor) work(n int) {
	for session := 0; !f.over(); session++ {
		f.wait(time.Minute)
		pending := 0
		if f.know(func() { pending = f.in[ralph.Pending] }); pending == 0 {
			f.wait(10 * time.Minute)
			continue
		}
		id := fmt.Sprintf("%08d-0000-4000-8000-%012d", n, session)
		var s ralph.Session
		var base string
		claimed := f.alive(func() { s, base = f.claim(id) })
		if claimed && (s.ID == "" || f.alive(func() { f.session(s, base) })) {
			continue
		}
		// The next look decides about an interrupted step.
		f.wait(5 * time.Minute)
		f.lost(id)
	}
}

func (f *fleet) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calm && len(f.merged) == f.tasks
}

// claim takes the first task of the queue; the one that is merged alone goes before.
func (f *actor) claim(id string) (s ralph.Session, base string) {
	next, err := store.Read(f.t.Context(), f.db, func(tx *store.Tx) (next int64, err error) {
		if next, err = tx.MergesAlone(f.merger.MaxSentBack); err != nil || next != 0 {
			if alone, err := tx.Task(next); err != nil || alone.Status == ralph.Pending {
				return next, err
			}
		}
		t, _, err := tx.Next()
		return t.ID, err
	})
	f.no(err)
	if next == 0 {
		f.wait(10 * time.Minute)
		return s, ""
	}
	base, err = f.merger.Base(f.t.Context(), next)
	f.no(err)
	f.wait(time.Second)
	if !f.tx(func(tx *store.Tx) (err error) {
		s, err = tx.StartSession(store.Start{ID: id, Task: next, Origin: ralph.FromLoop})
		return err
	}) {
		f.happens("claimed by another one")
		return ralph.Session{}, ""
	}
	f.mishap("claim")
	return s, base
}

// lost decides on a session that is gone, if it was not decided.
func (f *actor) lost(id string) {
	f.tx(func(tx *store.Tx) error {
		s, err := tx.Session(id)
		if errors.Is(err, ralph.ErrNotFound) || err == nil && !s.CompletedAt.IsZero() {
			return nil
		}
		s.Ending = ralph.Lost
		return errors.Join(err, tx.Apply(s, signals.Facts{}, signals.Decision{
			Status: ralph.Pending, Mover: ralph.Verdict, StatusReason: "lost", Outcome: ralph.OutcomeFailure,
		}))
	})
}

// session works on a task, and says done or that a part is done.
func (f *actor) session(s ralph.Session, base string) {
	ctx := f.t.Context()
	decided := signals.Decision{Status: ralph.Pending, Mover: ralph.Verdict, StatusReason: "a part", Outcome: ralph.OutcomeFailure}
	edits := map[[2]int]int32{}
	for range 1 + f.random.IntN(4) {
		file := f.random.IntN(f.files)
		if f.chance(10) {
			file -= file % 32 // which many tasks touch
		}
		edits[[2]int{file, f.random.IntN(64)}] = f.random.Int32()
	}
	c := ralph.Change{TaskID: s.TaskID, SessionID: s.ID}
	f.merger.after = func(point string) { f.goesOn(point, time.Duration(s.TaskID)*time.Microsecond) }
	for tries := 0; ; tries++ {
		f.wait(20 * time.Minute / time.Duration(1+9*min(tries, 1)))
		f.mishap("session")
		made := slices.Clone(f.git.of(base))
		for at, value := range edits {
			file := *made[at[0]]
			file[at[1]] = value
			if file[at[1]^1]&1 == 1 { // as its agent sees to it that it holds
				file[at[1]] &^= 1
			}
			made[at[0]] = &file
		}
		c.Base, c.Tree = base, f.git.addTree(made)
		c.Head, _ = f.git.CommitTree(ctx, c.Tree, []string{base}, "", [2]string{})
		f.no(f.git.SetRef(ctx, c.Ref(), c.Head))
		if f.chance(5) || tries == 20 {
			break
		}
		a, err := f.merger.Try(ctx, c)
		if errors.Is(err, ralph.ErrConflict) {
			break // it cannot be checked now: merging was paused
		}
		f.no(err)
		if a.Conflict == "" && a.Refused == "" {
			decided.Status, decided.StatusReason, decided.Accepted = ralph.Merging, "done and verified", true
			decided.Outcome, decided.Attempts = ralph.OutcomeSuccess, 1
			break
		}
		if base = a.Target.Tip; a.Conflict != "" {
			f.tx(func(tx *store.Tx) error { return tx.NoteSentBack(s, a.Conflict, a.Conflicts) })
		}
	}
	f.mishap("deciding")
	s.Change, s.Ending = &c, ralph.Finished
	f.tx(func(tx *store.Tx) error { return tx.Apply(s, signals.Facts{}, decided) })
}

// merges plays the process that merges finished work, and restarts after a kill. It seldom looks if nothing has
// happened since the queue came to rest.
func (f *actor) merges() {
	rested, rests, since := int64(-1), "", time.Now()
	for !f.over() {
		f.wait(10 * time.Second)
		seen := int64(0)
		if f.know(func() { seen = f.seen }); rested == seen && !f.chance(1) {
			continue
		}
		if !f.alive(func() {
			waits, err := f.merger.Merge(f.t.Context())
			f.no(err)
			_, what, _ := strings.Cut(waits.Why, " ") // the same for all tasks
			f.know(func() {
				f.count["minutes until the next merge, as a task "+rests] += int(time.Since(since).Minutes())
				rested, rests, since = f.seen, what, time.Now()
			})
		}) {
			f.wait(time.Minute)
		}
	}
}

// people commit, revert their commits, withdraw changes, and answer items.
func (f *actor) people() {
	ctx, main := f.t.Context(), branchRef("main")
	for !f.over() {
		f.wait(10 * time.Minute)
		tip, err := f.git.Ref(ctx, main)
		f.no(err)
		switch {
		case f.isCalm():
		case f.chance(30):
			own := slices.Clone(f.git.of(tip))
			file := *own[f.files-1]
			file[2*f.random.IntN(32)] = 2 * f.random.Int32N(1000)
			own[f.files-1] = &file
			commit, _ := f.git.CommitTree(ctx, f.git.addTree(own), []string{tip}, "", [2]string{})
			f.vouch(commit)
			f.no(f.git.SetRef(ctx, main, commit))
		case f.chance(30): // what a merge that waits is to become
			f.tx(func(tx *store.Tx) error {
				queue, err := tx.QueuedChanges()
				if err != nil || len(queue) == 0 {
					return err
				}
				return tx.DropChange(queue[f.random.IntN(len(queue))].TaskID, "ann")
			})
		case f.chance(30): // what a change in the line is for, whether it is checked or merged
			f.tx(func(tx *store.Tx) error {
				line, err := tx.Line()
				if err != nil || len(line) == 0 {
					return err
				}
				t, err := tx.Task(line[f.random.IntN(len(line))].TaskID)
				t.Acceptance = append(t.Acceptance, fmt.Sprint("it holds ", len(t.Acceptance)))
				return errors.Join(err, tx.UpdateTask(t))
			})
		case f.chance(10):
			f.tx(func(tx *store.Tx) error { return tx.PauseMerging("ann looks") })
		}
		f.tx(func(tx *store.Tx) error {
			q, err := tx.MergeQueue()
			if err == nil && q.Paused != "" {
				err = tx.ResumeMerging("ann")
			}
			return err
		})
		held, err := store.Read(ctx, f.db, func(tx *store.Tx) ([]ralph.Task, error) {
			return tx.Tasks(store.TaskFilter{Statuses: []ralph.Status{ralph.Blocked, ralph.Failed, ralph.Cancelled}})
		})
		f.no(err)
		for _, t := range held {
			f.tx(func(tx *store.Tx) error {
				if t.Waits.Blockers > 0 || t.Status != ralph.Blocked {
					return tx.Retry(t.ID, "ann")
				}
				return nil
			})
		}
	}
}

// TestSimulatedFleet has a fleet work through its tasks on a model of git, with processes that are killed or stand
// still between any two steps, a verification that fails now and then for no reason, and people that commit and change
// their minds. It checks the invariants after every step. RALPH_TEST_SEED is the first of RALPH_TEST_STORM seeds;
// RALPH_TEST_WORKERS and RALPH_TEST_TASKS are the numbers of workers and tasks.
func TestSimulatedFleet(t *testing.T) {
	pgtest.Timeless(t)
	t.Parallel()
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return otherwise
	}
	first := number("RALPH_TEST_SEED", 1)
	for seed := first; seed < first+number("RALPH_TEST_STORM", 2); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				t.Log(simulate(t, uint64(seed), number("RALPH_TEST_WORKERS", 30), number("RALPH_TEST_TASKS", 80)))
			})
		})
	}
}

// TestASimulatedFleetRepeats: with the same even seed it does the same, so that a failure can be looked into.
func TestASimulatedFleetRepeats(t *testing.T) {
	pgtest.Timeless(t)
	t.Parallel()
	var ran [2]string
	for i := range ran {
		synctest.Test(t, func(t *testing.T) { ran[i] = simulate(t, 2, 30, 60) })
	}
	if ran[0] != ran[1] {
		t.Errorf("the same seed is first\n%s\nand then\n%s", ran[0], ran[1])
	}
}

// simulate runs a fleet to its end and returns the events.
func simulate(t *testing.T, seed uint64, workers, tasks int) string {
	t.Helper()
	state := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(state, "ralph.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	git := &model{refs: map[string]string{}, commits: map[string]node{}, trees: map[string]tree{}}
	f := &fleet{
		t: t, db: db, git: git, began: time.Now(), tasks: tasks, files: files(workers),
		status: map[int64]ralph.Status{}, in: map[ralph.Status]int{}, first: map[int64]int64{}, then: map[int64][]int64{}, claimant: map[int64]string{}, decided: map[string]bool{},
		verified: map[string]bool{}, merged: map[int64]bool{}, count: map[string]int{},
	}
	random := rand.New(rand.NewPCG(seed, 0))
	merger := Merger{
		Rules: Rules{
			Into: "main", MaxSentBack: 2, Timeout: time.Minute, State: state, Message: "{task}",
			Wait: time.Duration(seed%2) * 2 * time.Minute, // the seed does not decide when waiters wake
		},
		Store: db, Tree: git, Log: slog.New(slog.DiscardHandler),
		Check: check.Rules{Commands: []string{"test"}, Timeout: time.Minute},
	}
	begin := make(tree, f.files)
	for i := range begin {
		begin[i] = &lines64{}
	}
	commit, _ := git.CommitTree(t.Context(), git.addTree(begin), nil, "", [2]string{})
	f.vouch(commit)
	f.no(git.SetRef(t.Context(), branchRef("main"), commit))
	f.no(db.Tx(t.Context(), func(tx *store.Tx) error {
		for i := range tasks {
			task := ralph.Task{Title: fmt.Sprint("task ", i), Priority: random.IntN(4)}
			if i > 0 && random.IntN(10) < 3 {
				task.DependsOn = []int64{int64(1 + random.IntN(i))}
			}
			id, err := tx.AddTask(task, "human")
			if err != nil {
				return err
			}
			added, err := tx.Task(id)
			if err != nil {
				return err
			}
			f.become(id, added.Status)
			for _, before := range task.DependsOn {
				f.first[id], f.then[before] = before, append(f.then[before], id)
			}
		}
		f.seen, err = tx.LastEvent()
		return err
	}))
	done := make(chan struct{})
	machines := [2]*Links{{}, {}}
	git.before = (&actor{fleet: f, random: rand.New(rand.NewPCG(seed, 1))}).moves
	for i := range 3 + workers {
		a := &actor{fleet: f, merger: merger, random: rand.New(rand.NewPCG(seed, uint64(2+i)))}
		a.merger.Workspace, a.merger.Links = a, machines[i%2]
		do := func() { a.work(i) }
		switch i {
		case 0, 1:
			a.merger.after = func(point string) { a.goesOn(point, time.Duration(1+i)*time.Microsecond/4) }
			do = a.merges
		case 2:
			do = a.people
		}
		go func() {
			time.Sleep(time.Duration(i)) // one after the other, as everywhere: the seed decides on everything
			do()
			done <- struct{}{}
		}()
	}
	for range 3 + workers {
		<-done
	}
	if missing, err := merger.Missing(t.Context()); err != nil || len(missing) > 0 {
		t.Errorf("of what was merged %v is not in the target (%v)", missing, err)
	}
	if line, err := store.Read(t.Context(), db, (*store.Tx).Line); err != nil || len(line) > 0 {
		t.Errorf("in the line is %+v (%v)", line, err)
	}
	var told strings.Builder
	fmt.Fprintf(&told, "%d tasks by %d workers in %s\n", tasks, workers, time.Since(f.began))
	for _, what := range slices.Sorted(maps.Keys(f.count)) {
		fmt.Fprintf(&told, "%6d %s\n", f.count[what], what)
	}
	return told.String()
}
