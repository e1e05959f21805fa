package api_test

import (
	"strings"
	"testing"

	"highwater/tests/harness"
)

// position stores a position, as the first run of a connector does.
func position(s *session, name string) {
	s.tb.Helper()
	s.must("INSERT INTO connector._cursor (connector_id, partition, tenant_id, next_offset) SELECT connector_id, 0, tenant_id, 10 FROM connector.manifest WHERE name = $1", name)
}

// ledger makes a run of the given status.
func ledger(s *session, name, status string) string {
	s.tb.Helper()
	return get[string](s, `INSERT INTO connector._run (run_id, connector_id, connector, tenant_id, status, started_by, requested_by)
		SELECT gen_random_uuid(), connector_id, name, tenant_id, $2, 'manual', 'tester' FROM connector.manifest WHERE name = $1 RETURNING run_id::text`, name, status)
}

func version(s *session, name string) int {
	s.tb.Helper()
	return get[int](s, "SELECT mapping_version FROM connector._endpoint WHERE connector = $1", name)
}

func TestInsertFillsInWhatTheRowLeavesOut(t *testing.T) {
	s := connect(t, harness.Database(t))
	s.must(`INSERT INTO connector.manifest (name, connector_type, scopes, spec, connector_id, created_at)
		VALUES ('acme', NULL, NULL, $1, '00000000-0000-0000-0000-000000000001', '2001-01-01')`, least)
	got := get[string](s, `SELECT concat_ws(' ', connector_type, scopes, tenant_id, connector_id <> '00000000-0000-0000-0000-000000000001',
		created_at > '2020-01-01', updated_at = created_at) FROM connector.manifest`)
	if want := "kafka {} 1 t t t"; got != want {
		t.Errorf("stored %q, want %q", got, want)
	}
	got = get[string](s, "SELECT concat_ws(' ', e.connector, e.tenant_id, e.table_name, e.mapping_version, e.table_made) FROM connector._endpoint AS e JOIN connector.manifest USING (connector_id)")
	if want := "acme 1 t_partners 1 f"; got != want {
		t.Errorf("endpoint %q, want %q", got, want)
	}
	if w := s.warnings(); len(w) != 1 || !strings.HasPrefix(w[0].Message, "metadata.scopes") || w[0].Hint == "" {
		t.Errorf("warnings %v, want one about scopes", w)
	}
}

func TestTheStoredSpecIsCanonical(t *testing.T) {
	s := connect(t, harness.Database(t))
	declare(s, "acme", `{"poll_timeout_ms": 2000.0, "chunk_rows": "auto", "types": {"a": "numeric(10, 2)", "b": "double precision"}, "rename": {"x \"y\"": "Z ü"}}`)
	got := get[string](s, "SELECT connector.get('acme')::text")
	want := `{"name": "partners", "topic": "acme.partners", "types": {"a": "numeric(10,2)", "b": "double precision"}, "rename": {"x \"y\"": "Z ü"}, "brokers": "broker-1:9092", "chunk_rows": "auto", "poll_timeout_ms": 2000}`
	if got != want {
		t.Errorf("stored %s, want %s", got, want)
	}

	for name, c := range map[string]struct{ sent, stored string }{
		"event-hubs": {
			`{"preset": "event-hubs", "name": "a", "topic": "t", "namespace": "my-namespace", "connection_string_env": "CONN"}`,
			`{"auth": {"kind": "sasl-plain", "password_env": "CONN", "username_env": "EVENT_HUBS_SASL_USERNAME", "security_protocol": "SASL_SSL"}, "name": "a", "topic": "t", "brokers": "my-namespace.servicebus.windows.net:9093"}`,
		},
		"confluent-cloud": {
			`{"preset": "confluent-cloud", "name": "b", "topic": "t", "bootstrap": "pkc:9092", "api_key_env": "K", "api_secret_env": "S"}`,
			`{"auth": {"kind": "sasl-plain", "password_env": "S", "username_env": "K", "security_protocol": "SASL_SSL"}, "name": "b", "topic": "t", "brokers": "pkc:9092"}`,
		},
		"msk-scram": {
			`{"preset": "msk-scram", "name": "c", "topic": "t", "bootstrap": "b-1:9096", "username_env": "U", "password_env": "P"}`,
			`{"auth": {"kind": "sasl-scram-sha-512", "password_env": "P", "username_env": "U", "security_protocol": "SASL_SSL"}, "name": "c", "topic": "t", "brokers": "b-1:9096"}`,
		},
	} {
		s.must("INSERT INTO connector.manifest (name, scopes, spec) VALUES ($1, '{a}', $2)", name, c.sent)
		if got := get[string](s, "SELECT connector.get($1)::text", name); got != c.stored {
			t.Errorf("%s is stored as %s, want %s", name, got, c.stored)
		}
		s.must("UPDATE connector.manifest SET spec = $2 WHERE name = $1", name, c.sent)
		if v := version(s, name); v != 1 {
			t.Errorf("sending %s again makes configuration %d", name, v)
		}
	}
}

func TestARefusedManifestStoresNothing(t *testing.T) {
	s := connect(t, harness.Database(t))
	err := s.fails("22023", `INSERT INTO connector.manifest (name, spec) VALUES ('Acme', '{"topic": "", "toppic": 1}')`)
	contains(t, "message", err.Message, `"Acme"`, "4 errors", "2 warnings")
	contains(t, "detail", err.Detail, "ERROR metadata.name: ", "\nERROR spec.name: ", "\nERROR spec.brokers: ", "\nERROR spec.topic: ", "\nWARN metadata.scopes: ", "\nWARN spec.toppic: ")
	contains(t, "hint", err.Hint, "spec.toppic: Did you mean topic?", "connector.describe()")
	for _, spec := range []any{nil, "null", "[]", `"x"`, "1"} {
		s.fails("22023", "INSERT INTO connector.manifest (name, spec) VALUES ('acme', $1)", spec)
	}
	s.fails("22023", "INSERT INTO connector.manifest (spec) VALUES ($1)", least)
	s.fails("22023", "INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme', '{a,NULL}', $1)", least)
	s.fails("22023", "INSERT INTO connector.manifest (name, connector_type, spec) VALUES ('acme', 'jdbc', $1)", least)
	s.fails("22P05", `INSERT INTO connector.manifest (name, spec) VALUES ('acme', '{"rename": {"a": "\u0000"}}')`)
	if n := get[int](s, "SELECT (SELECT count(*) FROM connector.manifest) + (SELECT count(*) FROM connector._endpoint)"); n != 0 {
		t.Errorf("%d rows were stored", n)
	}
	declare(s, "acme", `{}`)
	s.fails("22023", `UPDATE connector.manifest SET spec = spec || '{"topic": 1}'`)
	s.fails("23505", "INSERT INTO connector.manifest (name, spec) VALUES ('acme', $1)", `{"name": "b", "brokers": "a:1", "topic": "t"}`)
	if v := version(s, "acme"); v != 1 {
		t.Errorf("a refused UPDATE makes configuration %d", v)
	}
}

func TestAnUpsertWarnsOnce(t *testing.T) {
	s := connect(t, harness.Database(t))
	upsert := func() {
		t.Helper()
		s.warnings()
		s.must("INSERT INTO connector.manifest (name, spec) VALUES ('acme', $1) ON CONFLICT (name) DO UPDATE SET spec = EXCLUDED.spec, scopes = EXCLUDED.scopes",
			`{"name": "partners", "brokers": "broker-1:9092", "topic": "acme.partners", "poll_timeout": 50}`)
		w := s.warnings()
		if len(w) != 2 || !strings.HasPrefix(w[0].Message, "metadata.scopes: ") || !strings.HasPrefix(w[1].Message, "spec.poll_timeout: ") {
			t.Fatalf("warnings %v, want one about scopes, one about poll_timeout", w)
		}
		contains(t, "hint", w[1].Hint, "poll_timeout_ms")
	}
	upsert()
	upsert()
	if v := version(s, "acme"); v != 1 {
		t.Errorf("the same spec again makes configuration %d", v)
	}
}

func TestIdentityNeverChanges(t *testing.T) {
	s := connect(t, harness.Database(t))
	declare(s, "acme", `{}`)
	for _, set := range []string{"name = 'other'", "connector_id = gen_random_uuid()", "tenant_id = 2", "tenant_id = NULL", "name = NULL"} {
		if err := s.fails("0A000", "UPDATE connector.manifest SET "+set); err.Hint == "" {
			t.Errorf("%s: no hint", set)
		}
	}
	s.must("UPDATE connector.manifest SET created_at = '2001-01-01', updated_at = '2001-01-01'")
	if !get[bool](s, "SELECT created_at > '2020-01-01' AND updated_at > '2020-01-01' FROM connector.manifest") {
		t.Error("times can be forged")
	}
}

func TestFixedKeysWhilePositionsExist(t *testing.T) {
	s := connect(t, harness.Database(t))
	declare(s, "acme", `{"include": ["topic", "offset"]}`)
	changes := map[string]string{
		"name": `{"name": "other"}`, "topic": `{"topic": "other"}`, "format": `{"format": "raw"}`, "layout": `{"layout": "document"}`,
		"dedup": `{"dedup": "offset"}`, "include": `{"include": ["topic", "offset", "key"]}`,
	}
	position(s, "acme")
	for key, change := range changes {
		err := s.fails("55000", "UPDATE connector.manifest SET spec = spec || $1::jsonb", change)
		contains(t, "message", err.Message, `"acme"`, key)
		contains(t, "hint", err.Hint, "SELECT connector.reset_cursor('acme');")
	}
	s.must(`UPDATE connector.manifest SET spec = spec || '{"format": "json", "layout": "columns", "dedup": "content", "include": ["offset", "topic"]}'`)
	s.must(`UPDATE connector.manifest SET spec = spec || '{"brokers": "other:9092", "schedule": "* * * * *", "read": "full", "rename": {"a": "b"}}', scopes = '{other}'`)
	if v := version(s, "acme"); v != 3 {
		t.Errorf("two changes make configuration %d, want 3", v)
	}
	s.must("UPDATE connector.manifest SET scopes = '{third}', spec = spec")
	if v := version(s, "acme"); v != 3 {
		t.Errorf("no change of the spec makes configuration %d, want 3", v)
	}

	s.must("DELETE FROM connector._cursor")
	run := ledger(s, "acme", "Running")
	for _, change := range changes {
		s.fails("55006", "UPDATE connector.manifest SET spec = spec || $1::jsonb", change)
	}
	s.must("UPDATE connector._run SET status = 'Failed', ended_at = now() WHERE run_id = $1", run)
	s.must("UPDATE connector._endpoint SET topic = 'acme.partners', topic_id = gen_random_uuid(), cluster_id = 'c'")
	for _, change := range changes {
		s.must("UPDATE connector.manifest SET spec = spec || $1::jsonb", `{"format": "json", "layout": "columns"}`)
		s.must("UPDATE connector.manifest SET spec = spec || $1::jsonb", change)
	}
	if !get[bool](s, "SELECT topic IS NULL AND topic_id IS NULL AND cluster_id IS NULL FROM connector._endpoint") {
		t.Error("the identity of the old topic stays with the new one")
	}
}

func TestOneConnectorATable(t *testing.T) {
	s := connect(t, harness.Database(t))
	declare(s, "a-b", `{"name": "a_b"}`)
	s.must("CREATE TABLE connector.t_taken (a int)")
	s.must("CREATE TABLE connector.something (a int)")
	s.must("CREATE INDEX t_indexed_pkey ON connector.something (a)")
	s.must("CREATE SEQUENCE connector.t_numbered_id_seq")
	s.must("CREATE TYPE connector.t_typed AS ENUM ('x')")
	s.must("CREATE TABLE public.t_free (a int)")
	for name, want := range map[string]string{
		"a_b": `"a-b"`, "a_b_pkey": `"a-b"`, "a_b__row_hash_key": `"a-b"`, "a_b_id_seq": `"a-b"`, "a_b_idx_tenant_id": `"a-b"`,
		"taken": "taken", "indexed": "taken", "numbered": "taken", "typed": "taken",
	} {
		err := s.fails("22023", "INSERT INTO connector.manifest (name, spec) VALUES ('c', $1::jsonb || jsonb_build_object('name', $2::text))", least, name)
		contains(t, "message", err.Message, `"c"`)
		contains(t, "detail", err.Detail, "ERROR spec.name: ", "connector.t_"+name, want)
		if err.Hint == "" {
			t.Error("no hint")
		}
	}
	for _, name := range []string{"free", "A_b", "a_b_"} {
		declare(s, "c-"+strings.ToLower(name), `{"name": "`+name+`"}`)
	}
	s.fails("22023", `UPDATE connector.manifest SET spec = spec || '{"name": "free"}' WHERE name = 'a-b'`)
	if n := get[int](s, "SELECT count(*) FROM connector._endpoint"); n != 4 {
		t.Errorf("%d endpoints, want 4", n)
	}
}

func TestTwoSessionsCannotDeclareOneTable(t *testing.T) {
	url := harness.Database(t)
	one, two := connect(t, url), connect(t, url)
	one.must("BEGIN")
	declare(one, "one", `{}`)
	done := make(chan error, 1)
	go func() {
		_, err := two.Exec(t.Context(), "INSERT INTO connector.manifest (name, spec) VALUES ('two', $1)", least)
		done <- err
	}()
	waitForLock(t, connect(t, url), two)
	one.must("COMMIT")
	if pg := pgError(t, <-done); pg.Code != "22023" {
		t.Errorf("the second is refused with %s (%s), want 22023", pg.Code, pg.Message)
	}
}

func TestRenamingTheTableKeepsTheOldOne(t *testing.T) {
	s := connect(t, harness.Database(t))
	declare(s, "acme", `{}`)
	makeTable(s, "acme")
	s.must("DELETE FROM connector._cursor")
	s.warnings()
	s.must(`UPDATE connector.manifest SET spec = spec || '{"name": "other"}'`)
	if w := s.warnings(); len(w) != 1 || w[0].Hint == "" {
		t.Errorf("warnings %v, want one about the table that is kept", w)
	}
	got := get[string](s, "SELECT concat_ws(' ', table_name, table_made, (SELECT count(*) FROM connector._column), to_regclass('connector.t_partners')) FROM connector._endpoint")
	if want := "t_other f 0 connector.t_partners"; got != want {
		t.Errorf("endpoint %q, want %q", got, want)
	}
	s.must("DELETE FROM connector.manifest")
	if !get[bool](s, "SELECT to_regclass('connector.t_partners') IS NOT NULL AND (SELECT count(*) = 2 FROM connector._audit)") {
		t.Error("the table that was left is gone, or was left without a trace")
	}
}

func TestTheManifestCannotBeTruncated(t *testing.T) {
	s := connect(t, harness.Database(t))
	declare(s, "acme", `{}`)
	if err := s.fails("0A000", "TRUNCATE connector.manifest"); err.Hint == "" {
		t.Error("no hint")
	}
	s.fails("0A000", "TRUNCATE connector.manifest CASCADE")
}

func TestALargeManifestIsStored(t *testing.T) {
	s := connect(t, harness.Database(t))
	s.must(`INSERT INTO connector.manifest (name, scopes, spec)
		SELECT 'acme', '{a}', $1::jsonb || jsonb_build_object('rename', jsonb_object_agg('field ' || i, 'column ' || i)) FROM generate_series(1, 1500) AS i`, least)
	if n := get[int](s, "SELECT octet_length(spec::text) FROM connector.manifest"); n < 20000 {
		t.Errorf("only %d bytes were stored", n)
	}
}
