package kafka

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"highwater/reader/plan"
)

// allCodes are the protocol's error codes that the library knows, and one that nobody knows.
func allCodes() []*kerr.Error {
	var out []*kerr.Error
	for code := int16(-1); code < 200; code++ {
		e := kerr.TypedErrorForCode(code)
		if e != nil && (e != kerr.UnknownServerError || code == -1) {
			out = append(out, e)
		}
	}
	return append(out, &kerr.Error{Message: "FROM_THE_FUTURE", Code: 32000})
}

// known are the codes of spec 1.3 that a reader may end with.
var known = []string{
	codeTopicMissing, codeTopicRecreated, codeClusterChanged, codeOffsetsExpired, codeLogTruncated, codeTargetLost, codeStalled,
	codeUnreachable, codeBrokerLost, codeAuthFailed, codeTLSFailed, codeNotAuthorized, codeBatchTooLarge, codeInternal,
}

// sweepers is how many brokers a sweep uses at once: most of a run that fails is waiting.
const sweepers = 16

// TestEverySingleErrorCode answers every request of one kind with every error code of the protocol, once and for ever. A run
// recovers or ends with a code of the list, within its own deadlines, and does not ask in a tight loop.
func TestEverySingleErrorCode(t *testing.T) {
	t.Parallel()
	for _, key := range []kmsg.Key{kmsg.Fetch, kmsg.ListOffsets, kmsg.Metadata, kmsg.OffsetForLeaderEpoch} {
		for _, count := range []int{1, -1} {
			name := key.Name() + map[int]string{1: " once", -1: " for ever"}[count]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				codes := make(chan *kerr.Error)
				var workers sync.WaitGroup
				for range sweepers {
					b := setup(t, 2)
					b.produce(0, numbered(10)...)
					b.produce(1, numbered(10)...)
					workers.Go(func() {
						for e := range codes {
							b.sweep(t, key, count, e)
						}
					})
				}
				for _, e := range allCodes() {
					codes <- e
				}
				close(codes)
				workers.Wait()
			})
		}
	}
}

func (b *bench) sweep(t *testing.T, key kmsg.Key, count int, e *kerr.Error) {
	t.Helper()
	fault := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Topic: topicName, Err: e, Count: count})
	defer fault.Remove()
	begun := time.Now()
	err := b.run(t, 150*time.Millisecond)
	took := time.Since(begun)
	var typed *Error
	switch {
	case err == nil:
		if count < 0 && fault.Hits() > 0 {
			t.Errorf("%s for ever: the run succeeded", e.Message)
		}
	case !errors.As(err, &typed):
		t.Errorf("%s: error without a code: %v", e.Message, err)
	case !slices.Contains(known, typed.Code) || typed.Message == "" || typed.Hint == "":
		t.Errorf("%s: %s %q, hint %q", e.Message, typed.Code, typed.Message, typed.Hint)
	}
	if took > 5*time.Second || fault.Hits() > 200 {
		t.Errorf("%s: took %s and %d requests", e.Message, took, fault.Hits())
	}
}

// run is a whole run with short waits.
func (b *bench) run(t *testing.T, forBrokers time.Duration) error {
	t.Helper()
	c := b.open(func(o *Options) {
		o.PollTimeout, o.StallTimeout, o.MetadataTimeout = 20*time.Millisecond, 100*time.Millisecond, forBrokers
	})
	defer c.Close()
	ctx := deadline(t)
	topic, err := c.Describe(ctx)
	if err != nil {
		return err
	}
	stored := []plan.Stored{{Partition: 0, Next: 2, Epoch: 0}, {Partition: 1, Next: 2, Epoch: 0}}
	ends, err := c.Measure(ctx, topic, stored, plan.Start{})
	if err != nil {
		return err
	}
	p, refusal := plan.Decide(plan.Input{Connector: "partners", Stored: stored, BrokerID: topic.ID, Ends: ends})
	if refusal != nil {
		t.Errorf("refused: %s", refusal.Message)
		return nil
	}
	s := newSink(t, p.Spans)
	d, err := c.Drain(ctx, topic, p.Spans, s.emit)
	if err == nil && len(d.NotProved) == 0 {
		s.atTargets(p.Spans)
	}
	return err
}

// TestTopLevelErrors: an error of a whole fetch answer, which carries no partition.
func TestTopLevelErrors(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	b.produce(0, numbered(10)...)
	b.produce(1, numbered(10)...)
	for _, e := range []*kerr.Error{kerr.UnknownServerError, kerr.FetchSessionIDNotFound, kerr.InvalidFetchSessionEpoch, kerr.UnknownTopicID, kerr.TopicAuthorizationFailed} {
		fault := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, TopLevel: true, Err: e, Count: -1})
		if err := b.run(t, time.Second); err == nil {
			t.Errorf("%s: no error", e.Message)
		}
		if fault.Hits() == 0 || fault.Hits() > 50 {
			t.Errorf("%s: %d requests", e.Message, fault.Hits())
		}
		fault.Remove()
	}
}

// TestWordsOfFrequentErrors: what an operator meets most has its own code and names what it is about.
func TestWordsOfFrequentErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		key   kmsg.Key
		err   *kerr.Error
		code  string
		words []string
	}{
		{kmsg.Metadata, kerr.TopicAuthorizationFailed, "not_authorized", []string{topicName}},
		{kmsg.ListOffsets, kerr.TopicAuthorizationFailed, "not_authorized", []string{topicName}},
		{kmsg.Fetch, kerr.TopicAuthorizationFailed, "not_authorized", []string{topicName}},
		{kmsg.Metadata, kerr.UnknownTopicOrPartition, "topic_missing", []string{topicName}},
		{kmsg.Metadata, kerr.InvalidTopicException, "topic_missing", []string{topicName}},
		{kmsg.ListOffsets, kerr.NotLeaderForPartition, "broker_unreachable", []string{topicName + "[", "NOT_LEADER"}},
		{kmsg.Fetch, kerr.NotLeaderForPartition, "stalled", []string{topicName + "[0]", "offset 2", "target 10"}},
		{kmsg.Fetch, kerr.UnknownServerError, "stalled", []string{"UNKNOWN_SERVER_ERROR"}},
		{kmsg.Fetch, kerr.OffsetOutOfRange, "stalled", []string{"OFFSET_OUT_OF_RANGE"}},
		{kmsg.Fetch, kerr.UnsupportedCompressionType, "internal", []string{"UNSUPPORTED_COMPRESSION_TYPE"}},
	} {
		t.Run(tc.key.Name()+" "+tc.err.Message, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 2)
			b.produce(0, numbered(10)...)
			b.produce(1, numbered(10)...)
			b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{tc.key}, Topic: topicName, Err: tc.err, Count: -1})
			wantError(t, b.run(t, time.Second), tc.code, tc.words...)
		})
	}
}

// TestOnePartitionsFaultLeavesTheOthersAlone: partition 0 has no leader that answers; partition 1 is read to its target
// before the run fails.
func TestOnePartitionsFaultLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	b.produce(0, numbered(10)...)
	b.produce(1, large(50)...)
	c := b.open(slow, brief)
	topic, spans := planned(t, c)
	b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topicName, Partitions: []int32{0}, Err: kerr.LeaderNotAvailable, Count: -1})
	s := newSink(t, spans)
	_, err := c.Drain(deadline(t), topic, spans, s.emit)
	if e := wantError(t, err, "stalled", topicName+"[0]", "offset 0"); !e.Retryable {
		t.Error("a stalled partition is worth another run")
	}
	same(t, s.values(1), large(50))
}
