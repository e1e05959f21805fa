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
	rows := query(t, "SELECT format('`%s`', key), CASE WHEN required THEN 'yes' ELSE '' END, type, CASE WHEN default_value IS NULL THEN '' ELSE format('`%s`', default_value) END, meaning FROM connector.describe()")
	page := "# Keys of a manifest's spec\n\nWhat `SELECT * FROM connector.describe();` says, from the table that the validator reads. A key with a dot is nested: " +
		"`auth.kind`\nis `{\"auth\": {\"kind\": …}}`. A key that nothing reads is named in a warning. This page is generated.\n\n" +
		table([]string{"key", "required", "type", "default", "meaning"}, rows)
	compare(t, "../../docs/manifest.md", page)
}

func TestGeneratedReference(t *testing.T) {
	// As one would type a call: without the results of procedures and the casts of defaults.
	functions := query(t, "SELECT format('`%s(%s)`', p.proname, a.given), CASE p.prokind WHEN 'p' THEN 'a row' ELSE format('`%s`', r.result) END, "+`
			coalesce(obj_description(p.oid, 'pg_proc'), '')
		FROM pg_proc AS p
		CROSS JOIN LATERAL (SELECT regexp_replace(regexp_replace(regexp_replace(regexp_replace(pg_get_function_arguments(p.oid),
			',? ?INOUT .*', ''), '^IN ', ''), '::[a-z ]+', '', 'g'), 'timestamp with time zone', 'timestamptz', 'g')) AS a (given)
		CROSS JOIN LATERAL (SELECT replace(pg_get_function_result(p.oid), 'timestamp with time zone', 'timestamptz')) AS r (result)
		WHERE p.pronamespace = 'connector'::regnamespace AND p.proname NOT LIKE '\_%' AND p.prorettype <> 'trigger'::regtype
			OR p.oid = 'connector.run_on_change()'::regprocedure
		ORDER BY p.proname COLLATE "C", 1`)
	page := "# Functions, procedures, tables and views\n\nEverything is in the schema `connector`. Arguments may be given by name: `name => value`. Procedures are called with `CALL`, alone,\n" +
		"outside a transaction. The words are the COMMENTs that `\\df+ connector.*` and `\\d+ connector.runs` show. This page is generated.\n\n## Functions and procedures\n\n" +
		table([]string{"call", "returns", "what it does"}, functions) + "\n## Tables and views\n" + relations(t)
	compare(t, "../../docs/reference.md", page)
}

// relations writes each table and view that operators may name, with what its columns say of themselves.
func relations(t *testing.T) string {
	t.Helper()
	rows := query(t, `
		SELECT c.relname, coalesce(obj_description(c.oid, 'pg_class'), ''), a.attname, replace(format_type(a.atttypid, a.atttypmod), 'timestamp with time zone', 'timestamptz'),
			coalesce(col_description(c.oid, a.attnum), '')
		FROM pg_class AS c
		JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = 'connector'::regnamespace AND c.relkind IN ('v', 'r') AND c.relname NOT LIKE '\_%' AND c.relname NOT LIKE 't\_%'
		ORDER BY c.relname COLLATE "C", a.attnum`)
	var b strings.Builder
	for i, r := range rows {
		if i == 0 || rows[i-1][0] != r[0] {
			fmt.Fprintf(&b, "\n### `%s`\n\n%s\n\n| column | type | meaning |\n|---|---|---|\n", r[0], r[1])
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r[2], r[3], cell(r[4]))
	}
	return b.String()
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
			b.WriteString("| " + cell(c) + " ")
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

// cell makes a text fit a cell of a Markdown table.
func cell(text string) string {
	if strings.HasPrefix(text, "`") {
		return strings.ReplaceAll(text, "|", "\\|")
	}
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", ">", "&gt;").Replace(text)
}
