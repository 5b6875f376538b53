package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestTheChecklistNamesTestsThatExist, and leaves out no requirement of the
// designs that it speaks of.
func TestTheChecklistNamesTestsThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join("testdata", "checklist.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case strings.HasSuffix(path, ".txtar"):
			there[d.Name()] = true
		case strings.HasSuffix(path, "_test.go"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range function.FindAllStringSubmatch(string(text), -1) {
				there[m[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	covered := map[string]bool{}
	named := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+|\b\w+\.txtar`)
	item := regexp.MustCompile(`(S\d)\.(\d+)a?(?:–S\d\.(\d+))?`)
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| S") {
			continue
		}
		cells := strings.Split(line, "|")
		for _, name := range named.FindAllString(cells[3], -1) {
			if !there[name] {
				t.Errorf("%s is named, and does not exist", name)
			}
		}
		for _, m := range item.FindAllStringSubmatch(cells[1], -1) {
			from, _ := strconv.Atoi(m[2])
			to, err := strconv.Atoi(m[3])
			if err != nil {
				to = from
			}
			for n := from; n <= to; n++ {
				covered[fmt.Sprintf("%s.%d", m[1], n)] = true
			}
		}
	}
	for design, last := range map[string]int{"S0": 67, "S1": 78, "S2": 41, "S3": 61} {
		for n := 1; n <= last; n++ {
			if id := fmt.Sprintf("%s.%d", design, n); !covered[id] {
				t.Errorf("%s is not in testdata/checklist.md", id)
			}
		}
	}
}
