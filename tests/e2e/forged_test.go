package e2e

import "testing"

// Any role that can connect can tell River to cancel a job. The run is then handed back and completes; only the ledger ends it.
func TestAForgedCancelOfTheJobEndsNoRun(t *testing.T) {
	f := onFake(t)
	topic := f.topic("forged", 1, nil)
	f.produce(topic, 0, partners(0, 500)...)
	_, g := f.heldSidecar("begin", 3)
	f.declare("forged", topic, `,"chunk_rows":100`)
	runID := f.held("forged", g)
	f.exec(`SELECT pg_notify('connector_queue.river_control', json_build_object('action', 'cancel', 'job_id', r.job_id, 'queue', 'connector')::text)
		FROM connector._run AS r WHERE r.run_id = $1`, runID)
	g.open()
	if e := f.wait(runID); e.Status != "Completed" || e.RecordsOut != 500 {
		t.Errorf("%+v", e)
	}
	f.want("500", "SELECT count(*) FROM connector.t_forged")
}
