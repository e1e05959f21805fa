package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Waits and bounds of a fetch.
const (
	// proofWait is how long a broker may wait for data when it is asked whether there is any.
	proofWait = 10 * time.Millisecond
	waitMin   = 10 * time.Millisecond
	waitMax   = 500 * time.Millisecond
	// partsPerProof bounds the partitions of one such question: one of them that has data spoils it for all.
	partsPerProof = 1000
	// proofsNeeded is how many answers in a row must say that nothing is left.
	proofsNeeded = 2
	// noTopicIDVersion is the last version of Fetch that names topics; it is asked of brokers without topic ids, also
	// where they claim to know later ones.
	noTopicIDVersion = 12
)

// pull is a fetch under way.
type pull struct {
	node  *node
	parts []*part
	epoch []int32 // of each part when it was asked for
	proof bool
	taken int64 // bytes taken off the budget for it
	wait  time.Duration
	sent  time.Time
}

// fetch asks a leader for what is due from it, as far as there is room.
func (r *reader) fetch(ctx context.Context, n *node, now time.Time) {
	f := pull{node: n, wait: min(max(r.c.o.PollTimeout/4, waitMin), waitMax), sent: now}
	f.parts, f.proof = n.choose(now)
	if len(f.parts) == 0 {
		return
	}
	if f.proof || f.parts[0].alone {
		f.wait = min(f.wait, proofWait)
	}
	share := r.share()
	f.taken = int64(max(share, f.parts[0].bytes))
	if !r.room.try(f.taken) {
		n.starved = true
		return
	}
	if n.starved {
		// The receiver held everything up: that silence was ours, not the broker's.
		n.starved = false
		for _, p := range n.parts {
			p.since = now
		}
	}
	req := r.request(f, share)
	n.fetching, n.received = true, r.received(n)
	for _, p := range f.parts {
		p.away = true
		f.epoch = append(f.epoch, p.epoch)
	}
	r.ask(ctx, func(ctx context.Context) func() {
		resp, err := r.c.fetch(ctx, n.id, req)
		return func() { r.fetched(f, resp, err, time.Now()) }
	})
}

// choose picks what to ask: one partition by itself, else those whose emptiness is to be proved, else all that are ready.
func (n *node) choose(now time.Time) (parts []*part, proof bool) {
	var proofs []*part
	for _, p := range n.parts {
		switch {
		case !p.ready(now):
		case p.alone:
			return []*part{p}, p.proof
		case p.proof && len(proofs) < partsPerProof:
			proofs = append(proofs, p)
		default:
			parts = append(parts, p)
		}
	}
	if len(proofs) > 0 {
		return proofs, true
	}
	return parts, false
}

// share is how many bytes one fetch may bring, so that all leaders can be asked at once.
func (r *reader) share() int32 {
	busy := 0
	for _, n := range r.nodes {
		if len(n.parts) > 0 {
			busy++
		}
	}
	all := r.c.o.BufferBytes / 2 / int64(2*max(busy, 1))
	return int32(min(int64(r.c.o.FetchBytes), max(all, fetchBytesMin)))
}

func (r *reader) request(f pull, share int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis = int32(f.wait.Milliseconds())
	req.MinBytes = 1
	req.MaxBytes = max(share, f.parts[0].bytes)
	req.IsolationLevel = r.c.isolation()
	req.SessionEpoch = -1 // no session: every request says all it wants
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = r.c.o.Topic, r.id.TopicID
	t.Partitions = make([]kmsg.FetchRequestTopicPartition, 0, len(f.parts))
	for _, p := range f.parts {
		q := kmsg.NewFetchRequestTopicPartition()
		q.Partition, q.CurrentLeaderEpoch, q.FetchOffset = p.id, p.epoch, p.next
		q.PartitionMaxBytes = max(share, p.bytes)
		t.Partitions = append(t.Partitions, q)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// unnamed keeps a fetch at a version that carries the topic's name: a later one would carry an id of zeros.
type unnamed struct{ *kmsg.FetchRequest }

func (unnamed) MaxVersion() int16 { return noTopicIDVersion }

func (c *Client) fetch(ctx context.Context, node int32, req *kmsg.FetchRequest) (*kmsg.FetchResponse, error) {
	var send kmsg.Request = req
	if req.Topics[0].TopicID == [16]byte{} {
		send = unnamed{req}
	}
	raw, err := c.kgo.Broker(int(node)).Request(ctx, send)
	if err != nil {
		return nil, err
	}
	resp, ok := raw.(*kmsg.FetchResponse)
	if !ok {
		return nil, fmt.Errorf("answer of type %T to a Fetch request", raw)
	}
	return resp, nil
}

// fetched takes a fetch answer: positions move by its batch headers, its bytes go to the decoder.
func (r *reader) fetched(f pull, resp *kmsg.FetchResponse, err error, now time.Time) {
	n := f.node
	n.fetching = false
	for _, p := range f.parts {
		p.away = false
	}
	if err != nil {
		r.room.give(f.taken)
		r.unfetched(f, err, now)
		return
	}
	n.answered()
	got, bytes := r.sort(resp)
	var moved []*part
	held, troubled := int64(0), false
	for i, p := range f.parts {
		if p.settled || r.fatal != nil || p.node != n.id || p.epoch != f.epoch[i] {
			continue // what an old leader answers after the new one was found would be taken past the check of its log
		}
		q, ok := got[p.id]
		if !ok {
			troubled = true
			if bytes == 0 || resp.ErrorCode != 0 {
				r.omitted(p, resp, now)
			}
			continue // a full answer may leave partitions out: they come first in the next one
		}
		before := p.next
		held += r.take(p, q, f.proof && bytes == 0, now)
		if p.next > before {
			moved = append(moved, p)
		}
		troubled = troubled || p.trouble != ""
	}
	r.room.give(f.taken - held)
	n.rotate(moved)
	if len(moved) == 0 && !troubled {
		n.after = f.sent.Add(f.wait) // a broker that does not wait although it was asked to must not be asked in a tight loop
	}
}

// omitted handles a partition that an answer says nothing of although it had room.
func (r *reader) omitted(p *part, resp *kmsg.FetchResponse, now time.Time) {
	switch {
	case resp.ErrorCode != 0:
		r.refused(p, resp.ErrorCode, now)
	case resp.ThrottleMillis > 0:
		p.pause(now, "the broker throttles this client: it is over a quota")
	default:
		p.pause(now, "the broker's answer leaves it out")
	}
}

// sort finds the topic's partitions in an answer, and how many bytes of batches it brought in all. An error of the whole
// answer is every partition's.
func (r *reader) sort(resp *kmsg.FetchResponse) (map[int32]*kmsg.FetchResponseTopicPartition, int) {
	got, bytes := map[int32]*kmsg.FetchResponseTopicPartition{}, 0
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			p := &resp.Topics[i].Partitions[j]
			bytes += len(p.RecordBatches)
			if resp.ErrorCode != 0 {
				p.ErrorCode = resp.ErrorCode
			}
			if resp.Version > noTopicIDVersion && resp.Topics[i].TopicID == r.id.TopicID ||
				resp.Version <= noTopicIDVersion && resp.Topics[i].Topic == r.c.o.Topic {
				got[p.Partition] = p
			}
		}
	}
	return got, bytes
}

// rotate puts partitions that were served behind the others, so that none starves where an answer is full.
func (n *node) rotate(served []*part) {
	if len(served) == 0 || len(n.parts) < 2 {
		return
	}
	is := make(map[*part]bool, len(served))
	for _, p := range served {
		is[p] = true
	}
	slices.SortStableFunc(n.parts, func(a, b *part) int {
		switch {
		case is[a] == is[b]:
			return 0
		case is[a]:
			return 1
		}
		return -1
	})
}

// unfetched handles a fetch without an answer.
func (r *reader) unfetched(f pull, err error, now time.Time) {
	if !strings.Contains(err.Error(), "exceeds BrokerMaxReadBytes") {
		r.failed(f.node, err, now)
		return
	}
	// Only a single batch can make an answer that large, whatever was asked for; which partition's shows when each is
	// asked for by itself.
	if len(f.parts) > 1 {
		for _, p := range f.parts {
			p.alone = true
		}
		return
	}
	if p := f.parts[0]; !p.settled {
		r.fail(p, batchTooLarge(r.c.o.Topic, r.c.o.Connector, p.id, p.next, -1,
			fmt.Sprintf("makes an answer of more than the %d bytes that this reader takes", r.c.o.ReadBytes)))
	}
}
