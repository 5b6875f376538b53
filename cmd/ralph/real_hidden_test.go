package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRealHiddenCheck: a hidden check refuses an agent that special-cases the visible ones. The hidden check is only in
// the database and in files that people alone can read. Its command, files and output are not in the agent's input, in
// files that it can search, in transcripts, commits, reports, notifications or old workspaces.
func TestRealHiddenCheck(t *testing.T) {
	t.Parallel()
	// The secrets, each once as it is and never so in the texts of the agent or this project.
	secrets := []string{"zq-command", "zq-file", "zq-inside", "zq-output"}
	const search = `grep -rIl 'z[q]-' . ~ /tmp "$TMPDIR" 2>/dev/null | sed 's/^/found /'; ls -R . ~ 2>/dev/null | grep 'z[q]-' | sed 's/^/listed /'; ` +
		`cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep 'z[q]-' | sed 's/^/runs /'; echo searched`
	notes := filepath.Join(t.TempDir(), "notes")
	s := newStage(t, turns(
		bash(covertly("echo 'echo 3' > add.sh")), done("it adds"), finished,
		bash(covertly(search)), done("it does add"), finished,
		bash("echo 'echo $(($1 + $2))' > add.sh"), done("it adds now"), finished,
	))
	s.file(filepath.Join(s.home, ".config", "ralph", "config.yaml"), "verify: {hidden_files: ~/unseen}\n")
	s.file(filepath.Join(s.home, "unseen", "zq-file.sh"), "# zq-inside\nset -- 8 9\ntest \"$(sh add.sh $1 $2)\" = 17 || { echo zq-output: $1 and $2; exit 1; }\n")
	s.file(notes, "")
	s.configure("permissions: {guards: false}\n#test: {retries: 1, refused: 5}\n" +
		"notify: [{command: [sh, -c, 'cat >> " + notes + "'], events: [question.asked, task.failed, task.completed, run.ended]}]")
	s.commit()
	s.run(0, "task", "add", "Add two numbers", "--verify", `test "$(sh add.sh 1 2)" = 3`,
		"--hidden-verify", "sh zq-file.sh # zq-command", "--title", "other sums")
	report := filepath.Join(s.home, "report.md")
	out := s.run(0, "run", "--report", report)
	s.has(out, "refused: a check that you do not see failed: other sums", "TASK-1 merged into main")
	if n := strings.Count(out, "a check that you do not see failed"); n < 2 {
		t.Errorf("it is refused %d times:\n%s", n, out)
	}

	none := func(where string, text []byte) {
		for _, secret := range secrets {
			if i := bytes.Index(text, []byte(secret)); i >= 0 {
				t.Errorf("%s is in %s:\n%s", secret, where, text[max(0, i-200):min(len(text), i+200)])
			}
		}
	}
	searched := false
	for i, r := range s.api.Requests() {
		none(fmt.Sprintf("request %d of the agent", i), []byte(r.Body))
		searched = searched || strings.Contains(r.Text, "searched\n") || strings.HasSuffix(r.Text, "searched")
	}
	if !searched {
		t.Error("the agent has not searched")
	}
	none("what the run prints", []byte(out))
	for _, args := range [][]string{
		{"report"},
		{"report", "--json"},
		{"task", "show", "1"},
		{"task", "show", "1", "--json"},
		{"session", "list", "--json"},
		{"prompt", "1"},
		{"inbox", "--json"},
		{"events", "--json"},
		{"status", "--json"},
	} {
		none("ralph "+strings.Join(args, " "), []byte(s.run(0, args...)))
	}
	none("the project's commits", []byte(s.git("log", "--all", "-p", "--format=%B")))
	objects := s.git("cat-file", "--batch-all-objects", "--batch", "--unordered")
	none("the project's objects", []byte(objects))
	// The queue, its backups, and the output of `ralph session show --hidden`.
	people := regexp.MustCompile(`/ralph\.db[^/]*$|/backups/[^/]*\.db$|/sessions/[^/]*/hidden\.log$`)
	files := 0
	for _, top := range []string{s.home, s.dir, filepath.Dir(notes)} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path == filepath.Join(s.home, "unseen"):
				return filepath.SkipDir
			case !d.Type().IsRegular(), people.MatchString(filepath.ToSlash(path)):
				return nil
			}
			text, err := os.ReadFile(path)
			files++
			none(path, append([]byte(path+"\n"), text...))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d files searched", files)

	// People see all of it.
	s.has(s.run(0, "session", "show", "--hidden", firstSession(t, s)), "zq-command", "zq-output: 8 and 9")
}

// firstSession returns the id of the session that was refused.
func firstSession(t *testing.T, s *stage) string {
	t.Helper()
	list := s.run(0, "session", "list", "--task", "1", "--json")
	i := strings.LastIndex(list, `"id": "`)
	if i < 0 {
		t.Fatal(list)
	}
	id, _, _ := strings.Cut(list[i+len(`"id": "`):], `"`)
	return id
}
