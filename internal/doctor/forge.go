package doctor

import (
	"context"

	"ralph/internal/project"
)

// forge tries the token of the forge. A forge that is away stops no run.
func forge(ctx context.Context, p *project.Project) []Finding {
	if !p.Forges() {
		return nil
	}
	said, ok, err := p.CheckForge(ctx)
	switch {
	case project.ForgeAway(err):
		return []Finding{{"forge", true, err.Error(), "a run works without it and posts later; see `ralph forge`"}}
	case err != nil:
		return []Finding{{"forge", false, err.Error(), "or leave forge.label and merge.mode: pr out"}}
	case !ok:
		return []Finding{{"forge", false, said, "give the account write access, or use another token"}}
	}
	return []Finding{{"forge", true, said, ""}}
}
