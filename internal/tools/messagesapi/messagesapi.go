// Package messagesapi is a scripted Messages API on loopback, for driving the real `claude` CLI in tests without an
// account. It also implements OpenAI's Responses for codex, chat completions for other agents, and Gemini's API.
// Scripts always use Claude's names of tools.
//
// A test provides a function that answers each of the model's turns; the server wraps the answers in the API's
// server-sent events and keeps every request, so that a test can see the model's input. Side calls of the CLI (titles,
// summaries: requests without tools) are not kept, and answered by the server itself unless the test handles them. It
// listens on 127.0.0.1 only.
package messagesapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
)

// A Turn is the model's answer to one request.
type Turn struct {
	Text  string
	Tools []Tool
	Hang  bool // send nothing until the client disconnects

	Status  int               // an HTTP error instead of an answer
	Body    string            // its whole body, which clients may retry; "" for one made of the fields below
	Kind    string            // the error's type, such as rate_limit_error
	Headers map[string]string // headers of the answer
	Resets  int64             // end of a limit, for APIs whose error body has it; Unix seconds
}

// resets returns Resets as JSON.
func (t Turn) resets() string {
	if t.Resets == 0 {
		return "null"
	}
	return strconv.FormatInt(t.Resets, 10)
}

// A Tool is one call of a tool.
type Tool struct {
	Name  string
	Input any
}

// A Request is a request to the model.
type Request struct {
	Path string // path of the API
	Body string // the whole request, as JSON
	// Text is all text of the messages, in order: prompts, tool results, later messages.
	Text string
}

// A Server answers the CLI.
type Server struct {
	*httptest.Server
	Side   func(r Request) Turn // answers side calls, several at a time; set before the first; nil gives all a title
	answer func(n int, r Request) Turn

	mu       sync.Mutex
	requests []Request
}

// New starts a server. It calls answer for each request of the model, one at a time, with its
// number from 0.
func New(answer func(n int, r Request) Turn) *Server {
	s := &Server{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Answer returns the function that was passed to New.
func (s *Server) Answer() func(n int, r Request) Turn { return s.answer }

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// A dialect parses requests of one API and formats its answers.
type dialect interface {
	offers() int // number of tools; a request without any is a side call
	text(b *strings.Builder)
	fail(w http.ResponseWriter, t Turn)
	// A kind of "" means no kind.
	stream(event func(kind string, v map[string]any), n int, t Turn)
}

// dialectOf returns the API of a path; nil for none.
func dialectOf(path string) dialect {
	switch path {
	case "/v1/messages":
		return &messages{}
	case "/v1/responses":
		return &responses{}
	case "/v1/chat/completions":
		return &chat{}
	}
	if strings.HasPrefix(path, "/v1beta/models/") && strings.HasSuffix(path, "enerateContent") {
		return &gemini{}
	}
	return nil
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	d := dialectOf(r.URL.Path)
	if r.Method != http.MethodPost || d == nil {
		http.NotFound(w, r)
		return
	}
	var body json.RawMessage
	err := json.NewDecoder(r.Body).Decode(&body)
	if err == nil {
		err = json.Unmarshal(body, d)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request := Request{Body: string(body), Path: r.URL.Path}
	var text strings.Builder
	d.text(&text)
	request.Text = text.String()
	n, turn := 0, Turn{Text: "A title"}
	switch {
	case d.offers() > 0:
		s.mu.Lock()
		n = len(s.requests)
		s.requests = append(s.requests, request)
		turn = s.answer(n, request)
		s.mu.Unlock()
	case s.Side != nil:
		turn = s.Side(request)
	}
	for k, v := range turn.Headers {
		w.Header().Set(k, v)
	}
	switch {
	case turn.Hang:
		<-r.Context().Done()
	case turn.Body != "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(turn.Status)
		_, _ = io.WriteString(w, turn.Body) // the client may be gone
	case turn.Status != 0:
		w.Header().Set("x-should-retry", "false")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(turn.Status)
		d.fail(w, turn)
	default:
		stream(w, d, n, turn)
	}
}

// stream answers with server-sent events.
func stream(w http.ResponseWriter, d dialect, n int, t Turn) {
	w.Header().Set("Content-Type", "text/event-stream")
	d.stream(func(kind string, v map[string]any) {
		name := ""
		if kind != "" {
			v["type"], name = kind, "event: "+kind+"\n"
		}
		data, err := json.Marshal(v)
		if err != nil {
			data = []byte(`{}`)
		}
		fmt.Fprintf(w, "%sdata: %s\n\n", name, data)
	}, n, t)
}

// collect gathers every text in a message's content.
func collect(b *strings.Builder, raw json.RawMessage) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		b.WriteString(text + "\n")
		return
	}
	var blocks []struct {
		Text    string
		Content json.RawMessage
	}
	if json.Unmarshal(raw, &blocks) != nil {
		return
	}
	for _, block := range blocks {
		if block.Text != "" {
			b.WriteString(block.Text + "\n")
		}
		if len(block.Content) > 0 {
			collect(b, block.Content)
		}
	}
}

// messages is the Messages API.
type messages struct {
	Tools    []json.RawMessage
	Messages []struct{ Content json.RawMessage }
}

func (m *messages) offers() int { return len(m.Tools) }

func (m *messages) text(b *strings.Builder) {
	for _, x := range m.Messages {
		collect(b, x.Content)
	}
}

func (m *messages) fail(w http.ResponseWriter, t Turn) {
	fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":%q}}`, t.Kind, t.Text)
}

func (m *messages) stream(event func(kind string, v map[string]any), n int, t Turn) {
	usage := map[string]any{
		"input_tokens": 1200, "output_tokens": 1,
		"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
	}
	event("message_start", map[string]any{"message": map[string]any{
		"id": fmt.Sprintf("msg_%d", n), "type": "message", "role": "assistant",
		"model": "claude-opus-4-8", "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}})
	index := 0
	block := func(start, delta map[string]any) {
		event("content_block_start", map[string]any{"index": index, "content_block": start})
		event("content_block_delta", map[string]any{"index": index, "delta": delta})
		event("content_block_stop", map[string]any{"index": index})
		index++
	}
	if t.Text != "" {
		block(map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": t.Text})
	}
	for i, tool := range t.Tools {
		input, err := json.Marshal(tool.Input)
		if err != nil {
			input = []byte(`{}`)
		}
		block(map[string]any{
			"type": "tool_use", "id": fmt.Sprintf("toolu_%d_%d", n, i), "name": tool.Name, "input": map[string]any{},
		}, map[string]any{"type": "input_json_delta", "partial_json": string(input)})
	}
	reason := "end_turn"
	if len(t.Tools) > 0 {
		reason = "tool_use"
	}
	event("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": 50},
	})
	event("message_stop", map[string]any{})
}
