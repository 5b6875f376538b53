package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"ralph"
	"ralph/store"
)

// openPages is the number of browsers that have a page open at once.
const openPages = 10

// open returns the cost of a change, and the memory, while many browsers show a page and reload it.
func (p project) open(ctx context.Context, with string) []row {
	s := p.serve(ctx)
	defer s.end()
	many, memory := p.changes(ctx, s, p.size(openPages))
	pause(ctx, time.Second) // until all of these are known to be gone
	one, _ := p.changes(ctx, s, 1)
	what, most := fmt.Sprintf("a change while %d browsers show `/`, %s", openPages, with), 10.0
	return []row{
		ratio(what+": CPU (floor: one browser)", many, one, most),
		{what: what + ": memory", product: memory, value: number(memory.quantile(1)) + " MB at most"},
	}
}

// changes returns the CPU time of the dashboard for each of some changes, with that number of browsers, and its memory
// after each.
func (p project) changes(ctx context.Context, s serving, browsers int) (cpu, memory samples) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	memory.unit = "MB"
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: browsers}}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup // browsers that have not reloaded the page since the change
	change := func() {
		all.Add(browsers)
		p.fill(ctx, func(tx *store.Tx) { must(tx.AddTask(ralph.Task{Title: "One more"}, "human")) })
		all.Wait()
	}
	db := must(store.Open(ctx, p.database(), store.Options{}))
	after := must(store.Read(ctx, db, (*store.Tx).LastEvent))
	check(db.Close())
	ask := func(path string) *http.Response {
		r := must(http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil))
		r.Header.Set("X-Refresh", "yes")
		answer := must(client.Do(r))
		if answer.StatusCode != http.StatusOK {
			check(fmt.Errorf("%s: %s", path, answer.Status))
		}
		return answer
	}
	for range browsers {
		events := ask(fmt.Sprintf("/events?after=%d", after)) //nolint:bodyclose // the stream ends with its server
		go func() {                                           // it ends with the stream
			lines := bufio.NewScanner(events.Body)
			for lines.Scan() {
				if !strings.HasPrefix(lines.Text(), "event: change") {
					continue
				}
				page := ask("/")
				must(io.Copy(io.Discard, page.Body))
				check(page.Body.Close())
				all.Done()
			}
		}()
	}
	change() // first reads are not measured
	for range p.rounds {
		before := cpuTime(s.cmd.Process.Pid)
		change()
		cpu.took(cpuTime(s.cmd.Process.Pid) - before)
		memory.add(ownMB(s.cmd.Process.Pid))
	}
	return cpu, memory
}
