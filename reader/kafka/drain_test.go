package kafka

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"highwater/reader/plan"
)

func TestReadsAllRecordsOfAllPartitions(t *testing.T) {
	t.Parallel()
	b := setup(t, 3)
	for p := range int32(3) {
		b.produce(p, numbered(250)...)
	}
	c := b.open()
	topic, spans := planned(t, c)
	s := drain(t, c, topic, spans)
	for p := range int32(3) {
		same(t, s.values(p), numbered(250))
	}
	b.untouched()
}

func TestNothingToReadAsksNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	c := b.open()
	topic, spans := planned(t, c)
	if s := drain(t, c, topic, spans); s.noRecord != 0 {
		t.Errorf("%d offsets accounted for on an empty topic", s.noRecord)
	}
}

func TestStopsAtTheTargetInsideABatch(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, numbered(100)...)
	c := b.open()
	topic, _ := planned(t, c)
	s := drain(t, c, topic, []plan.Span{{Partition: 0, From: 17, Target: 23, Epoch: -1}})
	same(t, s.values(0), numbered(100)[17:23])
}

func TestTransactionTails(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		fill func(*bench)
		want []string
		gap  int64
	}{
		{"a commit marker", func(b *bench) { b.transaction(kgo.TryCommit, 0, "a") }, []string{"a"}, 1},
		{"an abort marker", func(b *bench) { b.produce(0, "x"); b.transaction(kgo.TryAbort, 0, "a") }, []string{"x"}, 2},
		{"1,000 aborted records", func(b *bench) { b.produce(0, "x"); b.transaction(kgo.TryAbort, 0, numbered(1000)...) }, []string{"x"}, 1001},
		{"committed, aborted, committed", func(b *bench) {
			b.transaction(kgo.TryCommit, 0, "a", "b")
			b.transaction(kgo.TryAbort, 0, "c")
			b.transaction(kgo.TryCommit, 0, "d")
		}, []string{"a", "b", "d"}, 4},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1)
			tc.fill(b)
			c := b.open()
			topic, spans := planned(t, c)
			s := drain(t, c, topic, spans)
			same(t, s.values(0), tc.want)
			if s.noRecord != tc.gap {
				t.Errorf("%d offsets without a record, want %d", s.noRecord, tc.gap)
			}
			b.untouched()
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
	c := b.open(slow, func(o *Options) { o.StallTimeout = 300 * time.Millisecond })
	topic, spans := planned(t, c)
	s := newSink(t, spans)
	n := 0
	s.each = func(Batch) error {
		if n++; n < 4 {
			<-time.After(500 * time.Millisecond)
		}
		return nil
	}
	d, err := c.Drain(deadline(t), topic, spans, s.emit)
	if err != nil || len(d.NotProved) > 0 {
		t.Fatalf("%v, %+v", err, d.NotProved)
	}
	s.atTargets(spans)
}

func TestRecordsAsTheyWere(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "20000000"}))
	p := b.producer(kgo.ProducerBatchMaxBytes(16 << 20))
	at := time.UnixMilli(1_700_000_000_123)
	rs := []*kgo.Record{
		{Key: nil, Value: nil, Timestamp: at},
		{Key: []byte{}, Value: []byte{}, Timestamp: at},
		{Key: []byte("k"), Value: []byte("v"), Timestamp: at, Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}, {Key: "h", Value: []byte("2")}, {Key: "", Value: nil}}},
		{Key: []byte("k"), Value: bytes.Repeat([]byte("v"), 2000), Timestamp: at},
		{Key: []byte("l"), Value: bytes.Repeat([]byte("0123456789abcdef"), 3<<16), Timestamp: at},
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
	if got[3].TooLarge != 2000 || !bytes.Equal(got[3].Value, rs[3].Value) || string(got[3].Key) != "k" {
		t.Errorf("a value above the limit: %d bytes told, %d handed on", got[3].TooLarge, len(got[3].Value))
	}
	if got[4].TooLarge != 3<<20 || !bytes.Equal(got[4].Value, rs[4].Value[:1<<20]) || string(got[4].Key) != "l" {
		t.Errorf("a value of 3 MiB: %d bytes told, %d handed on", got[4].TooLarge, len(got[4].Value))
	}
}
