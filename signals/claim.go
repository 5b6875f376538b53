package signals

import "ralph/internal/lazy"

// deciding matches words about the rules of acceptance; steering matches words that ask to break them.
var (
	deciding = lazy.Regexp(`(?i)\b(tests?|suites?|checks?|checked|verif\w+|lint\w*|ci|gates?|permissions?|` +
		`signals?|hooks?|ralph|sandbox|done|approv\w+|guard\w*|reviews?)\b`)
	steering = lazy.Regexp(`(?i)\b(skip\w*|ignor\w+|bypass\w*|disabl\w+|without|flaky|unreliable|broken|` +
		`always (pass|fail)\w*|` +
		`(say|signal|call|claim|report) (it )?(as )?done|not? need(ed)?|need not|don'?t (run|need|wait|ask|check|bother)|` +
		`do not (run|need|wait|ask|check|bother)|never (run|ask|check|flag)|no-verify|tests_changed|flags_answered|` +
		`(pre-?)?approved|(is|are|be) allowed|may be (removed|deleted|changed)|` +
		`(delete|remove|rewrite|loosen) (the |failing |old )*(tests?|checks?))\b`)
)

// Claims reports whether a text is about checks, permissions or signals in a way that would change a session's
// behaviour. A person has to confirm such a learning; until then it is a claim.
func Claims(text string) bool { return deciding().MatchString(text) && steering().MatchString(text) }
