package testresult

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// maxLine is the maximum length of an event of `go test -json`, in bytes; a longer line counts as
// output.
const maxLine = 1 << 20

// A goEvent is one line of `go test -json`; see `go doc test2json`.
type goEvent struct {
	Action     string
	Package    string
	ImportPath string // of a package that is built
	Test       string
	Output     string
}

// goActions are the actions of events.
var goActions = []string{
	"start", "run", "pause", "cont", "pass", "bench", "fail", "skip", "output", "attr", "artifacts",
	"build-output", "build-fail",
}

// goEventOf parses an event. ok is false for other lines, also for other JSON: programs log their own, and
// [json.Unmarshal] does not mind the case of their keys.
func goEventOf(line []byte) (e goEvent, ok bool) {
	ok = bytes.HasPrefix(line, []byte("{")) && bytes.Contains(line, []byte(`"Action":`)) &&
		(bytes.Contains(line, []byte(`"Package":`)) || bytes.Contains(line, []byte(`"ImportPath":`))) &&
		json.Unmarshal(line, &e) == nil && slices.Contains(goActions, e.Action) && e.Package+e.ImportPath != ""
	return e, ok
}

// A goPackage is the state of a package.
type goPackage struct {
	open   map[string]bool // started and not ended
	failed bool            // one of its tests failed
	ended  bool
}

// ParseGoJSON parses the output of `go test -json`, which may contain other lines. It returns nil
// if there is no test event. The error is the reader's.
func ParseGoJSON(r io.Reader) (*Results, error) {
	results := &Results{}
	packages := map[string]*goPackage{}
	err := eachLine(r, func(line []byte) {
		if e, ok := goEventOf(line); ok && e.Package != "" {
			take(results, packages, e)
		}
	})
	if err != nil || len(packages) == 0 {
		return nil, err
	}
	for name, p := range packages {
		for test := range p.open {
			results.add(name+"."+test, Failed) // it never ended
		}
		if !p.ended {
			results.Broken = "the output ends before package " + name + " does"
		}
	}
	return results, nil
}

// take handles an event.
func take(results *Results, packages map[string]*goPackage, e goEvent) {
	p := packages[e.Package]
	if p == nil {
		p = &goPackage{open: map[string]bool{}}
		packages[e.Package] = p
	}
	status := map[string]Status{"pass": Passed, "fail": Failed, "skip": Skipped}[e.Action]
	switch {
	case e.Action == "run":
		p.open[e.Test] = true
	case status == "":
	case e.Test != "":
		delete(p.open, e.Test)
		p.failed = p.failed || status == Failed
		results.add(e.Package+"."+e.Test, status)
	default:
		p.ended = true
		if status == Failed && !p.failed && len(p.open) == 0 {
			// It does not build, or failed outside of any test.
			results.add(e.Package, Failed)
		}
	}
}

// eachLine calls f for each line, without its end; with nil for a line that is too long for an
// event.
func eachLine(r io.Reader, f func(line []byte)) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for long := false; ; {
		part, err := lines.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		f(bytes.TrimRight(line, "\r\n"))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line, long = nil, false
	}
}
