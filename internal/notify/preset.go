package notify

import (
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"ralph/internal/lazy"
	"ralph/internal/text"
)

// A Preset is a format of notifications.
type Preset string

// The presets.
const (
	Generic  Preset = "generic"  // Standard Webhooks
	Slack    Preset = "slack"    // incoming webhook
	Discord  Preset = "discord"  // webhook
	Telegram Preset = "telegram" // sendMessage of the Bot API
	Ntfy     Preset = "ntfy"     // a topic of ntfy.sh or of another server
)

// A form builds the body of a request and its address. Every text in it was written by an agent
// or on its behalf: it must not mention people (@channel) or act as markup.
type form func(n Notification, u *url.URL) (target *url.URL, body []byte, err error)

var presets = map[Preset]form{Generic: generic, Slack: slack, Discord: discord, Telegram: telegram, Ntfy: ntfy}

func presetNames() []string {
	var names []string
	for _, p := range slices.Sorted(maps.Keys(presets)) {
		names = append(names, string(p))
	}
	return names
}

func generic(n Notification, u *url.URL) (*url.URL, []byte, error) {
	body, err := json.Marshal(n)
	return u, body, err
}

// slackText is the maximum length of a message's text (UTF-16 units) before escaping. A section has
// the same maximum.
const slackText = 3000

func slack(n Notification, u *url.URL) (*url.URL, []byte, error) {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	title, rest := message(n)
	// Slack recommends at most 4000 characters; escaping may turn one into five.
	all := "*" + escape(title) + "*\n" + escape(text.ClipBy(rest, slackText, utf16.RuneLen))
	fields := map[string]any{"text": strings.TrimSpace(all), "unfurl_links": false}
	if n.Data.URL != "" {
		plain := func(s string) any { return map[string]any{"type": "plain_text", "text": s, "emoji": false} }
		section := map[string]any{"type": "section", "text": plain(text.ClipBy(title+"\n"+rest, slackText, utf16.RuneLen))}
		open := map[string]any{"type": "button", "url": n.Data.URL, "text": plain("Open")}
		fields["blocks"] = []any{section, map[string]any{"type": "actions", "elements": []any{open}}}
	}
	body, err := json.Marshal(fields)
	return u, body, err
}

// markup matches the characters that Discord reads as Markdown.
var markup = lazy.Regexp("[\\\\*_~`|>#\\[\\]()<]")

// plain escapes a text for Discord. A bare address keeps its underscores, which its link needs.
func plain(s string) string {
	return word().ReplaceAllStringFunc(s, func(w string) string {
		if address().MatchString(w) {
			return w
		}
		return markup().ReplaceAllString(w, `\$0`)
	})
}

var (
	word    = lazy.Regexp(`\S+`)
	address = lazy.Regexp(`^https?://[\w./:?=&%+,;@-]*$`)
)

func discord(n Notification, u *url.URL) (*url.URL, []byte, error) {
	title, rest := message(n)
	title, rest = plain(title), plain(rest)
	body, err := json.Marshal(map[string]any{
		"content":          strings.TrimSpace(text.ClipBy("**"+title+"**\n"+rest, 2000, utf16.RuneLen)),
		"allowed_mentions": map[string]any{"parse": []string{}},
	})
	return u, body, err
}

func telegram(n Notification, u *url.URL) (*url.URL, []byte, error) {
	target, query := *u, u.Query()
	if query.Get("chat_id") == "" || !strings.HasSuffix(target.Path, "/sendMessage") {
		return nil, nil, errors.New("must be https://api.telegram.org/bot<TOKEN>/sendMessage?chat_id=<CHAT> for telegram")
	}
	target.RawQuery = ""
	title, rest := message(n)
	fields := map[string]any{
		"text":                 strings.TrimSpace(text.ClipBy(title+"\n"+rest, 4096, utf16.RuneLen)),
		"link_preview_options": map[string]any{"is_disabled": true},
	}
	for name := range query {
		fields[name] = query.Get(name) // chat_id, message_thread_id, disable_notification
	}
	body, err := json.Marshal(fields)
	return &target, body, err
}

// ntfyLooks are the priority (3 is normal) and the emoji of each type.
var ntfyLooks = map[Type]struct {
	priority int
	tag      string
}{
	QuestionAsked: {4, "question"}, TaskFailed: {4, "x"}, TaskBlocked: {4, "no_entry"},
	TaskCompleted: {3, "white_check_mark"},
	FlagBlocking:  {4, "triangular_flag_on_post"}, RunEnded: {3, "checkered_flag"}, LimitReached: {4, "hourglass"},
	AgentUnavailable: {4, "warning"}, typeTest: {3, "test_tube"},
	typeDigest: {4, "bell"}, PermissionAsked: {4, "question"}, StorageFull: {5, "warning"}, TroubleFound: {4, "warning"},
}

func ntfy(n Notification, u *url.URL) (*url.URL, []byte, error) {
	target := *u
	root, topic := "", ""
	if i := strings.LastIndexByte(target.Path, '/'); i >= 0 {
		root, topic = target.Path[:i+1], target.Path[i+1:]
	}
	if topic == "" {
		return nil, nil, errors.New("must be https://ntfy.sh/<TOPIC>, or a topic of an own server, for ntfy")
	}
	target.Path, target.RawPath = root, ""
	title, rest := message(n)
	if rest == "" {
		rest = title
	}
	look := ntfyLooks[n.Type]
	fields := map[string]any{
		// A longer message would become an attachment.
		"topic": topic, "title": title, "message": text.ClipBy(rest, 4000, utf8.RuneLen),
		"priority": look.priority, "tags": []string{look.tag},
	}
	if to := n.Data.URL; to != "" {
		fields["click"] = to
		fields["actions"] = []any{map[string]any{"action": "view", "label": "Open", "url": to}}
	}
	body, err := json.Marshal(fields)
	return &target, body, err
}

// message returns a notification as plain text: one line, and the details.
func message(n Notification) (title, rest string) {
	title = text.Clean(n.Data.Title)
	if n.Data.Project != "" {
		title = "[" + text.Clean(n.Data.Project) + "] " + title
	}
	rest = strings.TrimSpace(text.Clean(n.Data.Text))
	switch {
	case n.Data.URL != "": // a phone has no terminal
		rest += "\n" + n.Data.URL
	case n.Data.Command != "":
		rest += "\n→ " + n.Data.Command
	}
	return title, strings.TrimSpace(rest)
}
