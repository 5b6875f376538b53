package loop

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// A pulse combines the heartbeats of a run's jobs into one. Each job promises when
// it will beat next; the run is healthy as long as every job keeps its promise.
type pulse struct {
	heart Heart

	mu    sync.Mutex
	until map[int]time.Time // each job's promise; 0 is the scheduler
	says  map[int]string    // the activity of each
}

func newPulse(h Heart) *pulse {
	return &pulse{heart: h, until: map[int]time.Time{}, says: map[int]string{}}
}

// of returns the Heart of a job.
func (p *pulse) of(number int) Heart { return jobHeart{p, number} }

// rests drops the promise of a job that has nothing to do.
func (p *pulse) rests(number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.until, number)
	delete(p.says, number)
	if len(p.until) > 0 {
		p.heart.Beat(time.Until(p.first()).Truncate(time.Second) + time.Second)
	}
}

// first returns the earliest of the promised times.
func (p *pulse) first() time.Time {
	return slices.MinFunc(slices.Collect(maps.Values(p.until)), time.Time.Compare)
}

type jobHeart struct {
	p      *pulse
	number int
}

// Beat implements [Heart].
func (h jobHeart) Beat(within time.Duration) {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	now := time.Now()
	h.p.until[h.number] = now.Add(within)
	h.p.heart.Beat(h.p.first().Sub(now))
}

// Status implements [Heart]. It joins the lines of all jobs.
func (h jobHeart) Status(text string) {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if h.number != 0 {
		h.p.says[h.number] = text
		var all []string
		for _, number := range slices.Sorted(maps.Keys(h.p.says)) {
			all = append(all, h.p.says[number])
		}
		text = strings.Join(all, "; ")
	}
	h.p.heart.Status(text)
}
