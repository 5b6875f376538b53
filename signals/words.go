package signals

import (
	"cmp"
	"strings"
	"unicode"

	"ralph/internal/bm25"
)

// negations reverse the meaning of a sentence while changing few of its words.
var negations = map[string]bool{
	"no": true, "not": true, "never": true, "none": true, "without": true, "cannot": true,
	"neither": true, "nor": true, "isnt": true, "arent": true, "dont": true, "doesnt": true, "didnt": true, "cant": true,
	"wont": true, "shouldnt": true, "mustnt": true, "couldnt": true, "wouldnt": true,
	"wasnt": true, "werent": true, "hasnt": true, "havent": true,
	"nothing": true, "nobody": true, "avoid": true, "avoids": true, "forbids": true, "forbidden": true,
	"lacks": true, "fails": true, "refuses": true,
	"disallowed": true, "unsupported": true, "unable": true, "impossible": true, "prohibited": true, "non": true,
	"stop": true, "stops": true, "stopped": true, "ceases": true, "ceased": true,
	"nicht": true, "nie": true, "niemals": true, "ohne": true,
	"kein": true, "keine": true, "keinen": true, "keinem": true, "keiner": true, "keines": true,
	"pas": true, "jamais": true, "sans": true, "aucun": true, "aucune": true,
	"nunca": true, "jamás": true, "sin": true, "ningún": true, "ninguna": true, "não": true, "sem": true,
	"niet": true, "geen": true, "nooit": true, "zonder": true,
}

// sameWord maps the stems of synonyms in software to one of them, and the
// stems of filler words to "".
var sameWord = map[string]string{
	"ever": "", "simpli": "", "just": "", "actual": "", "pleas": "",
	"requir": "need", "locat": "live", "resid": "live", "store": "live", "kept": "live", "keep": "live", "execut": "run",
	"util": "use", "repositori": "repo", "databas": "db", "environ": "env", "directori": "folder", "dir": "folder",
	"applic":   "app",
	"document": "doc", "messag": "msg", "identifi": "id",
}

// opposites are pairs of word lists that make two sentences contradict each other.
var opposites = [][2][]string{
	{{"always", "every", "all"}, {"never", "rarely", "seldom"}},
	{{"enabled", "enable", "on"}, {"disabled", "disable", "off"}},
	{{"before"}, {"after"}},
	{{"first"}, {"last"}},
	{{"true"}, {"false"}},
	{{"sync", "synchronous", "synchronously"}, {"async", "asynchronous", "asynchronously"}},
	{
		{"increase", "increases", "increased", "higher", "more", "grows"},
		{"decrease", "decreases", "decreased", "lower", "less", "fewer", "shrinks"},
	},
	{{"required", "mandatory", "needed"}, {"optional", "unnecessary", "unneeded"}},
	{{"safe"}, {"unsafe", "dangerous"}},
	{{"allowed", "permitted", "accepts", "accepted"}, {"denied", "rejects", "rejected", "forbidden", "refused"}},
	{{"fast", "faster", "quick"}, {"slow", "slower"}},
	{{"old", "legacy", "deprecated"}, {"new", "current"}},
	{{"public"}, {"private"}},
	{{"local", "locally"}, {"remote", "remotely"}},
	{{"ascending"}, {"descending"}},
	{{"inside", "within"}, {"outside"}},
	{{"include", "includes", "included"}, {"exclude", "excludes", "excluded"}},
	{{"pass", "passes", "succeeds", "works"}, {"fail", "fails", "breaks"}},
	{{"mutable"}, {"immutable"}},
	{{"valid"}, {"invalid"}},
	{{"case-sensitive", "sensitive"}, {"case-insensitive", "insensitive"}},
	{{"must", "should"}, {"mustnt", "shouldnt"}},
	{{"minimum", "least", "min"}, {"maximum", "most", "max"}},
	{{"read", "reads"}, {"write", "writes"}},
	{{"server"}, {"client"}},
	{{"left"}, {"right"}},
	{{"open", "opens", "opened"}, {"closed", "close", "closes"}},
	{{"add", "adds", "added"}, {"remove", "removes", "removed", "delete", "deletes", "deleted"}},
	{{"staging"}, {"production"}},
	{{"tabs"}, {"spaces"}},
	{{"uppercase"}, {"lowercase"}},
}

// sideOf maps a word to all of its pairs, and its side in each.
var sideOf = func() map[string][][2]int {
	m := map[string][][2]int{}
	for pair, sides := range opposites {
		for side, list := range sides {
			for _, w := range list {
				m[w] = append(m[w], [2]int{pair, side})
			}
		}
	}
	return m
}()

// stems returns the stems of a text's words in order, with synonyms unified.
func stems(text string) (list []string) {
	for _, w := range bm25.Words(text) {
		same, ok := sameWord[w]
		if ok && same == "" {
			continue
		}
		list = append(list, cmp.Or(same, w))
	}
	return list
}

// words returns a text's runs of letters and digits in lower case.
// Apostrophes are dropped, so that "don't" is one word.
func words(s string) []string {
	s = strings.NewReplacer("'", "", "’", "").Replace(strings.ToLower(s))
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
