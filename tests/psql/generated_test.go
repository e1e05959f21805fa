package psql

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"highwater/sidecar/config"
	"highwater/tests/harness"
)

// The reference pages are made from the code: settings from the flags, keys from the validator's own table, functions and
// views from their COMMENTs. A page that is not current fails here; HIGHWATER_GOLDEN=write rewrites it.
func TestGeneratedSettings(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Settings of `highwater serve`\n\nFlags come first, then the environment. Everything else is SQL. This page is generated.\n\n| flag | variable | unit | default | limit | meaning |\n|---|---|---|---|---|---|\n")
	for _, s := range config.Settings() {
		fmt.Fprintf(&b, "| `-%s` | `%s` | %s | %s | %s | %s |\n", s.Flag, s.Env, s.Unit, s.Default, s.Limit, s.Meaning)
	}
	b.WriteString("\n`-no-migrate` starts without applying migrations. Names that end in `_env` in a manifest are looked up in the environment of this process.\n\n")
	b.WriteString("| exit code | means |\n|---|---|\n| 0 | stopped as asked |\n| 1 | usage |\n| 2 | configuration |\n| 3 | database |\n| 4 | migration |\n")
	compare(t, "../../docs/settings.md", b.String())
}

func TestGeneratedManifestKeys(t *testing.T) {
	rows := query(t, `SELECT '`' || key || '`', CASE WHEN required THEN 'yes' ELSE '' END, type, coalesce('`' || default_value || '`', ''), replace(replace(meaning, '<', '&lt;'), '>', '&gt;') FROM connector.describe()`)
	page := "# Keys of a manifest's spec\n\nWhat `SELECT * FROM connector.describe();` says: the same table that validates. Keys with a dot are nested: `auth.kind` is `{\"auth\": {\"kind\": …}}`.\nThis page is generated.\n\n" +
		table([]string{"key", "required", "type", "default", "meaning"}, rows)
	compare(t, "../../docs/manifest.md", page)
}

func TestGeneratedReference(t *testing.T) {
	functions := query(t, `
		SELECT format('`%s(%s)`', p.proname, a.given), CASE p.prokind WHEN 'p' THEN 'procedure: CALL' ELSE regexp_replace(pg_get_function_result(p.oid), 'timestamp with time zone', 'timestamptz', 'g') END,
			coalesce(obj_description(p.oid, 'pg_proc'), '')
		FROM pg_proc AS p
		CROSS JOIN LATERAL ( -- as one would type it: no results of procedures, no casts of defaults
			SELECT regexp_replace(regexp_replace(regexp_replace(regexp_replace(pg_get_function_arguments(p.oid),
				',? ?INOUT .*', ''), '^IN ', ''), '::[a-z ]+', '', 'g'), 'timestamp with time zone', 'timestamptz', 'g')) AS a (given)
		WHERE p.pronamespace = 'connector'::regnamespace AND p.proname NOT LIKE '\_%' AND p.prorettype <> 'trigger'::regtype
			OR p.oid = 'connector.run_on_change()'::regprocedure
		ORDER BY p.proname COLLATE "C", 1`)
	views := query(t, `
		SELECT '`' || c.relname || '`', (SELECT string_agg(a.attname, ', ' ORDER BY a.attnum) FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
			coalesce(obj_description(c.oid, 'pg_class'), '')
		FROM pg_class AS c
		WHERE c.relnamespace = 'connector'::regnamespace AND c.relkind IN ('v', 'r') AND c.relname NOT LIKE '\_%' AND c.relname NOT LIKE 't\_%'
		ORDER BY c.relname COLLATE "C"`)
	page := "# Functions, procedures and views\n\nAll of them are in the schema `connector`; arguments may be given by name: `name => value`. The words are the COMMENTs that `\\df+ connector.*` and `\\dv+ connector.*` show. This page is generated.\n\n## Functions and procedures\n\n" +
		table([]string{"call", "returns", "what it does"}, functions) + "\n## Tables and views\n\n" + table([]string{"name", "columns", "what it shows"}, views)
	compare(t, "../../docs/reference.md", page)
}

func query(t *testing.T, sql string) [][]string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), harness.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) ([]string, error) {
		line := make([]string, len(r.FieldDescriptions()))
		into := make([]any, len(line))
		for i := range line {
			into[i] = &line[i]
		}
		return line, r.Scan(into...)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// table writes rows as a Markdown table.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + strings.NewReplacer("|", "\\|", "\n", " ").Replace(c) + " ")
		}
		b.WriteString("|\n")
	}
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	return b.String()
}
