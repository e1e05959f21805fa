package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// compacted is a topic that the cleaner works on: every batch closes the segment before it, for batches bear times a
// minute apart, and a tombstone may go as soon as it was seen once.
func (f *fixture) compacted() string {
	f.Helper()
	set := func(v string) *string { return &v }
	return f.topic("compacted", 1, map[string]*string{
		"cleanup.policy": set("compact"), "segment.ms": set("1000"), "min.cleanable.dirty.ratio": set("0.01"), "delete.retention.ms": set("0"),
	})
}

// keyed writes one batch: a record for each key, which is all that a value tells too; an empty text is a tombstone.
func (f *fixture) keyed(topic string, at time.Time, text string, keys ...int) {
	f.Helper()
	recs := make([]*kgo.Record, len(keys))
	for i, k := range keys {
		recs[i] = &kgo.Record{Topic: topic, Timestamp: at, Key: fmt.Appendf(nil, "k%d", k)}
		if text != "" {
			recs[i].Value = fmt.Appendf(nil, `{"k":%d,"text":%q}`, k, text)
		}
	}
	if err := f.kafka.ProduceSync(f.Context(), recs...).FirstErr(); err != nil {
		f.Fatal(err)
	}
}

func numbers[T int | int64](from, to T) (out []T) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// end gives the high watermark of a partition.
func (f *fixture) end(topic string, partition int32) int64 {
	f.Helper()
	ends, err := f.admin.ListEndOffsets(f.Context(), topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		f.Fatal(err)
	}
	end, _ := ends.Lookup(topic, partition)
	return end.Offset
}

// offsets gives the offsets of the records that a topic's first partition holds, by reading all of them.
func (f *fixture) offsets(topic string) (held []int64) {
	f.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(f.brokers), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		f.Fatal(err)
	}
	defer cl.Close()
	end := f.end(topic, 0)
	for next := int64(0); next < end; {
		// A client that hands out records only does not say that it has read over a hole at the end: silence must do.
		ctx, cancel := context.WithTimeout(f.Context(), time.Second)
		got := cl.PollFetches(ctx)
		silent := ctx.Err() != nil
		cancel()
		if silent {
			return held
		}
		if err := got.Err(); err != nil {
			f.Fatal(err)
		}
		got.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				held = append(held, r.Offset)
			}
			next = r.Offset + 1
		})
	}
	return held
}

// cleaned waits until the cleaner has left the records at these offsets. It never touches the last segment, so stir, which may
// be nil, writes something that closes it.
func (f *fixture) cleaned(topic string, want []int64, stir func()) {
	f.Helper()
	for i := 1; ; i++ {
		if f.fake != nil {
			f.fake.Compact()
		}
		held := f.offsets(topic)
		if slices.Equal(held, want) {
			return
		}
		if i == 100 {
			f.Fatalf("the cleaner left the offsets %v, want %v", held, want)
		}
		receive(f, "a pause", time.After(200*time.Millisecond))
		if stir != nil {
			stir()
		}
	}
}

// Where the cleaner has taken records away, offsets have no record. A run reads over the holes and says how it knows.
func TestCompactionHoles(t *testing.T) {
	t.Parallel()
	begin := time.Now().Add(-time.Hour) // the embedded broker's cleaner also drops what is a week old
	at := func(minute int) time.Time { return begin.Add(time.Duration(minute) * time.Minute) }
	for _, c := range []struct {
		name    string
		fill    func(f *fixture, topic string)
		rows    int64
		reached string
	}{
		{"in the middle", func(f *fixture, topic string) {
			f.keyed(topic, at(1), "stays", 1)               // offset 0
			f.keyed(topic, at(2), "old", numbers(2, 22)...) // 1..20, all superseded
			f.keyed(topic, at(3), "new", numbers(2, 22)...) // 21..40
			f.keyed(topic, at(4), "last", 99)               // 41, in the segment that is not cleaned
			f.cleaned(topic, slices.Concat([]int64{0}, numbers[int64](21, 42)), nil)
		}, 22, "at target"},
		{"at the tail", func(f *fixture, topic string) {
			f.keyed(topic, at(1), "stays", 1)
			f.keyed(topic, at(2), "goes", numbers(2, 12)...) // 1..10
			f.keyed(topic, at(3), "", numbers(2, 12)...)     // 11..20, tombstones
			abort := func() { f.transact(topic, kgo.TryAbort, partners(0, 5)...) }
			abort()
			f.cleaned(topic, []int64{0}, abort)
		}, 1, "proved empty to target"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onBothBrokers(t, func(t *testing.T, f *fixture) {
				topic := f.compacted()
				c.fill(f, topic)
				target := f.end(topic, 0)
				f.sidecar(nil)
				f.declare("holes", topic, "")
				begun := time.Now()
				e := f.completed("holes", c.rows, c.rows)
				if took := time.Since(begun); took > 5*time.Second {
					t.Errorf("the run took %s", took)
				}
				f.want(strconv.FormatInt(target, 10), "SELECT cursor->'offsets'->>'0' FROM connector.connector_cursor")
				f.want(c.reached, "SELECT reached FROM connector.run_partitions WHERE run_id = $1", e.RunID)
				f.want(strconv.FormatInt(target-c.rows, 10), "SELECT no_record FROM connector.accounting WHERE run_id = $1", e.RunID)
				f.completed("holes", 0, 0)
			})
		})
	}
}

// Between the last record and the head there may be nothing at all, not even a batch without records, and a fetch there
// brings no bytes: only asking for it tells a hole from a broker that is slow.
func TestAnEndWithoutAnyBatch(t *testing.T) {
	f := onFake(t)
	topic := f.topic("bare", 1, nil)
	f.produce(topic, 0, partners(0, 10)...)
	const hole = 1000
	f.fake.ControlKey(int16(kmsg.ListOffsets), f.beyond(hole))
	f.fake.ControlKey(int16(kmsg.Fetch), f.bare(topic, 10, hole))
	f.sidecar(nil)
	f.declare("bare", topic, `,"poll_timeout_ms":200`)
	begun := time.Now()
	e := f.completed("bare", 10, 10)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the run took %s", took)
	}
	f.want("1000", "SELECT cursor->'offsets'->>'0' FROM connector.connector_cursor")
	f.want("proved empty to target", "SELECT reached FROM connector.run_partitions WHERE run_id = $1", e.RunID)
}

// beyond answers every question for an end with one offset.
func (f *fixture) beyond(end int64) func(kmsg.Request) (kmsg.Response, error, bool) {
	return func(r kmsg.Request) (kmsg.Response, error, bool) {
		f.fake.KeepControl()
		req := r.(*kmsg.ListOffsetsRequest)
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, t := range req.Topics {
			answer := kmsg.NewListOffsetsResponseTopic()
			answer.Topic = t.Topic
			for _, p := range t.Partitions {
				one := kmsg.NewListOffsetsResponseTopicPartition()
				one.Partition, one.Offset = p.Partition, end
				if p.Timestamp == -2 {
					one.Offset = 0
				}
				answer.Partitions = append(answer.Partitions, one)
			}
			resp.Topics = append(resp.Topics, answer)
		}
		return resp, nil, true
	}
}

// bare answers a fetch at or above from with a head of end and no bytes, and leaves any other to the broker.
func (f *fixture) bare(topic string, from, end int64) func(kmsg.Request) (kmsg.Response, error, bool) {
	return func(r kmsg.Request) (kmsg.Response, error, bool) {
		f.fake.KeepControl()
		req := r.(*kmsg.FetchRequest)
		if len(req.Topics) != 1 || len(req.Topics[0].Partitions) != 1 || req.Topics[0].Partitions[0].FetchOffset < from {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		answer := kmsg.NewFetchResponseTopic()
		answer.Topic, answer.TopicID = topic, req.Topics[0].TopicID
		one := kmsg.NewFetchResponseTopicPartition()
		one.HighWatermark, one.LastStableOffset, one.LogStartOffset = end, end, 0
		answer.Partitions = append(answer.Partitions, one)
		resp.Topics = append(resp.Topics, answer)
		return resp, nil, true
	}
}
