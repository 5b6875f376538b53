package worktree

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// idKey is the key of ralph's id in a repository's own configuration.
const idKey = "ralph.id"

// ID returns ralph's id of a repository, by the git directory that its work trees share; "" if it has none, or if there
// is no such directory.
func ID(ctx context.Context, common string) (string, error) {
	out, err := runWithin(ctx, gitLimit, "/", nil, "", "config", "--file", filepath.Join(common, "config"), "--get", idKey)
	var exit *exitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // the key or the file does not exist
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot tell which queue belongs to %s: %w", common, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// SetID gives a repository an id.
func SetID(ctx context.Context, common, id string) error {
	_, err := runWithin(ctx, gitLimit, "/", nil, "", "config", "--file", filepath.Join(common, "config"),
		"--replace-all", idKey, id)
	if err != nil {
		return fmt.Errorf("cannot note in the configuration of %s which queue is its own: %w", common, err)
	}
	return nil
}
