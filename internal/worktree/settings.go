package worktree

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// isNotDir reports whether an error means that a part of a path is a file.
func isNotDir(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && strings.Contains(path.Err.Error(), "not a directory")
}

// isBare reports whether core.bare is set. An unreadable value is left to git to judge.
func isBare(common string) bool {
	b, err := os.ReadFile(filepath.Join(common, "config"))
	if err != nil {
		return false
	}
	parsed := config.New()
	if err := config.NewDecoder(bytes.NewReader(b)).Decode(parsed); err != nil {
		return false
	}
	return slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(parsed.Section("core").Options.Get("bare")))
}
