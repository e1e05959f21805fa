package kafka

import (
	"math/rand/v2"
	"time"

	"highwater/reader/plan"
)

// part is one partition of a drain.
//
//	reading ⇄ stale (its leader is not known) → check (a new leader's log is looked at) → reading
//	reading → settled: at the target, proved empty to it, given up, or failed
type part struct {
	id     int32
	next   int64 // where the next fetch begins; everything below is with the decoder or beyond
	target int64
	node   int32 // its leader, -1 for none
	epoch  int32 // leader epoch to hold the broker to, -1 for none
	read   int32 // newest epoch under which something was read or measured; its end in a new leader's log shows truncation

	settled bool
	away    bool // part of a fetch that is under way
	stale   bool // its leader must be asked for
	check   bool // its leader's log must be inspected
	alone   bool // asked for by itself, to find out whose batch is too large
	after   time.Time
	tries   int // failures in a row
	outside int // answers in a row that its position is outside the log
	bytes   int32

	since   time.Time // last progress
	proof   bool      // to be asked whether anything is left
	proofAt time.Time // not asked for proof before
	proofs  int       // answers in a row that nothing is

	trouble string // why the last answer brought nothing, empty where it was a clean one
	head    int64  // high watermark as last answered, -1 before that
	stable  int64  // last stable offset, likewise
	shrunk  int64  // where a new leader's log leaves the history that was measured, -1 when it does not below the target
}

func newPart(s plan.Span, now time.Time) *part {
	return &part{
		id: s.Partition, next: s.From, target: s.Target, node: -1, epoch: s.Epoch, read: s.Epoch,
		since: now, trouble: "it was not asked yet", head: -1, stable: -1, shrunk: -1,
	}
}

// ready tells whether it may be part of a fetch.
func (p *part) ready(now time.Time) bool {
	return !p.settled && !p.away && !p.stale && !p.check && !now.Before(p.after)
}

// moved takes the position on to next.
func (p *part) moved(next int64, epoch int32, now time.Time) {
	p.next, p.since = next, now
	p.read = max(p.read, epoch)
	p.tries, p.outside, p.proofs = 0, 0, 0
	p.proof, p.alone, p.bytes, p.trouble = false, false, 0, ""
}

// pause keeps it from being asked for a while, the longer the more often in a row.
func (p *part) pause(now time.Time, trouble string) {
	p.tries++
	p.after = now.Add(backoff(p.tries))
	p.trouble, p.proof, p.proofs = trouble, false, 0
}

// backoff is the pause before try n+1: doubling from pauseMin to pauseMax, with a quarter of jitter so that the
// partitions of a broker that restarts do not all ask at once.
func backoff(tries int) time.Duration {
	d := pauseMin << min(tries-1, 10)
	d = min(d, pauseMax)
	return d - rand.N(d/4)
}
