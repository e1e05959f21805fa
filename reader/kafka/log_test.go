package kafka

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"highwater/reader/plan"
)

// once runs f at the first batch that is emitted.
func once(s *sink, f func()) {
	done := false
	s.each = func(Batch) error {
		if !done {
			done = true
			f()
		}
		return nil
	}
}

// slow makes fetches small, so that a run has a middle in which something can happen.
func slow(o *Options) {
	o.FetchBytes, o.BufferBytes = 1<<10, 4<<10
}

// large are values of which a few fill a small fetch.
func large(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%d:%s", i, strings.Repeat("x", 4000))
	}
	return out
}

func TestOpenTransactionHoldsTheTarget(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, "a")
	p := b.producer(kgo.TransactionalID("open"))
	if err := p.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := p.ProduceSync(t.Context(), record(0, "hidden")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	c := b.open()
	topic, spans := planned(t, c)
	if spans[0].Target != 1 {
		t.Errorf("target %d, want the last stable offset 1", spans[0].Target)
	}
	same(t, drain(t, c, topic, spans).values(0), []string{"a"})

	dirty := b.open(func(o *Options) { o.ReadCommitted = false })
	topic, spans = planned(t, dirty)
	same(t, drain(t, dirty, topic, spans).values(0), []string{"a", "hidden"})
	if err := p.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
}

// compacted is a topic whose log is compacted on command.
func compacted(t *testing.T) *bench {
	t.Helper()
	b := setup(t, 1)
	if err := b.cluster.DeleteTopic(topicName); err != nil {
		t.Fatal(err)
	}
	if err := b.cluster.CreateTopic(topicName, 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) keyed(keys ...string) {
	b.t.Helper()
	p := b.producer()
	for i, k := range keys {
		r := &kgo.Record{Key: []byte(k), Value: []byte(fmt.Sprint(i))}
		if err := p.ProduceSync(b.t.Context(), r).FirstErr(); err != nil {
			b.t.Fatal(err)
		}
	}
}

func TestCompactionHolesInTheMiddle(t *testing.T) {
	t.Parallel()
	b := compacted(t)
	b.keyed("x", "a", "b", "a", "c", "b", "d")
	b.cluster.Compact()
	c := b.open()
	topic, spans := planned(t, c)
	s := drain(t, c, topic, spans)
	if s.at[0] != 7 || s.noRecord != 2 {
		t.Errorf("at %d with %d empty offsets, want 7 and 2", s.at[0], s.noRecord)
	}
	if got := s.values(0); got[len(got)-1] != "6" {
		t.Errorf("values %v", got)
	}
}

// TestCompactedTailIsProved: behind the last batch the log is empty up to the head; only asking the broker shows it.
func TestCompactedTailIsProved(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, numbered(10)...)
	// The broker answers as one whose cleaner took everything from offset 6 on, while the head is still 10.
	b.cluster.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		req := kreq.(*kmsg.FetchRequest)
		if req.Topics[0].Partitions[0].FetchOffset < 6 {
			return nil, nil, false
		}
		return emptyAnswer(req, 10, 10, 0), nil, true
	})
	c := b.open()
	topic, _ := planned(t, c)
	s := newSink(t, []plan.Span{{Partition: 0}})
	// Two spans: the first ends where the tail begins, so that the second sees nothing but emptiness.
	if _, err := c.Drain(deadline(t), topic, []plan.Span{{Partition: 0, Target: 6, Epoch: 0}}, s.emit); err != nil {
		t.Fatal(err)
	}
	d, err := c.Drain(deadline(t), topic, []plan.Span{{Partition: 0, From: 6, Target: 10, Epoch: 0}}, s.emit)
	if err != nil || len(d.NotProved) != 0 {
		t.Fatalf("%v, %+v", err, d)
	}
	if s.at[0] != 10 || !s.proved[0] || s.noRecord != 4 {
		t.Errorf("at %d, proved %v, %d empty offsets; want 10, true, 4", s.at[0], s.proved[0], s.noRecord)
	}
}

// emptyAnswer is a broker's answer without an error and without a batch.
func emptyAnswer(req *kmsg.FetchRequest, head, stable, start int64) *kmsg.FetchResponse {
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewFetchResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewFetchResponseTopicPartition()
			rp.Partition, rp.HighWatermark, rp.LastStableOffset, rp.LogStartOffset = p.Partition, head, stable, start
			rp.RecordBatches = []byte{}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// TestEmptyAnswersBelowTheTargetProveNothing: a head below the target, or a log start above the position, is no proof; the
// other partition is read all the same, and the broker is not asked in a tight loop.
func TestEmptyAnswersBelowTheTargetProveNothing(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct{ head, stable, start int64 }{
		"a head below the target":               {4, 4, 0},
		"a last stable offset below the target": {10, 4, 0},
		"a log start above the position":        {10, 10, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 2, kfake.NumBrokers(2))
			b.produce(0, numbered(10)...)
			b.produce(1, numbered(10)...)
			for p := range int32(2) {
				if err := b.cluster.MoveTopicPartition(topicName, p, p); err != nil {
					t.Fatal(err)
				}
			}
			asked := 0
			b.cluster.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
				b.cluster.KeepControl()
				if b.cluster.CurrentNode() != 0 {
					return nil, nil, false
				}
				asked++
				return emptyAnswer(kreq.(*kmsg.FetchRequest), answer.head, answer.stable, answer.start), nil, true
			})
			c := b.open(brief)
			topic, _ := planned(t, c)
			spans := []plan.Span{{Partition: 0, From: 5, Target: 10, Epoch: 1}, {Partition: 1, Target: 10, Epoch: 1}}
			s := newSink(t, spans)
			d, err := c.Drain(deadline(t), topic, spans, s.emit)
			if err != nil {
				t.Fatal(err)
			}
			same(t, s.values(0), nil)
			same(t, s.values(1), numbered(10))
			if len(d.NotProved) != 1 {
				t.Fatalf("not proved: %+v", d.NotProved)
			}
			if n := d.NotProved[0]; n.Partition != 0 || n.Position != 5 || n.Target != 10 || !strings.Contains(n.Message, "not proved") {
				t.Errorf("not proved: %+v", n)
			}
			if asked > 60 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

func TestTrimmedMidRunNamesTheLostRange(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, large(200)...)
	c := b.open(slow)
	topic, spans := planned(t, c)
	s := newSink(t, spans)
	once(s, func() {
		if err := b.cluster.DeleteRecords(topicName, 0, 150); err != nil {
			t.Error(err)
		}
	})
	_, err := c.Drain(deadline(t), topic, spans, s.emit)
	e := wantError(t, err, "offsets_expired", "150", "acme.partners[0]")
	if e.LostFrom != s.at[0] || e.LostTo < e.LostFrom || e.LostTo >= 200 {
		t.Errorf("lost %d..%d, read to %d", e.LostFrom, e.LostTo, s.at[0])
	}
}

func TestRecreatedMidRun(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, large(200)...)
	c := b.open(slow)
	topic, spans := planned(t, c)
	s := newSink(t, spans)
	once(s, func() {
		if err := b.cluster.DeleteTopic(topicName); err != nil {
			t.Error(err)
		}
		if err := b.cluster.CreateTopic(topicName, 1, nil); err != nil {
			t.Error(err)
		}
		b.produce(0, numbered(300)...)
	})
	_, err := c.Drain(deadline(t), topic, spans, s.emit)
	wantError(t, err, "topic_recreated", topicName)
	for _, v := range s.values(0) {
		if strings.HasPrefix(v, "{") {
			t.Fatalf("a record of the new topic was read: %s", v)
		}
	}
}

func TestDeletedMidRun(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, large(200)...)
	c := b.open(slow)
	topic, spans := planned(t, c)
	s := newSink(t, spans)
	once(s, func() {
		if err := b.cluster.DeleteTopic(topicName); err != nil {
			t.Error(err)
		}
	})
	_, err := c.Drain(deadline(t), topic, spans, s.emit)
	wantError(t, err, "topic_missing", topicName, "deleted")
}

func TestLeaderMovesMidRun(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, kfake.NumBrokers(3))
	b.produce(0, large(200)...)
	b.produce(1, large(200)...)
	c := b.open(slow)
	topic, spans := planned(t, c)
	s := newSink(t, spans)
	n := 0
	s.each = func(Batch) error {
		if n++; n%20 == 1 {
			b.cluster.ShufflePartitionLeaders()
		}
		return nil
	}
	if _, err := c.Drain(deadline(t), topic, spans, s.emit); err != nil {
		t.Fatal(err)
	}
	s.atTargets(spans)
	same(t, s.values(0), large(200))
	same(t, s.values(1), large(200))
}

// TestTruncatedAfterALeaderChange: the new leader's log leaves the history that was read, so not one record of it is.
func TestTruncatedAfterALeaderChange(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, kfake.NumBrokers(2))
	b.produce(0, large(200)...)
	b.cluster.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		req := kreq.(*kmsg.OffsetForLeaderEpochRequest)
		resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
		rt.Topic = topicName
		rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
		rp.LeaderEpoch, rp.EndOffset = 0, 1
		rt.Partitions = append(rt.Partitions, rp)
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
	c := b.open(slow)
	topic, spans := planned(t, c)
	s := newSink(t, spans)
	once(s, func() {
		to := 1 - b.cluster.LeaderFor(topicName, 0)
		if err := b.cluster.MoveTopicPartition(topicName, 0, to); err != nil {
			t.Error(err)
		}
	})
	_, err := c.Drain(deadline(t), topic, spans, s.emit)
	wantError(t, err, "log_truncated", "offset 1", topicName)
}

// TestProducerFasterThanTheReader: what is written during the run belongs to the next one.
func TestProducerFasterThanTheReader(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, large(50)...)
	c := b.open(slow)
	topic, spans := planned(t, c)
	s := newSink(t, spans)
	p := b.producer()
	s.each = func(Batch) error {
		for range 20 {
			p.Produce(t.Context(), record(0, "later"), nil)
		}
		return p.Flush(t.Context())
	}
	if _, err := c.Drain(deadline(t), topic, spans, s.emit); err != nil {
		t.Fatal(err)
	}
	s.atTargets(spans)
	same(t, s.values(0), large(50))
}

func TestAllCodecsMixed(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	var want []string
	for i, codec := range []kgo.CompressionCodec{
		kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression(), kgo.NoCompression(),
	} {
		p := b.producer(kgo.ProducerBatchCompression(codec))
		var rs []*kgo.Record
		for j := range 500 {
			v := fmt.Sprintf("%d/%d %s", i, j, strings.Repeat("y", 50))
			rs, want = append(rs, record(0, v)), append(want, v)
		}
		if err := p.ProduceSync(t.Context(), rs...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	c := b.open()
	topic, spans := planned(t, c)
	same(t, drain(t, c, topic, spans).values(0), want)
}

func TestThousandPartitions(t *testing.T) {
	t.Parallel()
	const partitions = 1000
	b := setup(t, partitions)
	p := b.producer()
	for i := range int32(partitions) {
		p.Produce(t.Context(), record(i, fmt.Sprint(i)), nil)
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := b.open()
	topic, spans := planned(t, c)
	s := drain(t, c, topic, spans)
	for i := range int32(partitions) {
		same(t, s.values(i), []string{fmt.Sprint(i)})
	}
}

// TestBrokersWithoutTopicIDs: an older broker is read by name.
func TestBrokersWithoutTopicIDs(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]*kversion.Versions{"2.7": kversion.V2_7_0(), "2.3": kversion.V2_3_0(), "1.1": kversion.V1_1_0()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1, kfake.MaxVersions(v))
			b.produce(0, numbered(100)...)
			c := b.open()
			topic, spans := planned(t, c, plan.Stored{Partition: 0, Next: 10, Epoch: 0})
			if topic.ID.TopicID != [16]byte{} {
				t.Fatalf("topic id %x from a broker that has none", topic.ID.TopicID)
			}
			same(t, drain(t, c, topic, spans).values(0), numbered(100)[10:])
		})
	}
}
