package kafka

import (
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// take takes one partition's share of a fetch answer and returns how many of its bytes went to the decoder. blank is set
// where the partition was asked for proof and the whole answer brought no batch for anybody.
func (r *reader) take(p *part, q *kmsg.FetchResponseTopicPartition, blank bool, now time.Time) int64 {
	if q.ErrorCode != 0 {
		r.refused(p, q.ErrorCode, now)
		return 0
	}
	p.trouble, p.alone, p.head, p.stable = "", false, q.HighWatermark, q.LastStableOffset
	s := scan(q.RecordBatches, p.next, p.target)
	switch {
	case s.err != nil:
		r.fail(p, r.about(p, codeInternal, true, "Run the connector again; where it repeats, look at the broker's log.",
			"the broker's answer at offset %d is no record batch: %v", p.next, s.err))
	case s.cut > 0:
		r.tooSmall(p, s.cut, now)
	case s.next > p.next && s.first > p.next && q.LogStartOffset > p.next:
		// The log start passed the position between the broker's check and its read: what lies before the first batch may
		// have been deleted and not compacted.
		r.halt(r.expired(p, min(s.first, q.LogStartOffset)))
	case s.next > p.next:
		return r.push(p, q, s, now)
	case len(q.RecordBatches) > 0:
		p.pause(now, "")
	case q.PreferredReadReplica >= 0:
		p.pause(now, "its leader sends readers to another replica, which this reader does not follow")
	case blank:
		r.proved(p, q, now)
	case p.proof:
		p.proofs = 0 // somebody else's data filled the answer: ask again
	}
	return 0
}

// push hands an answer's batches to the decoder and moves the position behind them.
func (r *reader) push(p *part, q *kmsg.FetchResponseTopicPartition, s stretch, now time.Time) int64 {
	to := min(s.next, p.target)
	a := answer{
		partition: p.id, from: p.next, to: to, target: p.target, epoch: p.epoch, records: s.records,
		bytes: int64(s.used), data: q.RecordBatches[:s.used], aborted: q.AbortedTransactions,
	}
	r.answers.push(a)
	p.moved(to, s.epoch, now)
	if p.next >= p.target {
		r.settle(p)
	}
	return a.bytes
}

// proved counts an answer without any batch as a proof that nothing is left, where the broker's own offsets bear it out: a
// head that reaches the target, a log start that has not passed the position. A head below the target proves nothing: a
// new leader may not know better yet (KIP-207).
func (r *reader) proved(p *part, q *kmsg.FetchResponseTopicPartition, now time.Time) {
	end := q.HighWatermark
	if r.c.o.ReadCommitted && q.LastStableOffset >= 0 {
		end = min(end, q.LastStableOffset)
	}
	if end < p.target || q.LogStartOffset > p.next {
		p.proof, p.proofs, p.proofAt = false, 0, now.Add(r.c.o.PollTimeout)
		return
	}
	if p.proofs++; p.proofs < proofsNeeded {
		return
	}
	r.answers.push(answer{partition: p.id, from: p.next, to: p.target, target: p.target, epoch: p.epoch, proved: true})
	p.moved(p.target, p.epoch, now)
	r.settle(p)
}

// tooSmall asks for more bytes: a broker from before KIP-74 cuts a batch that is larger than was asked for.
func (r *reader) tooSmall(p *part, need int, now time.Time) {
	asked := max(p.bytes, r.share())
	switch {
	case need > int(r.c.o.ReadBytes):
		r.fail(p, batchTooLarge(r.c.o.Topic, r.c.o.Connector, p.id, p.next, -1,
			fmt.Sprintf("is %d bytes long, more than the %d that this reader takes", need, r.c.o.ReadBytes)))
	case need > int(asked):
		p.bytes, p.alone = int32(min(need, math.MaxInt32)), true
	default:
		p.pause(now, "the broker's answer is cut off inside its first batch")
	}
}

// refused handles an error code of one partition, of a fetch or of an inspection.
func (r *reader) refused(p *part, code int16, now time.Time) {
	p.pause(now, "the broker answers "+word(code))
	switch fateOf(code) {
	case fateLeader, fateTopic:
		p.stale, r.leaders.wanted = true, true
	case fateRange:
		p.outside++
		p.check = true
	case fateDenied, fateAuth:
		r.halt(r.c.verdict(code))
	case fateLarge:
		r.fail(p, batchTooLarge(r.c.o.Topic, r.c.o.Connector, p.id, p.next, -1, "is larger than the broker hands out: "+word(code)))
	case fateUnfit:
		r.fail(p, r.about(p, codeInternal, false, hintOld, "the broker cannot serve this client at offset %d: %s", p.next, word(code)))
	case fateNone, fateRetry:
	}
}

// expired is a log start that passed the position while the run was reading: the offsets from the position to start are
// gone, as far as the run wanted them.
func (r *reader) expired(p *part, start int64) *Error {
	from, to := p.next, min(start, p.target)-1
	e := r.about(p, codeOffsetsExpired, true, "Raise the topic's retention or run more often; the next run reads on from the log start.",
		"the broker's log start moved to %d while the run was at offset %d: offsets %d..%d left the log before they were read", start, p.next, from, to)
	e.LostFrom, e.LostTo = from, to
	return e
}
