package harness

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"highwater/sidecar/demo/child"
)

const (
	// defaultKafka is the release that runs where neither the options nor HIGHWATER_TEST_KAFKA name another one.
	defaultKafka = "4.3.1"
	// defaultHeap is ample for a test's topics; the broker serves records from the page cache.
	defaultHeap = "512m"
	// kafkaStartWait bounds the start of a broker, which takes some 3 s on an idle machine; fetching it is not included.
	kafkaStartWait = 90 * time.Second
	// kafkaStopWait bounds a clean shutdown before the broker is killed.
	kafkaStopWait = 20 * time.Second
)

// The broker's user where KafkaOptions.SASL is set; it may do everything, as every other client.
const (
	KafkaUser     = "alice"
	KafkaPassword = "secret"
)

// KafkaOptions says which broker to start; the zero value starts the release that the whole test process uses.
type KafkaOptions struct {
	Version    string            // such as "3.9.2"; "" takes HIGHWATER_TEST_KAFKA, else the default release
	Properties map[string]string // further lines of server.properties; they win over the harness's own
	SASL       bool              // adds a listener SASL_PLAINTEXT (with TLS also SASL_SSL): PLAIN, SCRAM-SHA-256, SCRAM-SHA-512
	TLS        bool              // adds a listener SSL, see [Broker.Certificate]
	Heap       string            // as after -Xmx; "" takes 512m
}

// Broker is one Apache Kafka, broker and controller in one process, on the loopback interface.
//
// A topic that a client asks for is made at once if the client allows it (auto.create.topics.enable), so a test can show
// that reading makes none. Retention is endless. A compacted topic is cleaned within a second or two of its segment's end.
type Broker struct {
	options     KafkaOptions
	java        string
	jars        string // folder
	dir         string // temporary: settings, log and data
	clusterID   string
	ports       map[string]int // by the listener's name; the same over a Restart
	certificate certificate

	mu      sync.Mutex
	process *child.Process // nil while the broker is down
	killed  bool           // its last end was a Kill
}

var sharedKafka = sync.OnceValues(func() (*Broker, error) {
	b, err := startKafka(context.Background(), KafkaOptions{})
	if err == nil {
		atExit(b.Stop)
	}
	return b, err
})

// Kafka is the Apache Kafka of this test process, started by the first call (about 3 s) and stopped by [Main]. Tests
// share it: prefix the topics' names, and never stop, kill or restart it.
//
// Where Java or Maven is missing the test is skipped, or fails if HIGHWATER_REQUIRE_KAFKA=1.
func Kafka(tb testing.TB) *Broker {
	tb.Helper()
	b, err := sharedKafka()
	return usable(tb, b, err)
}

// StartKafka starts an Apache Kafka of the test's own, stopped when the test ends. It costs about 3 s: take it for a test
// that kills its broker or needs other settings, and [Kafka] for everything else. It skips where Kafka does.
func StartKafka(tb testing.TB, options KafkaOptions) *Broker {
	tb.Helper()
	b, err := startKafka(tb.Context(), options)
	if err == nil {
		tb.Cleanup(b.Stop)
	}
	return usable(tb, b, err)
}

// usable ends the test where there is no broker, and else has a failed test tell where the broker was.
func usable(tb testing.TB, b *Broker, err error) *Broker {
	tb.Helper()
	var missing *missingError
	switch {
	case errors.As(err, &missing) && os.Getenv("HIGHWATER_REQUIRE_KAFKA") != "1":
		tb.Skipf("LEFT OUT: no real Apache Kafka: %v", err)
	case err != nil:
		tb.Fatalf("starting Apache Kafka: %v", err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("Apache Kafka %s was on %s, process %d; its log ends: %s", b.options.Version, b.Addr(), b.PID(), tail(b.logPath()))
		}
	})
	return b
}

// Addr is the host:port of the listener without authentication and TLS.
func (b *Broker) Addr() string { return b.SecureAddr(plaintext) }

// SecureAddr is the host:port of the listener with a security protocol: SASL_PLAINTEXT, SSL or SASL_SSL. It is "" for one
// that the options did not ask for.
func (b *Broker) SecureAddr(protocol string) string {
	port, ok := b.ports[protocol]
	if !ok {
		return ""
	}
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}

// Certificate is the PEM of the broker's certificate and its key, empty without KafkaOptions.TLS. The certificate is its
// own authority. The broker trusts it too, so a client can present it where Properties make ssl.client.auth=required.
func (b *Broker) Certificate() (certPEM, keyPEM []byte) { return b.certificate.cert, b.certificate.key }

// PID is the broker's process id, 0 while it is down.
func (b *Broker) PID() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process == nil {
		return 0
	}
	return b.process.PID()
}

// Stop ends the broker for good and removes its data. It may be called twice.
func (b *Broker) Stop() {
	b.Kill() // what a clean shutdown would write is removed anyway
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dir != "" {
		_ = os.RemoveAll(b.dir) // a rest in the folder of temporary files fails no test
	}
}

// Kill ends the broker at once, as kill -9 does, and keeps its data for a Restart.
func (b *Broker) Kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process != nil {
		_ = b.process.Stop() // no signal can fail but for a process that is gone
		b.process, b.killed = nil, true
	}
}

// Restart shuts a running broker down cleanly, starts it again on the same ports and data, and returns when it answers.
// After a Kill it starts the broker, which takes some 4 s, 2 of them until the cluster has forgotten its predecessor.
func (b *Broker) Restart() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process != nil {
		if err := b.process.Stop(child.Step{Signal: syscall.SIGTERM, Wait: kafkaStopWait}); err != nil {
			return err
		}
		b.process, b.killed = nil, false
	}
	if err := b.writeSettings(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), kafkaStartWait)
	defer cancel()
	return b.relaunch(ctx)
}
