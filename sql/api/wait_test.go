package api_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

func TestWaitGivesTheLedgerRow(t *testing.T) {
	s, w := stage(t)
	run := s.run("skip")
	other := connect(t, s.Config().ConnString())
	var row string
	done := background(t, func() error {
		return other.QueryRow(context.WithoutCancel(t.Context()), "SELECT concat_ws(' ', connector, status, records_out) FROM connector.wait($1)", run).Scan(&row)
	})
	w.whole(run, 0, 5)
	if err := done(); err != nil || row != "acme Completed 5" {
		t.Errorf("%q, %v", row, err)
	}
	// The very row of the view, column for column.
	if !get[bool](s, "SELECT w IS NOT DISTINCT FROM r FROM connector.runs AS r, connector.wait(r.run_id) AS w") {
		t.Error("wait and connector.runs differ")
	}
}

func TestWaitRefuses(t *testing.T) {
	s, w := stage(t)
	run := s.run("skip")
	for _, c := range []struct{ name, begin, state, sql, message, hint string }{
		{"no such run", "", "P0002", "SELECT connector.wait(gen_random_uuid())", "does not exist", "connector.runs"},
		{"no run", "", "P0002", "SELECT connector.wait(NULL)", "does not exist", "connector.runs"},
		{"a negative timeout", "", "22023", "SELECT connector.wait(run_id, '-1 s') FROM connector.runs", "timeout", "10 minutes"},
		{"no timeout", "", "22023", "SELECT connector.wait(run_id, NULL) FROM connector.runs", "not NULL", "10 minutes"},
		{"the time is over", "", "KC001", "SELECT connector.wait(run_id, '10 ms') FROM connector.runs", "has not ended after 00:00:00.01: it is Scheduled", "connector.cancel"},
		{"in the run's own transaction", "BEGIN", "55000", "SELECT connector.wait(connector.run('acme'))", "commit first", "COMMIT"},
		{"in a subtransaction of it", "BEGIN; SELECT connector.run('acme', 'wait'); SAVEPOINT s", "55000", "SELECT connector.wait(connector.run('acme', 'wait'))", "commit first", "COMMIT"},
		{"under repeatable read", "BEGIN ISOLATION LEVEL REPEATABLE READ", "25001", "SELECT connector.wait(run_id) FROM connector.runs", "repeatable read", "READ COMMITTED"},
		{"under serializable", "BEGIN ISOLATION LEVEL SERIALIZABLE", "25001", "SELECT connector.wait(run_id) FROM connector.runs", "serializable", "READ COMMITTED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.begin != "" {
				s.must(c.begin)
				defer s.must("ROLLBACK")
			}
			pg := s.fails(c.state, c.sql)
			contains(t, "the message", pg.Message, c.message)
			contains(t, "the hint", pg.Hint, c.hint)
		})
	}
	t.Run("the state of a running one", func(t *testing.T) {
		fence := w.take(run)
		w.plan(run, fence, span{Target: 10, HighWatermark: 10})
		w.advance(run, fence, advance{To: 4, Written: 4})
		pg := s.fails("KC001", "SELECT connector.wait($1, '0')", run)
		contains(t, "the message", pg.Message, "it is Running, 4 of 10 offsets read")
		s.must("UPDATE connector._sidecar SET last_seen_at = '-infinity'")
		contains(t, "the hint", s.fails("KC001", "SELECT connector.wait($1, '0')", run).Hint, "No sidecar has been seen")
	})
}

// catchUp calls the procedure and gives what it printed: the row by column, and the notices.
func catchUp(ctx context.Context, s *session) (row map[string]any, notices []string, err error) {
	rows, err := s.Query(ctx, "CALL connector.catch_up('acme')")
	if err != nil {
		return nil, nil, err
	}
	row, err = pgx.CollectExactlyOneRow(rows, pgx.RowToMap)
	for _, n := range s.notices {
		notices = append(notices, n.Severity+" "+n.Message)
	}
	return row, notices, err
}

func TestCatchUpRunsWaitsAndPrints(t *testing.T) {
	s, w := stage(t)
	var row map[string]any
	var notices []string
	done := background(t, func() (err error) {
		row, notices, err = catchUp(context.WithoutCancel(t.Context()), s)
		return err
	})
	watch := w.another(t, "watch")
	until(t, func() bool { return get[int](watch.session, "SELECT count(*) FROM connector._run") == 1 })
	run := get[uuid.UUID](watch.session, "SELECT run_id FROM connector._run")
	fence := w.take(run)
	w.plan(run, fence, span{Target: 10, HighWatermark: 10})
	w.must("SELECT connector._say($1, 'INFO', 'target: partition offsets [0: 10]')", run)
	w.advance(run, fence, advance{To: 5, Written: 5})
	// Progress comes once a second: the second half waits for it.
	tick := get[bool](watch.session, "SELECT pg_sleep(1.3) IS NOT NULL")
	w.advance(run, fence, advance{From: 5, To: 10, Written: 5})
	w.end(run, fence, "Completed", "ok")
	if err := done(); err != nil || !tick {
		t.Fatal(err)
	}
	if row["connector"] != "acme" || row["status"] != "Completed" || row["records_in"] != int64(10) || row["code"] != "ok" || row["started_by"] != "manual" {
		t.Errorf("%v", row)
	}
	contains(t, "the notices", strings.Join(notices, "\n"), "NOTICE acme: INFO target: partition offsets [0: 10]", "NOTICE acme: [##########..........] 5 of 10 (50.0 %)")
	want := get[string](watch.session, "SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'connector.runs'::regclass")
	got := get[string](watch.session, "SELECT array_to_string(proargnames[2:], ' ') FROM pg_proc WHERE proname = 'catch_up'")
	if got != want {
		t.Errorf("catch_up prints\n%s\nconnector.runs has\n%s", got, want)
	}
}

// Another session's waiting run folds into ours, or ours into it: catch_up follows.
func TestCatchUpFollowsTheRunThatDoesTheWork(t *testing.T) {
	s, w := stage(t)
	other := connect(t, s.Config().ConnString())
	other.must("BEGIN")
	worker := other.run("wait")
	var row map[string]any
	done := background(t, func() (err error) {
		row, _, err = catchUp(context.WithoutCancel(t.Context()), s)
		return err
	})
	watch := w.another(t, "watch")
	until(t, func() bool { return get[int](watch.session, "SELECT count(*) FROM connector._run") == 1 })
	other.must("COMMIT")
	w.whole(worker, 0, 3)
	if err := done(); err != nil || row["run_id"] != [16]byte(worker) {
		t.Errorf("%v, %v", row, err)
	}
}

func TestCatchUpIsCalledAlone(t *testing.T) {
	s, _ := stage(t)
	s.must("BEGIN")
	s.fails("2D000", "CALL connector.catch_up('acme')")
	s.must("ROLLBACK")
	if n := get[int](s, "SELECT count(*) FROM connector._run"); n != 0 {
		t.Errorf("%d runs stayed", n)
	}
	s.fails("P0002", "CALL connector.catch_up('nobody')")
}
