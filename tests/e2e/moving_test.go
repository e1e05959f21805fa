package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// heldMidRun makes a connector on a topic that is larger than what a run reads ahead, and holds its run before the fourth chunk.
func (f *fixture) heldMidRun(name string) (topic, runID string, g *gate) {
	f.Helper()
	_, g = f.heldSidecar("begin", 4)
	f.weighty(name)
	for t := range f.topics {
		topic = t
	}
	return topic, f.held(name, g), g
}

// The topic is deleted and made anew while a run reads it: not one record of the new one lands, and the next run says what
// happened.
func TestTheTopicIsMadeAnewMidRun(t *testing.T) {
	t.Parallel()
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic, runID, g := f.heldMidRun("anew")
		f.drop(topic)
		f.topic("anew", 1, nil)
		f.connect()
		for i := range 4 {
			f.produce(topic, 0, padded(50_000+500*i, 500)...)
		}
		g.open()
		e := f.wait(runID)
		if e.Status != "Failed" || e.Code != "topic_recreated" && e.Code != "topic_missing" && e.Code != "broker_lost" {
			t.Errorf("the run ended %+v", e)
		}
		t.Logf("the run ended %s after %d messages: %s", e.Code, e.RecordsIn, e.Message)
		f.exactlyBelow("anew")
		f.want("0", "SELECT count(*) FROM connector.t_anew WHERE partner_id >= 51000")
		f.ends(f.run("anew"), "Failed", "topic_recreated", topic)
		f.exec("SELECT connector.reset_cursor('anew')")
		f.completed("anew", 2000, 2000)
	})
}

// Retention overtakes a run: what it had not read is named, by it or by the next one, and nothing is passed over in silence.
func TestRetentionOvertakesARun(t *testing.T) {
	t.Parallel()
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic, runID, g := f.heldMidRun("fast")
		const left = 1900
		o := kadm.Offsets{}
		o.AddOffset(topic, 0, left, -1)
		if _, err := f.admin.DeleteRecords(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		g.open()
		e := f.wait(runID)
		t.Logf("the run ended %s, %s after %d messages: %s", e.Status, e.Code, e.RecordsIn, e.Message)
		if e.Status == "Completed" || e.Code != "offsets_expired" {
			t.Errorf("the run ended %+v", e)
		}
		f.exactlyBelow("fast")
		at := f.text("SELECT cursor->'offsets'->>'0' FROM connector.connector_cursor")
		f.says(e.Message, at+"..1899")
		e = f.run("fast")
		f.ends(e, "Partial", "offsets_expired", at+"..1899")
		f.want(at+"|1899|1900|2000", "SELECT concat_ws('|', lost_from, lost_to, start_offset, next_offset) FROM connector.run_partitions WHERE run_id = $1", e.RunID)
		f.want("100", "SELECT count(*) FROM connector.t_fast WHERE _run_id = $1", e.RunID)
	})
}

// A table grows as wide as PostgreSQL lets it, whatever was dropped from it; a message beyond that is set aside with a way out,
// and the run goes on.
func TestTablesThatGrowWide(t *testing.T) {
	f := onFake(t)
	f.sidecar(nil)
	field := func(i int) string { return fmt.Sprintf(`"k%d":%d`, i, i) }
	fields := func(from, n int) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = field(from + i)
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	topic := f.topic("wide", 1, nil)
	for i := range 20 {
		f.produce(topic, 0, fields(100*i, 100))
	}
	f.produce(topic, 0, fields(0, 3))
	f.declare("wide", topic, "")
	if e := f.completed("wide", 21, 15); e.DeadLetters != 6 { // 1,500 columns with the seven of the system: fourteen hundreds, and no fifteenth
		t.Errorf("%+v, want 6 letters", e)
	}
	f.want("1400", "SELECT count(*) FROM pg_attribute WHERE attrelid = 'connector.t_wide'::regclass AND attnum > 7")
	f.says(f.text("SELECT message FROM connector.dlq LIMIT 1"), `"layout": "document"`)

	full := f.topic("full", 1, nil)
	f.produce(full, 0, `{"a":1}`)
	f.declare("full", full, "")
	f.completed("full", 1, 1)
	// 8 columns and 15 times 106 are 1,598; two more make it full.
	f.exec(`ALTER TABLE connector.t_full ADD y int, ADD z int; ALTER TABLE connector.t_full DROP y, DROP z; DO $$ BEGIN FOR i IN 1..15 LOOP EXECUTE (SELECT 'ALTER TABLE connector.t_full ' || string_agg(format('ADD x%s int', n), ', ') FROM generate_series(1, 106) AS n);
		EXECUTE (SELECT 'ALTER TABLE connector.t_full ' || string_agg(format('DROP x%s', n), ', ') FROM generate_series(1, 106) AS n); END LOOP; END $$`)
	f.produce(full, 0, fields(0, 100), `{"a":2}`)
	f.completed("full", 2, 1)
	f.says(f.text("SELECT message FROM connector.dlq WHERE connector = 'full'"), "dropped")

	broad := f.topic("broad", 2, nil) // more values than a statement could have parameters
	rows := make([]string, 1000)
	for i := range rows {
		rows[i] = `{"n":` + fmt.Sprint(i) + "," + fields(0, 300)[1:]
	}
	f.produce(broad, 0, rows[:500]...)
	f.produce(broad, 1, rows[500:]...)
	f.declare("broad", broad, `,"chunk_rows":1000`)
	f.completed("broad", 1000, 1000)
	f.want("1000 299000", "SELECT concat_ws(' ', count(*), sum(k299)) FROM connector.t_broad")
}

// Two partitions bring the same new field, and two sidecars work at once: there is one column, and nothing failed.
func TestOneColumnForMany(t *testing.T) {
	f := onFake(t)
	topic := f.topic("many", 4, nil)
	for p := range int32(4) {
		values := partners(1000*int(p), 300)
		for i := 100; i < 300; i++ {
			values[i] = strings.Replace(values[i], `"city"`, `"vat":"x","city"`, 1)
		}
		f.produce(topic, p, values...)
	}
	f.sidecar(nil)
	f.sidecar(nil)
	for i := range 4 {
		f.declare(fmt.Sprintf("m%d", i), topic, `,"chunk_rows":30`)
	}
	f.exec("SELECT connector.run(name) FROM connector.manifest")
	f.until("SELECT NOT EXISTS (SELECT FROM connector.runs WHERE ended_at IS NULL)")
	f.want("4", "SELECT count(*) FROM connector.runs WHERE status = 'Completed' AND records_out = 1200 AND duplicates = 0 AND dead_letters = 0")
	for i := range 4 {
		f.want("800 1200", fmt.Sprintf("SELECT concat_ws(' ', count(vat), count(*)) FROM connector.t_m%d", i))
		f.want("1", fmt.Sprintf("SELECT count(*) FROM connector.log WHERE connector = 'm%d' AND message LIKE 'new columns: %%'", i))
	}
}
