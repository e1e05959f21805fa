package api_test

import (
	"testing"
	"time"

	"highwater/tests/harness"
)

// makeTable makes a connector's table as its first chunk does, as far as deleting it is concerned.
func makeTable(s *session, name string) {
	s.tb.Helper()
	table := get[string](s, "SELECT quote_ident(table_name) FROM connector._endpoint WHERE connector = $1", name)
	s.must("CREATE TABLE connector." + table + " (id bigserial PRIMARY KEY, a text)")
	s.must("ALTER TABLE connector." + table + " OWNER TO highwater_owner")
	s.must("INSERT INTO connector." + table + " (a) VALUES ('x')")
	s.must("UPDATE connector._endpoint SET table_made = true WHERE connector = $1", name)
	s.must("INSERT INTO connector._column (connector_id, column_name, tenant_id, field, data_type) SELECT connector_id, 'a', tenant_id, 'a', 'text' FROM connector._endpoint WHERE connector = $1", name)
	s.must("INSERT INTO connector._lag (connector_id, partition, tenant_id, topic, log_start_offset, high_watermark) SELECT connector_id, 0, tenant_id, 't', 0, 9 FROM connector._endpoint WHERE connector = $1", name)
	for offset, status := range []string{"open", "discarded", "replayed"} {
		s.must(`INSERT INTO connector._dlq (tenant_id, connector_id, connector, run_id, reason, message, payload, status, topic, partition, "offset")
			SELECT tenant_id, connector_id, connector, gen_random_uuid(), 'MalformedSource', 'm', '{}', $2, 't', 0, $3 FROM connector._endpoint WHERE connector = $1`, name, status, offset)
	}
	position(s, name)
}

// waitForLock returns once the other session waits for a lock.
func waitForLock(tb testing.TB, watcher, waiting *session) {
	tb.Helper()
	pid := waiting.PgConn().PID()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		// pg_sleep keeps the watcher off the two cores that the others need.
		if get[bool](watcher, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock') FROM pg_sleep(0.005)", pid) {
			return
		}
	}
	tb.Fatal("the session waits for no lock")
}

const left = `SELECT concat_ws(' ', (SELECT count(*) FROM connector.manifest), (SELECT count(*) FROM connector._endpoint), (SELECT count(*) FROM connector._cursor),
	(SELECT count(*) FROM connector._lag), (SELECT count(*) FROM connector._column), (SELECT string_agg(status, ',' ORDER BY status) FROM connector._dlq),
	coalesce(to_regclass('connector.t_partners')::text, 'no table'), (SELECT string_agg(action, ',') FROM connector._audit))`

func TestDeleteErases(t *testing.T) {
	s := connect(t, harness.Database(t))
	declare(s, "acme", `{}`)
	makeTable(s, "acme")
	scheduled, running, failed := ledger(s, "acme", "Scheduled"), ledger(s, "acme", "Running"), ledger(s, "acme", "Failed")
	s.must("INSERT INTO connector._log (run_id, connector, tenant_id, level, message) VALUES ($1, 'acme', 1, 'INFO', 'm')", failed)
	s.must("DELETE FROM connector.manifest WHERE name = 'acme'")
	if got, want := get[string](s, left), "0 0 0 0 0 discarded,replayed no table drop"; got != want {
		t.Errorf("left %q, want %q", got, want)
	}
	for _, run := range []string{scheduled, running} {
		got := get[string](s, "SELECT concat_ws(' ', status, code, ended_at IS NOT NULL, message) FROM connector._run WHERE run_id = $1", run)
		contains(t, "run", got, "Cancelled deleted t", `"acme" was deleted by postgres`)
		if get[int](s, "SELECT count(*) FROM connector._log WHERE run_id = $1", run) != 1 {
			t.Error("the log says nothing of it")
		}
	}
	if got := get[string](s, "SELECT status FROM connector._run WHERE run_id = $1", failed); got != "Failed" {
		t.Errorf("a run that had ended is %s", got)
	}
	contains(t, "audit", get[string](s, "SELECT role || ' ' || detail::text FROM connector._audit"), "postgres", running, scheduled, `"table": "t_partners"`, `"table_dropped": true`)
	declare(s, "acme", `{}`) // the names are free again
}

func TestADeleteThatIsRolledBackErasesNothing(t *testing.T) {
	s := connect(t, harness.Database(t))
	declare(s, "acme", `{}`)
	makeTable(s, "acme")
	before := get[string](s, left)
	s.must("BEGIN; DELETE FROM connector.manifest; ROLLBACK")
	if got := get[string](s, left); got != before {
		t.Errorf("left %q, want %q", got, before)
	}
}

func TestDeleteIsRefusedWhileSomethingDependsOnTheTable(t *testing.T) {
	s := connect(t, harness.Database(t))
	declare(s, "acme", `{}`)
	makeTable(s, "acme")
	s.must("CREATE VIEW public.depends AS SELECT a FROM connector.t_partners")
	before := get[string](s, left)
	for _, gesture := range []string{"DELETE FROM connector.manifest", "SELECT connector.drop('acme')"} {
		err := s.fails("2BP01", gesture)
		contains(t, "message", err.Message, `"acme"`, "t_partners")
		contains(t, "detail", err.Detail, "depends")
		contains(t, "hint", err.Hint, "keep_table")
	}
	if got := get[string](s, left); got != before {
		t.Errorf("left %q, want %q", got, before)
	}
	s.must("SELECT connector.drop('acme', keep_table => true)")
	if got, want := get[string](s, left), "0 0 0 0 0 discarded,replayed connector.t_partners drop"; got != want {
		t.Errorf("left %q, want %q", got, want)
	}
	if get[int](s, "SELECT count(*) FROM public.depends") != 1 {
		t.Error("the table that was kept has lost its row")
	}
}

func TestDeleteLeavesTablesThatAreNotOurs(t *testing.T) {
	for name, put := range map[string]string{
		"another's table":       "CREATE TABLE connector.t_partners (a int)",
		"another's view":        "CREATE VIEW connector.t_partners AS SELECT 1 AS a",
		"our materialized view": "CREATE MATERIALIZED VIEW connector.t_partners AS SELECT 1 AS a; ALTER MATERIALIZED VIEW connector.t_partners OWNER TO highwater_owner",
	} {
		t.Run(name, func(t *testing.T) {
			s := connect(t, harness.Database(t))
			declare(s, "acme", `{}`)
			s.must(put)
			s.must("UPDATE connector._endpoint SET table_made = true")
			s.warnings()
			s.must("DELETE FROM connector.manifest")
			if !get[bool](s, "SELECT to_regclass('connector.t_partners') IS NOT NULL") {
				t.Error("it was dropped")
			}
			if len(s.warnings()) != 1 {
				t.Error("nobody was told")
			}
		})
	}
	s := connect(t, harness.Database(t))
	declare(s, "acme", `{}`)
	s.must("CREATE TABLE connector.t_partners (a int); ALTER TABLE connector.t_partners OWNER TO highwater_owner")
	s.must("DELETE FROM connector.manifest")
	if !get[bool](s, "SELECT to_regclass('connector.t_partners') IS NOT NULL") {
		t.Error("a table that no run had made was dropped")
	}
}

// A chunk locks its positions before it writes; deleting waits for it and for nothing else, and holds the endpoint first.
func TestDeleteWaitsForTheChunkInHand(t *testing.T) {
	url := harness.Database(t)
	chunk, deleting, watcher := connect(t, url), connect(t, url), connect(t, url)
	declare(chunk, "acme", `{}`)
	makeTable(chunk, "acme")
	chunk.must("BEGIN; SELECT FROM connector._cursor FOR UPDATE")
	chunk.must("INSERT INTO connector.t_partners (a) VALUES ('y')")
	done := make(chan error, 1)
	go func() {
		_, err := deleting.Exec(t.Context(), "DELETE FROM connector.manifest")
		done <- err
	}()
	waitForLock(t, watcher, deleting)
	if get[int](watcher, "SELECT count(*) FROM (SELECT FROM connector._endpoint FOR UPDATE SKIP LOCKED) AS e") != 0 {
		t.Error("the endpoint is free while the positions are waited for")
	}
	chunk.must("COMMIT")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := get[string](watcher, "SELECT coalesce(to_regclass('connector.t_partners')::text, 'no table')"); got != "no table" {
		t.Error("the table is still there")
	}
}

func TestDeletingWakesTheSidecars(t *testing.T) {
	url := harness.Database(t)
	s, listener := connect(t, url), connect(t, url)
	declare(s, "acme", `{}`)
	ledger(s, "acme", "Running")
	listener.must("LISTEN highwater")
	s.must("DELETE FROM connector.manifest")
	if _, err := listener.WaitForNotification(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestDropAndGetOfAnUnknownConnector(t *testing.T) {
	s := connect(t, harness.Database(t))
	for _, call := range []string{"connector.drop('nobody')", "connector.drop('nobody', true)", "connector.get('nobody')", "connector.drop(NULL)", "connector.get(NULL)"} {
		if err := s.fails("P0002", "SELECT "+call); err.Hint == "" {
			t.Errorf("%s: no hint", call)
		}
	}
}

// Many connectors deleted at once leave nothing either.
func TestDeleteOfAll(t *testing.T) {
	s := connect(t, harness.Database(t))
	s.must("INSERT INTO connector.manifest (name, scopes, spec) SELECT 'c-' || i, '{a}', $1::jsonb || jsonb_build_object('name', 'c_' || i) FROM generate_series(1, 20) AS i", least)
	s.must("DELETE FROM connector.manifest")
	if n := get[int](s, "SELECT count(*) FROM connector._endpoint"); n != 0 {
		t.Errorf("%d endpoints are left", n)
	}
}
