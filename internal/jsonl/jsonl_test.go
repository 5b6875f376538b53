package jsonl_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"ralph/internal/jsonl"
)

func TestStringsAreCutAndTheLineStaysValid(t *testing.T) {
	for _, tt := range []struct{ name, line, want string }{
		{"short strings stay", `{"a":"bcd"}`, `{"a":"bcd"}`},
		{"a long one is cut", `{"a":"bcdefg","h":[1,"i"]}`, `{"a":"bcd","h":[1,"i"]}`},
		{"names are strings too", `{"abcdef":1}`, `{"abc":1}`},
		{"an escape is not torn", `{"a":"bc\"defg"}`, `{"a":"bc\""}`},
		{"a backslash at the end", `{"a":"bcdef\\","g":1}`, `{"a":"bcd","g":1}`},
		{"a number of a character is not torn", `{"a":"\u00e9\u00e8"}`, `{"a":"\u00e9"}`},
		{"a character is not torn", `{"a":"bcé!"}`, `{"a":"bcé"}`},
		{"numbers stay", `{"a":123456789}`, `{"a":123456789}`},
		{"of a line that is too long the beginning stays", `[1111,2222,3333,4444,5555,6666]`, `[1111,2222,3333,4444,5555,666`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := jsonl.Squeezer{MaxString: 3, MaxLine: 29}
			for range 2 { // the second time after a reset, a byte at a time
				s.Reset()
				for i := range len(tt.line) {
					s.Add([]byte(tt.line[i : i+1]))
				}
				if got := string(s.Line()); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			}
		})
	}
}

func FuzzSqueezer(f *testing.F) {
	f.Add(`{"a":"b\"\\c\u00e9é","d":[1,true,null,{}]}`, 2)
	f.Add(`"\ud83d\ude00"`, 1)
	f.Fuzz(func(t *testing.T, line string, limit int) {
		s := jsonl.Squeezer{MaxString: limit % 8, MaxLine: 1 << 20}
		s.Add([]byte(line))
		got := string(s.Line())
		bytewise := jsonl.Squeezer{MaxString: limit % 8, MaxLine: 1 << 20}
		for i := range len(line) {
			bytewise.Add([]byte(line[i : i+1]))
		}
		if string(bytewise.Line()) != got {
			t.Errorf("%q became %q, and a byte at a time %q", line, got, bytewise.Line())
		}
		if json.Valid([]byte(line)) && !json.Valid([]byte(got)) {
			t.Errorf("%q became %q", line, got)
		}
		if utf8.ValidString(line) && json.Valid([]byte(line)) && !utf8.ValidString(got) {
			t.Errorf("a character of %q is torn: %q", line, got)
		}
		if len(got) > len(line) {
			t.Errorf("%q grew to %q", line, got)
		}
	})
}
