package mcpserver_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ralph"
	"ralph/internal/permission"
	"ralph/internal/pgtest"
	"ralph/mcpserver"
	"ralph/store"
)

// sessions are sessions in progress of a run in this process.
func sessions(t *testing.T, n int) (list []mcpserver.Session) {
	t.Helper()
	return sessionsIn(t, n, store.Options{})
}

func sessionsIn(t *testing.T, n int, opts store.Options) (list []mcpserver.Session) {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.Path(t, filepath.Join(t.TempDir(), "ralph.db")), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	err = db.Tx(t.Context(), func(tx *store.Tx) error {
		run, err := tx.StartRun("", ralph.Limits{}, "")
		if err != nil {
			return err
		}
		for range n {
			id := uuid.NewString()
			task, err := tx.AddTask(ralph.Task{Title: id}, "human")
			if err == nil {
				_, err = tx.StartSession(store.Start{ID: id, Task: task, Run: run.ID, Dir: t.TempDir()})
			}
			if err != nil {
				return err
			}
			list = append(list, mcpserver.Session{Store: db, TaskID: task, SessionID: id})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// open opens a session's channel, which is closed at the end of the test at the latest.
func open(t *testing.T, s mcpserver.Session) *mcpserver.Channel {
	t.Helper()
	folder, err := os.MkdirTemp("", "channel-*") // a short path
	if err != nil {
		t.Fatal(err)
	}
	c, err := mcpserver.OpenChannel(s, folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := c.Close()
		if errors.Is(err, net.ErrClosed) {
			err = nil
		}
		if err := errors.Join(err, os.RemoveAll(folder)); err != nil {
			t.Error(err)
		}
	})
	return c
}

func dial(t *testing.T, c *mcpserver.Channel) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", c.Socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// speaker returns the connection that has presented the channel's ticket.
func speaker(t *testing.T, c *mcpserver.Channel) net.Conn {
	t.Helper()
	conn := dial(t, c)
	if _, err := io.WriteString(conn, present(c.Ticket())); err != nil {
		t.Fatal(err)
	}
	return conn
}

// present returns the line that presents a ticket.
func present(ticket string) string {
	return `{"jsonrpc":"2.0","method":"ralph/speak","params":{"ticket":"` + ticket + `"}}` + "\n"
}

// client returns a connected agent.
func client(t *testing.T, c *mcpserver.Channel) *mcp.ClientSession {
	t.Helper()
	conn := speaker(t, c)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).
		Connect(t.Context(), &mcp.IOTransport{Reader: conn, Writer: conn}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the channel may have closed it
	return s
}

func learned(t *testing.T, s *mcp.ClientSession, text string) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), call("ralph.signal.learned", `{"text": "`+text+`", "kind": "discovery"}`))
	if err != nil {
		t.Fatal(err)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// heard returns a session's signals as another process reads them.
func heard(t *testing.T, s mcpserver.Session) (list []string) {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.Path(t, s.Store.Path()), store.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	comments, err := store.Read(t.Context(), db, func(tx *store.Tx) ([]ralph.Comment, error) {
		return tx.Timeline(s.TaskID, store.CommentFilter{Session: s.SessionID})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range comments {
		list = append(list, fmt.Sprintf("%d %s %s", c.TaskID, c.Author, c.Verb))
	}
	return list
}

// TestAClientIsTheSessionOfItsSocket, for any claim.
func TestAClientIsTheSessionOfItsSocket(t *testing.T) {
	list := sessions(t, 2)
	list[1].Discipline = "backend"
	one, two := open(t, list[0]), open(t, list[1])
	first, other := client(t, one), client(t, two)
	for _, s := range []*mcp.ClientSession{first, other, first} {
		if got := learned(t, s, "x"); !strings.HasPrefix(got, "Recorded learned as comment ") {
			t.Errorf("got %q", got)
		}
	}
	if got := fmt.Sprint(heard(t, list[0]), heard(t, list[1])); got != "[1 agent learned 1 agent learned] [2 backend learned]" {
		t.Errorf("got %s", got)
	}
	r, err := first.CallTool(t.Context(), call("comment_on_task", `{"task_id": 2, "kind": "note", "body": "x"}`))
	if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "TASK-2 is not the task that you work on") {
		t.Errorf("got %+v, %v", r, err)
	}
	r, err = first.CallTool(t.Context(), call("update_session_state", `{"sessionId": "`+list[1].SessionID+`", "state": "testing"}`))
	if err != nil || !r.IsError {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestOnlyTheAgentSpeaks: a connection without the session's ticket, or with a used one, is refused and recorded; the
// agent's own continues. Questions of all programs are answered.
func TestOnlyTheAgentSpeaks(t *testing.T) {
	s := sessions(t, 1)[0]
	s.Rules = &permission.Rules{Policy: permission.Policy{Default: permission.Allow}}
	c := open(t, s)
	ticket := c.Ticket()
	if ticket == "" {
		t.Fatal("there is no ticket")
	}
	forged := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ralph.signal.learned",` +
		`"arguments":{"text":"forged","kind":"discovery"}}}` + "\n"
	refused := func(name, text string) {
		t.Helper()
		conn := dial(t, c)
		_, werr := io.WriteString(conn, text)
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(answer), `"result"`) {
			t.Errorf("%s: it is listened to: %s (%v, %v)", name, answer, werr, err)
		}
	}
	signal := `{"jsonrpc":"2.0","id":7,"method":"ralph/signal","params":{"ticket":"%s","verb":"learned",` +
		`"input":{"text":"forged","kind":"discovery"}}}` + "\n"
	refused("before the agent", initialize+forged)
	refused("a call at once", forged)
	refused("an empty ticket", present("")+initialize+forged)
	refused("a guess", present("A")+initialize+forged)
	if c.Ticket() != ticket {
		t.Error("others have spent the ticket")
	}
	agent := client(t, c)
	learned(t, agent, "mine")
	refused("the spent ticket", present(ticket)+initialize+forged)
	refused("an empty ticket, when it is spent", present("")+initialize+forged)
	refused("a response", `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n")
	for _, with := range []string{ticket, ""} {
		conn := dial(t, c)
		fmt.Fprintf(conn, signal, with)
		var reply struct {
			Result struct{ Refused, Ticket string }
		}
		if err := json.NewDecoder(conn).Decode(&reply); err != nil || reply.Result.Refused == "" || reply.Result.Ticket != "" {
			t.Errorf("a signal with the ticket %q: %+v, %v", with, reply, err)
		}
	}
	conn := dial(t, c) // a question is not a word of the agent's
	fmt.Fprintln(conn, `{"jsonrpc":"2.0","id":1,"method":"ralph/hook","params":{"tool_name":"Bash","tool_input":{}}}`)
	var reply struct{ Result *string }
	if err := json.NewDecoder(conn).Decode(&reply); err != nil || reply.Result == nil || *reply.Result != "" {
		t.Errorf("a hook is answered %v, %v", reply.Result, err)
	}
	learned(t, agent, "mine again")
	if got := fmt.Sprint(heard(t, s)); got != "[1 agent learned 1 agent learned]" {
		t.Errorf("heard %s", got)
	}
	row, err := store.Read(t.Context(), s.Store, func(tx *store.Tx) (ralph.Session, error) { return tx.Session(s.SessionID) })
	if err != nil || row.Strangers != 9 {
		t.Errorf("%d strangers are recorded, %v", row.Strangers, err)
	}
}

// TestAClosedChannelAnswersNobody: calls in progress are completed first,
// a question to a person is cancelled, and later clients get nothing.
func TestAClosedChannelAnswersNobody(t *testing.T) {
	s := sessions(t, 1)[0]
	s.Rules = &permission.Rules{Policy: permission.Policy{Default: permission.Ask}, Timeout: time.Hour}
	c := open(t, s)
	agent := client(t, c)
	asked := s.Store.Changed()
	answered := make(chan string, 1)
	go func() {
		r, err := agent.CallTool(t.Context(), call("ralph.permission", `{"tool_name": "Bash", "input": {}}`))
		if err != nil {
			answered <- err.Error()
			return
		}
		answered <- r.Content[0].(*mcp.TextContent).Text
	}()
	<-asked
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got := <-answered; strings.Contains(got, `"allow"`) {
		t.Errorf("a question was answered that nobody has answered: %s", got)
	}
	wish, err := store.Read(t.Context(), s.Store, func(tx *store.Tx) (store.Wish, error) { return tx.Wish(s.SessionID) })
	if err != nil || wish.Asks {
		t.Errorf("a person is still asked: %t, %v", wish.Asks, err)
	}
	if _, err := agent.CallTool(t.Context(), call("ralph.signal.learned", `{}`)); err == nil {
		t.Error("a closed channel answers")
	}
	if _, err := net.Dial("unix", c.Socket()); err == nil {
		t.Error("a closed channel lets a client in")
	}
	if got := heard(t, s); len(got) != 0 {
		t.Errorf("heard %q", got)
	}
}

// TestAPhaseIsReportedOnce: the file that keeps the agent from changing
// others is removed after the first report.
func TestAPhaseIsReportedOnce(t *testing.T) {
	s := sessions(t, 1)[0]
	s.Enforce = true
	c := open(t, s)
	if _, err := os.Stat(c.Unreported()); err != nil {
		t.Fatal(err)
	}
	agent := client(t, c)
	for _, args := range []string{`{"state": "dancing"}`, `{"state": "implementing"}`, `{"state": "testing"}`} {
		r, err := agent.CallTool(t.Context(), call("update_session_state", args))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(c.Unreported()); errors.Is(err, fs.ErrNotExist) == r.IsError {
			t.Errorf("%s: refused %t, the file: %v", args, r.IsError, err)
		}
	}
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
	`"clientInfo":{"name":"x","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// TestAnImpossibleClientHarmsNobody: clients that send garbage, or more than a
// model could, are disconnected, a flood is not read, and other clients go on.
func TestAnImpossibleClientHarmsNobody(t *testing.T) {
	list := sessions(t, 2)
	mean, fair := open(t, list[0]), client(t, open(t, list[1]))
	tooLong := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ralph.signal.learned","arguments":{"text":"` +
		strings.Repeat("x", 10<<20) + `","kind":"discovery"}}}` + "\n"
	for name, text := range map[string]string{
		"rubbish": "GET / HTTP/1.1\r\n\r\n", "no request": "[]\n", "brackets": strings.Repeat("[", 1<<20), "a long line": tooLong,
		"a long line after all": initialize + tooLong,
	} {
		conn := dial(t, mean)
		// It is disconnected while it sends, or afterwards.
		_, werr := io.WriteString(conn, text)
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: it is still listened to (%v)", name, werr)
		}
	}
	before := runtime.NumGoroutine()
	var flood bytes.Buffer
	flood.WriteString(initialize)
	for i := range 20_000 {
		fmt.Fprintf(&flood, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ralph.signal.learned",`+
			`"arguments":{"text":"%d","kind":"discovery"}}}`+"\n", i+1, i)
	}
	for range 30 { // more than are accepted at once; none of them reads answers
		conn := dial(t, mean)
		go conn.Write(flood.Bytes()) //nolint:errcheck // it ends with the connection
	}
	for range 5 {
		learned(t, fair, "in the middle of it")
	}
	if n := runtime.NumGoroutine() - before; n > 30+16*(32+10) {
		t.Errorf("the flood has %d goroutines", n)
	}
	if err := mean.Close(); err != nil {
		t.Error(err)
	}
	learned(t, fair, "after it")
}

// TestASignalIsTriedAgain while another program locks the database: the agent need not repeat it.
func TestASignalIsTriedAgain(t *testing.T) {
	s := sessionsIn(t, 1, store.Options{Patience: time.Millisecond})[0]
	lock := `UPDATE progress SET commits = commits`
	if pgtest.Used() {
		lock = `SELECT pg_advisory_xact_lock(hashtextextended('ralph/' || current_schema(), 0))`
	}
	kept, err := pgtest.Raw(t, s.Store.Path()).BeginTx(t.Context(), nil)
	if err == nil {
		_, err = kept.ExecContext(t.Context(), lock)
	}
	if err != nil {
		t.Fatal(err)
	}
	agent, answers := client(t, open(t, s)), make(chan string, 1)
	go func() { answers <- learned(t, agent, "x") }()
	select {
	case answer := <-answers:
		t.Fatal("it was answered while nothing could be written: ", answer)
	case <-time.After(300 * time.Millisecond):
	}
	if err := kept.Rollback(); err != nil {
		t.Fatal(err)
	}
	if answer := <-answers; !strings.HasPrefix(answer, "Recorded learned") || len(heard(t, s)) != 1 {
		t.Errorf("got %q, %q", answer, heard(t, s))
	}
}

// TestAnAnswerComesAfterItsTransaction: an answered signal is recorded; one without an answer may be.
func TestAnAnswerComesAfterItsTransaction(t *testing.T) {
	s := sessions(t, 1)[0]
	c := open(t, s)
	conn := speaker(t, c)
	if _, err := io.WriteString(conn, initialize); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		t.Fatal(lines.Err())
	}
	recorded := make(chan struct{})
	err := s.Store.Tx(t.Context(), func(*store.Tx) error {
		_, err := io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+
			`{"name":"ralph.signal.learned","arguments":{"text":"x","kind":"discovery"}}}`+"\n")
		go func() {
			defer close(recorded)
			lines.Scan()
		}()
		select {
		case <-recorded:
			t.Error("it was answered while nothing could be written")
		case <-time.After(50 * time.Millisecond):
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	<-recorded
	var reply struct{ ID int }
	if err := json.Unmarshal(lines.Bytes(), &reply); err != nil || reply.ID != 1 {
		t.Errorf("got %s, %v", lines.Bytes(), err)
	}
	if got := heard(t, s); len(got) != 1 {
		t.Errorf("heard %q", got)
	}
}

// TestAnAttemptIsTold: a ralph that cannot see the state reports its command to the run, before
// and during the calls of tools. Commands for other projects are not the run's business.
func TestAnAttemptIsTold(t *testing.T) {
	s := sessions(t, 1)[0]
	s.State, s.Dir = "/state/a", "/project/a"
	c := open(t, s)
	for _, tt := range []struct {
		state, dir string
		own        bool
	}{
		{"/state/a", "/project/a", true},
		{"/state/a", "/elsewhere", true},
		{"/chosen/by/the/agent", "/project/a/deep", true},
		{"/state/b", "/project/b", false},
		{"/state/b", "/work", false},
	} {
		conn := dial(t, c)
		_, err := fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":1,"method":"ralph/attempt","params":{"command":"ralph %[1]s","state":%[1]q,"dir":%[2]q}}`+"\n", tt.state, tt.dir)
		var reply struct{ Result string }
		if err := errors.Join(err, json.NewDecoder(conn).Decode(&reply)); err != nil {
			t.Fatal(err)
		}
		if own := strings.HasSuffix(reply.Result, " on TASK-1 of an agent"); own != tt.own || !own && reply.Result != "" {
			t.Errorf("%+v: got %q", tt, reply.Result)
		}
	}
	events, err := store.Read(t.Context(), s.Store, func(tx *store.Tx) ([]ralph.Event, error) { return tx.Events(0, 100) })
	tried := ""
	for _, e := range events {
		if e.Type == ralph.EventType(ralph.CommandRefused{}) {
			tried += string(e.Payload)
		}
	}
	if want := `{"command":"ralph /state/a"}{"command":"ralph /chosen/by/the/agent"}`; err != nil || tried != want {
		t.Errorf("recorded %s, %v", tried, err)
	}
}
