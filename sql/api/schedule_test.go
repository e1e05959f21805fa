package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"highwater/tests/harness"
)

// clock gives a moment of 3 February 2026, a Tuesday, of which every test of schedules begins at 10:17:30.
func clock(hour, minute, second int) time.Time {
	return time.Date(2026, 2, 3, hour, minute, second, 0, time.UTC)
}

// fired is what a look at the schedules gives.
type fired struct {
	held, leads    bool
	taken, started int
}

func (w worker) tryFire(ctx context.Context, now time.Time) (f fired, err error) {
	err = w.QueryRow(ctx, "SELECT held, leads, taken, started FROM connector._fire_schedules($1, $2)", w.name, now).
		Scan(&f.held, &f.leads, &f.taken, &f.started)
	return f, err
}

// fire looks at the schedules as if it were that late.
func (w worker) fire(now time.Time) fired {
	w.tb.Helper()
	f, err := w.tryFire(w.tb.Context(), now)
	if err != nil {
		w.tb.Fatal(err)
	}
	return f
}

// cadence is a stage whose connector has a schedule, reckoned at 10:17:30, and a window unless that is empty.
func cadence(t *testing.T, schedule, window string) (s *session, w worker) {
	t.Helper()
	s, w = stage(t)
	s.schedule(schedule, window)
	w.reckon()
	return s, w
}

func (s *session) schedule(schedule, window string) {
	s.tb.Helper()
	s.must(`UPDATE connector.manifest SET spec = jsonb_strip_nulls(spec || jsonb_build_object('schedule', $1::text, 'window', nullif($2, '')))`, schedule, window)
}

// reckon forgets the slots that the true time gave and reckons them by the test's clock.
func (w worker) reckon() {
	w.tb.Helper()
	w.must("UPDATE connector._schedule SET next_at = NULL")
	if f := w.fire(clock(10, 17, 30)); !f.leads || f.started != 0 {
		w.tb.Fatalf("reckoning the slots: %+v", f)
	}
}

// next is connector.connectors.next_run_at in UTC.
func (s *session) next() string {
	s.tb.Helper()
	return get[string](s, "SELECT coalesce(to_char(next_run_at AT TIME ZONE 'UTC', 'DD HH24:MI'), 'none') FROM connector.connectors WHERE name = 'acme'")
}

// ledger lists what the schedule has left behind, the oldest first.
func (s *session) bySchedule() string {
	s.tb.Helper()
	return get[string](s, `SELECT coalesce(string_agg(concat_ws(' ', status, code), ', ' ORDER BY scheduled_at), 'nothing')
		FROM connector.runs WHERE started_by = 'schedule'`)
}

// complete ends every run that has not ended.
func (s *session) complete() {
	s.tb.Helper()
	s.must("UPDATE connector._run SET status = 'Completed', code = 'ok', ended_at = now() WHERE ended_at IS NULL")
}

func TestASlotIsFiredOnceWhenItIsDue(t *testing.T) {
	s, w := cadence(t, "*/5 * * * *", "")
	if got := s.next(); got != "03 10:20" {
		t.Errorf("next_run_at is %s", got)
	}
	if f := w.fire(clock(10, 19, 59)); f.taken != 0 {
		t.Errorf("early: %+v", f)
	}
	if f := w.fire(clock(10, 20, 0)); f.taken != 1 || f.started != 1 {
		t.Errorf("on time: %+v", f)
	}
	if f := w.fire(clock(10, 20, 1)); f.taken != 0 {
		t.Errorf("again: %+v", f)
	}
	if got := s.bySchedule() + ", next " + s.next(); got != "Scheduled, next 03 10:25" {
		t.Error(got)
	}
	// A run like any other, with a job that a sidecar will fetch.
	w.take(get[uuid.UUID](s, "SELECT (j.args ->> 'run_id')::uuid FROM connector_queue.river_job AS j"))
}

func TestASlotOutsideTheWindowIsNeverQueued(t *testing.T) {
	s, w := cadence(t, "0 * * * *", "22:00-02:00")
	for hour := 11; hour < 11+24; hour++ {
		w.fire(clock(hour, 0, 0))
		s.complete()
	}
	if got := get[string](s, "SELECT count(*) || ' ' || s.last_slot::text FROM connector._run, connector._schedule AS s GROUP BY s.last_slot"); got != "4 2026-02-04 01:00:00+00" {
		t.Errorf("runs and the last slot: %s", got)
	}
	if got := s.next(); got != "04 22:00" {
		t.Errorf("next_run_at is %s", got)
	}
}

func TestAScheduleThatNeverMeetsItsWindowHasNoNextRun(t *testing.T) {
	s, w := cadence(t, "0 3 * * *", "06:00-22:00")
	if f := w.fire(clock(27, 0, 0)); f.taken != 0 || s.next() != "none" {
		t.Errorf("%+v, next %s", f, s.next())
	}
}

func TestMissedSlotsAreMadeUpForOnce(t *testing.T) {
	for name, c := range map[string]struct {
		now  time.Time
		want string
	}{
		"the leader took over late, yet within the minute": {clock(10, 20, 59), "Scheduled, next 03 10:25"},
		"one was missed":                                {clock(10, 24, 0), "Scheduled, next 03 10:25"},
		"hundreds were":                                 {clock(21, 59, 0), "Scheduled, next 04 06:00"},
		"the window has closed":                         {clock(22, 0, 0), "Cancelled skipped_window, next 04 06:00"},
		"it has closed and opened again":                {clock(24+6, 1, 0), "Scheduled, next 04 06:05"},
		"it comes back with a slot":                     {clock(11, 0, 0), "Scheduled, next 03 11:05"},
		"the last before the closing, in its minute":    {clock(21, 55, 30), "Scheduled, next 04 06:00"},
		"weeks later, at night: the window is closed":   {clock(24*21+3, 0, 0), "Cancelled skipped_window, next 24 06:00"},
		"weeks later, by day, and it is only one again": {clock(24*21+12, 0, 0), "Scheduled, next 24 12:05"},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := cadence(t, "*/5 * * * *", "06:00-22:00")
			w.fire(c.now)
			w.fire(c.now.Add(time.Second))
			if got := s.bySchedule() + ", next " + s.next(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if late := c.now.Sub(clock(10, 20, 0)) >= time.Minute; late {
				said := get[string](s, "SELECT coalesce(r.message, l.message) FROM connector.runs AS r LEFT JOIN connector.log AS l USING (run_id)")
				contains(t, "what it says", said, "slot of 2026-02-03 10:20 UTC")
			}
		})
	}
}

// The slot's minute is the window's last one: a leader that takes over a few seconds later is still on time.
func TestASlotOnTimeDoesNotHeedThatTheWindowClosesMeanwhile(t *testing.T) {
	s, w := cadence(t, "59 10 * * *", "10:00-11:00")
	w.fire(clock(10, 59, 58))
	if got := s.bySchedule(); got != "Scheduled" {
		t.Error(got)
	}
	s.schedule("0 12 * * *", "12:00-12:01")
	s.complete()
	w.reckon()
	w.fire(clock(12, 1, 1))
	if got := s.bySchedule(); got != "Completed ok, Cancelled skipped_window" {
		t.Error(got)
	}
}

func TestASlotThatMeetsAnActiveRunSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(w worker, run uuid.UUID)
		word  string
	}{
		"running":      {func(w worker, run uuid.UUID) { w.take(run) }, "is active"},
		"yet to start": {func(worker, uuid.UUID) {}, "has yet to start"},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := cadence(t, "*/5 * * * *", "")
			active := s.run("skip")
			c.begin(w, active)
			if f := w.fire(clock(10, 20, 0)); f.taken != 1 || f.started != 0 {
				t.Errorf("%+v", f)
			}
			if got := s.bySchedule(); got != "Cancelled skipped_active" {
				t.Fatal(got)
			}
			contains(t, "the message", get[string](s, "SELECT message FROM connector.runs WHERE started_by = 'schedule'"), active.String(), c.word)
			if n := get[int](s, "SELECT count(*) FROM connector_queue.river_job"); n != 1 {
				t.Errorf("%d jobs", n)
			}
			s.complete()
			if f := w.fire(clock(10, 25, 0)); f.started != 1 {
				t.Errorf("the next slot: %+v", f)
			}
		})
	}
}

// Nobody has to restart anything after an outage: each slot is a row of the ledger, and the first that can reads on.
func TestSlotsGoOnWhateverBecameOfTheirRuns(t *testing.T) {
	s, w := cadence(t, "*/5 * * * *", "")
	for i, code := range []string{"broker_unreachable", "broker_lost", "broker_unreachable", "ok"} {
		w.fire(clock(10, 20+5*i, 0))
		run := get[uuid.UUID](s, "SELECT run_id FROM connector.runs WHERE status = 'Scheduled'")
		status := "Failed"
		if code == "ok" {
			status = "Completed"
		}
		if !w.end(run, w.take(run), status, code) {
			t.Fatal("the run could not be ended")
		}
	}
	if got := s.bySchedule(); got != "Failed broker_unreachable, Failed broker_lost, Failed broker_unreachable, Completed ok" {
		t.Error(got)
	}
}

func TestAChangeOfTheScheduleCountsFromItsCommit(t *testing.T) {
	for _, c := range []struct{ name, change, end, then, next string }{
		{"changed", `UPDATE connector.manifest SET spec = spec || '{"schedule": "30 12 * * *"}'`, "COMMIT", "nothing", "03 12:30"},
		{"changed and rolled back", `UPDATE connector.manifest SET spec = spec || '{"schedule": "30 12 * * *"}'`, "ROLLBACK", "Scheduled", "03 10:25"},
		{"removed", "UPDATE connector.manifest SET spec = spec - 'schedule'", "COMMIT", "nothing", "none"},
		{"removed and rolled back", "UPDATE connector.manifest SET spec = spec - 'schedule'", "ROLLBACK", "Scheduled", "03 10:25"},
		{"the window closed", `UPDATE connector.manifest SET spec = spec || '{"window": "12:00-13:00"}'`, "COMMIT", "nothing", "03 12:00"},
		{"deleted", "DELETE FROM connector.manifest", "COMMIT", "nothing", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, w := cadence(t, "*/5 * * * *", "")
			w.must("SET lock_timeout = '100ms'")
			s.must("BEGIN; " + c.change)
			if f := w.fire(clock(10, 20, 0)); f.taken != 0 {
				t.Errorf("while the change was not decided: %+v", f)
			}
			if c.end == "COMMIT" && c.name != "deleted" { // the test's clock is not the one by which the trigger reckons
				s.must("UPDATE connector._schedule SET next_at = connector._next_slot(schedule, \"window\", $1)", clock(10, 20, 0))
			}
			s.must(c.end)
			w.fire(clock(10, 20, 1))
			if got := s.bySchedule(); got != c.then {
				t.Errorf("%s, want %s", got, c.then)
			}
			if c.next != "" && s.next() != c.next {
				t.Errorf("next_run_at is %s, want %s", s.next(), c.next)
			}
		})
	}
}

func TestOtherChangesLeaveADueSlotDue(t *testing.T) {
	s, w := cadence(t, "*/5 * * * *", "")
	s.must(`UPDATE connector.manifest SET spec = spec || '{"client_id": "other"}', scopes = '{other}'`)
	if f := w.fire(clock(10, 20, 0)); f.started != 1 {
		t.Errorf("%+v", f)
	}
}

func TestADeclaredScheduleHasItsNextRunAtOnce(t *testing.T) {
	s := connect(t, harness.Database(t))
	declare(s, "acme", `{"schedule": "* * * * *"}`)
	if !get[bool](s, "SELECT next_run_at BETWEEN now() AND now() + interval '62 s' AND extract(second FROM next_run_at) = 0 FROM connector.connectors") {
		t.Error("the next run is not at the next minute")
	}
	s.must("DELETE FROM connector.manifest")
	if n := get[int](s, "SELECT count(*) FROM connector._schedule"); n != 0 {
		t.Errorf("%d schedules outlived their connector", n)
	}
}

func TestALookDealsWithSoManySlotsAndLosesNone(t *testing.T) {
	s, w := cadence(t, "*/5 * * * *", "")
	s.must(`INSERT INTO connector.manifest (name, spec) SELECT 'c' || n, $1::jsonb || jsonb_build_object('name', 'c' || n, 'schedule', '*/5 * * * *') FROM generate_series(1, 129) AS n`, least)
	s.must("UPDATE connector._schedule SET next_at = $1", clock(10, 20, 0))
	for _, want := range []int{100, 30, 0} {
		if f := w.fire(clock(10, 20, 0)); f.taken != want || f.started != want {
			t.Errorf("%+v, want %d", f, want)
		}
	}
	if n := get[int](s, "SELECT count(DISTINCT connector) FROM connector.runs"); n != 130 {
		t.Errorf("%d connectors were run", n)
	}
}

// A row that a superuser left behind must not keep the others from their slots.
func TestAScheduleWithoutItsConnectorIsPassedOver(t *testing.T) {
	s, w := cadence(t, "*/5 * * * *", "")
	s.must("INSERT INTO connector._schedule (connector_id, connector, tenant_id, schedule, next_at) VALUES (gen_random_uuid(), 'gone', 1, '* * * * *', '-infinity')")
	if f := w.fire(clock(10, 20, 0)); f.taken != 1 || f.started != 1 {
		t.Errorf("%+v", f)
	}
}

// Goal: however the sidecars' looks fall, a slot is fired once. Method: several look at once over many slots, none of them
// heeding the other's lease, which is made to run out all the time.
func TestTwoLeadersAtOnceFireASlotOnce(t *testing.T) {
	s, w := cadence(t, "*/5 * * * *", "")
	hands := []worker{w, w.another(t, "two"), w.another(t, "three")}
	const slots = 20
	for i := range slots {
		now := clock(10, 20+5*i, 0)
		var done []func() error
		for _, h := range hands {
			done = append(done, background(t, func() error {
				if _, err := h.Exec(context.WithoutCancel(t.Context()), "UPDATE connector._leader SET lease_until = '-infinity'"); err != nil {
					return err
				}
				_, err := h.tryFire(context.WithoutCancel(t.Context()), now)
				return err
			}))
		}
		for _, d := range done {
			if err := d(); err != nil {
				t.Fatal(err)
			}
		}
		w.must("UPDATE connector._leader SET lease_until = '-infinity'")
		w.fire(now) // where all had passed over a locked row
		s.complete()
	}
	if n := get[int](s, "SELECT count(*) FROM connector.runs"); n != slots {
		t.Errorf("%d rows for %d slots", n, slots)
	}
}

func TestTheLeaderMovesWhenItDies(t *testing.T) {
	for name, c := range map[string]struct {
		harm  func(t *testing.T, s *session, w worker)
		moves bool
	}{
		"it lives":                 {func(*testing.T, *session, worker) {}, false},
		"its lease ran out":        {func(_ *testing.T, s *session, _ worker) { s.must("UPDATE connector._leader SET lease_until = now()") }, true},
		"it gave the lead up":      {func(_ *testing.T, _ *session, w worker) { w.must("SELECT connector._resign('one')") }, true},
		"somebody else gave it up": {func(_ *testing.T, _ *session, w worker) { w.must("SELECT connector._resign('three')") }, false},
		"its session is gone":      {vanish, true},
		"it was not heard of, but lives": {func(_ *testing.T, s *session, _ worker) {
			s.must("UPDATE connector._sidecar SET last_seen_at = now() - interval '5 s'")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := cadence(t, "*/5 * * * *", "")
			two := w.another(t, "two")
			if f := two.fire(clock(10, 20, 0)); f.leads || f.taken != 0 {
				t.Fatalf("two lead: %+v", f)
			}
			c.harm(t, s, w)
			if f := two.fire(clock(10, 20, 0)); f.leads != c.moves || (f.started == 1) != c.moves {
				t.Errorf("%+v", f)
			}
			if c.moves && get[string](s, "SELECT sidecar FROM connector._leader") != "two" {
				t.Error("the lead was not taken")
			}
		})
	}
}

// vanish ends a sidecar's session and lets it be silent for two seconds.
func vanish(t *testing.T, s *session, w worker) {
	t.Helper()
	_ = w.Close(context.WithoutCancel(t.Context()))
	until(t, func() bool {
		return !get[bool](s, "SELECT EXISTS (SELECT FROM pg_stat_activity AS a JOIN connector._sidecar AS s ON s.backend_pid = a.pid)")
	})
	s.must("UPDATE connector._sidecar SET last_seen_at = now() - interval '2 s'")
}

// The slots of one tenant are no secret to the sidecar, and none of another's business.
func TestSchedulesOfEveryTenantAreFired(t *testing.T) {
	admin, seven, eight, _, _ := tenants(t)
	for _, s := range []*session{seven, eight} {
		s.schedule("*/5 * * * *", "")
	}
	w := newWorker(t, admin.Config().ConnString(), "one")
	w.beat()
	w.reckon()
	if f := w.fire(clock(10, 20, 0)); f.started != 2 {
		t.Errorf("%+v", f)
	}
	for name, s := range map[string]*session{"seven": seven, "eight": eight} {
		if got := get[string](s, "SELECT string_agg(connector, ' ') FROM connector.runs"); got != name {
			t.Errorf("tenant %s sees runs of %s", name, got)
		}
		if n := get[int](s, "SELECT count(*) FROM connector._schedule"); n != 1 {
			t.Errorf("tenant %s sees %s", name, fmt.Sprint(n, " schedules"))
		}
	}
}
