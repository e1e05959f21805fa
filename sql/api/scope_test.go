package api_test

import (
	"strings"
	"testing"

	"highwater/tests/harness"
)

// made makes a connector's table as its first chunk does: remembered first, then made, then granted.
func made(admin *session, name string) {
	admin.tb.Helper()
	table := get[string](admin, "SELECT quote_ident(table_name) FROM connector._endpoint WHERE connector = $1", name)
	admin.must("BEGIN")
	admin.must("UPDATE connector._endpoint SET table_made = true WHERE connector = $1", name)
	admin.must("SET LOCAL ROLE highwater_owner")
	admin.must("CREATE TABLE connector." + table + ` (id bigserial PRIMARY KEY, tenant_id bigint NOT NULL, "Name" text)`)
	admin.must("ALTER TABLE connector." + table + " ENABLE ROW LEVEL SECURITY")
	admin.must("CREATE POLICY tenant_isolation ON connector." + table + " USING (tenant_id = (SELECT connector.current_tenant()))")
	admin.must("SELECT connector._grant_scopes(connector_id) FROM connector._endpoint WHERE connector = $1", name)
	admin.must("INSERT INTO connector." + table + ` (tenant_id, "Name") SELECT tenant_id, connector FROM connector._endpoint WHERE connector = '` + name + "'")
	admin.must("COMMIT")
}

// shared gives a database with the connector acme of scope billing, an operator, and a role that holds nothing.
func shared(t *testing.T) (admin, operator, analyst *session, role string) {
	t.Helper()
	url := harness.Database(t)
	admin = connect(t, url)
	operator = as(t, url, newRole(t, admin, "highwater_operator"))
	role = newRole(t, admin)
	analyst = as(t, url, role)
	declare(operator, "acme", `{}`)
	return admin, operator, analyst, role
}

// open says what the role may do now: r reads the table, s looks into the schema, c asks for the card.
func open(admin *session, role string) string {
	admin.tb.Helper()
	return get[string](admin, `SELECT concat(
		CASE WHEN coalesce(has_table_privilege($1, to_regclass('connector.t_partners')::oid, 'SELECT'), false) THEN 'r' END,
		CASE WHEN has_schema_privilege($1, 'connector', 'USAGE') THEN 's' END,
		CASE WHEN has_function_privilege($1, 'connector.card(text)', 'EXECUTE') THEN 'c' END)`, role)
}

func TestTheGrantsFollowTheScopes(t *testing.T) {
	admin, operator, analyst, role := shared(t)
	state := func(want, when string) {
		t.Helper()
		if got := open(admin, role); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	state("", "before anything")
	operator.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", role)
	state("sc", "mapped before the table is made")
	made(admin, "acme")
	state("rsc", "the table is made")
	if got := get[string](analyst, `SELECT "Name" FROM connector.t_partners`); got != "acme" {
		t.Errorf("the analyst reads %q", got)
	}
	operator.must("UPDATE connector.manifest SET scopes = '{hr}'")
	state("sc", "the connector lost the scope")
	analyst.fails("42501", "SELECT FROM connector.t_partners")
	operator.must("UPDATE connector.manifest SET scopes = '{hr,billing}'")
	state("rsc", "it has it again")
	operator.must("UPDATE connector.scope_roles SET scope = 'other'")
	state("sc", "the role has another scope")
	operator.must("UPDATE connector.scope_roles SET scope = 'hr'")
	state("rsc", "the role has the connector's other scope")
	operator.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", role)
	operator.must("DELETE FROM connector.scope_roles WHERE scope = 'hr'")
	state("rsc", "one of two scopes went")
	operator.must("DELETE FROM connector.scope_roles")
	state("", "no scope is left")
	operator.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", role)
	state("rsc", "mapped again, the table is there")
	operator.must("BEGIN; DELETE FROM connector.scope_roles; ROLLBACK")
	state("rsc", "a deletion that was rolled back")
	admin.must("TRUNCATE connector.scope_roles")
	state("", "all mappings went at once")
	if got := get[string](admin, "SELECT string_agg(DISTINCT action || ' ' || connector || ' ' || (detail ->> 'table') || ' ' || (detail ->> 'role'), ', ') FROM connector._audit"); got != "share acme t_partners "+role+", unshare acme t_partners "+role {
		t.Errorf("audit: %s", got)
	}
}

func TestATableThatLeavesItsConnectorLeavesItsScopes(t *testing.T) {
	for name, leave := range map[string]string{
		"kept":     "SELECT connector.drop('acme', true)",
		"detached": `UPDATE connector.manifest SET spec = spec || '{"name": "next"}'`,
	} {
		t.Run(name, func(t *testing.T) {
			admin, operator, _, role := shared(t)
			operator.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", role)
			made(admin, "acme")
			operator.must(leave)
			if got := open(admin, role); got != "sc" {
				t.Errorf("the role holds %q", got)
			}
			if n := get[int](admin, "SELECT count(*) FROM connector._scope_grant"); n != 0 {
				t.Errorf("%d grants are remembered", n)
			}
		})
	}
	t.Run("dropped", func(t *testing.T) {
		admin, operator, _, role := shared(t)
		operator.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", role)
		made(admin, "acme")
		operator.must("DELETE FROM connector.manifest")
		if got := get[string](admin, "SELECT concat(to_regclass('connector.t_partners'), (SELECT count(*) FROM connector._scope_grant))"); got != "0" {
			t.Errorf("left: %s", got)
		}
	})
}

// What people granted is theirs: it is neither counted as ours nor revoked.
func TestGrantsMadeByHandStay(t *testing.T) {
	admin, operator, _, role := shared(t)
	made(admin, "acme")
	state := func(want, when string) {
		t.Helper()
		if got := open(admin, role); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	admin.must("GRANT USAGE ON SCHEMA connector TO " + role + "; GRANT SELECT, INSERT ON connector.t_partners TO " + role)
	operator.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", role)
	state("rsc", "both")
	operator.must("DELETE FROM connector.scope_roles")
	state("rs", "what was there before the scope")
	admin.must("REVOKE SELECT ON connector.t_partners FROM " + role)
	operator.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", role)
	operator.must("DELETE FROM connector.scope_roles")
	state("s", "only what the scope had granted went")
	if !get[bool](admin, "SELECT has_table_privilege($1, 'connector.t_partners', 'INSERT')", role) {
		t.Error("another right on the table went too")
	}
	operator.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", role)
	admin.must("GRANT SELECT ON connector.t_partners TO " + role + " WITH GRANT OPTION")
	operator.must("DELETE FROM connector.scope_roles")
	state("rs", "given on with grant option since")
	admin.must("REVOKE ALL ON connector.t_partners FROM " + role + "; REVOKE ALL ON SCHEMA connector FROM " + role)
}

// The owner and our own groups hold their rights by other ways; a scope that names them takes none away.
func TestAScopeForOurOwnRolesTakesNothingAway(t *testing.T) {
	admin, _, _, _ := shared(t)
	made(admin, "acme")
	for _, role := range []string{"highwater_owner", "highwater_operator", "highwater_reader"} {
		before := open(admin, role)
		admin.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", role)
		admin.must("DELETE FROM connector.scope_roles")
		if got := open(admin, role); got != before {
			t.Errorf("%s holds %q, and held %q", role, got, before)
		}
	}
}

func TestARoleOfAScopeMustExist(t *testing.T) {
	admin, operator, _, role := shared(t)
	err := operator.fails("P0002", `INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', 'Nobody "x"')`)
	contains(t, "message", err.Message, `Nobody "x"`)
	contains(t, "hint", err.Hint, `CREATE ROLE "Nobody ""x""";`, "PUBLIC")
	operator.fails("P0002", "INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', 'PUBLIC')")
	for _, row := range []string{"(NULL, 'x')", "(' ', 'x')", "('billing', NULL)"} {
		operator.fails("22023", "INSERT INTO connector.scope_roles (scope, role) VALUES "+row)
	}
	// A role that is dropped after its rights were: the mapping can go, and hinders nothing while it is there.
	made(admin, "acme")
	operator.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", role)
	other := newRole(t, admin)
	operator.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", other)
	admin.must("DROP OWNED BY " + other + "; DROP ROLE " + other)
	operator.must("UPDATE connector.manifest SET scopes = '{billing,hr}'")
	operator.must("DELETE FROM connector.scope_roles WHERE role = $1", other)
	if got := open(admin, role); got != "rsc" {
		t.Errorf("the other role holds %q", got)
	}
}

// An operator of one tenant opens tables of that tenant only, whatever a scope is called elsewhere.
func TestScopesBelongToATenant(t *testing.T) {
	admin, seven, eight, reader, _ := tenants(t)
	made(admin, "seven")
	made(admin, "eight")
	role := newRole(t, admin)
	seven.must("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", role)
	seven.fails("42501", "INSERT INTO connector.scope_roles (scope, role, tenant_id) VALUES ('billing', $1, 8)", role)
	if got := get[string](admin, "SELECT concat(has_table_privilege($1, 'connector.t_seven', 'SELECT'), has_table_privilege($1, 'connector.t_eight', 'SELECT'))", role); got != "tf" {
		t.Errorf("the tables are open: %s", got)
	}
	if n := get[int](reader, "SELECT count(*) FROM connector.scope_roles"); n != 1 {
		t.Errorf("a reader of the tenant sees %d mappings", n)
	}
	reader.fails("42501", "DELETE FROM connector.scope_roles")
	if n := get[int](eight, "SELECT count(*) FROM connector.scope_roles"); n != 0 {
		t.Errorf("the other tenant sees %d mappings", n)
	}
	eight.must("DELETE FROM connector.scope_roles")
	s := as(t, admin.Config().ConnString(), role)
	for tenant, want := range map[string]int{"7": 1, "8": 0, "": 0, "x": 0} {
		s.must("SELECT set_config('app.current_tenant', $1, false)", tenant)
		if n := get[int](s, "SELECT count(*) FROM connector.t_seven"); n != want {
			t.Errorf("as tenant %q the role reads %d rows", tenant, n)
		}
	}
	admin.must("INSERT INTO connector.tenant_roles VALUES ($1, 8)", role)
	s.must("SET app.current_tenant = '7'")
	if n := get[int](s, "SELECT count(*) FROM connector.t_seven"); n != 0 {
		t.Errorf("a role of tenant 8 reads %d rows of tenant 7", n)
	}
	admin.must("DELETE FROM connector.scope_roles")
}

// Two sessions of which neither sees the other's change: the second waits, and the grant is there in the end.
func TestAScopeThatIsMappedWhileTheTableIsMade(t *testing.T) {
	for _, c := range []struct{ name, first, second string }{
		{"the mapping first", "INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', '%r')", "UPDATE connector._endpoint SET table_made = true; SELECT connector._grant_scopes(connector_id) FROM connector._endpoint"},
		{"the table first", "UPDATE connector._endpoint SET table_made = true; SELECT connector._grant_scopes(connector_id) FROM connector._endpoint", "INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', '%r')"},
		{
			"the scope after the mapping", "UPDATE connector._endpoint SET table_made = true; UPDATE connector.manifest SET scopes = '{x}'; INSERT INTO connector.scope_roles (scope, role) VALUES ('y', '%r')",
			"UPDATE connector.manifest SET scopes = '{y}'",
		},
		{
			"two tables' mappings at once", "UPDATE connector._endpoint SET table_made = true; INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', '%r')",
			"INSERT INTO connector.scope_roles (scope, role) VALUES ('other', '%r')",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			admin, _, _, role := shared(t)
			second := connect(t, admin.Config().ConnString())
			admin.must("CREATE TABLE connector.t_partners (id bigint); ALTER TABLE connector.t_partners OWNER TO highwater_owner")
			admin.must("BEGIN; " + strings.ReplaceAll(c.first, "%r", role))
			done := background(t, func() error {
				_, err := second.Exec(t.Context(), strings.ReplaceAll(c.second, "%r", role))
				return err
			})
			waitForLock(t, connect(t, admin.Config().ConnString()), second)
			admin.must("COMMIT")
			if err := done(); err != nil {
				t.Fatal(err)
			}
			if got := open(admin, role); got != "rsc" {
				t.Errorf("the role holds %q", got)
			}
		})
	}
}
