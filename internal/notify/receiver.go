package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"ralph"
)

// A Receiver gets notifications at a URL or by a command.
type Receiver struct {
	URL     string   // for POST; empty if there is a command
	Command []string // a program with its arguments; nil if there is a URL
	Dir     string   // the command's working directory
	Env     []string // the command's environment, "NAME=value"
	// Refusal returns an error if the command must not be run now; nil for never.
	Refusal func(context.Context) error
	Preset  Preset // the format of notifications
	Events  []Type // types to send; nil for all
	Secret  string // generic: signing key ("whsec_…"); ntfy: access token; "" for none
}

// Check reports a fault of a receiver, without quoting its URL or secret. The error is a [ralph.FieldError].
func (r Receiver) Check() error {
	format, known := presets[r.Preset]
	if !known {
		return &ralph.FieldError{
			Field:    fmt.Sprintf("preset %q", r.Preset),
			Problem:  "is not one of the accepted values",
			Accepted: presetNames(),
		}
	}
	if (r.URL == "") == (len(r.Command) == 0) {
		return &ralph.FieldError{Field: "url", Problem: "or command must be given, and not both"}
	}
	for _, t := range r.Events {
		if !slices.Contains(Types, t) {
			return &ralph.FieldError{
				Field:    fmt.Sprintf("event %q", t),
				Problem:  "is not one of the accepted values",
				Accepted: typeNames(),
			}
		}
	}
	if len(r.Command) > 0 {
		if r.Preset != Generic || r.Secret != "" {
			return &ralph.FieldError{
				Field:   "command",
				Problem: "takes neither a preset nor a secret: it always gets the generic form",
			}
		}
		return nil
	}
	u, err := url.Parse(r.URL)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return &ralph.FieldError{Field: "url", Problem: "must be an address that begins with https:// or http://"}
	}
	if _, _, err := format(testNote("", ralph.Time{}.Time), u); err != nil {
		return &ralph.FieldError{Field: "url", Problem: err.Error()}
	}
	return r.checkSecret()
}

func (r Receiver) checkSecret() error {
	switch {
	case r.Secret == "":
		return nil
	case r.Preset == Generic:
		if _, err := key(r.Secret); err != nil {
			return &ralph.FieldError{Field: "the secret", Problem: err.Error()}
		}
	case r.Preset != Ntfy:
		return &ralph.FieldError{
			Field:   "the secret",
			Problem: fmt.Sprintf("is of no use to %s, which knows no signatures", r.Preset),
		}
	case strings.ContainsFunc(r.Secret, func(c rune) bool { return c <= ' ' || c > '~' }):
		return &ralph.FieldError{Field: "the secret", Problem: "must be an access token of ntfy, in one line"}
	}
	return nil
}

// wants reports whether the receiver subscribes to a type.
func (r Receiver) wants(t Type) bool {
	return t == typeTest || r.Events == nil || slices.Contains(r.Events, t)
}

// signs reports whether requests are signed.
func (r Receiver) signs() bool { return r.Preset == Generic && r.Secret != "" }

// key returns the key of the receiver's stored position. It does not reveal the URL.
func (r Receiver) key() string {
	sum := sha256.Sum256([]byte(string(r.Preset) + "\n" + r.URL + "\n" + strings.Join(r.Command, "\x00")))
	return "notify:" + hex.EncodeToString(sum[:16])
}

// label names a receiver for people, without secrets.
func (r Receiver) label() string {
	if len(r.Command) > 0 {
		return "command " + filepath.Base(r.Command[0])
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return string(r.Preset)
	}
	return string(r.Preset) + " " + u.Host
}

// scrub masks the receiver's secrets in a text.
func (r Receiver) scrub(text string) string {
	secrets := []string{r.URL, r.Secret, strings.TrimPrefix(r.Secret, secretPrefix)}
	if u, err := url.Parse(r.URL); err == nil {
		secrets = append(secrets, u.RequestURI(), u.Path, u.RawQuery, u.User.String())
		between := func(c rune) bool { return strings.ContainsRune("/&=", c) }
		secrets = append(secrets, strings.FieldsFunc(u.Path+"&"+u.RawQuery, between)...)
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, s := range secrets {
		if len(s) >= 8 { // shorter ones are words such as "services"
			text = strings.ReplaceAll(text, s, "***")
		}
	}
	return text
}

// errNoKey means that a signing secret is invalid.
var errNoKey = errors.New(`must be "whsec_" and 24 to 64 bytes in base64, ` +
	`such as from: echo "whsec_$(openssl rand -base64 32)"`)

func typeNames() []string {
	names := make([]string, len(Types))
	for i, t := range Types {
		names[i] = string(t)
	}
	return names
}
