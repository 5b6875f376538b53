// Package systemd runs `ralph run --daemon` for a project as a systemd service: it writes the unit and calls systemctl.
// It also notifies systemd of the daemon's state: ready, its activity, ending and, as long as its work makes progress,
// alive (sd_notify(3)).
//
// It knows only ralph's command line, decides nothing, starts only systemctl, and never touches another project's unit.
// Notifying never blocks the daemon: failures are logged, and without systemd (NOTIFY_SOCKET is not set) nothing is
// sent.
package systemd

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-systemd/v22/unit"
)

// A Unit describes a service.
type Unit struct {
	Name    string   // name of the service, for people; default: the name of the project's directory
	Dir     string   // the project's root, absolute
	Binary  string   // ralph, absolute
	RunArgs []string // further arguments of `ralph run --daemon`
	Path    string   // the PATH of the service
	EnvFile string   // optional file with credentials, absolute
	State   string   // folder of ralph's state; "" if there is none yet

	StopTimeout time.Duration // time for the service to end
	System      bool          // a system unit, not a user's
	User        string        // user of a system unit
}

// maxName is the maximum length of a file name on every file system, in bytes.
const maxName = 255

// FileName returns the name of the unit: "ralph-my-app.service". Characters that are not allowed
// are escaped like by systemd-escape.
func (u Unit) FileName() string {
	parts := strings.Split(u.Name, "-")
	for i, p := range parts {
		parts[i] = unit.UnitNameEscape(p)
	}
	return "ralph-" + strings.Join(parts, "-") + ".service"
}

//go:embed unit.tmpl
var unitText string

// Text returns the unit's file. The error is for a name or path that a unit cannot have: a relative
// path, or one with control characters.
func (u Unit) Text() (string, error) {
	if u.Name == "" || len(u.FileName()) > maxName {
		return "", fmt.Errorf("%q cannot be the name of a service: give a shorter one", u.Name)
	}
	paths := []string{u.Dir, u.Binary, u.EnvFile}
	for _, p := range paths {
		if !filepath.IsAbs(p) {
			return "", fmt.Errorf("path %q in a unit of systemd: it must be absolute", p)
		}
	}
	for _, s := range append(append(paths, u.Name, u.Path, u.State, u.User), u.RunArgs...) {
		if strings.ContainsFunc(s, unicode.IsControl) || !utf8.ValidString(s) {
			return "", fmt.Errorf("%q cannot stand in a unit of systemd: it has control characters or is not UTF-8", s)
		}
	}
	for _, s := range []string{u.Name, u.EnvFile, u.User} {
		if strings.HasSuffix(s, `\`) {
			return "", fmt.Errorf("%q cannot stand in a unit of systemd: a backslash at its end joins it with the next line", s)
		}
	}
	// systemd refuses them in a program's path, even if quoted.
	if strings.ContainsAny(u.Binary, "\"'\\") {
		return "", fmt.Errorf("systemd starts no program whose path has quotes or backslashes: move %s", u.Binary)
	}
	if u.System && u.User == "" {
		return "", errors.New("a unit of the system needs the user whom it runs as")
	}
	t, err := template.New("unit").Funcs(template.FuncMap{
		"argument": argument, "setting": setting, "value": value, "seconds": seconds,
	}).Parse(unitText)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.Execute(&b, u); err != nil {
		return "", err
	}
	return b.String(), nil
}

// Of reports whether the text of a unit belongs to this project.
func (u Unit) Of(text string) bool { return strings.HasPrefix(text, u.header()+"\n") }

// header returns the first line of the unit's file, which names its project.
func (u Unit) header() string { return fmt.Sprintf("# ralph works in %q", u.Dir) }

// Header is header for the template.
func (u Unit) Header() string { return u.header() }

// value escapes a text that is the rest of a line.
func value(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// setting quotes an item of a list, such as an assignment of Environment=.
func setting(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`).Replace(s) + `"`
}

// argument quotes an argument of ExecStart=, where $ marks a variable.
func argument(s string) string { return strings.ReplaceAll(setting(s), "$", "$$") }

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
