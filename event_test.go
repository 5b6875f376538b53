package ralph

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"
)

// TestEveryTypeOfEventHasItsStruct checks that each constant is the type of
// exactly one payload, and that every field of a payload survives encoding.
func TestEveryTypeOfEventHasItsStruct(t *testing.T) {
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := regexp.MustCompile(`(?m)^\tEvent\w+ += "([a-z._]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(constants) != len(EventTypes) {
		t.Errorf("%d constants, %d types", len(constants), len(EventTypes))
	}
	for _, c := range constants {
		if i := slices.Index(EventTypes, c[1]); i < 0 || slices.Contains(EventTypes[i+1:], c[1]) {
			t.Errorf("%s is not the type of exactly one payload: %v", c[1], EventTypes)
		}
	}
	for _, p := range payloads {
		full := reflect.New(reflect.TypeOf(p)).Elem()
		fill(t, full)
		e, err := Event{ID: 7}.Telling(full.Interface().(EventPayload))
		if err != nil {
			t.Errorf("%T: %v", p, err)
			continue
		}
		got, err := e.Read()
		if e.Type != p.eventType() || err != nil || !reflect.DeepEqual(got, full.Interface()) {
			t.Errorf("%s\n got %+v, %v\nwant %+v", e.Type, got, err, full)
		}
	}
}

// fill sets every field to a value that is not zero, so that a lost field shows.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[Time]():
		v.Set(reflect.ValueOf(At(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))))
		return
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"a":1}`))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Map:
		entry := reflect.New(v.Type().Elem()).Elem()
		fill(t, entry)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), entry)
	case reflect.Interface:
		v.Set(reflect.ValueOf("anything"))
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(1.5)
	default:
		t.Fatalf("a field of the kind %s", v.Kind())
	}
}

// TestEventsOfOlderDatabases: events of older versions can be read, and
// fields that they lack are zero.
func TestEventsOfOlderDatabases(t *testing.T) {
	three := 3
	for _, tt := range []struct {
		kind, payload string
		want          EventPayload
	}{
		{EventTaskStatusChanged, `{"from":"pending","reason":"r","to":"blocked"}`, TaskStatusChanged{From: Pending, To: Blocked, Reason: "r"}},
		{EventTaskUpdated, `{"moved":2,"priority":3}`, TaskUpdated{Moved: 2, Priority: &three}},
		{EventTaskUpdated, `{"changes":{},"title":"T"}`, TaskUpdated{Title: "T", Changes: map[string]Edit{}}},
		{EventBaselineRed, `{"checks":null,"follows":"","on_red":"go","reason":"r"}`, BaselineRed{OnRed: "go", Reason: "r"}},
		{
			EventSessionState, `{"metadata":null,"previous":"idle","source":"observed","state":"analyzing","unexpected":false}`,
			SessionMoved{Previous: PhaseIdle, State: PhaseAnalyzing, Source: Observed},
		},
		{EventRunWaiting, `{"reason":"r","state":"paused","until":null}`, RunWaiting{Reason: "r", State: "paused"}},
	} {
		got, err := Event{Type: tt.kind, Payload: json.RawMessage(tt.payload)}.Read()
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s %s\n got %+v, %v\nwant %+v", tt.kind, tt.payload, got, err, tt.want)
		}
	}
	for name, e := range map[string]Event{
		"an unknown type": {Type: "x"},
		"no JSON":         {Type: EventRunEnded, Payload: json.RawMessage("{")},
	} {
		if got, err := e.Read(); err == nil || got != nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	if _, err := (Event{Type: "x"}).Read(); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown type: %v", err)
	}
}
