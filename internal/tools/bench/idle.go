package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"ralph"
	"ralph/store"
)

// idle measures an idle daemon, dashboard and live screen together for half a minute, without their first seconds.
func (b *bench) idle(ctx context.Context) []row {
	p := b.newProject(ctx, 100)
	p.fill(ctx, func(tx *store.Tx) {
		for i := range 100 {
			must(tx.AddTask(ralph.Task{Title: fmt.Sprintf("Proposal %d", i), Status: ralph.Proposed}, "agent"))
		}
	})
	span := b.lasts(30 * time.Second)
	commands := []struct {
		what     string
		args     []string
		terminal bool
	}{
		{"daemon", []string{"run", "--daemon"}, false},
		{"dashboard", []string{"serve", "--addr", "127.0.0.1:0"}, false},
		{"live screen", []string{"watch"}, true},
	}
	lists, errs := make([][]row, len(commands)), make([]error, len(commands))
	var wg sync.WaitGroup
	for i, w := range commands { // at once, as they are used
		wg.Go(func() {
			defer caught(&errs[i])
			lists[i] = p.idles(ctx, w.what, w.args, w.terminal, span)
		})
	}
	wg.Wait()
	check(errors.Join(errs...))
	return slices.Concat(lists...)
}

// idles returns the CPU time of an idle command in the given time, in a terminal or not.
func (p project) idles(ctx context.Context, what string, args []string, terminal bool, span time.Duration) []row {
	cmd := p.command(ctx, p.ralph, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	if terminal {
		screen := must(pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120}))
		defer func() { _ = screen.Close() }()              // its process has ended
		go func() { _, _ = io.Copy(io.Discard, screen) }() // it ends with the process
	} else {
		check(cmd.Start())
	}
	defer func() {
		err := cmd.Cancel()
		var exit *exec.ExitError // it was interrupted, which has a status of its own
		if ended := cmd.Wait(); !errors.As(ended, &exit) {
			err = errors.Join(err, ended)
		}
		check(err)
	}()
	used, rss := watchIdle(ctx, cmd.Process.Pid, min(span, 5*time.Second), span)
	const most, share = 40.0, 0.1
	cpu := samples{unit: "% of a core", values: []float64{100 * used.Seconds() / span.Seconds()}}
	return []row{
		{
			what:    fmt.Sprintf("%s idle for %s: memory of its own", what, span),
			product: rss,
			value:   number(rss.quantile(1)) + " MB at most",
			aim:     "≤ 40 MB",
			met:     rss.quantile(1) <= most,
		},
		{
			what:    fmt.Sprintf("%s idle for %s: CPU", what, span),
			product: cpu,
			value:   number(cpu.median()) + " %",
			aim:     "≤ 0.1 %",
			met:     cpu.median() <= share,
		},
	}
}

// watchIdle returns the time that a process uses in so long after its first seconds, and its memory ten times in
// between.
func watchIdle(ctx context.Context, pid int, first, d time.Duration) (used time.Duration, rss samples) {
	pause(ctx, first)
	before := cpuTime(pid)
	rss.unit = "MB"
	for range 10 {
		pause(ctx, d/10)
		rss.add(ownMB(pid))
	}
	return cpuTime(pid) - before, rss
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
		check(ctx.Err())
	case <-time.After(d):
	}
}

// cpuTime returns the CPU time of a process so far, in steps of 10 ms.
func cpuTime(pid int) time.Duration {
	text := must(os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")))
	_, rest, _ := strings.Cut(string(text), ") ") // the name may hold anything
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		check(fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields)))
	}
	used := must(strconv.Atoi(fields[11])) + must(strconv.Atoi(fields[12])) // its own, and the system's for it
	return time.Duration(used) * 10 * time.Millisecond
}

// ownMB returns the memory of a process in use, without the pages of its program's file, in MB (10⁶ bytes).
func ownMB(pid int) float64 {
	return must(strconv.ParseFloat(field(filepath.Join("/proc", strconv.Itoa(pid), "status"), "RssAnon"), 64)) * 1024 / 1e6
}
