package web

import (
	"net/http"
	"net/url"
	"strconv"

	"ralph"
)

// link returns the address of a page with parameters. Templates need complete addresses: after a question mark of their
// own they would escape text as the value of one parameter.
func link(page string, q url.Values) string {
	if len(q) == 0 {
		return page
	}
	return page + "?" + q.Encode()
}

// tasksLike returns the address of the tasks with a word of [ralph.Words] and a feature; "" is every feature.
func tasksLike(word, feature string) string {
	q := url.Values{"status": {ralph.KeyOf(word)}}
	if feature != "" {
		q.Set("feature", feature)
	}
	return link("/tasks", q)
}

// A pager navigates a long list.
type pager struct {
	Page        int // from 1
	Older, Less string
}

// pageOf returns the page that a request asks for.
func pageOf(r *http.Request) int {
	n, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil || n < 1 || n > 1_000_000 {
		return 1
	}
	return n
}

// newPager links the neighbouring pages; more reports whether there is a next one.
func newPager(r *http.Request, more bool) pager {
	p := pager{Page: pageOf(r)}
	to := func(n int) string {
		q := r.URL.Query()
		q.Set("page", strconv.Itoa(n))
		q.Del("item") // the present page shows it
		return link(r.URL.Path, q)
	}
	if more {
		p.Older = to(p.Page + 1)
	}
	if p.Page > 1 {
		p.Less = to(p.Page - 1)
	}
	return p
}

// pageIn returns the requested page of a list.
func pageIn[T any](r *http.Request, list []T, size int) ([]T, pager) {
	page, more := paged(list[min(len(list), (pageOf(r)-1)*size):], size)
	return page, newPager(r, more)
}

// paged shortens a list that has one element more than a page shows, if there is a next page.
func paged[T any](list []T, size int) (page []T, more bool) {
	if len(list) > size {
		return list[:size], true
	}
	return list, false
}
