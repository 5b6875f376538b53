package signals

import (
	"fmt"
	"slices"

	"ralph"
)

// Differences lists how two decisions on a session differ in effect, such
// as "status: pending, now failed". Sentences for people are not compared.
func Differences(then, now Decision) []string {
	var out []string
	differ := func(what string, a, b any) {
		if as, bs := fmt.Sprint(a), fmt.Sprint(b); as != bs {
			out = append(out, fmt.Sprintf("%s: %s, now %s", what, said(as), said(bs)))
		}
	}
	differ("closing verb", then.Closing, now.Closing)
	differ("closing verb inferred", then.Inferred, now.Inferred)
	differ("claim accepted", then.Accepted, now.Accepted)
	differ("verified", then.Verified, now.Verified)
	differ("status", then.Status, now.Status)
	differ("attempts", then.Attempts, now.Attempts)
	differ("stuck count", then.StuckCount, now.StuckCount)
	differ("refused claims", then.VerifyFailures, now.VerifyFailures)
	differ("prompts too long", then.PromptTooLong, now.PromptTooLong)
	differ("waits for a person", then.Blocker, now.Blocker)
	differ("sent back", then.SentBack != "", now.SentBack != "")
	differ("outcome", then.Outcome, now.Outcome)
	differ("stagnant", then.Stagnant, now.Stagnant)
	differ("waits for approval", awaited(then.Approval), awaited(now.Approval))
	differ("held back by comments", comments(then.Holds), comments(now.Holds))
	differ("depends on", then.DependsOn, now.DependsOn)
	differ("learnings", taught(then.Learn), taught(now.Learn))
	differ("proposals", proposed(then.Propose), proposed(now.Propose))
	differ("announced flags", then.Announce, now.Announce)
	return out
}

// said shows an absent value as "none".
func said(v string) string {
	if v == "" || v == "[]" {
		return "none"
	}
	return v
}

// awaited names what a person has to approve.
func awaited(r *ralph.Approval) string {
	if r == nil {
		return ""
	}
	return waitsFor(*r)
}

func comments(holds []Hold) []int64 {
	var ids []int64
	for _, h := range holds {
		ids = append(ids, h.Comment)
	}
	return ids
}

// taught names new learnings by their comment, and repetitions by what
// they repeat. Texts are left out, as they grow with later sessions.
func taught(learn []Learn) []string {
	var out []string
	for _, l := range learn {
		if l.Into == 0 {
			out = append(out, fmt.Sprintf("new from %v", l.Comments))
			continue
		}
		out = append(out, fmt.Sprintf("%v into %d", l.Comments, l.Into))
	}
	return out
}

func proposed(list []Proposal) []string {
	var out []string
	for _, p := range list {
		how := "proposed"
		if p.Status == ralph.Pending {
			how = "approved"
		}
		out = append(out, fmt.Sprintf("%q %s", p.Title, how))
	}
	slices.Sort(out)
	return out
}
