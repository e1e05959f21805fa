package migrations_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"highwater/tests/harness"
)

// rule is what must hold of a migrated database: the query gives one text for each object that breaks it.
type rule struct{ name, query string }

// rules looks at privileges and row security. highwater_owner is left out as a grantee: it owns everything.
var rules = []rule{
	{"every function of the owner's power has a safe path", `
		SELECT p.oid::regprocedure::text FROM pg_proc AS p
		WHERE p.pronamespace IN ('connector'::regnamespace, 'connector_queue'::regnamespace) AND p.prosecdef
			AND p.proconfig IS DISTINCT FROM '{"search_path=pg_catalog, pg_temp"}'`},
	// A procedure that commits may have no SET clause.
	{"every function has a safe path", `
		SELECT p.oid::regprocedure::text FROM pg_proc AS p
		WHERE p.pronamespace = 'connector'::regnamespace AND p.prokind = 'f' AND p.proconfig IS DISTINCT FROM '{"search_path=pg_catalog, pg_temp"}'`},
	{"no procedure has the owner's power", `
		SELECT p.oid::regprocedure::text FROM pg_proc AS p WHERE p.pronamespace = 'connector'::regnamespace AND p.prokind = 'p' AND p.prosecdef`},
	{"PUBLIC may call only what row policies call", `
		SELECT p.oid::regprocedure::text
		FROM pg_proc AS p CROSS JOIN aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS x
		WHERE p.pronamespace = 'connector'::regnamespace AND x.grantee = 0 AND p.proname <> 'current_tenant'`},
	{"private functions are the owner's, but for those that public ones call with their caller's rights", `
		SELECT p.oid::regprocedure::text || ' by ' || x.grantee::regrole
		FROM pg_proc AS p CROSS JOIN aclexplode(p.proacl) AS x
		WHERE p.pronamespace = 'connector'::regnamespace AND p.proname LIKE '\_%' AND x.grantee <> p.proowner
			AND p.proname NOT IN ('_refuse', '_raise_not_ended')`},
	{"functions are granted to our two groups, without the right to pass them on", `
		SELECT p.oid::regprocedure::text || ' to ' || x.grantee
		FROM pg_proc AS p CROSS JOIN aclexplode(p.proacl) AS x
		WHERE p.pronamespace = 'connector'::regnamespace AND x.grantee NOT IN (p.proowner, 0)
			AND (x.is_grantable OR pg_get_userbyid(x.grantee) NOT IN ('highwater_operator', 'highwater_reader'))`},
	{"a reader changes nothing", `
		SELECT c.oid::regclass::text || ' ' || x.privilege_type
		FROM pg_class AS c CROSS JOIN aclexplode(c.relacl) AS x
		WHERE c.relnamespace = 'connector'::regnamespace AND pg_get_userbyid(x.grantee) = 'highwater_reader' AND x.privilege_type <> 'SELECT'`},
	{"an operator reads, and writes the manifest and the roles of scopes only", `
		SELECT c.oid::regclass::text || ' ' || x.privilege_type
		FROM pg_class AS c CROSS JOIN aclexplode(c.relacl) AS x
		WHERE c.relnamespace = 'connector'::regnamespace AND pg_get_userbyid(x.grantee) = 'highwater_operator' AND x.privilege_type <> 'SELECT'
			AND NOT (c.relname IN ('manifest', 'scope_roles') AND x.privilege_type IN ('INSERT', 'UPDATE', 'DELETE'))`},
	{"nobody else has a right on a relation, and nobody may pass one on", `
		SELECT c.oid::regclass::text || ' ' || x.privilege_type || ' to ' || x.grantee
		FROM pg_class AS c CROSS JOIN aclexplode(c.relacl) AS x
		WHERE c.relnamespace IN ('connector'::regnamespace, 'connector_queue'::regnamespace) AND x.grantee <> c.relowner
			AND (x.is_grantable OR x.grantee = 0 OR c.relnamespace = 'connector_queue'::regnamespace
				OR pg_get_userbyid(x.grantee) NOT IN ('highwater_operator', 'highwater_reader'))`},
	{"no column is granted by itself, past the rules for its table", `
		SELECT a.attrelid::regclass::text || '.' || a.attname
		FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
		WHERE c.relnamespace IN ('connector'::regnamespace, 'connector_queue'::regnamespace) AND a.attacl IS NOT NULL`},
	{"only the owner makes things in our schemas or looks into the queue's", `
		SELECT n.nspname || ' ' || x.privilege_type || ' to ' || x.grantee
		FROM pg_namespace AS n CROSS JOIN aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) AS x
		WHERE n.nspname IN ('connector', 'connector_queue') AND x.grantee <> n.nspowner
			AND NOT (n.nspname = 'connector' AND x.privilege_type = 'USAGE' AND NOT x.is_grantable
				AND pg_get_userbyid(x.grantee) IN ('highwater_operator', 'highwater_reader'))`},
	{"what the owner makes is granted to nobody by default", `
		SELECT d.defaclobjtype::text || ' ' || d.defaclacl::text FROM pg_default_acl AS d WHERE d.defaclrole = 'highwater_owner'::regrole`},
	{"every view runs with its caller's rights", `
		SELECT c.oid::regclass::text FROM pg_class AS c
		WHERE c.relnamespace = 'connector'::regnamespace AND c.relkind = 'v' AND NOT coalesce('security_invoker=on' = ANY (c.reloptions), false)`},
	{"no view keeps rows of its own, past row security", `
		SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relnamespace = 'connector'::regnamespace AND c.relkind IN ('m', 'f')`},
	// The sidecars belong to the server and to no tenant.
	{"every table that is granted has row security", `
		SELECT DISTINCT c.oid::regclass::text
		FROM pg_class AS c CROSS JOIN aclexplode(c.relacl) AS x
		WHERE c.relnamespace = 'connector'::regnamespace AND c.relkind IN ('r', 'p') AND x.grantee <> c.relowner
			AND NOT c.relrowsecurity AND c.relname <> '_sidecar'`},
	{"every table of tenants has row security", `
		SELECT c.oid::regclass::text
		FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
		WHERE c.relnamespace = 'connector'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relrowsecurity AND c.relname <> 'tenant_roles'`},
	// As a scalar subquery the function runs once a query; by itself it would run once a row.
	{"row security is one policy for everybody, by the tenant, asked once a query", `
		SELECT c.oid::regclass::text
		FROM pg_class AS c LEFT JOIN pg_policy AS y ON y.polrelid = c.oid
		WHERE c.relnamespace = 'connector'::regnamespace AND c.relrowsecurity
		GROUP BY c.oid
		HAVING count(y.oid) <> 1 OR NOT bool_and(y.polcmd = '*' AND y.polroles = '{0}'
			AND pg_get_expr(y.polqual, y.polrelid) = '(tenant_id = ( SELECT connector.current_tenant() AS current_tenant))'
			AND coalesce(pg_get_expr(y.polwithcheck, y.polrelid), pg_get_expr(y.polqual, y.polrelid)) = pg_get_expr(y.polqual, y.polrelid))`},
	{"our roles log nobody in and have no power of their own", `
		SELECT r.rolname::text FROM pg_roles AS r
		WHERE r.rolname IN ('highwater_owner', 'highwater_operator', 'highwater_reader')
			AND (r.rolcanlogin OR r.rolsuper OR r.rolbypassrls OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication)`},
	{"our roles are members of nothing", `
		SELECT m.member::regrole || ' of ' || m.roleid::regrole FROM pg_auth_members AS m
		WHERE m.member IN ('highwater_owner'::regrole, 'highwater_operator'::regrole, 'highwater_reader'::regrole)`},
}

// meanings wants a COMMENT on whatever an operator sees: \dn+ \d+ \df+ \dv+ and \du+ must explain the product.
var meanings = []rule{
	{"schemas", `
		SELECT n.nspname::text FROM pg_namespace AS n WHERE n.nspname = 'connector' AND obj_description(n.oid, 'pg_namespace') IS NULL`},
	{"tables and views", `
		SELECT c.relname::text FROM pg_class AS c
		WHERE c.relnamespace = 'connector'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND obj_description(c.oid, 'pg_class') IS NULL`},
	{"columns that are not private", `
		SELECT c.relname || '.' || a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = 'connector'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND c.relname NOT LIKE '\_%'
			AND col_description(c.oid, a.attnum) IS NULL`},
	{"functions", `
		SELECT p.oid::regprocedure::text FROM pg_proc AS p
		WHERE p.pronamespace = 'connector'::regnamespace AND obj_description(p.oid, 'pg_proc') IS NULL`},
	{"private functions are called so", `
		SELECT p.oid::regprocedure::text FROM pg_proc AS p
		WHERE p.pronamespace = 'connector'::regnamespace AND p.proname NOT LIKE '\_%' AND obj_description(p.oid, 'pg_proc') LIKE 'Internal:%'`},
	{"triggers", `
		SELECT g.tgname::text FROM pg_trigger AS g JOIN pg_class AS c ON c.oid = g.tgrelid
		WHERE c.relnamespace = 'connector'::regnamespace AND NOT g.tgisinternal AND obj_description(g.oid, 'pg_trigger') IS NULL`},
	{"types", `
		SELECT y.typname::text FROM pg_type AS y
		WHERE y.typnamespace = 'connector'::regnamespace AND y.typtype IN ('e', 'd') AND obj_description(y.oid, 'pg_type') IS NULL`},
	{"roles", `
		SELECT w.name FROM unnest('{highwater_owner,highwater_operator,highwater_reader}'::text[]) AS w (name)
		WHERE shobj_description(to_regrole(w.name), 'pg_authid') IS NULL`},
}

func (r rule) check(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, broken := range r.broken(t, conn) {
		t.Errorf("%s: not so for %s", r.name, broken)
	}
}

func (r rule) broken(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), r.query)
	if err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	broken, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	return broken
}

func TestPrivilegesAndRowSecurity(t *testing.T) {
	conn := connect(t, harness.Database(t))
	for _, r := range rules {
		r.check(t, conn)
	}
}

func TestEverythingThatAnOperatorSeesHasAComment(t *testing.T) {
	conn := connect(t, harness.Database(t))
	for _, r := range meanings {
		r.check(t, conn)
	}
}

// The rules are queries, and a query that finds nothing may be wrong itself: each must see what breaks it.
func TestEveryRuleSeesWhatBreaksIt(t *testing.T) {
	conn := connect(t, harness.Database(t))
	for _, c := range []struct{ rule, sql, want string }{
		{rules[0].name, "ALTER FUNCTION connector.run(text, text) SET search_path = connector, pg_temp", "connector.run(text,text)"},
		{rules[1].name, "ALTER FUNCTION connector._say(uuid, text, text) RESET search_path", "connector._say(uuid,text,text)"},
		{rules[2].name, "CREATE PROCEDURE connector.p() SECURITY DEFINER LANGUAGE sql AS ''", "connector.p()"},
		{rules[3].name, "CREATE FUNCTION connector.f() RETURNS void LANGUAGE sql AS ''", "connector.f()"},
		{rules[4].name, "GRANT EXECUTE ON FUNCTION connector._say(uuid, text, text) TO highwater_operator", "connector._say(uuid,text,text) by highwater_operator"},
		{rules[5].name, "GRANT EXECUTE ON FUNCTION connector.run(text, text) TO highwater_operator WITH GRANT OPTION", "connector.run(text,text) to "},
		{rules[6].name, "GRANT INSERT ON connector.manifest TO highwater_reader", "connector.manifest INSERT"},
		{rules[7].name, "GRANT UPDATE ON connector._run TO highwater_operator", "connector._run UPDATE"},
		{rules[8].name, "GRANT SELECT ON connector_queue.river_job TO highwater_operator", "connector_queue.river_job SELECT to "},
		{rules[9].name, "GRANT UPDATE (status) ON connector._run TO highwater_operator", "connector._run.status"},
		{rules[10].name, "GRANT CREATE ON SCHEMA connector TO PUBLIC", "connector CREATE to 0"},
		{rules[11].name, "ALTER DEFAULT PRIVILEGES FOR ROLE highwater_owner GRANT SELECT ON TABLES TO PUBLIC", "r {=r/highwater_owner"},
		{rules[12].name, "ALTER VIEW connector.runs SET (security_invoker = off)", "connector.runs"},
		{rules[13].name, "CREATE MATERIALIZED VIEW connector.m AS SELECT 1", "connector.m"},
		{rules[14].name, "ALTER TABLE connector._run DISABLE ROW LEVEL SECURITY", "connector._run"},
		{rules[15].name, "CREATE TABLE connector._t (tenant_id bigint)", "connector._t"},
		{rules[16].name, "CREATE POLICY p ON connector._run USING (true)", "connector._run"},
		{rules[16].name, "DROP POLICY tenant_isolation ON connector._run", "connector._run"},
		{rules[17].name, "ALTER ROLE highwater_reader LOGIN", "highwater_reader"},
		{rules[18].name, "GRANT highwater_owner TO highwater_operator", "highwater_operator of highwater_owner"},
		{meanings[0].name, "COMMENT ON SCHEMA connector IS NULL", "connector"},
		{meanings[1].name, "COMMENT ON TABLE connector._run IS NULL", "_run"},
		{meanings[2].name, "ALTER TABLE connector.manifest ADD extra text", "manifest.extra"},
		{meanings[3].name, "COMMENT ON FUNCTION connector._say(uuid, text, text) IS NULL", "connector._say(uuid,text,text)"},
		{meanings[4].name, "COMMENT ON FUNCTION connector.run(text, text) IS 'Internal: x'", "connector.run(text,text)"},
		{meanings[5].name, "COMMENT ON TRIGGER manifest_keep ON connector.manifest IS NULL", "manifest_keep"},
		{meanings[6].name, "CREATE DOMAIN connector.d AS text", "d"},
		{meanings[7].name, "COMMENT ON ROLE highwater_reader IS NULL", "highwater_reader"},
	} {
		all := slices.Concat(rules, meanings)
		r := all[slices.IndexFunc(all, func(r rule) bool { return r.name == c.rule })]
		do(t, conn, "BEGIN") // rolled back: roles belong to the server, where the other tests' databases are
		do(t, conn, c.sql)
		if broken := r.broken(t, conn); !slices.ContainsFunc(broken, func(b string) bool { return len(b) >= len(c.want) && b[:len(c.want)] == c.want }) {
			t.Errorf("%s: after %q it finds %v, want %q", r.name, c.sql, broken, c.want)
		}
		do(t, conn, "ROLLBACK")
	}
}
