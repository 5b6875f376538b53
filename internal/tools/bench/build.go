package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// builds reports how long it takes to build ralph from nothing, and to test it. It
// needs the full run: SQLite alone is compiled for minutes.
func (b *bench) builds(ctx context.Context) []row {
	if !b.full {
		return nil
	}
	var rows []row
	for _, job := range []struct {
		what string
		args []string
	}{
		{"build from a clean cache", []string{"go", "build", "-o", filepath.Join(b.dir, "built"), "./cmd/ralph"}},
		{"`make test` after it", []string{"make", "test"}},
	} {
		cmd := exec.CommandContext(ctx, job.args[0], job.args[1:]...)
		cmd.Dir, cmd.Env = b.module, append(os.Environ(), "GOCACHE="+filepath.Join(b.dir, "cache"), "CGO_CFLAGS=-O1")
		begin := time.Now()
		output(cmd)
		rows = append(rows, row{what: job.what, product: samples{unit: "s", values: []float64{time.Since(begin).Seconds()}}})
	}
	return rows
}
