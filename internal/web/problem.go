package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"

	"ralph"
	"ralph/internal/text"
	"ralph/store"
)

// A problem is the content of an error page.
type problem struct {
	Status int
	Text   string
	Again  string  // where to send the failed form again; "" without a form
	Fields []field // content of the form
	Back   string
}

// A field is a name and a text.
type field struct{ Name, Text string }

// statusOf maps errors to HTTP statuses. No other code does.
func statusOf(err error) int {
	var wrong *ralph.FieldError
	var large *http.MaxBytesError
	var usage *ralph.ExitError
	switch {
	case store.Passes(err): // first: an unreachable server is not a missing page
		return http.StatusServiceUnavailable
	case errors.Is(err, errSignIn):
		return http.StatusUnauthorized
	case errors.Is(err, errOldForm):
		return http.StatusForbidden
	case errors.Is(err, ralph.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return http.StatusNotFound
	case errors.Is(err, ralph.ErrConflict), errors.Is(err, ralph.ErrInvariant):
		return http.StatusConflict
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.As(err, &wrong), errors.As(err, &usage) && usage.Status == ralph.ExitUsage:
		return http.StatusUnprocessableEntity
	}
	return http.StatusInternalServerError
}

// fail shows an error, and the content of a form, so that it is not lost.
func (a *app) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problem{Status: statusOf(err), Text: err.Error(), Back: local(r.PostFormValue("back"))}
	if p.Status == http.StatusInternalServerError {
		a.Log.Error("request", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	if p.Status == http.StatusServiceUnavailable && r.Method == http.MethodGet {
		w.Header().Set("Refresh", "5") // the page reloads itself
	}
	if r.Method == http.MethodPost {
		p.Again = r.URL.Path
		for _, name := range []string{
			"text", "rationale", "kind", "option", "verdict", "title", "accept", "verify", "learnings", "name",
			"priority", "feature", "change", "item", "before", "after", "was",
		} {
			if s := r.PostFormValue(name); s != "" {
				p.Fields = append(p.Fields, field{name, s})
			}
		}
	}
	a.write(w, r, p.Status, view{title: http.StatusText(p.Status), name: "problem", body: p})
}

func notThere(r *http.Request) error {
	return fmt.Errorf("the page %s: %w", text.Line(r.URL.Path, 100), ralph.ErrNotFound)
}

// pathID parses the {id} of a path.
func pathID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id <= 0 {
		return 0, notThere(r)
	}
	return id, nil
}
