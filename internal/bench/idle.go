package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ralph"
	"ralph/store"
)

// idle is what a daemon takes that has nothing to do: half a minute of it, or an
// hour. The first seconds, in which it begins, are left out.
func (b *bench) idle(ctx context.Context) ([]row, error) {
	p, err := b.newProject(ctx, 100)
	if err != nil {
		return nil, err
	}
	if err := p.fill(ctx, func(tx *store.Tx) error {
		for i := range 100 {
			if _, err := tx.AddTask(ralph.Task{Title: fmt.Sprintf("Proposal %d", i), Status: ralph.Proposed}, "agent"); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	span := 30 * time.Second
	if b.full {
		span = time.Hour
	}
	cmd := p.command(ctx, b.ralph, "run", "--daemon")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	used, rss, err := watchIdle(ctx, cmd.Process.Pid, span)
	err = errors.Join(err, cmd.Cancel())
	var exit *exec.ExitError // it was interrupted, which has a status of its own
	if ended := cmd.Wait(); !errors.As(ended, &exit) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return nil, err
	}
	const most, share = 40.0, 0.1
	cpu := samples{unit: "% of a core", values: []float64{100 * used.Seconds() / span.Seconds()}}
	return []row{
		{what: fmt.Sprintf("daemon idle for %s: memory", span), product: rss, value: number(rss.quantile(1)) + " MB at most", aim: "≤ 40 MB", met: rss.quantile(1) <= most},
		{what: fmt.Sprintf("daemon idle for %s: CPU", span), product: cpu, value: number(cpu.median()) + " %", aim: "≤ 0.1 %", met: cpu.median() <= share},
	}, nil
}

// watchIdle is the time that a process uses in so long, and its memory ten times in
// between.
func watchIdle(ctx context.Context, pid int, d time.Duration) (used time.Duration, rss samples, err error) {
	if err := pause(ctx, 5*time.Second); err != nil {
		return 0, rss, err
	}
	before, err := cpuTime(pid)
	if err != nil {
		return 0, rss, err
	}
	rss.unit = "MB"
	for range 10 {
		if err := pause(ctx, d/10); err != nil {
			return 0, rss, err
		}
		mb, err := residentMB(pid)
		if err != nil {
			return 0, rss, err
		}
		rss.add(mb)
	}
	after, err := cpuTime(pid)
	return after - before, rss, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// cpuTime is what a process has used of the processors so far, in steps of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may hold anything
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, err
}

// residentMB is the memory of a process that is in use, in MB (10⁶ bytes).
func residentMB(pid int) (float64, error) {
	kib, err := strconv.ParseFloat(field(filepath.Join("/proc", strconv.Itoa(pid), "status"), "VmRSS"), 64)
	return kib * 1024 / 1e6, err
}
