package api_test

import (
	"strings"
	"testing"
)

// books gives a stage with a finished run of 10 offsets: 8 rows in the table, one duplicate, one dead letter.
func books(t *testing.T) *session {
	t.Helper()
	s, w := stage(t)
	run := s.run("skip")
	fence := w.take(run)
	w.must("CREATE TABLE connector.t_partners (id bigserial PRIMARY KEY, _run_id uuid)")
	w.must("INSERT INTO connector.t_partners (_run_id) SELECT $1 FROM generate_series(1, 8)", run)
	from, to := int64(0), int64(9)
	w.plan(run, fence, span{Start: 10, Target: 20, LostFrom: &from, LostTo: &to, LogStart: 10, HighWatermark: 20})
	w.advance(run, fence, advance{From: 10, To: 20, Written: 8, Duplicates: 1, DeadLetters: 1})
	letters(t, s, run, 1)
	s.must(`UPDATE connector._dlq SET "offset" = 15`)
	w.end(run, fence, "Completed", "ok")
	return s
}

func violations(s *session, strict bool) string {
	s.tb.Helper()
	return get[string](s, "SELECT coalesce(string_agg(identity, '; ' ORDER BY identity), '') FROM connector.verify($1)", strict)
}

func TestVerifyFindsNothingInBooksThatAreRight(t *testing.T) {
	s := books(t)
	for _, strict := range []bool{false, true} {
		if got := violations(s, strict); got != "" {
			t.Errorf("strict %v: %s", strict, got)
		}
	}
}

// Each identity is broken by hand, and found by its name.
func TestVerifyFindsWhatDoesNotHold(t *testing.T) {
	for _, c := range []struct{ name, harm, want string }{
		{"a counter", "UPDATE connector._run_partition SET no_record = 1", "advanced ="},
		{"a total", "UPDATE connector._run SET records_out = 10", "totals of a run"},
		{"one that passed its target", "UPDATE connector._run_partition SET target_offset = 15", "start_offset <="},
		{"one that is Completed short of its target", "UPDATE connector._run_partition SET target_offset = 25", "start_offset <="},
		{"a position", "UPDATE connector._cursor SET next_offset = 19", "the stored position"},
		{"a letter that nobody counted", `INSERT INTO connector._dlq SELECT (jsonb_populate_record(d, '{"offset": 16, "id": "00000000-0000-0000-0000-000000000001"}')).* FROM connector._dlq AS d`, "letters of a run"},
		{"a letter that is gone", "DELETE FROM connector._dlq", "letters at the offsets"},
		{"a row too many", "INSERT INTO connector.t_partners (_run_id) SELECT run_id FROM connector._run", "rows of a run"},
		{"a run that works without its lease", "UPDATE connector._run SET status = 'Running', ended_at = NULL", "a Running run"},
		{"a lease of a run that has ended", "UPDATE connector._endpoint SET lease_run = (SELECT run_id FROM connector._run)", "a lease belongs"},
		{"an end without a time", "UPDATE connector._run SET ended_at = NULL", "ended_at is set"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := books(t)
			s.must(c.harm)
			if got := violations(s, false); !strings.HasPrefix(got, c.want) || strings.Contains(got, ";") {
				t.Errorf("found %q, want %q alone", got, c.want)
			}
		})
	}
}

func TestVerifyLeavesWhatOperatorsMayDo(t *testing.T) {
	for _, c := range []struct{ name, gesture, strict string }{
		{"deleting rows", "DELETE FROM connector.t_partners WHERE id < 3", "rows of a run = rows it wrote (strict)"},
		{"dropping the table", "DROP TABLE connector.t_partners", ""},
		{"rows of their own", "INSERT INTO connector.t_partners (_run_id) VALUES (NULL), (gen_random_uuid())", ""},
		{"seeking", "SELECT connector.seek('acme', 0, 12)", ""},
		{"resetting", "SELECT connector.reset_cursor('acme')", ""},
		{"discarding letters", "SELECT connector.dlq_discard(id) FROM connector.dlq", ""},
		{"deleting the connector", "DROP TABLE connector.t_partners; DELETE FROM connector.manifest", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := books(t)
			s.must(c.gesture)
			if got := violations(s, false); got != "" {
				t.Errorf("found %s", got)
			}
			if got := violations(s, true); got != c.strict {
				t.Errorf("strict found %q, want %q", got, c.strict)
			}
		})
	}
}

// After a reset the same message is met again: its letter moves to the new run.
func TestVerifyKnowsLettersThatMoved(t *testing.T) {
	s := books(t)
	w := newWorker(t, s.Config().ConnString(), "one")
	s.must("SELECT connector.reset_cursor('acme')")
	run := s.run("skip")
	fence := w.take(run)
	w.plan(run, fence, span{Start: 10, Target: 20, LogStart: 10, HighWatermark: 20})
	w.advance(run, fence, advance{From: 10, To: 20, Duplicates: 9, DeadLetters: 1})
	s.must("UPDATE connector._dlq SET run_id = $1, attempts = 2", run)
	if got := violations(s, true); got != "" {
		t.Errorf("found %s", got)
	}
}
