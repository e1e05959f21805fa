package kafka

import (
	"bytes"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"highwater/reader/plan"
)

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

// TestBrokerThatCutsBatches: before KIP-74 a batch that was larger than what was asked for came in part; it is asked for
// again with the size that its header names.
func TestBrokerThatCutsBatches(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	data := good(0, 5000).bytes()
	b.cluster.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		req := kreq.(*kmsg.FetchRequest)
		resp := emptyAnswer(req, 5000, 5000, 0)
		most := int(req.Topics[0].Partitions[0].PartitionMaxBytes)
		resp.Topics[0].Partitions[0].RecordBatches = data[:min(most, len(data))]
		return resp, nil, true
	})
	c := b.open(slow)
	topic, err := c.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := drain(t, c, topic, []plan.Span{{Partition: 0, Target: 5000, Epoch: -1}})
	if len(s.records[0]) != 5000 {
		t.Errorf("%d records", len(s.records[0]))
	}
}
