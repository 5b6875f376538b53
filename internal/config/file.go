package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"ralph/internal/text"
)

// Bounds of a file. The YAML parser's time grows with the cube of the nesting, and no setting is
// nested deeper than a list in a group.
const (
	maxFile = 64 << 10 // bytes
	maxNest = 16       // nested brackets
)

// readFile reads the settings of a file; none if it does not exist.
func readFile(path, name string) (map[string]setting, []error) {
	r := reader{name: name, anchors: map[string]ast.Node{}, settings: map[string]setting{}}
	data, err := readBounded(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, []error{&Error{Source: name, Problem: err.Error(), Err: err}}
	}
	data = normalize(data)
	r.lines = strings.Split(string(data), "\n")
	node, problem := parseYAML(data)
	if problem != nil {
		problem.Source = name
		if problem.Line > 0 {
			problem = r.locate(problem, problem.Line, problem.Column)
		}
		return nil, []error{problem}
	}
	r.group("", node, 1, 1)
	return r.settings, r.problems
}

// readBounded reads a regular file of bounded size.
func readBounded(path string) (data []byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, reason(err)
	}
	// Opening a named pipe would block.
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file; remove it or put a file there")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, reason(err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("is larger than %d KiB, which no configuration needs", maxFile>>10)
	}
	return data, nil
}

// reason returns the operating system's error without the path, which the message already has.
func reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("cannot be read: %w", path.Err)
	}
	return err
}

// normalize removes a byte order mark and converts all line ends to "\n": the YAML parser miscounts
// others.
func normalize(data []byte) []byte {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
}

// parseYAML parses a single document; nil if it is empty. Keys that are set twice are refused. The
// error has only a position and a problem.
func parseYAML(data []byte) (ast.Node, *Error) {
	if good := text.Invalid(data); good >= 0 {
		line := bytes.Count(data[:good], []byte("\n")) + 1
		column := utf8.RuneCount(data[bytes.LastIndexByte(data[:good], '\n')+1:good]) + 1
		return nil, &Error{Line: line, Column: column, Problem: "is not UTF-8 text; save the file as UTF-8"}
	}
	tokens := lexer.Tokenize(string(data))
	if t := tooDeep(tokens); t != nil {
		return nil, &Error{Line: t.Position.Line, Column: t.Position.Column, Problem: "brackets are nested too deeply"}
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, syntaxError(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if _, directive := doc.Body.(*ast.DirectiveNode); doc.Body == nil || directive {
			continue
		}
		if body != nil {
			at := start(doc.Body).Position
			return nil, &Error{Line: at.Line, Column: at.Column, Problem: "a second document begins here; there may be only one"}
		}
		body = doc.Body
	}
	return body, nil
}

func syntaxError(err error) *Error {
	var bad yaml.Error
	if !errors.As(err, &bad) {
		return &Error{Problem: notYAML(err.Error())}
	}
	e := &Error{Problem: notYAML(bad.GetMessage())}
	if t := bad.GetToken(); t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	return e
}

func notYAML(message string) string {
	return "is not YAML: " + printable(strings.ReplaceAll(message, "\t", `\t`), maxShown)
}

// tooDeep returns the bracket that exceeds the bound, if any.
func tooDeep(tokens token.Tokens) *token.Token {
	depth := 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			if depth++; depth > maxNest {
				return t
			}
		case token.SequenceEndType, token.MappingEndType:
			depth--
		}
	}
	return nil
}
