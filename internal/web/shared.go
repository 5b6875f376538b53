package web

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"sync"
	"time"

	"ralph/internal/report"
)

// sharedFor is how long a page is as good as a new one while nothing is committed: agents go on meanwhile, and so do
// clocks.
const sharedFor = time.Second

// A sharing is a page as all see it who ask for it at the same time: of one address, signed in or not. One of them has
// it rendered while the others wait; what differs between them stands in the gaps.
type sharing struct {
	turn  chan struct{} // held by whom looks at what follows
	users int           // who hold the turn or wait for it; of [sharings.mu]

	snapshot string // of the database, that the page shows; "" before there is a page
	page     sharedPage
	err      error     // why there was none the last time; nil if there was
	at       time.Time // when somebody began to look last
}

// A sharedPage is a page with gaps, in which each visitor's own belongs: their proof in forms, and what happened since
// they looked.
type sharedPage struct {
	top, rest []string // what stands around the proof, before and after the gap of a visitor's own lines
	nav       string
	waiting   int     // items in the inbox
	spending  float64 // of the sessions in progress, in USD
}

// sharings are the pages that somebody looks at.
type sharings struct {
	// What stands in the gaps of templates, by a random text so that no text of a page can be taken for one.
	proof, own string

	mu sync.Mutex
	by map[string]*sharing
}

func newSharings() sharings {
	return sharings{proof: rand.Text(), own: rand.Text(), by: map[string]*sharing{}}
}

// take waits for the turn with a page, until ctx ends. leave gives it to the next.
func (s *sharings) take(ctx context.Context, key string) (one *sharing, leave func(), err error) {
	s.mu.Lock()
	one = s.by[key]
	if one == nil {
		one = &sharing{turn: make(chan struct{}, 1)}
		s.by[key] = one
	}
	one.users++
	s.mu.Unlock()
	left := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if one.users--; one.users == 0 {
			time.AfterFunc(sharedFor, func() { s.drop(key, one) })
		}
	}
	select {
	case one.turn <- struct{}{}:
		return one, func() { <-one.turn; left() }, nil
	case <-ctx.Done():
		left()
		return nil, nil, ctx.Err()
	}
}

// drop forgets a page that nobody has asked for since.
func (s *sharings) drop(key string, one *sharing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.users == 0 && s.by[key] == one {
		delete(s.by, key)
	}
}

// fresh reports whether the page shows that state of the database, and was made a moment ago.
func (one *sharing) fresh(snapshot string) bool {
	return one.snapshot == snapshot && time.Since(one.at) < sharedFor
}

// gapped cuts a rendered page at its gaps.
func (s *sharings) gapped(page string) (p sharedPage) {
	top, rest, _ := strings.Cut(page, s.own)
	p.top, p.rest = strings.Split(top, s.proof), strings.Split(rest, s.proof)
	return p
}

// of returns the page of a visitor: with the proof of their forms, and the lines that are their own.
func (p sharedPage) of(proof, own string) string {
	return strings.Join(p.top, proof) + own + strings.Join(p.rest, proof)
}

// ownLines are what differs between those who look at a page.
type ownLines struct {
	Nav     string         // the page's menu entry
	Morning report.Morning // what it came to since the visitor looked
	Of      url.Values     // the conditions of the sessions that it counts
	Flash   string         // what came of their last form; "" for nothing
}
