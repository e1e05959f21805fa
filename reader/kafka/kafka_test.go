package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"go.uber.org/goleak"

	"highwater/reader/plan"
)

const topicName = "acme.partners"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a broker, a producer and what is needed to read it.
type bench struct {
	t       testing.TB
	cluster *kfake.Cluster
}

// setup starts a fake broker with the topic.
func setup(t testing.TB, partitions int, opts ...kfake.Opt) *bench {
	t.Helper()
	opts = append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(int32(partitions), topicName)}, opts...)
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return &bench{t: t, cluster: cluster}
}

func (b *bench) options() Options {
	return Options{
		Brokers: b.cluster.ListenAddrs(), Topic: topicName, Connector: "partners", ReadCommitted: true,
		PollTimeout: 50 * time.Millisecond, StallTimeout: 5 * time.Second, MetadataTimeout: 5 * time.Second,
	}
}

// brief makes the waits short, for runs that are to end by one of them.
func brief(o *Options) {
	o.StallTimeout, o.MetadataTimeout = 400*time.Millisecond, time.Second
}

func (b *bench) open(change ...func(*Options)) *Client {
	b.t.Helper()
	o := b.options()
	for _, f := range change {
		f(&o)
	}
	c, err := Open(o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return c
}

// producer is a client that writes where it is told to.
func (b *bench) producer(opts ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	p, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.DefaultProduceTopic(topicName), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MetadataMinAge(10 * time.Millisecond),
	}, opts...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(p.Close)
	return p
}

// authenticated is a producer for a broker that wants the tests' credentials.
func (b *bench) authenticated() *kgo.Client {
	b.t.Helper()
	return b.producer(kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
}

func record(partition int32, value string) *kgo.Record {
	return &kgo.Record{Partition: partition, Key: []byte("k"), Value: []byte(value)}
}

// produce writes records in batches of at most a hundred and of some kilobytes, so that a log has many.
func (b *bench) produce(partition int32, values ...string) {
	b.t.Helper()
	p := b.producer()
	var rs []*kgo.Record
	bytes := 0
	for i, v := range values {
		rs, bytes = append(rs, record(partition, v)), bytes+len(v)
		if len(rs) < 100 && bytes < 10_000 && i < len(values)-1 {
			continue
		}
		if err := p.ProduceSync(b.t.Context(), rs...).FirstErr(); err != nil {
			b.t.Fatal(err)
		}
		rs, bytes = nil, 0
	}
}

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`{"id":%d}`, i)
	}
	return out
}

// transaction writes values in one transaction and ends it.
func (b *bench) transaction(end kgo.TransactionEndTry, partition int32, values ...string) {
	b.t.Helper()
	p := b.producer(kgo.TransactionalID("tx"))
	if err := p.BeginTransaction(); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range values {
		if err := p.ProduceSync(b.t.Context(), record(partition, v)).FirstErr(); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := p.EndTransaction(b.t.Context(), end); err != nil {
		b.t.Fatal(err)
	}
}

// planned describes, measures and plans a run from the given positions.
func planned(t testing.TB, c *Client, stored ...plan.Stored) (Topic, []plan.Span) {
	t.Helper()
	topic, err := c.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ends, err := c.Measure(t.Context(), topic, stored, plan.Start{})
	if err != nil {
		t.Fatal(err)
	}
	p, refusal := plan.Decide(plan.Input{
		Connector: "partners", Stored: stored, BrokerID: topic.ID, Ends: ends, ReadCommitted: c.o.ReadCommitted,
	})
	if refusal != nil {
		t.Fatal(refusal)
	}
	return topic, p.Spans
}

// sink takes batches and checks that each partition's follow each other without a gap.
type sink struct {
	t        testing.TB
	mu       sync.Mutex
	at       map[int32]int64
	records  map[int32][]Record
	proved   map[int32]bool
	noRecord int64
	each     func(Batch) error
}

func newSink(t testing.TB, spans []plan.Span) *sink {
	s := &sink{t: t, at: map[int32]int64{}, records: map[int32][]Record{}, proved: map[int32]bool{}}
	for _, span := range spans {
		s.at[span.Partition] = span.From
	}
	return s
}

func (s *sink) emit(b Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.From != s.at[b.Partition] {
		s.t.Errorf("partition %d: batch from %d, want %d", b.Partition, b.From, s.at[b.Partition])
	}
	if b.Next <= b.From {
		s.t.Errorf("partition %d: empty batch [%d,%d)", b.Partition, b.From, b.Next)
	}
	before, bytes := b.From-1, 0
	for _, r := range b.Records {
		if r.Offset <= before || r.Offset >= b.Next {
			s.t.Errorf("partition %d: offset %d after %d in [%d,%d)", b.Partition, r.Offset, before, b.From, b.Next)
		}
		before = r.Offset
		bytes += len(r.Key) + len(r.Value)
	}
	if bytes != b.Bytes {
		s.t.Errorf("partition %d: %d bytes, want %d", b.Partition, b.Bytes, bytes)
	}
	s.noRecord += b.Next - b.From - int64(len(b.Records))
	s.at[b.Partition] = b.Next
	s.proved[b.Partition] = b.Proved
	s.records[b.Partition] = append(s.records[b.Partition], b.Records...)
	if s.each != nil {
		return s.each(b)
	}
	return nil
}

// values are the values of one partition as strings.
func (s *sink) values(partition int32) []string {
	var out []string
	for _, r := range s.records[partition] {
		out = append(out, string(r.Value))
	}
	return out
}

// atTargets fails the test where a partition is not at its target.
func (s *sink) atTargets(spans []plan.Span) {
	s.t.Helper()
	for _, span := range spans {
		if s.at[span.Partition] != span.Target {
			s.t.Errorf("partition %d is at %d, want %d", span.Partition, s.at[span.Partition], span.Target)
		}
	}
}

// drain reads to the targets and wants it to succeed.
func drain(t testing.TB, c *Client, topic Topic, spans []plan.Span) *sink {
	t.Helper()
	s := newSink(t, spans)
	d, err := c.Drain(t.Context(), topic, spans, s.emit)
	if err != nil {
		t.Fatalf("drain: %v", err)
	}
	if len(d.NotProved) > 0 {
		t.Fatalf("not proved: %+v", d.NotProved)
	}
	s.atTargets(spans)
	return s
}

func same(t testing.TB, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%d values, want %d; first difference: %s", len(got), len(want), difference(got, want))
	}
}

func difference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("[%d] %.60q, want %.60q", i, got[i], want[i])
		}
	}
	return "one is longer"
}

// wantError checks the code and the words of an error of this package.
func wantError(t testing.TB, err error, code string, words ...string) Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want one of this package with code %s", err, code)
	}
	if e.Code != code {
		t.Errorf("code %s (%s), want %s", e.Code, e.Message, code)
	}
	for _, w := range words {
		if !strings.Contains(e.Message, w) {
			t.Errorf("message %q lacks %q", e.Message, w)
		}
	}
	if e.Hint == "" {
		t.Errorf("no hint with %q", e.Message)
	}
	return *e
}

// untouched checks that reading left no group and no topic on the broker.
func (b *bench) untouched() {
	b.t.Helper()
	p := b.producer()
	groups, err := kmsg.NewPtrListGroupsRequest().RequestWith(b.t.Context(), p)
	if err != nil || len(groups.Groups) != 0 {
		b.t.Errorf("groups %v (%v), want none", groups, err)
	}
	topics, err := kmsg.NewPtrMetadataRequest().RequestWith(b.t.Context(), p)
	if err != nil || len(topics.Topics) != 1 {
		b.t.Errorf("topics %v (%v), want only the test's", topics, err)
	}
}

// deadline is a context that ends a test that hangs with a message instead of a dump.
func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("the drain hangs"))
	t.Cleanup(cancel)
	return ctx
}
