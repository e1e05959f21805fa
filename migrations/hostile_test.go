package migrations_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"highwater/migrations"
	"highwater/sidecar/demo/postgres"
	"highwater/tests/harness"
)

// impostors are functions and operators of pg_catalog that the migrations use, in a schema that the path looks at first.
const impostors = `
	CREATE SCHEMA mallory;
	GRANT USAGE ON SCHEMA mallory TO PUBLIC;
	CREATE FUNCTION mallory.caught() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'mallory ran as %', current_user; END $$;
	CREATE FUNCTION mallory.now() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.caught(); END $$;
	CREATE FUNCTION mallory.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.caught(); END $$;
	CREATE FUNCTION mallory.gen_random_uuid() RETURNS uuid LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.caught(); END $$;
	CREATE FUNCTION mallory.format(text, VARIADIC text[]) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.caught(); END $$;
	CREATE FUNCTION mallory.to_regclass(text) RETURNS regclass LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.caught(); END $$;
	CREATE FUNCTION mallory.current_database() RETURNS name LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.caught(); END $$;
	CREATE FUNCTION mallory.pg_has_role(name, name, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.caught(); END $$;
	CREATE FUNCTION mallory.same(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.caught(); END $$;
	CREATE FUNCTION mallory.same(name, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.caught(); END $$;
	CREATE FUNCTION mallory.same(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.caught(); END $$;
	CREATE OPERATOR mallory.= (LEFTARG = text, RIGHTARG = text, FUNCTION = mallory.same);
	CREATE OPERATOR mallory.= (LEFTARG = name, RIGHTARG = text, FUNCTION = mallory.same);
	CREATE OPERATOR mallory.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = mallory.same);
	CREATE DOMAIN mallory.jsonb AS pg_catalog.text;
	CREATE DOMAIN mallory.uuid AS pg_catalog.text;`

// dependants is whatever in our schemas was built with something of the impostor's schema.
const dependants = `
	SELECT coalesce(string_agg(pg_describe_object(d.classid, d.objid, d.objsubid), ', '), '')
	FROM pg_depend AS d
	WHERE (d.refclassid, d.refobjid) IN (
		SELECT 'pg_proc'::regclass, p.oid FROM pg_proc AS p WHERE p.pronamespace = 'mallory'::regnamespace
		UNION ALL SELECT 'pg_operator'::regclass, o.oid FROM pg_operator AS o WHERE o.oprnamespace = 'mallory'::regnamespace
		UNION ALL SELECT 'pg_type'::regclass, y.oid FROM pg_type AS y WHERE y.typnamespace = 'mallory'::regnamespace)
		AND pg_describe_object(d.classid, d.objid, d.objsubid) !~ 'mallory'`

// trapped gives a database whose owner has every session look for names in the impostors' schema first.
func trapped(t *testing.T) string {
	t.Helper()
	url := harness.EmptyDatabase(t)
	conn := connect(t, url)
	do(t, conn, impostors)
	do(t, conn, "ALTER DATABASE "+pgx.Identifier{conn.Config().Database}.Sanitize()+" SET search_path = mallory, pg_catalog")
	return url
}

func clean(t *testing.T, url string) {
	t.Helper()
	conn := connect(t, url)
	do(t, conn, "SET search_path = pg_catalog")
	if got := one[string](t, conn, dependants); got != "" {
		t.Errorf("built with the impostors: %s", got)
	}
	same(t, snapshot(t, pathless(t, harness.Database(t)), false), snapshot(t, conn, false))
}

func TestNothingIsBuiltThroughAHostilePath(t *testing.T) {
	url := trapped(t)
	apply(t, url)
	if err := migrations.Check(t.Context(), config(t, url)); err != nil {
		t.Error(err)
	}
	clean(t, url)
}

func TestTheScriptIsNotLedByAHostilePathEither(t *testing.T) {
	url := trapped(t)
	script(t, url)
	clean(t, url)
}

// Whoever owns a schema replaces what is built into it. Nothing at all is left behind by the refusal.
func TestNothingIsBuiltIntoASchemaOfSomebodyElse(t *testing.T) {
	harness.Database(t) // so that the roles are there
	for _, schema := range []string{"connector", "connector_queue"} {
		for name, run := range map[string]func(url string) error{
			"Apply":      func(url string) error { return migrations.Apply(t.Context(), config(t, url), migrations.Options{}) },
			"the script": psql(t),
		} {
			t.Run(schema+" by "+name, func(t *testing.T) {
				url := harness.EmptyDatabase(t)
				conn := connect(t, url)
				do(t, conn, "CREATE SCHEMA "+schema+" AUTHORIZATION highwater_reader")
				err := run(url)
				refused(t, err, `schema "`+schema+`" belongs to role highwater_reader`)
				var pe *pgconn.PgError
				if errors.As(err, &pe) && (pe.Code != "42501" || pe.Hint == "") {
					t.Errorf("SQLSTATE %s, hint %q; want 42501 and a hint", pe.Code, pe.Hint)
				}
				if got := one[int](t, conn, "SELECT count(*) FROM pg_namespace AS n WHERE n.nspname LIKE 'connector%'"); got != 1 {
					t.Errorf("%d schemas afterwards, want the one that was there", got)
				}
				if got := one[int](t, conn, "SELECT count(*) FROM pg_class AS c WHERE c.relnamespace = to_regnamespace($1)", schema); got != 0 {
					t.Errorf("%d relations in it", got)
				}
			})
		}
	}
}

// A sidecar's login role is a member of the owner and nothing else: it finds nothing to do, and may do what is new.
func TestAMemberOfTheOwnerIsEnoughOnceTheSchemasAreThere(t *testing.T) {
	onEach(t, func(t *testing.T, server *postgres.Server) {
		apply(t, server.URL("postgres"))
		super := connect(t, server.URL("postgres"))
		do(t, super, "CREATE ROLE sidecar LOGIN IN ROLE highwater_owner")
		url := as(t, server, "sidecar")
		before := snapshot(t, super, true)
		apply(t, url)
		if err := migrations.Check(t.Context(), config(t, url)); err != nil {
			t.Error(err)
		}
		if err := psql(t)(url); err != nil {
			t.Errorf("the script: %v", err)
		}
		same(t, before, snapshot(t, super, true))

		// What a newer program brings belongs to the owner, as if a superuser had migrated.
		do(t, super, "DROP SCHEMA connector, connector_queue CASCADE; CREATE SCHEMA connector AUTHORIZATION highwater_owner; CREATE SCHEMA connector_queue AUTHORIZATION highwater_owner")
		apply(t, url)
		if got := one[int](t, super, "SELECT count(*) FROM pg_class AS c WHERE c.relnamespace IN ('connector'::regnamespace, 'connector_queue'::regnamespace) AND c.relowner <> 'highwater_owner'::regrole"); got != 0 {
			t.Errorf("%d relations do not belong to the owner", got)
		}
		refused(t, migrations.Apply(t.Context(), config(t, stranger(t, super, server)), migrations.Options{}), `GRANT highwater_owner TO "stranger";`)
	})
}

// stranger is the URL of a role without any right.
func stranger(t *testing.T, super *pgx.Conn, server *postgres.Server) string {
	t.Helper()
	do(t, super, "CREATE ROLE stranger LOGIN")
	return as(t, server, "stranger")
}
