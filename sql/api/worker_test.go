package api_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"highwater/tests/harness"
)

const (
	ttl = 10 * time.Second
	// soon bounds what must happen at once.
	soon = 10 * time.Second
)

// worker is a sidecar as far as the ledger sees one: a session that calls the private functions.
type worker struct {
	*session
	name string
}

// stage gives a database with the connector acme and a sidecar that has just been seen, and a session beside it.
func stage(t *testing.T) (s *session, w worker) {
	t.Helper()
	url := harness.Database(t)
	s = connect(t, url)
	declare(s, "acme", `{}`)
	w = newWorker(t, url, "one")
	w.beat()
	return s, w
}

func newWorker(t *testing.T, url, name string) worker {
	t.Helper()
	s := connect(t, url)
	s.must("SET ROLE highwater_owner")
	return worker{s, name}
}

// another gives a second sidecar on the same database.
func (w worker) another(t *testing.T, name string) worker {
	t.Helper()
	return newWorker(t, w.Config().ConnString(), name)
}

func (w worker) beat(runs ...uuid.UUID) map[uuid.UUID]string {
	w.tb.Helper()
	if runs == nil {
		runs = []uuid.UUID{}
	}
	rows, err := w.Query(w.tb.Context(), "SELECT run_id, state FROM connector._heartbeat($1, 'host', 'v1', $2, $3)", w.name, runs, ttl)
	if err != nil {
		w.tb.Fatal(err)
	}
	acts := map[uuid.UUID]string{}
	var id uuid.UUID
	var state string
	if _, err := pgx.ForEachRow(rows, []any{&id, &state}, func() error { acts[id] = state; return nil }); err != nil {
		w.tb.Fatal(err)
	}
	return acts
}

// claimed is what a test looks at of a claim.
type claimed struct {
	outcome string
	fence   int64
	planned bool
	poison  int
}

func (w worker) claim(run uuid.UUID) claimed {
	w.tb.Helper()
	c, err := w.tryClaim(w.tb.Context(), run)
	if err != nil {
		w.tb.Fatal(err)
	}
	return c
}

func (w worker) tryClaim(ctx context.Context, run uuid.UUID) (c claimed, err error) {
	err = w.QueryRow(ctx, "SELECT outcome, coalesce(fence, 0), coalesce(planned, false), coalesce(poison_chunks, 0) FROM connector._claim($1, $2, $3)",
		run, w.name, ttl).Scan(&c.outcome, &c.fence, &c.planned, &c.poison)
	return c, err
}

// take claims a run that must be free and gives its fence.
func (w worker) take(run uuid.UUID) int64 {
	w.tb.Helper()
	c := w.claim(run)
	if c.outcome != "claimed" {
		w.tb.Fatalf("claiming run %s: %s", run, c.outcome)
	}
	return c.fence
}

// span is one partition of a plan, advance one of a chunk; both travel as JSON.
type (
	span struct {
		Partition     int32  `json:"partition"`
		Start         int64  `json:"start"`
		Target        int64  `json:"target"`
		Epoch         int32  `json:"epoch"`
		LostFrom      *int64 `json:"lost_from,omitempty"`
		LostTo        *int64 `json:"lost_to,omitempty"`
		LogStart      int64  `json:"log_start"`
		HighWatermark int64  `json:"high_watermark"`
	}
	advance struct {
		Partition   int32 `json:"partition"`
		From        int64 `json:"from"`
		To          int64 `json:"to"`
		Epoch       int32 `json:"epoch"`
		Written     int64 `json:"written,omitempty"`
		Duplicates  int64 `json:"duplicates,omitempty"`
		DeadLetters int64 `json:"dead_letters,omitempty"`
		Filtered    int64 `json:"filtered,omitempty"`
		Tombstones  int64 `json:"tombstones_applied,omitempty"`
		NoRecord    int64 `json:"no_record,omitempty"`
	}
)

func (w worker) plan(run uuid.UUID, fence int64, spans ...span) {
	w.tb.Helper()
	w.must("SELECT connector._save_plan($1, $2, $3)", run, fence, thePlan(spans...))
}

func thePlan(spans ...span) map[string]any {
	return map[string]any{"cluster_id": "c", "topic": "acme.partners", "topic_id": uuid.NewString(), "measured_at": time.Now(), "partitions": spans}
}

const advanceSQL = "SELECT cancel_requested FROM connector._advance($1, $2, $3, $4)"

func (w worker) advance(run uuid.UUID, fence int64, advances ...advance) (cancel bool) {
	w.tb.Helper()
	return get[bool](w.session, advanceSQL, run, fence, uuid.New(), advances)
}

func (w worker) end(run uuid.UUID, fence int64, status, code string) bool {
	w.tb.Helper()
	return get[bool](w.session, "SELECT connector._end($1, $2, $3, $4, 'the message', NULL, false, '{}')", run, fence, status, code)
}

// whole carries a run through: claim, plan one partition, land it as rows, end.
func (w worker) whole(run uuid.UUID, from, to int64) {
	w.tb.Helper()
	fence := w.take(run)
	w.plan(run, fence, span{Start: from, Target: to, HighWatermark: to})
	if to > from {
		w.advance(run, fence, advance{From: from, To: to, Written: to - from})
	}
	if !w.end(run, fence, "Completed", "ok") {
		w.tb.Fatal("the run could not be ended")
	}
}

// run asks for a run of acme.
func (s *session) run(ifActive string) uuid.UUID {
	s.tb.Helper()
	return get[uuid.UUID](s, "SELECT connector.run('acme', $1)", ifActive)
}

// state is one ledger row as JSON, for comparisons.
func (s *session) state(run uuid.UUID) map[string]any {
	s.tb.Helper()
	var m map[string]any
	if err := json.Unmarshal(get[[]byte](s, "SELECT to_jsonb(r) FROM connector._run AS r WHERE r.run_id = $1", run), &m); err != nil {
		s.tb.Fatal(err)
	}
	return m
}

// is checks fields of a ledger row.
func (s *session) is(run uuid.UUID, want map[string]any) {
	s.tb.Helper()
	got := s.state(run)
	for k, v := range want {
		if got[k] != v {
			s.tb.Errorf("%s of the run is %v, want %v (message: %v)", k, got[k], v, got["message"])
		}
	}
}

// background runs f and gives a function that waits for it.
func background(t *testing.T, f func() error) (done func() error) {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- f() }()
	return func() error {
		select {
		case err := <-result:
			return err
		case <-time.After(soon):
			t.Fatal("it did not end")
			return nil
		}
	}
}

// waitsForALock returns once the session's statement stands in a lock's queue.
func waitsForALock(t *testing.T, watcher *session, pid uint32) {
	t.Helper()
	until(t, func() bool {
		return get[bool](watcher, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock')", pid)
	})
}

// until looks every few milliseconds whether something has come true.
func until(t *testing.T, true func() bool) {
	t.Helper()
	deadline := time.After(soon)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !true() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it did not come true")
		}
	}
}
