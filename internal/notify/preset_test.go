package notify_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"ralph/internal/notify"
)

var update = flag.Bool("update", false, "write the golden files anew")

// post delivers questions and returns the requests that arrived.
func post(t *testing.T, to notify.Receiver, questions ...string) []request {
	t.Helper()
	p := newProject(t)
	defer p.close()
	for _, q := range questions {
		p.ask(q)
	}
	r := &receiver{}
	n := p.notifier(to)
	n.Transport = r
	p.deliver(n)
	if len(r.got()) != len(questions) {
		t.Fatalf("got %d requests: %s", len(r.got()), p.logged())
	}
	return r.got()
}

// awkward is a question of an agent that would like to be heard.
const awkward = "<!channel> @everyone <b>red</b> & \"blue\"?\x1b[31m\u0000\nsee *this* `or` that"

// TestForms shows the requests to each service in testdata/presets.txt.
func TestForms(t *testing.T) {
	var b bytes.Buffer
	for _, to := range []notify.Receiver{
		{Preset: notify.Slack, URL: "https://hooks.slack.com/services/T0/B0/xyz"},
		{Preset: notify.Discord, URL: "https://discord.com/api/webhooks/1/xyz"},
		{Preset: notify.Telegram, URL: "https://api.telegram.org/bot1:xyz/sendMessage?chat_id=-42&message_thread_id=5"},
		{Preset: notify.Ntfy, URL: "https://ntfy.sh/my-topic", Secret: "tk_xyz"},
		{Preset: notify.Ntfy, URL: "http://localhost:8080/ntfy/my-topic"},
	} {
		req := post(t, to, awkward)[0]
		fmt.Fprintf(&b, "=== %s %s\nPOST %s\n", to.Preset, to.URL, req.url)
		for _, name := range []string{"Content-Type", "Authorization", "webhook-signature"} {
			if v := req.header.Get(name); v != "" {
				fmt.Fprintf(&b, "%s: %s\n", name, v)
			}
		}
		if err := json.Indent(&b, []byte(req.body), "", "  "); err != nil {
			t.Errorf("%s: %v in %s", to.Preset, err, req.body)
		}
		b.WriteString("\n\n")
	}
	const golden = "testdata/presets.txt"
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, b.Bytes()) {
		t.Errorf("got:\n%s\nwant:\n%s", &b, want)
	}
}

// TestNotificationsLeadToTheDashboard by a link, and by a button where there are buttons, and name no commands then.
func TestNotificationsLeadToTheDashboard(t *testing.T) {
	for preset, to := range map[notify.Preset]string{
		notify.Slack: "https://hooks.slack.com/services/T0/B0/xyz", notify.Ntfy: "https://ntfy.sh/my-topic",
		notify.Telegram: "https://api.telegram.org/bot1:xyz/sendMessage?chat_id=-42", notify.Discord: "https://discord.com/api/webhooks/1/xyz",
	} {
		p := newProject(t)
		p.ask("Which colour?")
		r := &receiver{}
		n := p.notifier(notify.Receiver{Preset: preset, URL: to})
		n.Transport, n.Dashboard = r, "https://box.example/"
		p.deliver(n)
		p.close()
		body := r.got()[0].body
		if !strings.Contains(body, "https://box.example/tasks/1") || strings.Contains(body, "ralph answer") {
			t.Errorf("%s gets %s", preset, body)
		}
		if button := strings.Contains(body, `"Open"`); button != (preset == notify.Slack || preset == notify.Ntfy) {
			t.Errorf("%s has a button: %t: %s", preset, button, body)
		}
	}
}

func TestLongTextsFitServices(t *testing.T) {
	long := strings.Repeat("ü😀", 3000)
	utf16 := func(s string) (n int) {
		for _, r := range s {
			n++
			if r > 0xffff {
				n++
			}
		}
		return n
	}
	tests := []struct {
		to    notify.Receiver
		field string
		size  func(string) int
		limit int
	}{
		{notify.Receiver{Preset: notify.Slack, URL: "https://example.com/"}, "text", utf16, 4000},
		{notify.Receiver{Preset: notify.Discord, URL: "https://example.com/"}, "content", utf16, 2000},
		{notify.Receiver{Preset: notify.Telegram, URL: "https://example.com/bot/sendMessage?chat_id=1"}, "text", utf16, 4096},
		{notify.Receiver{Preset: notify.Ntfy, URL: "https://example.com/x"}, "message", func(s string) int { return len(s) }, 4096},
	}
	for _, tt := range tests {
		var body map[string]any
		if err := json.Unmarshal([]byte(post(t, tt.to, long)[0].body), &body); err != nil {
			t.Fatal(err)
		}
		text, _ := body[tt.field].(string)
		if n := tt.size(text); n > tt.limit || n < tt.limit/3 || !strings.Contains(text, "…") {
			t.Errorf("%s: %d of %d: %.40q", tt.to.Preset, n, tt.limit, text)
		}
	}
}

func TestReceiversThatCannotWork(t *testing.T) {
	const u = "https://example.com/s3cret"
	tests := []struct {
		name string
		r    notify.Receiver
		want string // "" if it can
	}{
		{"a URL", notify.Receiver{URL: u, Preset: notify.Generic}, ""},
		{"a URL with a secret", notify.Receiver{URL: u, Preset: notify.Generic, Secret: secret}, ""},
		{"a command", notify.Receiver{Command: []string{"x"}, Preset: notify.Generic}, ""},
		{"nothing", notify.Receiver{Preset: notify.Generic}, "url or command must be given, and not both"},
		{"both", notify.Receiver{URL: u, Command: []string{"x"}, Preset: notify.Generic}, "url or command must be given, and not both"},
		{"an unknown preset", notify.Receiver{URL: u, Preset: "irc"}, `preset "irc" is not one of the accepted values (accepted: discord, generic, ntfy, slack, telegram)`},
		{"an unknown event", notify.Receiver{URL: u, Preset: notify.Slack, Events: []notify.Type{"x"}}, `event "x" is not one of`},
		{"a file", notify.Receiver{URL: "file:///s3cret", Preset: notify.Slack}, "url must be an address that begins with https:// or http://"},
		{"no URL at all", notify.Receiver{URL: "s3cret\x00", Preset: notify.Slack}, "url must be an address that begins with https:// or http://"},
		{"telegram without a chat", notify.Receiver{URL: "https://api.telegram.org/bots3cret/sendMessage", Preset: notify.Telegram}, "url must be https://api.telegram.org/bot<TOKEN>/sendMessage?chat_id=<CHAT>"},
		{"telegram with another method", notify.Receiver{URL: "https://api.telegram.org/bots3cret/getMe?chat_id=1", Preset: notify.Telegram}, "url must be https://api.telegram.org/bot<TOKEN>/sendMessage?chat_id=<CHAT>"},
		{"ntfy without a topic", notify.Receiver{URL: "https://ntfy.sh", Preset: notify.Ntfy}, "url must be https://ntfy.sh/<TOPIC>"},
		{"ntfy with half a topic", notify.Receiver{URL: "https://ntfy.sh/s3cret/", Preset: notify.Ntfy}, "url must be https://ntfy.sh/<TOPIC>"},
		{"a secret that is no key", notify.Receiver{URL: u, Preset: notify.Generic, Secret: "s3cret"}, `the secret must be "whsec_" and 24 to 64 bytes in base64`},
		{"a short key", notify.Receiver{URL: u, Preset: notify.Generic, Secret: "whsec_s3cretAA"}, `the secret must be "whsec_" and 24 to 64 bytes in base64`},
		{"a signature for slack", notify.Receiver{URL: u, Preset: notify.Slack, Secret: secret}, "the secret is of no use to slack"},
		{"a token with a line end", notify.Receiver{URL: u, Preset: notify.Ntfy, Secret: "s3cret\n"}, "the secret must be an access token"},
		{"a command with a preset", notify.Receiver{Command: []string{"x"}, Preset: notify.Slack}, "command takes neither a preset nor a secret"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.r.Check()
			switch {
			case tt.want == "":
				if err != nil {
					t.Error(err)
				}
			case err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret"):
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestDiscordShowsNoMarkup of agents: a link shows its address.
func TestDiscordShowsNoMarkup(t *testing.T) {
	for text, want := range map[string]string{
		"[Approve](http://evil)":        `\[Approve\]\(http://evil\)`,
		"**bold** ~~no~~ ||hidden||":    `\*\*bold\*\* \~\~no\~\~ \|\|hidden\|\|`,
		"`code` __u__ > quote # head":   "\\`code\\` \\_\\_u\\_\\_ \\> quote \\# head",
		`\[x](http://evil)`:             `\\\[x\]\(http://evil\)`,
		"<@1> <t:0>":                    `\<@1\> \<t:0\>`,
		"see http://host/a_b_c?d=e now": "see http://host/a_b_c?d=e now",
		"http://[x](http://evil)":       `http://\[x\]\(http://evil\)`,
		"plain, text - of 3 words.":     "plain, text - of 3 words.",
	} {
		if got := notify.Plain(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
