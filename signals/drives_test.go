package signals_test

import (
	"strings"
	"testing"

	"ralph/signals"
)

func TestDrives(t *testing.T) {
	for _, tt := range []struct {
		command, changed string // files, separated by spaces
		want             string
	}{
		{"sh tests/check.sh", "tests/check.sh main.c", "tests/check.sh"},
		{"./scripts/x --fast", "scripts/x scripts/y", "scripts/x"},
		{"sh -c './scripts/x && make'", "scripts/x Makefile", "scripts/x Makefile"},
		{"make test", "Makefile sub/Makefile rules.mk sub/more.mk make.go", "Makefile rules.mk sub/more.mk"},
		{"make -C sub test", "Makefile sub/Makefile", "sub/Makefile"},
		{"make -f build/all.make", "build/all.make", "build/all.make"},
		{"cd web && npm test", "web/package.json package.json", "web/package.json"},
		{"cd web && sh run.sh", "web/run.sh run.sh", "web/run.sh run.sh"},
		{"npm --prefix web test", "web/package.json package.json", "web/package.json"},
		{"pnpm run lint", "package.json", "package.json"},
		{"npx vitest run", "vitest.config.ts package.json", "vitest.config.ts package.json"},
		{"CI=1 timeout 60 yarn test", "package.json", "package.json"},
		{"python3 -m pytest -q", "tests/conftest.py pytest.ini setup.py", "tests/conftest.py pytest.ini"},
		{"uv run pytest", "pyproject.toml", "pyproject.toml"},
		{"python3 tests/check.py", "tests/check.py", "tests/check.py"},
		{"go test ./...", "go.mod a_test.go", ""},
		{"cargo test", "Cargo.toml core/build.rs src/lib.rs", "Cargo.toml core/build.rs"},
		{"./gradlew check", "gradlew app/build.gradle.kts", "gradlew app/build.gradle.kts"},
		{"cmake --build build && ctest", "cmake/flags.cmake src/a.c", "cmake/flags.cmake"},
		{"ant test", "build.xml a.xml", "build.xml"},
		{"inv test", "tasks.py main.py", "tasks.py"},
		{"flutter test", "dart_test.yaml pubspec.yaml", "dart_test.yaml"},
		{"vendor/bin/behat && vendor/bin/codecept run", "behat.yml codeception.yml", "behat.yml codeception.yml"},
		{"bundle exec cucumber", "config/cucumber.yml cucumber.yml", "cucumber.yml"},
		{"env FILE=checks/list.txt sh run.sh", "checks/list.txt", "checks/list.txt"},
		{"test -f made.txt && grep -q x made.txt && [ -s made.txt ] && ! cat made.txt | sh check.sh", "made.txt check.sh", "check.sh"},
		{"diff out.txt tests/expected", "tests/expected", "tests/expected"},
		{"echo make", "Makefile", ""},
		{"./check make", "check Makefile", "check"},
		{"sh 'odd[1].sh'", "odd[1].sh odd1.sh", "odd[1].sh"},
		{"", "Makefile", ""},
		{"true", "Makefile package.json", ""},
	} {
		var got []string
		for _, d := range signals.Drives([]string{tt.command}, nil, strings.Fields(tt.changed)) {
			got = append(got, d.File)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: changed %s: got %q, want %q", tt.command, tt.changed, got, tt.want)
		}
	}
}

// TestDrivesOfATask: a file named by the task's own command is the subject
// of the task, unless it looks like a check.
func TestDrivesOfATask(t *testing.T) {
	got := signals.Drives(nil, []string{"sh temp.sh 1 | sh tests/same.sh; make all"}, []string{"temp.sh", "tests/same.sh", "Makefile"})
	if len(got) != 2 || got[0].File != "tests/same.sh" || got[1].File != "Makefile" {
		t.Errorf("got %v", got)
	}
}
