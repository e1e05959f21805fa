package kafka

import (
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Defaults and limits of a connection.
const (
	defaultPollTimeout     = 2 * time.Second
	defaultStallTimeout    = 60 * time.Second
	defaultMetadataTimeout = 30 * time.Second
	metadataTimeoutMax     = 45 * time.Second // spec 3.3: one wait of at most this

	defaultMaxMessageBytes = 32 << 20
	defaultFetchBytes      = 4 << 20
	defaultReadBytes       = 100 << 20
	defaultBufferBytes     = 32 << 20
	fetchBytesMin          = 64 << 10

	// decompressBytesMin is the least that one batch may decompress to; a manifest that allows larger messages raises it.
	decompressBytesMin = 64 << 20
	// batchSlack is what a batch may hold beside one message of the largest size.
	batchSlack = 1 << 20

	// connectTimeout bounds one dial together with its TLS handshake.
	connectTimeout = 5 * time.Second
	// answerTimeout is the silence after which a request counts as unanswered. An answer that keeps coming in, however
	// slowly, is not silent: see steadyConn.
	answerTimeout = 8 * time.Second
	// idleTimeout is how long an unused connection is kept; load balancers cut idle ones after minutes.
	idleTimeout = 60 * time.Second
)

// softwareName is how brokers name this client in their metrics (KIP-511).
const softwareName = "highwater"

// Client asks and reads one topic. Its methods may be called one after the other, not at once; several clients share
// nothing.
type Client struct {
	o          Options
	kgo        *kgo.Client
	links      *links
	decompress kgo.Decompressor

	mu    sync.Mutex
	addrs map[int32]string // advertised address of each broker that metadata named
}

// Open checks the options and prepares a client; it dials nothing. Close must be called on it.
func Open(o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.fill()
	c := &Client{o: o, links: newLinks(o), addrs: map[int32]string{}}
	opts, err := c.options()
	if err != nil {
		return nil, err
	}
	if c.kgo, err = kgo.NewClient(opts...); err != nil {
		return nil, fmt.Errorf("brokers of topic %q: %w", o.Topic, err)
	}
	// The bounded decompressor is only to be had from a client: the one that the package exports has no bound.
	decompress, ok := c.kgo.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	if !ok {
		c.kgo.Close()
		return nil, fmt.Errorf("topic %q: the Kafka library gives no bounded decompressor", o.Topic)
	}
	c.decompress = decompress
	return c, nil
}

// Close ends all connections. It is safe to call it more than once.
func (c *Client) Close() { c.kgo.Close() }

func (o *Options) check() error {
	switch {
	case len(o.Brokers) == 0:
		return fmt.Errorf("topic %q: no broker address given", o.Topic)
	case o.Topic == "":
		return fmt.Errorf("no topic given")
	}
	for _, b := range o.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			return fmt.Errorf("broker address %q is not host:port", b)
		}
	}
	return nil
}

func (o *Options) fill() {
	o.PollTimeout = orDefault(o.PollTimeout, defaultPollTimeout)
	o.StallTimeout = max(orDefault(o.StallTimeout, defaultStallTimeout), o.PollTimeout)
	o.MetadataTimeout = min(orDefault(o.MetadataTimeout, defaultMetadataTimeout), metadataTimeoutMax)
	o.MaxMessageBytes = orDefault(o.MaxMessageBytes, defaultMaxMessageBytes)
	o.ReadBytes = orDefault(o.ReadBytes, defaultReadBytes)
	o.FetchBytes = min(orDefault(o.FetchBytes, defaultFetchBytes), o.ReadBytes)
	o.BufferBytes = orDefault(o.BufferBytes, defaultBufferBytes)
	if o.ClientID == "" {
		o.ClientID = softwareName
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

func orDefault[T int | int32 | int64 | time.Duration](v, byDefault T) T {
	if v <= 0 {
		return byDefault
	}
	return v
}

// options are the library's: connections, SASL and request encoding are its work, everything that retries, consumes,
// creates topics or talks of its own accord is off. Its log is not taken over: it would tell of retries we decide.
func (c *Client) options() ([]kgo.Opt, error) {
	o := c.o
	opts := []kgo.Opt{
		kgo.SeedBrokers(o.Brokers...),
		kgo.ClientID(o.ClientID),
		kgo.SoftwareNameAndVersion(softwareName, "1"),
		kgo.Dialer(c.links.dial),
		kgo.WithHooks(c.links),
		kgo.RequestRetries(0), // a wrong password must fail at once, and it is the drain that knows what to do about a dead leader
		kgo.RequestTimeoutOverhead(answerTimeout),
		kgo.ConnIdleTimeout(idleTimeout),
		kgo.FetchMaxBytes(o.FetchBytes),
		kgo.BrokerMaxReadBytes(o.ReadBytes),
		kgo.MaxDecompressBatchBytes(max(decompressBytesMin, o.MaxMessageBytes+batchSlack)),
		kgo.DisableClientMetrics(),
	}
	if o.SASL != nil {
		m, err := mechanism(*o.SASL)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}

// learn keeps the advertised addresses that metadata named.
func (c *Client) learn(addrs map[int32]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, addr := range addrs {
		c.addrs[id] = addr
	}
}

// addr is the advertised address of a broker, empty when metadata has not named it.
func (c *Client) addr(node int32) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addrs[node]
}
