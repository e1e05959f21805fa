package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"highwater/reader/plan"
)

// Measure asks the leaders where every partition of topic begins and ends now, where a sought time lies, and where the
// leader epochs of the stored positions end. The ends are in partition order, one for each partition.
//
// It waits at most MetadataTimeout for leaders that are missing or do not answer, then returns an *Error that names the
// partition or the broker: without every end there is no target. Errors that waiting cannot mend return at once.
func (c *Client) Measure(ctx context.Context, topic Topic, stored []plan.Stored, start plan.Start) ([]plan.Ends, error) {
	within, cancel := context.WithTimeout(ctx, c.o.MetadataTimeout)
	defer cancel()
	m := measuring{c: c, topic: topic, at: -1, done: make(map[int32]plan.Ends, len(topic.Partitions)), why: map[int32]string{}}
	if start.Kind == plan.AtTime {
		m.at = max(start.At.UnixMilli(), 0) // negative times have other meanings in the protocol
	}
	m.epochs = make(map[int32]int32, len(stored))
	for _, s := range stored {
		m.epochs[s.Partition] = s.Epoch
	}
	pause := pauseMin
	for {
		if err := m.round(within); err != nil {
			return nil, orCancelled(ctx, err)
		}
		if len(m.done) == len(topic.Partitions) {
			return m.ends(), nil
		}
		if !sleep(within, pause) {
			return nil, orCancelled(ctx, m.late())
		}
		pause = min(2*pause, pauseMax)
		if err := m.refresh(within); err != nil {
			if within.Err() != nil {
				err = m.late() // what the leaders gave says more than a broker that was not asked in time
			}
			return nil, orCancelled(ctx, err)
		}
	}
}

// orCancelled prefers the caller's own cancel to what it made fail.
func orCancelled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// goneRounds is how often in a row a leader's address must refuse before it is taken to be down: some seconds, so that a
// broker that restarts, or a new leader, is waited for.
const goneRounds = 8

// measuring is one call of Measure.
type measuring struct {
	c      *Client
	topic  Topic
	at     int64
	epochs map[int32]int32
	done   map[int32]plan.Ends
	why    map[int32]string // partition → why it is not measured yet
	broken *cause           // the last connection that failed
	gone   int              // rounds in a row in which an address refused
}

// round asks every leader about its partitions that are not measured yet, all leaders at once.
func (m *measuring) round(ctx context.Context) error {
	asks := map[int32][]ask{}
	for _, p := range m.topic.Partitions {
		if _, ok := m.done[p.ID]; ok {
			continue
		}
		if p.Leader < 0 {
			m.why[p.ID] = "it has no leader"
			continue
		}
		a := ask{partition: p.ID, current: p.LeaderEpoch, epoch: -1}
		if e, ok := m.epochs[p.ID]; ok {
			a.epoch = e
		}
		asks[p.Leader] = append(asks[p.Leader], a)
	}
	type answer struct {
		node int32
		got  map[int32]found
		err  error
	}
	answers := make(chan answer)
	for node, questions := range asks {
		go func() {
			got, err := m.c.inspect(ctx, node, questions, m.at)
			answers <- answer{node, got, err}
		}()
	}
	var stop error
	m.broken = nil
	for range asks {
		a := <-answers
		if err := m.take(a.node, a.got, a.err); err != nil {
			stop = err
		}
	}
	if m.broken == nil || !m.broken.refused {
		m.gone = 0
		return stop
	}
	if m.gone++; m.gone >= goneRounds && stop == nil {
		return m.late()
	}
	return stop
}

// take keeps one leader's answer; it returns an error where waiting cannot help.
func (m *measuring) take(node int32, got map[int32]found, err error) error {
	if err != nil {
		why := m.c.cause(err)
		m.broken = &why
		if why.certain {
			return m.c.nodeLost(codeUnreachable, node, why)
		}
		return nil
	}
	for id, f := range got {
		if f.code == 0 {
			m.done[id] = f.ends
			continue
		}
		m.why[id] = "its leader answers " + word(f.code)
		switch fateOf(f.code) {
		case fateDenied, fateAuth:
			return m.c.verdict(f.code)
		case fateUnfit:
			return m.c.fail(codeInternal, fmt.Sprintf("topic %q: the broker cannot serve this client: %s", m.c.o.Topic, word(f.code)), hintOld, false)
		default:
		}
	}
	return nil
}

// refresh asks for the leaders again, and whether the topic is still the one that was described.
func (m *measuring) refresh(ctx context.Context) error {
	answer, err := m.c.anyMetadata(ctx)
	if err != nil {
		return err
	}
	if err := m.c.verdict(answer.code); err != nil {
		return err
	}
	if err := m.c.changed(m.topic.ID, answer.topic.ID); err != nil {
		return err
	}
	for _, p := range answer.topic.Partitions {
		i, ok := slices.BinarySearchFunc(m.topic.Partitions, p.ID, func(q Partition, id int32) int { return int(q.ID) - int(id) })
		if ok {
			m.topic.Partitions = slices.Clone(m.topic.Partitions) // the caller's topic is his
			m.topic.Partitions[i] = p
		}
	}
	return nil
}

// late says why time ran out: a connection that fails, else the first partition that is missing.
func (m *measuring) late() error {
	if m.broken != nil {
		return m.c.nodeLost(codeUnreachable, -1, *m.broken)
	}
	for _, p := range m.topic.Partitions {
		if _, ok := m.done[p.ID]; !ok {
			e := m.c.fail(codeUnreachable, fmt.Sprintf("%s[%d]: its ends cannot be measured: %s (%d of %d partitions are in this state)",
				m.c.o.Topic, p.ID, m.why[p.ID], len(m.topic.Partitions)-len(m.done), len(m.topic.Partitions)),
				"Look at the partition's replicas on the brokers; the next run tries again.", true)
			e.Partition = p.ID
			return e
		}
	}
	return nil
}

func (m *measuring) ends() []plan.Ends {
	out := make([]plan.Ends, 0, len(m.topic.Partitions))
	for _, p := range m.topic.Partitions {
		out = append(out, m.done[p.ID])
	}
	return out
}

// changed tells whether what answers now is another topic or cluster than what was described; unknown ids match.
func (c *Client) changed(was, is plan.Identity) *Error {
	reset := "Run SELECT connector.reset_cursor(" + literal(c.o.Connector) + "); to read it from its start_position."
	switch {
	case was.Cluster != "" && is.Cluster != "" && was.Cluster != is.Cluster:
		return c.fail(codeClusterChanged, fmt.Sprintf("topic %q: the brokers that answer now belong to cluster %s, those at the start of the run to %s",
			c.o.Topic, is.Cluster, was.Cluster), reset, false)
	case was.TopicID != [16]byte{} && is.TopicID != [16]byte{} && was.TopicID != is.TopicID:
		return c.fail(codeTopicRecreated, fmt.Sprintf("topic %q was deleted and created again during the run", c.o.Topic), reset, false)
	}
	return nil
}

// nodeLost is a broker whose connection failed for good. Where the bootstrap address answered and the advertised one does
// not, it says both: the usual reason is a listener that is advertised under a name that only the broker knows.
func (c *Client) nodeLost(code string, node int32, why cause) *Error {
	if why.code != codeUnreachable {
		code = why.code
	}
	addr := why.addr
	if known := c.addr(node); known != "" {
		addr = known
	}
	message := fmt.Sprintf("topic %q: broker %s %s", c.o.Topic, orUnknown(addr, c.o.Brokers), why.words)
	hint := why.hint
	if asked := c.links.lastAsked(); asked != "" && addr != "" && addr != asked && !slices.Contains(c.o.Brokers, addr) {
		message = fmt.Sprintf("topic %q: bootstrap broker %s was reached, but it advertises broker %s, which %s", c.o.Topic, asked, addr, why.words)
		if code == codeUnreachable || code == codeBrokerLost {
			hint = "Correct advertised.listeners on the brokers, or let the sidecar's host reach that address."
		}
	}
	e := c.fail(code, message, hint, !why.certain)
	e.Err = why.err
	return e
}

// hintOld is for brokers that do not know what is asked of them.
const hintOld = "Kafka 0.11 or later is needed."

// literal quotes s for SQL.
func literal(s string) string {
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}
