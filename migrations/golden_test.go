package migrations_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"highwater/migrations"
	"highwater/sidecar/demo/postgres"
	"highwater/sql/api"
	"highwater/tests/harness"
)

// schemaFile holds what the numbered steps and River's steps make. Whoever changes it sees what every database gets.
const schemaFile = "testdata/schema.txt"

// tables tells, one thing a line, what cannot be replaced: tables, columns, constraints, indexes, policies and enums. Written
// so that every supported PostgreSQL says the same; from 18 on NOT NULL is a constraint too.
const tables = `
WITH t AS (
	SELECT c.oid, c.oid::regclass::text AS name, c.relkind, c.reloptions, c.relrowsecurity, c.relforcerowsecurity, c.relpersistence
	FROM pg_class AS c WHERE c.relnamespace IN ('connector'::regnamespace, 'connector_queue'::regnamespace) AND c.relkind IN ('r', 'p', 'S')
)
SELECT concat_ws(' ', CASE t.relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, t.name,
	CASE WHEN t.relpersistence <> 'p' THEN 'persistence ' || t.relpersistence::text END, t.reloptions::text,
	CASE WHEN t.relrowsecurity THEN 'row security' END, CASE WHEN t.relforcerowsecurity THEN 'also for the owner' END) AS line
FROM t
UNION ALL
SELECT concat_ws(' ', 'column', t.name || '.' || a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'not null' END,
	'default ' || pg_get_expr(d.adbin, d.adrelid), CASE a.attidentity WHEN 'a' THEN 'identity always' WHEN 'd' THEN 'identity by default' END,
	CASE WHEN a.attgenerated <> '' THEN 'generated' END)
FROM t JOIN pg_attribute AS a ON a.attrelid = t.oid LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE t.relkind <> 'S' AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT concat_ws(' ', 'constraint', t.name, k.conname, pg_get_constraintdef(k.oid), CASE WHEN NOT k.convalidated THEN 'not valid' END)
FROM t JOIN pg_constraint AS k ON k.conrelid = t.oid WHERE k.contype IN ('c', 'f', 'p', 'u', 'x')
UNION ALL
SELECT 'index ' || pg_get_indexdef(x.indexrelid) FROM t JOIN pg_index AS x ON x.indrelid = t.oid
UNION ALL
SELECT concat_ws(' ', 'policy', t.name, y.polname, y.polcmd, y.polroles, 'using', pg_get_expr(y.polqual, y.polrelid), 'check', pg_get_expr(y.polwithcheck, y.polrelid))
FROM t JOIN pg_policy AS y ON y.polrelid = t.oid
UNION ALL
SELECT concat_ws(' ', 'enum', e.enumtypid::regtype, string_agg(e.enumlabel, ', ' ORDER BY e.enumsortorder))
FROM pg_enum AS e JOIN pg_type AS y ON y.oid = e.enumtypid WHERE y.typnamespace IN ('connector'::regnamespace, 'connector_queue'::regnamespace)
GROUP BY e.enumtypid
ORDER BY 1`

// A released file never changes, and this test shows the effect of one that is not released yet: HIGHWATER_GOLDEN=write rewrites
// the golden file, whose difference is then part of the review.
func TestTheTablesAreAsTheGoldenFileSays(t *testing.T) {
	onEach(t, func(t *testing.T, server *postgres.Server) {
		apply(t, server.URL("postgres"))
		rows, err := pathless(t, server.URL("postgres")).Query(t.Context(), tables)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got) // by bytes, whatever the server's collation
		if os.Getenv("HIGHWATER_GOLDEN") == "write" {
			if err := os.WriteFile(schemaFile, []byte(strings.Join(got, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(schemaFile)
		if err != nil {
			t.Fatal(err)
		}
		same(t, strings.Split(strings.TrimSpace(string(want)), "\n"), got)
		if t.Failed() {
			t.Log("if the change is meant: HIGHWATER_GOLDEN=write go test ./migrations, and review the difference")
		}
	})
}

// pathless is a session that names everything of ours with its schema.
func pathless(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn := connect(t, url)
	do(t, conn, "SET search_path = pg_catalog")
	return conn
}

// Whatever is in the repeatable files can be applied over itself: that is what a new version of any one of them does.
func TestTheRepeatableFilesCanBeRepeated(t *testing.T) {
	url := harness.Database(t)
	conn := connect(t, url)
	before := withoutDigest(snapshot(t, conn, false))
	touched := fstest.MapFS{"ORDER": {Data: mustRead(t, "ORDER")}}
	for _, f := range repeatableFiles(t) {
		touched[f.name] = &fstest.MapFile{Data: []byte(f.text + "\n-- touched\n")}
	}
	if err := migrations.ApplyFrom(t.Context(), config(t, url), migrations.Options{}, migrations.Files, touched); err != nil {
		t.Fatal(err)
	}
	same(t, before, withoutDigest(snapshot(t, conn, false)))
	refused(t, migrations.Check(t.Context(), config(t, url)), "functions and views")
	apply(t, url)
	same(t, before, withoutDigest(snapshot(t, conn, false)))
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	text, err := api.FS.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func withoutDigest(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.HasPrefix(l, "repeatable | ") })
}
