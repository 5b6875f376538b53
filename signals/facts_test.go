package signals_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ralph"
	"ralph/signals"
)

// payloads has a payload for each case of the rules.
var payloads = []signals.Payload{
	done,
	signals.Done{Summary: "mended", FlagsAnswered: "it does not hold", TestsChanged: "the task says so"},
	partial, stuck,
	ask, mention, outside, up, lesson,
	signals.Flag{What: "fire", Severity: "blocking", Category: "bug"},
	signals.Flag{What: "slow", Severity: "warning", Category: "performance"},
	signals.Suggest{What: "Do it", Kind: "new_task", Why: "w"},
	signals.Suggest{What: "Split it", Kind: "split", Why: "large"},
}

// values lists the values of types with a fixed set, and likely values of others.
var values = map[reflect.Type][]any{
	reflect.TypeFor[ralph.Ending]():        anyOf(ralph.Endings),
	reflect.TypeFor[ralph.WeakeningKind](): {ralph.TestLost, ralph.TestLoosened, ralph.TestChanged},
	reflect.TypeFor[signals.Reply](): {
		signals.ReplyRemind, signals.ReplyRefused, signals.ReplyTests, signals.ReplyBlind, signals.ReplyConflict, signals.ReplyAside,
		signals.ReplyUnchanged, signals.ReplyFlags, signals.ReplyDebris, signals.ReplyElsewhere, signals.ReplyConfirm, signals.ReplyComment,
	},
	reflect.TypeFor[signals.Payload](): anyOf(payloads),
	reflect.TypeFor[ralph.Time]():      {ralph.Time{}},
	reflect.TypeFor[string]():          {"", "a.go", "main has moved"},
	reflect.TypeFor[int]():             {0, 1, 2, 3},
	reflect.TypeFor[int64]():           {int64(0), int64(1), int64(2), int64(7)},
	reflect.TypeFor[float64]():         {0.5},
}

// words lists the values of texts with a fixed set, by the names of their fields.
var words = map[string][]string{
	"Severity":     {ralph.ObjectionBlocking, ralph.ObjectionRemark},
	"Asks":         {"", ralph.AsksYes, ralph.AsksNo, ralph.AsksUnsure},
	"Lost":         {signals.PolicyAsk, signals.PolicyRefuse, signals.PolicyNote},
	"Scope":        {signals.PolicyAsk, signals.PolicyNote},
	"TestsChanged": {signals.PolicyAsk, signals.PolicyNote, signals.PolicyReview},
}

func anyOf[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// fill gives everything in v a random value: lists and maps have up to two elements.
func fill(r *rand.Rand, v reflect.Value) {
	if list := values[v.Type()]; list != nil {
		v.Set(reflect.ValueOf(list[r.IntN(len(list))]).Convert(v.Type()))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.String:
		v.SetString([]string{"", "blocking", "x"}[r.IntN(3)])
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
			if list := words[v.Type().Field(i).Name]; list != nil && v.Field(i).Kind() == reflect.String {
				v.Field(i).SetString(list[r.IntN(len(list))])
			}
		}
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	case reflect.Slice:
		n := r.IntN(3)
		if n == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key)
			fill(r, value)
			v.SetMapIndex(key, value)
		}
	default:
		panic("facts of a new type: " + v.Type().String())
	}
}

// randomFacts returns facts with random values in all fields, under rules that are in force.
func randomFacts(r *rand.Rand) (f signals.Facts) {
	fill(r, reflect.ValueOf(&f).Elem())
	for i := range f.Said {
		f.Said[i].ID = int64(i + 1)
	}
	if r.IntN(3) > 0 { // most say done, and little speaks against it
		f.Said = append(f.Said, signals.Said{ID: int64(len(f.Said) + 1), Payload: done})
		f.Void, f.Unchecked, f.CancelledBy = false, "", ""
		thin(r, reflect.ValueOf(&f).Elem(), "Protected", "Conflict", "Planned", "Verify", "Marks")
		rounds := f.Evidence.Rounds
		thin(r, reflect.ValueOf(&f.Evidence).Elem())
		f.Evidence.Rounds = rounds
		thin(r, reflect.ValueOf(&f.Evidence.Gate).Elem(), "Refused", "Weakened", "Unproved", "Unknown")
	}
	f.Rules.StuckLimit, f.Rules.VerifyFailures, f.Rules.Attempts = rules.StuckLimit, rules.VerifyFailures, rules.Attempts
	return f
}

// thin empties most of the named fields, or of all.
func thin(r *rand.Rand, v reflect.Value, names ...string) {
	for i := range v.NumField() {
		if (len(names) == 0 || slices.Contains(names, v.Type().Field(i).Name)) && r.IntN(10) > 0 {
			v.Field(i).SetZero()
		}
	}
}

func TestEveryDecision(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	accepted, replied := 0, map[signals.Reply]int{}
	for range 30_000 {
		f := randomFacts(r)
		d := signals.Decide(f)
		checkRules(t, f, d)
		if t.Failed() {
			t.Fatalf("%+v", f)
		}
		replied[d.Reply]++
		if d.Accepted {
			accepted++
		}
	}
	if accepted < 3000 || len(replied) < 13 {
		t.Errorf("only %d are accepted, and the replies are only %v: the cases are too narrow", accepted, replied)
	}
}

func TestStoredFactsAreTheFacts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		f := randomFacts(r)
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		var got signals.Facts
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		f.Known, f.Rules, f.Waiting, f.Unheard = nil, signals.Rules{}, false, 0 // not stored
		if diff := cmp.Diff(f, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(ralph.Gate{}, "Deciding")); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestStoredFactsThatAreBrokenAreAnError(t *testing.T) {
	for _, text := range []string{
		"", "[]", "{", `{"said":[{"id":1,"verb":"shout","payload":{}}]}`, `{"said":[{"id":1,"verb":"done","payload":{}}]}`,
	} {
		if err := json.Unmarshal([]byte(text), new(signals.Facts)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
