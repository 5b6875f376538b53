// Package secret masks values that look like secrets before they are stored, shown or sent to a model. It is pure.
package secret

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strings"

	"ralph/internal/lazy"
)

// A Mask knows the values to hide; nil knows none.
type Mask struct {
	values []value // longest first
}

type value struct{ text, instead []byte }

// shortest is the minimum length of a secret. A lowercase word of up to longestWord characters is
// not a secret: all programs print words.
const (
	shortest    = 8
	longestWord = 20
)

// New finds the secrets among variables, NAME=value. names lists further secret variables. isFile reports
// whether a value is the path of a file, which is not a secret.
func New(environ, names []string, isFile func(path string) bool) *Mask {
	m := &Mask{}
	shown := map[string]bool{}
	for _, entry := range environ {
		if name, text, _ := strings.Cut(entry, "="); !telling(name) && !slices.Contains(names, name) {
			shown[text] = true
		}
	}
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		if parts := password().FindStringSubmatch(text); parts != nil {
			m.add(":"+parts[2]+"@", ":["+name+"]@")
			if plain, err := url.PathUnescape(parts[2]); err == nil && plain != parts[1] && hides(plain) {
				m.add(plain, "["+name+"]")
			}
		}
		if (telling(name) || slices.Contains(names, name)) && hides(text) && !shown[text] &&
			!(strings.HasPrefix(text, "/") && isFile(text)) {
			m.add(text, "["+name+"]")
		}
	}
	slices.SortStableFunc(m.values, func(a, b value) int { return len(b.text) - len(a.text) })
	return m
}

// password matches the password in a URL, after the user.
var password = lazy.Regexp(`://([^/@:\s]*):([^/@\s]+)@`)

var tellingParts = []string{
	"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "COOKIE",
}

// telling reports whether a variable's name suggests a secret.
func telling(name string) bool {
	name = strings.ToUpper(name)
	for _, part := range tellingParts {
		if strings.Contains(strings.ReplaceAll(name, "TOKENS", ""), part) {
			return true
		}
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == ':' })
	return slices.ContainsFunc(words, func(w string) bool {
		return strings.HasSuffix(w, "KEY") || slices.Contains([]string{"PASS", "AUTH", "PAT", "PWD"}, w) && len(words) > 1
	})
}

// hides reports whether a value differs enough from ordinary output to be masked.
func hides(text string) bool {
	if len(text) < shortest || strings.Trim(text, "0123456789.") == "" && len(text) < 2*shortest {
		return false
	}
	return len(text) >= longestWord || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_-") != ""
}

// add adds a text in its plain form and as encoded in JSON and URLs.
func (m *Mask) add(text, instead string) {
	forms := []string{text, url.QueryEscape(text), url.PathEscape(text)}
	for _, html := range []bool{true, false} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		if e.Encode(text) == nil {
			forms = append(forms, strings.Trim(strings.TrimSuffix(b.String(), "\n"), `"`))
		}
	}
	slices.Sort(forms)
	for _, form := range slices.Compact(forms) {
		m.values = append(m.values, value{[]byte(form), []byte(instead)})
	}
}

// Text returns a text without secrets.
func (m *Mask) Text(s string) string {
	if m == nil || !slices.ContainsFunc(m.values, func(v value) bool { return strings.Contains(s, string(v.text)) }) {
		return s
	}
	return string(m.bytes([]byte(s)))
}

func (m *Mask) bytes(b []byte) []byte {
	for _, v := range m.values {
		if bytes.Contains(b, v.text) {
			b = bytes.ReplaceAll(b, v.text, v.instead)
		}
	}
	return b
}

// open returns the number of bytes at the end of b that may be the start of a secret.
func (m *Mask) open(b []byte) int {
	longest := 0
	for _, v := range m.values {
		for n := min(len(v.text)-1, len(b)); n > longest; n-- {
			if b[len(b)-n] == v.text[0] && bytes.HasSuffix(b, v.text[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// Reader filters r, and also finds secrets that arrive in several pieces.
func (m *Mask) Reader(r io.Reader) io.Reader {
	if m == nil || len(m.values) == 0 {
		return r
	}
	return &reader{mask: m, from: r, buffer: make([]byte, 32<<10)}
}

type reader struct {
	mask    *Mask
	from    io.Reader
	buffer  []byte
	pending []byte // may be the start of a secret
	ready   []byte
	err     error
}

// Read holds back a possible start of a secret until it has more bytes or the end.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.ready) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		n, err := r.from.Read(r.buffer)
		r.err = err
		all := r.mask.bytes(append(r.pending, r.buffer[:n]...))
		withheld := 0
		if err == nil {
			withheld = r.mask.open(all)
		}
		r.ready, r.pending = all[:len(all)-withheld], bytes.Clone(all[len(all)-withheld:])
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}
