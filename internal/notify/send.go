package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"ralph/internal/text"
)

// Bounds of an answer, in bytes: the part that is read, and the part of an error that is shown.
const (
	maxAnswer = 4 << 10
	maxShown  = 200
)

// client returns the HTTP client. It does not follow redirects: they would send signed content to
// somebody else.
func (n *Notifier) client() *http.Client {
	transport := n.Transport
	if transport == nil {
		transport = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 1,
			IdleConnTimeout:     time.Minute,
		}
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, CheckRedirect: stay}
}

// send makes one delivery attempt. Errors do not contain the URL or the secret; they wrap package
// backoff's errors if a retry is pointless or should wait.
func (l *line) send(ctx context.Context, note Notification) error {
	select {
	case l.one <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.one }()
	ctx, cancel := context.WithTimeoutCause(ctx, l.Timeout, errTimeout(l.Timeout))
	defer cancel()
	if len(l.to.Command) > 0 {
		return l.runCommand(ctx, note)
	}
	return l.post(ctx, note)
}

func errTimeout(d time.Duration) error { return fmt.Errorf("took longer than %s", d) }

// post sends a request.
func (l *line) post(ctx context.Context, note Notification) error {
	req, err := l.request(ctx, note)
	if err != nil {
		return backoff.Permanent(errors.New(l.to.scrub(err.Error())))
	}
	resp, err := l.client.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if inURL, ok := errors.AsType[*url.Error](err); ok { // its text contains the URL
			err = inURL.Err
		}
		return errors.New(l.to.scrub(err.Error()))
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		answer = nil // the status is enough
	}
	return l.judge(resp, answer)
}

// request makes the request for a notification.
func (l *line) request(ctx context.Context, note Notification) (*http.Request, error) {
	u, err := url.Parse(l.to.URL)
	if err != nil {
		return nil, err
	}
	target, body, err := presets[l.to.Preset](note, u)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "ralph")
	switch {
	case l.to.Preset == Ntfy && l.to.Secret != "":
		req.Header.Set("Authorization", "Bearer "+l.to.Secret)
	case l.to.Preset == Generic:
		return req, sign(req.Header, l.to.Secret, note.ID, time.Now(), body)
	}
	return req, nil
}

// secretPrefix begins every signing secret.
const secretPrefix = "whsec_"

// key decodes a signing secret.
func key(secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, secretPrefix)
	k, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(k) < 24 || len(k) > 64 {
		return nil, errNoKey
	}
	return k, nil
}

// sign sets the headers of Standard Webhooks 1.0; without a secret all but the signature. The time
// is that of the attempt, so that receivers can refuse replays.
func sign(h http.Header, secret, id string, now time.Time, body []byte) error {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", timestamp)
	if secret == "" {
		return nil
	}
	k, err := key(secret)
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	h.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return nil
}

// again are the client errors after which a retry may help: proxies and gateways send them while a
// receiver is being replaced.
var again = []int{
	http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly,
	http.StatusTooManyRequests,
}

// judge converts an answer to an error, unless it is a success.
func (l *line) judge(resp *http.Response, answer []byte) error {
	code := resp.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	why := fmt.Sprintf("answered %d %s", code, http.StatusText(code))
	if shown := text.Short(string(answer), maxShown); shown != "" && code >= 400 {
		why += ": " + shown
	}
	err := errors.New(l.to.scrub(why))
	switch {
	case code < 400:
		return backoff.Permanent(fmt.Errorf("%w, a redirect, which is not followed: give the address that it leads to", err))
	case code < 500 && !slices.Contains(again, code):
		return backoff.Permanent(err)
	}
	if wait, ok := retryAfter(resp.Header.Get("Retry-After"), time.Now()); ok {
		return &later{err, &backoff.RetryAfterError{Duration: wait}}
	}
	return err
}

// later is an error after which the receiver asks for a pause.
type later struct {
	error
	wait *backoff.RetryAfterError
}

// Unwrap exposes the pause to package backoff.
func (l *later) Unwrap() []error { return []error{l.error, l.wait} }

// retryAfter parses the header: seconds or a date. The wait is bounded in both directions.
func retryAfter(header string, now time.Time) (time.Duration, bool) {
	if header == "" {
		return 0, false
	}
	var wait time.Duration
	if seconds, err := strconv.ParseFloat(strings.TrimSpace(header), 64); err == nil && !math.IsNaN(seconds) {
		wait = time.Duration(min(max(seconds, 0), longest.Seconds()) * float64(time.Second))
	} else if at, err := http.ParseTime(header); err == nil {
		wait = at.Sub(now)
	} else {
		return 0, false
	}
	return min(max(wait, firstWait/2), longest), true
}
