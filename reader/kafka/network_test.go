package kafka

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"highwater/reader/plan"
)

// line is a network that a test disturbs: connections can be refused, cut after some bytes, slowed or cut all at once.
type line struct {
	refuse atomic.Bool
	down   atomic.Pointer[string] // the one address that refuses
	cutAt  func() int64           // bytes a new connection may receive, 0 for any number
	slice  int                    // most bytes of one read, 0 for any number
	pause  time.Duration

	mu    sync.Mutex
	conns []net.Conn
	dials int
}

func (l *line) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if down := l.down.Load(); l.refuse.Load() || down != nil && *down == addr {
		return nil, errors.New("the line is down")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn, line: l}
	if l.cutAt != nil {
		w.left = l.cutAt()
	}
	l.mu.Lock()
	l.dials++
	l.conns = append(l.conns, conn)
	l.mu.Unlock()
	return w, nil
}

// cut hangs up all connections.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

type wire struct {
	net.Conn
	line *line
	left int64
}

func (w *wire) Read(p []byte) (int, error) {
	if w.line.slice > 0 {
		p = p[:min(len(p), w.line.slice)]
		<-time.After(w.line.pause)
	}
	n, err := w.Conn.Read(p)
	if w.left > 0 {
		if w.left -= int64(n); w.left <= 0 {
			_ = w.Close()
			return 0, net.ErrClosed
		}
	}
	return n, err
}

func over(l *line) func(*Options) {
	return func(o *Options) { o.Dial = l.dial }
}

func TestCutConnectionsCostTimeOnly(t *testing.T) {
	t.Parallel()
	b := setup(t, 2)
	b.produce(0, large(100)...)
	b.produce(1, large(100)...)
	l := &line{}
	c := b.open(slow, over(l))
	topic, spans := planned(t, c)
	l.cutAt = func() int64 { return 20_000 + rand.Int64N(40_000) }
	s := newSink(t, spans)
	n := 0
	s.each = func(Batch) error {
		if n++; n%25 == 0 {
			l.cut()
		}
		return nil
	}
	if _, err := c.Drain(deadline(t), topic, spans, s.emit); err != nil {
		t.Fatal(err)
	}
	s.atTargets(spans)
	same(t, s.values(0), large(100))
	same(t, s.values(1), large(100))
	if l.dials < 5 {
		t.Errorf("only %d dials: the line was not cut", l.dials)
	}
}

// TestLeaderThatDiesIsReplaced: its broker is gone for good, another one leads and reading goes on there.
func TestLeaderThatDiesIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, kfake.NumBrokers(3))
	b.produce(0, large(100)...)
	l := &line{}
	c := b.open(slow, over(l))
	topic, spans := planned(t, c)
	s := newSink(t, spans)
	once(s, func() {
		dead := b.cluster.LeaderFor(topicName, 0)
		addr := c.addr(dead)
		l.down.Store(&addr)
		l.cut()
		if err := b.cluster.MoveTopicPartition(topicName, 0, (dead+1)%3); err != nil {
			t.Error(err)
		}
	})
	if _, err := c.Drain(deadline(t), topic, spans, s.emit); err != nil {
		t.Fatal(err)
	}
	s.atTargets(spans)
	same(t, s.values(0), large(100))
}

func TestBrokerThatComesBackIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, large(100)...)
	l := &line{}
	c := b.open(slow, over(l))
	topic, spans := planned(t, c)
	s := newSink(t, spans)
	once(s, func() {
		l.refuse.Store(true)
		l.cut()
		time.AfterFunc(500*time.Millisecond, func() { l.refuse.Store(false) })
	})
	if _, err := c.Drain(deadline(t), topic, spans, s.emit); err != nil {
		t.Fatal(err)
	}
	s.atTargets(spans)
}

// TestBrokerLost: the one wait for brokers passes; what was read before is kept.
func TestBrokerLost(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, large(100)...)
	l := &line{}
	c := b.open(brief, slow, over(l))
	topic, spans := planned(t, c)
	s := newSink(t, spans)
	once(s, func() {
		l.refuse.Store(true)
		l.cut()
	})
	begun := time.Now()
	_, err := c.Drain(deadline(t), topic, spans, s.emit)
	if e := wantError(t, err, "broker_lost", topicName, b.cluster.ListenAddrs()[0]); !e.Retryable {
		t.Error("not retryable")
	}
	if took := time.Since(begun); took < c.o.MetadataTimeout || took > 3*c.o.MetadataTimeout {
		t.Errorf("took %s, the wait is %s", took, c.o.MetadataTimeout)
	}
	if s.at[0] == 0 {
		t.Error("nothing was kept")
	}
}

// TestSlowLineIsNoStalledBroker: an answer takes many times the stall timeout to come in, and keeps coming.
func TestSlowLineIsNoStalledBroker(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, strings.Repeat("x", 900_000))
	l := &line{}
	c := b.open(over(l), func(o *Options) { o.StallTimeout = time.Second })
	topic, spans := planned(t, c)
	l.slice, l.pause = 8<<10, 20*time.Millisecond
	s := drain(t, c, topic, spans)
	if len(s.records[0]) != 1 {
		t.Error("the record is missing")
	}
}

// TestSilenceIsMeasuredFromPieceToPiece: a deadline for a whole answer becomes one for each piece of it, until it is set to
// break the connection.
func TestSilenceIsMeasuredFromPieceToPiece(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer func() { _ = far.Close() }()
	c := &steadyConn{Conn: near, link: &link{}}
	const patience, pieces = 400 * time.Millisecond, 8
	go func() {
		for range pieces {
			<-time.After(patience / 4)
			_, _ = far.Write([]byte("piece"))
		}
	}()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 5)
	for range pieces {
		if _, err := c.Read(p); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.link.received.Load(); got != 5*pieces {
		t.Errorf("%d bytes counted", got)
	}
	begun := time.Now()
	if _, err := c.Read(p); !silent(err) {
		t.Errorf("silence: %v", err)
	}
	if took := time.Since(begun); took > 4*patience {
		t.Errorf("silence was seen after %s", took)
	}
	_ = c.SetReadDeadline(time.Now())
	if _, err := c.Read(p); !silent(err) {
		t.Errorf("a connection that is to break: %v", err)
	}
}

// TestDrippingBrokerIsStalled: an answer of which a byte comes now and then is not movement.
func TestDrippingBrokerIsStalled(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, strings.Repeat("x", 900_000))
	l := &line{}
	c := b.open(over(l), func(o *Options) { o.StallTimeout = 200 * time.Millisecond })
	topic, spans := planned(t, c)
	l.slice, l.pause = 1, 5*time.Millisecond
	_, err := c.Drain(deadline(t), topic, spans, func(Batch) error { return nil })
	wantError(t, err, "stalled", topicName+"[0]")
}

// TestReauthenticationMidRun: sessions that expire are renewed without a loss (KIP-368).
func TestReauthenticationMidRun(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, kfake.BrokerConfigs(map[string]string{"connections.max.reauth.ms": "1000"}),
		kfake.EnableSASL(), kfake.Superuser("PLAIN", user, password), kfake.Superuser("SCRAM-SHA-256", "admin", "admin"))
	c := b.open(slow, func(o *Options) { o.SASL = &SASL{Mechanism: "PLAIN", Username: user, Password: password} })
	p := b.authenticated()
	for _, v := range large(60) {
		if err := p.ProduceSync(t.Context(), record(0, v)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	topic, spans := planned(t, c)
	s := newSink(t, spans)
	s.each = func(Batch) error {
		<-time.After(50 * time.Millisecond)
		return nil
	}
	if _, err := c.Drain(deadline(t), topic, spans, s.emit); err != nil {
		t.Fatal(err)
	}
	same(t, s.values(0), large(60))
}

// TestHeadThatLagsAfterAnElectionIsWaitedFor: KIP-207; a new leader does not know the head at once.
func TestHeadThatLagsAfterAnElectionIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, numbered(10)...)
	c := b.open()
	topic, spans := planned(t, c)
	asked := 0
	b.cluster.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		if asked++; asked > 8 {
			return nil, nil, false
		}
		return emptyAnswer(kreq.(*kmsg.FetchRequest), 3, 3, 0), nil, true
	})
	same(t, drain(t, c, topic, spans).values(0), numbered(10))
}

// TestTargetLost: after a change of leader the log ends below the target, and stays there.
func TestTargetLost(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, kfake.NumBrokers(2))
	b.produce(0, numbered(10)...)
	b.cluster.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		resp := kreq.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
		rt.Topic = topicName
		rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
		rp.LeaderEpoch, rp.EndOffset = 0, 7
		rt.Partitions = append(rt.Partitions, rp)
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
	b.cluster.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		req := kreq.(*kmsg.FetchRequest)
		if req.Topics[0].Partitions[0].CurrentLeaderEpoch == 0 {
			return nil, nil, false // the old leader's epoch is fenced
		}
		return emptyAnswer(req, 7, 7, 0), nil, true
	})
	c := b.open(brief)
	topic, _ := planned(t, c)
	if err := b.cluster.MoveTopicPartition(topicName, 0, 1-b.cluster.LeaderFor(topicName, 0)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Drain(deadline(t), topic, []plan.Span{{Partition: 0, From: 5, Target: 10, Epoch: 0}}, func(Batch) error { return nil })
	wantError(t, err, "target_lost", "target 10", "offset 7")
}

func TestOtherClusterMidRun(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.produce(0, large(50)...)
	c := b.open(slow)
	topic, spans := planned(t, c)
	topic.ID.Cluster = "another"
	s := newSink(t, spans)
	once(s, func() {
		if err := b.cluster.MoveTopicPartition(topicName, 0, b.cluster.LeaderFor(topicName, 0)); err != nil {
			t.Error(err)
		}
	})
	_, err := c.Drain(deadline(t), topic, spans, s.emit)
	wantError(t, err, "cluster_changed", "another")
}
