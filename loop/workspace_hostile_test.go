package loop_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ralph"
	"ralph/loop"
	"ralph/loop/agent"
	"ralph/signals"
	"ralph/store"
)

// A vandal does things to its workspace before each done of its first task. Its next tasks it does as they are.
type vandal struct {
	b     *workshop
	does  [][2]string // a script, and a part of the answer to the done that follows; "over" for the end
	begun int
}

func (p *vandal) Work(ctx context.Context, a agent.Assignment) (agent.Report, error) {
	does := p.does
	if p.begun++; p.begun > 1 {
		does = [][2]string{{"test -z \"$(git status --porcelain)\" && git log -1 >/dev/null && echo next > next", "over"}}
	}
	for _, do := range does {
		cmd := exec.CommandContext(ctx, "bash", "-ec", do[0])
		cmd.Dir = a.Dir
		if out, err := cmd.CombinedOutput(); err != nil {
			p.b.t.Errorf("%s: %v: %s", do[0], err, out)
		}
		if _, err := p.b.db.Say(ctx, a.TaskID, a.SessionID, "agent", signals.Done{Summary: "made it"}); err != nil {
			return agent.Report{}, err
		}
		got := a.TurnEnded(ctx, agent.Turn{})
		if do[1] == "over" && !got.Over || do[1] != "over" && (got.Over || !strings.Contains(got.Text, do[1])) {
			p.b.t.Errorf("after %s\nthe answer is over: %t, %q; want %q", do[0], got.Over, got.Text, do[1])
		}
		if got.Over {
			break
		}
	}
	return agent.Report{Ending: ralph.Finished, Began: true, CostKnown: true}, nil
}

func (*vandal) Salvage(string, agent.Death) (agent.Report, error) { return agent.Report{}, nil }

// TestAHostileWorkspace: for any contents of its workspace, a session's done is refused in the conversation with the
// file's name, or taken without the file. Nothing waits, and the next task of the run is done as usual.
func TestAHostileWorkspace(t *testing.T) {
	t.Parallel()
	const deep = "python3 -c 'import os\nfor i in range(400): os.mkdir(f\"folder-{i}\"); os.chdir(f\"folder-{i}\")\nopen(\"x\", \"w\").close()'"
	for _, tt := range []struct {
		name, script, told string // told is "over" if it is accepted at once
		mend               string // before it says done again
		files              string // merged files
	}{
		{"a pipe for a file of git's rules", "echo a > a; rm -f .gitignore; mkfifo .gitignore", ".gitignore is a named pipe", "git checkout -q .gitignore", ".gitignore a kept"},
		{"folders without end that stay", "echo a > a; " + deep, "is deeper than", "", ""},
		{"a kept one", "echo a > a; truncate -s 40G kept", "kept has 40.0 GiB", "echo kept > kept", ".gitignore a kept"},
		{"nothing but that", "echo '*.txt working-tree-encoding=UTF-16' > .git/info/attributes; echo '*.txt working-tree-encoding=UTF-16' > .gitattributes; echo plain > plain.txt", "plain.txt is not taken by git", "", ""},
		{"no .git", "echo a > a; rm -rf .git", ".git was removed", "true", ".gitignore a kept"},
		{"refs that are none", "echo a > a; echo x > .git/refs/heads/x; echo y > .git/packed-refs", ".git has something that git refuses", "true", ".gitignore a kept"},
		{"a damaged object", "echo a > a; f=$(git hash-object -w a); f=.git/objects/${f:0:2}/${f:2}; chmod u+w $f; echo x > $f; cp a b; rm a; mv b a", ".git has something that git refuses", "true", ".gitignore a kept"},
		{
			"a repository at an address of its own", "echo a > a; git init -q in; git -C in -c user.name=a -c user.email=a commit -q --allow-empty -m x; " +
				"git config -f .gitmodules submodule.in.path in; git config -f .gitmodules submodule.in.url https://secret.invalid/x",
			"in is a repository at https://secret.invalid/x", "rm -rf in .gitmodules; git rm -q --cached in 2>/dev/null || true", ".gitignore a kept",
		},
		{
			"a commit with a .git", "echo a > a; git add a; git commit -qm a; t=$(printf '040000 tree %s\t.git\n' $(git rev-parse HEAD:) | git mktree); git reset -q --soft $(git commit-tree -p HEAD -m evil $t)",
			".git has something that git refuses", "true", ".gitignore a kept",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newWorkshop(t)
			l := b.tree("test ! -e broken")
			b.git(l.Here.Dir, "config", "user.name", "Ann")
			b.git(l.Here.Dir, "config", "user.email", "ann@example.com")
			write(t, filepath.Join(l.Here.Dir, "kept"), "kept\n")
			write(t, filepath.Join(l.Here.Dir, ".gitignore"), "*.log\n")
			b.git(l.Here.Dir, "add", ".")
			b.git(l.Here.Dir, "commit", "-qm", "kept")
			id, next := b.add(ralph.Task{Title: "A"}), b.add(ralph.Task{Title: "B"})
			does := [][2]string{{tt.script, tt.told}}
			if tt.mend != "" {
				does = append(does, [2]string{tt.mend, "over"})
			}
			l.Agent, l.OnRed = &vandal{b: b, does: does}, loop.RedGo
			l.Limits = ralph.Limits{
				MaxSessions: 2, MaxTasks: 20, MaxSeconds: 3600, MaxCostUSD: 100, MaxDayCostUSD: 100, MaxMonthCostUSD: 100, SessionSeconds: 3600,
				IdleSeconds: 3600, SessionTurns: 10, SessionCostUSD: 10, Attempts: 1, StagnantMaximum: 9,
			}
			if _, err := l.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := ralph.Completed
			if tt.files == "" {
				want = ralph.Failed
			}
			var list []ralph.Session
			b.tx(func(tx *store.Tx) (err error) {
				list, err = tx.Sessions(store.SessionFilter{Task: id})
				return err
			})
			if task := b.task(id); task.Status != want || len(list) != 1 || want == ralph.Failed && !strings.Contains(list[0].Reason, tt.told) {
				t.Errorf("it is %s after the sessions %+v", task.Status, list)
			}
			b.tx(func(tx *store.Tx) error {
				s, err := tx.Session(list[0].ID)
				if checked := len(s.Verify) > 0; checked != (want == ralph.Completed) {
					t.Errorf("the commands have run on it: %t", checked)
				}
				return err
			})
			if task := b.task(next); task.Status != ralph.Completed {
				t.Errorf("the next one is %s: %s", task.Status, task.StatusReason)
			}
			out, err := exec.CommandContext(t.Context(), "git", "-C", l.Here.Dir, "ls-tree", "--name-only", "main").Output()
			if err != nil {
				t.Fatal(err)
			}
			files := strings.Fields(string(out))
			if tt.files == "" {
				tt.files = ".gitignore kept"
			}
			if got, want := strings.Join(files, " "), tt.files+" next"; got != want {
				t.Errorf("main has %q, want %q", got, want)
			}
			if lost, err := filepath.Glob(filepath.Join(l.Pool.Dir, "*-1-*")); err != nil || len(lost) > 0 {
				t.Errorf("there are %q, %v", lost, err)
			}
		})
	}
}
