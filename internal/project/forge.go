package project

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ralph"
	"ralph/forge"
	"ralph/internal/files"
	"ralph/internal/proc"
	"ralph/internal/text"
	"ralph/internal/worktree"
	"ralph/loop/merging"
	"ralph/store"
)

// modePull is the value of merge.mode that opens pull requests.
const modePull = "pr"

// Forges reports whether the project follows a forge: its issues, its pull requests, or both.
func (p *Project) Forges() bool { return p.Config.Forge.Label != "" || p.Config.Merge.Mode == modePull }

// KeepMode makes a command continue like the last run: with pull requests after `ralph run --pr`.
func (p *Project) KeepMode(ctx context.Context, db *store.DB) error {
	q, err := store.Read(ctx, db, (*store.Tx).MergeQueue)
	if err != nil || !q.Pulls {
		return err
	}
	return p.Config.Set("merge.mode", "queue", modePull)
}

// forgeRemote returns the remote whose address names the forge.
func (p *Project) forgeRemote() string {
	if p.Config.Merge.Push != "" {
		return p.Config.Merge.Push
	}
	return "origin"
}

// forgeAddress finds the repository on its forge.
func (p *Project) forgeAddress(ctx context.Context) (forge.Address, error) {
	remote := p.forgeRemote()
	address, err := worktree.RemoteAddress(ctx, p.Root, remote)
	if err != nil {
		return forge.Address{}, ralph.Usage(err)
	}
	c := p.Config.Forge
	if c.Kind == "auto" {
		c.Kind = ""
	}
	a, err := forge.Locate(address, c.Kind, c.URL)
	if err != nil {
		return a, ralph.Usage(fmt.Errorf("the forge of remote %s: %w", remote, err))
	}
	return a, nil
}

// FoundForge returns the repository on its forge and the source of a token; ok is false unless both exist. asked is
// set if only the host's API, not its name, shows the forge's kind.
func (p *Project) FoundForge(ctx context.Context) (a forge.Address, from string, asked, ok bool) {
	a, err := p.forgeAddress(ctx)
	if err != nil {
		if a, err = forge.Recognize(ctx, a, err); err != nil {
			return a, "", false, false
		}
		asked = true
	}
	_, from, err = p.forgeToken(ctx, a.Kind)
	return a, from, asked, err == nil
}

// forgeVariables returns the variables for the token, by precedence.
func forgeVariables(kind string) []string {
	return append([]string{"RALPH_FORGE_TOKEN"}, map[string][]string{
		forge.GitHub: {"GITHUB_TOKEN", "GH_TOKEN"}, forge.GitLab: {"GITLAB_TOKEN"}, forge.Gitea: {"GITEA_TOKEN"},
	}[kind]...)
}

// maxToken bounds the output of gh and glab, in bytes.
const maxToken = 4096

// forgeToken returns the token and its source. It asks gh and glab last, since they are slow.
func (p *Project) forgeToken(ctx context.Context, kind string) (token, from string, err error) {
	for _, name := range forgeVariables(kind) {
		if token := p.Getenv(name); token != "" {
			return token, name, nil
		}
	}
	if name := p.Config.Forge.TokenFile; name != "" {
		path := p.paths([]string{name}, p.Getenv("HOME"))[0]
		if within(path, p.Root) {
			return "", "", ralph.Usage(fmt.Errorf("forge.token_file %s is in the project, where agents read: move it", name))
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return "", "", fmt.Errorf("forge.token_file: %w", err)
		}
		return strings.TrimSpace(string(b)), name, nil
	}
	ask := map[string][]string{
		forge.GitHub: {"gh", "auth", "token"}, forge.GitLab: {"glab", "config", "get", "token"},
	}[kind]
	if ask != nil {
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		r, err := proc.Run(limited, proc.Spec{Args: ask, Dir: p.Root, Env: p.Environ}, maxToken, nil)
		token := strings.TrimSpace(string(r.Output))
		if err == nil && r.Exit.Code == 0 && r.Exit.Signal == "" && token != "" {
			return token, strings.Join(ask, " "), nil
		}
	}
	return "", "", ralph.Usage(fmt.Errorf("there is no token for the forge: set %s, or name a file in forge.token_file",
		strings.Join(forgeVariables(kind), " or ")))
}

// withoutForge returns an environment without the forge's token, for agents.
func (p *Project) withoutForge(environ []string) []string {
	if !p.Forges() {
		return environ
	}
	var tokens []string
	for _, kind := range []string{forge.GitHub, forge.GitLab, forge.Gitea} {
		if p.Config.Forge.Kind != "auto" && p.Config.Forge.Kind != kind {
			continue
		}
		for _, name := range forgeVariables(kind) {
			if v := p.Getenv(name); v != "" {
				tokens = append(tokens, v)
				break
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		_, value, _ := strings.Cut(entry, "=")
		return slices.Contains(tokens, value)
	})
}

// forgeCredentials are variables that make git use the token for the forge's address, if the remote is an HTTP
// address without a user.
func (p *Project) forgeCredentials(ctx context.Context) []string {
	a, err := p.forgeAddress(ctx)
	if err != nil {
		return nil
	}
	address, err := worktree.RemoteAddress(ctx, p.Root, p.forgeRemote())
	if err != nil || !strings.HasPrefix(address, a.URL+"/") {
		return nil
	}
	token, _, err := p.forgeToken(ctx, a.Kind)
	if err != nil {
		return nil
	}
	basic := base64.StdEncoding.EncodeToString([]byte("oauth2:" + token))
	if a.Kind == forge.GitHub {
		basic = base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))
	}
	return []string{
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http." + a.URL + "/.extraHeader",
		"GIT_CONFIG_VALUE_0=Authorization: Basic " + basic,
	}
}

// connect returns the forge, its address, the token and the token's source. It asks nothing of the forge.
func (p *Project) connect(ctx context.Context, now func() time.Time) (
	f forge.Forge, a forge.Address, token, from string, err error,
) {
	if a, err = p.forgeAddress(ctx); err != nil {
		return nil, a, "", "", err
	}
	if token, from, err = p.forgeToken(ctx, a.Kind); err != nil {
		return nil, a, "", "", err
	}
	if f, err = forge.New(a, token, now); err != nil {
		err = ralph.Usage(err)
	}
	return f, a, token, from, err
}

// Syncer returns the syncer of the queue and the forge. Outside of a run m is nil.
func (p *Project) Syncer(ctx context.Context, db *store.DB, m *merging.Merger) (*forge.Syncer, error) {
	f, _, token, _, err := p.connect(ctx, db.Now)
	if err != nil {
		return nil, err
	}
	mask := p.Mask()
	s := &forge.Syncer{
		Forge: f, Store: db, Label: p.Config.Forge.Label, People: p.Config.Forge.People, Auto: p.Config.Merge.Auto,
		Rounds: p.Config.Limits.ReviewRounds, Log: p.Log, Now: db.Now, Stands: p.noteForge,
		Mask: func(s string) string { return mask.Text(strings.ReplaceAll(s, token, "[forge token]")) },
	}
	if p.Config.Merge.Mode == modePull {
		if m == nil {
			tree, err := worktree.Open(ctx, p.Root, p.Own()...)
			if err != nil {
				return nil, err
			}
			if m, err = p.Merger(ctx, db, tree); err != nil {
				return nil, err
			}
		}
		s.Into, s.Git = m.Into, m
	}
	return s, nil
}

// OpenPulls opens the pull requests of branches that were pushed, unless another process follows the forge.
func (p *Project) OpenPulls(ctx context.Context, db *store.DB, m *merging.Merger) error {
	s, err := p.Syncer(ctx, db, m)
	if err == nil {
		err = s.Once(ctx)
	}
	if errors.Is(err, forge.ErrFollowed) {
		return nil
	}
	return err
}

// forgeFile has the state of the forge, for people: it decides nothing.
const forgeFile = "forge.json"

// noteForge stores the state of the forge.
func (p *Project) noteForge(st forge.Standing) {
	if last, ok, err := p.Forge(); err == nil && ok {
		if st.Looked.IsZero() {
			st.Looked = last.Looked
		}
		if st.Refused == "" && time.Since(last.RefusedAt.Time) < refusedShown {
			st.Refused, st.RefusedAt = last.Refused, last.RefusedAt
		}
	}
	b, err := json.Marshal(st)
	if err == nil {
		err = files.Write(filepath.Join(p.State, forgeFile), b, 0o600)
	}
	if err != nil {
		p.Log.Warn("cannot note how the forge stands", "error", err)
	}
}

// Forge returns the state of the forge at the last look; ok is false before the first one.
func (p *Project) Forge() (st forge.Standing, ok bool, err error) {
	b, err := os.ReadFile(filepath.Join(p.State, forgeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return st, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &st)
	}
	return st, err == nil, err
}

// refusedShown is the time for which a refused post is shown.
const refusedShown = 24 * time.Hour

// ForgeLine returns the state of the forge in one line: the last look, posts to send, requests left and troubles. It is
// "" if the project follows none.
func (p *Project) ForgeLine(now time.Time) string {
	if !p.Forges() {
		return ""
	}
	st, ok, err := p.Forge()
	switch {
	case err != nil:
		return "unknown: " + text.Line(err.Error(), 200)
	case !ok:
		return "not read yet: `ralph run` does, or `ralph forge sync --once`"
	}
	said := text.Line(st.Repository, 100)
	if !st.Looked.IsZero() {
		said += ", read " + text.When(st.Looked.Time, now)
	}
	if st.Posts > 0 {
		said += ", " + text.Count(st.Posts, "post") + " to send"
	}
	if st.Left != nil {
		said += fmt.Sprintf(", %d requests left", *st.Left)
	}
	if st.Failed != "" {
		said += ": " + text.Line(st.Failed, 300)
	}
	if st.Refused != "" {
		said += "; refused on " + text.Line(st.Refused, 300)
	}
	return said
}

// ForgeAway reports whether an error of [Project.CheckForge] passes by itself.
func ForgeAway(err error) bool {
	e, ok := errors.AsType[*forge.Error](err)
	return ok && e.Kind.Passes() && e.Kind != forge.Token
}

// CheckForge tries the token, and names its account. ok is false if that may not write.
func (p *Project) CheckForge(ctx context.Context) (said string, ok bool, err error) {
	f, a, _, from, err := p.connect(ctx, time.Now)
	if err != nil {
		return "", false, err
	}
	self, err := f.Self(ctx)
	if err != nil {
		return "", false, fmt.Errorf("%s (token: %s): %w", a, from, forge.Unaddressed(err))
	}
	said = fmt.Sprintf("%s as %s (token: %s)", a, self.Login, from)
	if !self.Write {
		return said + ", which may not write there", false, nil
	}
	return said, true, nil
}
