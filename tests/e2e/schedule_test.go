package e2e

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"highwater/tests/harness"
)

// The only test that waits for a true minute: a slot starts a run at most about a second late, and the next one is
// shown. The others move the slot instead.
func TestAScheduleStartsARunAtTheMinute(t *testing.T) {
	f := onFake(t)
	topic := f.topic("partners", 1, nil)
	f.produce(topic, 0, partners(0, 10)...)
	f.sidecar(nil)
	f.declare("cadence", topic, `,"schedule":"* * * * *"`)
	// A minute is more than one wait allows for, so there are two.
	f.until("SELECT next_run_at < now() + interval '25 s' FROM connector.connectors")
	f.until("SELECT EXISTS (SELECT FROM connector.runs WHERE started_by = 'schedule' AND status = 'Completed' AND records_out = 10)")
	f.want("true", "SELECT min(scheduled_at) < date_trunc('minute', min(scheduled_at)) + interval '3 s' FROM connector.runs")
	f.want("true", "SELECT next_run_at > now() AND extract(second FROM next_run_at) = 0 FROM connector.connectors")
}

// due makes a connector's slot come now.
func (f *fixture) due(name string) {
	f.Helper()
	f.exec("UPDATE connector._schedule SET next_at = date_trunc('minute', clock_timestamp()) WHERE connector = $1", name)
}

func TestAnotherSidecarFiresTheSchedulesWhenTheLeaderIsKilled(t *testing.T) {
	f := onFake(t)
	topic := f.topic("partners", 1, nil)
	f.declare("cadence", topic, `,"schedule":"0 0 1 1 *"`)
	pid, dead := f.startChild("-")
	f.until("SELECT sidecar IS NOT NULL FROM connector._leader")
	other := f.sidecar(nil)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	receive(f, "the death of the leader", dead)
	begun := time.Now()
	f.due("cadence")
	f.until("SELECT EXISTS (SELECT FROM connector.runs WHERE started_by = 'schedule' AND status = 'Completed')")
	// The lease would last ten seconds from its last renewal; a session that is gone ends it earlier.
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("the slot was fired after %s", took)
	}
	f.want(other.Name(), "SELECT sidecar FROM connector._leader")
	f.want("1", "SELECT count(*) FROM connector.runs")
}

// A sidecar that stops hands the lead on, so that a rolling restart makes no slot late.
func TestALeaderThatStopsHandsTheLeadOn(t *testing.T) {
	f := onFake(t)
	first := f.sidecar(nil)
	f.want(first.Name(), "SELECT sidecar FROM connector._leader")
	if err := first.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	f.want("<null>", "SELECT sidecar FROM connector._leader")
}

// clone copies the database as a DBA might, and gives a fixture on the copy.
func (f *fixture) clone(t *testing.T) *fixture {
	t.Helper()
	name := f.text("SELECT current_database()")
	copied := name + "_copy"
	f.pool.Reset() // a database that somebody is connected to cannot be copied
	conn, err := pgx.Connect(t.Context(), harness.Server(t).URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	do := func(sql string) {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	t.Cleanup(func() {
		do("DROP DATABASE IF EXISTS " + copied + " WITH (FORCE)")
		_ = conn.Close(context.Background())
	})
	do(fmt.Sprintf("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '%s'", name))
	do("CREATE DATABASE " + copied + " TEMPLATE " + name)
	g := *f
	g.url = harness.Server(t).URL(copied)
	g.pool = harness.Pool(t, g.url)
	return &g
}

func TestACopiedDatabaseStartsNothingUntilItIsAdopted(t *testing.T) {
	f := onFake(t)
	topic := f.topic("partners", 1, nil)
	f.produce(topic, 0, partners(0, 10)...)
	f.declare("cadence", topic, `,"schedule":"0 0 1 1 *"`)
	original := f.sidecar(nil)
	f.completed("cadence", 10, 10)
	if err := original.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	f.exec("SELECT connector.run('cadence')") // and one that is still queued
	f.produce(topic, 0, partners(10, 5)...)

	g := f.clone(t)
	g.due("cadence")
	g.sidecar(nil)
	g.want("Cancelled cancelled", "SELECT status || ' ' || code FROM connector.runs ORDER BY scheduled_at DESC LIMIT 1")
	// Three of its looks at the schedules later:
	g.until("SELECT bool_or(last_seen_at > started_at + interval '3 s') FROM connector.sidecars WHERE started_at > now() - interval '1 min'")
	g.want("0 2", "SELECT count(*) FILTER (WHERE started_by = 'schedule') || ' ' || count(*) FROM connector.runs")
	g.want("<null>", "SELECT next_run_at FROM connector.connectors")
	g.want("10", "SELECT count(*) FROM connector.t_cadence")

	g.want("true", "SELECT connector.adopt()")
	g.want("1", "SELECT count(*) FROM connector.audit WHERE action = 'adopt'")
	g.due("cadence")
	g.until("SELECT EXISTS (SELECT FROM connector.runs WHERE started_by = 'schedule' AND status = 'Completed' AND records_out = 5)")
	g.want("15 15", "SELECT count(*) || ' ' || count(DISTINCT partner_id) FROM connector.t_cadence")
	g.want("0", "SELECT count(*) FROM connector.verify()")

	// The original is none of the copy's business: its run waits for its own sidecar.
	f.want("Scheduled", "SELECT status FROM connector.runs ORDER BY scheduled_at DESC LIMIT 1")
	f.want("10", "SELECT count(*) FROM connector.t_cadence")
}
