package api_test

import (
	"testing"

	"github.com/google/uuid"
)

// rawLetters gives n open letters of acme that keep their values.
func rawLetters(t *testing.T, s *session, n int) []uuid.UUID {
	t.Helper()
	ids := letters(t, s, s.run("skip"), n)
	s.must("UPDATE connector._dlq SET raw = '{}'")
	return ids
}

func TestARetryIsARunAndItsLetters(t *testing.T) {
	s, _ := stage(t)
	ids := rawLetters(t, s, 3)
	run := get[uuid.UUID](s, "SELECT connector.dlq_retry($1::uuid[])", append(ids, ids[0]))
	s.is(run, map[string]any{"status": "Scheduled", "connector": "acme", "started_by": "retry", "if_active": "wait"})
	if n := get[int](s, "SELECT count(*) FROM connector._retry WHERE run_id = $1", run); n != 3 {
		t.Errorf("%d letters", n)
	}
	if got := get[string](s, "SELECT action || ' ' || jsonb_array_length(detail -> 'ids') FROM connector.audit"); got != "dlq_retry 3" {
		t.Error(got)
	}
	if one := get[uuid.UUID](s, "SELECT connector.dlq_retry($1::uuid)", ids[0]); one == run {
		t.Error("a retry was joined to another")
	}
	s.must("UPDATE connector._sidecar SET last_seen_at = now() - interval '16 s'")
	s.must("SELECT connector.dlq_retry($1::uuid)", ids[0])
	if w := s.warnings(); len(w) != 1 || w[0].Code != "KC002" {
		t.Errorf("%v", w)
	}
}

func TestRetryRefuses(t *testing.T) {
	s, _ := stage(t)
	ids := rawLetters(t, s, 4)
	declare(s, "other", `{"name": "other"}`)
	s.must("UPDATE connector._dlq SET raw = NULL WHERE id = $1", ids[0])
	s.must("UPDATE connector._dlq SET raw = '', reason = 'TooLarge' WHERE id = $1", ids[1])
	s.must("SELECT connector.dlq_discard($1::uuid)", ids[2])
	var foreign uuid.UUID
	run := get[uuid.UUID](s, "SELECT connector.run('other')")
	foreign = letters(t, s, run, 1)[0]
	s.must("UPDATE connector._dlq SET raw = '{}' WHERE id = $1", foreign)
	for _, c := range []struct {
		state, message string
		ids            any
	}{
		{"55000", "keeps no value", ids[:1]},
		{"55000", "keeps no value", ids[1:2]},
		{"55000", "is discarded, not open", ids[2:3]},
		{"P0002", "does not exist", []uuid.UUID{uuid.New()}},
		{"P0002", `"NULL" does not exist`, []*uuid.UUID{nil}},
		{"22023", "several connectors", []uuid.UUID{ids[3], foreign}},
		{"22023", "no dead letter is given", []uuid.UUID{}},
		{"22023", "no dead letter is given", nil},
	} {
		pg := s.fails(c.state, "SELECT connector.dlq_retry($1::uuid[])", c.ids)
		contains(t, "the message", pg.Message, c.message)
	}
	if n := get[int](s, "SELECT count(*) FROM connector._retry"); n != 0 {
		t.Errorf("%d letters were taken", n)
	}
	role := newRole(t, s, "highwater_operator")
	s.must("INSERT INTO connector.tenant_roles VALUES ($1, 9)", role)
	theirs := as(t, s.Config().ConnString(), role)
	known := theirs.fails("P0002", "SELECT connector.dlq_retry($1::uuid)", ids[3])
	unknown := theirs.fails("P0002", "SELECT connector.dlq_retry($1::uuid)", uuid.New())
	if known.Hint != unknown.Hint {
		t.Errorf("%q and %q", known.Hint, unknown.Hint)
	}
}

const retryDone = "SELECT cancel_requested FROM connector._retry_done($1, $2, gen_random_uuid(), $3, $4::jsonb)"

// A retry holds the lease like any run; a waiting run is neither joined to it nor folded into it, and its letters are settled
// under its fence, once.
func TestARetryIsFencedAndFoldsNobody(t *testing.T) {
	s, w := stage(t)
	ids := rawLetters(t, s, 2)
	s.must("UPDATE connector._run SET status = 'Cancelled', ended_at = now()")
	run := get[uuid.UUID](s, "SELECT connector.dlq_retry($1::uuid[])", ids)
	waiting := s.run("wait")
	if waiting == run {
		t.Fatal("a run joined a retry")
	}
	fence := w.take(run)
	s.is(waiting, map[string]any{"status": "Scheduled"})
	if got := w.claim(waiting).outcome; got != "wait" {
		t.Errorf("the other run: %s", got)
	}
	w.must(retryDone, run, fence, ids[0], `[{"written": 1}]`)
	w.fails("KC010", retryDone, run, fence, ids[0], `[{"written": 1}]`)
	s.must("UPDATE connector._endpoint SET lease_until = now() - interval '1 s'")
	next := w.another(t, "two").take(run)
	w.fails("KC010", retryDone, run, fence, ids[1], `[{"written": 1}]`)
	w.must(retryDone, run, next, ids[1], `[{"dead_letters": 1}]`)
	s.is(run, map[string]any{"records_out": 1.0, "dead_letters": 1.0, "chunks": 2.0})
	if got := get[string](s, `SELECT string_agg(status, ' ' ORDER BY "offset") FROM connector.dlq`); got != "replayed open" {
		t.Error(got)
	}
	if !w.end(run, next, "Completed", "ok") {
		t.Error("the run could not be ended")
	}
	if n := get[int](s, "SELECT count(*) FROM connector.verify()"); n != 0 {
		t.Errorf("verify() returns %d rows", n)
	}
	w.take(waiting)
}
