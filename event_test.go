package ralph

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"
)

// TestEveryTypeOfEventHasItsStruct: each type has one payload, no payload has two, and every field of one survives
// encoding.
func TestEveryTypeOfEventHasItsStruct(t *testing.T) {
	seen := map[string]bool{}
	for _, of := range events {
		if seen[of.name] || of.name != EventType(of.payload) {
			t.Errorf("%s: its payload %T is that of %q", of.name, of.payload, EventType(of.payload))
		}
		seen[of.name] = true
		full := reflect.New(reflect.TypeOf(of.payload)).Elem()
		fill(t, full)
		e, err := Event{ID: 7}.Telling(full.Interface())
		if err != nil {
			t.Errorf("%T: %v", of.payload, err)
			continue
		}
		got, err := e.Read()
		if e.Type != of.name || err != nil || !reflect.DeepEqual(got, full.Interface()) {
			t.Errorf("%s\n got %+v, %v\nwant %+v", e.Type, got, err, full)
		}
	}
	for _, p := range []EventPayload{nil, "text", &TaskCreated{}, Task{}} {
		if e, err := (Event{}).Telling(p); err == nil {
			t.Errorf("%T is the payload of %+v", p, e)
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
		{EventType(TaskStatusChanged{}), `{"from":"pending","reason":"r","to":"blocked"}`, TaskStatusChanged{From: Pending, To: Blocked, Reason: "r"}},
		{EventType(TaskUpdated{}), `{"moved":2,"priority":3}`, TaskUpdated{Moved: 2, Priority: &three}},
		{EventType(TaskUpdated{}), `{"changes":{},"title":"T"}`, TaskUpdated{Title: "T", Changes: map[string]Edit{}}},
		{EventType(BaselineRed{}), `{"checks":null,"follows":"","on_red":"go","reason":"r"}`, BaselineRed{OnRed: "go", Reason: "r"}},
		{
			EventType(SessionMoved{}), `{"metadata":null,"previous":"idle","source":"observed","state":"analyzing","unexpected":false}`,
			SessionMoved{Previous: PhaseIdle, State: PhaseAnalyzing, Source: Observed},
		},
		{EventType(RunWaiting{}), `{"reason":"r","state":"paused","until":null}`, RunWaiting{Reason: "r", State: "paused"}},
	} {
		got, err := Event{Type: tt.kind, Payload: json.RawMessage(tt.payload)}.Read()
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s %s\n got %+v, %v\nwant %+v", tt.kind, tt.payload, got, err, tt.want)
		}
	}
	for name, e := range map[string]Event{
		"an unknown type": {Type: "x"},
		"no JSON":         {Type: EventType(RunEnded{}), Payload: json.RawMessage("{")},
	} {
		if got, err := e.Read(); err == nil || got != nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	if _, err := (Event{Type: "x"}).Read(); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown type: %v", err)
	}
}
