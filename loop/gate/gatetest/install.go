package gatetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// installTime bounds an installation.
const installTime = 5 * time.Minute

// Install installs npm packages into a folder, unless its file path exists, and returns path. The folder appears in
// one step, because tests of other processes look at it at the same time.
func Install(ctx context.Context, dir, path string, packages ...string) (_ string, err error) {
	exists := func() bool { _, err := os.Stat(path); return err == nil }
	if exists() {
		return path, nil
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return "", err
	}
	part := dir + ".part"
	if err := os.MkdirAll(part, 0o755); err != nil { //nolint:gosec // npm makes such folders, too
		return "", err
	}
	lock := flock.New(dir + ".lock")
	if err := lock.Lock(); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if exists() {
		return path, nil // another process has been faster
	}
	limited, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	args := []string{"install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", part}
	cmd := exec.CommandContext(limited, "npm", append(args, packages...)...) //nolint:forbidigo // it is for tests
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w: %s", err, out)
	}
	if err := errors.Join(os.RemoveAll(dir), os.Rename(part, dir)); err != nil {
		return "", err
	}
	if !exists() {
		return "", errors.New(path + " was not installed")
	}
	return path, nil
}

// Modules returns the folder node_modules with the packages of the project, installed in the user's cache.
func (p Project) Modules(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "ralph-test", p.Packages[0])
	modules := filepath.Join(dir, "node_modules")
	return Install(ctx, dir, modules, p.Packages...)
}
