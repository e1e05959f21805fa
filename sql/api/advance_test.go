package api_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
)

// planned gives a claimed run of two partitions, [0, 100) and [50, 60), and its fence.
func planned(t *testing.T) (s *session, w worker, run uuid.UUID, fence int64) {
	t.Helper()
	s, w = stage(t)
	run = s.run("skip")
	fence = w.take(run)
	w.plan(run, fence, span{Target: 100, Epoch: 3, HighWatermark: 100}, span{Partition: 1, Start: 50, Target: 60, Epoch: 3, LogStart: 50, HighWatermark: 60})
	return s, w, run, fence
}

func TestAPlanIsStored(t *testing.T) {
	s, w := stage(t)
	run := s.run("skip")
	fence := w.take(run)
	from, to := int64(7), int64(49)
	s.must("INSERT INTO connector._cursor (connector_id, partition, tenant_id, next_offset, leader_epoch, fence) SELECT connector_id, 0, 1, 5, 2, $1 FROM connector._endpoint", fence)
	w.plan(run, fence, span{Start: 5, Target: 9, Epoch: 4, HighWatermark: 10}, span{Partition: 1, Start: 50, Target: 50, Epoch: 3, LostFrom: &from, LostTo: &to, LogStart: 50, HighWatermark: 60})
	for what, c := range map[string]struct{ sql, want string }{
		"positions": {"SELECT string_agg(format('%s:%s/%s', partition, next_offset, leader_epoch), ' ' ORDER BY partition) FROM connector._cursor", "0:5/2 1:50/3"},
		"targets": {
			"SELECT string_agg(format('%s:%s-%s %s-%s %s', partition, start_offset, target_offset, lost_from, lost_to, reached), ', ' ORDER BY partition) FROM connector.run_partitions",
			"0:5-9 - , 1:50-50 7-49 at target",
		},
		"lag": {"SELECT string_agg(format('%s:%s of %s from %s', partition, lag, high_watermark, log_start_offset), ' ' ORDER BY partition) FROM connector.lag", "0:5 of 10 from 0 1:10 of 60 from 50"},
	} {
		if got := get[string](s, c.sql); got != c.want {
			t.Errorf("%s are %q, want %q", what, got, c.want)
		}
	}
	if !get[bool](s, "SELECT topic = 'acme.partners' AND cluster_id = 'c' AND topic_id IS NOT NULL FROM connector._endpoint") {
		t.Error("the identity was not stored")
	}
}

// The sidecar does not know whether its commit went through: it plans again.
func TestAPlanMayBeRepeatedUntilAChunkHasLanded(t *testing.T) {
	s, w, run, fence := planned(t)
	w.plan(run, fence, span{Target: 110, HighWatermark: 110}, span{Partition: 1, Start: 50, Target: 60, HighWatermark: 60})
	if got := get[int64](s, "SELECT target_offset FROM connector.run_partitions WHERE partition = 0"); got != 110 {
		t.Errorf("target %d", got)
	}
	w.advance(run, fence, advance{To: 1, Written: 1})
	w.fails("KC011", "SELECT connector._save_plan($1, $2, $3)", run, fence, thePlan(span{Target: 120}))
	if got := get[int64](s, "SELECT next_offset FROM connector._cursor WHERE partition = 0"); got != 1 {
		t.Errorf("the refused plan moved the position to %d", got)
	}
}

// A sidecar whose clock is off says when it measured; data_as_of must not lie for it.
func TestTheMeasuredTimeIsHeldByTheServersClock(t *testing.T) {
	for name, clock := range map[string]string{"ahead": "2999-01-01T00:00:00Z", "behind": "1999-01-01T00:00:00Z"} {
		t.Run(name, func(t *testing.T) {
			s, w := stage(t)
			run := s.run("skip")
			fence := w.take(run)
			p := thePlan(span{})
			p["measured_at"] = clock
			w.must("SELECT connector._save_plan($1, $2, $3)", run, fence, p)
			w.end(run, fence, "Completed", "ok")
			if !get[bool](s, "SELECT e.data_as_of BETWEEN r.started_at AND r.ended_at FROM connector._endpoint AS e, connector._run AS r") {
				t.Error("data_as_of is outside the run")
			}
		})
	}
}

func TestAChunkMovesAndCounts(t *testing.T) {
	s, w, run, fence := planned(t)
	if w.advance(run, fence, advance{To: 40, Epoch: 4, Written: 20, Duplicates: 5, DeadLetters: 3, Filtered: 7, Tombstones: 1, NoRecord: 4},
		advance{Partition: 1, From: 50, To: 60, Epoch: 3, Written: 10}) {
		t.Error("nobody asked for a cancel")
	}
	w.advance(run, fence, advance{From: 40, To: 41, Epoch: -1, NoRecord: 1})
	if got := get[string](s, "SELECT format('%s = %s + %s, dups %s, letters %s, filtered %s, tombstones %s, chunks %s', records_in, records_out, skipped, duplicates, dead_letters, filtered, tombstones_applied, chunks) FROM connector.runs"); got !=
		"46 = 35 + 11, dups 5, letters 3, filtered 7, tombstones 1, chunks 2" {
		t.Error(got)
	}
	if got := get[string](s, "SELECT string_agg(format('%s:%s/%s', partition, next_offset, leader_epoch), ' ' ORDER BY partition) FROM connector._cursor"); got != "0:41/-1 1:60/3" {
		t.Errorf("positions %s", got)
	}
	if got := get[string](s, "SELECT string_agg(concat_ws(' ', partition, advanced, no_record, (SELECT reached FROM connector.run_partitions AS p WHERE p.run_id = a.run_id AND p.partition = a.partition)), ', ' ORDER BY partition) FROM connector.accounting AS a"); got != "0 41 5, 1 10 0 at target" {
		t.Error(got)
	}
	s.must("SELECT connector.cancel($1)", run)
	if !w.advance(run, fence, advance{From: 41, To: 42, Written: 1}) {
		t.Error("the cancel was not told")
	}
	verified(t, s)
}

// Whatever is wrong with a chunk, its whole transaction is undone.
func TestAChunkThatMayNotLandLeavesNothing(t *testing.T) {
	good := advance{To: 10, Written: 10}
	for _, c := range []struct {
		name     string
		state    string
		advances []advance
		fence    int64 // added to the run's
		before   func(s *session, w worker, run uuid.UUID, fence int64)
	}{
		{"read from elsewhere", "KC010", []advance{{From: 5, To: 10, Written: 5}}, 0, nil},
		{"one partition of two elsewhere", "KC010", []advance{good, {Partition: 1, From: 51, To: 60, Written: 9}}, 0, nil},
		{"an unknown partition", "KC010", []advance{{Partition: 9, To: 1, Written: 1}}, 0, nil},
		{"an old fence", "KC010", []advance{good}, -1, nil},
		{"a fence that is not there yet", "KC010", []advance{good}, 1, nil},
		{"the same chunk twice", "KC010", []advance{good}, 0, func(_ *session, w worker, run uuid.UUID, fence int64) { w.advance(run, fence, good) }},
		{"after the end", "KC010", []advance{good}, 0, func(_ *session, w worker, run uuid.UUID, fence int64) { w.end(run, fence, "Failed", "internal") }},
		{"after the connector was deleted", "KC010", []advance{good}, 0, func(s *session, _ worker, _ uuid.UUID, _ int64) { s.must("DELETE FROM connector.manifest") }},
		{"counters that miss an offset", "KC011", []advance{{To: 10, Written: 9}}, 0, nil},
		{"counters that are too many", "KC011", []advance{{To: 10, Written: 10, NoRecord: 1}}, 0, nil},
		{"past the target", "KC011", []advance{{To: 101, Written: 101}}, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, w, run, fence := planned(t)
			if c.before != nil {
				c.before(s, w, run, fence)
			}
			all := "SELECT concat((SELECT json_agg(c ORDER BY partition) FROM connector._cursor AS c), (SELECT json_agg(p ORDER BY partition) FROM connector._run_partition AS p), (SELECT json_agg(r) FROM connector._run AS r))"
			was := get[string](s, all)
			pg := w.fails(c.state, advanceSQL, run, fence+c.fence, uuid.New(), c.advances)
			contains(t, "the message", pg.Message, run.String())
			if got := get[string](s, all); got != was {
				t.Errorf("something stayed:\n%s\n%s", was, got)
			}
		})
	}
}

// A chunk that is ready before its predecessor has committed waits for it, and then goes on from where that ended.
func TestAChunkWaitsForItsPredecessor(t *testing.T) {
	s, w, run, fence := planned(t)
	w.must("BEGIN")
	w.advance(run, fence, advance{To: 10, Written: 10})
	ahead := w.another(t, "one")
	done := background(t, func() error {
		_, err := ahead.Exec(context.WithoutCancel(t.Context()), advanceSQL, run, fence, uuid.New(), []advance{{From: 10, To: 20, Written: 10}})
		return err
	})
	waitsForALock(t, s, ahead.PgConn().PID())
	w.must("COMMIT")
	if err := done(); err != nil {
		t.Fatal(err)
	}
	if got := get[int64](s, "SELECT records_out FROM connector.runs"); got != 20 {
		t.Errorf("%d rows", got)
	}
}

func TestPoisonIsCountedFromChunkToChunkAndFromRunToRun(t *testing.T) {
	s, w, run, fence := planned(t)
	poison := func() int { return get[int](s, "SELECT poison_chunks FROM connector._run WHERE status = 'Running'") }
	steps := []struct {
		advance
		want int
	}{
		{advance{To: 1, DeadLetters: 1}, 1},
		{advance{From: 1, To: 2, NoRecord: 1}, 1},
		{advance{From: 2, To: 4, DeadLetters: 2}, 2},
		{advance{From: 4, To: 6, DeadLetters: 1, Filtered: 1}, 0},
		{advance{From: 6, To: 7, DeadLetters: 1}, 1},
	}
	for _, step := range steps {
		w.advance(run, fence, step.advance)
		if got := poison(); got != step.want {
			t.Errorf("after %+v: %d, want %d", step.advance, got, step.want)
		}
	}
	w.end(run, fence, "Failed", "broker_lost")
	next := s.run("skip")
	c := w.claim(next)
	if c.poison != 1 {
		t.Errorf("the next run begins with %d", c.poison)
	}
	w.end(next, c.fence, "Partial", "poison_budget")
	if c := w.claim(s.run("skip")); c.poison != 0 {
		t.Errorf("after a spent budget the next run begins with %d", c.poison)
	}
}

func TestTheEndIsWrittenOnce(t *testing.T) {
	s, w, run, fence := planned(t)
	w.advance(run, fence, advance{To: 100, Written: 100}, advance{Partition: 1, From: 50, To: 60, NoRecord: 10})
	if w.end(run, fence-1, "Failed", "internal") {
		t.Error("an old fence ended it")
	}
	if !get[bool](w.session, `SELECT connector._end($1, $2, 'Completed', 'ok', 'all read', 'none', true, '{"1": "proved empty to target"}')`, run, fence) {
		t.Fatal("not ended")
	}
	s.is(run, map[string]any{"status": "Completed", "code": "ok", "message": "all read", "hint": "none", "retryable": true})
	if got := get[string](s, "SELECT string_agg(reached, ', ' ORDER BY partition) FROM connector.run_partitions"); got != "at target, proved empty to target" {
		t.Error(got)
	}
	if !get[bool](s, "SELECT lease_run IS NULL AND lease_until IS NULL AND data_as_of = (SELECT measured_at FROM connector._run) FROM connector._endpoint") {
		t.Error("the lease or data_as_of is wrong")
	}
	if w.end(run, fence, "Failed", "internal") {
		t.Error("it ended twice")
	}
	verified(t, s)
}

// verified fails the test for each identity that does not hold.
func verified(t *testing.T, s *session) {
	t.Helper()
	if got := get[*string](s, "SELECT string_agg(concat_ws(': ', identity, detail), E'\n') FROM connector.verify() WHERE identity NOT LIKE 'letters at%'"); got != nil {
		t.Errorf("%s", *got)
	}
}
