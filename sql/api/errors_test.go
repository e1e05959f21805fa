package api_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"highwater/sql/api"
)

// codes is the closed list of spec 1.3.
const codes = `ok expired_before_first_read skipped_active skipped_window joined cancelled deleted offsets_expired log_truncated topic_recreated topic_missing
	cluster_changed target_lost not_proved poison_budget stalled fenced broker_unreachable broker_lost auth_failed tls_failed not_authorized secret_missing
	reserved_column schema_changed strict_schema table_missing table_not_ours rows_vanished ddl_lock_timeout batch_too_large database_error interrupted internal`

// documented gives the first cells of the tables of docs/errors.md that match.
func documented(t *testing.T, cell string) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	return found(cell, string(page))
}

// found gives the sorted, distinct first groups of an expression in a text.
func found(expression, text string) []string {
	set := map[string]bool{}
	for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		set[m[1]] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// sqlText is all of sql/api without comments.
func sqlText(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	names, err := fs.Glob(api.FS, "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(api.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(regexp.MustCompile(`(?m)^\s*--.*$`).ReplaceAllString(string(text), ""))
	}
	return all.String()
}

func TestEverySQLSTATEIsDocumented(t *testing.T) {
	raised, listed := found(`ERRCODE\s*=\s*'(\w{5})'`, sqlText(t)), documented(t, "(?m)^\\| `([0-9A-Z]{5})` \\|")
	if !slices.Equal(raised, listed) {
		t.Errorf("raised  %v\nlisted  %v", raised, listed)
	}
}

// Every RAISE that stops a caller says by its SQLSTATE what it is and by its hint what to do.
func TestEveryRaiseHasACodeAndAHint(t *testing.T) {
	for _, raise := range regexp.MustCompile(`(?s)RAISE EXCEPTION .*?;\n`).FindAllString(sqlText(t), -1) {
		for _, part := range []string{"ERRCODE", "HINT"} {
			if !strings.Contains(raise, part) {
				t.Errorf("no %s in %s", part, raise)
			}
		}
	}
}

func TestTheCodesOfRunsAreDocumented(t *testing.T) {
	want := strings.Fields(codes)
	slices.Sort(want)
	if got := documented(t, "(?m)^\\| `([a-z_]+)` \\|"); !slices.Equal(got, want) {
		t.Errorf("docs/errors.md lists\n%v\nthe closed list is\n%v", got, want)
	}
}

// What the code can write into connector.runs.code is on the list.
func TestNoCodeIsOutsideTheList(t *testing.T) {
	known := strings.Fields(codes)
	used := found(`'(?:Cancelled|Partial|Failed|Completed)',\s*'([a-z_]+)'`, sqlText(t))
	used = append(used, found(`code = '([a-z_]+)'`, sqlText(t))...)
	for _, room := range []string{"../../queue", "../../reader"} {
		err := filepath.WalkDir(room, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			used = append(used, found(`(?:\bCode:|\bcode[A-Z]\w*\s*=|\bfailed\(|\bpartial\()\s*"([a-z_]+)"`, string(text))...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(used) < 20 {
		t.Errorf("only %d codes were found: the expressions no longer match the code", len(used))
	}
	for _, code := range used {
		if !slices.Contains(known, code) {
			t.Errorf("%s is not on the list", code)
		}
	}
}
