// Package messagesapi is a scripted Messages API on loopback, for driving the
// real `claude` CLI in tests without an account.
//
// A test gives a function that answers each of the model's turns; the server
// speaks the API's server-sent events around it and keeps every request, so that
// a test can see what the model was shown. Side calls of the CLI (titles,
// summaries: requests without tools) are answered by the server itself and are
// neither kept nor asked about. It listens on 127.0.0.1 only.
package messagesapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// A Turn is what the model answers to one request.
type Turn struct {
	Text  string
	Tools []Tool
	Hang  bool // answer nothing until the client goes away

	Status  int               // an HTTP error instead of an answer
	Kind    string            // the error's type, such as rate_limit_error
	Headers map[string]string // of the answer
}

// A Tool is one use of a tool, by the name that the model sees.
type Tool struct {
	Name  string
	Input any
}

// A Request is what the model was shown.
type Request struct {
	Body string // the whole request, as JSON
	// Text is all text of the messages, in order: prompts, tool results, messages
	// that came meanwhile.
	Text string
}

// A Server answers the CLI.
type Server struct {
	*httptest.Server
	answer func(n int, r Request) Turn

	mu       sync.Mutex
	requests []Request
}

// New starts a server. answer is called for each request of the model, one at a
// time, with its number from 0.
func New(answer func(n int, r Request) Turn) *Server {
	s := &Server{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Answer is the function that New was given.
func (s *Server) Answer() func(n int, r Request) Turn { return s.answer }

// Requests are what the model was shown so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" {
		http.NotFound(w, r)
		return
	}
	var body json.RawMessage
	var shown struct {
		Tools    []json.RawMessage
		Messages []struct{ Content json.RawMessage }
	}
	err := json.NewDecoder(r.Body).Decode(&body)
	if err == nil {
		err = json.Unmarshal(body, &shown)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if len(shown.Tools) == 0 {
		stream(w, 0, Turn{Text: "A title"})
		return
	}
	request := Request{Body: string(body)}
	var text strings.Builder
	for _, m := range shown.Messages {
		collect(&text, m.Content)
	}
	request.Text = text.String()
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, request)
	turn := s.answer(n, request)
	s.mu.Unlock()
	for k, v := range turn.Headers {
		w.Header().Set(k, v)
	}
	switch {
	case turn.Hang:
		<-r.Context().Done()
	case turn.Status != 0:
		w.Header().Set("x-should-retry", "false")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(turn.Status)
		fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":%q}}`, turn.Kind, turn.Text)
	default:
		stream(w, n, turn)
	}
}

// collect gathers every text below a message's content.
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

// stream answers with the API's events.
func stream(w http.ResponseWriter, n int, t Turn) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind string, v map[string]any) {
		v["type"] = kind
		data, err := json.Marshal(v)
		if err != nil {
			data = []byte(`{}`)
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data)
	}
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
