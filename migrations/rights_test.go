package migrations_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"highwater/migrations"
	"highwater/sidecar/demo/postgres"
)

// majors are the servers to try roles on: the machine's own, and with HIGHWATER_TEST_MAJORS=1 each supported one, because
// PostgreSQL 16 changed what CREATEROLE means.
func majors() map[string]int {
	if os.Getenv("HIGHWATER_TEST_MAJORS") == "" {
		return map[string]int{"own": 0}
	}
	return map[string]int{"15": 15, "16": 16, "17": 17, "18": 18}
}

// onEach runs a test on servers of its own: roles belong to the server, and these tests need one without ours.
func onEach(t *testing.T, test func(t *testing.T, server *postgres.Server)) {
	t.Helper()
	for name, major := range majors() {
		t.Run(name, func(t *testing.T) {
			server, err := postgres.Start(t.Context(), postgres.Options{Major: major, Settings: map[string]string{"fsync": "off"}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Stop)
			test(t, server)
		})
	}
}

// as is the URL of the same database for another user; the server trusts everybody.
func as(t *testing.T, server *postgres.Server, user string) string {
	t.Helper()
	return "postgres://" + user + "@" + server.URL("postgres")[len("postgres://postgres@"):]
}

func TestARoleThatMayMakeRolesAndSchemasIsEnough(t *testing.T) {
	onEach(t, func(t *testing.T, server *postgres.Server) {
		super := connect(t, server.URL("postgres"))
		do(t, super, "CREATE ROLE sidecar LOGIN CREATEROLE")
		do(t, super, "GRANT CREATE ON DATABASE postgres TO sidecar")
		url := as(t, server, "sidecar")
		apply(t, url)
		if got := one[int](t, super, "SELECT count(*) FROM pg_roles AS r WHERE r.rolname LIKE 'highwater%' AND shobj_description(r.oid, 'pg_authid') IS NOT NULL"); got != 3 {
			t.Errorf("%d of our roles have a comment, want 3", got)
		}
		// Neither right is needed again, not even to apply changed functions; and the role may use what it made.
		do(t, super, "ALTER ROLE sidecar NOCREATEROLE")
		do(t, super, "REVOKE CREATE ON DATABASE postgres FROM sidecar")
		do(t, super, "UPDATE connector._repeatable SET sha256 = 'another'")
		apply(t, url)
		own := connect(t, url)
		if got := one[int](t, own, "SELECT count(*) FROM connector._run"); got != 0 {
			t.Errorf("%d runs", got)
		}
		if err := migrations.Check(t.Context(), config(t, url)); err != nil {
			t.Error(err)
		}
	})
}

func TestARoleWithoutRightsIsToldTheStatementsThatHelp(t *testing.T) {
	onEach(t, func(t *testing.T, server *postgres.Server) {
		super := connect(t, server.URL("postgres"))
		do(t, super, `CREATE ROLE "the sidecar" LOGIN`)
		do(t, super, "CREATE ROLE highwater_reader NOLOGIN")
		url := as(t, server, "the%20sidecar")
		err := migrations.Apply(t.Context(), config(t, url), migrations.Options{})
		var rights *migrations.RightsError
		if !errors.As(err, &rights) {
			t.Fatalf("error %v, want a RightsError", err)
		}
		want := []string{
			"CREATE ROLE highwater_owner NOLOGIN;",
			"CREATE ROLE highwater_operator NOLOGIN;",
			`GRANT highwater_owner TO "the sidecar";`,
			`GRANT CREATE ON DATABASE "postgres" TO "the sidecar";`,
		}
		if !slices.Equal(rights.Statements, want) {
			t.Fatalf("statements %q, want %q", rights.Statements, want)
		}
		for _, statement := range rights.Statements {
			refused(t, err, statement)
			do(t, super, statement)
		}
		apply(t, url)
	})
}

// From PostgreSQL 16 on CREATEROLE gives no power over roles that somebody else made.
func TestCreateRoleIsNotEnoughForAnOwnerThatSomebodyElseMade(t *testing.T) {
	onEach(t, func(t *testing.T, server *postgres.Server) {
		super := connect(t, server.URL("postgres"))
		do(t, super, "CREATE ROLE highwater_owner NOLOGIN")
		do(t, super, "CREATE ROLE sidecar LOGIN CREATEROLE")
		do(t, super, "GRANT CREATE ON DATABASE postgres TO sidecar")
		err := migrations.Apply(t.Context(), config(t, as(t, server, "sidecar")), migrations.Options{})
		if one[int](t, super, "SELECT current_setting('server_version_num')::integer") < 160000 {
			if err != nil {
				t.Error(err)
			}
			return
		}
		var rights *migrations.RightsError
		if !errors.As(err, &rights) || !slices.Equal(rights.Statements, []string{`GRANT highwater_owner TO "sidecar";`}) {
			t.Errorf("error %v, want the one GRANT", err)
		}
	})
}
