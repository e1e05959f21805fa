package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// transact writes values to a partition in one transaction and commits or aborts it.
func (f *fixture) transact(topic string, end kgo.TransactionEndTry, values ...string) {
	f.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(f.brokers), kgo.TransactionalID(topic+"-tx"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		f.Fatal(err)
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		f.Fatal(err)
	}
	for i, v := range values {
		cl.Produce(f.Context(), &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, "k%d", i), Value: []byte(v)}, nil)
	}
	if err := cl.Flush(f.Context()); err != nil {
		f.Fatal(err)
	}
	if err := cl.EndTransaction(f.Context(), end); err != nil {
		f.Fatal(err)
	}
}

// The end of a log is often no record at all. A run must reach its target all the same, say so, and not hang.
func TestALogThatEndsWithoutARecord(t *testing.T) {
	for _, c := range []struct {
		name    string
		fill    func(f *fixture, topic string)
		rows    int64
		target  string
		reached string
	}{
		{"commit marker", func(f *fixture, topic string) {
			f.transact(topic, kgo.TryCommit, partners(0, 1)...)
		}, 1, "2", "proved empty to target"},
		{"a thousand aborted records", func(f *fixture, topic string) {
			f.produce(topic, 0, partners(0, 10)...)
			f.transact(topic, kgo.TryAbort, partners(5000, 1000)...)
		}, 10, "1011", "proved empty to target"},
		{"markers between all records", func(f *fixture, topic string) {
			for i := range 5 {
				f.transact(topic, kgo.TryCommit, partners(i, 1)...)
			}
		}, 5, "10", "proved empty to target"},
		{"nothing at all", func(*fixture, string) {}, 0, "0", "at target"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onBothBrokers(t, func(t *testing.T, f *fixture) {
				topic := f.topic("end", 1, nil)
				c.fill(f, topic)
				f.sidecar(nil)
				f.declare("ends", topic, "")
				begun := time.Now()
				e := f.completed("ends", c.rows, c.rows)
				if took := time.Since(begun); took > 20*time.Second {
					t.Errorf("the run took %s", took)
				}
				f.want(c.target, "SELECT cursor->'offsets'->>'0' FROM connector.connector_cursor WHERE connector = 'ends'")
				f.want(c.reached, "SELECT reached FROM connector.run_partitions WHERE run_id = $1", e.RunID)
				f.completed("ends", 0, 0)
			})
		})
	}
}

// An open transaction is above the last stable offset: the run ends below it, and the next one reads it once committed.
func TestAnOpenTransactionWaitsForTheNextRun(t *testing.T) {
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic := f.topic("open", 1, nil)
		f.produce(topic, 0, partners(0, 10)...)
		cl, err := kgo.NewClient(kgo.SeedBrokers(f.brokers), kgo.TransactionalID(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for _, v := range partners(10, 3) {
			cl.Produce(t.Context(), &kgo.Record{Topic: topic, Value: []byte(v)}, nil)
		}
		if err := cl.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.sidecar(nil)
		f.declare("open", topic, "")
		f.completed("open", 10, 10)
		if err := cl.EndTransaction(context.Background(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		f.completed("open", 3, 3)
	})
}
