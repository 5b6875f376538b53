package systemd_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/google/go-cmp/cmp"

	"ralph/internal/systemd"
)

var update = flag.Bool("update", false, "write the golden files")

func plain() systemd.Unit {
	return systemd.Unit{
		Name: "my-app", Dir: "/home/me/my-app", Binary: "/home/me/go/bin/ralph", Path: "/home/me/bin:/usr/bin:/bin",
		EnvFile: "/home/me/.config/ralph/service.env", StopTimeout: 80 * time.Second,
	}
}

func system() systemd.Unit {
	u := plain()
	u.System, u.User, u.EnvFile = true, "me", "/etc/ralph/service.env"
	u.State = "/home/me/.local/state/ralph/my-app-0123456789ab"
	return u
}

// odd has a bit of everything that means something to systemd.
func odd() systemd.Unit {
	return systemd.Unit{
		Name: `50% "off" $HOME`, Dir: `/srv/50% "off" it's \n $HOME ${X} é;`, Binary: "/opt/50% $x é/ralph", Path: `/a b:/c%d:/"e":/\f:$g`,
		EnvFile: "/srv/50% x/service.env", State: `/srv/50% "s"`, RunArgs: []string{"--schedule", "*/5 0 * * 1-5", "--between=22:00-06:00 Europe/Berlin"}, StopTimeout: 1500 * time.Millisecond,
	}
}

var units = map[string]systemd.Unit{"user": plain(), "system": system(), "odd": odd()}

func text(t *testing.T, u systemd.Unit) string {
	t.Helper()
	s, err := u.Text()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestUnits(t *testing.T) {
	for name, u := range units {
		t.Run(name, func(t *testing.T) {
			golden := filepath.Join("testdata", name+".service")
			got := text(t, u)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("go test ./internal/service -update writes it anew:\n%s", d)
			}
			if !u.Of(got) {
				t.Error("it does not know its own unit")
			}
			if _, err := unit.DeserializeOptions(strings.NewReader(got)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Warnings of systemd before 254 about settings that it does not know.
var older = regexp.MustCompile(`(?m)^.*Unknown key '(RestartSteps|RestartMaxDelaySec)'.*\n`)

func TestSystemdAcceptsTheUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: no systemd reads the units")
	}
	for name, u := range units {
		t.Run(name, func(t *testing.T) {
			// It looks whether the program is there, and wants a name as of a unit.
			home := t.TempDir()
			u.Binary = filepath.Join(home, "50% $x é", "ralph")
			if u.User != "" {
				u.User = "root"
			}
			if err := os.MkdirAll(filepath.Dir(u.Binary), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(u.Binary, []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(home, u.FileName())
			if err := os.WriteFile(file, []byte(text(t, u)), 0o644); err != nil {
				t.Fatal(err)
			}
			args := []string{"verify", "--man=no", file}
			if !u.System {
				args = append(args, "--user")
			}
			cmd := exec.CommandContext(t.Context(), analyze, args...)
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+home, "LC_ALL=C.UTF-8")
			out, err := cmd.CombinedOutput()
			var said []string
			for line := range strings.Lines(older.ReplaceAllString(string(out), "")) {
				// Only messages about this unit count: those of the machine may have faults.
				if strings.Contains(line, "ralph-") {
					said = append(said, line)
				}
			}
			if err != nil || len(said) > 0 {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

func TestNamesOfUnits(t *testing.T) {
	for name, want := range map[string]string{
		"app":        "ralph-app.service",
		"my-app_2.0": "ralph-my-app_2.0.service",
		"my app":     `ralph-my\x20app.service`,
		"a/b":        "ralph-a-b.service",
		"a@b":        `ralph-a\x40b.service`,
		"é":          `ralph-\xc3\xa9.service`,
		".hidden":    `ralph-\x2ehidden.service`,
		`a\b`:        `ralph-a\x5cb.service`,
	} {
		if got := (systemd.Unit{Name: name}).FileName(); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func TestUnitsThatCannotBe(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(u *systemd.Unit)
		want   string
	}{
		"no name":                       {func(u *systemd.Unit) { u.Name = "" }, "cannot be the name"},
		"a name that is too long":       {func(u *systemd.Unit) { u.Name = strings.Repeat("é", 40) }, "cannot be the name"},
		"a line break in the directory": {func(u *systemd.Unit) { u.Dir = "/a\nExecStartPre=/bin/evil" }, "control characters"},
		"a line break in the name":      {func(u *systemd.Unit) { u.Name = "a\nUser=root" }, "control characters"},
		"a line break in PATH":          {func(u *systemd.Unit) { u.Path = "/bin\n" }, "control characters"},
		"a line break in an argument":   {func(u *systemd.Unit) { u.RunArgs = []string{"--model", "a\n[Install]"} }, "control characters"},
		"a directory that is not UTF-8": {func(u *systemd.Unit) { u.Dir = "/a\xff" }, "not UTF-8"},
		"a directory that is relative":  {func(u *systemd.Unit) { u.Dir = "app" }, "must be absolute"},
		"a program that is relative":    {func(u *systemd.Unit) { u.Binary = "ralph" }, "must be absolute"},
		"a program with quotes":         {func(u *systemd.Unit) { u.Binary = `/opt/"x"/ralph` }, "quotes or backslashes"},
		"a backslash at a line's end":   {func(u *systemd.Unit) { u.Name = `app\` }, "backslash at its end"},
		"no user for one of the system": {func(u *systemd.Unit) { u.System = true }, "needs the user"},
	} {
		t.Run(name, func(t *testing.T) {
			u := plain()
			tt.change(&u)
			if _, err := u.Text(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want one with %q", err, tt.want)
			}
		})
	}
}

// No part of any name becomes a line of the unit.
func FuzzUnit(f *testing.F) {
	f.Add("/srv/app", "app", "--model=x", "/bin")
	f.Add(`/srv/50% "x" $y \`, "é", "a\nb", "")
	f.Fuzz(func(t *testing.T, dir, name, arg, path string) {
		u := plain()
		u.Dir, u.Name, u.RunArgs, u.Path = dir, name, []string{arg}, path
		got, err := u.Text()
		if err != nil {
			return
		}
		plainly := strings.Split(text(t, plain()), "\n")
		lines := strings.Split(got, "\n")
		if len(lines) != len(plainly) {
			t.Fatalf("%d lines instead of %d:\n%s", len(lines), len(plainly), got)
		}
		for i := range lines {
			before := func(s string) string { key, _, _ := strings.Cut(s, "="); return key }
			if strings.HasSuffix(lines[i], `\`) {
				t.Fatalf("line %d is joined with the next: %q", i, lines[i])
			}
			if before(lines[i]) != before(plainly[i]) && !slices.Contains([]int{0, 2}, i) {
				t.Fatalf("line %d is %q", i, lines[i])
			}
		}
	})
}
