package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ralph/internal/bystander"
)

// TestTheDashboardByHTTPS: with a certificate it serves other machines, which have
// to sign in to read, and its cookies are for HTTPS alone.
func TestTheDashboardByHTTPS(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "", "")
	s.ralph(0, "task", "add", "Nobody's business")
	// The certificate of httptest's, which is for 127.0.0.1.
	pattern := httptest.NewTLSServer(http.NotFoundHandler())
	defer pattern.Close()
	pair := pattern.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"box.pem": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "box.key": {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(filepath.Join(s.dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.env = append(s.env, bystander.TokenVariable+"=a-token-for-this-test-alone")
	d := serveProject(t, s, "0.0.0.0:0", "serve", "--tls-cert", "box.pem", "--tls-key", "box.key")
	if !strings.HasPrefix(d.url, "https://127.0.0.1:") {
		t.Fatalf("it is on %s", d.url)
	}
	client := pattern.Client() // trusts the certificate
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ask := func(method, path, body string, header ...string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, d.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(text)
	}
	for _, path := range []string{"/", "/tasks/1", "/events", "/metrics"} {
		if resp, text := ask("GET", path, ""); resp.StatusCode != http.StatusUnauthorized || strings.Contains(text, "Nobody") {
			t.Errorf("%s: %d\n%s", path, resp.StatusCode, text)
		}
	}
	if resp, _ := ask("GET", "/healthz", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %d", resp.StatusCode)
	}
	bearer := []string{"Authorization", "Bearer a-token-for-this-test-alone"}
	if resp, text := ask("GET", "/tasks/1", "", bearer...); resp.StatusCode != http.StatusOK || !strings.Contains(text, "Nobody&#39;s business") {
		t.Errorf("a program with the token: %d\n%s", resp.StatusCode, text)
	}
	form := append([]string{"Content-Type", "application/x-www-form-urlencoded"}, bearer...)
	if resp, text := ask("POST", "/tasks/1/comment", "text=by+a+program", form...); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("a comment by a program: %d\n%s", resp.StatusCode, text)
	}
	resp, _ := ask("POST", "/sign-in", "token=a-token-for-this-test-alone", form[:2]...)
	if c := resp.Cookies(); len(c) != 1 || !c[0].Secure || !c[0].HttpOnly || c[0].SameSite != http.SameSiteLaxMode {
		t.Errorf("the cookies are %v", c)
	}
	// A client of HTTP, or of an old TLS, gets nothing.
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}}}
	if resp, err := old.Get(d.url + "/healthz"); err == nil {
		resp.Body.Close()
		t.Error("TLS 1.1 is spoken")
	}
	d.stop(t, 0)
	if out := s.ralph(0, "timeline", "1"); !strings.Contains(out, "by a program") {
		t.Errorf("the comment is not there:\n%s", out)
	}
}

// TestTheDashboardStartsARun, which works by itself. If it cannot begin, the page shows the reason.
func TestTheDashboardStartsARun(t *testing.T) {
	t.Parallel()
	s := newScriptedProject(t, "task *\n  write a.txt \"x\\n\"\n  call done {\"summary\": \"Did it.\"}\n", "")
	s.ralph(0, "task", "add", "One")
	const token = "a-token-for-this-test-alone"
	s.env = append(s.env, bystander.TokenVariable+"="+token)
	d := serveProject(t, s, "127.0.0.1:0")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	send := func(method, path string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, d.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	events := bufio.NewScanner(send(http.MethodGet, "/events?after=0").Body)
	if resp := send(http.MethodPost, "/run/start"); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d\n%s", resp.StatusCode, s.read(resp))
	}
	for events.Scan() && !strings.Contains(events.Text(), "run.ended") {
	}
	if err := events.Err(); err != nil {
		t.Fatal(err)
	}
	if out := s.ralph(0, "task", "list", "--all"); !strings.Contains(out, "merged") {
		t.Errorf("the queue is\n%s", out)
	}

	// Its changes are on the session's page, line by line.
	at := regexp.MustCompile(`/sessions/[0-9a-f-]{36}`).FindString(s.read(send(http.MethodGet, "/sessions")))
	if page := s.read(send(http.MethodGet, at)); !strings.Contains(page, `<span class="no">1</span>&#43;x</span>`) {
		t.Errorf("%s lacks the line:\n%s", at, page)
	}

	if err := os.WriteFile(filepath.Join(s.dir, "ralph.yaml"), []byte("nonsense: yes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	resp := send(http.MethodPost, "/run/start")
	if text := s.read(resp); resp.StatusCode != http.StatusConflict || !strings.Contains(text, "nonsense") {
		t.Errorf("a run that cannot begin: %d\n%s", resp.StatusCode, text)
	}
}

// read returns the text of an answer.
func (s *scriptedProject) read(resp *http.Response) string {
	s.t.Helper()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}
