package gate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ralph/loop/gate"
)

// TestMoved: a change moves files if it does nothing else but lead to where they are now, in whole lines.
func TestMoved(t *testing.T) {
	const sum = "def total(a, b):\n    return a + b\n"
	type files map[string]string
	for _, c := range []struct {
		name          string
		was, is, more files // more are files of the target that the change leaves alone
		want          bool
	}{
		{
			"Go: all of a package",
			files{"sum/sum.go": "package sum\n\nfunc Sum() int { return 3 }\n", "sum/sum_test.go": "package sum\n\nfunc TestSum() { Sum() }\n", "a.go": "package m\n\nimport (\n\t\"fmt\"\n\tsum \"m/sum\"\n)\n"},
			files{"calc/sum.go": "package calc\n\nfunc Sum() int { return 3 }\n", "calc/sum_test.go": "package calc\n\nfunc TestSum() { Sum() }\n", "a.go": "package m\n\nimport (\n\t\"fmt\"\n\tsum \"m/calc\"\n)\n"},
			nil, true,
		},
		{
			"Go: a package out of the root",
			files{"sum.go": "package sum\n\nfunc Sum() int { return 3 }\n", "sum_test.go": "package sum\n\nfunc TestSum() { Sum() }\n"},
			files{"calc/sum.go": "package calc\n\nfunc Sum() int { return 3 }\n", "calc/sum_test.go": "package calc\n\nfunc TestSum() { Sum() }\n"},
			nil, true,
		},
		{"Go: into another package", files{"sum/sum.go": "package sum\n", "a_test.go": "package m\n\nimport s \"m/sum\"\n\nfunc f() {}\n"}, files{"fake/sum.go": "package fake\n", "a_test.go": "package m\n\nimport s \"m/fake\"\n\nfunc f() {}\n"}, files{"fake/fake.go": "package fake\n"}, false},
		{"Go: another import", files{"d/a.go": "package d\n", "a_test.go": "package m\n\nimport s \"m/sum\"\n"}, files{"e/a.go": "package e\n", "a_test.go": "package m\n\nimport s \"m/fake\"\n"}, nil, false},
		{"Go: a call with a text", files{"d/a.go": "package d\n", "a_test.go": "package m\n\nimport m \"m/d\"\n\nvar x = f(\n\"m/d\",\n)\n"}, files{"e/a.go": "package e\n", "a_test.go": "package m\n\nimport m \"m/e\"\n\nvar x = f(\n\"m/e\",\n)\n"}, nil, false},
		{"Python, and who imports it", files{"sum.py": sum, "a.py": "import sum as s\nfrom sum import total\ns()\n"}, files{"calc.py": sum, "a.py": "import calc as s\nfrom calc import total\ns()\n", "README.md": "calc\n"}, nil, true},
		{"Python: below a root", files{"src/p/sum.py": sum, "tests/test_sum.py": "import os\nfrom p.sum import total\n\ndef test(): total()\n"}, files{"src/p/calc/sum.py": sum, "src/p/calc/__init__.py": "", "tests/test_sum.py": "import os\nfrom p.calc.sum import total\n\ndef test(): total()\n"}, nil, true},
		{"Python: relative imports of what is moved", files{"p/sum.py": "from . import util\nfrom ..q import z\n" + sum}, files{"p/calc/sum.py": "from .. import util\nfrom ...q import z\n" + sum}, nil, true},
		{"Python: another relative import", files{"p/sum.py": "from .good import f\n" + sum}, files{"p/calc/sum.py": "from .good import f\n" + sum}, nil, false},
		{"Python: a package that leads to it", files{"p/sum.py": sum, "a.py": "from p.sum import total\n"}, files{"p/calc/sum.py": sum, "p/calc/__init__.py": "from .sum import total\n", "a.py": "from p.calc.sum import total\n"}, nil, true},
		{"Python: code beside an unrelated move", files{"a.txt": "a\n", "f.py": "def f():\n    return 1\n", "test_f.py": "def test_f(): assert f() == 1\n"}, files{"b.txt": "a\n", "f.py": "def f():\n    return 2\n", "test_f.py": "test_f = lambda: None  # import('x')\n"}, nil, false},
		{"Python: an import that does more", files{"a.txt": "a\n", "test_f.py": "import f\nf.t()\n"}, files{"b.txt": "a\n", "test_f.py": "import f; f.t = print\nf.t()\n"}, nil, false},
		{"Python: another module is imported", files{"docs/a.py": sum, "test_f.py": "from good import total\n"}, files{"docs/b.py": sum, "test_f.py": "from fake import total\n"}, nil, false},
		{"Python: the name of another one is taken", files{"sum.py": sum, "test_f.py": "from sum import total\n"}, files{"calc.py": sum, "test_f.py": "from calc import total\n"}, files{"calc/__init__.py": "total = print\n"}, false},
		{"Python: what was imported is another one", files{"sum.py": sum, "test_f.py": "from sum import total\n"}, files{"calc.py": sum, "test_f.py": "from calc import total\n"}, files{"sum/__init__.py": "total = print\n"}, false},
		{"Python: another name is imported", files{"sum.py": sum, "test_f.py": "from sum import total\n"}, files{"calc.py": sum, "test_f.py": "from calc import fake as total\n"}, nil, false},
		{"Python: an import is gone", files{"sum.py": sum, "test_f.py": "import sum\nimport strict\n"}, files{"calc.py": sum, "test_f.py": "import calc\n"}, nil, false},
		{"Python: with another body", files{"sum.py": sum}, files{"calc.py": "def total(a, b):\n    return a - b\n"}, nil, false},
		{"JavaScript: modules", files{"src/sum.ts": "import { z } from './z';\nexport const f = 1;\n", "test/sum.test.ts": "import { f } from '../src/sum';\nimport {\n  g\n} from '../src/sum';\nf();\n"}, files{"src/calc/sum.ts": "import { z } from '../z';\nexport const f = 1;\n", "test/sum.test.ts": "import { f } from '../src/calc/sum';\nimport {\n  g\n} from '../src/calc/sum';\nf();\n"}, nil, true},
		{"JavaScript: a test with its code", files{"sum.js": "exports.f = 1;\n", "sum.test.js": "const { f } = require('./sum');\nf();\n"}, files{"calc/sum.js": "exports.f = 1;\n", "calc/sum.test.js": "const { f } = require('./sum');\nf();\n"}, nil, true},
		{"JavaScript: another module", files{"a.js": "x\n", "sum.test.js": "const { f } = require('./sum');\nf();\n"}, files{"b.js": "x\n", "sum.test.js": "const { f } = require('./fake');\nf();\n"}, nil, false},
		{"JavaScript: more in the line", files{"a.js": "x\n", "t.test.js": "const { f } = require('./a');\nf();\n"}, files{"b.js": "x\n", "t.test.js": "const { f } = require('./b') && require('./c');\nf();\n"}, nil, false},
		{"JavaScript: a call that has an import", files{"a.js": "x\n", "t.test.js": "test('f', () => expect(f()).toBe(1)); // require('x')\n"}, files{"b.js": "x\n", "t.test.js": "test('f', () => {}); // require('x')\n"}, nil, false},
		{"JavaScript: with more code", files{"sum.js": "x\n"}, files{"calc/sum.js": "x\n", "sum.mjs": "y\n"}, nil, false},
		{"Rust: a module", files{"src/sum.rs": "pub fn f() {}\n", "src/lib.rs": "mod sum;\nuse crate::sum::f;\n"}, files{"src/calc.rs": "pub fn f() {}\n", "src/lib.rs": "mod calc;\nuse crate::calc::f;\n"}, nil, true},
		{"Rust: another one is used", files{"src/a.rs": "pub fn f() {}\n", "tests/t.rs": "use m::good::f;\n"}, files{"src/b.rs": "pub fn f() {}\n", "tests/t.rs": "use m::fake::f;\n"}, nil, false},
		{"Rust: macro in a line", files{"src/a.rs": "x\n", "tests/t.rs": "use m::a::f;\nassert!(f());\n"}, files{"src/b.rs": "x\n", "tests/t.rs": "use m::b::f; macro_rules! assert { ($e:expr) => {} }\nassert!(f());\n"}, nil, false},
		{"Java: a class", files{"src/main/java/a/Sum.java": "package a;\nclass Sum {}\n", "src/test/java/a/SumTest.java": "package a;\nimport a.Sum;\nclass SumTest {}\n"}, files{"src/main/java/b/c/Sum.java": "package b.c;\nclass Sum {}\n", "src/test/java/a/SumTest.java": "package a;\nimport b.c.Sum;\nclass SumTest {}\n"}, nil, true},
		{"Java: another class", files{"src/a/Sum.java": "package a;\n", "src/a/T.java": "import a.Good;\n"}, files{"src/b/Sum.java": "package b;\n", "src/a/T.java": "import b.Good;\n"}, nil, false},
		{"Ruby", files{"lib/sum.rb": "x\n", "test/t.rb": "require 'sum'\nrequire_relative '../lib/sum'\n"}, files{"lib/calc/sum.rb": "x\n", "test/t.rb": "require 'calc/sum'\nrequire_relative '../lib/calc/sum'\n"}, nil, true},
		{"Ruby: and more in the line", files{"lib/sum.rb": "x\n", "test/t.rb": "require 'sum'\n"}, files{"lib/calc.rb": "x\n", "test/t.rb": "require 'calc'; def assert(*) end\n"}, nil, false},
		{"PHP", files{"src/Sum.php": "<?php\nnamespace App;\nx\n", "tests/T.php": "<?php\nuse App\\Sum;\n"}, files{"src/Calc/Sum.php": "<?php\nnamespace App\\Calc;\nx\n", "tests/T.php": "<?php\nuse App\\Calc\\Sum;\n"}, nil, true},
		{"PHP: another class", files{"src/Sum.php": "<?php\nx\n", "tests/T.php": "<?php\nuse App\\Good;\n"}, files{"src/Calc/Sum.php": "<?php\nx\n", "tests/T.php": "<?php\nuse App\\Fake;\n"}, nil, false},
		{"C", files{"src/sum.h": "int f();\n", "src/sum.c": "#include \"sum.h\"\nint f() {}\n", "t.c": "#include <stdio.h>\n#include \"src/sum.h\"\n"}, files{"src/calc/sum.h": "int f();\n", "src/calc/sum.c": "#include \"sum.h\"\nint f() {}\n", "t.c": "#include <stdio.h>\n#include \"src/calc/sum.h\"\n"}, nil, true},
		{"C: another file", files{"a.h": "x\n", "t.c": "#include <assert.h>\n"}, files{"b.h": "x\n", "t.c": "#include \"fake.h\"\n"}, nil, false},
		{"another language", files{"a.ex": "import A\nx\n"}, files{"b.ex": "import B\nx\n"}, nil, false},
		{"and one is gone", files{"sum.go": "package a\n", "calc.go": "package a\nfunc F() {}\n"}, files{"calc/sum.go": "package a\n"}, nil, false},
		{"nothing", nil, files{"more.go": "package a\n"}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var list []gate.File
			for name, text := range c.was {
				f := gate.File{Path: name, Was: []byte(text)}
				if is, ok := c.is[name]; ok {
					f.Is = []byte(is)
				}
				list = append(list, f)
			}
			for name, text := range c.is {
				if _, ok := c.was[name]; !ok {
					list = append(list, gate.File{Path: name, Is: []byte(text)})
				}
			}
			names := slices.Concat(slices.Collect(maps.Keys(c.was)), slices.Collect(maps.Keys(c.more)))
			if got := gate.Moved(list, names); got != c.want {
				t.Errorf("%t", got)
			}
		})
	}
}

// TestALargeFileIsComparedOnce: recognizing a move takes time linear in the size of the files.
func TestALargeFileIsComparedOnce(t *testing.T) {
	large := []byte(strings.Repeat("a line of a large file\n", 200_000))
	var files []gate.File
	for i := range 5 {
		files = append(files, gate.File{Path: fmt.Sprintf("src/gone%d.txt", i), Was: large},
			gate.File{Path: fmt.Sprintf("src/new%d.txt", i), Is: append([]byte{byte('a' + i)}, large...)})
	}
	gate.Moved(files, nil)
}
