package store_test

import (
	"crypto/rand"
	"encoding/base64"
	"testing"

	"ralph/store"
)

// TestALongCommandHasAResult: an index of PostgreSQL does not take it as it is.
func TestALongCommandHasAResult(t *testing.T) {
	eachDatabase(t, func(t *testing.T, name string) {
		db := handle(t, name, store.Options{})
		noise := make([]byte, 6000)
		if _, err := rand.Read(noise); err != nil {
			t.Fatal(err)
		}
		long := base64.StdEncoding.EncodeToString(noise)
		write(t, db, func(tx *store.Tx) error { return tx.PutVerification("tree", long, "passed") })
		for command, want := range map[string]string{long: "passed", long + "!": ""} {
			got := ""
			if err := db.View(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Verification("tree", command, &got)
				return err
			}); err != nil || got != want {
				t.Errorf("%q instead of %q, %v", got, want, err)
			}
		}
	})
}
