package testresult

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// A jestReport is the output of jest with --json.
type jestReport struct {
	Failed int `json:"numFailedTests"`
	Files  []struct {
		Path   string `json:"name"`
		Status string
		Tests  []struct {
			Suites []string `json:"ancestorTitles"`
			Title  string
			Status string
		} `json:"assertionResults"`
	} `json:"testResults"`
}

// ParseJest parses a report that jest wrote with --json in the folder dir, to which names of files are relative. An
// invalid or contradictory report is returned as broken; the error is the reader's.
func ParseJest(r io.Reader, dir string) (*Results, error) {
	limited := &io.LimitedReader{R: r, N: maxReport + 1}
	text, err := io.ReadAll(limited)
	if err != nil {
		return nil, err
	}
	results := &Results{}
	if limited.N == 0 {
		results.Broken = fmt.Sprintf("jest's report is larger than %d MiB", maxReport>>20)
		return results, nil
	}
	var report jestReport
	if err := json.Unmarshal(text, &report); err != nil {
		results.Broken = "jest's report cannot be read: " + err.Error()
		return results, nil
	}
	for _, f := range report.Files {
		file, err := filepath.Rel(dir, f.Path)
		if err != nil || strings.HasPrefix(file, "..") {
			file = filepath.Base(f.Path)
		}
		file = filepath.ToSlash(file)
		if f.Status == "failed" && len(f.Tests) == 0 {
			results.add(file, Failed) // it could not be loaded
		}
		for _, t := range f.Tests {
			is := Skipped
			switch t.Status {
			case "passed":
				is = Passed
			case "failed":
				is = Failed
			}
			results.add(strings.Join(append(append([]string{file}, t.Suites...), t.Title), " > "), is)
		}
	}
	if report.Failed > 0 && len(results.Failed()) == 0 {
		results.Broken = fmt.Sprintf("jest counts %d failures and names none", report.Failed)
	}
	return results, nil
}
