package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestARowHasMediansAndSpread(t *testing.T) {
	product := samples{unit: "ms", values: []float64{4, 1, 2, 3, 100}}
	floor := samples{unit: "ms", values: []float64{2, 2}}
	r := ratio("a thing", product, floor, 1.2)
	if got, want := heading("A machine.")+lines([]row{r, {what: "another", product: floor}}), `A machine.

| what | ralph | floor | compared | aim |
|---|---|---|---|---|
| a thing | 3.00 ms (2.00–4.00) | 2.00 ms (2.00–2.00) | 1.50× | ≤ 1.20×, **missed** |
| another | 2.00 ms (2.00–2.00) |  |  |  |
`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if d := difference(product, floor); d.median() != 0.5 || len(d.values) != 2 {
		t.Errorf("got %v", d)
	}
}

func TestMeasurementsFailAlone(t *testing.T) {
	b, nobody := &bench{}, (*bench)(nil)
	for _, tt := range []struct {
		name    string
		measure func(*bench, context.Context) []row
		rows    int
		said    string
	}{
		{"it works", func(*bench, context.Context) []row { return []row{{}} }, 1, ""},
		{"it fails", func(*bench, context.Context) []row { panic(failure{errors.New("no room")}) }, 0, "no room"},
		{"a nil pointer", func(*bench, context.Context) []row { return []row{{what: nobody.dir}} }, 0, "nil pointer"},
	} {
		list, err := b.measure(t.Context(), measurement{tt.name, tt.measure})
		if len(list) != tt.rows || (err == nil) != (tt.said == "") || err != nil && !strings.Contains(err.Error(), tt.said) {
			t.Errorf("%s: %d rows, %v", tt.name, len(list), err)
		}
	}
}

func TestRowsAreChosenByName(t *testing.T) {
	if chosen, err := choose("crowd,session"); err != nil || len(chosen) != 2 || chosen[0].name != "session" {
		t.Errorf("got %v, %v", chosen, err)
	}
	if _, err := choose("session,slots"); err == nil || !strings.Contains(err.Error(), "slots") {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestResultsAreReplacedInTheirPlaceAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.md")
	for i := range 2 {
		if i == 0 {
			if err := os.WriteFile(path, []byte("before\n"+resultsBegin+"old\n"+resultsEnd+"after\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := replaceResults(path, "new\n"); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "before\n"+resultsBegin+"new\n"+resultsEnd+"after\n" {
			t.Errorf("got %s, %v", got, err)
		}
	}
	if err := os.WriteFile(path, []byte("no place"), 0o600); err != nil {
		t.Fatal(err)
	}
	if replaceResults(path, "new\n") == nil {
		t.Error("a document without a place was written")
	}
}
