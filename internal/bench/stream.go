package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ralph/loop/agent/claude"
)

// streamBytes is about how much a recorded stream is long, and longLine a line.
const (
	streamBytes = 1 << 30
	longLine    = 200 << 20
)

// readArg has this program read the transcript in a folder and do nothing else, so
// that its memory can be seen.
const readArg = "__read"

// readTranscript reads a transcript as ralph does: the session while it runs and
// Salvage after a crash share the reader.
func readTranscript(dir string) error {
	_, err := claude.New(claude.Options{}).Salvage(dir)
	return err
}

// streams reads a gigabyte of events, and one very long line.
func (b *bench) streams(ctx context.Context) ([]row, error) {
	events, err := recorded(filepath.Join(b.module, "loop", "agent", "claude", "testdata"))
	if err != nil {
		return nil, err
	}
	many, err := b.transcript("many", func(w io.Writer) error {
		for n := 0; n < streamBytes; n += len(events) {
			if _, err := w.Write(events); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	long, err := b.transcript("long", func(w io.Writer) error {
		// In pieces: a process begins with the memory that its parent had at most.
		piece := strings.Repeat("0123456789abcde ", 4096)
		_, err := io.WriteString(w, `{"type":"user","message":{"content":[{"type":"tool_result","content":"`)
		for n := 0; n < longLine && err == nil; n += len(piece) {
			_, err = io.WriteString(w, piece)
		}
		_, end := io.WriteString(w, `"}]}}`+"\n")
		return errors.Join(err, end)
	})
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, f := range []struct{ what, dir string }{{"reading a stream: 1 GB of recorded events", many}, {"reading a stream: one line of 200 MB", long}} {
		list, err := b.readStream(ctx, f.what, f.dir)
		if err != nil {
			return nil, err
		}
		rows = append(rows, list...)
	}
	return rows, nil
}

// readStream compares reading with `wc -l`.
func (b *bench) readStream(ctx context.Context, what, dir string) ([]row, error) {
	path := filepath.Join(dir, claude.TranscriptFile)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	mb := float64(info.Size()) / 1e6
	product, floor, rss := samples{unit: "MB/s"}, samples{unit: "MB/s"}, samples{unit: "MB"}
	for range max(b.rounds/3, 1) {
		cmd := exec.CommandContext(ctx, self, readArg, dir)
		begin := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		product.add(mb / time.Since(begin).Seconds())
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			rss.add(float64(usage.Maxrss) * 1024 / 1e6)
		}
		begin = time.Now()
		if out, err := exec.CommandContext(ctx, "wc", "-l", path).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		floor.add(mb / time.Since(begin).Seconds())
	}
	const least, most = 400, 64
	return []row{
		{what: what, product: product, floor: floor, value: number(product.median()) + " MB/s", aim: "≥ 400 MB/s", met: product.median() >= least},
		{what: "… its memory", product: rss, value: number(rss.quantile(1)) + " MB at most", aim: "< 64 MB", met: rss.quantile(1) < most},
	}, nil
}

// transcript makes a folder with a transcript.
func (b *bench) transcript(name string, write func(io.Writer) error) (dir string, err error) {
	dir = filepath.Join(b.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.Create(filepath.Join(dir, claude.TranscriptFile))
	if err != nil {
		return "", err
	}
	return dir, errors.Join(write(f), f.Close())
}

// recorded is one conversation with every kind of event that was recorded, about as
// often as it comes: an assistant's words and calls, and files as answers to them.
func recorded(dir string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		b.Write(text)
		// The recordings are of short tasks; most of a real stream is what tools answer.
		fmt.Fprintf(&b, `{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":%q}]}}`+"\n",
			strings.Repeat("func main() {\n\tfmt.Println(\"a line of a file\")\n}\n", 300))
	}
	return b.Bytes(), nil
}
