package kinds_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ralph"
	"ralph/loop/agent"
	"ralph/loop/agent/acp"
	"ralph/loop/agent/codex"
	"ralph/loop/agent/command"
	"ralph/loop/agent/process"
)

// fakeAgent names the kind and the habit of the agent that this test binary is.
const fakeAgent = "FAKE_AGENT"

func TestMain(m *testing.M) {
	if kind, habit, ok := strings.Cut(os.Getenv(fakeAgent), "/"); ok {
		if slices.Contains(os.Args, "--version") {
			fmt.Println("fake 1.2.3")
			os.Exit(0)
		}
		for _, tt := range wrongs {
			if tt.name == habit {
				os.Exit(tt.does(&fake{kind: kind, in: bufio.NewReader(os.Stdin), out: bufio.NewWriter(os.Stdout)}))
			}
		}
		os.Exit(99)
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// A fake is an agent in the middle of doing something wrong.
type fake struct {
	kind string
	in   *bufio.Reader
	out  *bufio.Writer
	id   json.RawMessage // of the prompt, or number of the turn
	turn int
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Error  *struct{ Code int }
	Result struct{ Outcome struct{ Outcome string } }
}

func (f *fake) say(format string, args ...any) {
	fmt.Fprintf(f.out, format+"\n", args...)
	if err := f.out.Flush(); err != nil {
		os.Exit(96)
	}
}

func (f *fake) read() (m message) {
	line, err := f.in.ReadBytes('\n')
	if err != nil {
		os.Exit(0) // the end of the conversation
	}
	if err := json.Unmarshal(line, &m); err != nil {
		os.Exit(98)
	}
	return m
}

// begin comes to the next turn.
func (f *fake) begin() {
	for f.kind != "command" {
		m := f.read()
		switch m.Method {
		case "initialize":
			f.say(`{"id":%s,"result":{"protocolVersion":1,"agentInfo":{"name":"fake","version":"1"}}}`, m.ID)
		case "session/new":
			f.say(`{"id":%s,"result":{"sessionId":"1"}}`, m.ID)
		case "thread/start":
			f.say(`{"id":%s,"result":{"thread":{"id":"t"}}}`, m.ID)
			f.say(`{"method":"thread/started","params":{"thread":{"id":"t","model":"m"}}}`)
		case "session/prompt":
			f.id = m.ID
			return
		case "turn/start":
			f.turn++
			f.say(`{"id":%s,"result":{"turn":{"id":"%d"}}}`, m.ID, f.turn)
			return
		}
	}
	f.kind = "began"
}

// works says something, as a part of a turn.
func (f *fake) works(said string) {
	switch f.kind {
	case "acp":
		f.say(`{"method":"session/update","params":{"sessionId":"1","update":{"sessionUpdate":"tool_call","toolCallId":%q,"title":"t","kind":"execute"}}}`, said)
		f.say(`{"method":"session/update","params":{"sessionId":"1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}`, said)
	case "codex":
		f.say(`{"method":"item/started","params":{"threadId":"t","item":{"type":"commandExecution","id":%q}}}`, said)
		f.say(`{"method":"item/completed","params":{"threadId":"t","item":{"type":"agentMessage","text":%q}}}`, said)
	default:
		f.say("%s", said)
	}
}

// ends ends the turn.
func (f *fake) ends() {
	switch f.kind {
	case "acp":
		f.say(`{"id":%s,"result":{"stopReason":"end_turn"}}`, f.id)
	case "codex":
		f.say(`{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"%d","status":"completed"}}}`, f.turn)
	}
}

// stays until its input is closed.
func (f *fake) stays() int {
	if f.kind != "acp" && f.kind != "codex" {
		return 0
	}
	for {
		f.read()
	}
}

const mib = 1 << 20

// wrongs are the ways to speak a protocol wrongly, or not at all.
var wrongs = []struct {
	name   string
	kinds  string // that have it; "" is all
	does   func(f *fake) int
	ending ralph.Ending
	says   string // in the reason
	words  string // the last ones
	stop   bool   // ralph stops it when it has said something
	lacks  bool   // ralph's tools
	slow   bool   // it takes longer to begin than it may
	more   bool   // another turn
	large  bool   // it prints so much that it goes alone: memory is measured
}{
	{name: "half a message", does: func(f *fake) int {
		f.begin()
		f.works("one")
		f.say(`{"method":"session/upd`)
		f.say(`]}` + "\x00\xff")
		f.works("two")
		f.ends()
		return f.stays()
	}, ending: ralph.Finished, words: "two"},
	{name: "a line of 64 MiB", large: true, does: func(f *fake) int {
		f.begin()
		f.works(strings.Repeat("x", 64*mib))
		f.works("two")
		f.ends()
		return f.stays()
	}, ending: ralph.Finished, words: "two"},
	{name: "a line of 64 MiB that is no text", large: true, does: func(f *fake) int {
		f.begin()
		f.works("one")
		f.say(`{"id":1,"result":[%s1]}`, strings.Repeat("1,", 32*mib))
		f.works("two")
		f.ends()
		return f.stays()
	}, ending: ralph.Finished, words: "two"},
	{name: "64 MiB without an end", large: true, does: func(f *fake) int {
		f.begin()
		f.works("one")
		fmt.Print(strings.Repeat(`{"a":`, 64*mib/5))
		return 3
	}, ending: ralph.Lost, says: "exited with status 3"},
	{name: "methods that nobody knows", kinds: "acp codex", does: func(f *fake) int {
		f.begin()
		f.works("one")
		f.say(`{"method":"no/such/thing","params":[1]}`)
		f.say(`{"id":"x","method":"fs/write_text_file","params":{}}`)
		if m := f.read(); string(m.ID) != `"x"` || m.Error == nil || m.Error.Code != -32601 {
			return 97
		}
		f.works("two")
		f.ends()
		return f.stays()
	}, ending: ralph.Finished, words: "two"},
	{name: "no answer to the first request", kinds: "acp codex", does: func(f *fake) int {
		f.works("one")
		return f.stays()
	}, ending: ralph.Interrupted, says: "stopped by ralph", stop: true},
	{name: "no beginning", kinds: "acp codex", slow: true, does: func(f *fake) int { return f.stays() }, ending: ralph.NoWork, says: "does not begin: it was not ready after 100ms"},
	{name: "no end of a turn", does: func(f *fake) int {
		f.begin()
		f.works("one")
		select {}
	}, ending: ralph.Interrupted, says: "stopped by ralph", stop: true},
	{name: "no end of a turn, and no tools", kinds: "acp codex", does: func(f *fake) int {
		f.begin()
		f.works("one")
		return f.stays()
	}, ending: ralph.MCPFailed, says: "was not told ralph's tools", lacks: true},
	{name: "an end without tools", kinds: "acp codex", does: func(f *fake) int {
		f.begin()
		f.works("I have all tools of ralph's")
		f.ends()
		return f.stays()
	}, ending: ralph.MCPFailed, says: "was not told ralph's tools", lacks: true},
	{name: "two answers", kinds: "acp codex", more: true, does: func(f *fake) int {
		f.begin()
		f.works("one")
		f.ends()
		f.ends()
		f.begin()
		f.ends2()
		f.works("two")
		f.ends()
		return f.stays()
	}, ending: ralph.Finished, words: "two"},
	{name: "an answer to nobody", kinds: "acp codex", does: func(f *fake) int {
		f.begin()
		f.works("one")
		f.say(`{"id":4711,"result":{"stopReason":"end_turn"}}`)
		f.say(`{"id":{"a":1},"error":"no"}`)
		f.works("two")
		f.ends()
		return f.stays()
	}, ending: ralph.Finished, words: "two"},
	{name: "another session", kinds: "acp codex", does: func(f *fake) int {
		f.begin()
		f.works("one")
		f.say(`{"method":"turn/started","params":{"threadId":"u","turn":{"id":"9"}}}`)
		f.say(`{"method":"turn/completed","params":{"threadId":"u","turn":{"id":"9","status":"failed","error":{"message":"no","codexErrorInfo":"unauthorized"}}}}`)
		f.say(`{"method":"session/update","params":{"sessionId":"2","update":{"sessionUpdate":"tool_call","toolCallId":"9"}}}`)
		f.works("two")
		f.ends()
		return f.stays()
	}, ending: ralph.Finished, words: "two"},
	{name: "gone in the middle", does: func(f *fake) int {
		f.begin()
		f.works("one")
		return 3
	}, ending: ralph.Lost, says: "exited with status 3"},
	{name: "gone before it began", kinds: "acp codex", does: func(*fake) int { return 3 }, ending: ralph.NoWork, says: "exited with status 3"},
	{name: "no output any more", does: func(f *fake) int {
		f.begin()
		f.works("one")
		os.Stdout.Close()
		select {}
	}, ending: ralph.Lost, kinds: "acp codex"},
	{name: "a question after the turn", kinds: "acp", more: true, does: func(f *fake) int {
		f.begin()
		f.works("one")
		f.ends()
		f.id = nil
		f.say(`{"id":0,"method":"session/request_permission","params":{"sessionId":"1","toolCall":{"toolCallId":"q","kind":"execute","rawInput":{"command":"x"}},"options":[]}}`)
		var m message
		for m = f.read(); m.Method != ""; m = f.read() { // the next turn may have begun
			f.id = m.ID
		}
		if m.Result.Outcome.Outcome != "cancelled" { // there was nothing to choose from
			return 97
		}
		if f.id == nil {
			f.begin()
		}
		f.works("two")
		f.ends()
		return f.stays()
	}, ending: ralph.Finished, words: "two"},
	{name: "questions and no ear", kinds: "acp codex", does: func(f *fake) int {
		f.begin()
		f.works("one")
		for i := range 10000 {
			fmt.Fprintf(f.out, `{"id":%d,"method":"session/request_permission","params":{"toolCall":{"toolCallId":"%d","kind":"edit"}}}`+"\n", i, i)
		}
		f.works("two")
		f.ends()
		select {}
	}, ending: ralph.Finished, words: "two"},
	{name: "a flood", large: true, does: func(f *fake) int {
		f.begin()
		for i := range 10000 {
			f.works(fmt.Sprint("word ", i))
		}
		f.works("two")
		f.ends()
		return f.stays()
	}, ending: ralph.Finished, words: "two"},
	{name: "many long names", kinds: "acp", large: true, does: func(f *fake) int {
		f.begin()
		long := strings.Repeat("x", mib)
		for i := range 64 {
			f.say(`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"%d%s","title":%[2]q,"kind":"other"}}}`, i, long)
		}
		f.works("two")
		f.ends()
		return f.stays()
	}, ending: ralph.Finished, words: "two"},
}

// ends2 ends the turn before this one once more.
func (f *fake) ends2() {
	if f.kind == "codex" {
		f.turn--
		f.ends()
		f.turn++
	}
}

// maxGrowth is how much memory a session may take for any output of its agent.
const maxGrowth = 96 * mib

// TestAgentsThatSpeakWrongly: nothing that an agent says, or does not say, makes ralph hang, fail,
// grow or believe it.
func TestAgentsThatSpeakWrongly(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	before := int64(memory())
	for _, tt := range wrongs {
		for _, kind := range []string{"acp", "codex", "command"} {
			if tt.kinds != "" && !strings.Contains(tt.kinds, kind) {
				continue
			}
			t.Run(kind+"/"+tt.name, func(t *testing.T) {
				if !tt.large {
					t.Parallel()
				}
				o := process.Options{
					Command: []string{self}, MCPCommand: []string{self, "mcp"}, Environ: os.Environ(), Env: map[string]string{fakeAgent: kind + "/" + tt.name},
					ExitGrace: 100 * time.Millisecond, KillGrace: time.Second, MaxTranscript: 4 * mib,
				}
				if tt.slow {
					o.StartWait = 100 * time.Millisecond
				}
				listed := make(chan struct{})
				if tt.lacks {
					o.ToolsWait = 100 * time.Millisecond
				} else {
					close(listed)
				}
				var a agent.Agent
				switch kind {
				case "acp":
					a = acp.New(acp.Options{Options: o, Profile: acp.Profiles[0]})
				case "codex":
					a = codex.New(codex.Options{Options: o})
				default:
					a = command.New(o)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				turns := 0
				task := agent.Assignment{
					SessionID: "1b4e28ba-2fa1-41d2-883f-0016d3cca427", Prompt: "do it", Dir: t.TempDir(), LogDir: t.TempDir(),
					Channel: agent.Channel{Listed: listed},
					Seen: func(e agent.Event) {
						if tt.stop && e.Kind != agent.Started {
							cancel()
						}
					},
					TurnEnded: func(context.Context, agent.Turn) agent.Answer {
						if turns++; tt.more && turns == 1 {
							return agent.Say("go on")
						}
						return agent.Answer{}
					},
				}
				r, err := a.Work(ctx, task)
				if grown := int64(memory()) - before; grown > maxGrowth {
					t.Errorf("it took %d MiB", grown/mib)
				}
				if err != nil {
					t.Error(err)
				}
				if r.Ending != tt.ending || !strings.Contains(r.Reason, tt.says) || !strings.HasSuffix(strings.TrimSpace(r.LastWords), tt.words) {
					t.Errorf("got %s, %q, last words %.100q, exit %v", r.Ending, r.Reason, r.LastWords, r.Exit)
				}
				if r.Exit != nil && *r.Exit > 90 {
					t.Errorf("the fake was answered otherwise than it wanted: %d", *r.Exit)
				}
				if len(r.Reason) > 1000 || len(r.LastWords) > 10000 {
					t.Error("what is kept of it is too long")
				}
			})
		}
	}
}

// memory returns the memory taken from the system for the heap so far, in bytes.
func memory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapSys
}
