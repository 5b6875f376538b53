package worktree

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"ralph"
	"ralph/internal/lazy"
	"ralph/internal/text"
)

// acted matches words in a message that make hosts skip checks or close issues.
var acted = lazy.Regexp(`(?i)\[(?:skip[ -]\w+|no ci|\w+[ -]skip)\]|\*\*\*no_ci\*\*\*|` +
	`\b(?:close|fix|resolve)(?:s|d|es|ed)?:? +(?:[\w./-]*#\d+|https?://\S+/issues/\d+)`)

// slack is the tolerance for clocks that differ, and for commits dated before the session's start.
const slack = time.Hour

// CommitNotes lists the commits that one commit has and another lacks whose author, date or words are not the agent's
// own, newest first. since is the start of the session, and trailers are ralph's own.
func (t *Tree) CommitNotes(
	ctx context.Context, of, lacks string, since time.Time, trailers string,
) (list []ralph.CommitNote, err error) {
	if of == lacks {
		return nil, nil
	}
	out, err := t.run(ctx, nil, "log", "--no-show-signature", "--no-decorate", "--no-patch",
		"--max-count="+strconv.Itoa(maxCommits), "--format=%H%x1f%an <%ae>%x1f%at%x1f%cn <%ce>%x1f%ct%x1f"+
			"%(trailers:only=true,unfold=true,separator=%x1d)%x1f%B%x1e", lacks+".."+of)
	user := t.User(ctx)
	own := strings.Split(trailers, "\n")
	for _, u := range [][2]string{
		user, asRalph,
		{os.Getenv("GIT_AUTHOR_NAME"), os.Getenv("GIT_AUTHOR_EMAIL")},
		{os.Getenv("GIT_COMMITTER_NAME"), os.Getenv("GIT_COMMITTER_EMAIL")},
	} {
		own = append(own, u[0]+" <"+u[1]+">")
	}
	for entry := range strings.SplitSeq(string(out), "\x1e") {
		if f := strings.SplitN(strings.TrimPrefix(entry, "\n"), "\x1f", 7); len(f) == 7 {
			if n := noteOf(f, own, since, time.Now()); n.Author != "" || !n.Date.IsZero() || len(n.Words) > 0 {
				list = append(list, n)
			}
		}
	}
	return list, err
}

// noteOf reads a commit: id, author, its time, committer, its time, trailers and message. own are the names and
// trailers of the agent and ralph.
func noteOf(f, own []string, since, now time.Time) (n ralph.CommitNote) {
	n.ID = f[0]
	for i := 1; i < 5; i += 2 {
		if n.Author == "" && !slices.Contains(own, f[i]) {
			n.Author = text.Clip(f[i], 80)
		}
		seconds, err := strconv.ParseInt(f[i+1], 10, 64)
		at := time.Unix(seconds, 0)
		if n.Date.IsZero() && (err != nil || at.Before(since.Add(-slack)) || at.After(now.Add(slack))) {
			n.Date = ralph.At(at)
		}
	}
	words := acted().FindAllString(f[6], -1)
	for trailer := range strings.SplitSeq(f[5], "\x1d") {
		if trailer != "" && !byAgent(trailer) && !slices.Contains(own, trailer) {
			words = append(words, trailer)
		}
	}
	for _, w := range words {
		if w = text.Clip(w, 80); !slices.Contains(n.Words, w) {
			n.Words = append(n.Words, w)
		}
	}
	return n
}

// byAgent reports whether a trailer names an agent as a co-author, as many agents do.
func byAgent(trailer string) bool {
	key, name, _ := strings.Cut(strings.ToLower(trailer), ":")
	return key == "co-authored-by" && (strings.Contains(name, "<noreply@") || strings.Contains(name, "[bot]") ||
		strings.Contains(name, "copilot@"))
}
