package project

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"io"
	"net/http"

	"ralph/store"
)

// HookVariable has the secret that the forge signs its webhooks with.
const HookVariable = "RALPH_FORGE_HOOK_SECRET"

// maxHook bounds the body of a webhook, in bytes. GitHub's are at most 25 MB.
const maxHook = 25 << 20

// Hook returns the handler of the forge's webhooks; nil without a secret. A request with the right signature wakes the
// reader of the forge: its content is never used.
func (p *Project) Hook(db *store.DB) http.Handler {
	secret := p.Getenv(HookVariable)
	if secret == "" || !p.Forges() {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHook))
		switch {
		case err != nil:
			http.Error(w, "the body cannot be read, or is too large", http.StatusBadRequest)
		case !signed(r.Header, body, secret):
			http.Error(w, "the signature is missing or wrong: set the same secret in "+HookVariable, http.StatusForbidden)
		case db.Tx(r.Context(), (*store.Tx).WakeForge) != nil:
			http.Error(w, "the queue cannot be written; the forge is read within a minute", http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
}

// signed reports whether a webhook has the secret's signature: HMAC-SHA256 of the body on GitHub, Gitea and Forgejo,
// the secret itself on GitLab.
func signed(h http.Header, body []byte, secret string) bool {
	if token := h.Get("X-Gitlab-Token"); token != "" {
		return subtle.ConstantTimeCompare([]byte(token), []byte(secret)) == 1
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	want := hex.EncodeToString(mac.Sum(nil))
	for name, prefix := range map[string]string{
		"X-Hub-Signature-256": "sha256=", "X-Gitea-Signature": "", "X-Forgejo-Signature": "",
	} {
		if said := h.Get(name); said != "" {
			return hmac.Equal([]byte(said), []byte(prefix+want))
		}
	}
	return false
}
