package migrations_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// statement is one statement of an SQL file, as far as the rules for files look at it.
type statement struct {
	line, lines int      // its first line in the file, from 1, and how many it takes
	code        string   // without comments, and with every quoted text empty
	raw         string   // as it stands in the file
	bodies      []string // the dollar-quoted texts
}

// boundary finds what may hide a semicolon, and the semicolon. Names in double quotes are kept in the code.
var boundary = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/|\b[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$[A-Za-z_]*\$|;`)

// statements cuts an SQL text, or the body of a function, at its semicolons. The last statement may lack one; unclosed tells
// that it does, or that a quote is never closed.
func statements(text string) (out []statement, unclosed bool) {
	var code strings.Builder
	var bodies []string
	start, at := 0, 0
	end := func(to int) {
		if s := newStatement(text, start, to, code.String(), bodies); s.code != "" {
			out = append(out, s)
			unclosed = to == len(text)
		}
		code.Reset()
		bodies, start = nil, to
	}
	for {
		found := boundary.FindStringIndex(text[at:])
		if found == nil {
			code.WriteString(text[at:])
			end(len(text))
			return out, unclosed
		}
		code.WriteString(text[at : at+found[0]])
		part := text[at+found[0] : at+found[1]]
		at += found[1]
		switch {
		case part == ";":
			end(at - 1)
			start = at
			unclosed = false
		case part[0] == '$':
			length := strings.Index(text[at:], part)
			if length < 0 {
				return out, true
			}
			bodies = append(bodies, text[at:at+length])
			at += length + len(part)
			code.WriteString(" $$ ")
		case part[0] == '"':
			code.WriteString(part)
		case part[0] == '-' || part[0] == '/':
			code.WriteString(" ")
		default:
			code.WriteString("''")
		}
	}
}

func newStatement(text string, from, to int, code string, bodies []string) statement {
	code = strings.Join(strings.Fields(code), " ")
	raw := text[from:to]
	// Comments and blank lines before the first word belong to nobody.
	for {
		trimmed := strings.TrimLeft(raw, " \t\n")
		if rest, isComment := strings.CutPrefix(trimmed, "--"); isComment {
			_, trimmed, _ = strings.Cut(rest, "\n")
		}
		if trimmed == raw {
			break
		}
		raw = trimmed
	}
	before := text[:to-len(raw)]
	return statement{line: 1 + strings.Count(before, "\n"), lines: 1 + strings.Count(raw, "\n"), code: code, raw: raw, bodies: bodies}
}

func TestStatementsAreCutWhereTheServerCutsThem(t *testing.T) {
	for _, c := range []struct {
		name, text string
		code       []string
		unclosed   bool
	}{
		{"nothing", "-- a; b\n/* c; d */ ", nil, false},
		{"two on a line", "SELECT 1; SELECT 2;", []string{"SELECT 1", "SELECT 2"}, false},
		{"a semicolon in a text", "SELECT 'a;b''c;' ;", []string{"SELECT ''"}, false},
		{"a quote behind a backslash", `SELECT E'\';' ; SELECT 1;`, []string{"SELECT ''", "SELECT 1"}, false},
		{"a semicolon in a name", `SELECT ";" ;`, []string{`SELECT ";"`}, false},
		{"a body", "DO $x$ BEGIN; $y$ ; END $x$; SELECT $1;", []string{"DO $$", "SELECT $1"}, false},
		{"a comment in a statement", "SELECT -- one; two\n 1;", []string{"SELECT 1"}, false},
		{"no semicolon at the end", "SELECT 1; SELECT 2\n", []string{"SELECT 1", "SELECT 2"}, true},
		{"a body without an end", "SELECT 1; DO $x$ BEGIN", []string{"SELECT 1"}, true},
	} {
		got, unclosed := statements(c.text)
		var code []string
		for _, s := range got {
			code = append(code, s.code)
		}
		if !slices.Equal(code, c.code) || unclosed != c.unclosed {
			t.Errorf("%s: %q, unclosed %v; want %q, %v", c.name, code, unclosed, c.code, c.unclosed)
		}
	}
	s, _ := statements("-- head\n\nSELECT 1;\n-- b\nSELECT\n $$a;b$$\n;")
	if len(s) != 2 || s[0].line != 3 || s[1].line != 5 || s[1].lines != 3 || !slices.Equal(s[1].bodies, []string{"a;b"}) {
		t.Errorf("places and bodies: %+v", s)
	}
}
