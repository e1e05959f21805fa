package migrations_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"highwater/tests/harness"
)

// findings is what plpgsql_check has to say about every function of ours that is written in PL/pgSQL: names and types inside
// bodies, which the server itself looks at only when a line is run. A trigger function is checked against a table it serves.
// What it calls extra is about style, or about statements that only exist at run time.
const findings = `
	SELECT p.oid::regprocedure || ' line ' || coalesce(x.lineno, 0) || ': ' || x.level || ': ' || x.message || coalesce(': ' || x.detail, '')
	FROM pg_proc AS p
	JOIN pg_language AS l ON l.oid = p.prolang AND l.lanname = 'plpgsql'
	CROSS JOIN LATERAL plpgsql_check_function_tb(p.oid,
		CASE WHEN p.prorettype = 'trigger'::regtype
			THEN coalesce((SELECT g.tgrelid FROM pg_trigger AS g WHERE g.tgfoid = p.oid LIMIT 1), 'connector.manifest'::regclass) ELSE 0 END,
		fatal_errors => false, security_warnings => true) AS x
	WHERE p.pronamespace = 'connector'::regnamespace AND x.level IN ('error', 'warning', 'security')`

func TestPlpgsqlCheckFindsNothing(t *testing.T) {
	conn := connect(t, harness.Database(t))
	if !one[bool](t, conn, "SELECT EXISTS (SELECT FROM pg_available_extensions AS e WHERE e.name = 'plpgsql_check')") {
		t.Skip("LEFT OUT: the extension plpgsql_check is missing, so no function body was checked")
	}
	do(t, conn, "CREATE EXTENSION plpgsql_check")
	check := func() []string {
		rows, err := conn.Query(t.Context(), findings)
		if err != nil {
			t.Fatal(err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, f := range check() {
		t.Error(f)
	}
	do(t, conn, "CREATE FUNCTION connector.wrong() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM r.no_such_column FROM connector._run AS r; END $$")
	if len(check()) == 0 {
		t.Error("a column that does not exist was not found")
	}
}
