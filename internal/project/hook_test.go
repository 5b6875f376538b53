package project

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/config"
	"ralph/store"
)

// TestWebhooks: only a signed one wakes the reader, with any content.
func TestWebhooks(t *testing.T) {
	const secret = "a long secret"
	body := `{"action": "labeled"}`
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	sum := hex.EncodeToString(mac.Sum(nil))
	for _, tt := range []struct {
		name, header, value string
		body                string
		want                int
	}{
		{"GitHub", "X-Hub-Signature-256", "sha256=" + sum, body, http.StatusNoContent},
		{"Gitea", "X-Gitea-Signature", sum, body, http.StatusNoContent},
		{"Forgejo", "X-Forgejo-Signature", sum, body, http.StatusNoContent},
		{"GitLab", "X-Gitlab-Token", secret, body, http.StatusNoContent},
		{"none", "X-Other", sum, body, http.StatusForbidden},
		{"another body", "X-Hub-Signature-256", "sha256=" + sum, body + " ", http.StatusForbidden},
		{"a sum without its kind", "X-Hub-Signature-256", sum, body, http.StatusForbidden},
		{"in capitals", "X-Gitea-Signature", strings.ToUpper(sum), body, http.StatusForbidden},
		{"SHA-1", "X-Hub-Signature", "sha1=" + sum[:40], body, http.StatusForbidden},
		{"another token", "X-Gitlab-Token", secret + "!", body, http.StatusForbidden},
		{"an empty token", "X-Gitlab-Token", "", body, http.StatusForbidden},
		{"a token and no secret of ours", "X-Gitlab-Token", sum, body, http.StatusForbidden},
		{"a body that is too large", "X-Gitlab-Token", secret, strings.Repeat("x", maxHook+1), http.StatusBadRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ralph.db"), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			woken := func() ralph.Time {
				is, err := store.Read(t.Context(), db, (*store.Tx).Forge)
				if err != nil {
					t.Error(err)
				}
				return is.Woken
			}
			p := &Project{
				Config:  config.Loaded{Config: config.Config{Forge: config.Forge{Label: "ralph"}}},
				Environ: []string{HookVariable + "=" + secret},
			}
			r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/hooks/forge", bytes.NewBufferString(tt.body))
			r.Header.Set(tt.header, tt.value)
			w := httptest.NewRecorder()
			p.Hook(db).ServeHTTP(w, r)
			if w.Code != tt.want || woken().IsZero() == (tt.want == http.StatusNoContent) {
				t.Errorf("%d (%s), woken at %v", w.Code, w.Body, woken())
			}
		})
	}
	p := &Project{Config: config.Loaded{Config: config.Config{Forge: config.Forge{Label: "ralph"}}}}
	if p.Hook(nil) != nil {
		t.Error("without a secret there is no webhook")
	}
}
