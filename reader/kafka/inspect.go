package kafka

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"highwater/reader/plan"
)

// Special timestamps of ListOffsets.
const (
	atLatest   = -1
	atEarliest = -2
)

// ask is a question about one partition to its leader.
type ask struct {
	partition int32
	current   int32 // leader epoch that the answering broker must have; -1: any
	epoch     int32 // whose end is asked for (KIP-320); -1: none
}

// found is the answer. Code is the first error of its parts; ends are complete only where it is 0.
type found struct {
	code int16
	ends plan.Ends
}

// inspect asks one leader for the ends of partitions: log start, high watermark, last stable offset, where at ≥ 0 the
// offset of a time (milliseconds), and the end of each asked epoch. The order matters: a head that is measured before the
// last stable offset can only make it look too new, never open.
func (c *Client) inspect(ctx context.Context, node int32, asks []ask, at int64) (map[int32]found, error) {
	out := make(map[int32]found, len(asks))
	for _, a := range asks {
		out[a.partition] = found{ends: plan.Ends{
			Partition: a.partition, LeaderEpoch: a.current, AtTimeOffset: -1, EpochEndOffset: -1, EpochEndEpoch: -1,
		}}
	}
	questions := []struct {
		at        int64
		isolation int8
		set       func(*plan.Ends, int64)
	}{
		{atEarliest, 0, func(e *plan.Ends, o int64) { e.LogStartOffset = o }},
		{atLatest, 0, func(e *plan.Ends, o int64) { e.HighWatermark = o }},
		{atLatest, 1, func(e *plan.Ends, o int64) { e.LastStableOffset = min(o, e.HighWatermark) }},
		{at, c.isolation(), func(e *plan.Ends, o int64) {
			if e.AtTimeOffset = o; o < 0 {
				e.AtTimeOffset = e.HighWatermark // the protocol says -1 where no record is that young
			}
		}},
	}
	for i, q := range questions {
		if i == len(questions)-1 && at < 0 {
			break
		}
		if err := c.list(ctx, node, asks, q.at, q.isolation, out, q.set); err != nil {
			return nil, err
		}
	}
	return out, c.epochEnds(ctx, node, asks, out)
}

func (c *Client) isolation() int8 {
	if c.o.ReadCommitted {
		return 1
	}
	return 0
}

// list asks for one offset of each partition and sets it, or the error code, in out.
func (c *Client) list(ctx context.Context, node int32, asks []ask, at int64, isolation int8, out map[int32]found, set func(*plan.Ends, int64)) error {
	req := kmsg.NewPtrListOffsetsRequest()
	req.IsolationLevel = isolation
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = c.o.Topic
	for _, a := range asks {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.Timestamp = a.partition, a.current, at
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	raw, err := c.kgo.Broker(int(node)).Request(ctx, req)
	if err != nil {
		return err
	}
	resp, ok := raw.(*kmsg.ListOffsetsResponse)
	if !ok {
		return fmt.Errorf("answer of type %T to a ListOffsets request", raw)
	}
	answered := make(map[int32]kmsg.ListOffsetsResponseTopicPartition, len(asks))
	for _, t := range resp.Topics {
		if t.Topic == c.o.Topic {
			for _, p := range t.Partitions {
				answered[p.Partition] = p
			}
		}
	}
	for _, a := range asks {
		f, p := out[a.partition], kmsg.NewListOffsetsResponseTopicPartition()
		p.ErrorCode = -1
		if got, ok := answered[a.partition]; ok {
			p = got
		}
		switch {
		case f.code != 0:
		case p.ErrorCode != 0:
			f.code = p.ErrorCode
		case p.Offset < 0 && at < 0:
			f.code = -1 // a log has a start and an end: a broker that gives none is in trouble
		default:
			set(&f.ends, p.Offset)
		}
		out[a.partition] = f
	}
	return nil
}

// epochEnds asks where the asked epochs end in the leader's log. A broker too old for the question is not asked.
func (c *Client) epochEnds(ctx context.Context, node int32, asks []ask, out map[int32]found) error {
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID = -1
	t := kmsg.NewOffsetForLeaderEpochRequestTopic()
	t.Topic = c.o.Topic
	for _, a := range asks {
		if a.epoch >= 0 && out[a.partition].code == 0 {
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = a.partition, a.current, a.epoch
			t.Partitions = append(t.Partitions, p)
		}
	}
	if len(t.Partitions) == 0 {
		return nil
	}
	req.Topics = append(req.Topics, t)
	raw, err := c.kgo.Broker(int(node)).Request(ctx, req)
	if err != nil {
		if tooOld(err) {
			return nil
		}
		return err
	}
	resp, ok := raw.(*kmsg.OffsetForLeaderEpochResponse)
	if !ok {
		return fmt.Errorf("answer of type %T to an OffsetForLeaderEpoch request", raw)
	}
	for _, p := range t.Partitions {
		f := out[p.Partition]
		f.code = -1
		out[p.Partition] = f // until it is answered
	}
	for _, t := range resp.Topics {
		if t.Topic != c.o.Topic {
			continue
		}
		for _, p := range t.Partitions {
			if f, asked := out[p.Partition]; asked {
				f.code, f.ends.EpochEndOffset, f.ends.EpochEndEpoch = p.ErrorCode, p.EndOffset, p.LeaderEpoch
				out[p.Partition] = f
			}
		}
	}
	return nil
}

// tooOld recognises the library's word for a request that the broker does not know, which has no type.
func tooOld(err error) bool {
	return strings.Contains(err.Error(), "broker is too old")
}
