package api_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

// copied is a cadence whose database was served and is found to be another one now.
func copied(t *testing.T, change string) (s *session, w worker) {
	t.Helper()
	s, w = cadence(t, "*/5 * * * *", "")
	s.must(change)
	return s, w
}

const restored = "UPDATE connector._installation SET database_name = 'original'"

func TestACopyHoldsItsSchedulesUntilItIsAdopted(t *testing.T) {
	for name, change := range map[string]string{
		"under another name":                       restored,
		"on another server":                        "UPDATE connector._installation SET system_identifier = 1",
		"on another server and under another name": "UPDATE connector._installation SET system_identifier = 1, database_name = 'original'",
	} {
		t.Run(name, func(t *testing.T) {
			s, w := copied(t, change)
			if f := w.fire(clock(10, 20, 0)); f != (fired{held: true}) {
				t.Errorf("%+v", f)
			}
			if got := s.bySchedule() + ", next " + s.next(); got != "nothing, next none" {
				t.Errorf("while held: %s", got)
			}
			s.schedule("*/10 * * * *", "") // neither does a change bring it to life
			if f := w.fire(clock(10, 30, 0)); f.taken != 0 || s.next() != "none" {
				t.Errorf("after a change: %+v, next %s", f, s.next())
			}
			if !get[bool](s, "SELECT connector.adopt()") {
				t.Error("adopt says that nothing was held")
			}
			contains(t, "the audit", get[string](s, "SELECT role || ' ' || action || ' ' || detail FROM connector.audit"), "postgres adopt ", "was_database", "was_system_identifier")
			// What passed meanwhile is not made up for: the true time is long after the test's.
			if !get[bool](s, "SELECT next_run_at > now() FROM connector.connectors") {
				t.Error("the next run is not the next slot")
			}
			w.must("UPDATE connector._schedule SET next_at = $1", clock(10, 40, 0))
			if f := w.fire(clock(10, 40, 0)); f.held || f.started != 1 {
				t.Errorf("after adopt: %+v", f)
			}
			if get[bool](s, "SELECT connector.adopt()") {
				t.Error("adopted twice")
			}
			if n := get[int](s, "SELECT count(*) FROM connector.audit"); n != 1 {
				t.Errorf("%d gestures in the audit", n)
			}
		})
	}
}

func TestADatabaseThatGetsItsNameBackGoesOnByItself(t *testing.T) {
	s, w := copied(t, restored)
	w.fire(clock(10, 20, 0))
	s.must("UPDATE connector._installation SET database_name = current_database()")
	w.fire(clock(10, 21, 0))
	if f := w.fire(clock(10, 25, 0)); f.started != 1 {
		t.Errorf("%+v", f)
	}
}

// Runs that were copied with the database are the original's to finish.
func TestRunsThatWereCopiedEnd(t *testing.T) {
	s, w := cadence(t, "*/5 * * * *", "")
	running := s.run("skip")
	w.take(running)
	waiting := s.run("wait")
	s.must(restored)
	w.fire(clock(10, 20, 0))
	for _, run := range []uuid.UUID{running, waiting} {
		s.is(run, map[string]any{"status": "Cancelled", "code": "cancelled"})
		contains(t, "the message", s.state(run)["message"].(string), "copied with the database", "original")
	}
	if n := get[int](s, "SELECT count(*) FROM connector_queue.river_job WHERE state = 'available'"); n != 0 {
		t.Errorf("%d jobs are still to be had", n)
	}
	if n := w.orphans(); n != 0 {
		t.Errorf("%d runs were given back to the queue", n)
	}
	later := s.run("skip")
	w.fire(clock(10, 25, 0)) // what was asked for here is not ended
	s.is(later, map[string]any{"status": "Scheduled"})
	w.take(later)
	verified(t, s)
}

func TestARunByHandInACopyWarns(t *testing.T) {
	s, w := copied(t, restored)
	copiedRun := w.unlooked()
	s.warnings()
	run := s.run("skip") // before any sidecar has looked
	if got := s.warnings(); len(got) != 1 || got[0].Code != "KC003" || !strings.Contains(got[0].Hint, "connector.adopt()") {
		t.Errorf("%+v", got)
	}
	s.is(copiedRun, map[string]any{"status": "Cancelled"})
	w.fire(clock(10, 20, 0))
	s.is(run, map[string]any{"status": "Scheduled"})
	s.must("SELECT connector.adopt()")
	s.run("skip")
	if got := s.warnings(); len(got) != 0 {
		t.Errorf("after adopt: %+v", got)
	}
}

// unlooked makes a run as the original would have, without looking at what this database is.
func (w worker) unlooked() uuid.UUID {
	w.tb.Helper()
	return get[uuid.UUID](w.session, "SELECT connector._run('acme', 'skip', 'manual')")
}

// An operator's open transaction must not keep a sidecar from starting, nor a copy from being known as one.
func TestACopyIsHeldWhileSomebodyHoldsItsRows(t *testing.T) {
	s, w := copied(t, restored)
	w.must("SET lock_timeout = '100ms'")
	s.must("BEGIN")
	s.run("skip")
	s.must("UPDATE connector._schedule SET last_slot = last_slot")
	if f := w.fire(clock(10, 20, 0)); f != (fired{held: true}) {
		t.Errorf("%+v", f)
	}
	s.must("COMMIT")
	w.fire(clock(10, 20, 1))
	if got := s.next(); got != "none" {
		t.Errorf("next_run_at is %s", got)
	}
	if n := get[int](s, "SELECT count(*) FROM connector.runs WHERE status = 'Scheduled'"); n != 1 {
		t.Errorf("%d runs are left", n)
	}
}

// Some hosted servers let nobody read the identifier. The name alone is compared then, and nothing is held for the lack of it.
func TestAServerThatDoesNotTellItsIdentifier(t *testing.T) {
	s, w := cadence(t, "*/5 * * * *", "")
	s.must("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
	if f := w.fire(clock(10, 20, 0)); f.held || f.started != 1 {
		t.Errorf("known then, unknown now: %+v", f)
	}
	s.must("UPDATE connector._installation SET system_identifier = NULL")
	s.must("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
	if f := w.fire(clock(10, 20, 1)); f.held {
		t.Error("unknown then, known now: held")
	}
	s.must("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
	s.must(restored)
	if f := w.fire(clock(10, 20, 2)); !f.held {
		t.Error("another name was not seen")
	}
}

func TestATenantMayNotAdoptForOthers(t *testing.T) {
	admin, seven, _, reader, stranger := tenants(t)
	w := newWorker(t, admin.Config().ConnString(), "one")
	w.fire(clock(10, 17, 30))
	admin.must(restored)
	contains(t, "the hint", seven.fails("42501", "SELECT connector.adopt()").Hint, "connector.tenant_roles")
	reader.fails("42501", "SELECT connector.adopt()")
	stranger.fails("42501", "SELECT connector.adopt()")
	admin.must("DELETE FROM connector.manifest WHERE name = 'eight'")
	if !get[bool](seven, "SELECT connector.adopt()") {
		t.Error("the only tenant may not adopt its own database")
	}
}

func TestABeginnersDatabaseIsNobodysCopy(t *testing.T) {
	s, w := stage(t)
	if get[bool](s, "SELECT connector.adopt()") {
		t.Error("something was held before any sidecar looked")
	}
	s.run("skip")
	if got := s.warnings(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if f := w.fire(clock(10, 20, 0)); f.held || !f.leads {
		t.Errorf("%+v", f)
	}
	if !get[bool](s, "SELECT database_name = current_database() AND system_identifier IS NOT NULL AND held_since IS NULL FROM connector._installation") {
		t.Error("the first sidecar did not write down which database it serves")
	}
}
