package api_test

import (
	"testing"

	"highwater/tests/harness"
)

// The columns are stable API: names, types and order, and nothing between them.
func TestColumnsOfTheViews(t *testing.T) {
	s := connect(t, harness.Database(t))
	for view, want := range map[string]string{
		"runs": "run_id uuid, connector text, endpoint text, status text, records_in bigint, records_out bigint, skipped bigint, dead_letters bigint, filtered bigint, " +
			"tombstones_applied bigint, scheduled_at timestamp with time zone, started_at timestamp with time zone, ended_at timestamp with time zone, duration interval, " +
			"chunks integer, hint text, started_by text, requested_by text, message text, retryable boolean, sidecar text, duplicates bigint, code text",
		"run_partitions": "run_id uuid, topic text, partition integer, start_offset bigint, target_offset bigint, next_offset bigint, lost_from bigint, lost_to bigint, reached text",
		"accounting": "run_id uuid, connector text, topic text, partition integer, start_offset bigint, next_offset bigint, advanced bigint, written bigint, duplicates bigint, " +
			"dead_letters bigint, filtered bigint, tombstones_applied bigint, no_record bigint",
		"log":              "at timestamp with time zone, run_id uuid, connector text, level text, message text",
		"progress":         "connector text, run_id uuid, done bigint, target bigint, percent numeric, bar text, rows_per_second bigint, eta interval",
		"connector_cursor": "connector text, endpoint text, cursor jsonb, updated_at timestamp with time zone",
		"lag": "connector text, topic text, partition integer, next_offset bigint, log_start_offset bigint, high_watermark bigint, lag bigint, " +
			"measured_at timestamp with time zone",
		"dlq": "id uuid, connector text, run_id uuid, reason text, attempts integer, message text, payload jsonb, status text, topic text, partition integer, offset bigint, key text, " +
			"created_at timestamp with time zone, sqlstate text, raw bytea, headers jsonb",
		"connectors": "name text, kind text, tenant_id bigint, table_name text, topic text, schedule text, window text, status text, last_run_at timestamp with time zone, " +
			"next_run_at timestamp with time zone, data_as_of timestamp with time zone, lag bigint, open_dead_letters bigint",
		"sidecars": "sidecar text, host text, version text, started_at timestamp with time zone, last_seen_at timestamp with time zone, running integer",
		"audit":    "at timestamp with time zone, role text, action text, connector text, detail jsonb",
	} {
		if got := get[string](s, `SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
			FROM pg_attribute WHERE attrelid = ('connector.' || $1)::regclass AND attnum > 0`, view); got != want {
			t.Errorf("connector.%s has\n%s\nwant\n%s", view, got, want)
		}
	}
}

func TestConnectorsAtAGlance(t *testing.T) {
	s, w := stage(t)
	glance := func() string {
		return get[string](s, "SELECT concat_ws(' ', name, kind, table_name, topic, coalesce(status, 'never'), lag, open_dead_letters) FROM connector.connectors")
	}
	if got := glance(); got != "acme kafka t_partners acme.partners never 0" {
		t.Error(got)
	}
	run := s.run("skip")
	fence := w.take(run)
	w.plan(run, fence, span{Target: 10, HighWatermark: 15})
	w.advance(run, fence, advance{To: 10, Written: 9, DeadLetters: 1})
	w.end(run, fence, "Completed", "ok")
	letters(t, s, run, 1)
	late := s.run("skip") // one that is skipped does not hide the last run
	s.must("UPDATE connector._run SET status = 'Cancelled', code = 'skipped_active', ended_at = now() WHERE run_id = $1", late)
	if got := glance(); got != "acme kafka t_partners acme.partners Completed 5 1" {
		t.Error(got)
	}
	s.must(`UPDATE connector.manifest SET spec = spec || '{"schedule": "0 3 * * *"}'`)
	if !get[bool](s, "SELECT next_run_at > now() AND extract(hour FROM next_run_at AT TIME ZONE 'UTC') = 3 AND schedule = '0 3 * * *' FROM connector.connectors") {
		t.Error("the next run is not at three")
	}
}

func TestProgressOfARun(t *testing.T) {
	s, w := stage(t)
	run := s.run("skip")
	fence := w.take(run)
	look := func() string {
		return get[string](s, "SELECT format('%s of %s, %s %s, eta %s', done, target, percent, bar, eta IS NOT NULL) FROM connector.progress")
	}
	if got := look(); got != "0 of 0, 0 ...................., eta f" {
		t.Errorf("before the plan: %s", got)
	}
	w.plan(run, fence, span{Target: 999, HighWatermark: 999}, span{Partition: 1, Start: 5, Target: 6, HighWatermark: 6})
	w.advance(run, fence, advance{To: 998, Written: 998})
	if got := look(); got != "998 of 1000, 99.8 ####################, eta t" {
		t.Error(got)
	}
	if !get[bool](s, "SELECT rows_per_second > 0 FROM connector.progress") {
		t.Error("it has no speed")
	}
	w.end(run, fence, "Failed", "internal")
	if n := get[int](s, "SELECT count(*) FROM connector.progress"); n != 0 {
		t.Errorf("%d ended runs make progress", n)
	}
}

func TestLagIsNeverBelowZero(t *testing.T) {
	s, w := read(t)
	_ = w
	for _, c := range []struct {
		next, start, head any
		want              int64
	}{
		{10, 0, 15, 5},
		{10, 0, 8, 0},   // measured before a truncation
		{10, 12, 15, 3}, // what is gone is no lag
		{nil, 12, 15, 3},
	} {
		s.must("UPDATE connector._lag SET log_start_offset = $1, high_watermark = $2", c.start, c.head)
		if c.next == nil {
			s.must("DELETE FROM connector._cursor")
		}
		if got := get[int64](s, "SELECT lag FROM connector.lag"); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestPositionsAreShownInPartitionOrder(t *testing.T) {
	s, w := stage(t)
	run := s.run("skip")
	var spans []span
	for _, p := range []int32{10, 2, 0, 11, 1, 100} {
		spans = append(spans, span{Partition: p, Start: int64(p), Target: int64(p), HighWatermark: int64(p)})
	}
	w.plan(run, w.take(run), spans...)
	if got := get[string](s, "SELECT cursor::text FROM connector.connector_cursor"); got !=
		`{"type": "KafkaOffset", "offsets": {"0": 0, "1": 1, "2": 2, "10": 10, "11": 11, "100": 100}}` {
		t.Error(got)
	}
}

func TestEveryViewAndTableHasAComment(t *testing.T) {
	s := connect(t, harness.Database(t))
	if got := get[string](s, `SELECT coalesce(string_agg(c.relname, ' '), '') FROM pg_class AS c
		WHERE c.relnamespace = 'connector'::regnamespace AND c.relkind IN ('r', 'v') AND obj_description(c.oid, 'pg_class') IS NULL`); got != "" {
		t.Errorf("without: %s", got)
	}
	if get[*string](s, "SELECT obj_description('connector'::regnamespace, 'pg_namespace')") == nil {
		t.Error("the schema has none")
	}
}
