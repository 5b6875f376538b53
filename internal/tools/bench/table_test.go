package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestARowHasMediansAndSpread(t *testing.T) {
	product := samples{unit: "ms", values: []float64{4, 1, 2, 3, 100}}
	floor := samples{unit: "ms", values: []float64{2, 2}}
	r := ratio("a thing", product, floor, 1.2)
	if got, want := table("A machine.", []row{r, {what: "another", product: floor}}), `A machine.

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
