package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"ralph/mcpserver"
)

var update = flag.Bool("update", false, "write the golden file anew")

// TestTheToolsAreAsTheDesignWordsThem: names, enums, required fields and the
// words that teach a model when to call what are an interface; a change of the
// golden file is a change of it.
func TestTheToolsAreAsTheDesignWordsThem(t *testing.T) {
	client := connect(t, mcpserver.Options{SetState: func(context.Context, mcpserver.StateChange) (mcpserver.StateReply, error) {
		return mcpserver.StateReply{}, nil
	}})
	list, err := client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(list.Tools, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const golden = "testdata/tools.json"
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the tools are not as in %s (%v): run with -update and read the difference", golden, err)
	}
}
