package check

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"ralph/internal/testresult"
)

// tests reads what a command reported of its tests: as go test -json on its
// output, which is in the log from begin on, or as JUnit XML in the files that it
// has written; before are those that were there when it was started. It is nil if
// it reported none.
func (r Rules) tests(
	dir string, log *os.File, begin int64, cut bool, before map[string]fs.FileInfo,
) (*testresult.Results, error) {
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	results, err := testresult.ParseGoJSON(io.NewSectionReader(log, begin, end-begin))
	if err != nil {
		return nil, err
	}
	if results != nil && cut {
		results.Broken = "its output is longer than ralph keeps"
	}
	files, err := r.reports(dir)
	for _, f := range slices.Sorted(maps.Keys(files)) {
		if untouched(before[f], files[f]) {
			continue // it speaks for another command, or for another run
		}
		found, err := readReport(f)
		if err != nil {
			return nil, err
		}
		if results == nil {
			results = found
		} else {
			results.Merge(found)
		}
	}
	return results, err
}

// reports are the files of JUnit XML that there are, by their paths.
func (r Rules) reports(dir string) (map[string]fs.FileInfo, error) {
	files := map[string]fs.FileInfo{}
	for _, pattern := range r.JUnit {
		glob := filepath.Join(escapeGlob(dir), filepath.FromSlash(pattern))
		matches, err := doublestar.FilepathGlob(glob, doublestar.WithFilesOnly())
		if err != nil {
			return nil, fmt.Errorf("verify.junit %q: %w", pattern, err)
		}
		for _, m := range matches {
			if info, err := os.Stat(m); err == nil {
				files[m] = info
			}
		}
	}
	return files, nil
}

// untouched tells whether a file has not been written between two looks at it.
// Where the file system keeps whole seconds, one that was written twice within one
// may count as untouched: the command then names no tests, and nothing is excused.
func untouched(before, now fs.FileInfo) bool {
	return before != nil && os.SameFile(before, now) && before.Size() == now.Size() &&
		before.ModTime().Equal(now.ModTime())
}

// escapeGlob makes a path a pattern of itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`).Replace(path)
}

func readReport(path string) (results *testresult.Results, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return testresult.ParseJUnit(f)
}
