package codex

import (
	"encoding/json"
	"strings"

	"ralph/internal/permission"
)

// uses converts a question of codex's hook for the permission rules. Patches edit files, also at the beginning of a
// command.
func uses(tool string, input json.RawMessage) []permission.Use {
	if strings.HasPrefix(tool, toolPrefix) {
		return nil // ralph's own
	}
	var in struct {
		Command string `json:"command"`
		Path    string `json:"path"`
	}
	if tolerant(json.Unmarshal(input, &in)) != nil {
		return []permission.Use{{Tool: tool, Input: input}}
	}
	var list []permission.Use
	switch tool {
	case "apply_patch":
	case "view_image":
		return []permission.Use{use("Read", "file_path", in.Path)}
	default:
		list = []permission.Use{{Tool: tool, Input: input}}
	}
	for _, path := range patched(in.Command) {
		list = append(list, use("Edit", "file_path", path))
	}
	return list
}

func use(tool, field, value string) permission.Use {
	return permission.Use{Tool: tool, Input: json.RawMessage(quoted(map[string]string{field: value}))}
}

// patched returns the files that a patch is about.
func patched(command string) (paths []string) {
	if !strings.Contains(command, "*** Begin Patch") {
		return nil
	}
	for line := range strings.Lines(command) {
		for _, what := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), what); ok {
				paths = append(paths, path)
			}
		}
	}
	return paths
}
