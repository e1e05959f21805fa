package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// timed writes partners to a partition, one a minute from begin on.
func (f *fixture) timed(topic string, begin time.Time, from, n int) {
	f.Helper()
	recs := make([]*kgo.Record, n)
	for i, v := range partners(from, n) {
		recs[i] = &kgo.Record{Topic: topic, Timestamp: begin.Add(time.Duration(i) * time.Minute), Key: fmt.Appendf(nil, "k%d", i), Value: []byte(v)}
	}
	if err := f.kafka.ProduceSync(f.Context(), recs...).FirstErr(); err != nil {
		f.Fatal(err)
	}
}

// ids gives the partners of a table, in order: "1000..1004,1010".
func (f *fixture) ids(table string) string {
	f.Helper()
	return f.text(`SELECT string_agg(CASE WHEN low = high THEN low::text ELSE low || '..' || high END, ',' ORDER BY low) FROM (
		SELECT min(partner_id) AS low, max(partner_id) AS high FROM (
			SELECT partner_id, partner_id - dense_rank() OVER (ORDER BY partner_id) AS island FROM connector.` + table + `) AS i GROUP BY island) AS r`)
}

// Where a connector begins that has no position.
func TestStartPosition(t *testing.T) {
	t.Parallel()
	begin := time.Now().Add(-24 * time.Hour).Truncate(time.Minute).UTC()
	for _, c := range []struct {
		name, start string
		rows        int64
		want        string
	}{
		{"latest", "latest", 0, "<null>"},
		{"earlier than everything", begin.Add(-time.Hour).Format(time.RFC3339), 10, "1000..1009"},
		{"the time of a record", begin.Add(4 * time.Minute).Format(time.RFC3339), 6, "1004..1009"},
		{"between two records, of another zone", begin.Add(4*time.Minute + time.Second).In(time.FixedZone("", 7200)).Format(time.RFC3339), 5, "1005..1009"},
		{"after everything", time.Now().Add(time.Hour).UTC().Format(time.RFC3339), 0, "<null>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onBothBrokers(t, func(t *testing.T, f *fixture) {
				topic := f.topic("start", 1, nil)
				f.timed(topic, begin, 0, 10)
				f.sidecar(nil)
				f.declare("start", topic, fmt.Sprintf(`,"start_position":%q`, c.start))
				f.completed("start", c.rows, c.rows)
				f.want("10", "SELECT cursor->'offsets'->>'0' FROM connector.connector_cursor")
				f.produce(topic, 0, partners(100, 2)...) // what comes later is read, whatever start_position says
				f.completed("start", 2, 2)
				if want := map[bool]string{true: "1100..1101", false: c.want + ",1100..1101"}[c.rows == 0]; f.ids("t_start") != want {
					t.Errorf("the table holds %s, want %s", f.ids("t_start"), want)
				}
			})
		})
	}
}

// A position is sought by offset or by time; each gesture is in the audit; what only the broker can know fails the next run.
func TestSeek(t *testing.T) {
	t.Parallel()
	begin := time.Now().Add(-24 * time.Hour).Truncate(time.Minute).UTC()
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic := f.topic("seek", 2, nil)
		f.timed(topic, begin, 0, 10)
		f.produce(topic, 1, partners(50, 5)...)
		f.sidecar(nil)
		f.declare("seek", topic, "")
		f.completed("seek", 15, 15)

		f.exec("SELECT connector.seek('seek', 0, 7)")
		if e := f.completed("seek", 3, 3); e.Duplicates != 3 {
			t.Errorf("read again: %+v, want 3 duplicates", e)
		}
		f.exec("SELECT connector.seek('seek', $1::timestamptz)", begin.Add(2*time.Minute))
		if e := f.run("seek"); e.Status != "Completed" || e.RecordsIn != 13 || e.Duplicates != 13 {
			t.Errorf("from minute 2 on: %+v, want 8 + 5 messages again", e)
		}
		f.want("15", "SELECT count(*) FROM connector.t_seek")
		f.want(`{"0": 10, "1": 5}`, "SELECT cursor->'offsets' FROM connector.connector_cursor")

		f.exec("SELECT connector.seek('seek', 0, 50)")
		f.ends(f.run("seek"), "Failed", "log_truncated", "[0]", "50 was sought", "ends at 10")
		f.exec("SELECT connector.seek('seek', 0, 10)")
		f.exec("SELECT connector.seek('seek', 9, 0)")
		f.ends(f.run("seek"), "Failed", "topic_missing", "partition 9", "it has 2")
		f.want("5", "SELECT count(*) FROM connector.audit WHERE action = 'seek' AND connector = 'seek'")
		f.want("3", "SELECT connector.reset_cursor('seek')")
		if e := f.run("seek"); e.RecordsIn != 15 || e.Duplicates != 15 {
			t.Errorf("after the reset: %+v", e)
		}
	})
}

// Offsets that left the log before they were read are named, and end the run Partial, or Failed with nothing read.
func TestLostOffsets(t *testing.T) {
	t.Parallel()
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic := f.topic("lost", 1, nil)
		f.produce(topic, 0, partners(0, 20)...)
		f.sidecar(nil)
		f.declare("lost", topic, `,"on_lost":"fail"`)
		f.trim(topic, 3)
		e := f.completed("lost", 17, 17) // never read, so nothing is lost
		f.want("1", "SELECT count(*) FROM connector.log WHERE run_id = $1 AND level = 'INFO' AND message LIKE '%offsets 0..2 left it before the first read%'", e.RunID)
		f.exec("SELECT connector.seek('lost', 0, 5)")
		f.completed("lost", 15, 15)
		f.produce(topic, 0, partners(20, 20)...)
		f.trim(topic, 25)

		f.ends(f.run("lost"), "Failed", "offsets_expired", "20..24", "nothing was read")
		f.want(`{"0": 20}`, "SELECT cursor->'offsets' FROM connector.connector_cursor")
		f.exec(`UPDATE connector.manifest SET spec = spec || '{"on_lost":"partial"}'`)
		e = f.run("lost")
		f.ends(e, "Partial", "offsets_expired", "[0]", "20..24")
		f.want("20|24|25|40|at target", "SELECT concat_ws('|', lost_from, lost_to, start_offset, next_offset, reached) FROM connector.run_partitions WHERE run_id = $1", e.RunID)
		f.want("1003..1019,1025..1039", "'"+f.ids("t_lost")+"'")
		f.completed("lost", 0, 0)
	})
}

// trim deletes the records of a topic's first partition below an offset.
func (f *fixture) trim(topic string, before int64) {
	f.Helper()
	o := kadm.Offsets{}
	o.AddOffset(topic, 0, before, -1)
	got, err := f.admin.DeleteRecords(f.Context(), o)
	if err == nil {
		err = got.Error()
	}
	if err != nil {
		f.Fatal(err)
	}
}

// A position above the head is another log's, never a reason to begin anew by itself.
func TestAPositionAboveTheHead(t *testing.T) {
	t.Parallel()
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic := f.topic("above", 1, nil)
		f.produce(topic, 0, partners(0, 10)...)
		f.sidecar(nil)
		f.declare("above", topic, "")
		f.completed("above", 10, 10)
		f.exec("UPDATE connector._cursor SET next_offset = 50") // the log was cut short behind our back
		e := f.run("above")
		f.ends(e, "Failed", "log_truncated", "offset 50", "ends at 10")
		f.says(e.Hint, "reset_cursor('above')")
		f.want(`{"0": 50}`, "SELECT cursor->'offsets' FROM connector.connector_cursor")
		f.want("10", "SELECT count(*) FROM connector.t_above")
		f.exec("UPDATE connector._cursor SET next_offset = 10")
		f.completed("above", 0, 0)
	})
}

// Partitions that a topic gains are read from their beginning by the next run, whatever start_position says.
func TestNewPartitions(t *testing.T) {
	t.Parallel()
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic := f.topic("grows", 1, nil)
		f.produce(topic, 0, partners(0, 5)...)
		_, g := f.heldSidecar("run-planned", 2)
		f.declare("grows", topic, `,"start_position":"latest"`)
		f.completed("grows", 0, 0)
		f.produce(topic, 0, partners(5, 5)...)
		runID := f.held("grows", g)
		if got, err := f.admin.UpdatePartitions(t.Context(), 3, topic); err != nil || got.Error() != nil {
			t.Fatal(err, got.Error())
		}
		f.connect()
		f.produce(topic, 1, partners(10, 5)...)
		f.produce(topic, 2, partners(20, 5)...)
		g.open()
		if e := f.wait(runID); e.Status != "Completed" || e.RecordsIn != 5 {
			t.Errorf("the run that had planned: %+v, want the partition it knew", e)
		}
		f.completed("grows", 10, 10)
		f.want("1005..1014,1020..1024", "'"+f.ids("t_grows")+"'")
		f.want(`{"0": 10, "1": 5, "2": 5}`, "SELECT cursor->'offsets' FROM connector.connector_cursor")
	})
}

// Another topic under the old name is not read on, not even where it is longer; and a topic that is gone is told from a name
// that never was.
func TestTheTopicIsAnother(t *testing.T) {
	t.Parallel()
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic := f.topic("again", 1, nil)
		f.produce(topic, 0, partners(0, 5)...)
		f.sidecar(nil)
		f.declare("again", topic, "")
		f.completed("again", 5, 5)

		f.drop(topic)
		begun := time.Now()
		e := f.run("again")
		f.ends(e, "Failed", "topic_missing", topic, "has read", "before", "deleted")
		f.says(e.Hint, "reset_cursor")
		f.Logf("a deleted topic was told after %s", time.Since(begun))

		f.topic("again", 1, nil)
		f.connect()
		f.produce(topic, 0, partners(100, 8)...)
		e = f.run("again")
		f.ends(e, "Failed", "topic_recreated", topic, "created again")
		f.says(e.Hint, "reset_cursor('again')")
		f.want("5", "SELECT count(*) FROM connector.t_again")
		f.want(`{"0": 5}`, "SELECT cursor->'offsets' FROM connector.connector_cursor")
		f.exec("SELECT connector.reset_cursor('again')")
		f.completed("again", 8, 8)
		f.want("1000..1004,1100..1107", "'"+f.ids("t_again")+"'")
	})
}

// drop deletes a topic and waits until the broker no longer names it.
func (f *fixture) drop(topic string) {
	f.Helper()
	got, err := f.admin.DeleteTopics(f.Context(), topic)
	if err == nil {
		err = got.Error()
	}
	for err == nil {
		topics, lerr := f.admin.ListTopics(f.Context())
		if err = lerr; err == nil && !topics.Has(topic) {
			return
		}
		receive(f, "a pause", time.After(lookEvery))
	}
	f.Fatal(err)
}

// A topic that never was is an answer, not a wait.
func TestAnUnknownTopic(t *testing.T) {
	t.Parallel()
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		f.sidecar(nil)
		f.topics[f.prefix+"never"] = false
		f.declare("never", f.prefix+"never", "")
		e := f.run("never")
		f.ends(e, "Failed", "topic_missing", f.prefix+"never", "never read")
		f.Logf("an unknown topic was told after %s", f.text("SELECT ended_at - started_at FROM connector.runs WHERE run_id = $1", e.RunID))
		f.want("true", "SELECT ended_at - started_at < interval '1 second' FROM connector.runs WHERE run_id = $1", e.RunID)
	})
}
