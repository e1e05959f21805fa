package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// traced is one row of connector.trace.
type traced struct {
	outcome, detail string
	run             uuid.NullUUID
}

func (s *session) trace(partition int, offset int64) (t traced) {
	s.tb.Helper()
	if err := s.QueryRow(s.tb.Context(), "SELECT outcome, detail, run_id FROM connector.trace('acme', $1, $2)", partition, offset).Scan(&t.outcome, &t.detail, &t.run); err != nil {
		s.tb.Fatal(err)
	}
	return t
}

// rows gives the table of acme one row for each offset of a partition from first up to last, as a run lands them.
func (s *session) rows(run uuid.UUID, partition int, first, last int64) {
	s.tb.Helper()
	s.must(`CREATE TABLE IF NOT EXISTS connector.t_partners (id bigserial PRIMARY KEY, _row_hash text NOT NULL, _source text, _run_id uuid); ALTER TABLE connector.t_partners OWNER TO highwater_owner`)
	s.must(`INSERT INTO connector.t_partners (_row_hash, _source, _run_id)
		SELECT $1 || g, format('kafka:acme.partners:%s:%s', $2::int, g), $1::uuid FROM generate_series($3::bigint, $4::bigint) AS g`, run.String(), partition, first, last)
}

// read carries a run of acme through one partition and leaves the run's end to the caller's taste.
func (w worker) read(run uuid.UUID, plan span, advances ...advance) {
	w.tb.Helper()
	fence := w.take(run)
	plan.HighWatermark = plan.Target
	w.plan(run, fence, plan)
	for _, a := range advances {
		w.advance(run, fence, a)
	}
	w.end(run, fence, "Completed", "ok")
}

func TestTraceSaysWhereAMessageWent(t *testing.T) {
	s, w := stage(t)
	if got := s.trace(0, 7); got.outcome != "not read yet" || !strings.Contains(got.detail, "no position") {
		t.Errorf("before the first run: %+v", got)
	}
	lost := func(n int64) *int64 { return &n }
	first := s.run("skip")
	w.read(first, span{Start: 10, Target: 110, LostFrom: lost(0), LostTo: lost(9)}, advance{From: 10, To: 110, Written: 98, DeadLetters: 1, NoRecord: 1})
	s.rows(first, 0, 10, 107)
	s.must(`INSERT INTO connector._dlq (tenant_id, connector_id, connector, run_id, reason, message, payload, topic, partition, "offset")
		SELECT r.tenant_id, r.connector_id, r.connector, r.run_id, 'MalformedSource', 'acme.partners:0:108:108 — no JSON', '{}', 'acme.partners', 0, 108
		FROM connector._run AS r WHERE r.run_id = $1`, first)
	second := s.run("skip")
	w.read(second, span{Start: 110, Target: 120}, advance{From: 110, To: 120, Written: 4, Duplicates: 3, Filtered: 3})
	s.rows(second, 0, 110, 113)
	for _, c := range []struct {
		offset          int64
		outcome, detail string
		run             uuid.UUID
	}{
		{0, "lost", "offsets 0 to 9 had left the broker", first},
		{10, "row", "id 1 of connector.t_partners", first},
		{60, "row", "id 51 of connector.t_partners", first},
		{107, "row", "id 98 of connector.t_partners", first},
		{108, "dead letter", "MalformedSource: acme.partners:0:108:108 — no JSON", first},
		{109, "no record", "1 offsets of this run", first},
		{110, "row", "id 99 of connector.t_partners", second},
		{113, "row", "id 102 of connector.t_partners", second},
		{115, "filtered or duplicate", "held 3 already, the filter left out 3", second},
		{120, "not read yet", "the position is offset 120", uuid.Nil},
	} {
		got := s.trace(0, c.offset)
		if got.outcome != c.outcome || !strings.Contains(got.detail, c.detail) || got.run.UUID != c.run {
			t.Errorf("offset %d: %+v, want %s, %q, %s", c.offset, got, c.outcome, c.detail, c.run)
		}
	}
	if got := s.trace(1, 5); got.outcome != "not read yet" || got.run.Valid {
		t.Errorf("a partition that nobody read: %+v", got)
	}
	s.must("DELETE FROM connector.t_partners WHERE id = 1")
	if got := s.trace(0, 10); got.outcome == "row" && !strings.Contains(got.detail, "no longer in the table") {
		t.Errorf("a row that was deleted: %+v", got)
	}
}

// After a reset the same offsets are read again: the newest run found the rows there, the oldest has them.
func TestTraceFollowsADuplicateToItsRow(t *testing.T) {
	s, w := stage(t)
	first := s.run("skip")
	w.whole(first, 0, 50)
	s.rows(first, 0, 0, 49)
	s.must("SELECT connector.reset_cursor('acme')")
	again := s.run("skip")
	w.read(again, span{Target: 50}, advance{To: 50, Duplicates: 50})
	got := s.trace(0, 33)
	if got.outcome != "row" || got.run.UUID != first || !strings.Contains(got.detail, "id 34 ") || !strings.Contains(got.detail, again.String()) {
		t.Errorf("%+v", got)
	}
}

// A lookup takes some look-ups by the primary key and reads no page twenty times over, however large the table is; rows of
// other partitions and of nobody lie between.
func TestTraceReadsFewPages(t *testing.T) {
	s, w := stage(t)
	const n = 100_000
	run := s.run("skip")
	w.read(run, span{Target: n}, advance{To: n, Written: n})
	s.rows(uuid.New(), 0, 0, 3) // of no run of the ledger
	s.must(`INSERT INTO connector.t_partners (_row_hash, _source, _run_id)
		SELECT 'h' || g, format('kafka:acme.partners:%s:%s', g % 3, g / 3), $1 FROM generate_series(0, $2::bigint * 3 - 1) AS g`, run, n)
	s.must("VACUUM ANALYZE connector.t_partners")
	s.must("SELECT connector.trace('acme', 0, 1)")
	pages := func() int64 {
		return get[int64](s, "SELECT pg_stat_get_xact_blocks_fetched('connector.t_partners'::regclass)")
	}
	for _, offset := range []int64{0, 1, n / 2, n - 1} {
		s.must("BEGIN")
		before := pages()
		if got := s.trace(0, offset); got.outcome != "row" || !strings.Contains(got.detail, fmt.Sprintf("id %d ", 5+offset*3)) {
			t.Errorf("offset %d: %+v", offset, got)
		}
		if read := pages() - before; read > 500 {
			t.Errorf("offset %d: %d pages of the table were read", offset, read)
		}
		s.must("COMMIT")
	}
}

func TestTraceRefusesWhatCannotBe(t *testing.T) {
	s, _ := stage(t)
	s.fails("P0002", "SELECT * FROM connector.trace('nobody', 0, 0)")
	for _, args := range []string{"-1, 0", "0, -1", "NULL, 0", "0, NULL"} {
		s.fails("22023", "SELECT * FROM connector.trace('acme', "+args+")")
	}
}
