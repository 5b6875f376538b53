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

	"ralph/internal/files"
	"ralph/internal/testresult"
)

// tests returns the test results that a command reported, either in the format of go test -json
// in its output, which is in the log from begin on, or as JUnit XML in files that it wrote.
// Before are the files that existed when it started. The result is nil if it reported none.
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
	now, err := r.reports(dir)
	for _, f := range slices.Sorted(maps.Keys(now)) {
		if untouched(before[f], now[f]) {
			continue // it belongs to another command or run
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

// reports returns the existing JUnit XML files by path.
func (r Rules) reports(dir string) (map[string]fs.FileInfo, error) {
	found := map[string]fs.FileInfo{}
	for _, pattern := range r.JUnit {
		glob := filepath.Join(escapeGlob(dir), filepath.FromSlash(pattern))
		// Links to folders may lead in circles; one at the beginning of the pattern is followed.
		matches, err := doublestar.FilepathGlob(glob, doublestar.WithFilesOnly(), doublestar.WithNoFollow())
		if err != nil {
			return nil, fmt.Errorf("verify.junit %q: %w", pattern, err)
		}
		for _, m := range matches {
			if info, err := os.Stat(m); err == nil && info.Mode().IsRegular() {
				found[m] = info
			}
		}
	}
	return found, nil
}

// untouched reports whether a file was not written between two looks. On a
// file system with times in whole seconds, a second write within one second
// may go unnoticed: the command then names no tests, and nothing is excused.
func untouched(before, now fs.FileInfo) bool {
	return before != nil && os.SameFile(before, now) && before.Size() == now.Size() &&
		before.ModTime().Equal(now.ModTime())
}

// escapeGlob escapes a path for use in a glob.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`).Replace(path)
}

func readReport(path string) (results *testresult.Results, err error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if strings.HasSuffix(path, filepath.Base(jestReport)) {
		return testresult.ParseJest(f, filepath.Dir(filepath.Dir(path)))
	}
	return testresult.ParseJUnit(f)
}
