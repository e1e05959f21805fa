package stmt_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"highwater/sql/stmt"
	"highwater/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// sidecar opens a session as the sidecar's role has it: a member of the owner, and a path that finds nothing of ours, so that
// a name without its schema fails here and not where somebody has set another path.
func sidecar(tb testing.TB) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), harness.Database(tb))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(tb.Context(), "SET ROLE highwater_owner; SET search_path = pg_catalog"); err != nil {
		tb.Fatal(err)
	}
	return conn
}

func TestEveryStatementPreparesOnAMigratedDatabase(t *testing.T) {
	conn := sidecar(t)
	for name, text := range stmt.All() {
		if _, err := conn.Prepare(t.Context(), name, text); err != nil {
			t.Errorf("%s.sql: %v", name, err)
		}
	}
}

// A statement that the server can plan for its role breaks no grant either. EXPLAIN executes nothing; its parameters are
// null, which every statement must take as a value like any other.
func TestTheOwnerMayRunEveryStatement(t *testing.T) {
	conn := sidecar(t)
	for name, text := range stmt.All() {
		t.Run(name, func(t *testing.T) {
			described, err := conn.Prepare(t.Context(), name, text)
			if err != nil {
				t.Fatal(err)
			}
			call := "EXPLAIN EXECUTE " + pgx.Identifier{name}.Sanitize()
			if n := len(described.ParamOIDs); n > 0 {
				call += "(" + strings.TrimSuffix(strings.Repeat("NULL, ", n), ", ") + ")"
			}
			if _, err := conn.Exec(t.Context(), call, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Errorf("%s: %v", call, err)
			}
		})
	}
}

// A file that no variable holds is never prepared by the tests above, nor sent by anybody.
func TestEveryFileIsAmongTheStatements(t *testing.T) {
	names, err := filepath.Glob("*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("no files: %v", err)
	}
	all := stmt.All()
	for _, file := range names {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(file, ".sql")
		if all[name] != string(text) {
			t.Errorf("%s is not what All gives as %q", file, name)
		}
		if !strings.HasPrefix(string(text), "-- ") {
			t.Errorf("%s does not begin with a line that says what it is for", file)
		}
		delete(all, name)
	}
	for name := range all {
		t.Errorf("All gives %q, which has no file", name)
	}
}

// The extended protocol takes one statement at a time, and a semicolon at the end is a sign of a pasted script.
func TestEveryFileHoldsOneStatement(t *testing.T) {
	for name, text := range stmt.All() {
		var bare strings.Builder
		for line := range strings.SplitSeq(text, "\n") {
			before, _, _ := strings.Cut(line, "--")
			bare.WriteString(before + "\n")
		}
		if strings.Contains(bare.String(), ";") {
			t.Errorf("%s.sql has a semicolon outside its comments", name)
		}
	}
}
