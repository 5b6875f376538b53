package process

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"ralph/internal/environment"
	"ralph/loop/agent"
)

// Account returns a hash that identifies the account that the agent would use now, and reveals
// nothing about it. Unreadable parts are left out: a limit that is forgotten for this reason is
// just reached again, at no cost.
func (o Options) Account(p *agent.Profile) string {
	env, hash := map[string]string{}, sha256.New()
	for _, entry := range environment.Of(o.Environ, o.Env, &p.Variables) {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
		for _, part := range []string{"KEY", "TOKEN", "URL"} {
			if strings.Contains(name, part) && environment.Matches(p.Variables.Account, name) {
				fmt.Fprintf(hash, "%q\n", entry)
				break
			}
		}
	}
	file, field, _ := strings.Cut(p.AccountID, " ")
	path := p.Own(file, func(name string) string { return env[name] })
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		path = env["HOME"] + rest
	}
	var v any
	if b, err := os.ReadFile(path); err == nil && json.Unmarshal(b, &v) == nil {
		for name := range strings.SplitSeq(field, ".") {
			object, _ := v.(map[string]any)
			v = object[name]
		}
		fmt.Fprintf(hash, "%q\n", fmt.Sprint(v))
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}
