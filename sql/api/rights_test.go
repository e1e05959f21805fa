package api_test

import (
	"slices"
	"strings"
	"testing"

	"highwater/tests/harness"
)

var views = strings.Fields("runs run_partitions accounting log progress connector_cursor lag dlq connectors sidecars audit")

// Row security only holds in a view that runs with its caller's rights.
func TestEveryViewRunsWithItsCallersRights(t *testing.T) {
	s := connect(t, harness.Database(t))
	if got := get[string](s, `SELECT coalesce(string_agg(c.relname, ' '), '') FROM pg_class AS c
		WHERE c.relnamespace = 'connector'::regnamespace AND c.relkind = 'v' AND NOT coalesce('security_invoker=on' = ANY (c.reloptions), false)`); got != "" {
		t.Errorf("not so: %s", got)
	}
}

// calls is every function of running, positions and dead letters, with arguments that need nothing to be there.
var calls = []struct {
	sql    string
	reader bool // a reader may call it too
}{
	{"SELECT connector.run('seven')", false},
	{"SELECT connector.cancel(run_id) FROM connector.runs", false},
	{"CALL connector.catch_up('nobody')", false},
	{"SELECT connector.reset_cursor('seven')", false},
	{"SELECT connector.seek('seven', now())", false},
	{"SELECT connector.seek('seven', 0, 1)", false},
	{"SELECT connector.dlq_discard(gen_random_uuid())", false},
	{"SELECT connector.dlq_discard(ARRAY[gen_random_uuid()])", false},
	{"SELECT connector.dlq_replayed(gen_random_uuid())", false},
	{"SELECT connector.dlq_replayed(ARRAY[gen_random_uuid()])", false},
	{"SELECT connector.dlq_retry(gen_random_uuid())", false},
	{"SELECT connector.dlq_retry(ARRAY[gen_random_uuid()])", false},
	{"SELECT connector.trace('seven', 0, 0)", true},
	{"SELECT connector.adopt()", false},
	{"SELECT connector.wait(gen_random_uuid())", true},
	{"SELECT connector.verify()", true},
}

func TestWhoMayCallWhat(t *testing.T) {
	_, operator, _, reader, stranger := tenants(t)
	for _, c := range calls {
		for who, s := range map[string]*session{"operator": operator, "reader": reader, "stranger": stranger} {
			_, err := s.Exec(t.Context(), c.sql)
			denied := err != nil && pgError(t, err).Code == "42501"
			if want := who == "stranger" || (who == "reader" && !c.reader); denied != want {
				t.Errorf("%s by a %s: denied %v, want %v (%v)", c.sql, who, denied, want, err)
			}
		}
	}
}

func TestWhoMayReadWhat(t *testing.T) {
	_, operator, _, reader, stranger := tenants(t)
	for _, view := range views {
		operator.must("SELECT * FROM connector." + view)
		reader.must("SELECT * FROM connector." + view)
		stranger.fails("42501", "SELECT * FROM connector."+view)
	}
	for _, s := range []*session{operator, reader} {
		for _, table := range strings.Fields("_endpoint _cursor _run _run_partition _dlq _log _audit _lag _sidecar _schedule _leader _installation") {
			s.fails("42501", "DELETE FROM connector."+table)
			s.fails("42501", "SELECT FROM connector."+table+" FOR UPDATE")
		}
		s.fails("42501", "INSERT INTO connector_queue.river_job (kind, args) VALUES ('connector_run', '{}')")
		s.fails("42501", "SELECT connector._enqueue(gen_random_uuid())")
		s.fails("42501", "SELECT connector._end(gen_random_uuid(), 1, 'Completed', 'ok', '', '', false, '{}')")
		s.fails("42501", "SELECT connector._audit('x', 'y', 1)")
	}
}

// Another tenant's connectors, runs and positions are answered exactly as unknown ones, and seen in no view.
func TestTenantsDoNotMeetInTheLedger(t *testing.T) {
	admin, seven, eight, reader, _ := tenants(t)
	w := newWorker(t, admin.Config().ConnString(), "one")
	for _, s := range []*session{seven, eight} {
		name := get[string](s, "SELECT name FROM connector.manifest")
		run := get[[16]byte](s, "SELECT connector.run($1)", name)
		fence := w.take(run)
		w.plan(run, fence, span{Target: 5, HighWatermark: 9})
		w.must("SELECT connector._say($1, 'INFO', 'hello')", run)
		w.advance(run, fence, advance{To: 1, DeadLetters: 1})
		letters(t, admin, run, 1)
		admin.must("SELECT connector._audit('seek', $1, $2)", name, map[string]int{"seven": 7, "eight": 8}[name])
	}
	for _, s := range []*session{seven, reader} {
		for _, view := range views {
			if view == "sidecars" { // they serve everybody
				continue
			}
			column := map[string]string{"connectors": "name", "run_partitions": "(SELECT connector FROM connector._run AS r WHERE r.run_id = v.run_id)"}[view]
			if column == "" {
				column = "connector"
			}
			if got := get[string](s, "SELECT coalesce(string_agg(DISTINCT "+column+", ' '), 'nothing') FROM connector."+view+" AS v"); got != "seven" {
				t.Errorf("connector.%s shows %s", view, got)
			}
		}
	}
	theirs := get[[16]byte](eight, "SELECT run_id FROM connector.runs")
	for _, c := range []struct {
		sql  string
		args []any
	}{
		{"SELECT connector.run('eight')", nil},
		{"SELECT connector.reset_cursor('eight')", nil},
		{"SELECT connector.seek('eight', 0, 1)", nil},
		{"SELECT connector.seek('eight', now())", nil},
		{"SELECT connector.trace('eight', 0, 0)", nil},
		{"SELECT connector.cancel($1)", []any{theirs}},
		{"SELECT connector.wait($1)", []any{theirs}},
	} {
		known := seven.fails("P0002", c.sql, c.args...)
		unknown := seven.fails("P0002", strings.ReplaceAll(c.sql, "eight", "nobody"), replaced(c.args)...)
		if known.Hint != unknown.Hint || shape(known.Message) != shape(unknown.Message) {
			t.Errorf("%s: %q, but an unknown one %q", c.sql, known.Message, unknown.Message)
		}
	}
	if n := get[int](seven, "SELECT count(*) FROM connector.verify() WHERE connector = 'eight'"); n != 0 {
		t.Errorf("verify shows %d", n)
	}
}

func replaced(args []any) []any {
	out := slices.Clone(args)
	for i := range out {
		out[i] = [16]byte{1}
	}
	return out
}

// shape is a message without the name or id it is about.
func shape(message string) string {
	words := strings.Fields(message)
	return words[0] + " " + strings.Join(words[2:], " ")
}

// What runs as its owner does not look through its caller's path, nor at its temporary tables.
func TestRunningLooksThroughNoCallersPath(t *testing.T) {
	admin, seven, _, _, _ := tenants(t)
	admin.must("CREATE SCHEMA mallory; GRANT ALL ON SCHEMA mallory TO PUBLIC; GRANT TEMP ON DATABASE " + get[string](admin, "SELECT quote_ident(current_database())") + " TO PUBLIC")
	for _, def := range []string{
		"clock_timestamp() RETURNS timestamptz", "gen_random_uuid() RETURNS uuid", "pg_notify(text, text) RETURNS void", "format(text, VARIADIC text[]) RETURNS text",
		"coalesce_(text) RETURNS text", "quote_literal(text) RETURNS text", "current_setting(text) RETURNS text", "pg_sleep(double precision) RETURNS void",
	} {
		seven.must("CREATE FUNCTION mallory." + def + " LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'mallory ran as %', current_user; END $$")
	}
	for _, table := range strings.Fields("manifest _endpoint _cursor _run _run_partition _dlq _log _lag _audit _sidecar river_job runs progress") {
		seven.must("CREATE TEMP TABLE " + table + " (connector_id uuid, name text, tenant_id bigint, run_id uuid); GRANT ALL ON " + table + " TO PUBLIC")
	}
	seven.must("SET search_path = pg_temp, mallory, connector, pg_catalog")
	for _, c := range calls {
		if strings.Contains(c.sql, "CALL") {
			continue
		}
		sql := strings.ReplaceAll(c.sql, "gen_random_uuid()", "'00000000-0000-0000-0000-000000000001'::uuid")
		if _, err := seven.Exec(t.Context(), sql); err != nil && strings.Contains(err.Error(), "mallory") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if n := get[int](admin, "SELECT count(*) FROM connector._audit WHERE connector = 'seven'"); n != 3 {
		t.Errorf("%d gestures were recorded", n)
	}
}
