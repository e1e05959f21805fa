package api_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
)

func TestAHeartbeatRenewsAndTells(t *testing.T) {
	s, w := stage(t)
	run := s.run("skip")
	fence := w.take(run)
	s.must("UPDATE connector._endpoint SET lease_until = now() + interval '1 s'")
	if acts := w.beat(run); len(acts) != 0 {
		t.Errorf("%v", acts)
	}
	if !get[bool](s, "SELECT lease_until > now() + interval '5 s' FROM connector._endpoint") {
		t.Error("the lease was not renewed")
	}
	if got := get[string](s, "SELECT sidecar || ' ' || host || ' ' || version || ' ' || running FROM connector.sidecars"); got != "one host v1 1" {
		t.Error(got)
	}
	s.must("SELECT connector.cancel($1)", run)
	if acts := w.beat(run); acts[run] != "cancel" {
		t.Errorf("after the cancel: %v", acts)
	}
	stranger := uuid.New()
	if acts := w.beat(run, stranger); acts[stranger] != "lost" {
		t.Errorf("a run that never was: %v", acts)
	}
	w.end(run, fence, "Cancelled", "cancelled")
	if acts := w.beat(run); acts[run] != "lost" {
		t.Errorf("after the end: %v", acts)
	}
}

func TestAHeartbeatOfARunThatPassedOnIsLost(t *testing.T) {
	for name, lose := range map[string]func(s *session, w worker, run uuid.UUID){
		"taken over": func(s *session, w worker, run uuid.UUID) {
			s.must("UPDATE connector._endpoint SET lease_until = '-infinity'")
			w.another(t, "two").take(run)
		},
		"given back to the queue": func(s *session, w worker, _ uuid.UUID) {
			s.must("UPDATE connector._endpoint SET lease_until = '-infinity'")
			w.must("SELECT connector._requeue_orphans()")
		},
		"deleted": func(s *session, _ worker, _ uuid.UUID) { s.must("DELETE FROM connector.manifest") },
	} {
		t.Run(name, func(t *testing.T) {
			s, w := stage(t)
			run := s.run("skip")
			w.take(run)
			lose(s, w, run)
			if acts := w.beat(run); acts[run] != "lost" {
				t.Errorf("%v", acts)
			}
			if get[bool](s, "SELECT EXISTS (SELECT FROM connector._endpoint WHERE lease_sidecar = 'one' AND lease_until > now())") {
				t.Error("it renewed a lease that is not its own")
			}
		})
	}
}

// A claim that waits for a stuck chunk holds the endpoint's row. The sidecar must still be able to say that it lives.
func TestAHeartbeatDoesNotWaitForALockedEndpoint(t *testing.T) {
	s, w := stage(t)
	run := s.run("skip")
	w.take(run)
	s.must("BEGIN; SELECT FROM connector._endpoint FOR UPDATE")
	w.must("SET lock_timeout = '100ms'")
	if acts := w.beat(run); len(acts) != 0 {
		t.Errorf("%v", acts)
	}
}

func TestReleasedRunsAreTakenUpAtOnce(t *testing.T) {
	s, w := stage(t)
	run := s.run("skip")
	w.take(run)
	w.must("SELECT connector._release($1, 'two')", run)
	two := w.another(t, "two")
	if got := two.claim(run).outcome; got != "busy" {
		t.Errorf("somebody else's release freed it: %s", got)
	}
	w.must("SELECT connector._release($1, 'one')", run)
	s.is(run, map[string]any{"status": "Running"})
	two.take(run)
}

// orphans asks once and gives how many runs went back.
func (w worker) orphans() int {
	w.tb.Helper()
	return get[int](w.session, "SELECT connector._requeue_orphans()")
}

func TestOrphansGoBackToTheQueue(t *testing.T) {
	dead := func(t *testing.T, s *session, w worker) {
		t.Helper()
		_ = w.Close(context.WithoutCancel(t.Context()))
		until(t, func() bool {
			return !get[bool](s, "SELECT EXISTS (SELECT FROM pg_stat_activity AS a JOIN connector._sidecar AS s ON s.backend_pid = a.pid)")
		})
	}
	for _, c := range []struct {
		name string
		harm func(t *testing.T, s *session, w worker)
		want int
	}{
		{"a live one never", func(*testing.T, *session, worker) {}, 0},
		{"a lease that ran out", func(_ *testing.T, s *session, _ worker) {
			s.must("UPDATE connector._endpoint SET lease_until = now() - interval '1 ms'")
		}, 1},
		{"a session that is gone, once it is silent for 1.5 s", func(t *testing.T, s *session, w worker) {
			dead(t, s, w)
			s.must("UPDATE connector._sidecar SET last_seen_at = now() - interval '2 s'")
		}, 1},
		{"a session that is gone but was just heard of may come back", dead, 0},
		{"a silent sidecar whose session stands is alive", func(_ *testing.T, s *session, _ worker) {
			s.must("UPDATE connector._sidecar SET last_seen_at = now() - interval '5 s'")
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, w := stage(t)
			two := w.another(t, "two")
			run := s.run("skip")
			w.take(run)
			s.must("UPDATE connector_queue.river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{one}'")
			c.harm(t, s, w)
			if got := two.orphans(); got != c.want {
				t.Fatalf("%d went back, want %d", got, c.want)
			}
			if c.want == 0 {
				return
			}
			if got := get[string](s, "SELECT state || ' ' || attempt FROM connector_queue.river_job"); got != "available 0" {
				t.Errorf("its job is %s", got)
			}
			contains(t, "the log", get[string](s, "SELECT message FROM connector.log"), "sidecar one is gone")
			if got := two.orphans(); got != 0 {
				t.Errorf("it went back again: %d", got)
			}
			two.take(run)
		})
	}
}

// A run that nobody holds needs a job that somebody will fetch, whatever became of the one it had.
func TestLostJobsAreMadeGood(t *testing.T) {
	for _, c := range []struct {
		name string
		set  string
		want int
	}{
		{"available", "state = 'available'", 0},
		{"asleep until its turn", "state = 'scheduled', scheduled_at = now() + interval '1 hour'", 0},
		{"just fetched", "state = 'running', attempted_at = now()", 0},
		{"fetched by a worker that died before it claimed", "state = 'running', attempted_at = now() - interval '13 s'", 1},
		{"failed, due soon", "state = 'retryable', scheduled_at = now() + interval '5 s'", 0},
		{"failed, due in an hour", "state = 'retryable', scheduled_at = now() + interval '1 hour'", 1},
		{"given up", "state = 'discarded', finalized_at = now()", 1},
		{"cancelled by somebody", "state = 'cancelled', finalized_at = now()", 1},
		{"finished without the run", "state = 'completed', finalized_at = now()", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, w := stage(t)
			s.run("skip")
			s.must("UPDATE connector_queue.river_job SET " + c.set)
			if got := w.orphans(); got != c.want {
				t.Fatalf("%d made good, want %d", got, c.want)
			}
			if got := w.orphans(); got != 0 {
				t.Errorf("made good again: %d", got)
			}
			if c.want > 0 && !get[bool](s, "SELECT j.state = 'available' AND j.scheduled_at <= now() + interval '10 s' FROM connector._run AS r JOIN connector_queue.river_job AS j ON j.id = r.job_id") {
				t.Error("nobody will fetch it")
			}
		})
	}
	t.Run("deleted", func(t *testing.T) {
		s, w := stage(t)
		s.run("skip")
		s.must("DELETE FROM connector_queue.river_job")
		if got := w.orphans(); got != 1 || get[int](s, "SELECT count(*) FROM connector_queue.river_job") != 1 {
			t.Errorf("%d made good", got)
		}
	})
	t.Run("a job that is lost while its run is in live hands is not missed", func(t *testing.T) {
		s, w := stage(t)
		w.take(s.run("skip"))
		s.must("DELETE FROM connector_queue.river_job")
		if got := w.orphans(); got != 0 {
			t.Errorf("%d made good", got)
		}
	})
}

// What another sidecar is looking at is left to it: nobody waits.
func TestTwoSidecarsLookForOrphansAtOnce(t *testing.T) {
	s, w := stage(t)
	w.take(s.run("skip"))
	s.must("UPDATE connector._endpoint SET lease_until = '-infinity'")
	two := w.another(t, "two")
	w.must("BEGIN")
	if got := w.orphans(); got != 1 {
		t.Fatalf("%d", got)
	}
	two.must("SET lock_timeout = '100ms'")
	if got := two.orphans(); got != 0 {
		t.Errorf("both gave it back: %d", got)
	}
	w.must("COMMIT")
}
