package api_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"highwater/tests/harness"
)

func TestARunAndItsJobAreTheCallersTransaction(t *testing.T) {
	s, _ := stage(t)
	s.must("BEGIN")
	s.run("skip")
	s.must("ROLLBACK")
	if n := get[int](s, "SELECT (SELECT count(*) FROM connector._run) + (SELECT count(*) FROM connector_queue.river_job)"); n != 0 {
		t.Errorf("%d rows stayed", n)
	}
	run := s.run("skip")
	s.is(run, map[string]any{"status": "Scheduled", "connector": "acme", "started_by": "manual", "if_active": "skip", "tenant_id": 1.0, "endpoint": "default"})
	if got := s.state(run)["requested_by"]; got != get[string](s, "SELECT session_user") {
		t.Errorf("requested by %v", got)
	}
}

func TestRunRefuses(t *testing.T) {
	s, _ := stage(t)
	for _, c := range []struct{ state, sql, message string }{
		{"P0002", "SELECT connector.run('nobody')", `connector "nobody" does not exist`},
		{"P0002", "SELECT connector.run(NULL)", "does not exist"},
		{"22023", "SELECT connector.run('acme', 'queue')", "if_active must be skip or wait, not 'queue'"},
		{"22023", "SELECT connector.run('acme', NULL)", "not NULL"},
		{"P0002", "SELECT connector.cancel(gen_random_uuid())", "does not exist"},
		{"P0002", "SELECT connector.cancel(NULL)", "does not exist"},
	} {
		pg := s.fails(c.state, c.sql)
		contains(t, c.sql, pg.Message, c.message)
		if pg.Hint == "" {
			t.Errorf("%s has no hint", c.sql)
		}
	}
}

func TestRunWarnsWhereNoSidecarListens(t *testing.T) {
	s, _ := stage(t)
	s.run("skip")
	if w := s.warnings(); len(w) != 0 {
		t.Errorf("with a sidecar: %v", w[0].Message)
	}
	s.must("UPDATE connector._sidecar SET last_seen_at = now() - interval '16 s'")
	s.run("skip")
	if w := s.warnings(); len(w) != 1 || w[0].Code != "KC002" || w[0].Hint == "" {
		t.Fatalf("%+v", w)
	}
}

// It joins what is committed and never waits for what is not.
func TestAWaitingRunIsJoinedOnlyWhenItCanBeSeen(t *testing.T) {
	s, _ := stage(t)
	other := connect(t, s.Config().ConnString())
	other.must("BEGIN")
	theirs := other.run("wait")
	if again := other.run("wait"); again != theirs {
		t.Error("the same transaction made two")
	}
	s.must("SET lock_timeout = '200ms'; SET statement_timeout = '5s'")
	ours := s.run("wait")
	if ours == theirs {
		t.Error("joined an uncommitted run")
	}
	other.must("COMMIT")
	if third := connect(t, s.Config().ConnString()).run("wait"); third != theirs && third != ours {
		t.Error("joined neither")
	}
	if skip := s.run("skip"); skip == ours || skip == theirs {
		t.Error("a skip run joined")
	}
}

// An old snapshot may still show a run waiting that has long ended; joining it would lose the request.
func TestUnderRepeatableReadNothingIsJoined(t *testing.T) {
	s, w := stage(t)
	waiting := s.run("wait")
	s.must("BEGIN ISOLATION LEVEL REPEATABLE READ")
	s.must("SELECT count(*) FROM connector.runs")
	w.whole(waiting, 0, 0)
	run := s.run("wait")
	s.must("COMMIT")
	s.is(run, map[string]any{"status": "Scheduled"})
}

// P15: any number of requests at once make one active run and at most one that waits.
func TestTwoHundredAtOnce(t *testing.T) {
	const sessions, calls = 20, 10
	s, w := stage(t)
	var waits []func() error
	for range sessions {
		other := connect(t, s.Config().ConnString())
		waits = append(waits, background(t, func() error {
			for range calls {
				if _, err := other.Exec(context.WithoutCancel(t.Context()), "SELECT connector.run('acme', 'wait')"); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for _, done := range waits {
		if err := done(); err != nil {
			t.Fatal(err)
		}
	}
	made := get[int](s, "SELECT count(*) FROM connector._run")
	if made == 0 || made > sessions {
		t.Errorf("%d runs for %d sessions", made, sessions)
	}
	if jobs := get[int](s, "SELECT count(*) FROM connector_queue.river_job"); jobs != made {
		t.Errorf("%d jobs for %d runs", jobs, made)
	}
	w.take(get[uuid.UUID](s, "SELECT run_id FROM connector._run ORDER BY scheduled_at LIMIT 1"))
	if got := get[string](s, "SELECT string_agg(DISTINCT status, ' ' ORDER BY status) FROM connector.runs WHERE code IS DISTINCT FROM 'joined'"); got != "Running" {
		t.Errorf("besides the joined ones: %s", got)
	}
	if n := get[int](s, "SELECT count(*) FROM connector_queue.river_job WHERE state = 'available'"); n != 1 {
		t.Errorf("%d jobs are left", n)
	}
}

func TestCancel(t *testing.T) {
	s, w := stage(t)
	waiting := s.run("skip")
	if !get[bool](s, "SELECT connector.cancel($1)", waiting) {
		t.Error("a scheduled run was not cancelled")
	}
	s.is(waiting, map[string]any{"status": "Cancelled", "code": "cancelled"})
	if got := get[string](s, "SELECT state::text FROM connector_queue.river_job"); got != "cancelled" {
		t.Errorf("its job is %s", got)
	}
	if get[bool](s, "SELECT connector.cancel($1)", waiting) {
		t.Error("it was cancelled twice")
	}

	running := s.run("skip")
	fence := w.take(running)
	w.must("LISTEN highwater")
	for range 2 {
		if !get[bool](s, "SELECT connector.cancel($1)", running) {
			t.Error("a running run was not asked to stop")
		}
		n, err := w.WaitForNotification(t.Context())
		if err != nil || n.Payload != running.String() {
			t.Errorf("%v, %v", n, err)
		}
	}
	s.is(running, map[string]any{"status": "Running", "cancelled_by": get[string](s, "SELECT session_user")})
	w.end(running, fence, "Cancelled", "cancelled")
	if get[bool](s, "SELECT connector.cancel($1)", running) {
		t.Error("an ended run was cancelled")
	}
}

// An application's role inserts into its own table; it has no right in ours and needs none.
func TestRunOnChange(t *testing.T) {
	s, w := stage(t)
	app := newRole(t, s)
	s.must("CREATE TABLE orders (id int); GRANT INSERT, UPDATE ON orders TO " + app)
	s.must("CREATE TRIGGER t AFTER INSERT OR UPDATE ON orders FOR EACH STATEMENT EXECUTE FUNCTION connector.run_on_change('acme')")
	a := as(t, s.Config().ConnString(), app)
	a.must("BEGIN; INSERT INTO orders VALUES (1), (2); INSERT INTO orders VALUES (3); UPDATE orders SET id = 1; COMMIT")
	if got := get[string](s, "SELECT string_agg(concat_ws(' ', started_by, requested_by, status), ', ') FROM connector.runs"); got != "trigger "+app+" Scheduled" {
		t.Errorf("runs: %s", got)
	}
	if len(a.warnings()) != 0 {
		t.Error("the application was warned")
	}
	s.must("UPDATE connector._sidecar SET last_seen_at = '-infinity'")
	a.must("BEGIN; INSERT INTO orders VALUES (4); ROLLBACK")
	w.whole(get[uuid.UUID](s, "SELECT run_id FROM connector.runs"), 0, 0)
	a.must("INSERT INTO orders VALUES (5)")
	if n := get[int](s, "SELECT count(*) FROM connector.runs"); n != 2 {
		t.Errorf("%d runs", n)
	}
}

func TestRunOnChangeMisused(t *testing.T) {
	s, _ := stage(t)
	s.must("CREATE TABLE orders (id int)")
	for _, c := range []struct{ name, how, arguments, state, message string }{
		{"before", "BEFORE INSERT ON orders FOR EACH STATEMENT", "'acme'", "39P01", "must be AFTER and FOR EACH STATEMENT"},
		{"each row", "AFTER INSERT ON orders FOR EACH ROW", "'acme'", "39P01", "must be AFTER and FOR EACH STATEMENT"},
		{"no name", "AFTER INSERT ON orders FOR EACH STATEMENT", "", "22023", "exactly one connector"},
		{"two names", "AFTER INSERT ON orders FOR EACH STATEMENT", "'acme', 'b'", "22023", "exactly one connector"},
		{"unknown", "AFTER INSERT ON orders FOR EACH STATEMENT", "'nobody'", "P0002", `connector "nobody" does not exist`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.must("CREATE TRIGGER t " + c.how + " EXECUTE FUNCTION connector.run_on_change(" + c.arguments + ")")
			defer s.must("DROP TRIGGER t ON orders")
			pg := s.fails(c.state, "INSERT INTO orders VALUES (1)")
			contains(t, "the message", pg.Message, c.message)
			contains(t, "the hint", pg.Hint, "TRIGGER t", "ON public.orders")
		})
	}
}

// A trigger on the connector's own table, fired by the sidecar inside a chunk: one more run, which finds nothing.
func TestATriggerOnTheOwnTableEndsByItself(t *testing.T) {
	s, w := stage(t)
	s.must("CREATE TABLE connector.t_partners (id int); ALTER TABLE connector.t_partners OWNER TO highwater_owner")
	s.must("CREATE TRIGGER t AFTER INSERT ON connector.t_partners FOR EACH STATEMENT EXECUTE FUNCTION connector.run_on_change('acme')")
	run := s.run("skip")
	fence := w.take(run)
	w.plan(run, fence, span{Target: 2, HighWatermark: 2})
	for i := range int64(2) {
		w.must("BEGIN; INSERT INTO connector.t_partners VALUES (1)")
		w.advance(run, fence, advance{From: i, To: i + 1, Written: 1})
		w.must("COMMIT")
	}
	w.end(run, fence, "Completed", "ok")
	if n := get[int](s, "SELECT count(*) FROM connector.runs WHERE status = 'Scheduled'"); n != 1 {
		t.Errorf("%d runs wait", n)
	}
	w.whole(get[uuid.UUID](s, "SELECT run_id FROM connector.runs WHERE status = 'Scheduled'"), 2, 2)
	if n := get[int](s, "SELECT count(*) FROM connector.runs WHERE ended_at IS NULL"); n != 0 {
		t.Errorf("%d runs are left", n)
	}
}

// The trigger is the table owner's word: an owner of one tenant cannot name a connector of another.
func TestRunOnChangeKeepsTenantsApart(t *testing.T) {
	url := harness.Database(t)
	s := connect(t, url)
	s.must("INSERT INTO connector.manifest (name, tenant_id, scopes, spec) VALUES ('eight', 8, '{a}', $1)", least)
	owner, app := newRole(t, s, "highwater_operator"), newRole(t, s)
	s.must("INSERT INTO connector.tenant_roles VALUES ($1, 7)", owner)
	s.must("CREATE TABLE orders (id int); ALTER TABLE orders OWNER TO " + owner + "; GRANT INSERT ON orders TO " + app)
	as(t, url, owner).must("CREATE TRIGGER t AFTER INSERT ON orders FOR EACH STATEMENT EXECUTE FUNCTION connector.run_on_change('eight')")
	a := as(t, url, app)
	pg := a.fails("P0002", "INSERT INTO orders VALUES (1)")
	if !strings.Contains(pg.Message, `connector "eight" does not exist`) {
		t.Error(pg.Message)
	}
	s.must("UPDATE connector.tenant_roles SET tenant_id = 8")
	a.must("INSERT INTO orders VALUES (1)")
}
