// Package broker runs the demo's Kafka broker inside this process: one node, no authentication, nothing on the disk.
//
// It is for trials and tests. The broker is twmb/franz-go's kfake, which speaks Kafka's own protocol, so any client can
// use it; where it would answer otherwise than Apache Kafka on something that the demo shows, [Start] puts that right.
package broker

import (
	"context"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DefaultAddr is where the demo's broker listens; the manifests of the demo name it.
const DefaultAddr = "127.0.0.1:29092"

// cleanerPauseMs puts the cleaner to sleep for ten years: it would remove superseded records of the compacted topic
// after an hour, active segment or not, and with them the figures that the demo shows.
const cleanerPauseMs = "315360000000"

// Options say where to listen.
type Options struct {
	Addr string // host:port of a loopback address; empty: DefaultAddr; port 0: a free one
}

// Broker is a running broker.
type Broker struct {
	cluster *kfake.Cluster
	addr    string
}

// Start listens and serves when it returns; the broker lives until [Broker.Stop]. An address that is taken gives the
// operating system's error, which errors.Is tells as syscall.EADDRINUSE. ctx bounds the listening only.
func Start(ctx context.Context, o Options) (*Broker, error) {
	if o.Addr == "" {
		o.Addr = DefaultAddr
	}
	listen := func(network, _ string) (net.Listener, error) {
		return new(net.ListenConfig).Listen(ctx, network, o.Addr)
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.ListenFn(listen),
		kfake.ClusterID("highwater-demo"),
		kfake.BrokerConfigs(map[string]string{"log.cleaner.backoff.ms": cleanerPauseMs, "default.replication.factor": "1"}),
	)
	if err != nil {
		return nil, fmt.Errorf("starting the demo broker on %s: %w", o.Addr, err)
	}
	cluster.ControlKey(int16(kmsg.SASLHandshake), refuse(cluster, refuseHandshake))
	cluster.ControlKey(int16(kmsg.SASLAuthenticate), refuse(cluster, refuseAuthenticate))
	return &Broker{cluster: cluster, addr: cluster.ListenAddrs()[0]}, nil
}

// Addr is the host:port that clients use, the port never 0.
func (b *Broker) Addr() string { return b.addr }

// Stop closes every connection and forgets every topic. It may be called once.
func (b *Broker) Stop() { b.cluster.Close() }

// refuse answers every request of a kind by itself.
func refuse(c *kfake.Cluster, answer func(kmsg.Request) kmsg.Response) func(kmsg.Request) (kmsg.Response, error, bool) {
	return func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return answer(r), nil, true
	}
}

// refuseHandshake is what Apache Kafka says on a listener without SASL (KafkaApis.handleSaslHandshakeRequest): an illegal
// state, and no mechanism to choose from. kfake alone would go along and ask for the password.
func refuseHandshake(r kmsg.Request) kmsg.Response {
	answer, _ := r.ResponseKind().(*kmsg.SASLHandshakeResponse)
	answer.ErrorCode = kerr.IllegalSaslState.Code
	answer.SupportedMechanisms = []string{}
	return answer
}

// refuseAuthenticate is the same for a client that skipped the handshake.
func refuseAuthenticate(r kmsg.Request) kmsg.Response {
	answer, _ := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	answer.ErrorCode = kerr.IllegalSaslState.Code
	answer.ErrorMessage = kmsg.StringPtr("this listener does not authenticate")
	return answer
}
