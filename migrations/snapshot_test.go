package migrations_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

// catalog tells everything about our two schemas, one object a row. The second column is the transaction that last wrote
// the object: it shows a replacement by the same text.
const catalog = `
WITH ours AS (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname IN ('connector', 'connector_queue'))
SELECT concat_ws(' | ', 'schema', n.nspname, n.nspowner::regrole, n.nspacl, obj_description(n.oid, 'pg_namespace')), n.xmin::text
FROM pg_namespace AS n WHERE n.nspname IN ('connector', 'connector_queue')
UNION ALL
SELECT concat_ws(' | ', 'relation', c.oid::regclass, c.relkind, c.relowner::regrole, c.relacl, c.relrowsecurity, c.reloptions, obj_description(c.oid, 'pg_class'),
       CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) WHEN c.relkind = 'i' THEN pg_get_indexdef(c.oid) END), CASE WHEN c.relkind IN ('v', 'r') THEN c.xmin::text END
FROM pg_class AS c WHERE c.relnamespace IN (SELECT o.oid FROM ours AS o)
UNION ALL
SELECT concat_ws(' | ', 'column', c.oid::regclass, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attacl,
       pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, a.attnum)), a.xmin::text
FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v') AND c.relnamespace IN (SELECT o.oid FROM ours AS o)
UNION ALL
SELECT concat_ws(' | ', 'function', p.oid::regprocedure, p.proowner::regrole, p.proacl, obj_description(p.oid, 'pg_proc'), pg_get_functiondef(p.oid)), p.xmin::text
FROM pg_proc AS p WHERE p.prokind IN ('f', 'p') AND p.pronamespace IN (SELECT o.oid FROM ours AS o)
UNION ALL
SELECT concat_ws(' | ', 'constraint', k.conrelid::regclass, k.conname, pg_get_constraintdef(k.oid)), k.xmin::text
FROM pg_constraint AS k WHERE k.connamespace IN (SELECT o.oid FROM ours AS o)
UNION ALL
SELECT concat_ws(' | ', 'trigger', g.tgrelid::regclass, g.tgname, pg_get_triggerdef(g.oid)), g.xmin::text
FROM pg_trigger AS g JOIN pg_class AS c ON c.oid = g.tgrelid WHERE c.relnamespace IN (SELECT o.oid FROM ours AS o)
UNION ALL
SELECT concat_ws(' | ', 'policy', y.polrelid::regclass, y.polname, y.polcmd, pg_get_expr(y.polqual, y.polrelid), pg_get_expr(y.polwithcheck, y.polrelid)), y.xmin::text
FROM pg_policy AS y
UNION ALL
SELECT concat_ws(' | ', 'label', e.enumtypid::regtype, e.enumlabel, e.enumsortorder), e.xmin::text
FROM pg_enum AS e
UNION ALL
SELECT concat_ws(' | ', 'step', m.number, m.name, m.sha256), m.xmin::text FROM connector._migration AS m
UNION ALL
SELECT concat_ws(' | ', 'repeatable', m.sha256), m.xmin::text FROM connector._repeatable AS m
UNION ALL
SELECT concat_ws(' | ', 'River', m.line, m.version), m.xmin::text FROM connector_queue.river_migration AS m
ORDER BY 1`

// snapshot tells the state of our schemas; with writers, also which transaction wrote each object.
func snapshot(tb testing.TB, conn *pgx.Conn, writers bool) []string {
	tb.Helper()
	rows, err := conn.Query(tb.Context(), catalog)
	if err != nil {
		tb.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var what string
		var writer *string
		err := row.Scan(&what, &writer)
		if writers && writer != nil {
			what += " @" + *writer
		}
		return what, err
	})
	if err != nil {
		tb.Fatal(err)
	}
	if len(lines) < 100 {
		tb.Fatalf("only %d objects: the query sees too little", len(lines))
	}
	return lines
}

// same compares two snapshots and shows the first few differences.
func same(tb testing.TB, want, got []string) {
	tb.Helper()
	const shown = 10
	var lines []string
	for _, line := range want {
		if !slices.Contains(got, line) {
			lines = append(lines, "gone: "+line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			lines = append(lines, "new: "+line)
		}
	}
	for _, line := range lines[:min(shown, len(lines))] {
		tb.Error(line)
	}
	if len(lines) > shown {
		tb.Errorf("and %d differences more", len(lines)-shown)
	}
}
