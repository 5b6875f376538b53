package loop

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// A pulse combines the heartbeats of a run's lanes into one. Each lane promises when
// it will beat next; the run is healthy as long as every lane keeps its promise.
type pulse struct {
	heart Heart

	mu    sync.Mutex
	until map[int]time.Time // each lane's promise; 0 is the scheduler
	says  map[int]string    // what each is doing
}

func newPulse(h Heart) *pulse {
	return &pulse{heart: h, until: map[int]time.Time{}, says: map[int]string{}}
}

// of returns the Heart of a lane.
func (p *pulse) of(lane int) Heart { return laneHeart{p, lane} }

// rests drops the promise of a lane that has nothing to do.
func (p *pulse) rests(lane int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.until, lane)
	delete(p.says, lane)
	if len(p.until) > 0 {
		p.heart.Beat(time.Until(p.first()).Truncate(time.Second) + time.Second)
	}
}

// first returns the earliest of the promised times.
func (p *pulse) first() time.Time {
	return slices.MinFunc(slices.Collect(maps.Values(p.until)), time.Time.Compare)
}

type laneHeart struct {
	p    *pulse
	lane int
}

// Beat implements [Heart].
func (h laneHeart) Beat(within time.Duration) {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	now := time.Now()
	h.p.until[h.lane] = now.Add(within)
	h.p.heart.Beat(h.p.first().Sub(now))
}

// Status implements [Heart]. It joins the lines of all lanes.
func (h laneHeart) Status(text string) {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if h.lane != 0 {
		h.p.says[h.lane] = text
		var all []string
		for _, lane := range slices.Sorted(maps.Keys(h.p.says)) {
			all = append(all, h.p.says[lane])
		}
		text = strings.Join(all, "; ")
	}
	h.p.heart.Status(text)
}
