package api_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
)

func TestAFreshRunIsClaimed(t *testing.T) {
	s, w := stage(t)
	run := s.run("skip")
	if c := w.claim(run); c != (claimed{"claimed", 1, false, 0}) {
		t.Fatalf("%+v", c)
	}
	s.is(run, map[string]any{"status": "Running", "sidecar": "one", "mapping_version": 1.0})
	if !get[bool](s, "SELECT lease_run = $1 AND lease_sidecar = 'one' AND lease_until BETWEEN now() + interval '5 s' AND now() + interval '10 s' FROM connector._endpoint", run) {
		t.Error("the lease is not as it should be")
	}
	s.must(`UPDATE connector.manifest SET spec = spec || '{"poll_timeout_ms": 3000}'`)
	if got := get[string](s, "SELECT coalesce(spec ->> 'poll_timeout_ms', 'unset') FROM connector._run"); got != "unset" {
		t.Errorf("the snapshot follows the manifest: %s", got)
	}
}

func TestWhatAClaimAnswers(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(s *session, w worker, run uuid.UUID)
		want    string
		ledger  map[string]any
	}{
		{"an ended run is ended", func(_ *session, w worker, run uuid.UUID) { w.whole(run, 0, 0) }, "ended", map[string]any{"status": "Completed"}},
		{"a cancelled one too", func(s *session, _ worker, run uuid.UUID) { s.must("SELECT connector.cancel($1)", run) }, "ended", map[string]any{"code": "cancelled"}},
		{"a cancel that came just before the claim ends it", func(s *session, _ worker, run uuid.UUID) {
			s.must("UPDATE connector._run SET cancel_requested = true, cancelled_by = 'me' WHERE run_id = $1", run)
		}, "ended", map[string]any{"status": "Cancelled", "code": "cancelled", "message": "cancelled by me before it started"}},
		{"a run in live hands is busy", func(_ *session, w worker, run uuid.UUID) { w.take(run) }, "busy", map[string]any{"status": "Running"}},
		{"a deleted connector's run is ended", func(s *session, _ worker, _ uuid.UUID) { s.must("DELETE FROM connector.manifest") }, "ended", map[string]any{"code": "deleted"}},
		{"a run that was committed after the deletion is deleted", func(s *session, _ worker, _ uuid.UUID) {
			s.must("DELETE FROM connector._endpoint")
		}, "deleted", map[string]any{"status": "Cancelled", "code": "deleted", "message": `connector "acme" was deleted`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, w := stage(t)
			run := s.run("skip")
			c.prepare(s, w, run)
			if got := w.claim(run).outcome; got != c.want {
				t.Errorf("outcome %s, want %s", got, c.want)
			}
			s.is(run, c.ledger)
		})
	}
	t.Run("a run that never was is ended", func(t *testing.T) {
		_, w := stage(t)
		if got := w.claim(uuid.New()).outcome; got != "ended" {
			t.Error(got)
		}
	})
}

func TestWhatAClaimAnswersWhileAnotherRunIsActive(t *testing.T) {
	for _, c := range []struct {
		name, ifActive string
		orphan         bool
		want           string
		ledger         map[string]any
	}{
		{"skipped", "skip", false, "skipped", map[string]any{"status": "Cancelled", "code": "skipped_active"}},
		{"to wait", "wait", false, "wait", map[string]any{"status": "Scheduled"}},
		{"an orphan that waits for its takeover is active", "skip", true, "skipped", map[string]any{"code": "skipped_active"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, w := stage(t)
			active := s.run("skip")
			w.take(active)
			if c.orphan {
				s.must("UPDATE connector._endpoint SET lease_until = '-infinity'")
			}
			run := s.run(c.ifActive)
			if got := w.claim(run).outcome; got != c.want {
				t.Errorf("outcome %s, want %s", got, c.want)
			}
			s.is(run, c.ledger)
			s.is(active, map[string]any{"status": "Running"})
		})
	}
}

func TestASkippedRunNamesTheActiveOne(t *testing.T) {
	s, w := stage(t)
	active, late := s.run("skip"), s.run("skip")
	w.take(active)
	w.claim(late)
	got := s.state(late)
	contains(t, "the message", got["message"].(string), active.String(), `"acme"`, "skipped")
	contains(t, "the hint", got["hint"].(string), "SELECT connector.run('acme', 'wait');")
}

// A waiting run starts when the active one ends: its job, asleep, is due at once and River is told.
func TestTheEndOfARunWakesTheWaitingOne(t *testing.T) {
	s, w := stage(t)
	active := s.run("skip")
	fence := w.take(active)
	waiting := s.run("wait")
	w.claim(waiting)
	s.must("UPDATE connector_queue.river_job SET state = 'scheduled', scheduled_at = now() + interval '1 hour' WHERE args ->> 'run_id' = $1", waiting.String())
	s.must(`LISTEN "connector_queue.river_insert"`)
	w.end(active, fence, "Completed", "ok")
	if n, err := s.WaitForNotification(t.Context()); err != nil || n.Payload != `{"queue":"connector"}` {
		t.Fatalf("%v, %v", n, err)
	}
	if !get[bool](s, "SELECT state = 'available' AND scheduled_at <= now() FROM connector_queue.river_job WHERE args ->> 'run_id' = $1", waiting.String()) {
		t.Error("its job still sleeps")
	}
	w.take(waiting)
}

// Sessions that do not see each other's waiting runs each make one; the first that starts does the work of all.
func TestSurplusWaitingRunsAreFolded(t *testing.T) {
	s, w := stage(t)
	url := s.Config().ConnString()
	var runs []uuid.UUID
	var sessions []*session
	for range 3 {
		other := connect(t, url)
		other.must("BEGIN")
		sessions = append(sessions, other)
		runs = append(runs, other.run("wait"))
	}
	for _, other := range sessions {
		other.must("COMMIT")
	}
	skip := s.run("skip")
	fence := w.take(runs[1])
	for i, run := range runs {
		if i != 1 {
			s.is(run, map[string]any{"status": "Cancelled", "code": "joined", "joined_run": runs[1].String(), "message": "joined run " + runs[1].String() + ", which does the work"})
			if got := get[string](s, "SELECT state::text FROM connector_queue.river_job WHERE args ->> 'run_id' = $1", run.String()); got != "cancelled" {
				t.Errorf("its job is %s", got)
			}
		}
	}
	s.is(skip, map[string]any{"status": "Scheduled"})
	w.end(runs[1], fence, "Completed", "ok")
	if got := get[uuid.UUID](s, "SELECT run_id FROM connector.wait($1)", runs[0]); got != runs[1] {
		t.Errorf("wait followed to %s, want %s", got, runs[1])
	}
}

// A run that is taken over has measured the broker already: who waits since then may want what came later.
func TestATakenOverRunKeepsItsTargetsAndFoldsNobody(t *testing.T) {
	s, w := stage(t)
	run := s.run("skip")
	w.plan(run, w.take(run), span{Start: 0, Target: 10, HighWatermark: 10})
	waiting := s.run("wait")
	s.must("UPDATE connector._endpoint SET lease_until = '-infinity'")
	two := w.another(t, "two")
	if c := two.claim(run); c != (claimed{"claimed", 2, true, 0}) {
		t.Errorf("%+v", c)
	}
	s.is(waiting, map[string]any{"status": "Scheduled"})
	contains(t, "the log", get[string](s, "SELECT string_agg(message, ' ') FROM connector.log"), "taken over by sidecar two from one")
}

// The paused sidecar's chunk holds its positions: the claim waits for it, keeps what it commits and shuts it out after.
func TestAClaimWaitsForTheChunkInFlight(t *testing.T) {
	s, w := stage(t)
	run := s.run("skip")
	fence := w.take(run)
	w.plan(run, fence, span{Start: 0, Target: 10, HighWatermark: 10})
	w.must("BEGIN")
	w.advance(run, fence, advance{From: 0, To: 4, Written: 4})
	s.must("UPDATE connector._endpoint SET lease_until = '-infinity'")

	two := w.another(t, "two")
	var got claimed
	done := background(t, func() (err error) {
		got, err = two.tryClaim(context.WithoutCancel(t.Context()), run)
		return err
	})
	waitsForALock(t, s, two.PgConn().PID())
	w.must("COMMIT")
	if err := done(); err != nil || got.outcome != "claimed" {
		t.Fatalf("%+v, %v", got, err)
	}
	if next := get[int64](s, "SELECT next_offset FROM connector._run_partition"); next != 4 {
		t.Errorf("the run goes on at %d", next)
	}
	w.fails("KC010", advanceSQL, run, fence, uuid.New(), []advance{{From: 4, To: 5, Written: 1}})
	if w.end(run, fence, "Failed", "internal") {
		t.Error("the last holder ended the run")
	}
	two.advance(run, got.fence, advance{From: 4, To: 10, Written: 6})
}

// Two workers that fetched the same job: one holds it, the other is told so.
func TestOneRunIsClaimedOnce(t *testing.T) {
	s, w := stage(t)
	run := s.run("skip")
	workers := []worker{w, w.another(t, "two"), w.another(t, "three")}
	outcomes := make([]string, len(workers))
	var waits []func() error
	for i, worker := range workers {
		waits = append(waits, background(t, func() error {
			c, err := worker.tryClaim(context.WithoutCancel(t.Context()), run)
			outcomes[i] = c.outcome
			return err
		}))
	}
	counts := map[string]int{}
	for i, done := range waits {
		if err := done(); err != nil {
			t.Fatal(err)
		}
		counts[outcomes[i]]++
	}
	if counts["claimed"] != 1 || counts["busy"] != 2 {
		t.Errorf("%v", counts)
	}
}
