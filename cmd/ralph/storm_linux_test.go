package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ralph"
	"ralph/internal/pgtest"
)

// A network is a namespace of the kernel's, which is gone with its last process when the test has ended.
type network struct{ at string }

func newNetwork(t *testing.T) network {
	t.Helper()
	var file *os.File
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with this function
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			file, err = os.Open("/proc/thread-self/ns/net")
		}
		made <- err
	}()
	if err := <-made; err != nil {
		t.Skipf("skipped: no network of its own for a machine: %v", err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return network{fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd())}
}

// launch starts a command in the network.
func (n network) launch(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer own.Close()
	other, err := os.Open(n.at)
	if err != nil {
		return err
	}
	defer other.Close()
	if err = unix.Setns(int(other.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	err = cmd.Start()
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
		panic(back) // the thread would be another test's next
	}
	return err
}

// ip configures the network.
func (n network) ip(t *testing.T, args string) {
	t.Helper()
	var out strings.Builder
	cmd := exec.CommandContext(t.Context(), "ip", strings.Fields(args)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := n.launch(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		t.Fatalf("ip %s: %v %s", args, err, out.String())
	}
}

// hubAddress is where the database and the remote of a storm are.
const hubAddress = "10.77.0.1"

// A cluster is a fleet each of whose machines has a network and processes of its own. A hub with the database and the
// remote connects them.
type cluster struct {
	*fleet
	hub    network
	server *pgtest.Server
	nodes  []*node
	began  string // the target's commit at first
}

// A node is a machine of a cluster.
type node struct {
	*scriptedProject
	net    network
	number int
	log    *os.File
	cmd    *exec.Cmd
	inside *os.File      // the namespace of its processes
	ended  chan struct{} // closed when the run has ended
}

// stormLease is how long leases last in a storm.
const stormLease = 5 * time.Second

// newStorm makes one with machines that do not run yet.
func newCluster(t *testing.T, machines int, sleep string) *cluster {
	t.Helper()
	for _, program := range []string{"ip", "unshare", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("skipped: %v", err)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("skipped: only root can give machines networks of their own")
	}
	s := &cluster{hub: newNetwork(t)}
	s.hub.ip(t, "link set lo up")
	s.hub.ip(t, "link add hub type bridge")
	s.hub.ip(t, "addr add "+hubAddress+"/24 dev hub")
	s.hub.ip(t, "link set hub up")
	s.server = pgtest.Start(t, hubAddress, s.hub.launch)
	s.fleet = newFleet(t, strings.Replace(s.server.URL, "/postgres?", "/ralph?", 1), machines, sleep,
		fmt.Sprintf("#test: {lease: %s}\n", stormLease)+manyKills)
	s.began = strings.TrimSpace(s.git("rev-parse", "HEAD"))
	s.serve()
	s.note()
	for i, m := range s.machines {
		n := &node{scriptedProject: m, number: i + 1, net: newNetwork(t), ended: make(chan struct{})}
		close(n.ended)
		n.env = append(n.env, "RALPH_DATABASE=postgres://ralph@"+hubAddress+"/ralph?sslmode=disable")
		n.git("remote", "set-url", "origin", "git://"+hubAddress+"/"+filepath.Base(s.remote))
		s.hub.ip(t, fmt.Sprintf("link add port%d type veth peer name eth0 netns %s", n.number, n.net.at))
		s.hub.ip(t, fmt.Sprintf("link set port%d master hub up", n.number))
		n.net.ip(t, "link set lo up")
		n.net.ip(t, fmt.Sprintf("addr add 10.77.0.%d/24 dev eth0", 10+n.number))
		n.net.ip(t, "link set eth0 up")
		var err error
		if n.log, err = os.Create(filepath.Join(t.TempDir(), "log")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := n.log.Close(); err != nil {
				t.Error(err)
			}
		})
		s.nodes = append(s.nodes, n)
	}
	return s
}

// serve has the remote served to the machines, and waits until it is.
func (s *cluster) serve() {
	t := s.t
	t.Helper()
	daemon := exec.CommandContext(t.Context(), "git", "daemon", "--export-all", "--enable=receive-pack", "--reuseaddr",
		"--listen="+hubAddress, "--base-path="+filepath.Dir(s.remote), filepath.Dir(s.remote))
	daemon.Env, daemon.SysProcAttr = s.env, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	daemon.Cancel = func() error { return syscall.Kill(-daemon.Process.Pid, syscall.SIGKILL) }
	if err := s.hub.launch(daemon); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Wait() }) // it was killed
	for {
		look := exec.CommandContext(t.Context(), "git", "ls-remote", "git://"+hubAddress+"/"+filepath.Base(s.remote))
		err := s.hub.launch(look)
		if err == nil {
			err = look.Wait()
		}
		if err == nil {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// run starts the run of a machine.
func (n *node) run() {
	n.t.Helper()
	n.cmd = exec.CommandContext(n.t.Context(), "unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
		"ralph", "run", "--parallel", "4")
	n.cmd.Dir, n.cmd.Env, n.cmd.Stdout, n.cmd.Stderr = n.dir, n.env, n.log, n.log
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.net.launch(n.cmd); err != nil {
		n.t.Fatal(err)
	}
	n.inside = nil
	own, err := os.Readlink("/proc/self/ns/pid")
	for err == nil && n.inside == nil { // until unshare has made it, and its first process
		made, oerr := os.Open(fmt.Sprintf("/proc/%d/ns/pid_for_children", n.cmd.Process.Pid))
		if oerr != nil {
			continue
		}
		if n.inside = made; n.namespace() == own {
			err, n.inside = made.Close(), nil
		}
	}
	if err != nil {
		n.t.Fatal(err)
	}
	inside := n.inside // open until the end, so that no later one has its number
	n.t.Cleanup(func() {
		if err := inside.Close(); err != nil {
			n.t.Error(err)
		}
	})
	ended, cmd := make(chan struct{}), n.cmd
	n.ended = ended
	go func() { _ = cmd.Wait(); close(ended) }() // its exit status says it
}

// namespace names the one that the machine's processes are in.
func (n *node) namespace() string {
	n.t.Helper()
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", n.inside.Fd()))
	if err != nil {
		n.t.Fatal(err)
	}
	return name
}

// begin starts the runs of all machines.
func (s *cluster) begin() {
	for _, n := range s.nodes {
		n.run()
	}
}

// runs reports whether the machine's run has not ended yet.
func (n *node) runs() bool {
	select {
	case <-n.ended:
		return false
	default:
		return true
	}
}

// processes returns the machine's processes: its run, and all that it has started.
func (n *node) processes() (list []int) {
	n.t.Helper()
	inside := n.namespace()
	links, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	if err != nil {
		n.t.Fatal(err)
	}
	for _, link := range links {
		if in, err := os.Readlink(link); err == nil && in == inside {
			pid, err := strconv.Atoi(strings.Split(link, "/")[2])
			if err != nil {
				n.t.Fatal(err)
			}
			list = append(list, pid)
		}
	}
	return list
}

// kill ends the machine at once, and all of its processes.
func (n *node) kill() {
	n.t.Helper()
	if err := n.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		n.t.Fatal(err)
	}
	<-n.ended
	for len(n.processes()) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
}

// signal sends a signal to all processes of the machine, until there are no others.
func (n *node) signal(sig syscall.Signal) {
	n.t.Helper()
	for had := []int{}; ; {
		list := n.processes()
		if slices.Equal(list, had) {
			return
		}
		for _, pid := range list {
			if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
				n.t.Fatal(err)
			}
		}
		had = list
	}
}

// output returns the output of the machine's runs.
func (n *node) output() string {
	n.t.Helper()
	text, err := os.ReadFile(n.log.Name())
	if err != nil {
		n.t.Fatal(err)
	}
	return string(text)
}

// until waits until something is so, or no other machine runs than those given.
func (s *cluster) until(is func() bool, but ...*node) {
	for !is() && slices.ContainsFunc(s.nodes, func(n *node) bool { return n.runs() && !slices.Contains(but, n) }) {
		time.Sleep(50 * time.Millisecond)
	}
}

// Queries of machines that do something.
const (
	works  = `SELECT count(*) FROM sessions WHERE completed_at = '' AND `
	merges = `SELECT count(*) FROM leases WHERE name = 'merge' AND `
)

// busy waits until a machine does something, the given one if it does; nil if none will.
func (s *cluster) busy(what string, first int) (found *node) {
	s.t.Helper()
	s.until(func() bool {
		for i := range s.nodes {
			n := s.nodes[(first+i)%len(s.nodes)]
			if n.runs() && s.count(n.of(what)) > 0 {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

// of narrows a query to the machine's rows.
func (n *node) of(query string) string { return fmt.Sprintf("%smachine = 'm%d'", query, n.number) }

// lost waits until the lease of a machine has lapsed and the others have decided on its sessions, or have ended.
func (s *cluster) lost(n *node) {
	s.t.Helper()
	s.until(func() bool {
		return s.count(n.of(`SELECT count(*) FROM runs WHERE ended_at = '' AND lease_until > `+databaseClock+` AND `))+
			s.count(n.of(works)) == 0
	}, n)
}

// faults are the events of a storm on a machine.
var faults = map[string]func(s *cluster, n *node){
	"kill": func(s *cluster, n *node) {
		n.kill()
		s.count(`SELECT 1`) // a run that begins needs the database, until it has said what it will do
		said := len(n.output())
		n.run()
		for n.runs() && !strings.Contains(n.output()[said:], "verification: ") {
			time.Sleep(50 * time.Millisecond)
		}
	},
	"freeze": func(s *cluster, n *node) {
		n.signal(syscall.SIGSTOP)
		s.lost(n)
		n.signal(syscall.SIGCONT)
	},
	"restart": func(s *cluster, _ *node) { s.restart(0) },
	"outage":  func(s *cluster, _ *node) { s.restart(2 * stormLease) },
	"cut": func(s *cluster, n *node) {
		s.hub.ip(s.t, fmt.Sprintf("link set port%d down", n.number))
		s.lost(n)
		s.hub.ip(s.t, fmt.Sprintf("link set port%d up", n.number))
	},
}

// restart kills the database's server, and starts it after a while.
func (s *cluster) restart(after time.Duration) {
	s.t.Helper()
	if err := s.server.Restart(after); err != nil {
		s.t.Fatal(err)
	}
}

// finish has the machines work until nothing is left to do, or merging is paused, which only a person ends.
func (s *cluster) finish() {
	s.t.Helper()
	for {
		for _, n := range s.nodes {
			<-n.ended
			switch status := n.cmd.ProcessState.ExitCode(); status {
			case ralph.ExitOK, ralph.ExitWaiting:
			default:
				s.t.Errorf("machine %d: exit status %d", n.number, status)
			}
		}
		if s.t.Failed() || s.count(`SELECT count(*) FROM tasks WHERE status <> 'completed'`) == 0 {
			return
		}
		if s.count(`SELECT count(*) FROM merge_queue WHERE paused <> ''`) > 0 {
			s.t.Error(s.ralph(0, "status"))
			return
		}
		s.retryLost()
		s.begin()
	}
}

// A grant is one change of the leases, as the database saw it.
type grant struct{ at, op, name, process, until string }

// note has the database note each change of its leases, and each commit that is about to become the target's, which is
// one that was verified.
func (s *cluster) note() {
	s.t.Helper()
	if _, err := s.db.ExecContext(s.t.Context(), `
		CREATE TABLE grants (id BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY, at TEXT, op TEXT, name TEXT, process TEXT, until TEXT);
		CREATE FUNCTION note_grant() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF TG_OP = 'DELETE' THEN
				INSERT INTO grants (at, op, name, process, until) VALUES (`+databaseClock+`, TG_OP, OLD.name, OLD.process, OLD.until);
			ELSE
				INSERT INTO grants (at, op, name, process, until) VALUES (`+databaseClock+`, TG_OP, NEW.name, NEW.process, NEW.until);
			END IF;
			RETURN NULL;
		END $$;
		CREATE TRIGGER grants AFTER INSERT OR UPDATE OR DELETE ON leases FOR EACH ROW EXECUTE FUNCTION note_grant();
		CREATE TABLE verified (id TEXT);
		CREATE FUNCTION note_verified() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO verified VALUES (NEW.to_commit);
			RETURN NULL;
		END $$;
		CREATE TRIGGER verified AFTER UPDATE OF to_commit ON changes FOR EACH ROW EXECUTE FUNCTION note_verified()`); err != nil {
		s.t.Fatal(err)
	}
}

func (s *cluster) grants() (list []grant) {
	s.t.Helper()
	rows, err := s.db.QueryContext(s.t.Context(), `SELECT at, op, name, process, until FROM grants ORDER BY id`)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() {
		if err := rows.Close(); err != nil {
			s.t.Error(err)
		}
	}()
	for rows.Next() {
		var g grant
		if err := rows.Scan(&g.at, &g.op, &g.name, &g.process, &g.until); err != nil {
			s.t.Fatal(err)
		}
		list = append(list, g)
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return list
}

// heldTwice returns the grants of leases that another process still had.
func heldTwice(list []grant) (found []string) {
	has := map[string]grant{}
	for _, g := range list {
		by, held := has[g.name]
		switch {
		case held && by.process != g.process && g.at < by.until:
			found = append(found, fmt.Sprintf("%s %s: %q of %s, though %s has it until %s",
				g.at, g.op, g.name, g.process, by.process, by.until))
		case g.op == "DELETE":
			delete(has, g.name)
			continue
		}
		has[g.name] = g
	}
	return found
}

func TestHeldTwice(t *testing.T) {
	take := func(at, process, until string) grant { return grant{at, "INSERT", "merge", process, until} }
	for name, tt := range map[string]struct {
		list []grant
		n    int
	}{
		"one after the other":   {[]grant{take("1", "a", "5"), {"2", "DELETE", "merge", "a", "5"}, take("3", "b", "8")}, 0},
		"renewed":               {[]grant{take("1", "a", "5"), {"2", "UPDATE", "merge", "a", "6"}}, 0},
		"lapsed":                {[]grant{take("1", "a", "5"), take("5", "b", "9")}, 0},
		"two leases":            {[]grant{take("1", "a", "5"), {"2", "INSERT", "janitor", "b", "6"}}, 0},
		"before it has ended":   {[]grant{take("1", "a", "5"), take("4", "b", "9")}, 1},
		"renewed, and taken":    {[]grant{take("1", "a", "5"), {"4", "UPDATE", "merge", "a", "8"}, take("6", "b", "9")}, 1},
		"given back by another": {[]grant{take("1", "a", "5"), {"2", "DELETE", "merge", "b", "5"}}, 1},
	} {
		if found := heldTwice(tt.list); len(found) != tt.n {
			t.Errorf("%s: %q", name, found)
		}
	}
}

// weathered checks the state after a storm.
func (s *cluster) weathered() {
	s.t.Helper()
	s.wantDone()
	for what, query := range map[string]string{
		"sessions of a task at one time": `SELECT count(*) FROM sessions a JOIN sessions b ON a.id < b.id AND a.task_id = b.task_id
			AND a.started_at < b.completed_at AND b.started_at < a.completed_at`,
		"runs whose sessions' money is not theirs": `SELECT count(*) FROM runs r
			WHERE abs(r.cost_usd - (SELECT coalesce(sum(cost_usd), 0) FROM sessions s WHERE s.run_id = r.id)) > 1e-6`,
	} {
		if n := s.count(query); n != 0 {
			s.t.Errorf("%d %s", n, what)
		}
	}
	for _, found := range heldTwice(s.grants()) {
		s.t.Errorf("held twice: %s", found)
	}
	for commit := range strings.FieldsSeq(s.git("log", "--first-parent", "--format=%H", s.began+"..origin/main")) {
		if s.count(`SELECT count(*) FROM verified WHERE id = '`+commit+`'`) == 0 {
			s.t.Errorf("%s of the target was not verified", commit)
		}
	}
	for _, n := range s.nodes {
		if list := n.processes(); len(list) > 0 {
			s.t.Errorf("machine %d has processes: %v", n.number, list)
		}
		wantDeserted(s.t, n.dir)
		wantDeserted(s.t, n.state())
	}
	if s.t.Failed() {
		s.t.Log(s.ralph(0, "task", "list", "--all"), s.ralph(0, "session", "list"))
		for _, n := range s.nodes {
			s.t.Logf("machine %d:\n%s", n.number, n.output())
		}
	}
}

// storm does one to a machine that does something.
func (s *cluster) storm(fault, what string, first int) {
	s.t.Helper()
	n := s.busy(what, first)
	if n == nil {
		s.t.Logf("%s: all is done", fault)
		return
	}
	began := time.Now()
	faults[fault](s, n)
	s.t.Logf("%s: machine %d, %s, when %d tasks were merged", fault, n.number, time.Since(began).Round(time.Second),
		s.count(`SELECT count(*) FROM changes WHERE state = 'merged'`))
}

// TestStormOfMachines: three machines, each in a network of its own, are killed, frozen until they are taken for lost, and
// cut off, and the database's server is killed: every task is completed once, and nothing is left. RALPH_TEST_STORMS says
// how often it is done, with 62 tasks each and by random seeds, in `make storm`.
func TestStormOfMachines(t *testing.T) {
	long(t)
	t.Parallel()
	storms := testNumber(t, "RALPH_TEST_STORMS", 0)
	if storms == 0 {
		s := newCluster(t, 3, "1")
		s.begin()
		for i, fault := range []string{"kill", "freeze", "restart", "cut"} {
			s.storm(fault, works, i)
		}
		s.finish()
		s.weathered()
	}
	random := chance(t)
	for i := range storms {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := newCluster(t, 3, "1")
			for s.tasks < 60 {
				s.add()
			}
			s.begin()
			for range 10 {
				of := func(list []string) string { return list[random.IntN(len(list))] }
				s.storm(of(slices.Sorted(maps.Keys(faults))), of([]string{works, merges}), random.IntN(len(s.nodes)))
				time.Sleep(time.Duration(random.Int64N(int64(5 * time.Second))))
			}
			s.finish()
			s.weathered()
		})
	}
}

// TestMachinesAddUp measures how much faster three machines are than one if tasks wait for an agent, for
// RALPH_TEST_WAIT seconds. Both work at the same time, so that other load of the computer is the same for them.
func TestMachinesAddUp(t *testing.T) {
	wait := os.Getenv("RALPH_TEST_WAIT")
	if wait == "" {
		t.Skip("skipped: RALPH_TEST_WAIT is not set")
	}
	took := map[int]time.Duration{}
	var clusters [4]*cluster
	for _, machines := range []int{1, 3} {
		s := newCluster(t, machines, wait)
		for s.tasks < 60 {
			s.add()
		}
		clusters[machines] = s
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	for machines, s := range clusters {
		if s == nil {
			continue
		}
		began := time.Now()
		s.begin()
		work.Go(func() {
			s.until(func() bool { return false })
			mu.Lock()
			defer mu.Unlock()
			took[machines] = time.Since(began)
			t.Logf("%d tasks by %d machines: %s", s.tasks, machines, took[machines].Round(time.Second))
		})
	}
	work.Wait()
	for _, s := range clusters {
		if s != nil {
			s.finish()
			s.weathered()
		}
	}
	t.Logf("%.2f times as fast", took[1].Seconds()/took[3].Seconds())
}
