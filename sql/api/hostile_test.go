package api_test

import (
	"strings"
	"testing"

	"highwater/tests/harness"
)

// tenants gives sessions of two operators, of tenants 7 and 8, a reader of tenant 7 and a stranger, each with a
// connector of its tenant beside it.
func tenants(t *testing.T) (admin, seven, eight, reader, stranger *session) {
	t.Helper()
	url := harness.Database(t)
	admin = connect(t, url)
	names := []string{newRole(t, admin, "highwater_operator"), newRole(t, admin, "highwater_operator"), newRole(t, admin, "highwater_reader"), newRole(t, admin)}
	admin.must("INSERT INTO connector.tenant_roles VALUES ($1, 7), ($2, 8), ($3, 7)", names[0], names[1], names[2])
	seven, eight, reader, stranger = as(t, url, names[0]), as(t, url, names[1]), as(t, url, names[2]), as(t, url, names[3])
	declare(seven, "seven", `{"name": "seven"}`)
	declare(eight, "eight", `{"name": "eight"}`)
	return admin, seven, eight, reader, stranger
}

func TestTenantsDoNotMeet(t *testing.T) {
	admin, seven, _, reader, _ := tenants(t)
	if got := get[string](admin, "SELECT string_agg(name || tenant_id, ' ' ORDER BY name) FROM connector.manifest"); got != "eight8 seven7" {
		t.Fatalf("declared %q", got)
	}
	seven.must("SET app.current_tenant = '8'") // the role is listed: what it sets does not count
	for _, s := range []*session{seven, reader} {
		if got := get[string](s, "SELECT string_agg(name, ' ') FROM connector.manifest"); got != "seven" {
			t.Errorf("sees %q", got)
		}
		s.fails("P0002", "SELECT connector.get('eight')")
	}
	seven.fails("P0002", "SELECT connector.drop('eight')")
	seven.fails("P0002", "SELECT connector.drop('eight', true)")
	seven.must("UPDATE connector.manifest SET scopes = '{mine}' WHERE name = 'eight'")
	seven.must("DELETE FROM connector.manifest WHERE name = 'eight'")
	seven.fails("42501", "INSERT INTO connector.manifest (name, tenant_id, spec) VALUES ('nine', 8, $1)", least)
	seven.fails("42501", "INSERT INTO connector.manifest (name, spec) VALUES ('eight', $1) ON CONFLICT (name) DO UPDATE SET spec = EXCLUDED.spec", least)
	seven.fails("42501", "SELECT connector.apply($1)", strings.Replace(document, `"acme"`, `"eight"`, 1))
	seven.fails("0A000", "UPDATE connector.manifest SET tenant_id = 8")
	if got := get[string](admin, "SELECT scopes::text FROM connector.manifest WHERE name = 'eight'"); got != "{billing}" {
		t.Errorf("the other tenant's connector has scopes %s", got)
	}
	// Whose table it is stays untold; and a row of another tenant is refused before the table is looked at.
	for _, spec := range []string{`{"name": "eight"}`, `{"name": "eight_pkey"}`} {
		err := seven.fails("22023", "INSERT INTO connector.manifest (name, spec) VALUES ('nine', $1::jsonb || $2::jsonb)", least, spec)
		if said := strings.ReplaceAll(err.Message+err.Detail+err.Hint, "connector.t_eight", ""); strings.Contains(said, "eight") {
			t.Errorf("the refusal names the other tenant's connector: %s", said)
		}
	}
	seven.fails("42501", "INSERT INTO connector.manifest (name, tenant_id, spec) VALUES ('nine', 8, $1::jsonb || '{\"name\": \"eight\"}')", least)
}

func TestWithoutATenantNothingIsDeclared(t *testing.T) {
	url := harness.Database(t)
	admin := connect(t, url)
	admin.must("INSERT INTO connector.tenant_roles VALUES ('somebody', 7)")
	s := as(t, url, newRole(t, admin, "highwater_operator"))
	s.fails("42501", "INSERT INTO connector.manifest (name, spec) VALUES ('acme', $1)", least)
	s.must("SET app.current_tenant = 'x'")
	s.fails("42501", "INSERT INTO connector.manifest (name, spec) VALUES ('acme', $1)", least)
	s.must("SET app.current_tenant = '9'")
	declare(s, "acme", `{}`)
	if got := get[int](admin, "SELECT tenant_id FROM connector.manifest"); got != 9 {
		t.Errorf("declared for tenant %d", got)
	}
}

func TestReadersAndStrangersDeclareNothing(t *testing.T) {
	_, _, _, reader, stranger := tenants(t)
	for _, call := range []string{"connector.validate('{}')", "connector.describe()", "connector.cron_next('* * * * *', now())", "connector.get('seven')"} {
		reader.must("SELECT * FROM " + call)
		stranger.fails("42501", "SELECT * FROM "+call)
	}
	for _, s := range []*session{reader, stranger} {
		s.fails("42501", "SELECT connector.apply($1)", document)
		s.fails("42501", "SELECT connector.drop('seven')")
		s.fails("42501", "INSERT INTO connector.manifest (name, spec) VALUES ('acme', $1)", least)
		s.fails("42501", "UPDATE connector.manifest SET scopes = '{}'")
		s.fails("42501", "DELETE FROM connector.manifest")
		s.fails("42501", "TRUNCATE connector.manifest")
	}
}

// A hostile search_path, or a temporary table of a private table's name, changes nothing in what runs as the owner.
func TestNoFunctionLooksThroughTheCallersPath(t *testing.T) {
	admin, seven, _, _, _ := tenants(t)
	admin.must("CREATE SCHEMA mallory; GRANT ALL ON SCHEMA mallory TO PUBLIC; GRANT TEMP ON DATABASE " + get[string](admin, "SELECT quote_ident(current_database())") + " TO PUBLIC")
	for _, def := range []string{
		"lower(text) RETURNS text", "now() RETURNS timestamptz", "length(text) RETURNS integer", "format(text, VARIADIC text[]) RETURNS text", "jsonb_typeof(jsonb) RETURNS text",
		"btrim(text, text) RETURNS text", "same(text, text) RETURNS boolean", "hold(jsonb, text) RETURNS boolean", "gen_random_uuid() RETURNS uuid",
	} {
		seven.must("CREATE FUNCTION mallory." + def + " LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'mallory ran as %', current_user; END $$")
	}
	seven.must("CREATE OPERATOR mallory.= (LEFTARG = text, RIGHTARG = text, FUNCTION = mallory.same)")
	seven.must("CREATE OPERATOR mallory.? (LEFTARG = jsonb, RIGHTARG = text, FUNCTION = mallory.hold)")
	for _, table := range []string{"manifest", "_endpoint", "_cursor", "_run", "_dlq", "_lag", "_column", "_audit", "tenant_roles", "pg_class"} {
		seven.must("CREATE TEMP TABLE " + table + " (connector_id uuid, name text, tenant_id bigint, role text); GRANT ALL ON " + table + " TO PUBLIC")
	}
	seven.must("INSERT INTO pg_temp.tenant_roles (role, tenant_id) VALUES (session_user, 8)")
	seven.must("SET search_path = pg_temp, mallory, connector, pg_catalog")
	calls := []string{
		"SELECT connector.apply('" + strings.ReplaceAll(document, "'", "''") + "')",
		"SELECT * FROM connector.validate('{\"toppic\": 1}')",
		"SELECT * FROM connector.describe()",
		"SELECT connector.cron_next('0 0 1 * *', pg_catalog.now())",
		"SELECT connector.get('acme')",
		"UPDATE connector.manifest SET scopes = '{x}'",
		"SELECT connector.drop('acme', true)",
		"DELETE FROM connector.manifest",
	}
	for _, call := range calls {
		seven.must(call)
	}
	if got := get[int64](seven, "SELECT connector.current_tenant()"); got != 7 {
		t.Errorf("the temporary table made it tenant %d", got)
	}
	if got := get[string](admin, "SELECT string_agg(name, ' ') FROM connector.manifest"); got != "eight" {
		t.Errorf("left %q, want the other tenant's alone", got)
	}
}

func TestPrivilegesOfFunctions(t *testing.T) {
	s := connect(t, harness.Database(t))
	stranger := newRole(t, s)
	if got := get[string](s, `SELECT coalesce(string_agg(p.proname, ' ' ORDER BY p.proname), '') FROM pg_proc AS p
		WHERE p.pronamespace = 'connector'::regnamespace AND has_function_privilege($1, p.oid, 'EXECUTE')`, stranger); got != "current_tenant" {
		t.Errorf("anybody may execute %q", got)
	}
	if got := get[string](s, `SELECT coalesce(string_agg(p.proname, ' ' ORDER BY p.proname), '') FROM pg_proc AS p
		WHERE p.pronamespace = 'connector'::regnamespace AND p.prosecdef
		AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false)`); got != "" {
		t.Errorf("these run as their owner with the caller's path: %s", got)
	}
	if got := get[string](s, `SELECT coalesce(string_agg(p.proname, ' ' ORDER BY p.proname), '') FROM pg_proc AS p
		WHERE p.pronamespace = 'connector'::regnamespace AND obj_description(p.oid, 'pg_proc') IS NULL`); got != "" {
		t.Errorf("these have no comment: %s", got)
	}
	if got := get[string](s, `SELECT coalesce(string_agg(p.proname, ' ' ORDER BY p.proname), '') FROM pg_proc AS p
		WHERE p.pronamespace = 'connector'::regnamespace AND pg_get_userbyid(p.proowner) <> 'highwater_owner'`); got != "" {
		t.Errorf("these do not belong to highwater_owner: %s", got)
	}
}
