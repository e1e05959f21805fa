package kafka

import (
	"fmt"
	"time"
)

// movingBytes is what an answer that is under way must bring within StallTimeout to count as movement: a slow line is no
// stalled broker, and one that drips to keep a run waiting is.
const movingBytes = 64 << 10

// deadlines looks at every clock. Nothing in a drain waits without one.
func (r *reader) deadlines(now time.Time) {
	r.lostBrokers(now)
	for _, p := range r.parts {
		if p.settled || r.fatal != nil {
			continue
		}
		if r.excused(p, now) {
			continue
		}
		switch silent := now.Sub(p.since); {
		case silent >= r.c.o.StallTimeout:
			r.giveUp(p)
		case silent >= r.c.o.PollTimeout && p.trouble == "" && !p.stale && !p.check && !now.Before(p.proofAt):
			p.proof = true
		}
	}
}

// excused tells whether a partition's silence is not its own: the receiver holds everything up, an answer is on its way,
// or a connection is down, which has a deadline of its own.
func (r *reader) excused(p *part, now time.Time) bool {
	if p.stale && !r.leaders.failedSince.IsZero() {
		return true
	}
	if p.node < 0 {
		return false
	}
	n := r.node(p.node)
	if n.starved {
		p.since = now
		return true
	}
	if p.away && r.received(n)-n.received >= movingBytes {
		for _, q := range n.parts {
			if q.away {
				q.since = now
			}
		}
		n.received = r.received(n)
	}
	return !n.failedSince.IsZero()
}

// received is how many bytes a leader has sent so far.
func (r *reader) received(n *node) int64 {
	addr := r.c.addr(n.id)
	if addr == "" {
		return 0
	}
	return r.c.links.link(addr).received.Load()
}

// lostBrokers gives up the partitions of leaders, and of the cluster, whose connections failed for MetadataTimeout.
func (r *reader) lostBrokers(now time.Time) {
	late := func(since time.Time) bool { return !since.IsZero() && now.Sub(since) >= r.c.o.MetadataTimeout }
	for _, n := range r.nodes {
		if late(n.failedSince) {
			for len(n.parts) > 0 { // fail takes it off the list
				r.fail(n.parts[0], r.c.nodeLost(codeBrokerLost, n.id, n.why))
			}
		}
	}
	if !late(r.leaders.failedSince) {
		return
	}
	for _, p := range r.parts {
		if p.stale && !p.settled {
			r.fail(p, r.c.nodeLost(codeBrokerLost, -1, r.leaders.why))
		}
	}
}

// giveUp ends a partition that has been silent for StallTimeout: as not proved where the broker answers and brings
// nothing, as stalled where it does not even do that.
func (r *reader) giveUp(p *part) {
	if p.trouble != "" || p.stale || p.check {
		r.fail(p, r.about(p, codeStalled, true, "Look at the partition's leader and replicas on the brokers; the next run reads on from the stored position.",
			"nothing moved for %s at offset %d, below the target %d: %s", r.c.o.StallTimeout, p.next, p.target, p.trouble))
		return
	}
	if p.shrunk >= 0 && p.head < p.target {
		r.fail(p, r.about(p, codeTargetLost, true, "Run the connector again: it measures the log as it is now.",
			"the target %d cannot be reached: after a change of leader the log leaves the history that was measured at offset %d, and ends at %d", p.target, p.shrunk, p.head))
		return
	}
	r.notProved = append(r.notProved, NotProved{
		Partition: p.id, Position: p.next, Target: p.target, HighWatermark: p.head,
		Message: fmt.Sprintf("%s[%d]: the broker answered without an error and without progress for %s at offset %d, below the target %d (high watermark %d, last stable offset %d): whether anything is left there is not proved",
			r.c.o.Topic, p.id, r.c.o.StallTimeout, p.next, p.target, p.head, p.stable),
	})
	r.settle(p)
}
