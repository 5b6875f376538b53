package workspace

import (
	"os/exec"
	"strings"
	"testing"
)

// TestHostileContentsOfAWorkspace: untaken files are named, git does not hang, and the next use of the workspace finds
// none of them. TestAHostileWorkspace of package loop plays some of it in a run.
func TestHostileContentsOfAWorkspace(t *testing.T) {
	t.Parallel()
	const deep = "python3 -c 'import os\nfor i in range(400): os.mkdir(f\"folder-{i}\"); os.chdir(f\"folder-{i}\")\nopen(\"x\", \"w\").close()'"
	for _, tt := range []struct {
		name, script, untaken string // untaken begins with the only name that is not taken; "" for none
		mend                  string // before it is looked at again
		files                 string // the candidate's
	}{
		{"a pipe in .git", "echo a > a; rm -f .git/packed-refs; mkfifo .git/packed-refs", "", "", ".gitignore a kept"},
		{"a pipe for an object", "echo a > a; f=$(git hash-object -w a); f=.git/objects/${f:0:2}/${f:2}; rm -f $f; mkfifo $f", "", "", ".gitignore a kept"},
		{"a pipe for HEAD", "echo a > a; rm .git/HEAD; mkfifo .git/HEAD", ".git has no valid HEAD", "true", ".gitignore a kept"},
		{"a socket", "echo a > a; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'", "sock is a socket", "true", ".gitignore a kept"},
		{"an ignored pipe", "echo a > a; mkfifo x.log", "", "", ".gitignore a kept"},
		{"folders without end", "echo a > a; " + deep, "folder-0/folder-1/", "rm -r folder-0", ".gitignore a kept"},
		{"ignored folders without end", "echo a > a; mkdir x.log; cd x.log; " + deep, "", "", ".gitignore a kept"},
		{"a file that is too large", "echo a > a; truncate -s 40G big.bin", "big.bin has 40.0 GiB", "rm big.bin", ".gitignore a kept"},
		{"a large one that is ignored", "echo a > a; truncate -s 40G big.log", "", "", ".gitignore a kept"},
		{
			"a large one that is ignored and staged", "echo a > a; truncate -s 40G big.log; : > b.out; git add -f b.out; git update-index --index-info <<< \"100644 $(git hash-object b.out)\tbig.log\"",
			"big.log has 40.0 GiB", "rm big.log", ".gitignore a b.out kept",
		},
		{"what has no encoding", "echo a > a; echo '*.txt working-tree-encoding=UTF-16' > .gitattributes; echo plain > plain.txt", "plain.txt is not taken by git", "rm plain.txt", ".gitattributes .gitignore a kept"},
		{"a repository without a commit", "echo a > a; git init -q in; echo x > in/x", "in/ is not taken by git", "rm -r in", ".gitignore a kept"},
		{"another .git", "echo a > a; rm -rf .git; git init -q; git -c user.name=a -c user.email=a commit -q --allow-empty -m x", "", "", ".gitignore a kept"},
		{"a .git that leads elsewhere", "echo a > a; rm -rf .git; echo gitdir: /nowhere > .git", ".git was removed", "true", ".gitignore a kept"},
		{"no refs", "echo a > a; rm -rf .git/refs", ".git has no folder refs", "true", ".gitignore a kept"},
		{"devices for git's files", "echo a > a; ln -sf /dev/zero .git/packed-refs; ln -sf /dev/tty .git/index; mkdir -p .git/logs/refs; ln -sf /dev/zero .git/logs/refs/stash", "", "", ".gitignore a kept"},
		{"folders that nobody reads", "echo a > a; mkdir closed; echo x > closed/x; chmod 0 closed", "", "", ".gitignore a closed kept"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := withWorkspaces(t, "rm -r sub; echo kept > kept; git add -A; git commit -qm kept")
			p := begun(t, s)
			do := func(script string) {
				cmd := exec.CommandContext(t.Context(), "bash", "-ec", script)
				cmd.Dir = p.Dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v: %s", script, err, out)
				}
			}
			do(tt.script)
			look, err := p.Snapshot(t.Context(), p.Scratch("s"))
			if err != nil {
				t.Fatal(err)
			}
			told := ""
			for _, u := range look.Untaken {
				told += u.Path + " " + u.Why
			}
			if len(look.Untaken) > 1 || !strings.HasPrefix(told, tt.untaken) || tt.untaken == "" && told != "" {
				t.Errorf("not taken is %q, want %q", told, tt.untaken)
			}
			if tt.mend != "" {
				do(tt.mend)
				if look, err = p.Snapshot(t.Context(), p.Scratch("s")); err != nil || len(look.Untaken) > 0 {
					t.Fatalf("mended, not taken is %+v, %v", look.Untaken, err)
				}
			}
			_, made, err := p.Candidate(t.Context(), "refs/ralph/changes/s", "made\n")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(strings.Fields(sh(t, s.Here.Dir, "git ls-tree --name-only "+made.Head)), " "); got != tt.files {
				t.Errorf("the candidate has %q, want %q", got, tt.files)
			}
			if _, err := p.Begin(t.Context(), tip(t, s), ""); err != nil {
				t.Fatal(err)
			}
			if got := sh(t, p.Dir, "git status --porcelain; cat kept"); got != "kept\n" {
				t.Errorf("the next session finds %q", got)
			}
		})
	}
}
