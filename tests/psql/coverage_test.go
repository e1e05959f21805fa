package psql

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const coveragePage = "../../docs/manual-coverage.md"

// named is a test as the page names it: package, function, and the name of a case of it.
var named = regexp.MustCompile("`([a-z0-9]+(?:/[a-z0-9]+)*) ((?:Test|Fuzz)[A-Za-z0-9]+)(?:/([^`]+))?`")

// suite is what a package's test files hold: functions by name and every text that may be the name of a case.
type suite struct {
	functions map[string]bool
	texts     map[string]bool
}

// suiteOf reads the test files of a package's folder. Cases that are files bear the files' names.
func suiteOf(t *testing.T, folder string) suite {
	t.Helper()
	s := suite{functions: map[string]bool{}, texts: map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				s.functions[n.Name.Name] = n.Recv == nil
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					s.texts[text] = true
				}
			}
			return true
		})
	}
	for _, pattern := range []string{"../../sidecar/demo/manifests/*.sql", "[0-9][0-9]_*.sql"} {
		cases, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range cases {
			s.texts[filepath.Base(file)] = true
			s.texts[strings.TrimSuffix(filepath.Base(file), ".sql")] = true
		}
	}
	return s
}

// Every test that the coverage page names is in the tree, every row of its tables names at least one, and no row comes twice.
func TestTheCoveragePageNamesTestsThatExist(t *testing.T) {
	page, err := os.Open(coveragePage)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = page.Close() }()
	suites, rows := map[string]suite{}, map[string]bool{}
	lines := bufio.NewScanner(page)
	for line := 1; lines.Scan(); line++ {
		row, ok := strings.CutPrefix(lines.Text(), "| ")
		if id, _, _ := strings.Cut(row, " |"); !ok || strings.Contains(row, "| test |") {
			continue
		} else if rows[id] {
			t.Errorf("line %d: %s is there twice", line, id)
		} else {
			rows[id] = true
		}
		found := named.FindAllStringSubmatch(row, -1)
		if len(found) == 0 || len(found) != strings.Count(row, " Test")+strings.Count(row, " Fuzz") {
			t.Errorf("line %d names no test, or one that is not written as the others are: %.80s", line, row)
		}
		for _, n := range found {
			s, ok := suites[n[1]]
			if !ok {
				s = suiteOf(t, filepath.Join("../..", n[1]))
				suites[n[1]] = s
			}
			if !s.functions[n[2]] {
				t.Errorf("line %d: %s has no %s", line, n[1], n[2])
			} else if n[3] != "" && !s.texts[n[3]] {
				t.Errorf("line %d: %s has no case %q", line, n[1], n[3])
			}
		}
	}
	const fewest = 150 // rows; a page that lost its tables would prove nothing
	if err := lines.Err(); err != nil || len(rows) < fewest {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}
