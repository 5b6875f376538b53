package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/store"
)

// A fleet is machines that work on the queue of one PostgreSQL, each in a clone of one remote.
type fleet struct {
	*crowd
	remote   string
	machines []*scriptedProject
	db       *sql.DB
}

// newFleet makes a crowd whose code travels through a bare remote.
func newFleet(t *testing.T, database string, machines int, sleep, config string) *fleet {
	t.Helper()
	return newFleetOf(t, database, machines, crowdScript(sleep, true), config, (*crowd).gather)
}

// newFleetOf is newFleet with a script and tasks of its own.
func newFleetOf(t *testing.T, database string, machines int, script, config string, gather ...func(*crowd, string)) *fleet {
	t.Helper()
	f := &fleet{remote: filepath.Join(t.TempDir(), "remote.git")}
	p := newScriptedProject(t, script, "merge: {push: origin}\n"+config)
	p.env = append(p.env, "RALPH_DATABASE="+database)
	f.crowd = &crowd{scriptedProject: p}
	for _, gather := range gather {
		gather(f.crowd, "sandbox: off\n")
	}
	f.git("branch", "-M", "main")
	f.git("init", "-q", "--bare", "-b", "main", f.remote)
	f.git("remote", "add", "origin", f.remote)
	f.git("push", "-q", "origin", "main")
	for i := range machines {
		m := &scriptedProject{t: t, dir: filepath.Join(t.TempDir(), "clone"), env: append(slices.Clone(f.env),
			fmt.Sprintf("RALPH_MACHINE=m%d", i+1), "XDG_STATE_HOME="+t.TempDir(), "HOME="+t.TempDir())}
		f.git("clone", "-q", f.remote, m.dir)
		f.machines = append(f.machines, m)
	}
	var err error
	if f.db, err = sql.Open("pgx", database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.db.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// count reads a number from the database, whose server may be restarting.
func (f *fleet) count(query string) (n int) {
	f.t.Helper()
	var err error
	for range 600 {
		if err = f.db.QueryRowContext(f.t.Context(), query).Scan(&n); err == nil {
			return n
		}
		time.Sleep(100 * time.Millisecond)
	}
	f.t.Fatal(err)
	return 0
}

// databaseClock is the time as the database stores it.
const databaseClock = `to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

// wantDone checks that each task was completed once, and that every commit on the remote was verified.
func (f *fleet) wantDone() {
	f.t.Helper()
	for what, query := range map[string]string{
		"tasks that are not completed":  `SELECT count(*) FROM tasks WHERE status <> 'completed'`,
		"sessions without an end":       `SELECT count(*) FROM sessions WHERE completed_at = ''`,
		"runs without an end":           `SELECT count(*) FROM runs WHERE ended_at = ''`,
		"leases that are held":          `SELECT count(*) FROM leases WHERE until > ` + databaseClock, // else of the killed process
		"tasks that were merged twice":  `SELECT count(*) FROM (SELECT 1 FROM changes WHERE state = 'merged' GROUP BY task_id HAVING count(*) > 1) AS t`,
		"completed tasks without merge": `SELECT count(*) FROM tasks t WHERE NOT EXISTS (SELECT 1 FROM changes c WHERE c.task_id = t.id AND c.state = 'merged')`,
	} {
		if n := f.count(query); n != 0 {
			f.t.Errorf("%d %s", n, what)
		}
	}
	f.git("fetch", "-q", "origin")
	f.git("reset", "-q", "--hard", "origin/main")
	if red := f.red(); len(red) > 0 {
		f.t.Errorf("not verified:\n%s", strings.Join(red, "\n"))
	}
	for ref := range strings.FieldsSeq(f.git("--git-dir="+f.remote, "for-each-ref", "--format=%(refname)", "refs/ralph")) {
		session := strings.TrimPrefix(ref, ralph.ChangeRefs)
		if f.count(`SELECT count(*) FROM changes WHERE state = 'merged' AND session_id = '`+session+`'`) > 0 {
			f.t.Errorf("the remote keeps %s, which was merged", ref)
		}
	}
}

// TestTwoMachines work on one queue: each merges the other's work, and continues work that was sent back.
func TestTwoMachines(t *testing.T) {
	t.Parallel()
	f := newFleet(t, pgtest.New(t), 2, "0.3", "")
	outs := make([]bytes.Buffer, len(f.machines))
	var ended []func() error
	for i, m := range f.machines {
		run := m.command("run", "--parallel", "2")
		run.Stdout, run.Stderr = &outs[i], &outs[i]
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		ended = append(ended, run.Wait)
	}
	for i, wait := range ended {
		if err := wait(); err != nil {
			t.Errorf("machine %d: %v\n%s", i+1, err, outs[i].String())
		}
	}
	f.wantDone()
	for i := range f.machines {
		if n := f.count(fmt.Sprintf(`SELECT count(*) FROM sessions WHERE machine = 'm%d'`, i+1)); n == 0 {
			t.Errorf("machine %d did nothing\n%s", i+1, outs[i].String())
		}
	}
}

// TestMachinesWithoutARemote: a second machine is refused if changes cannot travel, and names the missing key.
func TestMachinesWithoutARemote(t *testing.T) {
	t.Setenv("RALPH_DATABASE", pgtest.New(t))
	s := newScriptedProject(t, "task *\n  run touch made\n  done {\"summary\": \"made\"}\n", "sandbox: off\npermissions: {guards: false}\nverify: ['true']\n")
	s.ralph(0, "task", "add", "One")
	db, err := store.Open(t.Context(), os.Getenv("RALPH_DATABASE"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	set := func(query string) {
		t.Helper()
		if err := db.Tx(t.Context(), func(tx *store.Tx) error {
			if _, ok, err := tx.LastRun(); err != nil || !ok {
				_, err = tx.StartRun("other-boot/pid:[1] 7 7 token", ralph.Limits{}, "")
				return err
			}
			_, err := tx.ExecContext(t.Context(), query)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	set("")
	set(`UPDATE runs SET machine = 'elsewhere'`)
	if out := s.ralph(ralph.ExitUsage, "run"); !strings.Contains(out, "on elsewhere: for several machines set merge.push") {
		t.Errorf("got %s", out)
	}
	set(`UPDATE runs SET lease_until = '2000-01-01T00:00:00.000Z'`) // it is lost: this machine alone needs no remote
	s.ralph(0, "run")
}

// dies runs the first machine until it has handed a change over, and is killed.
func (f *fleet) dies() {
	t := f.t
	t.Helper()
	pid := filepath.Join(t.TempDir(), "pid")
	hook := fmt.Sprintf("#!/bin/sh\ngrep -q refs/ralph/changes/ && test -e '%s' && kill -9 $(cat '%[1]s') && rm '%[1]s'", pid)
	if err := os.WriteFile(filepath.Join(f.remote, "hooks", "post-receive"), []byte(hook), 0o700); err != nil { //nolint:gosec // git runs it
		t.Fatal(err)
	}
	dies := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ >"$1"; exec ralph run`, "sh", pid)
	dies.Dir, dies.Env = f.machines[0].dir, f.machines[0].env
	if out, err := dies.CombinedOutput(); err == nil || dies.ProcessState.Exited() {
		t.Fatalf("it was not killed: %v\n%s", err, out)
	}
	if n := f.count(`SELECT count(*) FROM sessions WHERE completed_at = '' AND machine = 'm1'`); n != 1 {
		t.Fatalf("it left %d sessions", n)
	}
}

// TestADoneOfKeptWork: a done that a machine handed over before it died includes the work of the task's earlier
// session, even if its own session added nothing.
func TestADoneOfKeptWork(t *testing.T) {
	t.Parallel()
	f := newFleetOf(t, pgtest.New(t), 2, `task *
  when the other half
  done {"summary": "made"}
task *
  write made.txt "made\n"
  partial {"summary": "half", "remaining": "the other half"}
`, "sandbox: off\npermissions: {guards: false}\nverify: ['true']\n")
	f.machines[0].ralph(0, "task", "add", "One")
	f.machines[0].ralph(ralph.ExitLimit, "run", "--max-sessions", "1")
	f.dies()
	f.machines[1].ralph(0, "run")
	f.git("fetch", "-q", "origin")
	if got := f.git("ls-tree", "--name-only", "origin/main", "made.txt"); got != "made.txt\n" {
		t.Errorf("the remote has %q", got)
	}
}

// TestADoneThatWasHandedOver to the remote by a machine that then died is checked by another one, and merged.
func TestADoneThatWasHandedOver(t *testing.T) {
	long(t)
	t.Parallel()
	f := newFleet(t, pgtest.New(t), 2, "0", "")
	f.dies()
	f.away() // nothing is decided then, as the work may be there
	if out := f.machines[1].ralph(ralph.ExitUsage, "machine", "remove", "m1"); !strings.Contains(out, "cannot be reached") ||
		f.count(`SELECT count(*) FROM sessions WHERE completed_at = ''`) != 1 {
		t.Errorf("without the remote: %s", out)
	}
	f.back()
	if _, err := f.db.ExecContext(t.Context(), `UPDATE merge_queue SET wait_until = ''`); err != nil {
		t.Fatal(err)
	}
	var session string
	if err := f.db.QueryRowContext(t.Context(), `SELECT id FROM sessions WHERE completed_at = ''`).Scan(&session); err != nil {
		t.Fatal(err)
	}
	f.machines[1].git("update-ref", ralph.ChangeRefs+session, "HEAD") // as it was fetched once, and was made anew since
	out := f.machines[1].ralph(0, "run", "--parallel", "2")
	f.wantDone()
	if n := f.count(`SELECT count(*) FROM sessions s JOIN changes c ON c.session_id = s.id
		WHERE c.state = 'merged' AND s.machine = 'm1' AND s.notes LIKE '%another machine checked the change%'`); n != 1 {
		t.Errorf("of what it left %d were merged\n%s", n, out)
	}
}

// away makes the remote one that nobody can reach.
func (f *fleet) away() { f.move(f.remote, f.remote+".away") }

// back reverses away.
func (f *fleet) back() { f.move(f.remote+".away", f.remote) }

func (f *fleet) move(from, to string) {
	f.t.Helper()
	if err := os.Rename(from, to); err != nil {
		f.t.Fatal(err)
	}
}

// TestKeptWorkOfARemoteThatIsAway is waited for: by a machine that knows the branch from earlier, and by one that has never
// seen it, which is not a sign that there is none.
func TestKeptWorkOfARemoteThatIsAway(t *testing.T) {
	long(t)
	t.Parallel()
	for _, seen := range []bool{false, true} {
		t.Run(fmt.Sprintf("seen %t", seen), func(t *testing.T) {
			t.Parallel()
			f := newFleetOf(t, pgtest.New(t), 2, `task First
  write first.txt "made\n"
  done {"summary": "made"}
task Ask
  when red, of course
  run echo red >>ask.txt
  done {"summary": "red"}
task Ask
  write ask.txt "half\n"
  ask {"question": "Which colour?", "blocking": true}
`, "sandbox: off\npermissions: {guards: false}\nverify: ['true']\n")
			here, there := f.machines[0], f.machines[1]
			if seen {
				there.ralph(0, "task", "add", "First")
				there.ralph(0, "run")
			}
			here.ralph(0, "task", "add", "Ask")
			here.ralph(ralph.ExitWaiting, "run")
			there.ralph(0, "answer", fmt.Sprint(f.count(`SELECT max(id) FROM task_comments`)), "red, of course")
			f.away()
			run := there.command("run")
			var out bytes.Buffer
			run.Stdout, run.Stderr = &out, &out
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- run.Wait() }()
			for f.count(`SELECT count(*) FROM runs WHERE ended_at = '' AND state = 'waiting' AND state_reason LIKE '%the remote%'`) == 0 {
				select {
				case err := <-ended:
					t.Fatalf("it ended: %v\n%s", err, out.String())
				case <-time.After(20 * time.Millisecond):
				}
			}
			f.back()
			here.ralph(0, "resume", "--merging")
			if err := <-ended; err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
			if !strings.Contains(out.String(), "a task waits for the remote") {
				t.Errorf("it does not say what it waits for\n%s", out.String())
			}
			f.git("fetch", "-q", "origin")
			if got := f.git("show", "origin/main:ask.txt"); got != "half\nred\n" {
				t.Errorf("the remote has %q\n%s", got, out.String())
			}
			if n := f.count(`SELECT count(*) FROM sessions s JOIN tasks t ON t.id = s.task_id WHERE t.title = 'Ask'`); n != 2 {
				t.Errorf("%d sessions\n%s", n, out.String())
			}
		})
	}
}

// TestALeaseThatLapses expires by the server's clock, even for machines whose clocks differ by hours, and for one with
// the same name. A run does not end while another one works, and work that it handed over is merged.
func TestALeaseThatLapses(t *testing.T) {
	long(t)
	t.Parallel()
	for apart, args := range map[string][]string{"5 hours": {"run", "--daemon"}, "-5 hours": {"run"}} {
		t.Run(apart, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			raw := pgtest.Raw(t, database)
			if _, err := raw.ExecContext(t.Context(), `CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql
				AS 'SELECT pg_catalog.clock_timestamp() + interval ''`+apart+`'''`); err != nil {
				t.Fatal(err)
			}
			f := newFleetOf(t, database+"&search_path=public,pg_catalog", 2, `task *
  write made.txt "made\n"
  done {"summary": "made"}
`, "sandbox: off\npermissions: {guards: false}\nverify: ['true']\n#test: {lease: 5s}\n")
			f.machines[0].ralph(0, "task", "add", "One")
			f.dies()
			if _, err := f.db.ExecContext(t.Context(), `UPDATE runs SET process = 'other-boot/pid:[1] 7 7 token', lease_until = `+
				strings.Replace(databaseClock, "'UTC'", "'UTC' + interval '5 s'", 1)); err != nil {
				t.Fatal(err)
			}
			there := f.machines[1]
			there.env = append(there.env, "RALPH_MACHINE=m1")
			if list := there.ralph(0, "machine", "list"); !strings.Contains(list, "works") {
				t.Errorf("got %s", list)
			}
			run := there.command(args...)
			var out bytes.Buffer
			run.Stdout, run.Stderr = &out, &out
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			if len(args) > 1 { // it ends when it is told
				for f.count(`SELECT count(*) FROM tasks WHERE status <> 'completed'`) > 0 && t.Context().Err() == nil {
					time.Sleep(50 * time.Millisecond)
				}
				there.ralph(0, "stop")
			}
			if err := run.Wait(); (err == nil) != (len(args) == 1) {
				t.Errorf("%v\n%s", err, out.String())
			}
			for what, query := range map[string]string{
				"tasks that are not completed": `SELECT count(*) FROM tasks WHERE status <> 'completed'`,
				"further sessions":             `SELECT count(*) - 1 FROM sessions`,
			} {
				if n := f.count(query); n != 0 {
					t.Errorf("%d %s\n%s", n, what, out.String())
				}
			}
		})
	}
}

// TestPeopleOnAnyMachine: a session's task on one machine can be answered, steered, stopped, shown, retried and undone
// on another one, which names the machine that has its files.
func TestPeopleOnAnyMachine(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	f := newFleetOf(t, pgtest.New(t), 2, `task Ask
  when red, of course
  write ask.txt "red\n"
  done {"summary": "red"}
task Ask
  write ask.txt "half\n"
  ask {"question": "Which colour?", "blocking": true}
task Long
  when hurry
  write long.txt "complete\n"
  done {"summary": "whole"}
task Long
  write long.txt "half\n"
  run touch `+gate+`
turn
  run touch `+gate+`.told
  hang
`, "sandbox: off\npermissions: {guards: false}\nverify: ['true']\n")
	here, there := f.machines[0], f.machines[1]
	wantIn := func(out string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%q is not in\n%s", w, out)
			}
		}
	}
	here.ralph(0, "task", "add", "Ask")
	wantIn(here.ralph(ralph.ExitWaiting, "run"), "1 needs you")
	wantIn(there.ralph(0, "inbox"), "Which colour?")
	wantIn(there.ralph(0, "answer", "1", "red, of course"), "TASK-1")
	wantIn(there.ralph(0, "diff", "1"), "+half")
	there.ralph(0, "run")          // goes on from what the other one has kept
	for _, m := range f.machines { // also the one that has not fetched the other one's merges
		out, err := m.command("doctor").Output() // the tests' server fails it
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) || strings.Contains(string(out), "TASK-1") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	wantIn(here.ralph(0, "diff", "1"), "+red")
	list := here.ralph(0, "session", "list")
	wantIn(list, "on m1: ", "on m2: ")
	theirs, _, _ := strings.Cut(list, " ") // the newest
	wantIn(here.ralph(0, "session", "show", "-v", theirs), ", on m2")
	for _, args := range [][]string{{"log"}, {"log", "-f"}, {"show", "--prompt"}, {"show", "--hidden"}} {
		wantIn(here.ralph(ralph.ExitUsage, slices.Concat([]string{"session"}, args, []string{theirs})...), "is on m2: look at it there")
	}

	here.ralph(0, "task", "add", "Long")
	run := here.command("run")
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	wait := func(path string) {
		t.Helper()
		for {
			if _, err := os.Stat(path); err == nil {
				return
			}
			if t.Context().Err() != nil {
				t.Fatalf("%s does not come\n%s", path, out.String())
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	wait(gate)
	wantIn(there.ralph(0, "status"), " on m1", "TASK-2 ", " on m1, in workspace ")
	watch := there.command("watch")
	var seen bytes.Buffer
	watch.Stdout, watch.Stderr = &seen, &seen
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	there.ralph(0, "comment", "2", "hurry")
	wait(gate + ".told")
	there.ralph(0, "stop", "--now")
	if err := run.Wait(); err == nil || !strings.Contains(out.String(), "stopped by `ralph stop`") {
		t.Errorf("it was not stopped: %v\n%s", err, out.String())
	}
	if err := watch.Wait(); err != nil { // it ends with the run
		t.Error(err)
	}
	wantIn(seen.String(), "TASK-2 Long", "stopped by `ralph stop`")
	wantIn(there.ralph(0, "diff", "2"), "+half")
	wantIn(there.ralph(0, "timeline", "2"), "hurry")
	there.ralph(0, "run")
	d := serveProject(t, here, "127.0.0.1:0", "serve", "--sign-in", "changes")
	response, err := http.Get(d.url + "/tasks/2")
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	wantIn(string(page), "&#43;complete</span>")
	d.stop(t, 0)
	there.ralph(0, "undo", "1")
	here.git("fetch", "-q", "origin")
	wantIn(here.git("log", "--format=%s", "origin/main"), "TASK-1: undo Ask", "TASK-2: Long")
	if got := here.git("ls-tree", "--name-only", "origin/main", "ask.txt", "long.txt"); got != "long.txt\n" {
		t.Errorf("the remote has %q", got)
	}
}

// TestPeopleDecideOnAnyMachine about the work of another machine's sessions: a plan, changes that wait for approval, an
// amendment of a failed task, a permission.
func TestPeopleDecideOnAnyMachine(t *testing.T) {
	t.Parallel()
	f := newFleetOf(t, pgtest.New(t), 2, `task Plan: Say hello
  call plan.task {"name": "english", "title": "Say hello in English", "files": ["en.txt"], "verify": ["test -f en.txt"]}
  call plan.done {"summary": "one"}
task Say hello
  write en.txt "hello\n"
  done {"summary": "said"}
task Approve
  run mkdir -p .github/workflows; echo 'on: push' >.github/workflows/approved.yml
  done {"summary": "a workflow"}
task Reject
  when no workflow
  run rm .github/workflows/rejected.yml; echo x >rejected.txt
  done {"summary": "no workflow"}
task Reject
  run mkdir -p .github/workflows; echo 'on: push' >.github/workflows/rejected.yml
  done {"summary": "another workflow"}
task Build
  when test -f b.txt
  run mv half.txt b.txt
  done {"summary": "b"}
task Build
  run echo half >>half.txt
  call propose_task_amendment {"task_id": 5, "patch": {"contracts": {"verify": ["test -f b.txt"]}}, "rationale": "there is no a.txt"}
  partial {"summary": "half", "remaining": "the rest"}
task Publish
  run echo publish >published.txt
  done {"summary": "published"}
`, "sandbox: off\npermissions: {guards: false, ask: ['Bash(*publish*)']}\nverify: ['true']\nlimits: {attempts: 2}\n")
	here, there := f.machines[0], f.machines[1]
	here.ralph(0, "plan", "Say hello")
	for _, args := range [][]string{{"Approve"}, {"Reject"}, {"Build", "--verify", "test -f a.txt"}} {
		here.ralph(0, slices.Concat([]string{"task", "add"}, args)...)
	}
	here.ralph(ralph.ExitFailed, "run")
	inbox := there.ralph(0, "inbox")
	item := func(pattern string) string {
		t.Helper()
		found := regexp.MustCompile(`(?m)^(\S+) +` + pattern).FindStringSubmatch(inbox)
		if found == nil {
			t.Fatalf("%s does not wait\n%s", pattern, inbox)
		}
		return found[1]
	}
	approved, rejected := item("review TASK-3"), item("review TASK-4")
	if got := there.ralph(0, "inbox", approved); !strings.Contains(got, "+on: push") {
		t.Errorf("it is shown as\n%s", got)
	}
	there.ralph(0, "approve", "PLAN-1")
	there.ralph(0, "approve", approved)
	there.ralph(0, "reject", rejected, "no workflow")
	there.ralph(0, "approve", item("amendment TASK-5"))
	there.ralph(0, "task", "retry", "5")
	there.ralph(0, "run")

	here.ralph(0, "task", "add", "Publish")
	run := here.command("run")
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { inbox = there.ralph(0, "inbox"); return strings.Contains(inbox, "permission TASK-6") })
	there.ralph(0, "approve", item("permission TASK-6"))
	if err := run.Wait(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	f.git("fetch", "-q", "origin")
	want := ".github/workflows/approved.yml\nb.txt\nen.txt\npublished.txt\nrejected.txt\n"
	if got := f.git("diff", "--name-only", "HEAD", "origin/main"); got != want {
		t.Errorf("the remote has\n%s\nwant\n%s", got, want)
	}
}

// TestAWorkersClaimLapsesOnAnotherMachine: a run there gives the task to a session. The returning worker learns that,
// and where its work was saved.
func TestAWorkersClaimLapsesOnAnotherMachine(t *testing.T) {
	t.Parallel()
	f := newFleetOf(t, pgtest.New(t), 2, `task *
  run ls >made.txt
  done {"summary": "made"}
`, "sandbox: off\npermissions: {guards: false}\nverify: ['true']\n")
	here, there := f.machines[0], f.machines[1]
	here.ralph(0, "task", "add", "Silent")
	worker := newClient(t, here.command("mcp", "--profile", "worker", "--tool-names", "underscore", "--name", "silent"))
	dir := worker.takes(`{}`, "You hold TASK-1")
	if err := os.WriteFile(filepath.Join(dir, "silent.txt"), []byte("silent\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.db.ExecContext(t.Context(), `UPDATE tasks SET claim_expires = '2000-01-01T00:00:00.000Z'`); err != nil {
		t.Fatal(err)
	}
	there.ralph(0, "run")
	const done = `{"summary": "made it"}`
	text, refused := worker.call("ralph_signal_done", done)
	kept := regexp.MustCompile(`your claim on TASK-1 is over: it has lapsed.*; your work stays as (refs/ralph/changes/\S+), and`).FindStringSubmatch(text)
	if !refused || kept == nil {
		t.Fatalf("got %t %s", refused, text)
	}
	if got := here.git("show", kept[1]+":silent.txt"); got != "silent\n" {
		t.Errorf("it kept %q", got)
	}
	worker.want("ralph_signal_done", done, "you have not claimed a task", true)
	here.ralph(0, "task", "add", "Next")
	if again := worker.takes(`{}`, "You hold TASK-2"); again != dir {
		t.Errorf("its folder is not used again, but %s", again)
	}
	f.git("fetch", "-q", "origin")
	if got := f.git("ls-tree", "--name-only", "origin/main", "silent.txt", "made.txt"); got != "made.txt\n" {
		t.Errorf("the remote has %q", got)
	}
}
