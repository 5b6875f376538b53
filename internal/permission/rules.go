package permission

import (
	"encoding/json"
	"path/filepath"
	"time"
)

// Rules are a policy as it is handed to the process that answers an agent. The agent is
// judged by what they were when its session began; what it writes to ralph.yaml changes
// none of them.
type Rules struct {
	Policy  Policy        `json:"policy"`
	Timeout time.Duration `json:"ask_timeout"` // how long a person is waited for
}

// ReadRules reads them from JSON.
func ReadRules(text string) (r Rules, err error) {
	err = json.Unmarshal([]byte(text), &r)
	r.Policy.Resolve = Follow
	return r, err
}

// Follow resolves the links of a path as far as it exists.
func Follow(path string) string {
	for dir, rest := path, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
	}
}
