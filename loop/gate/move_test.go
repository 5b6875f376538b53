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
		{"blank lines", files{"a.txt": "a\n\nb\n"}, files{"b.txt": "a\nb\n\n"}, nil, true},
		{"an empty file is gone, too", files{"a.txt": "1\n", "e.txt": ""}, files{"b.txt": "1\n"}, nil, true},
		{"a file with text is gone, too", files{"a.txt": "1\n", "e.txt": "2\n"}, files{"b.txt": "1\n"}, nil, false},
		{"an empty file is added", nil, files{"b.txt": ""}, nil, false},
		{"a copy is added, too", files{"a.txt": "1\n"}, files{"d/a.txt": "1\n", "e/b.txt": "1\n"}, nil, false},
		{"two become one", files{"a.txt": "1\n", "b.txt": "1\n"}, files{"c.txt": "1\n"}, nil, false},
		{"three with other names", files{"a.txt": "1\n", "b.txt": "2\n", "c.txt": "3\n"}, files{"d/e.txt": "2\n", "d/f.txt": "1\n", "d/g.txt": "3\n"}, nil, true},
		{"one with its name, and one with another", files{"a.txt": "1\n", "b.txt": "2\n"}, files{"d/a.txt": "1\n", "d/c.txt": "2\n"}, nil, true},
		{"two that change their names", files{"p/a.txt": "1\n", "q/a.txt": "2\n"}, files{"r/a.txt": "2\n", "s/a.txt": "1\n"}, nil, true},
		{"as another language", files{"a.py": "x\n"}, files{"a.rb": "x\n"}, nil, false},
		{"two that differ in imports", files{"a.py": "from m import p\n", "b.py": "from m import q\n"}, files{"d/c.py": "from m import q\n", "d/e.py": "from m import p\n"}, nil, true},
		{"Python: imports in another order", files{"a.py": "from m import p\nfrom m import q\n"}, files{"d/a.py": "from m import q\nfrom m import p\n"}, nil, true},
		{"Python: an import more", files{"sum.py": sum, "test_f.py": "import sum\n"}, files{"calc.py": sum, "test_f.py": "import calc\nimport strict\n"}, nil, false},
		{
			"Python: two alike keep their names",
			files{"p/a.py": sum, "p/b.py": sum, "t.py": "from p.a import total as f\nfrom p.b import total as g\n"},
			files{"r/a.py": sum, "q/b.py": sum, "t.py": "from r.a import total as f\nfrom q.b import total as g\n"},
			nil, true,
		},
		{"Python: a package", files{"sum/__init__.py": sum, "t.py": "from sum import total\n"}, files{"calc/__init__.py": sum, "t.py": "from calc import total\n"}, nil, true},
		{"Python: an import of another one, unchanged", files{"p/sum.py": "import os\n" + sum}, files{"p/calc/sum.py": "import os\n" + sum}, nil, true},
		{"Python: a package that leads to another one", files{"p/sum.py": sum}, files{"p/calc/sum.py": sum, "p/calc/__init__.py": "from .fake import total\n"}, nil, false},
		{"Python: a package that leads elsewhere", files{"p/sum.py": sum}, files{"p/calc/sum.py": sum, "p/calc/__init__.py": "from fake import total\n"}, nil, false},
		{"Python: a folder has the name", files{"sum.py": sum, "t.py": "import sum\n"}, files{"calc.py": sum, "t.py": "import calc\n"}, files{"calc/more.py": "x\n"}, false},
		{"Python: another one, out of a folder", files{"docs/a/b.py": sum, "t.py": "import good\n"}, files{"c.py": sum, "t.py": "import fake\n"}, nil, false},
		{"Python: another one, into a folder", files{"c.py": sum, "t.py": "import c\n"}, files{"docs/a/b.py": sum, "t.py": "import fake\n"}, nil, false},
		{"JavaScript: the file of a folder", files{"src/sum/index.js": "x\n", "t.js": "const { f } = require('./src/sum');\n"}, files{"src/calc/index.js": "x\n", "t.js": "const { f } = require('./src/calc');\n"}, nil, true},
		{"JavaScript: another one has the name", files{"sum.js": "x\n", "t.js": "require('./sum');\n"}, files{"calc.js": "x\n", "t.js": "require('./calc');\n"}, files{"calc.json": "{}\n"}, false},
		{"JavaScript: a file that leads to it, with its ending", files{"sum.js": "x\n"}, files{"calc/sum.js": "x\n", "calc/index.js": "export * from './sum.js';\n"}, nil, true},
		{"JavaScript: from the root", files{"src/sum.ts": "x\n", "test/t.ts": "import { f } from 'src/sum';\n"}, files{"src/calc/sum.ts": "x\n", "test/t.ts": "import { f } from 'src/calc/sum';\n"}, nil, true},
		{"JavaScript: a package in place of the module", files{"sum.js": "x\n", "t.js": "require('./sum');\n"}, files{"calc/sum.js": "x\n", "t.js": "require('fake');\n"}, nil, false},
		{"JavaScript: with its ending", files{"sum.js": "x\n", "t.js": "require('./sum.js');\n"}, files{"calc.js": "x\n", "t.js": "require('./calc.js');\n"}, nil, true},
		{"JavaScript: another one, with its ending", files{"sum.js": "x\n", "t.js": "require('./sum.js');\n"}, files{"calc.js": "x\n", "t.js": "require('./fake.js');\n"}, nil, false},
		{"JavaScript: another one than it was", files{"sum.js": "x\n", "t.js": "require('./good.js');\n"}, files{"calc.js": "x\n", "t.js": "require('./calc.js');\n"}, nil, false},
		{"JavaScript: another one than it is", files{"sum.js": "x\n", "t.js": "require('./sum');\n"}, files{"calc.js": "x\n", "t.js": "require('./fake');\n"}, nil, false},
		{
			"JavaScript: several",
			files{"a.js": "1\n", "b.js": "2\n", "c.js": "3\n", "d.js": "4\n", "t.js": "require('./a');\nrequire('./b');\nrequire('./c');\nrequire('./d');\n"},
			files{"x/a.js": "1\n", "x/b.js": "2\n", "x/c.js": "3\n", "x/d.js": "4\n", "t.js": "require('./x/a');\nrequire('./x/b');\nrequire('./x/c');\nrequire('./x/d');\n"},
			nil, true,
		},
		{"Rust: a module with a folder", files{"src/sum/mod.rs": "x\n", "src/lib.rs": "mod sum;\n"}, files{"src/calc/mod.rs": "x\n", "src/lib.rs": "mod calc;\n"}, nil, true},
		{"Rust: a module of a module", files{"src/a/sum.rs": "x\n", "src/a.rs": "mod sum;\n"}, files{"src/a/calc.rs": "x\n", "src/a.rs": "mod calc;\n"}, nil, true},
		{"Rust: a module beside a module", files{"src/good.rs": "x\n", "src/a.rs": "mod good;\n"}, files{"src/fake.rs": "x\n", "src/a.rs": "mod fake;\n"}, nil, false},
		{"Rust: a module of another folder", files{"src/b/good.rs": "x\n", "src/lib.rs": "mod good;\n"}, files{"src/b/fake.rs": "x\n", "src/lib.rs": "mod fake;\n"}, nil, false},
		{"Java: the package of a file that stays", files{"src/a/Sum.java": "package a;\n", "src/a/T.java": "package a;\nclass T {}\n"}, files{"src/b/Sum.java": "package b;\n", "src/a/T.java": "package b;\nclass T {}\n"}, nil, false},
		{
			"Java: several",
			files{"src/a/A.java": "package a;\n1\n", "src/b/B.java": "package b;\n2\n", "src/c/C.java": "package c;\n3\n", "src/d/D.java": "package d;\n4\n"},
			files{"src/x/a/A.java": "package x.a;\n1\n", "src/x/b/B.java": "package x.b;\n2\n", "src/x/c/C.java": "package x.c;\n3\n", "src/x/d/D.java": "package x.d;\n4\n"},
			nil, true,
		},
		{"PHP: a file beside another one", files{"src/good.php": "x\n", "t/a.php": "require __DIR__ . '/good.php';\n"}, files{"src/fake.php": "x\n", "t/a.php": "require __DIR__ . '/fake.php';\n"}, nil, false},
		{"C: a file beside another one", files{"src/good.h": "x\n", "t/a.c": "#include \"good.h\"\n"}, files{"src/fake.h": "x\n", "t/a.c": "#include \"fake.h\"\n"}, nil, false},
		{"C: the header stays", files{"a/sum.c": "#include \"sum.h\"\nint f() {}\n"}, files{"b/sum.c": "#include \"../a/sum.h\"\nint f() {}\n"}, files{"a/sum.h": "int f();\n"}, true},
		{"Go: into the module's folder", files{"mod/sum/sum.go": "package sum\nx\n", "mod/a/a.go": "import \"m/sum\"\n"}, files{"mod/sum.go": "package m\nx\n", "mod/a/a.go": "import \"m\"\n"}, nil, true},
		{"Go: a package of another module", files{"sum/sum.go": "package sum\n", "a.go": "import \"good.org/m/sum\"\n"}, files{"calc/sum.go": "package calc\n", "a.go": "import \"evil.org/m/calc\"\n"}, nil, false},
		{"Go: another package than it was", files{"sum/sum.go": "package sum\n", "a.go": "import \"m/good\"\n"}, files{"calc/sum.go": "package calc\n", "a.go": "import \"m/calc\"\n"}, nil, false},
		{"Go: another package than it is", files{"sum/sum.go": "package sum\n", "a.go": "import \"m/sum\"\n"}, files{"calc/sum.go": "package calc\n", "a.go": "import \"m/fake\"\n"}, nil, false},
		{"Go: another package, with a dot", files{"x/a.go": "package x\n", "a.go": "import \"m/a.b\"\n"}, files{"x/b.go": "package x\n", "a.go": "import \"m/a/b\"\n"}, nil, false},
		{"Go: another package, below the folder", files{"sum.go": "package m\n", "t/t.go": "import \"fmt\"\n"}, files{"calc/sum.go": "package calc\n", "t/t.go": "import \"calc/fmt\"\n"}, nil, false},
		{"Go: another package, above the folder", files{"calc/sum.go": "package calc\n", "t/t.go": "import \"calc/fmt\"\n"}, files{"sum.go": "package m\n", "t/t.go": "import \"fmt\"\n"}, nil, false},
		{"another language", files{"a.ex": "import A\nx\n"}, files{"b.ex": "import B\nx\n"}, nil, false},
		{"and one is gone", files{"sum.go": "package a\n", "calc.go": "package a\nfunc F() {}\n"}, files{"calc/sum.go": "package a\n"}, nil, false},
		{"nothing", nil, files{"more.go": "package a\n"}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var list []gate.File
			for _, name := range slices.Sorted(maps.Keys(c.was)) {
				f := gate.File{Path: name, Was: []byte(c.was[name])}
				if is, ok := c.is[name]; ok {
					f.Is = []byte(is)
				}
				list = append(list, f)
			}
			for _, name := range slices.Sorted(maps.Keys(c.is)) {
				if _, ok := c.was[name]; !ok {
					list = append(list, gate.File{Path: name, Is: []byte(c.is[name])})
				}
			}
			names := slices.Concat(slices.Sorted(maps.Keys(c.was)), slices.Sorted(maps.Keys(c.more)))
			if got := gate.Moved(list, names); got != c.want {
				t.Errorf("%t", got)
			}
		})
	}
}

// TestMoves: only a change that both removes and adds files may move any.
func TestMoves(t *testing.T) {
	gone, added, changed := gate.File{Was: []byte("a")}, gate.File{Is: []byte("a")}, gate.File{Was: []byte("a"), Is: []byte("b")}
	for _, c := range []struct {
		name  string
		files []gate.File
		want  bool
	}{
		{"one is gone, one is added", []gate.File{changed, gone, added}, true},
		{"one is gone", []gate.File{changed, gone}, false},
		{"one is added", []gate.File{added, changed}, false},
		{"one is changed", []gate.File{changed}, false},
	} {
		if got := gate.Moves(c.files); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
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
