package secret_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"ralph/internal/secret"
)

var environ = []string{
	"GITHUB_TOKEN=ghp_0123456789", "AWS_SECRET_ACCESS_KEY=a/b+c0\"d\\e<f", "DATABASE_URL=postgres://me:hunter2@db/x",
	"CACHE_URL=redis://:S3cr3tS3cr3t@cache", "SMTP_PASS=Tr0ub4dor&3", "SHORT_KEY=abc1234", "SSH_KEY=/home/me/.ssh/id",
	"MAX_OUTPUT_TOKENS=3200000000", "PIN_TOKEN=12345678", "DB_PASSWORD=password", "PHRASE_SECRET=correct-horse-battery-staple", "PATH=/usr/bin:/bin",
	"HOME=/home/me", "HOME_KEY=/home/me", "MONKEY=keyboard1", "HOOK=https://hooks.example/T000/abcdef", "SSH_AUTH_SOCK=/run/sock",
}

var mask = secret.New(environ, []string{"HOOK"}, func(path string) bool { return path == "/home/me/.ssh/id" || path == "/run/sock" })

var texts = []struct{ name, text, want string }{
	{"a token", "x ghp_0123456789 y", "x [GITHUB_TOKEN] y"},
	{"twice, and at both ends", "ghp_0123456789ghp_0123456789", "[GITHUB_TOKEN][GITHUB_TOKEN]"},
	{"a part of one", "ghp_012345678", "ghp_012345678"},
	{"begun, and begun again", "ghp_0ghp_0123456789", "ghp_0[GITHUB_TOKEN]"},
	{"in JSON", `{"a":"a/b+c0\"d\\e<f"}`, `{"a":"[AWS_SECRET_ACCESS_KEY]"}`},
	{"in JSON for pages", `{"a":"a/b+c0\"d\\e\u003cf"}`, `{"a":"[AWS_SECRET_ACCESS_KEY]"}`},
	{"in an address", "?q=Tr0ub4dor%263", "?q=[SMTP_PASS]"},
	{"a short password of an address", "postgres://me:hunter2@db/x", "postgres://me:[DATABASE_URL]@db/x"},
	{"which is a word elsewhere", "hunter2", "hunter2"},
	{"a long one", "the password is S3cr3tS3cr3t", "the password is [CACHE_URL]"},
	{"a phrase", "correct-horse-battery-staple", "[PHRASE_SECRET]"},
	{"what is called otherwise", "to https://hooks.example/T000/abcdef", "to [HOOK]"},
	{"what is too short", "abc1234", "abc1234"},
	{"a file", "read /home/me/.ssh/id", "read /home/me/.ssh/id"},
	{"numbers", "12345678 of 3200000000", "12345678 of 3200000000"},
	{"a word", "the password is wrong", "the password is wrong"},
	{"what another variable has too", "/home/me/x", "/home/me/x"},
	{"a monkey", "keyboard1", "[MONKEY]"},
	{"nothing", "", ""},
}

func TestText(t *testing.T) {
	for _, tt := range texts {
		if got := mask.Text(tt.text); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	var none *secret.Mask
	if none.Text("ghp_0123456789") != "ghp_0123456789" {
		t.Error("nil knows one")
	}
}

func TestReader(t *testing.T) {
	for _, tt := range texts {
		for name, r := range map[string]io.Reader{
			"as it is":     strings.NewReader(tt.text),
			"byte by byte": iotest.OneByteReader(strings.NewReader(tt.text)),
			"with its end": iotest.DataErrReader(iotest.HalfReader(strings.NewReader(tt.text))),
		} {
			got, err := io.ReadAll(mask.Reader(r))
			if err != nil || string(got) != tt.want {
				t.Errorf("%s, %s: got %q, %v, want %q", tt.name, name, got, err, tt.want)
			}
		}
	}
	long := strings.Repeat("x", 32<<10-5) + "ghp_0123456789" + strings.Repeat("y", 100<<10)
	got, err := io.ReadAll(mask.Reader(strings.NewReader(long)))
	if want := strings.Replace(long, "ghp_0123456789", "[GITHUB_TOKEN]", 1); err != nil || string(got) != want {
		t.Errorf("a long text is %d bytes, want %d, %v", len(got), len(want), err)
	}
}

// TestTextsWithoutSecretsPassAtOnce: a line of a conversation is not withheld until the next one.
func TestTextsWithoutSecretsPassAtOnce(t *testing.T) {
	r, w := io.Pipe()
	masked := mask.Reader(r)
	line := "{\"type\":\"user\"} ghp_0123456789 }\n"
	go func() { _, _ = io.WriteString(w, line) }()
	b := make([]byte, 100)
	if n, err := masked.Read(b); err != nil || string(b[:n]) != mask.Text(line) {
		t.Errorf("got %q, %v", b[:n], err)
	}
	if err := w.CloseWithError(io.ErrUnexpectedEOF); err != nil {
		t.Fatal(err)
	}
	if _, err := masked.Read(b); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add("ghp_ghp_0123456789", 3)
	f.Fuzz(func(t *testing.T, text string, at int) {
		at = max(min(at, len(text)), 0)
		got, err := io.ReadAll(mask.Reader(io.MultiReader(strings.NewReader(text[:at]), strings.NewReader(text[at:]))))
		if err != nil || strings.Contains(string(got), "ghp_0123456789") || strings.Contains(string(got), "S3cr3tS3cr3t") {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	})
}
