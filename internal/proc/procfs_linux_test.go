package proc_test

import (
	"strings"
	"testing"

	"ralph/internal/proc"
)

const bashStat = "4242 (a) R (b c) S 17 4242 4242 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 9 10 11\n"

func TestProcessStateIsRead(t *testing.T) {
	pid, parent, start, state, command, err := proc.ParseStat(bashStat)
	if err != nil || pid != 4242 || parent != 17 || start != 987654 || state != 'S' || command != "[a) R (b c]" {
		t.Errorf("got %d %d %d %c %q, %v", pid, parent, start, state, command, err)
	}
}

func FuzzProcessState(f *testing.F) {
	f.Add(bashStat)
	f.Add("1 (x) Z 0 0")
	f.Add(")(")
	f.Fuzz(func(t *testing.T, stat string) {
		pid, _, _, state, command, err := proc.ParseStat(stat)
		if err == nil && (state == 0 || !strings.Contains(stat, command[1:len(command)-1])) {
			t.Errorf("ParseStat(%q) is process %d with the state %d and the name %q", stat, pid, state, command)
		}
	})
}
