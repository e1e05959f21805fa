package kafka

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"highwater/reader/plan"
)

func TestMeasureGivesTheEndsOfEveryPartition(t *testing.T) {
	t.Parallel()
	b := setup(t, 3)
	b.produce(0, numbered(10)...)
	b.transaction(kgo.TryCommit, 1, "a")
	if err := b.cluster.DeleteRecords(topicName, 0, 4); err != nil {
		t.Fatal(err)
	}
	c := b.open()
	topic, err := c.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if topic.ID.Cluster == "" || topic.ID.TopicID == [16]byte{} || topic.ID.Topic != topicName || len(topic.Partitions) != 3 {
		t.Errorf("topic %+v", topic)
	}
	ends, err := c.Measure(t.Context(), topic, nil, plan.Start{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][3]int64{{4, 10, 10}, {0, 2, 2}, {0, 0, 0}} {
		e := ends[i]
		if got := [3]int64{e.LogStartOffset, e.LastStableOffset, e.HighWatermark}; got != want || e.Partition != int32(i) {
			t.Errorf("partition %d: %v, want %v", e.Partition, got, want)
		}
		if e.AtTimeOffset != -1 || e.EpochEndOffset != -1 {
			t.Errorf("what was not asked is told: %+v", e)
		}
	}
}

// TestMeasureFindsTheOffsetOfATime: before, at, between and after the records.
func TestMeasureFindsTheOffsetOfATime(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	p := b.producer()
	for _, ms := range []int64{1000, 2000, 3000} {
		r := record(0, "x")
		r.Timestamp = time.UnixMilli(ms)
		if err := p.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	c := b.open()
	topic, err := c.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for ms, want := range map[int64]int64{-5000: 0, 0: 0, 1000: 0, 1500: 1, 3000: 2, 3001: 3} {
		ends, err := c.Measure(t.Context(), topic, nil, plan.Start{Kind: plan.AtTime, At: time.UnixMilli(ms)})
		if err != nil {
			t.Fatal(err)
		}
		if got := ends[0].AtTimeOffset; got != want {
			t.Errorf("offset %d of the time %d ms, want %d", got, ms, want)
		}
	}
}

// TestMeasureFindsWhereTheStoredEpochEnds: the log went on under another leader, or never had that epoch.
func TestMeasureFindsWhereTheStoredEpochEnds(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, kfake.NumBrokers(2))
	b.produce(0, numbered(5)...)
	if err := b.cluster.MoveTopicPartition(topicName, 0, 1-b.cluster.LeaderFor(topicName, 0)); err != nil {
		t.Fatal(err)
	}
	b.produce(0, numbered(5)...)
	c := b.open()
	topic, err := c.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for epoch, want := range map[int32]int64{0: 5, 1: 10, -1: -1} {
		ends, err := c.Measure(t.Context(), topic, []plan.Stored{{Partition: 0, Next: 5, Epoch: epoch}}, plan.Start{})
		if err != nil {
			t.Fatal(err)
		}
		if e := ends[0]; e.EpochEndOffset != want || e.LeaderEpoch != 1 {
			t.Errorf("epoch %d ends at %d under leader epoch %d, want %d", epoch, e.EpochEndOffset, e.LeaderEpoch, want)
		}
	}
}

// TestMeasureWaitsForLeaders: the topic was described before its leaders moved.
func TestMeasureWaitsForLeaders(t *testing.T) {
	t.Parallel()
	b := setup(t, 4, kfake.NumBrokers(3))
	b.produce(2, numbered(5)...)
	c := b.open()
	topic, err := c.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.cluster.ShufflePartitionLeaders()
	ends, err := c.Measure(t.Context(), topic, nil, plan.Start{})
	if err != nil {
		t.Fatal(err)
	}
	if len(ends) != 4 || ends[2].HighWatermark != 5 || ends[2].LeaderEpoch != 1 {
		t.Errorf("ends %+v", ends)
	}
}

// leaderless makes metadata say that partition 0 has no leader.
func (b *bench) leaderless(id [16]byte) {
	b.t.Helper()
	host, digits, _ := net.SplitHostPort(b.cluster.ListenAddrs()[0])
	port, err := strconv.Atoi(digits)
	if err != nil {
		b.t.Fatal(err)
	}
	b.cluster.ControlKey(int16(kmsg.Metadata), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		req := kreq.(*kmsg.MetadataRequest)
		if len(req.Topics) != 1 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		rb := kmsg.NewMetadataResponseBroker()
		rb.Host, rb.Port = host, int32(port)
		resp.Brokers = append(resp.Brokers, rb)
		rt := kmsg.NewMetadataResponseTopic()
		rt.Topic = kmsg.StringPtr(topicName)
		rt.TopicID = id
		for p, leader := range []int32{-1, rb.NodeID} {
			rp := kmsg.NewMetadataResponseTopicPartition()
			rp.Partition, rp.Leader, rp.LeaderEpoch = int32(p), leader, 0
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
}

// TestPartitionWithoutALeader: at the start the run cannot be planned; later the other partition is read first.
func TestPartitionWithoutALeader(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	b.produce(0, numbered(10)...)
	b.produce(1, numbered(10)...)
	c := b.open(brief)
	topic, spans := planned(t, c)
	b.leaderless(topic.ID.TopicID)
	topic.Partitions[0].Leader = -1
	s := newSink(t, spans)
	_, err := c.Drain(deadline(t), topic, spans, s.emit)
	wantError(t, err, "stalled", topicName+"[0]", "no leader")
	same(t, s.values(1), numbered(10))

	_, err = c.Measure(deadline(t), topic, nil, plan.Start{})
	wantError(t, err, "broker_unreachable", topicName+"[0]", "no leader")
}

// TestThrottledForEver: a broker that answers nothing but "over quota" is named as such.
func TestThrottledForEver(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, numbered(10)...)
	c := b.open(brief)
	topic, spans := planned(t, c)
	b.cluster.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		resp := kreq.ResponseKind().(*kmsg.FetchResponse)
		resp.ThrottleMillis = 20
		return resp, nil, true
	})
	_, err := c.Drain(deadline(t), topic, spans, func(Batch) error { return nil })
	wantError(t, err, "stalled", "throttles")
}
