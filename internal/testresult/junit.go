package testresult

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxReport is the maximum size of a JUnit report, in bytes.
const maxReport = 64 << 20

// A suite is a <testsuite> that is being read.
type suite struct {
	name     string
	told     int // failures and errors according to its attributes
	failures int // according to its test cases
}

// ParseJUnit parses a report as written by JUnit and most test runners. An invalid or contradictory
// report is returned as broken; the error is the reader's.
func ParseJUnit(r io.Reader) (*Results, error) {
	results := &Results{}
	limited := &io.LimitedReader{R: r, N: maxReport + 1}
	d := xml.NewDecoder(limited)
	var suites []suite
	seen := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		var syntax *xml.SyntaxError
		switch {
		case limited.N == 0:
			results.Broken = fmt.Sprintf("the JUnit report is larger than %d MiB", maxReport>>20)
			return results, nil
		case errors.As(err, &syntax):
			results.Broken = "the JUnit report is not XML: " + syntax.Error()
			return results, nil
		case err != nil && token == nil && !isReading(err):
			results.Broken = "the JUnit report cannot be read: " + err.Error()
			return results, nil
		case err != nil:
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "testsuite":
				seen = true
				suites = append(suites, suite{name: attribute(t, "name"), told: number(t, "failures") + number(t, "errors")})
			case "testsuites":
				seen = true
			case "testcase":
				var c testcase
				if err := d.DecodeElement(&c, &t); err != nil {
					results.Broken = "the JUnit report is cut short: " + err.Error()
					return results, nil
				}
				for i := range suites {
					if c.status() == Failed {
						suites[i].failures++
					}
					c.suite = suites[i].name
				}
				results.add(c.name(), c.status())
			}
		case xml.EndElement:
			if t.Name.Local == "testsuite" && len(suites) > 0 {
				s := suites[len(suites)-1]
				suites = suites[:len(suites)-1]
				if s.told > s.failures {
					results.Broken = fmt.Sprintf("the suite %s counts %d failures and names %d", s.name, s.told, s.failures)
				}
			}
		}
	}
	if !seen {
		results.Broken = "the file is not a JUnit report"
	}
	return results, nil
}

// isReading distinguishes an error of the reader from one of the decoder, which returns no
// typed error for unknown encodings.
func isReading(err error) bool { return !strings.HasPrefix(err.Error(), "xml: ") }

// A testcase is a <testcase>.
type testcase struct {
	suite   string
	Class   string    `xml:"classname,attr"`
	Name    string    `xml:"name,attr"`
	Failure *struct{} `xml:"failure"`
	Error   *struct{} `xml:"error"`
	Skipped *struct{} `xml:"skipped"`
}

func (c testcase) status() Status {
	switch {
	case c.Failure != nil || c.Error != nil:
		return Failed
	case c.Skipped != nil:
		return Skipped
	}
	return Passed
}

// name is "class.name", or "suite.name" if there is no class.
func (c testcase) name() string {
	if class := cmp.Or(c.Class, c.suite); class != "" {
		return class + "." + c.Name
	}
	return c.Name
}

func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func number(t xml.StartElement, name string) int {
	n, err := strconv.Atoi(attribute(t, name))
	if err != nil {
		return 0 // absent, which is allowed
	}
	return n
}
