package kafka

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"highwater/reader/plan"
)

// reader owns the positions of one drain. All its fields belong to the goroutine of run, but for those of the hand-over
// (answers, room, decoded, damaged) and what is read after run has returned.
//
// It works like this: what is due is asked for in goroutines of their own, at most one fetch and one inspection for each
// leader and one metadata request at a time; each posts what to do with its answer as a function that run executes.
type reader struct {
	c     *Client
	id    plan.Identity
	parts map[int32]*part
	nodes []*node

	events  chan func()
	answers *backlog
	room    *budget // bytes asked for, fetched, and not yet emitted
	decoded *budget // bytes decompressed, and records, not yet emitted
	damaged chan damage
	asking  sync.WaitGroup

	leaders   leadership
	open      int // partitions not settled
	failures  []*Error
	notProved []NotProved
	fatal     *Error
}

// node is one leader and what is under way with it.
type node struct {
	id    int32
	parts []*part // in the order in which they are asked for: those that were served last come last

	fetching   bool
	inspecting bool
	starved    bool      // it could not be asked for want of room
	after      time.Time // not asked before
	received   int64     // bytes that had come in when last looked

	failedSince time.Time // first of the failures in a row, zero when it answers
	failures    int
	why         cause
}

// ticks is how many times within PollTimeout deadlines are looked at.
const (
	ticks   = 20
	tickMin = 5 * time.Millisecond
	tickMax = 100 * time.Millisecond
)

func newReader(c *Client, topic Topic, spans []plan.Span) *reader {
	r := &reader{
		c: c, id: topic.ID, parts: map[int32]*part{},
		events: make(chan func()), answers: newBacklog(), damaged: make(chan damage, len(spans)),
		room: newBudget(c.o.BufferBytes / 2), decoded: newBudget(c.o.BufferBytes / 2),
	}
	now := time.Now()
	leaders := make(map[int32]Partition, len(topic.Partitions))
	for _, p := range topic.Partitions {
		leaders[p.ID] = p
	}
	for _, s := range spans {
		if s.From >= s.Target || r.parts[s.Partition] != nil {
			continue
		}
		p := newPart(s, now)
		r.parts[s.Partition] = p
		r.open++
		if leader, ok := leaders[s.Partition]; ok {
			r.led(p, leader)
		} else {
			r.astray(p, "the topic's description lacks it")
		}
	}
	return r
}

// run asks and takes answers until every partition is settled, something stops all of it, or ctx ends.
func (r *reader) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer r.asking.Wait()
	defer cancel()
	tick := time.NewTicker(min(max(r.c.o.PollTimeout/ticks, tickMin), tickMax))
	defer tick.Stop()
	for due := true; r.open > 0 && r.fatal == nil; {
		if due {
			r.dispatch(ctx, time.Now())
		}
		due = true
		select {
		case <-ctx.Done():
			return
		case do := <-r.events:
			r.guard(do)
		case d := <-r.damaged:
			r.blame(d)
		case <-r.room.freed:
			due = r.starving() // after every batch that is emitted: looking through all partitions would cost too much
		case now := <-tick.C:
			r.guard(func() { r.deadlines(now) })
		}
	}
}

func (r *reader) starving() bool {
	return slices.ContainsFunc(r.nodes, func(n *node) bool { return n.starved })
}

// guard executes what an answer calls for; a panic, which only an answer that nobody foresaw can cause, ends the drain.
func (r *reader) guard(do func()) {
	defer func() {
		if p := recover(); p != nil {
			r.halt(r.c.fail(codeInternal, fmt.Sprintf("topic %q: an answer of the broker could not be handled: %v", r.c.o.Topic, p), "", true))
		}
	}()
	do()
}

// ask runs a request in a goroutine of its own and has run execute what it returns.
func (r *reader) ask(ctx context.Context, request func(context.Context) func()) {
	r.asking.Go(func() {
		do := request(ctx)
		select {
		case r.events <- do:
		case <-ctx.Done():
		}
	})
}

// dispatch sends whatever is due.
func (r *reader) dispatch(ctx context.Context, now time.Time) {
	r.askLeaders(ctx, now)
	for _, n := range r.nodes {
		if now.Before(n.after) {
			continue
		}
		if !n.inspecting {
			r.inspect(ctx, n, now)
		}
		if !n.fetching {
			r.fetch(ctx, n, now)
		}
	}
}

// node gives the leader with this id.
func (r *reader) node(id int32) *node {
	for _, n := range r.nodes {
		if n.id == id {
			return n
		}
	}
	n := &node{id: id}
	r.nodes = append(r.nodes, n)
	return n
}

// move puts a partition under its leader, -1 for none.
func (r *reader) move(p *part, to int32) {
	if p.node == to {
		return
	}
	if p.node >= 0 {
		old := r.node(p.node)
		old.parts = slices.DeleteFunc(old.parts, func(q *part) bool { return q == p })
	}
	p.node = to
	if to >= 0 {
		n := r.node(to)
		n.parts = append(n.parts, p)
	}
}

// settle ends a partition's reading, for whatever reason.
func (r *reader) settle(p *part) {
	p.settled = true
	r.open--
	r.move(p, -1)
}

// fail gives one partition up; the others go on.
func (r *reader) fail(p *part, e *Error) {
	if e.Partition < 0 {
		e.Partition, e.Offset = p.id, p.next
	}
	r.settle(p)
	r.failures = append(r.failures, e)
}

// halt stops the drain: the topic, or the run's view of it, is not what it was.
func (r *reader) halt(e *Error) {
	if r.fatal == nil {
		r.fatal = e
	}
}

// about makes an error that concerns one partition at its position.
func (r *reader) about(p *part, code string, retryable bool, hint, format string, args ...any) *Error {
	e := r.c.fail(code, fmt.Sprintf("%s[%d]: ", r.c.o.Topic, p.id)+fmt.Sprintf(format, args...), hint, retryable)
	e.Partition, e.Offset = p.id, p.next
	return e
}

// answered notes that a leader's connection works.
func (n *node) answered() {
	n.failedSince, n.failures = time.Time{}, 0
}

// failed notes a connection that does not work: pause, and find out whether somebody else leads.
func (r *reader) failed(n *node, err error, now time.Time) {
	n.why = r.c.cause(err)
	n.failures++
	if n.failedSince.IsZero() {
		n.failedSince = now
	}
	n.after = now.Add(backoff(n.failures))
	if n.why.certain && n.failures > 1 {
		r.halt(r.c.nodeLost(codeBrokerLost, n.id, n.why))
		return
	}
	for _, p := range n.parts {
		p.stale = true
	}
	r.leaders.wanted = true
}
