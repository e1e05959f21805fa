package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// An administrator's settings of the database and of the role hold for everybody's sessions, and for a sidecar's only where
// they do no harm: none ends its work early, none changes what a text means.
func TestSettingsOfTheDatabase(t *testing.T) {
	f := onFake(t)
	for _, setting := range []string{
		"statement_timeout = '200ms'", "lock_timeout = '50ms'", "idle_in_transaction_session_timeout = '200ms'",
		"default_transaction_isolation = 'serializable'", "default_transaction_deferrable = on", "search_path = 'hostile, public'", "timezone = 'Asia/Kathmandu'",
		"datestyle = 'German, DMY'", "intervalstyle = 'sql_standard'", "bytea_output = 'escape'", "extra_float_digits = -15", "standard_conforming_strings = off",
		"client_encoding = 'LATIN1'", "row_security = off", "synchronous_commit = off", "quote_all_identifiers = on", "default_toast_compression = 'pglz'",
		"check_function_bodies = off", "client_min_messages = 'debug5'", "enable_indexscan = off", "plan_cache_mode = 'force_generic_plan'", "array_nulls = off",
		"transform_null_equals = on", "xmloption = 'document'", "lc_messages = 'C'",
	} {
		f.exec(fmt.Sprintf("DO $do$ BEGIN EXECUTE format('ALTER DATABASE %%I SET %%s', current_database(), %s); END $do$", quoted(setting)))
	}
	f.exec("CREATE SCHEMA hostile; CREATE TABLE hostile.manifest (); CREATE FUNCTION hostile.now() RETURNS timestamptz LANGUAGE sql AS $$SELECT 'epoch'::timestamptz$$; CREATE DOMAIN hostile.text AS bigint")
	topic := f.topic("odd", 2, nil)
	f.produce(topic, 0, `{"n":1,"s":"é€😀\\ ' \" \n","d":"2024-02-01","f":0.1,"b":"AP8=","t":"2024-02-01T00:00:00Z","o":{"k":"é\\"}}`, "bad é", `{"n":2}`)
	f.produce(topic, 1, partners(0, 5000)...)
	f.sidecar(nil)
	f.declare("odd", topic, `,"types":{"d":"date","f":"double precision","b":"bytea","t":"timestamptz"},"chunk_rows":200,"include":["timestamp"]`)
	f.exec("SELECT connector.seek('odd', 0, 0)")
	e := f.completed("odd", 5003, 5002)
	config, err := pgx.ParseConfig(f.url)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"search_path": "public", "timezone": "UTC", "datestyle": "ISO", "bytea_output": "hex", "extra_float_digits": "1", "client_encoding": "UTF8", "standard_conforming_strings": "on", "statement_timeout": "0"} {
		config.RuntimeParams[name] = value
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var got string
	if err := conn.QueryRow(t.Context(), "SELECT concat_ws('|', s, d, f, b, t, o) FROM connector.t_odd WHERE n = 1").Scan(&got); err != nil {
		t.Fatal(err)
	}
	if want := "é€😀\\ ' \" \n|2024-02-01|0.1|\\x00ff|2024-02-01 00:00:00+00|{\"k\": \"é\\\\\"}"; got != want {
		t.Errorf("the row is %q, want %q", got, want)
	}
	if err := conn.QueryRow(t.Context(), "SELECT concat_ws('|', payload->'raw'->>0, convert_from(raw, 'UTF8')) FROM connector.dlq WHERE run_id = $1", e.RunID).Scan(&got); err != nil || got != "bad é|bad é" {
		t.Errorf("the letter is %q, %v", got, err)
	}
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Faults of the database's side are waited for, or end the run with the server's words; none makes a dead letter, none moves
// a position.
func TestFaultsOfTheDatabase(t *testing.T) {
	t.Parallel()
	raise := func(state string) string {
		return fmt.Sprintf(`CREATE FUNCTION public.fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'made up' USING ERRCODE = '%s'; END $$;
			CREATE TRIGGER fault BEFORE INSERT ON connector.t_fault FOR EACH ROW EXECUTE FUNCTION public.fault()`, state)
	}
	const unraise = "DROP TRIGGER fault ON connector.t_fault"
	for _, c := range []struct {
		name, fault, code string
		says              []string
		retryable         bool
		mend              string
	}{
		{"the disk is full", raise("53100"), "database_error", []string{"made up", "53100"}, true, unraise},
		{"a right is missing", raise("42501"), "not_authorized", []string{"made up", "42501"}, false, unraise},
		{"a right was taken away", "CREATE TABLE public.counted (n bigint); CREATE FUNCTION public.count() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.counted VALUES (1); RETURN NEW; END $$; CREATE TRIGGER fault BEFORE INSERT ON connector.t_fault FOR EACH ROW EXECUTE FUNCTION public.count()", "not_authorized", []string{"permission denied for table counted", "42501"}, false, "GRANT INSERT ON public.counted TO e2e_sidecar"},
		{"a trigger needs what is gone", `CREATE FUNCTION public.fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM * FROM public.gone; RETURN NEW; END $$;
			CREATE TRIGGER fault BEFORE INSERT ON connector.t_fault FOR EACH ROW EXECUTE FUNCTION public.fault()`, "database_error", []string{"gone", "42P01"}, false, unraise},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := onFake(t)
			topic := f.topic("fault", 1, nil)
			f.produce(topic, 0, partners(0, 5)...)
			f.sidecar(nil)
			f.declare("fault", topic, "")
			f.completed("fault", 5, 5)
			f.produce(topic, 0, partners(5, 5)...)
			f.exec(c.fault)
			e := f.run("fault")
			f.ends(e, "Failed", c.code, c.says...)
			if e.Hint == "" || e.DeadLetters != 0 || e.RecordsIn != 0 {
				t.Errorf("the run ended %+v", e)
			}
			f.want(fmt.Sprint(c.retryable), "SELECT retryable FROM connector.runs WHERE run_id = $1", e.RunID)
			f.want("5 5", "SELECT concat_ws(' ', count(*), (SELECT cursor->'offsets'->>'0' FROM connector.connector_cursor)) FROM connector.t_fault")
			f.exec(c.mend)
			f.completed("fault", 5, 5)
		})
	}
	t.Run("the database takes no writes for a while", func(t *testing.T) {
		f := onFake(t)
		f.long("readonly")
		_, g := f.heldSidecar("begin", 5)
		runID := f.held("readonly", g)
		f.exec("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$")
		f.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND usename = 'e2e_sidecar'")
		g.open()
		receive(f, "a second without writes", time.After(time.Second))
		f.exec("BEGIN READ WRITE; DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$; COMMIT")
		e := f.wait(runID)
		if e.Status != "Completed" || e.RecordsIn != longMessages || e.DeadLetters != 0 {
			t.Errorf("%+v", e)
		}
		f.whole("readonly")
	})
}

// A new column waits for readers of the table a second at a time, and lets others past in between.
func TestANewColumnBesideALongQuery(t *testing.T) {
	f := onFake(t)
	topic := f.topic("ddl", 1, nil)
	f.produce(topic, 0, partners(0, 5)...)
	f.sidecar(nil)
	f.declare("ddl", topic, "")
	f.completed("ddl", 5, 5)
	f.produce(topic, 0, `{"partner_id":1,"fresh":true}`)
	report, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := report.Exec(t.Context(), "SELECT count(*) FROM connector.t_ddl"); err != nil {
		t.Fatal(err)
	}
	runID := f.ask("ddl")
	const waits = "EXISTS (SELECT FROM pg_locks WHERE relation = 'connector.t_ddl'::regclass AND NOT granted)"
	f.until("SELECT " + waits)
	begun := time.Now()
	f.want("5", "SELECT count(*) FROM connector.t_ddl") // waits behind the ALTER, and no longer than that does
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("a reader waited %s", took)
	}
	f.until("SELECT " + waits) // it tries again
	f.want("Running", "SELECT status FROM connector.runs WHERE run_id = $1", runID)
	if err := report.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.ends(f.wait(runID), "Completed", "ok")
	f.want("1", "SELECT count(*) FROM connector.t_ddl WHERE fresh")
}
