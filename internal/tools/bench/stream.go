package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ralph/loop/agent"
	"ralph/loop/agent/claude"
)

// streamBytes is the approximate length of a recorded stream, and longLine of a line.
const (
	streamBytes = 1 << 30
	longLine    = 200 << 20
)

// readArg makes this program only read the transcript in a folder, to measure its memory.
const readArg = "__read"

// readTranscript reads a transcript as ralph does: the session while it runs and
// Salvage after a crash share the reader.
func readTranscript(dir string) error {
	_, err := claude.New(claude.Options{}).Salvage(dir, agent.Unseen)
	return err
}

// streams reads a gigabyte of events, and one very long line.
func (b *bench) streams(ctx context.Context) []row {
	events := recorded(filepath.Join(b.module, "loop", "agent", "claude", "testdata"))
	many := b.transcript("many", "", events, b.size(streamBytes>>20)<<20, "")
	// In pieces: a process begins with its parent's peak memory.
	long := b.transcript("long", `{"type":"user","message":{"content":[{"type":"tool_result","content":"`,
		bytes.Repeat([]byte("0123456789abcde "), 4096), b.size(longLine>>20)<<20, `"}]}}`+"\n")
	return append(b.readStream(ctx, "reading a stream: 1 GB of recorded events", many),
		b.readStream(ctx, "reading a stream: one line of 200 MB", long)...)
}

// readStream compares reading with `wc -l`.
func (b *bench) readStream(ctx context.Context, what, dir string) []row {
	path := filepath.Join(dir, agent.TranscriptFile)
	self := must(os.Executable())
	mb := float64(must(os.Stat(path)).Size()) / 1e6
	product, floor, rss := samples{unit: "MB/s"}, samples{unit: "MB/s"}, samples{unit: "MB"}
	for range max(b.rounds/3, 1) {
		begin := time.Now()
		_, memory := b.used(ctx, exec.CommandContext(ctx, self, readArg, dir))
		product.add(mb / time.Since(begin).Seconds())
		rss.add(memory)
		floor.add(mb / output(exec.CommandContext(ctx, "wc", "-l", path)).Seconds())
	}
	const least, most = 400, 64
	return []row{
		{
			what:    what,
			product: product,
			floor:   floor,
			value:   number(product.median()) + " MB/s",
			aim:     "≥ 400 MB/s",
			met:     product.median() >= least,
		},
		{
			what:    "… its memory",
			product: rss,
			value:   number(rss.quantile(1)) + " MB at most",
			aim:     "< 64 MB",
			met:     rss.quantile(1) < most,
		},
	}
}

// transcript makes a folder with a transcript, which repeats a piece up to the given length.
func (b *bench) transcript(name, begin string, piece []byte, length int, end string) (dir string) {
	dir = filepath.Join(b.dir, name)
	check(os.Mkdir(dir, 0o700))
	f := must(os.Create(filepath.Join(dir, agent.TranscriptFile)))
	must(f.WriteString(begin))
	for n := 0; n < length; n += len(piece) {
		must(f.Write(piece))
	}
	must(f.WriteString(end))
	check(f.Close())
	return dir
}

// recorded is one conversation with every kind of recorded event, about as often as in
// reality: an assistant's words and calls, and files as answers to them.
func recorded(dir string) []byte {
	files := must(filepath.Glob(filepath.Join(dir, "*.jsonl")))
	if len(files) == 0 {
		check(errors.New("there are no recordings in " + dir))
	}
	var b bytes.Buffer
	for _, name := range files {
		b.Write(must(os.ReadFile(name)))
		// The recordings are of short tasks; most of a real stream is answers of tools.
		fmt.Fprintf(&b, `{"type":"user","message":{"role":"user","content":[`+
			`{"tool_use_id":"toolu_1","type":"tool_result","content":%q}]}}`+"\n",
			strings.Repeat("func main() {\n\tfmt.Println(\"a line of a file\")\n}\n", 300))
	}
	return b.Bytes()
}
