package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
)

// Deny adds rules to permissions.deny in the text of a ralph.yaml, unless they are there. Everything else is kept,
// comments included. It returns an error if the text is not valid.
func Deny(file []byte, rules []string) ([]byte, error) {
	var now struct {
		Permissions *struct{ Deny []string }
	}
	if err := yaml.Unmarshal(file, &now); err != nil {
		return nil, fmt.Errorf("permissions.deny cannot be read: %w", err)
	}
	if now.Permissions != nil {
		there := now.Permissions.Deny
		rules = slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return slices.Contains(there, r) })
	}
	if len(rules) == 0 {
		return file, nil
	}
	var keys map[string]any
	if err := yaml.Unmarshal(file, &keys); err != nil {
		return nil, err
	}
	if v, ok := keys["permissions"]; ok && v == nil {
		return nil, errors.New("permissions has no value in ralph.yaml: remove the line, or give it one")
	}
	quoted := make([]string, len(rules))
	for i, r := range rules {
		quoted[i] = flow(r)
	}
	list, path := "["+strings.Join(quoted, ", ")+"]", "$.permissions.deny"
	switch {
	case now.Permissions == nil:
		more := "permissions:\n  deny:\n    - " + strings.Join(quoted, "\n    - ") + "\n"
		return []byte(strings.TrimLeft(strings.TrimRight(string(file), "\n")+"\n\n"+more, "\n")), nil
	case now.Permissions.Deny == nil:
		list, path = "deny: "+list, "$.permissions"
	}
	tree, err := parser.ParseBytes(file, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	at, err := yaml.PathString(path)
	if err != nil {
		return nil, err
	}
	if err := at.MergeFromReader(tree, strings.NewReader(list)); err != nil {
		return nil, fmt.Errorf("%s cannot be changed: %w", strings.TrimPrefix(path, "$."), err)
	}
	return []byte(strings.TrimRight(tree.String(), "\n") + "\n"), nil
}
