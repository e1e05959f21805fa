package e2e

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// soon bounds how long an operator waits for a cancel to be obeyed.
const soon = 5 * time.Second

// cancelled cancels a run, does what is to come after that, waits for the end and checks how it came.
func (f *fixture) cancelled(runID string, then func()) ended {
	f.Helper()
	begun := time.Now()
	f.want("true", "SELECT connector.cancel($1)", runID)
	then()
	e := f.wait(runID)
	f.ends(e, "Cancelled", "cancelled", "cancelled")
	if took := time.Since(begun); took > soon {
		f.Errorf("the cancel took %s", took)
	}
	f.Logf("the cancel took %s", time.Since(begun).Round(time.Millisecond))
	f.want("false", "SELECT connector.cancel($1)", runID)
	return e
}

// A run that nobody has taken up ends at once, and stays ended when a sidecar comes.
func TestCancelBeforeTheStart(t *testing.T) {
	f := onFake(t)
	topic := f.topic("early", 1, nil)
	f.produce(topic, 0, partners(0, 10)...)
	f.declare("early", topic, "")
	runID := f.ask("early")
	f.cancelled(runID, func() {})
	f.want("cancelled", "SELECT state FROM connector_queue.river_job")
	f.sidecar(nil)
	f.completed("early", 10, 10)
	f.want("Cancelled", "SELECT status FROM connector.runs WHERE run_id = $1 AND started_at IS NULL", runID)
}

// A running one stops after the chunk in hand; what has landed stays, and the next run goes on from there.
func TestCancelBetweenChunks(t *testing.T) {
	f := onFake(t)
	topic := f.topic("mid", 1, nil)
	f.produce(topic, 0, partners(0, 1000)...)
	_, g := f.heldSidecar("begin", 3)
	f.declare("mid", topic, `,"chunk_rows":100`)
	runID := f.held("mid", g)
	if e := f.cancelled(runID, g.open); e.Chunks != 3 || e.RecordsOut != 300 {
		t.Errorf("the cancelled run kept %+v, want the chunk in hand and no more", e)
	}
	f.want("300", "SELECT count(*) FROM connector.t_mid")
	f.want("short", "SELECT reached FROM connector.run_partitions WHERE run_id = $1", runID)
	f.completed("mid", 700, 700)
	f.want("1000", "SELECT count(DISTINCT partner_id) FROM connector.t_mid")
}

// A broker that does not answer holds no run up that is to be cancelled: not at its start, and not in the middle.
func TestCancelWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	t.Run("at the start", func(t *testing.T) {
		f := onFake(t)
		silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		f.sidecar(nil)
		f.brokers = silent.Addr().String()
		f.declare("silent", "any", "")
		runID := f.ask("silent")
		f.until("SELECT status = 'Running' FROM connector.runs WHERE run_id = $1", runID)
		f.cancelled(runID, func() {})
	})
	t.Run("in the middle", func(t *testing.T) {
		f := onFake(t)
		topic := f.topic("away", 1, nil)
		f.produce(topic, 0, padded(0, 400)...)
		away := make(chan struct{}, 1)
		f.fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
			f.fake.KeepControl()
			if r.(*kmsg.FetchRequest).Topics[0].Partitions[0].FetchOffset == 0 {
				return nil, nil, false
			}
			select {
			case away <- struct{}{}:
			default:
			}
			return nil, context.Canceled, true // any error: the connection is closed
		})
		f.sidecar(nil)
		f.declare("away", topic, `,"chunk_rows":50`)
		runID := f.ask("away")
		receive(f, "a fetch that is not answered", away)
		f.cancelled(runID, func() {})
	})
}

// deletedMidRun deletes a connector whose run stands at a step, and checks that nothing of it is left or comes after.
func (f *fixture) deletedMidRun(name, runID string, g *gate, open func(), landed int64) {
	f.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := f.pool.Exec(f.Context(), "DELETE FROM connector.manifest WHERE name = $1", name)
		done <- err
	}()
	open()
	if err := receive(f, "the deletion", done); err != nil {
		f.Fatal(err)
	}
	g.open()
	e := f.wait(runID)
	f.ends(e, "Cancelled", "deleted", "deleted", name)
	// Between the chunk in hand and the deletion that waits for it, PostgreSQL may let a further chunk of the run go first.
	if e.RecordsOut < landed || e.RecordsOut%100 != 0 {
		f.Errorf("the ledger keeps %d rows, want whole chunks of 100 and at least %d", e.RecordsOut, landed)
	}
	f.until("SELECT state IN ('completed', 'cancelled') FROM connector_queue.river_job ORDER BY id DESC LIMIT 1")
	for _, left := range []string{"_cursor", "_endpoint", "_lag", "_column", "_dlq"} {
		f.want("0", "SELECT count(*) FROM connector."+left)
	}
	f.want("<null>", "SELECT to_regclass('connector.t_"+name+"')")
	f.want(strconv.FormatInt(e.RecordsOut, 10), "SELECT records_out FROM connector.runs WHERE run_id = $1", runID)
}

// Deleting a connector ends its run, between two chunks or within one, which is waited for; a new one of that name begins anew.
func TestDeleteMidRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, step string
		landed     int64
	}{{"between chunks", "begin", 200}, {"within a chunk", "copied", 300}} {
		t.Run(c.name, func(t *testing.T) {
			f := onFake(t)
			topic := f.topic("gone", 1, nil)
			f.produce(topic, 0, append(partners(0, 990), "bad", "bad")...)
			_, g := f.heldSidecar(c.step, 3)
			f.declare("gone", topic, `,"chunk_rows":100`)
			runID := f.held("gone", g)
			f.deletedMidRun("gone", runID, g, func() {
				if c.step == "copied" {
					f.until("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'DELETE FROM connector.manifest%' AND wait_event_type = 'Lock')")
					g.open()
				}
			}, c.landed)
			f.declare("gone", topic, "")
			f.completed("gone", 992, 990)
			f.want("990", "SELECT count(*) FROM connector.t_gone")
			f.want("2", "SELECT count(*) FROM connector.dlq")
		})
	}
}

// A view on the table refuses the deletion, and then nothing at all has happened.
func TestADeletionThatIsRefusedDoesNothing(t *testing.T) {
	f := onFake(t)
	topic := f.topic("kept", 1, nil)
	f.produce(topic, 0, partners(0, 500)...)
	_, g := f.heldSidecar("begin", 3)
	f.declare("kept", topic, `,"chunk_rows":100`)
	runID := f.held("kept", g)
	f.exec("CREATE VIEW public.report AS SELECT name FROM connector.t_kept")
	f.refused("2BP01", []string{"kept"}, "DELETE FROM connector.manifest WHERE name = 'kept'")
	f.refused("2BP01", []string{"kept"}, "SELECT connector.drop('kept')")
	g.open()
	f.ends(f.wait(runID), "Completed", "ok")
	f.want("500", "SELECT count(*) FROM public.report")
	f.exec("SELECT connector.drop('kept', keep_table => true)")
	f.want("500", "SELECT count(*) FROM public.report")
	f.want("0", "SELECT count(*) FROM connector.manifest")
}
