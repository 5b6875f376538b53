package claude_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// fakeEnv is the variable that names the fake that this test binary plays.
const fakeEnv = "FAKE_CLAUDE"

func TestMain(m *testing.M) {
	if name := os.Getenv(fakeEnv); name != "" {
		if os.Args[1] == "--version" {
			fmt.Println("2.1.197 (Claude Code)")
			os.Exit(0)
		}
		in := bufio.NewScanner(os.Stdin)
		in.Buffer(nil, 16<<20)
		os.Exit(fakes[name](in))
	}
	// Under the race detector every process would sleep for a second on exit.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// connected is an init with the tools that close a session.
const connected = `{"type":"system","subtype":"init","claude_code_version":"2.1.197","model":"claude-sonnet-5","mcp_servers":[{"name":"ralph","status":"connected"}],"tools":["Bash",` +
	`"mcp__ralph__ralph_signal_done","mcp__ralph__ralph_signal_partial","mcp__ralph__ralph_signal_stuck"]}` + "\n"

// fakes are agents with one habit each. They return the exit status.
var fakes = map[string]func(in *bufio.Scanner) int{
	// polite repeats each message, and exits when stdin ends.
	"polite": func(in *bufio.Scanner) int {
		for in.Scan() {
			turn(heard(in.Text()))
		}
		return 0
	},
	// repentant leaves a process behind in its second turn, and undoes its
	// work once the conversation is over.
	"repentant": func(in *bufio.Scanner) int {
		in.Scan()
		turn(heard(in.Text()))
		in.Scan()
		fmt.Print(replay(heard(in.Text())))
		if err := exec.Command("sleep", "3600").Start(); err != nil {
			panic(err)
		}
		fmt.Print(work, success)
		in.Scan()
		if err := os.WriteFile("undone", nil, 0o600); err != nil {
			panic(err)
		}
		return 0
	},
	// late replays a message that came during its turn only after the result.
	"late": func(in *bufio.Scanner) int {
		in.Scan()
		fmt.Print(connected, replay(heard(in.Text())), work)
		in.Scan()
		fmt.Print(success)
		turn(heard(in.Text()))
		for in.Scan() {
			turn(heard(in.Text()))
		}
		return 0
	},
	// silent never replays messages, like old versions.
	"silent": func(in *bufio.Scanner) int {
		in.Scan()
		fmt.Print(connected, work)
		in.Scan()
		fmt.Print(success)
		in.Scan() // like the real one, it stays until it is asked to exit
		return 0
	},
	// lossy never replays its second message, and prints more after its result.
	"lossy": func(in *bufio.Scanner) int {
		in.Scan()
		fmt.Print(connected, replay(heard(in.Text())), work)
		in.Scan()
		fmt.Print(success, `{"type":"system","subtype":"hook_response"}`+"\n")
		in.Scan()
		return 0
	},
	// absorbed ends a turn without reading anything, and stays alive.
	"absorbed": func(*bufio.Scanner) int {
		turn("x")
		time.Sleep(time.Hour)
		return 0
	},
	// talkative prints more after its result.
	"talkative": func(in *bufio.Scanner) int {
		for in.Scan() {
			turn(heard(in.Text()))
			fmt.Println(`{"type":"system","subtype":"hook_response"}`)
			fmt.Println(`{"type":"user","message":{"content":"a task was stopped"}}`)
		}
		return 0
	},
	// stubborn ignores a closed stdin and interrupts.
	"stubborn": func(in *bufio.Scanner) int {
		signal.Ignore(os.Interrupt)
		in.Scan()
		turn("x")
		time.Sleep(time.Hour)
		return 0
	},
	// apologetic reacts to an interrupt after its result, and prints another result.
	"apologetic": func(in *bufio.Scanner) int {
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		turn("x")
		<-interrupted
		fmt.Println(`{"type":"result","is_error":true,"terminal_reason":"aborted_tools"}`)
		return 1
	},
	// incurious does not read its stdin.
	"incurious": func(*bufio.Scanner) int {
		turn("x")
		return 0
	},
	"absent": func(*bufio.Scanner) int {
		fmt.Fprintln(os.Stderr, "error: unknown option '--verbose'")
		return 3
	},
	// mute closes its output and stays alive.
	"mute": func(in *bufio.Scanner) int {
		in.Scan()
		fmt.Print(connected, work)
		os.Stdout.Close()
		time.Sleep(time.Hour)
		return 0
	},
	"broken": func(*bufio.Scanner) int {
		fmt.Println("TypeError: undefined is not a function")
		fmt.Println("[1,2]")
		return 0
	},
	"chatty": func(*bufio.Scanner) int {
		fmt.Print(connected, work)
		for {
			if _, err := os.Stdout.WriteString(strings.Repeat("x", 1000) + "\n"); err != nil {
				return 1
			}
		}
	},
	// complaining writes 3 MB to its stderr.
	"complaining": func(*bufio.Scanner) int {
		for range 3 << 10 {
			fmt.Fprintln(os.Stderr, strings.Repeat("e", 1023))
		}
		fmt.Fprintln(os.Stderr, "the last complaint")
		turn("x")
		return 0
	},
	// limited is refused after some work, but would read more messages.
	"limited": func(in *bufio.Scanner) int {
		in.Scan()
		fmt.Print(connected, work, errorResult(`"api_error_status":429,"result":"slow"`))
		for in.Scan() {
			turn("more")
		}
		return 1
	},
	// serverless starts ralph's server as configured, which fails, and goes on.
	"serverless": func(in *bufio.Scanner) int {
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		status := "connected"
		if startServer() != nil {
			status = "failed"
		}
		fmt.Print(strings.Replace(connected, "connected", status, 1))
		<-interrupted
		return 1
	},
	// parental has a child that survives it.
	"parental": func(in *bufio.Scanner) int {
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		child := exec.Command("sleep", "1000")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			return 2
		}
		fmt.Print(connected, work)
		<-interrupted
		fmt.Println(`{"type":"result","is_error":true,"terminal_reason":"aborted_tools","total_cost_usd":0.25}`)
		return 1
	},
	// crashing is killed in the middle of its work.
	"crashing": func(in *bufio.Scanner) int {
		in.Scan()
		fmt.Print(connected, work)
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			return 2
		}
		time.Sleep(time.Hour)
		return 0
	},
	// environment prints its environment and arguments.
	"environment": func(in *bufio.Scanner) int {
		turn(strings.Join(os.Environ(), "\n") + "\n" + strings.Join(os.Args[1:], "\n"))
		return 0
	},
}

// turn returns a whole turn in which the agent says text.
func turn(text string) {
	fmt.Print(connected, replay(text), work, says(text), success)
}

func replay(text string) string {
	return fmt.Sprintf(`{"type":"user","isReplay":true,"message":{"content":%q}}`+"\n", text)
}

// heard returns the text of a message to the agent.
func heard(line string) string {
	var m struct {
		Message struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return err.Error()
	}
	var all []string
	for _, c := range m.Message.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "+")
}

// startServer runs the server of --mcp-config until it ends.
func startServer() error {
	for i, arg := range os.Args {
		if arg != "--mcp-config" {
			continue
		}
		var c struct {
			MCPServers map[string]struct {
				Command string
				Args    []string
				Env     map[string]string
			}
		}
		if err := json.Unmarshal([]byte(os.Args[i+1]), &c); err != nil {
			return err
		}
		s := c.MCPServers["ralph"]
		cmd := exec.Command(s.Command, s.Args...)
		cmd.Env = os.Environ()
		for k, v := range s.Env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		return cmd.Run()
	}
	return nil
}
