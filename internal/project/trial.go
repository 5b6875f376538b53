package project

import (
	"context"
	"fmt"
	"io"
	"slices"

	"ralph"
	"ralph/internal/config"
	"ralph/internal/text"
	"ralph/store"
)

// Try finds out whether the project can be worked on in slots: it creates one, sets it up and
// verifies it. checks are the results.
func (p *Project) Try(
	ctx context.Context, db *store.DB,
) (found config.StarterPlace, checks []ralph.Check, red bool, err error) {
	here := func(why string) (config.StarterPlace, []ralph.Check, bool, error) {
		return config.StarterPlace{Kind: "here", Why: text.Line(why, 300)}, nil, false, nil
	}
	if !p.Git {
		return here("the project is not in a git repository")
	}
	l, err := p.Loop(ctx, db)
	if err != nil {
		return found, nil, false, err
	}
	if why := l.Place.Tree.Uncloned(ctx); why != "" {
		return here(why)
	}
	if l.Lander.Into == "" {
		return here("HEAD is detached, so that there is no branch on which work could land")
	}
	found.Kind = "slot"
	found.Setup, found.When = likelySetup(p.Root)
	own := *p
	own.Config.Place.Kind, own.Config.Place.Setup, own.Config.Place.SetupWhen = found.Kind, found.Setup, found.When
	checks, red, err = own.Verify(ctx, db, 0, func(ralph.Check, io.ReadSeeker) error { return nil })
	if err != nil {
		if ctx.Err() != nil {
			return found, nil, false, err
		}
		return here("none could be made: " + err.Error())
	}
	failed := func(c ralph.Check) bool { return !c.Passed }
	if i := slices.IndexFunc(checks, failed); i >= 0 {
		c := checks[i]
		return here(fmt.Sprintf("`%s` fails in a clone of what is committed (exit status %d)", c.Command, c.Exit))
	}
	return found, checks, red, nil
}
