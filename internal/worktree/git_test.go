package worktree

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEveryGitIsMadeInOnePlace: any other would obey the configuration, which an agent can write.
func TestEveryGitIsMadeInOnePlace(t *testing.T) {
	root := filepath.Join("..", "..")
	// The demo runs git in a project of its own, as people would.
	allowed := []string{"internal/worktree/git.go", "internal/worktree/names.go", "internal/demo/demo.go"}
	found := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			var args []ast.Expr // of what may be a command
			switch n := n.(type) {
			case *ast.CompositeLit:
				if _, list := n.Type.(*ast.ArrayType); list {
					args = n.Elts[:min(len(n.Elts), 1)]
				}
			case *ast.CallExpr:
				if called, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(called.Sel.Name, "Command") {
					args = n.Args
				}
			}
			for _, arg := range args {
				if text, ok := arg.(*ast.BasicLit); ok && text.Value == `"git"` {
					found++
					if !slices.Contains(allowed, filepath.ToSlash(name)) {
						t.Errorf("%s runs git by itself", name)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("the one place was not found")
	}
}

func TestOverridesOfKeys(t *testing.T) {
	for _, tt := range []struct {
		key  string
		want []string
	}{
		{"filter.lfs.clean", []string{"GIT_CONFIG_KEY_1=filter.lfs.clean", "GIT_CONFIG_VALUE_1=", "GIT_CONFIG_COUNT=2"}},
		{"filter.lfs.smudge", []string{"GIT_CONFIG_KEY_1=filter.lfs.smudge", "GIT_CONFIG_VALUE_1=", "GIT_CONFIG_COUNT=2"}},
		{"filter.lfs.process", []string{"GIT_CONFIG_KEY_1=filter.lfs.process", "GIT_CONFIG_VALUE_1=", "GIT_CONFIG_COUNT=2"}},
		{"filter.lfs.required", []string{"GIT_CONFIG_KEY_1=filter.lfs.required", "GIT_CONFIG_VALUE_1=false", "GIT_CONFIG_COUNT=2"}},
		{"filter.a=b.c.clean", []string{"GIT_CONFIG_KEY_1=filter.a=b.c.clean", "GIT_CONFIG_VALUE_1=", "GIT_CONFIG_COUNT=2"}},
		{"hook.x.command", []string{"GIT_CONFIG_KEY_1=hook.x.command", "GIT_CONFIG_VALUE_1=", "GIT_CONFIG_COUNT=2"}},
		{"hook.x.event", []string{"GIT_CONFIG_KEY_1=hook.x.enabled", "GIT_CONFIG_VALUE_1=false", "GIT_CONFIG_COUNT=2"}},
		{"filter.lfs.other", []string{"GIT_CONFIG_COUNT=1"}},
		{"", []string{"GIT_CONFIG_COUNT=1"}},
	} {
		if got := asEnv(disabled([]string{tt.key})); !slices.Equal(got, tt.want) {
			t.Errorf("%q is overridden with %q, want %q", tt.key, got, tt.want)
		}
	}
}

// TestGitHasNoSecrets: programs of the same user can read a git's environment.
func TestGitHasNoSecrets(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\nenv\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("DEPLOY_TOKEN", "a-secret")
	t.Setenv("DATABASE_URL", "postgres://u:a-secret@db/x")
	env, err := runWithin(t.Context(), time.Minute, bin, nil, "", "status")
	if err != nil || !strings.Contains(string(env), "\nHOME=") || strings.Contains(string(env), "a-secret") {
		t.Errorf("git gets (%v)\n%s", err, env)
	}
}

// TestAHangingGitIsKilledWithItsChildren: a repository must not be able to block ralph.
func TestAHangingGitIsKilledWithItsChildren(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\nsleep 1000 &\necho $! > '" + bin + "/child'\nwait\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	_, err := runWithin(t.Context(), 2*time.Second, bin, nil, "", "status")
	if !errors.Is(err, errSlow) {
		t.Fatalf("the error is %v, want %v", err, errSlow)
	}
	text, err := os.ReadFile(filepath.Join(bin, "child"))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	// It has been killed, and dies when the kernel gives it its turn; a zombie that nobody
	// has waited for yet can still be signalled.
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for lives(child) {
		select {
		case <-deadline:
			t.Fatal("what it had started lives")
		case <-tick.C:
		}
	}
}

// lives reports whether a process has not ended.
func lives(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	return !strings.Contains(string(stat), ") Z ") && !strings.Contains(string(stat), ") X ")
}
