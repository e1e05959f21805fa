package e2e

import "testing"

// A table that somebody dropped is missed until the positions are forgotten; then it is made anew, with all that the topic holds.
func TestADroppedTableIsMadeAnewAfterAReset(t *testing.T) {
	f := onFake(t)
	topic := f.topic("dropped", 1, nil)
	f.produce(topic, 0, partners(0, 20)...)
	f.sidecar(nil)
	f.declare("dropped", topic, "")
	f.completed("dropped", 20, 20)
	f.exec("DROP TABLE connector.t_dropped")
	f.produce(topic, 0, partners(20, 1)...)
	if e := f.run("dropped"); e.Status != "Failed" || e.Code != "table_missing" {
		t.Errorf("%+v", e)
	}
	f.exec("SELECT connector.reset_cursor('dropped')")
	f.completed("dropped", 21, 21)
	f.want("21", "SELECT count(*) FROM connector.t_dropped")
}
