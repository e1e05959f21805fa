package kafka

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"highwater/reader/plan"
)

// Topic is one incarnation of a topic as the brokers describe it.
type Topic struct {
	ID         plan.Identity
	Partitions []Partition // in partition order
}

// Partition is one partition's leadership at the moment of asking.
type Partition struct {
	ID          int32
	Leader      int32 // broker id, -1 while there is none
	LeaderEpoch int32 // -1 where the broker tells none
}

// Pauses between two attempts to reach somebody.
const (
	pauseMin = 50 * time.Millisecond
	pauseMax = time.Second
	// refusedRounds is how often every address must refuse before nobody is taken to listen there.
	refusedRounds = 3
	// doubtfulRounds is how often an uncertain finding (a connection closed at its first bytes) must repeat.
	doubtfulRounds = 2
)

// Describe asks the brokers for the topic, with auto-creation off, and waits at most MetadataTimeout for one that
// answers. It returns an *Error: topic_missing and not_authorized as soon as a broker says so, auth_failed and tls_failed
// as soon as they are certain, broker_unreachable when nobody answers.
func (c *Client) Describe(ctx context.Context) (Topic, error) {
	within, cancel := context.WithTimeout(ctx, c.o.MetadataTimeout)
	defer cancel()
	pause := pauseMin
	for {
		m, err := c.anyMetadata(within)
		if err == nil {
			t, retry, err := c.described(within, m)
			if !retry {
				return t, err
			}
		}
		if ctx.Err() != nil {
			return Topic{}, ctx.Err()
		}
		if err != nil {
			return Topic{}, err
		}
		if !sleep(within, pause) {
			return Topic{}, c.fail(codeUnreachable, fmt.Sprintf("topic %q: the brokers answer %s", c.o.Topic, word(m.code)), hintReach, true)
		}
		pause = min(2*pause, pauseMax)
	}
}

// described judges a metadata answer; retry is set where asking again may help.
func (c *Client) described(ctx context.Context, m metadata) (t Topic, retry bool, err error) {
	if fateOf(m.code) == fateTopic {
		// The broker that answered may be behind: another one, or the same a moment later, is asked before the topic is
		// called missing. It costs a millisecond.
		if again, err := c.metadata(ctx); err == nil {
			m = again
		}
	}
	switch {
	case m.code == 0 && len(m.topic.Partitions) > 0:
		return m.topic, false, nil
	case m.code != 0 && c.verdict(m.code) != nil:
		return Topic{}, false, c.verdict(m.code)
	}
	return Topic{}, true, nil
}

// verdict is what a topic's error code says for certain, nil where asking again may help.
func (c *Client) verdict(code int16) *Error {
	const invalidTopic = 17
	switch fateOf(code) {
	case fateTopic:
		return c.fail(codeTopicMissing, fmt.Sprintf("the brokers have no topic %q", c.o.Topic),
			"Check topic in the manifest, and that the topic exists; nothing is ever created on the broker.", false)
	case fateDenied:
		return c.fail(codeNotAuthorized, fmt.Sprintf("the broker does not allow these credentials to read topic %q: %s", c.o.Topic, word(code)),
			fmt.Sprintf("Grant the connector's user the operations Describe and Read on topic %s.", c.o.Topic), false)
	case fateAuth:
		return c.fail(codeAuthFailed, fmt.Sprintf("topic %q: the broker refuses the credentials: %s", c.o.Topic, word(code)), hintAuth, false)
	default:
		if code == invalidTopic {
			return c.fail(codeTopicMissing, fmt.Sprintf("the brokers refuse %q as the name of a topic", c.o.Topic), "Check topic in the manifest.", false)
		}
		return nil
	}
}

// fail makes an error that concerns no single partition.
func (c *Client) fail(code, message, hint string, retryable bool) *Error {
	return &Error{Code: code, Partition: -1, Offset: -1, LostFrom: -1, LostTo: -1, Message: message, Hint: hint, Retryable: retryable}
}

// metadata is one answer about the topic.
type metadata struct {
	topic Topic
	code  int16
}

// anyMetadata asks one broker after the other until one answers, or until it is certain that none will, or time is up.
func (c *Client) anyMetadata(ctx context.Context) (metadata, error) {
	causes := map[string]cause{}
	pause := pauseMin
	for round := 1; ; round++ {
		for range c.o.Brokers {
			m, err := c.metadata(ctx)
			if err == nil {
				return m, nil
			}
			why := c.cause(err)
			if _, seen := causes[why.addr]; ctx.Err() != nil && (seen || len(causes) > 0) {
				break // the attempt was cut short by the deadline: what was seen before says more
			}
			causes[why.addr] = why
		}
		if err := c.unreached(causes, round, ctx.Err() != nil); err != nil {
			return metadata{}, err
		}
		if !sleep(ctx, pause) {
			return metadata{}, c.unreached(causes, round, true)
		}
		pause = min(2*pause, pauseMax)
	}
}

// unreached turns what every address gave into an error, nil while asking again may help.
func (c *Client) unreached(causes map[string]cause, round int, late bool) error {
	all := slices.SortedFunc(maps.Values(causes), func(a, b cause) int { return strings.Compare(a.addr, b.addr) })
	refused := true
	for _, w := range all {
		if w.certain || (w.code != codeUnreachable && (late || round >= doubtfulRounds)) {
			e := c.fail(w.code, fmt.Sprintf("topic %q: broker %s %s", c.o.Topic, w.addr, w.words), w.hint, !w.certain)
			e.Err = w.err
			return e
		}
		refused = refused && w.refused
	}
	if !late && (!refused || round < refusedRounds) {
		return nil
	}
	const named = 3
	var words []string
	for _, w := range all[:min(len(all), named)] {
		words = append(words, fmt.Sprintf("%s %s", orUnknown(w.addr, c.o.Brokers), w.words))
	}
	if more := len(all) - named; more > 0 {
		words = append(words, fmt.Sprintf("and %d more addresses", more))
	}
	return c.fail(codeUnreachable, fmt.Sprintf("topic %q: no broker answers: %s", c.o.Topic, strings.Join(words, "; ")), hintReach, true)
}

// orUnknown names an address, or all that were given where the failure did not say which.
func orUnknown(addr string, given []string) string {
	if addr == "" {
		return strings.Join(given, ", ")
	}
	return addr
}

// metadata asks one broker, the next in the library's order, about the topic. Only a request through the library's own
// door makes it learn the brokers' addresses; it is never answered from a cache.
func (c *Client) metadata(ctx context.Context) (metadata, error) {
	req := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = kmsg.StringPtr(c.o.Topic)
	req.Topics = append(req.Topics, asked)
	req.AllowAutoTopicCreation = false
	resp, err := req.RequestWith(ctx, c.kgo)
	if err != nil {
		return metadata{}, err
	}
	addrs := make(map[int32]string, len(resp.Brokers))
	for _, b := range resp.Brokers {
		addrs[b.NodeID] = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
	}
	c.learn(addrs)
	m := metadata{topic: Topic{ID: plan.Identity{Topic: c.o.Topic}}, code: -1}
	if resp.ClusterID != nil {
		m.topic.ID.Cluster = *resp.ClusterID
	}
	for _, t := range resp.Topics {
		if t.Topic != nil && *t.Topic == c.o.Topic {
			m.code, m.topic.ID.TopicID = t.ErrorCode, t.TopicID
			m.topic.Partitions = partitions(t.Partitions)
		}
	}
	return m, nil
}

// partitions sorts a broker's list, drops what cannot be and keeps one entry of each.
func partitions(from []kmsg.MetadataResponseTopicPartition) []Partition {
	out := make([]Partition, 0, len(from))
	for _, p := range from {
		if p.Partition >= 0 {
			out = append(out, Partition{ID: p.Partition, Leader: max(p.Leader, -1), LeaderEpoch: p.LeaderEpoch})
		}
	}
	slices.SortStableFunc(out, func(a, b Partition) int { return int(a.ID) - int(b.ID) })
	return slices.CompactFunc(out, func(a, b Partition) bool { return a.ID == b.ID })
}

// sleep waits for d, or reports false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
