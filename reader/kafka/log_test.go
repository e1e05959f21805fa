package kafka

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

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
			b := setup(t, 2)
			b.produce(0, numbered(10)...)
			b.produce(1, numbered(10)...)
			asked := 0
			b.cluster.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
				b.cluster.KeepControl()
				req := kreq.(*kmsg.FetchRequest)
				if p := req.Topics[0].Partitions; len(p) > 1 || p[0].Partition == 1 {
					return nil, nil, false
				}
				asked++
				return emptyAnswer(req, answer.head, answer.stable, answer.start), nil, true
			})
			c := b.open(brief)
			topic, _ := planned(t, c)
			spans := []plan.Span{{Partition: 0, From: 5, Target: 10, Epoch: 0}, {Partition: 1, Target: 10, Epoch: 0}}
			s := newSink(t, spans)
			s.at[0] = 5
			d, err := c.Drain(deadline(t), topic, spans, func(b Batch) error {
				if b.Partition == 0 {
					return nil // the first, unhostile answer of both
				}
				return s.emit(b)
			})
			if err != nil {
				t.Fatal(err)
			}
			same(t, s.values(1), numbered(10))
			if len(d.NotProved) == 0 {
				return // both were served by the one joint answer
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

func TestRecordsAsTheyWere(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	p := b.producer()
	at := time.UnixMilli(1_700_000_000_123)
	rs := []*kgo.Record{
		{Key: nil, Value: nil, Timestamp: at},
		{Key: []byte{}, Value: []byte{}, Timestamp: at},
		{Key: []byte("k"), Value: []byte("v"), Timestamp: at, Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}, {Key: "h", Value: []byte("2")}, {Key: "", Value: nil}}},
		{Key: []byte("k"), Value: bytes.Repeat([]byte("v"), 2000), Timestamp: at},
	}
	if err := p.ProduceSync(t.Context(), rs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	c := b.open(func(o *Options) { o.MaxMessageBytes = 1000 })
	topic, spans := planned(t, c)
	got := drain(t, c, topic, spans).records[0]
	if got[0].Key != nil || got[0].Value != nil || got[0].Timestamp != at.UnixMilli() {
		t.Errorf("a tombstone without a key: %+v", got[0])
	}
	if got[1].Key == nil || got[1].Value == nil {
		t.Errorf("empty is not nil: %+v", got[1])
	}
	if h := got[2].Headers; len(h) != 3 || h[0].Key != "h" || string(h[1].Value) != "2" || h[2].Value != nil {
		t.Errorf("headers %+v", h)
	}
	if got[3].TooLarge != 2000 || got[3].Value != nil || string(got[3].Key) != "k" {
		t.Errorf("a value above the limit: %d bytes told, %d handed on", got[3].TooLarge, len(got[3].Value))
	}
}

func TestLargeRecordThroughASmallFetch(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "20000000"}))
	p := b.producer(kgo.ProducerBatchMaxBytes(16<<20), kgo.MaxBufferedBytes(64<<20))
	value := bytes.Repeat([]byte("0123456789abcdef"), 8<<20/16)
	if err := p.ProduceSync(t.Context(), record(0, "a"), &kgo.Record{Value: value}, record(1, "b")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	c := b.open(slow)
	topic, spans := planned(t, c)
	got := drain(t, c, topic, spans)
	if r := got.records[0]; len(r) != 2 || !bytes.Equal(r[1].Value, value) {
		t.Error("the large record is not what was written")
	}
	same(t, got.values(1), []string{"b"})
}

// TestBatchAboveTheReadLimit names the partition and the offset; the other partitions are read.
func TestBatchAboveTheReadLimit(t *testing.T) {
	t.Parallel()
	b := setup(t, 3)
	b.produce(0, numbered(10)...)
	b.produce(1, "a", "b")
	b.produce(1, strings.Repeat("x", 200_000))
	b.produce(2, numbered(10)...)
	c := b.open(func(o *Options) { o.ReadBytes, o.FetchBytes = 100_000, 50_000 })
	topic, spans := planned(t, c)
	s := newSink(t, spans)
	_, err := c.Drain(deadline(t), topic, spans, s.emit)
	if e := wantError(t, err, "batch_too_large", "acme.partners[1]", "offset 2"); e.Partition != 1 || e.Offset != 2 {
		t.Errorf("partition %d, offset %d", e.Partition, e.Offset)
	}
	same(t, s.values(0), numbered(10))
	same(t, s.values(1), []string{"a", "b"})
	same(t, s.values(2), numbered(10))
}

// TestDecompressionBomb: a small batch that unpacks to more than is taken is refused, and what came before it is kept.
func TestDecompressionBomb(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, "before")
	p := b.producer(kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(90<<20), kgo.MaxBufferedBytes(200<<20), kgo.BrokerMaxWriteBytes(100<<20))
	if err := p.ProduceSync(t.Context(), &kgo.Record{Value: make([]byte, 70<<20)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	c := b.open()
	topic, spans := planned(t, c)
	s := newSink(t, spans)
	_, err := c.Drain(deadline(t), topic, spans, s.emit)
	e := wantError(t, err, "batch_too_large", "offset 1", "decompresses")
	if !strings.Contains(e.Hint, "SELECT connector.seek('partners', 0, 2);") {
		t.Errorf("hint %q", e.Hint)
	}
	same(t, s.values(0), []string{"before"})
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

func TestEmitErrorEndsTheDrain(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, large(100)...)
	c := b.open(slow)
	topic, spans := planned(t, c)
	stop := fmt.Errorf("enough")
	if _, err := c.Drain(deadline(t), topic, spans, func(Batch) error { return stop }); err != stop { //nolint:errorlint // it must come back as it is
		t.Errorf("error %v, want the emit's own", err)
	}
}

// TestCancelWhileTheBrokerIsSilent: a cancel is obeyed while a request waits.
func TestCancelWhileTheBrokerIsSilent(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, "a")
	asked := make(chan struct{}, 100)
	b.cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		asked <- struct{}{}
		return nil, nil, true // read, and never answered
	})
	c := b.open()
	topic, spans := planned(t, c)
	ctx, cancel := context.WithCancel(deadline(t))
	go func() {
		<-asked
		cancel()
	}()
	begun := time.Now()
	if _, err := c.Drain(ctx, topic, spans, func(Batch) error { return nil }); err != context.Canceled { //nolint:errorlint // as it is
		t.Errorf("error %v", err)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("took %s", took)
	}
}

// TestSlowReceiverIsNoStalledBroker: time in which emit works does not count as silence of the broker.
func TestSlowReceiverIsNoStalledBroker(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, large(60)...)
	c := b.open(slow, func(o *Options) { o.StallTimeout = 60 * time.Millisecond })
	topic, spans := planned(t, c)
	s := newSink(t, spans)
	n := 0
	s.each = func(Batch) error {
		if n++; n < 4 {
			<-time.After(150 * time.Millisecond)
		}
		return nil
	}
	d, err := c.Drain(deadline(t), topic, spans, s.emit)
	if err != nil || len(d.NotProved) > 0 {
		t.Fatalf("%v, %+v", err, d.NotProved)
	}
	s.atTargets(spans)
}
