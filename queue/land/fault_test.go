package land

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"highwater/tests/harness"
)

// unmoved checks that nothing of a chunk stayed.
func (b *bundle) unmoved(position, rows int64) {
	b.Helper()
	if got := b.position(0); got != position {
		b.Errorf("the position is %d, want %d", got, position)
	}
	if got := b.rows("true"); got != rows {
		b.Errorf("the table has %d rows, want %d", got, rows)
	}
	if n := one[int64](b, "SELECT count(*) FROM connector._dlq"); n != 0 {
		b.Errorf("there are %d dead letters", n)
	}
	b.audit()
}

func TestAChunkOfALostLeaseWritesNothing(t *testing.T) {
	for name, ddl := range map[string]string{
		"another fence":           "UPDATE connector._cursor SET fence = fence + 1",
		"a position before it":    "UPDATE connector._cursor SET next_offset = 1 WHERE partition = 0",
		"a position behind it":    "UPDATE connector._cursor SET next_offset = 7 WHERE partition = 0",
		"a position that is gone": "DELETE FROM connector._cursor WHERE partition = 0",
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, Options{})
			b.started(2)
			c := b.chunk(0, []string{"n", "s"}, numbered(2, 5))
			b.exec(ddl)
			if _, err := b.land(c); !errors.Is(err, ErrFenced) {
				t.Errorf("got %v", err)
			}
			if n := b.rows("true"); n != 2 {
				t.Errorf("the table has %d rows", n)
			}
		})
	}
}

func TestAChunkThatWouldMakeTheTableForALostLeaseMakesNone(t *testing.T) {
	b := setup(t, Options{})
	b.exec("UPDATE connector._endpoint SET fence = fence + 1")
	c := b.chunk(0, []string{"n", "s"}, numbered(0, 1))
	c.Alters = simple
	if _, err := b.land(c); !errors.Is(err, ErrFenced) {
		t.Errorf("got %v", err)
	}
	b.unmoved(0, 0)
}

func TestALeaseThatIsTakenDuringTheChunkFencesIt(t *testing.T) {
	b := setup(t, Options{})
	b.started(2)
	b.lander.o.Failpoint = func(step string) {
		if step == "begin" { // the taker commits before the positions are locked
			b.exec("UPDATE connector._cursor SET fence = fence + 1")
		}
	}
	if _, err := b.land(b.chunk(0, []string{"n", "s"}, numbered(2, 5))); !errors.Is(err, ErrFenced) {
		t.Errorf("got %v", err)
	}
}

func TestRowsThatVanishEndTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		ddl      string
		vanishes bool
	}{
		"trigger that returns null": {`CREATE FUNCTION public.swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.n % 3 = 0 THEN RETURN NULL; END IF; RETURN NEW; END';
			CREATE TRIGGER swallow BEFORE INSERT ON connector.t_orders FOR EACH ROW EXECUTE FUNCTION public.swallow()`, true},
		// COPY minds no rules, and the owner no policy that is not forced: the rows land.
		"rule":   {"CREATE RULE nothing AS ON INSERT TO connector.t_orders DO INSTEAD NOTHING", false},
		"policy": {"CREATE POLICY nothing ON connector.t_orders AS RESTRICTIVE FOR INSERT WITH CHECK (false)", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, Options{})
			b.started(2)
			b.exec(c.ddl)
			landed, err := b.land(b.chunk(0, []string{"n", "s"}, numbered(2, 5)))
			if !c.vanishes {
				if err != nil || landed.Written != 5 {
					t.Errorf("landed %+v, %v", landed, err)
				}
				return
			}
			if e := wantError(t, err, "rows_vanished", ""); !strings.Contains(e.Message, "3 of the 5") || !strings.Contains(e.Hint, "pg_trigger") {
				t.Errorf("message %s, hint %s", e.Message, e.Hint)
			}
			b.unmoved(2, 2)
		})
	}
}

func TestFaultsOfTheEnvironmentMakeNoDeadLetters(t *testing.T) {
	raising := func(state string) string {
		return `CREATE FUNCTION public.fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no luck' USING ERRCODE = '` + state + `'; END $$;
			CREATE TRIGGER fault BEFORE INSERT ON connector.t_orders FOR EACH ROW EXECUTE FUNCTION public.fault()`
	}
	for name, c := range map[string]struct{ ddl, code, state string }{
		"disk full":                   {raising("53100"), "database_error", "53100"},
		"io error":                    {raising("58030"), "database_error", "58030"},
		"corruption":                  {raising("XX001"), "database_error", "XX001"},
		"statement cancelled":         {raising("57014"), "database_error", "57014"},
		"serialization":               {raising("40001"), "database_error", "40001"},
		"deadlock":                    {raising("40P01"), "database_error", "40P01"},
		"missing function":            {raising("42883"), "database_error", "42883"},
		"object not in state":         {raising("55000"), "database_error", "55000"},
		"right of a trigger":          {"CREATE TABLE public.audit (n bigint); CREATE FUNCTION public.fault() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.audit VALUES (NEW.n); RETURN NEW; END'; CREATE TRIGGER fault BEFORE INSERT ON connector.t_orders FOR EACH ROW EXECUTE FUNCTION public.fault()", "not_authorized", "42501"},
		"forced row security":         {"ALTER TABLE connector.t_orders FORCE ROW LEVEL SECURITY", "database_error", "0A000"},
		"sequence used up":            {"ALTER SEQUENCE connector.t_orders_id_seq MAXVALUE 3", "database_error", "2200H"},
		"ids that are taken":          {"INSERT INTO connector.t_orders (id, _row_hash, tenant_id) SELECT i, 'by hand ' || i, 1 FROM generate_series(4, 9) AS i", "database_error", "23505"},
		"a right taken from the role": {"REVOKE highwater_owner FROM " + sidecarRole, "not_authorized", "42501"},
		"read only database":          {"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$", "database_error", "25006"},
		"a wrong advance":             {"UPDATE connector._run_partition SET target_offset = 3", "internal", "KC011"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(c.ddl, "REVOKE") {
				defer func() { harnessExec(t, "GRANT highwater_owner TO "+sidecarRole) }()
			}
			b := setup(t, Options{WaitMax: 100 * time.Millisecond})
			b.started(2)
			rows := b.rows("true")
			admin := b.session()
			do(t, admin, c.ddl)
			b.pool.Reset()
			rows += one[int64](b, "SELECT count(*) FROM connector.t_orders WHERE _row_hash LIKE 'by hand%'")
			_, err := b.land(b.chunk(0, []string{"n", "s"}, numbered(2, 5)))
			e := wantError(t, err, c.code, c.state)
			if c.code == "not_authorized" && !strings.HasPrefix(e.Hint, "GRANT highwater_owner TO") && !strings.Contains(e.Hint, "GRANT INSERT ON TABLE audit TO") {
				t.Errorf("hint %s", e.Hint)
			}
			if !strings.Contains(e.Message, `"connector"."t_orders" partition 0 [2,7)`) {
				t.Errorf("message %s", e.Message)
			}
			b.unmoved(2, rows)
		})
	}
}

func harnessExec(tb testing.TB, sql string) {
	tb.Helper()
	conn, err := pgx.Connect(context.Background(), harness.Server(tb).URL("postgres"))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	do(tb, conn, sql)
}

func TestAReadOnlyServerIsWaitedFor(t *testing.T) {
	b := setup(t, Options{})
	b.started(2)
	do(t, b.session(), "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$")
	b.pool.Reset()
	again := b.session()
	do(t, again, "SET default_transaction_read_only = off")
	var tries atomic.Int32
	b.lander.o.Failpoint = func(step string) {
		if step == "begin" && tries.Add(1) == 3 {
			do(t, again, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$")
		}
	}
	if _, err := b.land(b.chunk(0, []string{"n", "s"}, numbered(2, 5))); err != nil {
		t.Fatal(err)
	}
	if tries.Load() < 4 {
		t.Errorf("%d tries: it never met a read-only session", tries.Load())
	}
}

func TestHostileSettingsOfTheDatabaseDoNotReachAChunk(t *testing.T) {
	b := setup(t, Options{})
	b.started(2)
	for _, s := range []string{
		"statement_timeout = '100ms'", "lock_timeout = '50ms'", "idle_in_transaction_session_timeout = '200ms'", "search_path = 'nowhere'", "TimeZone = 'Asia/Kathmandu'",
		"DateStyle = 'German'", "default_transaction_isolation = 'serializable'", "default_transaction_deferrable = on", "row_security = off", "standard_conforming_strings = off",
		"client_min_messages = 'debug5'", "synchronous_commit = off",
	} {
		b.exec("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET " + strings.ReplaceAll(s, "'", "''") + "', current_database()); END $$")
	}
	b.exec(`DO $$ BEGIN IF current_setting('server_version_num')::int >= 170000 THEN
		EXECUTE format('ALTER DATABASE %I SET transaction_timeout = %L', current_database(), '250ms'); END IF; END $$`)
	b.pool.Reset()
	b.exec(`ALTER TABLE connector.t_orders ADD COLUMN at timestamptz;
		CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_catalog.pg_sleep(0.3); RAISE NOTICE ''slow''; RETURN NEW; END';
		CREATE TRIGGER slow BEFORE INSERT ON connector.t_orders FOR EACH ROW EXECUTE FUNCTION public.slow()`)
	b.reshape()
	holder := b.session()
	do(t, holder, "SET idle_in_transaction_session_timeout = 0; BEGIN; SELECT FROM connector._cursor FOR UPDATE")
	idle := time.NewTimer(0)
	b.lander.o.Failpoint = func(step string) {
		switch step {
		case "begin":
			go func() {
				<-time.After(200 * time.Millisecond)
				_, _ = holder.Exec(context.Background(), "COMMIT")
			}()
		case "copied":
			idle.Reset(400 * time.Millisecond)
			<-idle.C
		}
	}
	<-idle.C
	b.must(b.chunk(0, []string{"n", "at"}, [][]string{row("9", "03.04.2026 10:00")}))
	if got := one[string](b, "SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') FROM connector.t_orders WHERE n = 9"); got != "2026-03-04 10:00" {
		t.Errorf("a time without a zone was read as %s", got)
	}
}

func TestTwoLandersOfOneRunCannotBothMoveThePosition(t *testing.T) {
	b := setup(t, Options{})
	b.started(1)
	errs := make(chan error)
	for i := range 4 {
		c := b.chunk(0, []string{"n", "s"}, numbered(100*i+1, 50))
		go func() {
			_, err := New(b.pool, Options{}).Land(t.Context(), b.run, c, b.shape)
			errs <- err
		}()
	}
	fenced := 0
	for range 4 {
		if err := <-errs; errors.Is(err, ErrFenced) {
			fenced++
		} else if err != nil {
			t.Error(err)
		}
	}
	if fenced != 3 || b.rows("true") != 51 || b.position(0) != 51 {
		t.Errorf("%d were fenced, %d rows, position %d", fenced, b.rows("true"), b.position(0))
	}
	b.audit()
}

func TestManyConnectorsShareOneLander(t *testing.T) {
	b := setup(t, Options{})
	b.started(1)
	done := make(chan error)
	for i := range 4 {
		other := *b
		other.next, other.shape = map[int32]int64{}, nil
		other.run.ID, other.run.ConnectorID, other.run.Connector, other.run.Table = uuid.New(), uuid.New(), fmt.Sprint("c", i), fmt.Sprint("t_c", i)
		other.plan(1000)
		go func() {
			c := other.chunk(0, []string{"n", "s"}, numbered(0, 100))
			c.Alters = simple
			landed, err := other.lander.Land(context.Background(), other.run, c, nil)
			for k := 1; err == nil && k < 4; k++ {
				other.next[0] += 100
				landed, err = other.lander.Land(context.Background(), other.run, other.chunk(0, []string{"n", "s"}, numbered(50*k, 100)), landed.Shape)
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for i := range 4 {
		if n := one[int64](b, fmt.Sprintf("SELECT count(*) FROM connector.t_c%d", i)); n != 250 {
			t.Errorf("connector %d has %d rows", i, n)
		}
	}
}
