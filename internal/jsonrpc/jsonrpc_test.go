package jsonrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"ralph/internal/jsonrpc"
)

// A peer is the other end, with its input and output.
type peer struct {
	t   *testing.T
	in  *json.Decoder
	out io.WriteCloser
}

// connect serves a connection until the test ends; ended has what Serve returned.
func connect(t *testing.T, o jsonrpc.Options) (c *jsonrpc.Conn, p peer, ended <-chan error) {
	t.Helper()
	theirs, out := io.Pipe()
	in, ours := io.Pipe()
	c = jsonrpc.New(in, out, o)
	over := make(chan error, 1)
	go func() { over <- c.Serve(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		if err := errors.Join(ours.Close(), theirs.Close()); err != nil {
			t.Error(err)
		}
	})
	return c, peer{t, json.NewDecoder(theirs), ours}, over
}

func (p peer) read() (m jsonrpc.Message) {
	p.t.Helper()
	if err := p.in.Decode(&m); err != nil {
		p.t.Fatal(err)
	}
	return m
}

func (p peer) write(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.out, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func TestACallHasItsAnswer(t *testing.T) {
	c, p, _ := connect(t, jsonrpc.Options{})
	var result struct {
		Name  string
		Count int // of another type than is sent: absent
	}
	good, bad := make(chan error, 1), make(chan error, 1)
	go func() { good <- c.Call(t.Context(), "good", map[string]int{"a": 1}, &result) }()
	go func() { bad <- c.Call(t.Context(), "bad", nil, nil) }()
	answers := map[string]string{
		"good": `"result":{"name":"x","count":"many"}`,
		"bad":  `"error":{"code":429,"message":"slow down","data":{"a":1}}`,
	}
	first, second := p.read(), p.read()
	p.write(`{"jsonrpc":"2.0","id":77,"result":{}}`) // to nobody
	for _, call := range []jsonrpc.Message{second, first} {
		p.write(`{"jsonrpc":"2.0","id":` + string(call.ID) + `,` + answers[call.Method] + `}`)
	}
	if err := <-good; err != nil || result.Name != "x" {
		t.Errorf("the result is %+v, %v", result, err)
	}
	var refused *jsonrpc.Error
	if err := <-bad; !errors.As(err, &refused) || refused.Code != 429 || string(refused.Data) != `{"a":1}` {
		t.Errorf("the refused call has %v", err)
	}
}

func TestTheOtherEndIsAnswered(t *testing.T) {
	answer := func(_ context.Context, m jsonrpc.Message, cut bool) (any, error) {
		switch {
		case m.Method == "refuse":
			return nil, &jsonrpc.Error{Code: 7, Message: "no"}
		case m.Method == "fail":
			return nil, errors.New("broken")
		}
		return map[string]any{"cut": cut}, nil
	}
	long := `{"id":0,"method":"m","params":{"text":"` + strings.Repeat("x", 3<<20) + `"}}`
	for _, tt := range []struct {
		name, line, want string
		o                jsonrpc.Options
	}{
		{"with a result", `{"id":0,"method":"m"}`, `{"id":0,"jsonrpc":"2.0","result":{"cut":false}}`, jsonrpc.Options{Answer: answer}},
		{"by a text as its id", `{"id":"a","method":"m"}`, `{"id":"a","jsonrpc":"2.0","result":{"cut":false}}`, jsonrpc.Options{Answer: answer}},
		{"with an error of its own", `{"id":0,"method":"refuse"}`, `{"error":{"code":7,"message":"no"},"id":0,"jsonrpc":"2.0"}`, jsonrpc.Options{Answer: answer}},
		{"with another error", `{"id":0,"method":"fail"}`, `{"error":{"code":-32603,"message":"broken"},"id":0,"jsonrpc":"2.0"}`, jsonrpc.Options{Answer: answer}},
		{"that a part was missing", long, `{"id":0,"result":{"cut":true}}`, jsonrpc.Options{Answer: answer, Bare: true}},
		{"that nobody answers", `{"id":0,"method":"fs/write"}`, `{"error":{"code":-32601,"message":"not supported: fs/write"},"id":0,"jsonrpc":"2.0"}`, jsonrpc.Options{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, p, _ := connect(t, tt.o)
			p.write(`{"method":"unknown/notification"}`)
			p.write(tt.line)
			got, want := mustJSON(t, p.read()), any(nil)
			if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
				t.Fatal(err)
			}
			if got != mustJSON(t, want) {
				t.Errorf("answered %s, want %s", got, tt.want)
			}
		})
	}
}

// mustJSON is JSON with its members in order.
func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err == nil {
		var sorted any
		if err = json.Unmarshal(b, &sorted); err == nil {
			b, err = json.Marshal(sorted)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheEndOfAConnection(t *testing.T) {
	waits := make(chan error, 1)
	c, p, ended := connect(t, jsonrpc.Options{Answer: func(ctx context.Context, _ jsonrpc.Message, _ bool) (any, error) {
		<-ctx.Done() // such as a person's answer
		waits <- ctx.Err()
		return nil, ctx.Err()
	}})
	called := make(chan error, 1)
	go func() { called <- c.Call(t.Context(), "m", nil, nil) }()
	p.read()
	p.write(`{"id":1,"method":"m"}`)
	go func() { // its answer is read by nobody in particular
		var m jsonrpc.Message
		_ = p.in.Decode(&m)
	}()
	p.out.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := <-called; !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("a call that was open has %v", err)
	}
	if <-waits == nil {
		t.Error("an answer went on")
	}
	if err := c.Call(t.Context(), "m", nil, nil); !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("a call afterwards has %v", err)
	}
}

func TestACallIsGivenUpWithItsContext(t *testing.T) {
	c, p, _ := connect(t, jsonrpc.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	go func() { p.read(); cancel(why) }()
	if err := c.Call(ctx, "m", nil, nil); !errors.Is(err, why) {
		t.Errorf("it has %v", err)
	}
}

func TestEverythingIsInTheTranscript(t *testing.T) {
	var transcript bytes.Buffer
	seen := make(chan bool, 4)
	c, p, ended := connect(t, jsonrpc.Options{
		Transcript: &transcript, Seen: func(_ jsonrpc.Message, ok bool) { seen <- ok },
	})
	long := strings.Repeat("y", 2<<20)
	p.write("a line of\ttext")
	p.write(`{"method":"m","params":"` + long + `"}`)
	if <-seen || !<-seen {
		t.Error("what is a message is not told apart")
	}
	read := make(chan error, 1)
	go func() { read <- p.in.Decode(new(jsonrpc.Message)) }()
	if err := errors.Join(c.Notify("told", map[string]string{"a": "b"}), <-read); err != nil {
		t.Fatal(err)
	}
	p.out.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	want := `{"to":"client","raw":"a line of\ttext"}` + "\n" +
		`{"to":"client","m":{"method":"m","params":"` + long + `"}}` + "\n" +
		`{"to":"agent","m":{"jsonrpc":"2.0","method":"told","params":{"a":"b"}}}` + "\n"
	if got := transcript.String(); got != want {
		t.Errorf("the transcript is\n%.300s\nwant\n%.300s", got, want)
	}
}

func TestATranscriptThatIsFullEndsTheConnection(t *testing.T) {
	_, p, ended := connect(t, jsonrpc.Options{Transcript: full{}})
	p.write(`{"method":"m"}`)
	if err := <-ended; err == nil {
		t.Error("it goes on")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }
