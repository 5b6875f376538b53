package check

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ralph"
	"ralph/internal/testresult"
	"ralph/loop/place"
	"ralph/store"

	"github.com/google/go-cmp/cmp"
)

func TestWhatARedBaselineWillNotExcuse(t *testing.T) {
	named := ralph.Check{Command: "go test -json", Exit: 1}
	red, err := testresult.ParseGoJSON(strings.NewReader(
		`{"Action":"run","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"p"}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		strict bool
		result Outcome
		want   bool
	}{
		{"all is green", true, Outcome{Check: ralph.Check{Command: "lint", Passed: true}}, true},
		{"a command that names no tests", false, Outcome{Check: ralph.Check{Command: "make test", Exit: 2}}, false},
		{"one that names its tests is excused for them", false, Outcome{Check: named, Tests: red}, true},
		{"but not where that is strict", true, Outcome{Check: named, Tests: red}, false},
	} {
		v := &Verifier{Rules: Rules{Strict: tt.strict}}
		if got := v.excusable(tt.result); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestAProtectedFileByItself(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	digests, _ := place.Digests(dir, []string{"*"})
	for name, want := range map[string]string{"a": digests["a"], "s": "link S---------", "nothing": "", "a/below": "", ".": ""} {
		if got, err := digestOne(filepath.Join(dir, name)); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestJudgeByTheBaseline(t *testing.T) {
	tests := func(failed ...string) *testresult.Results {
		r := &testresult.Results{Tests: map[string]testresult.Status{"TestGreen": testresult.Passed}}
		for _, f := range failed {
			r.Tests[f] = testresult.Failed
		}
		return r
	}
	const shared = "make test"
	red := func(command string, results *testresult.Results) Outcome {
		return Outcome{Check: ralph.Check{Command: command, Exit: 1}, Tests: results}
	}
	for _, tt := range []struct {
		name     string
		now      Outcome
		before   []Outcome
		strict   bool
		passed   bool
		failures []string
		excused  []string
	}{
		{"what passes, passes", Outcome{Check: ralph.Check{Command: shared, Passed: true}, Tests: tests()}, nil, false, true, nil, nil},
		{"without tests by name nothing is excused", red(shared, nil), []Outcome{red(shared, nil)}, false, false, nil, nil},
		{"without a baseline nothing is excused", red(shared, tests("TestOld")), nil, false, false, []string{"TestOld"}, nil},
		{"what failed before is excused", red(shared, tests("TestOld")), []Outcome{red(shared, tests("TestOld"))}, false, true, nil, []string{"TestOld"}},
		{"but not what fails newly", red(shared, tests("TestOld", "TestNew")), []Outcome{red(shared, tests("TestOld"))}, false, false, []string{"TestNew"}, []string{"TestOld"}},
		{"strictly nothing is", red(shared, tests("TestOld")), []Outcome{red(shared, tests("TestOld"))}, true, false, []string{"TestOld"}, nil},
		{"a command of the task's own is never excused", red("own", tests("TestOld")), []Outcome{red("own", tests("TestOld"))}, false, false, []string{"TestOld"}, nil},
		{"nor by another command", red(shared, tests("TestOld")), []Outcome{red("other", tests("TestOld"))}, false, false, []string{"TestOld"}, nil},
		{"nor by another one of the project", red(shared, tests("TestOld")), []Outcome{red("make lint", tests("TestOld"))}, false, false, []string{"TestOld"}, nil},
		{"nor by a baseline that named no tests", red(shared, tests("TestOld")), []Outcome{red(shared, nil)}, false, false, []string{"TestOld"}, nil},
		{"nor one that crashed or took too long", Outcome{Check: ralph.Check{Command: shared, Exit: -1, Error: "took longer than 1m"}, Tests: tests("TestOld")}, []Outcome{red(shared, tests("TestOld"))}, false, false, []string{"TestOld"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Judge(tt.now, tt.before, []string{"make lint", shared}, tt.strict)
			if c.Passed != tt.passed || !slices.Equal(c.Failures, tt.failures) || !slices.Equal(c.Excused, tt.excused) {
				t.Errorf("passed %t with the failures %q, excused %q", c.Passed, c.Failures, c.Excused)
			}
		})
	}
}

func TestProtectedFilesThatCannotBeSeen(t *testing.T) {
	known := map[string]store.ProtectedFile{
		"tests/a": {Path: "tests/a", Approved: "1", Seen: "1"}, "gone": {Path: "gone", Approved: "", Seen: ""},
	}
	for _, tt := range []struct {
		name    string
		digests map[string]string
		unseen  map[string]string
		before  []string
		want    []string // why it is unknown
		changed []string
	}{
		{"all is seen", map[string]string{"tests/a": "1"}, nil, nil, nil, nil},
		{"a folder that could not be read before either hides nothing that is known", map[string]string{"tests/a": "1"}, map[string]string{"data": "no"}, []string{"data"}, nil, nil},
		{"one that could be read before", map[string]string{"tests/a": "1"}, map[string]string{"data": "no"}, nil, []string{"data (no)"}, nil},
		{"a known file is not gone because its folder cannot be read", map[string]string{}, map[string]string{"tests": "no"}, []string{"tests"}, []string{"tests (no)"}, nil},
		{"nor because it cannot be read itself", map[string]string{}, map[string]string{"tests/a": "no"}, []string{"tests/a"}, []string{"tests/a (no)"}, nil},
		{"nor because nothing can be", map[string]string{}, map[string]string{".": "no"}, []string{"."}, []string{". (no)"}, nil},
		{"what is seen is compared all the same", map[string]string{"tests/a": "2"}, map[string]string{"data": "no"}, []string{"data"}, nil, []string{"tests/a"}},
		{"a folder with a similar name hides nothing", map[string]string{}, map[string]string{"test": "no"}, []string{"test"}, nil, []string{"tests/a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := hiding(known, tt.unseen, tt.before); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if got := tampered(known, assumed(known, tt.digests, tt.unseen)); !slices.Equal(got, tt.changed) {
				t.Errorf("changed: %q, want %q", got, tt.changed)
			}
		})
	}
}

func TestProtectedFiles(t *testing.T) {
	type files = map[string]string
	for _, tt := range []struct {
		name          string
		before, after files // at the start and at the end of the session
		known         []store.ProtectedFile
		want          []string
	}{
		{"nothing is tampered with where nothing changed", files{"a": "1"}, files{"a": "1"}, nil, nil},
		{"a change counts", files{"a": "1"}, files{"a": "2"}, nil, []string{"a"}},
		{"a removal counts", files{"a": "1"}, files{}, nil, []string{"a"}},
		{"a new file counts", files{}, files{"a": "1"}, nil, []string{"a"}},
		{"what an earlier session changed is not this one's doing", files{"a": "2"}, files{"a": "2"}, []store.ProtectedFile{{Path: "a", Approved: "1", Seen: "2"}}, nil},
		{"what it makes of that is", files{"a": "2"}, files{"a": "3"}, []store.ProtectedFile{{Path: "a", Approved: "1", Seen: "2"}}, []string{"a"}},
		{"what is put back does not count", files{"a": "2"}, files{"a": "1"}, []store.ProtectedFile{{Path: "a", Approved: "1", Seen: "2"}}, nil},
		{"what people changed between sessions does not count", files{"a": "3"}, files{"a": "3"}, []store.ProtectedFile{{Path: "a", Approved: "1", Seen: "2"}}, nil},
		{"what people removed between sessions does not count", files{}, files{}, []store.ProtectedFile{{Path: "a", Approved: "1", Seen: "1"}}, nil},
		{"what an earlier session added is not this one's doing", files{"a": "2"}, files{"a": "2"}, []store.ProtectedFile{{Path: "a", Approved: "", Seen: "2"}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			known := map[string]store.ProtectedFile{}
			add := func(list []store.ProtectedFile) {
				for _, p := range list {
					known[p.Path] = p
				}
			}
			add(tt.known)
			add(welcome(known, nil, tt.before))
			if got := tampered(known, tt.after); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			// What the session left is not approved just because it is there when the
			// next one begins.
			add(farewell(known, tt.after))
			add(welcome(known, nil, tt.after))
			for _, path := range tt.want {
				if p := known[path]; p.Approved == p.Seen {
					t.Errorf("%s is forgiven: %+v", path, p)
				}
			}
			if got := tampered(known, tt.after); len(got) > 0 {
				t.Errorf("the next session is charged with %q", got)
			}
		})
	}
}

// A file that is new in a place is people's, unless a session left the same content elsewhere.
func TestProtectedFilesOfAnotherPlace(t *testing.T) {
	elsewhere := []store.ProtectedFile{{Place: "there", Path: "a", Approved: "1", Seen: "2"}}
	for _, tt := range []struct {
		name     string
		known    map[string]store.ProtectedFile
		now      string
		approved string
	}{
		{"as people left it there", nil, "1", "1"},
		{"as a session left it there", nil, "2", "1"},
		{"in its own way", nil, "3", "3"},
		{"people change it here", map[string]store.ProtectedFile{"a": {Path: "a", Approved: "1", Seen: "1"}}, "2", "2"},
	} {
		known := map[string]store.ProtectedFile{"0": {Path: "0", Approved: "1", Seen: "1"}} // as it was
		maps.Copy(known, tt.known)
		list := welcome(known, elsewhere, map[string]string{"0": "1", "a": tt.now})
		want := []store.ProtectedFile{{Path: "a", Approved: tt.approved, Seen: tt.now}}
		if diff := cmp.Diff(want, list); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// Changes by an earlier session of the task count against this one until
// people approve them or they are undone.
func TestWhatEarlierSessionsChangedStays(t *testing.T) {
	known := map[string]store.ProtectedFile{
		"approved": {Approved: "1"}, "left": {Approved: "1"}, "again": {Approved: "1"}, "others": {Approved: "1"},
	}
	now := map[string]string{"approved": "1", "left": "2", "again": "3", "others": "2"}
	mine := func(path string) bool { return path != "others" }
	want := []string{"again", "left", "new"}
	if got := withEarlier([]string{"new", "again"}, known, now, mine); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
