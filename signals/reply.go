package signals

import "ralph"

// A Reply is the kind of message that an agent gets at the end of a turn. Package session has the words.
type Reply string

// The replies of a session that works.
const (
	ReplyRemind    Reply = "remind"    // the agent must call a closing verb
	ReplyRefused   Reply = "refused"   // the reasons for the refusal
	ReplyTests     Reply = "tests"     // the former tests refuse the done
	ReplyBlind     Reply = "blind"     // tests pass with any expectation
	ReplyConflict  Reply = "conflict"  // the work conflicts with merged work
	ReplyAside     Reply = "aside"     // all commits are on branches that are not verified
	ReplyUnchanged Reply = "unchanged" // nothing changed, and all commands passed before
	ReplyFlags     Reply = "flags"     // blocking flags are open
	ReplyDebris    Reply = "debris"    // the change leaves out files that tools left behind
	ReplyElsewhere Reply = "elsewhere" // nothing changed in a worker's folder
	ReplyConfirm   Reply = "confirm"   // nothing changed, and no command checks it
	ReplyComment   Reply = "comment"   // no message of ralph's: a person's comment is on its way
)

// questions are the replies that ask an agent to confirm its done.
var questions = []Reply{ReplyAside, ReplyUnchanged, ReplyElsewhere, ReplyConfirm}

// A Notice is a message to an agent at the end of a turn.
type Notice struct {
	Reply   Reply `json:"reply"`
	Comment int64 `json:"comment,omitempty"` // the done that it answers, or the comment of [ReplyComment]
}

// reply returns the reply to an agent that waits; "" for none. A reply is not repeated if it has not helped: the next
// session gets it instead.
func reply(f Facts) Reply {
	if !f.Waiting {
		return ""
	}
	closing := Closing(f.Said)
	done, claims := closing.Payload.(Done)
	switch {
	case closing.Payload == nil && f.told(ReplyRemind) < f.Rules.Reminders:
		return ReplyRemind
	case !claims:
		return ""
	}
	if r := toDone(f, done); r != "" {
		return r
	}
	if f.Unheard > f.lastTold(ReplyComment) {
		return ReplyComment
	}
	return ""
}

// toDone returns the reply to a done; "" for none.
func toDone(f Facts, done Done) Reply {
	refusal, asked := f.refusal(), f.lastTold(questions...) > 0
	switch {
	case refusal.TestsAlone() && f.told(f.aboutTests()) == 0:
		return f.aboutTests()
	case refusal.Any() && f.told(ReplyRefused) < f.Rules.Retries:
		return ReplyRefused
	case refusal.Any():
		return ""
	case f.Conflict != "":
		return f.toConflict()
	case len(f.Evidence.Aside) > 0 && f.Untouched && !asked:
		return ReplyAside
	case f.Evidence.Gate.Unchanged && !f.Worker && !asked:
		return ReplyUnchanged
	case len(OpenFlags(f.Said, f.OpenFlags, done)) > 0 && f.told(ReplyFlags) == 0:
		return ReplyFlags
	case len(f.Evidence.Debris) > 0 && f.told(ReplyDebris) == 0:
		return ReplyDebris
	case !f.nothing() || asked:
		return ""
	case f.Worker && f.Cloned: // it may have worked elsewhere
		return ReplyElsewhere
	case len(f.Verify) == 0:
		return ReplyConfirm
	}
	return ""
}

// toConflict returns the reply to a done that conflicts with merged work; "" for none.
func (f Facts) toConflict() Reply {
	if len(f.Marks) > 0 || f.told(ReplyConflict) > 0 && !f.Moved {
		return "" // the agent knew it and fixed nothing: another session begins anew
	}
	return ReplyConflict
}

// aboutTests returns the reply to a done that is refused for its tests alone.
func (f Facts) aboutTests() Reply {
	if len(f.Evidence.Gate.Trial.Neutralised) > 0 {
		return ReplyBlind
	}
	return ReplyTests
}

// told counts the agent's replies of one kind.
func (f Facts) told(r Reply) (n int) {
	for _, notice := range f.Told {
		if notice.Reply == r {
			n++
		}
	}
	return n
}

// lastTold returns the comment of the last of some replies; 0 if there was none.
func (f Facts) lastTold(replies ...Reply) (comment int64) {
	for _, notice := range f.Told {
		for _, r := range replies {
			if notice.Reply == r {
				comment = notice.Comment
			}
		}
	}
	return comment
}

// confirmed reports whether a person vouches for the done, or the agent repeated it when it was asked about it.
func (f Facts) confirmed() bool {
	asked := f.lastTold(questions...)
	return f.Vouched || asked > 0 && Closing(f.Said).ID > asked
}

// nothing reports whether the session has nothing to merge.
func (f Facts) nothing() bool { return f.Untouched && !f.Carries }

// refusal returns why the session's done is refused.
func (f Facts) refusal() Refusal { return Refused(f.Verify, f.Protected, f.Evidence, f.Rules) }

// A Refusal is the reason why a done is refused (pipeline rule 2). The zero value is none.
type Refusal struct {
	Failed    []ralph.Check  // commands that fail
	Protected []string       // changed protected files
	Tests     string         // why its tests are refused; "" if they are accepted
	Problems  []string       // other evidence, one clause each
	Objected  []ralph.Review // reviews that object, while the author may fix it
}

// Any reports whether the done is refused.
func (r Refusal) Any() bool {
	return len(r.Failed)+len(r.Protected)+len(r.Problems)+len(r.Objected) > 0 || r.Tests != ""
}

// TestsAlone reports whether the done is refused only because of its tests.
func (r Refusal) TestsAlone() bool {
	tests := r.Tests
	r.Tests = ""
	return tests != "" && !r.Any()
}
