package migrations_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"highwater/sql/api"
)

const (
	fileLinesMax     = 170 // of a file in sql/api
	functionLinesMax = 80  // of a function, from CREATE to its semicolon
)

// repeatableFile is one file of sql/api, cut into statements.
type repeatableFile struct {
	name, text string
	statements []statement
}

func repeatableFiles(tb testing.TB) (out []repeatableFile) {
	tb.Helper()
	names, err := fs.Glob(api.FS, "*.sql")
	if err != nil || len(names) == 0 {
		tb.Fatalf("no files: %v", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(api.FS, name)
		if err != nil {
			tb.Fatal(err)
		}
		parts, unclosed := statements(string(text))
		if unclosed {
			tb.Errorf("%s: the last statement is not closed", name)
		}
		out = append(out, repeatableFile{name: name, text: string(text), statements: parts})
	}
	return out
}

// A file that ORDER forgets is never applied, and no test of its functions may notice while an older database has them.
func TestOrderListsExactlyTheFiles(t *testing.T) {
	order, err := fs.ReadFile(api.FS, "ORDER")
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Fields(string(order))
	slices.Sort(listed)
	var names []string
	for _, f := range repeatableFiles(t) {
		names = append(names, f.name)
	}
	if !slices.Equal(listed, names) {
		t.Errorf("ORDER lists %v, sql/api has %v", listed, names)
	}
}

// repeatable is everything that may be done over and over without losing anything.
var repeatable = regexp.MustCompile(`^(CREATE OR REPLACE (FUNCTION|PROCEDURE|VIEW) connector\.|CREATE OR REPLACE TRIGGER \w+ .* ON connector\.|COMMENT ON |GRANT |REVOKE )`)

func TestFilesHoldOnlyWhatMayBeRepeated(t *testing.T) {
	for _, f := range repeatableFiles(t) {
		for _, s := range f.statements {
			if !repeatable.MatchString(s.code) {
				t.Errorf("%s:%d: not repeatable, or not in schema connector: %.80s", f.name, s.line, s.code)
			}
		}
	}
}

func TestWhatIsNotRepeatableIsSeen(t *testing.T) {
	for text, want := range map[string]bool{
		"CREATE OR REPLACE VIEW connector.v AS SELECT 1;":                                 true,
		"COMMENT ON VIEW connector.v IS 'v; DROP VIEW';":                                  true,
		"CREATE OR REPLACE TRIGGER a AFTER INSERT ON connector.t EXECUTE FUNCTION b();":   true,
		"CREATE FUNCTION connector.f() RETURNS void LANGUAGE sql AS $$ $$;":               false,
		"CREATE OR REPLACE FUNCTION f() RETURNS void LANGUAGE sql AS $$ $$;":              false,
		"CREATE OR REPLACE TRIGGER a AFTER INSERT ON public.t EXECUTE FUNCTION b();":      false,
		"COMMENT ON VIEW connector.v IS 'v'; DROP VIEW connector.v;":                      false,
		"GRANT SELECT ON connector.v TO highwater_reader; /* */ ALTER TABLE connector.t;": false,
		"DO $$ BEGIN END $$;": false,
		"INSERT INTO connector.scope_roles VALUES ('a', 'b');": false,
	} {
		parts, _ := statements(text)
		if got := !slices.ContainsFunc(parts, func(s statement) bool { return !repeatable.MatchString(s.code) }); got != want {
			t.Errorf("%s: passes %v, want %v", text, got, want)
		}
	}
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	for _, f := range repeatableFiles(t) {
		if n := strings.Count(f.text, "\n"); n > fileLinesMax {
			t.Errorf("%s has %d lines, at most %d", f.name, n, fileLinesMax)
		}
		for _, s := range f.statements {
			if len(s.bodies) > 0 && s.lines > functionLinesMax {
				t.Errorf("%s:%d: %d lines, at most %d: %.80s", f.name, s.line, s.lines, functionLinesMax, s.code)
			}
		}
	}
}

var created = regexp.MustCompile(`^CREATE OR REPLACE (?:FUNCTION|PROCEDURE) (connector\.\w+)`)

// The server keeps a body's comments and \sf shows them, so that is where a function says what it does.
func TestFilesAndBodiesBeginWithWhatTheyAreFor(t *testing.T) {
	for _, f := range repeatableFiles(t) {
		if !strings.HasPrefix(f.text, "-- ") {
			t.Errorf("%s does not begin with a comment", f.name)
		}
		for _, s := range f.statements {
			name := created.FindStringSubmatch(s.code)
			if name == nil {
				continue
			}
			if len(s.bodies) != 1 || !strings.HasPrefix(strings.TrimSpace(s.bodies[0]), fmt.Sprintf("-- %s(", name[1])) {
				t.Errorf("%s:%d: the body does not begin with %q", f.name, s.line, "-- "+name[1]+"(…)")
			}
		}
	}
}

var (
	raise      = regexp.MustCompile(`\bRAISE\b(?: (\w+|''))?`)
	raisesNone = []string{"", "NOTICE", "WARNING"} // a bare RAISE passes on an error that has all it needs
)

// raiseFault says what a statement of a body that raises an error leaves out; empty for every other statement.
func raiseFault(code string) string {
	found := raise.FindStringSubmatch(code)
	switch {
	case found == nil || slices.Contains(raisesNone, found[1]):
		return ""
	case found[1] != "EXCEPTION":
		return "RAISE without its level"
	case !strings.Contains(code, "ERRCODE"):
		return "no ERRCODE"
	case !strings.Contains(code, "HINT"):
		return "no HINT"
	}
	return ""
}

func TestEveryErrorHasACodeAndAHint(t *testing.T) {
	errors := 0
	for _, f := range repeatableFiles(t) {
		for _, s := range f.statements {
			for _, body := range s.bodies {
				inner, _ := statements(body)
				for _, i := range inner {
					if raise.MatchString(i.code) {
						errors++
					}
					if fault := raiseFault(i.code); fault != "" {
						t.Errorf("%s:%d: %s: %s", f.name, s.line+i.line, fault, i.code)
					}
				}
			}
		}
	}
	if errors < 20 {
		t.Errorf("only %d RAISEs were seen", errors)
	}
	for code, want := range map[string]string{
		"RAISE":                                 "",
		"IF a THEN RAISE '' ":                   "RAISE without its level",
		"RAISE no_data_found":                   "RAISE without its level",
		"RAISE WARNING ''":                      "",
		"RAISE EXCEPTION ''":                    "no ERRCODE",
		"RAISE EXCEPTION '' USING ERRCODE = ''": "no HINT",
		"RAISE EXCEPTION '' USING ERRCODE = '', HINT = ''": "",
	} {
		if got := raiseFault(code); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

var (
	execute = regexp.MustCompile(`\bEXECUTE\b`)
	// quoting is how a statement may be put together: a text of our own, or format of one.
	quoting  = regexp.MustCompile(`\bEXECUTE (format\()?\s*(''|\$\$)`)
	unquoted = regexp.MustCompile(`%([0-9]+\$)?-?[0-9]*s`)
)

// executeFault says what is wrong with a statement of a body that executes another; empty where nothing is.
func executeFault(s statement) string {
	switch {
	case !execute.MatchString(s.code):
		return ""
	case !quoting.MatchString(s.code) || strings.Contains(s.code, "||"):
		return "not put together by format()"
	case unquoted.MatchString(strings.ReplaceAll(s.raw, "%%", "")):
		return "%s, which quotes nothing"
	}
	return ""
}

// Whatever is put together to be executed names its parts by %I and %L.
func TestDynamicSQLIsQuoted(t *testing.T) {
	seen := 0
	for _, f := range repeatableFiles(t) {
		for _, s := range f.statements {
			for _, body := range s.bodies {
				inner, _ := statements(body)
				for _, i := range inner {
					if execute.MatchString(i.code) {
						seen++
					}
					if fault := executeFault(i); fault != "" {
						t.Errorf("%s:%d: %s: %s", f.name, s.line+i.line, fault, i.raw)
					}
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no EXECUTE was seen")
	}
	for text, good := range map[string]bool{
		"EXECUTE 'DROP TABLE connector.a'":                    true,
		"EXECUTE format('DROP TABLE connector.%I', v)":        true,
		"EXECUTE format($x$SELECT format('%%s', %1$L)$x$, v)": true,
		"EXECUTE format('DROP TABLE connector.%s', v)":        false,
		"EXECUTE format('DROP TABLE connector.%1$s', v)":      false,
		"EXECUTE 'DROP TABLE ' || v":                          false,
		"EXECUTE v":                                           false,
	} {
		parts, _ := statements(text)
		if got := executeFault(parts[0]) == ""; got != good {
			t.Errorf("%s: good %v, want %v", text, got, good)
		}
	}
}
