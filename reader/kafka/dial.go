package kafka

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// dialError is a connection that could not be opened.
type dialError struct {
	addr string
	err  error
}

func (e *dialError) Error() string { return fmt.Sprintf("connecting to %s: %v", e.addr, e.err) }
func (e *dialError) Unwrap() error { return e.err }

// Temporary tells the library not to try again by itself: a dial that was waited for once need not be waited for twice.
func (e *dialError) Temporary() bool { return false }

// tlsError is a TLS handshake that failed on a connection that was open.
type tlsError struct {
	addr string
	err  error
}

func (e *tlsError) Error() string { return fmt.Sprintf("TLS with %s: %v", e.addr, e.err) }
func (e *tlsError) Unwrap() error { return e.err }

// Temporary tells the library not to try again by itself.
func (e *tlsError) Temporary() bool { return false }

// links dials, and remembers of each broker address how far it ever got: the library's errors do not say whether a
// connection was closed at the first request (the wrong protocol), inside SASL (the wrong password) or later.
type links struct {
	dialRaw func(ctx context.Context, network, addr string) (net.Conn, error)
	tls     *tls.Config
	timeout time.Duration

	mu     sync.Mutex
	known  map[string]*link
	last   place // the last read
	failed place // the last read that failed
	asked  string
}

// link is what is known of one broker address.
type link struct {
	received atomic.Int64 // bytes that came in, ever
	served   atomic.Bool  // it answered a request beyond the handshakes
}

// place is where a connection failed.
type place struct {
	addr string
	key  int16
}

// API keys of the requests that open a connection.
const (
	keyMetadata         = 3
	keySASLHandshake    = 17
	keyAPIVersions      = 18
	keySASLAuthenticate = 36
)

func newLinks(o Options) *links {
	l := &links{dialRaw: o.Dial, tls: o.TLS, timeout: min(connectTimeout, o.MetadataTimeout/2), known: map[string]*link{}}
	if l.dialRaw == nil {
		l.dialRaw = (&net.Dialer{}).DialContext
	}
	return l
}

// dial opens a connection and, where configured, TLS on it.
func (l *links) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	conn, err := l.dialRaw(ctx, network, addr)
	if err != nil {
		return nil, &dialError{addr: addr, err: err}
	}
	steady := &steadyConn{Conn: conn, link: l.link(addr)}
	if l.tls == nil {
		return steady, nil
	}
	config := l.tls.Clone()
	if config.ServerName == "" {
		config.ServerName, _, err = net.SplitHostPort(addr)
		if err != nil {
			_ = conn.Close()
			return nil, &tlsError{addr: addr, err: err}
		}
	}
	secure := tls.Client(steady, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, &tlsError{addr: addr, err: err}
	}
	return secure, nil
}

func (l *links) link(addr string) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.known[addr]
	if !ok {
		k = &link{}
		l.known[addr] = k
	}
	return k
}

// OnBrokerRead is the library's hook; it notes where reads succeed and fail.
func (l *links) OnBrokerRead(meta kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	addr := net.JoinHostPort(meta.Host, strconv.Itoa(int(meta.Port)))
	if err == nil && key != keyAPIVersions && key != keySASLHandshake && key != keySASLAuthenticate {
		l.link(addr).served.Store(true)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = place{addr: addr, key: key}
	switch {
	case err != nil:
		l.failed = l.last
	case key == keyMetadata:
		l.asked = addr
	}
}

// lastFailure is where the last read failed.
func (l *links) lastFailure() place {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// lastAnswer is the address that was last read from.
func (l *links) lastAnswer() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last.addr
}

// lastAsked is the address that last answered a metadata request.
func (l *links) lastAsked() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

// steadyConn turns the library's one deadline for a whole answer into a limit on silence: every piece that comes in
// grants the next one as long a wait. With the deadline as it is, an answer of some megabytes over a slow line would be
// cut and asked for again for ever.
type steadyConn struct {
	net.Conn
	link *link

	mu       sync.Mutex
	patience time.Duration // 0: no deadline is set
	extended time.Time
}

// SetReadDeadline sets the deadline, and the silence that is allowed from now on.
func (c *steadyConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.patience, c.extended = 0, time.Now()
	if !t.IsZero() {
		c.patience = max(time.Until(t), 0)
	}
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline is used to break a connection; no later piece may lengthen it.
func (c *steadyConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.patience = 0
	return c.Conn.SetDeadline(t)
}

func (c *steadyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.link.received.Add(int64(n))
		c.extend()
	}
	return n, err
}

// extend moves the deadline on, seldom enough that a fast connection does not notice.
func (c *steadyConn) extend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.patience > 0 && now.Sub(c.extended) > c.patience/4 {
		c.extended = now
		_ = c.Conn.SetReadDeadline(now.Add(c.patience)) // a closed connection says so at the next read
	}
}
