package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ralph/internal/worktree"
	"ralph/loop/workspace"
)

// writesAFile is an agent that does something, so that there is something to be merged. The
// check of its project notes that it has run.
const writesAFile = `task *
  run date +%s%N >made.txt
  done {"summary": "It was done."}
`

// workspaces returns the cost of clones for sessions, and of merging their work.
func (b *bench) workspaces(ctx context.Context) (rows []row) {
	for _, n := range []int{b.size(1_000), b.size(manyFiles)} {
		rows = append(rows, b.inWorkspaces(ctx, n)...)
	}
	return rows
}

func (b *bench) inWorkspaces(ctx context.Context, files int) []row {
	p := b.newProject(ctx, files)
	ran := filepath.Join(must(os.MkdirTemp(b.dir, "ran-*")), "ran")
	check(os.WriteFile(filepath.Join(p.dir, "claude.script"), []byte(writesAFile), 0o600))
	check(os.WriteFile(filepath.Join(p.dir, ".gitignore"), []byte("*.sessions\n"), 0o600))
	config := filepath.Join(p.dir, "ralph.yaml")
	text := string(must(os.ReadFile(config))) + fmt.Sprintf(
		"permissions: {writable: [%q]}\nverify: [\"echo >>%s\"]\n", filepath.Dir(ran), ran)
	check(os.WriteFile(config, []byte(text), 0o600))
	p.time(ctx, "git", "add", "-A")
	p.time(ctx, "git", "commit", "-q", "-m", "settings")

	session := func() time.Duration {
		p.time(ctx, p.ralph, "task", "add", "Write a file")
		return p.time(ctx, p.ralph, "run")
	}
	verified := func() int {
		text, err := os.ReadFile(ran)
		check(err)
		return strings.Count(string(text), "\n")
	}
	var ws, checks samples
	session()                    // makes the workspaces
	for range min(b.rounds, 3) { // at many files a session takes seconds
		before := verified()
		ws.took(session())
		checks.add(float64(verified() - before))
	}
	tree := must(worktree.Open(ctx, p.dir))
	all := &workspace.Pool{
		Here: &workspace.Workspace{Dir: p.dir, Tree: tree, State: p.state()},
		Dir:  filepath.Join(p.state(), "workspaces"), Name: "bench",
		Timeout: time.Minute, Log: slog.New(slog.DiscardHandler),
	}
	var reused, built samples
	tip := must(tree.Ref(ctx, "HEAD"))
	for i := range b.rounds {
		base := tip
		path := filepath.Join(p.dir, "src", "0000", "file04.go")
		check(os.WriteFile(path, fmt.Appendf(nil, "package p\n\nvar Changed = %d\n", i), 0o600))
		p.time(ctx, "git", "commit", "-q", "-am", "of a person")
		tip = must(tree.Ref(ctx, "HEAD"))
		begin := time.Now()
		s := must(all.Take(ctx, 1, false))
		must(s.Begin(ctx, tip, ""))
		reused.took(time.Since(begin))
		check(s.Release())

		theirs := must(tree.CommitTree(ctx, must(tree.Whole(ctx, base)), []string{base}, "of a session\n", [2]string{}))
		begin = time.Now()
		merged := must(tree.MergeTree(ctx, tip, theirs))
		must(tree.CommitTree(ctx, merged.Tree, []string{tip, theirs}, "merged\n", [2]string{}))
		built.took(time.Since(begin))
	}
	at := fmt.Sprintf(" at %d files", files)
	seconds := func(what string, s samples, most float64) row {
		return row{
			what: what + at, product: s, value: number(s.median()) + " " + s.unit,
			aim: fmt.Sprintf("≤ %s %s", number(most), s.unit), met: s.median() <= most,
		}
	}
	per := 1000.0 // samples are milliseconds
	return []row{
		{what: "a task" + at + ": session, check, merge", product: ws, value: number(ws.median()) + " ms"},
		seconds("… making a workspace ready that was used before", reused, 1.5*per),
		seconds("… a candidate", built, 0.1*per),
		{
			what: "… checks of a task on a quiet target" + at, product: checks, value: number(checks.median()), aim: "1",
			met: checks.median() == 1,
		},
	}
}
