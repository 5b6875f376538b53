package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The kinds of forges.
const (
	GitHub = "github"
	GitLab = "gitlab"
	Gitea  = "gitea" // and Forgejo
)

// An Address is where a repository is.
type Address struct {
	Kind        string
	URL         string // URL of the forge, such as "https://git.example.org"
	Owner, Name string // on GitLab the owner may be a path of groups
}

// String returns the address for people, without a scheme.
func (a Address) String() string {
	_, host, _ := strings.Cut(a.URL, "://")
	return host + "/" + a.Owner + "/" + a.Name
}

// hosts are the forges that everybody knows.
var hosts = map[string]string{
	"github.com": GitHub, "gitlab.com": GitLab, "gitea.com": Gitea, "codeberg.org": Gitea,
}

// sshHosts are the hosts of forges for ssh on the port of HTTPS, which firewalls let through.
var sshHosts = map[string]string{"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}

// Locate finds the repository of a git remote's address. kind and base override the address.
func Locate(remote, kind, base string) (Address, error) {
	remote = strings.TrimSpace(remote)
	scheme, host, path := "https", "", ""
	if u, err := url.Parse(remote); err == nil && u.Host != "" {
		host, path = u.Host, u.Path
		if u.Scheme == "http" {
			scheme = "http"
		} else if u.Scheme != "https" {
			host = u.Hostname() // the port belongs to another protocol
		}
	} else if at, rest, ok := strings.Cut(remote, ":"); ok && !strings.Contains(at, "/") {
		host, path = at[strings.LastIndexByte(at, '@')+1:], rest
	}
	host = cmp.Or(sshHosts[strings.ToLower(host)], host)
	owner, name, ok := cutLast(strings.Trim(strings.TrimSuffix(strings.Trim(path, "/"), ".git"), "/"))
	if host == "" || !ok {
		return Address{}, fmt.Errorf("%q is not the address of a repository on a forge", redacted(remote))
	}
	a := Address{Kind: kind, URL: scheme + "://" + host, Owner: owner, Name: name}
	if a.Kind == "" {
		a.Kind = hosts[strings.ToLower(host)]
	}
	if base != "" {
		a.URL = strings.TrimRight(base, "/")
		if u, err := url.Parse(a.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return Address{}, fmt.Errorf("forge.url %q is not an address such as https://git.example.org", redacted(base))
		} else if below := strings.Trim(u.Path, "/"); below != "" { // a forge below a path of its host
			a.Owner = strings.TrimPrefix(a.Owner, below+"/")
		}
	}
	if a.Kind == "" {
		return a, unknownHost(host)
	}
	return a, nil
}

// An unknownHost is a host whose name does not show the forge's kind.
type unknownHost string

func (h unknownHost) Error() string {
	return "which forge is at " + string(h) + "? Set forge.kind in ralph.yaml: github, gitlab or gitea"
}

// askLimit is the longest time of [Recognize].
const askLimit = 2 * time.Second

// Recognize completes the address of [Locate] for an unknown host by the kind that the forge's API shows there. It
// sends no token. It returns err as it is for other errors, and if the host does not answer in time as a forge does.
func Recognize(ctx context.Context, a Address, err error) (Address, error) {
	if host := unknownHost(""); !errors.As(err, &host) {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	for _, api := range []struct{ kind, path, header string }{
		{Gitea, "/api/v1/version", ""}, {GitLab, "/api/v4/version", ""}, {GitHub, "/api/v3/meta", "X-Github-Request-Id"},
	} {
		r, rerr := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+api.path, nil)
		if rerr != nil {
			return a, err
		}
		res, rerr := client.Do(r)
		if rerr != nil {
			return a, err // it is away
		}
		var said struct{ Version, Message string }
		rerr = json.NewDecoder(io.LimitReader(res.Body, maxBody)).Decode(&said)
		known := rerr == nil && (said.Version != "" || api.kind == GitLab && res.StatusCode == http.StatusUnauthorized)
		if rerr = res.Body.Close(); rerr == nil && (known && api.header == "" || res.Header.Get(api.header) != "") {
			a.Kind = api.kind
			return a, nil
		}
	}
	return a, err
}

// cutLast cuts a path before its last part.
func cutLast(path string) (before, last string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 || i == len(path)-1 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// redacted returns an address without its password.
func redacted(s string) string {
	if u, err := url.Parse(s); err == nil {
		return u.Redacted()
	}
	return "(an address)"
}

// A repository is the part of a [Forge] that all forges share.
type repository struct {
	at        Address
	transport *Transport
	api       string // the address of the API that repositories are below
}

func (r *repository) Repository() string { return r.at.String() }

// path returns the path of a repository in the API.
func (r *repository) path(owner, name string) string {
	if r.at.Kind == GitLab {
		return url.PathEscape(owner + "/" + name)
	}
	return url.PathEscape(owner) + "/" + url.PathEscape(name)
}

// get reads an address of the API below the repositories.
func (r *repository) get(ctx context.Context, path string, into any) (err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, r.api+path, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: r.transport}
	res, err := client.Do(q)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	return json.NewDecoder(res.Body).Decode(into)
}

func (r *repository) Leads(ctx context.Context, from string) (bool, error) {
	host := strings.TrimSuffix(r.at.String(), r.at.Owner+"/"+r.at.Name)
	owner, name, ok := cutLast(strings.TrimPrefix(from, host))
	if !ok || !strings.HasPrefix(from, host) {
		return false, nil
	}
	var is struct {
		GitHub string `json:"full_name"` // and Gitea
		GitLab string `json:"path_with_namespace"`
	}
	err := r.get(ctx, r.path(owner, name), &is)
	if KindOf(err) == Gone {
		return false, nil
	}
	return strings.EqualFold(is.GitHub+is.GitLab, r.at.Owner+"/"+r.at.Name), err
}

func (r *repository) Limit() (int, bool) { return r.transport.Limit() }

// requestLimit is the longest time of a request.
const requestLimit = 30 * time.Second

// New returns the forge of an address. It makes no request.
func New(a Address, token string, now func() time.Time) (Forge, error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.ResponseHeaderTimeout = requestLimit
	t := &Transport{Base: base, Now: now, Token: func(r *http.Request) {
		switch {
		case token == "":
		case a.Kind == GitLab:
			r.Header.Set("Private-Token", token)
		case a.Kind == Gitea:
			r.Header.Set("Authorization", "token "+token)
		default:
			r.Header.Set("Authorization", "Bearer "+token)
		}
	}}
	switch a.Kind {
	case GitHub:
		return newGitHub(a, t)
	case GitLab:
		return newGitLab(a, t)
	case Gitea:
		return newGitea(a, t)
	}
	return nil, fmt.Errorf("forge.kind %q is not one of github, gitlab and gitea", a.Kind)
}
