package session

import (
	"context"
	"strings"
	"sync"
	"time"

	"ralph"
	"ralph/internal/lazy"
	"ralph/loop/agent"
	"ralph/store"
)

// An observer tracks an agent's phase and the fill of its context, from the events of the agent's stream. The session's
// watch takes the observations and stores them.
type observer struct {
	verify  []string         // commands that count as testing when they run
	windows map[string]int64 // known context sizes by model
	percent int              // percentage of the context at which a checkpoint is made; 0 means never
	news    chan struct{}    // holds one value if there are new observations

	mu     sync.Mutex
	phases []seenPhase
	begun  bool // a phase was seen
	model  string
	used   int64 // tokens in the context
	words  string
	full   bool // the checkpoint is due
	told   bool // the checkpoint was taken
}

type seenPhase struct {
	phase ralph.Phase
	at    ralph.Time
}

func newObserver(verify []string, windows map[string]int64, percent int) *observer {
	return &observer{verify: verify, windows: windows, percent: percent, news: make(chan struct{}, 1)}
}

// event processes one event. It does not block.
func (o *observer) event(e agent.Event, now time.Time) {
	phase := phaseOf(e, o.verify)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun && phase == ralph.PhaseAnalyzing {
		phase = "" // reading is part of every phase
	}
	if n := len(o.phases); phase != "" && (n == 0 || o.phases[n-1].phase != phase) {
		o.phases, o.begun = append(o.phases, seenPhase{phase, ralph.At(now)}), true
		select {
		case o.news <- struct{}{}:
		default: // already notified
		}
	}
	switch e.Kind {
	case agent.Started:
		o.model = e.Model
	case agent.Said:
		if e.Depth == 0 && strings.TrimSpace(e.Text) != "" {
			o.words = e.Text
		}
	case agent.Used:
		o.used = e.Context
		o.full = o.full || o.percent > 0 && o.used*100 >= o.window()*int64(o.percent)
	}
}

// window returns the size of the model's context in tokens.
func (o *observer) window() int64 {
	if w := o.windows[o.model]; w > 0 {
		return w
	}
	return ralph.DefaultContextWindow
}

// take returns the phases seen since the last call, and the checkpoint if one is due.
func (o *observer) take() (phases []seenPhase, c ralph.Checkpoint, due bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	phases, o.phases = o.phases, nil
	due = o.full && !o.told
	o.told = o.told || due
	c = ralph.Checkpoint{Source: ralph.CheckpointLimit, Note: o.words, TokensUsed: o.used, TokensLimit: o.window()}
	return phases, c, due
}

// context returns the last known fill of the model's context.
func (o *observer) context() (used, limit int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.used, o.window()
}

// observed stores the observations, even if ctx has ended: the observer no longer has them.
func (s *Session) observed(ctx context.Context) {
	phases, checkpoint, due := s.observer.take()
	if len(phases) == 0 && !due {
		return
	}
	err := s.Store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		for _, p := range phases {
			if _, err := tx.ObserveState(s.Row.ID, p.phase, p.at); err != nil {
				return err
			}
		}
		if !due {
			return nil
		}
		checkpoint.SessionID = s.Row.ID
		_, err := tx.AddCheckpoint(checkpoint)
		return err
	})
	if err != nil {
		// Observations do not affect the verdict.
		s.Log.Warn("cannot record what a session is doing", "session", s.Row.ID, "error", err)
	}
}

// testCommands matches commands that run tests, at the start of a command.
var testCommands = lazy.Regexp(
	`(?m)(?:^|[;&|(]|\b(?:time|sudo|npx|env|exec|timeout \S+|uv run|poetry run|bundle exec|xvfb-run)\s)\s*` +
		`(?:[A-Z_]+=\S*\s+)*(?:[\w.~-]*/(?:[\w.-]+/)*)?` +
		`(?:go test|go vet|cargo (?:test|nextest|check|clippy)|(?:npm|pnpm|yarn|bun|deno)(?: run)? test|pytest|` +
		`python3? -m (?:pytest|unittest)|tox|nox|jest|vitest|mocha|make (?:-\S+ )*(?:test|check)|ctest|` +
		`mvn (?:test|verify)|gradlew? (?:test|check)|rspec|rake test|phpunit|dotnet test|mix test|swift test|bats|` +
		`tsc\b|eslint|ruff check|mypy)`)

var commitCommands = lazy.Regexp(`(?m)(?:^|[;&|(])\s*(?:[A-Z_]+=\S*\s+)*` +
	`(?:git(?: -\S+(?: \S+)?)* (?:commit|push|rebase|merge)\b|gh pr (?:create|merge)\b)`)

// changes matches commands that change files, except by redirection.
var changes = lazy.Regexp(`(?m)(?:^|[;&|(])\s*` +
	`(?:sed (?:-\S+ )*-\S*i|perl -\S*i|patch\b|git (?:apply|am|mv|rm|restore|checkout --)\b)`)

// redirections matches the files that printing commands are redirected to.
var redirections = lazy.Regexp(`(?m)(?:^|[;&|(])\s*` +
	`(?:(?:cat|echo|printf)\b[^;&|\n]*?\s>>?|tee\b(?: -\S+)*)\s*["']?([^\s&>"']+)`)

// changesFiles reports whether a command visibly changes files.
func changesFiles(command string) bool {
	if changes().MatchString(command) {
		return true
	}
	for _, m := range redirections().FindAllStringSubmatch(command, -1) {
		if file := m[1]; !strings.HasPrefix(file, "/dev/") && !strings.HasPrefix(file, "/tmp/") {
			return true
		}
	}
	return false
}

// phaseOf returns the phase that an event belongs to; "" for none.
func phaseOf(e agent.Event, verify []string) ralph.Phase {
	switch e.Kind {
	case agent.Read, agent.Asked:
		return ralph.PhaseAnalyzing
	case agent.Edited:
		return ralph.PhaseImplementing
	case agent.Ran:
		return phaseOfCommand(e.Text, verify)
	}
	return ""
}

// document matches the start of a here-document.
var document = lazy.Regexp(`(?:^|[^<])<<-?\s*\\?["']?([A-Za-z_]\w*)`)

// withoutDocuments removes here-documents from a command: a script that is
// written to a file is not run.
func withoutDocuments(command string) string {
	var b strings.Builder
	end := ""
	for line := range strings.Lines(command) {
		if end != "" {
			if strings.TrimSpace(line) == end {
				end = ""
			}
			continue
		}
		b.WriteString(line)
		if m := document().FindStringSubmatch(line); m != nil {
			end = m[1]
		}
	}
	return b.String()
}

func phaseOfCommand(command string, verify []string) ralph.Phase {
	command = withoutDocuments(command)
	for _, v := range verify {
		if strings.Contains(command, strings.TrimSpace(v)) {
			return ralph.PhaseTesting
		}
	}
	switch {
	case commitCommands().MatchString(command):
		return ralph.PhaseCommitting
	case testCommands().MatchString(command):
		return ralph.PhaseTesting
	case changesFiles(command):
		return ralph.PhaseImplementing
	}
	return ralph.PhaseAnalyzing
}
