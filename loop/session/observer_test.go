package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ralph"
	"ralph/internal/pgtest"
	"ralph/loop/agent"
	"ralph/store"
)

func TestPhasesAreObserved(t *testing.T) {
	bash := func(command string) agent.Event { return agent.Event{Kind: agent.Ran, Text: command} }
	for _, tt := range []struct {
		name  string
		event agent.Event
		want  ralph.Phase
	}{
		{"reading", agent.Event{Kind: agent.Read}, ralph.PhaseAnalyzing},
		{"an agent of its own", agent.Event{Kind: agent.Asked}, ralph.PhaseAnalyzing},
		{"editing", agent.Event{Kind: agent.Edited}, ralph.PhaseImplementing},
		{"looking around", bash("ls -la && cat a.go"), ralph.PhaseAnalyzing},
		{"the tests of Go", bash("cd x && go test ./..."), ralph.PhaseTesting},
		{"tests with a variable", bash("CI=1 npm run test -- --watch=false"), ralph.PhaseTesting},
		{"tests in time", bash("timeout 60 pytest -q"), ralph.PhaseTesting},
		{"a test file is no test", bash("cat go test.txt"), ralph.PhaseAnalyzing},
		{"the project's own check", bash("./scripts/ci.sh --fast"), ralph.PhaseTesting},
		{"a commit", bash("git add -A && git commit -m 'go test passes'"), ralph.PhaseCommitting},
		{"a commit elsewhere", bash("git -C sub commit -qm x"), ralph.PhaseCommitting},
		{"a pull request", bash("gh pr create --fill"), ralph.PhaseCommitting},
		{"talk of a commit", bash("echo please git commit"), ralph.PhaseAnalyzing},
		{"a file that the shell writes", bash("cat <<'EOF' > a.go\npackage a\nEOF"), ralph.PhaseImplementing},
		{"a script that is written and not run", bash("cat > ci.sh <<'EOF'\ngo test ./...\ngit commit -m x\nEOF\nchmod +x ci.sh"), ralph.PhaseImplementing},
		{"a script that is written and run", bash("cat > ci.sh <<EOF\nls\nEOF\ngo test ./..."), ralph.PhaseTesting},
		{"a commit whose message is a text", bash("git commit -m \"$(cat <<'EOF'\nAdd x\nEOF\n)\""), ralph.PhaseCommitting},
		{"a word that is read", bash("wc -c <<< EOF\ngo test ./..."), ralph.PhaseTesting},
		{"tests by make in parallel", bash("make -j4 check"), ralph.PhaseTesting},
		{"tests from a folder of programs", bash(".venv/bin/pytest -q; true"), ralph.PhaseTesting},
		{"tests of Gradle", bash("./gradlew test"), ralph.PhaseTesting},
		{"a line that is added", bash("cd x && echo y >> a.txt"), ralph.PhaseImplementing},
		{"an edit in place", bash("sed -i s/a/b/ a.go"), ralph.PhaseImplementing},
		{"an edit by sed that only prints", bash("sed -n 1,5p a.go"), ralph.PhaseAnalyzing},
		{"a pipe into a file", bash("go doc fmt | tee doc.txt"), ralph.PhaseImplementing},
		{"what goes nowhere", bash("cat a.go > /dev/null; ls 2>&1"), ralph.PhaseAnalyzing},
		{"notes that are none of the project's", bash("echo x > /tmp/notes"), ralph.PhaseAnalyzing},
		{"a comparison", bash("awk '$1 > 3' a.txt"), ralph.PhaseAnalyzing},
		{"tests that write a file", bash("go test -json ./... > out.json"), ralph.PhaseTesting},
		{"a signal", agent.Event{Kind: agent.Called, Tool: "signal_done"}, ""},
		{"words", agent.Event{Kind: agent.Said, Text: "go test"}, ""},
	} {
		if got := phaseOf(tt.event, []string{"./scripts/ci.sh"}); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestACheckpointIsDueOnceTheContextIsNearlyFull(t *testing.T) {
	o := newObserver(nil, map[string]int64{"small": 1000}, 80)
	use := func(tokens int64) bool {
		o.event(agent.Event{Kind: agent.Used, Context: tokens}, time.Now())
		_, _, due := o.take()
		return due
	}
	o.event(agent.Event{Kind: agent.Started, Model: "small"}, time.Now())
	o.event(agent.Event{Kind: agent.Said, Text: "half way"}, time.Now())
	if use(799) {
		t.Error("due at 79.9 percent")
	}
	o.event(agent.Event{Kind: agent.Used, Context: 800}, time.Now())
	_, c, due := o.take()
	if !due || c.TokensUsed != 800 || c.TokensLimit != 1000 || c.Note != "half way" {
		t.Errorf("got %t, %+v", due, c)
	}
	if use(900) {
		t.Error("due twice")
	}
	o = newObserver(nil, nil, 80)
	o.event(agent.Event{Kind: agent.Started, Model: "unheard of"}, time.Now())
	if used := ralph.DefaultContextWindow * 79 / 100; use(int64(used)) {
		t.Error("due before 80 percent of what is assumed")
	}
}

func TestObservationsAreTakenOnce(t *testing.T) {
	o := newObserver(nil, nil, 80)
	see := func(kinds ...agent.Kind) (phases []ralph.Phase) {
		for _, kind := range kinds {
			o.event(agent.Event{Kind: kind}, time.Now())
		}
		select {
		case <-o.news:
		default:
			return nil
		}
		list, _, _ := o.take()
		for _, p := range list {
			phases = append(phases, p.phase)
		}
		return phases
	}
	for _, tt := range []struct {
		name  string
		kinds []agent.Kind
		want  []ralph.Phase
	}{
		{"nothing that tells", []agent.Kind{agent.Called}, nil},
		{"reading, then an edit", []agent.Kind{agent.Read, agent.Asked, agent.Edited, agent.Edited}, []ralph.Phase{"analyzing", "implementing"}},
		{"reading later on", []agent.Kind{agent.Read}, nil},
		{"an edit again: something else may have been reported meanwhile", []agent.Kind{agent.Read, agent.Edited}, []ralph.Phase{"implementing"}},
	} {
		if got := see(tt.kinds...); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestObservationsAreStoredAtTheEnd(t *testing.T) {
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := &Session{Parts: Parts{Store: db, Log: slog.New(slog.DiscardHandler)}, observer: newObserver(nil, nil, 80)}
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		id, err := tx.AddTask(ralph.Task{Title: "A"}, "human")
		if err != nil {
			return err
		}
		s.Row, err = tx.StartSession(store.Start{ID: "5e55", Task: id})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	s.observer.event(agent.Event{Kind: agent.Edited}, time.Now())
	ended, end := context.WithCancel(t.Context())
	end()
	s.observed(ended)
	if err := db.View(t.Context(), func(tx *store.Tx) (err error) { s.Row, err = tx.Session(s.Row.ID); return err }); err != nil {
		t.Fatal(err)
	}
	if s.Row.State != ralph.PhaseImplementing {
		t.Errorf("it stands at %s, %+v", s.Row.State, s.Row.History)
	}
}

func TestOnlyPeoplesStopEndsChecks(t *testing.T) {
	for cause, want := range map[Cause]bool{
		timeUp: false, wasIdle: false, runLimit: false, runKilled: false, runStop: true, cancelled: true, contract: true, halted: true,
		filled: false,
	} {
		if got := causes[causeOf(fmt.Errorf("so it was said: %w", cause))]; got.people != want || got.words == "" {
			t.Errorf("%s: %+v", cause, got)
		}
	}
	if len(causes) != 9 {
		t.Errorf("%d causes", len(causes))
	}
}

func TestAnErrorInAVerdictIsShort(t *testing.T) {
	if got := Shortly(errors.New("one\n\ttwo")); got != "one two" {
		t.Errorf("got %q", got)
	}
	for n, want := range map[int]int{300: 300, 301: 299 + len("…")} {
		if got := Shortly(errors.New(strings.Repeat("x", n))); len(got) != want {
			t.Errorf("of %d characters %d are left", n, len(got))
		}
	}
}
