package kafka

import (
	"context"
	"time"
)

// leadership is what is under way to find partitions' leaders.
type leadership struct {
	asking bool
	wanted bool
	after  time.Time
	rounds int // answers in a row that left a partition without a leader

	missing     int // answers in a row that the topic does not exist
	failures    int
	failedSince time.Time
	why         cause
}

// missingNeeded is how many answers in a row must say that the topic is gone: a broker that has just started does not
// know all topics yet.
const missingNeeded = 3

// askLeaders asks for the leaders where some partition needs to know its own.
func (r *reader) askLeaders(ctx context.Context, now time.Time) {
	l := &r.leaders
	if !l.wanted || l.asking || now.Before(l.after) {
		return
	}
	l.asking = true
	r.ask(ctx, func(ctx context.Context) func() {
		m, err := r.c.metadata(ctx)
		return func() { r.described(m, err, time.Now()) }
	})
}

// described takes a metadata answer: it may say that the topic is another one, gone, or led by somebody else.
func (r *reader) described(m metadata, err error, now time.Time) {
	l := &r.leaders
	l.asking = false
	if err != nil {
		l.why = r.c.cause(err)
		if l.failures++; l.failedSince.IsZero() {
			l.failedSince = now
		}
		l.after = now.Add(backoff(l.failures))
		if l.why.certain && l.failures > 1 {
			r.halt(r.c.nodeLost(codeBrokerLost, -1, l.why))
		}
		return
	}
	l.failures, l.failedSince = 0, time.Time{}
	l.rounds++
	l.after = now.Add(backoff(l.rounds))
	if !r.still(m) || m.code != 0 {
		return
	}
	leaders := make(map[int32]Partition, len(m.topic.Partitions))
	for _, p := range m.topic.Partitions {
		leaders[p.ID] = p
	}
	for _, p := range r.parts {
		if !p.stale || p.settled {
			continue
		}
		if leader, ok := leaders[p.id]; ok {
			r.led(p, leader)
		} else {
			r.astray(p, "the brokers' description of the topic lacks it")
		}
	}
	l.wanted = r.anyStale()
	if !l.wanted {
		l.rounds = 0
	}
}

// still tells whether the answer is about the topic that the run was planned for; where it says that it is not, the drain
// is halted, at once or after the same answer has come often enough.
func (r *reader) still(m metadata) bool {
	l := &r.leaders
	switch fateOf(m.code) {
	case fateTopic:
		if l.missing++; l.missing >= missingNeeded {
			e := r.c.verdict(m.code)
			e.Message += " any more: it was deleted while the run was reading"
			r.halt(e)
		}
		return false
	case fateDenied, fateAuth:
		r.halt(r.c.verdict(m.code))
		return false
	default:
	}
	l.missing = 0
	if e := r.c.changed(r.id, m.topic.ID); m.code == 0 && e != nil {
		r.halt(e)
		return false
	}
	return true
}

func (r *reader) anyStale() bool {
	for _, p := range r.parts {
		if p.stale && !p.settled {
			return true
		}
	}
	return false
}

// led puts a partition under the leader that metadata names. A new leader's log is looked at before it is read: what was
// read under the old one may not be in it (KIP-320).
func (r *reader) led(p *part, leader Partition) {
	switch {
	case leader.Leader < 0:
		r.astray(p, "it has no leader")
		return
	case leader.LeaderEpoch >= 0 && leader.LeaderEpoch < p.epoch:
		r.astray(p, "the broker that was asked knows only an older leader")
		return
	}
	if p.epoch >= 0 && leader.LeaderEpoch > p.epoch {
		p.check = true
		r.c.o.Logger.Info("leader changed", "topic", r.c.o.Topic, "partition", p.id, "leader", leader.Leader, "epoch", leader.LeaderEpoch)
	}
	if p.epoch < 0 {
		p.read = max(p.read, leader.LeaderEpoch) // from here on its end can be asked for
	}
	p.epoch = leader.LeaderEpoch
	p.stale = false
	r.move(p, leader.Leader)
}

// astray leaves a partition without a leader until metadata names one.
func (r *reader) astray(p *part, why string) {
	p.stale, p.trouble, r.leaders.wanted = true, why, true
	r.move(p, -1)
}

// inspect asks a leader about the logs that must be looked at before they are read on.
func (r *reader) inspect(ctx context.Context, n *node, now time.Time) {
	var asks []ask
	for _, p := range n.parts {
		if p.check && !p.stale && !p.away && !now.Before(p.after) {
			asks = append(asks, ask{partition: p.id, current: p.epoch, epoch: p.read})
		}
	}
	if len(asks) == 0 {
		return
	}
	n.inspecting = true
	r.ask(ctx, func(ctx context.Context) func() {
		got, err := r.c.inspect(ctx, n.id, asks, -1)
		return func() { r.inspected(n, asks, got, err, time.Now()) }
	})
}

func (r *reader) inspected(n *node, asks []ask, got map[int32]found, err error, now time.Time) {
	n.inspecting = false
	if err != nil {
		r.failed(n, err, now)
		return
	}
	n.answered()
	for _, a := range asks {
		p := r.parts[a.partition]
		if p.settled || p.node != n.id || p.epoch != a.current || r.fatal != nil {
			continue
		}
		f := got[p.id]
		if f.code != 0 {
			r.refused(p, f.code, now)
			continue
		}
		r.judge(p, f, now)
	}
}

// judge decides from a log's ends whether a partition may be read on.
func (r *reader) judge(p *part, f found, now time.Time) {
	p.check = false
	e := f.ends
	if e.EpochEndOffset >= 0 && e.EpochEndOffset < p.next {
		r.halt(r.about(p, codeLogTruncated, false, "Run SELECT connector.reset_cursor("+literal(r.c.o.Connector)+"); to read the log as it is now.",
			"the log was truncated while the run was reading: the run is at offset %d of leader epoch %d, which now ends at offset %d", p.next, p.read, e.EpochEndOffset))
		return
	}
	if e.EpochEndOffset >= 0 && e.EpochEndOffset < p.target {
		p.shrunk = e.EpochEndOffset
	}
	p.read = max(p.read, p.epoch) // all below the position is in this leader's history
	switch {
	case p.outside == 0:
	case e.LogStartOffset > p.next:
		r.halt(r.expired(p, e.LogStartOffset))
	case e.HighWatermark < p.next && p.outside >= outsideNeeded:
		r.halt(r.about(p, codeLogTruncated, false, "Run SELECT connector.reset_cursor("+literal(r.c.o.Connector)+"); to read the log as it is now.",
			"the log was cut short while the run was reading: the run is at offset %d, the log now ends at %d", p.next, e.HighWatermark))
	default:
		p.trouble = "the broker answers OFFSET_OUT_OF_RANGE, and that its log reaches over the position"
	}
}

// outsideNeeded is how many answers in a row must put the position beyond the log before the log counts as cut short.
const outsideNeeded = 2
