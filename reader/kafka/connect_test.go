package kafka

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"highwater/reader/plan"
)

const (
	user     = "reader-user"
	password = "hunter2-secret"
)

// describe opens a client with a connect timeout that a hang would exceed, and describes the topic.
func describe(t *testing.T, o Options) error {
	t.Helper()
	o.Topic = topicName
	if o.MetadataTimeout == 0 {
		o.MetadataTimeout = 3 * time.Second
	}
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Describe(deadline(t))
	return err
}

func within(t *testing.T, limit time.Duration, f func()) {
	t.Helper()
	begun := time.Now()
	f()
	if took := time.Since(begun); took > limit {
		t.Errorf("took %s, at most %s was allowed", took, limit)
	}
}

func TestMissingTopicIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, kfake.AllowAutoTopicCreation())
	o := b.options()
	o.Topic = "acme.partnerz"
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	within(t, 500*time.Millisecond, func() {
		_, err = c.Describe(t.Context())
	})
	wantError(t, err, "topic_missing", "acme.partnerz")
	b.untouched()
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	within(t, time.Second, func() { err = describe(t, Options{Brokers: []string{addr}}) })
	if e := wantError(t, err, "broker_unreachable", addr, topicName, "refuses connections"); !e.Retryable {
		t.Error("not retryable")
	}
}

// TestOneOfThreeBootstrapBrokersIsEnough: the other two refuse, or do not resolve.
func TestOneOfThreeBootstrapBrokersIsEnough(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	for range 10 {
		if err := describe(t, Options{Brokers: []string{closed, "no-such-host.invalid:9092", b.cluster.ListenAddrs()[0]}}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnroutableAddress: a dial that never returns ends with the one wait for brokers.
func TestUnroutableAddress(t *testing.T) {
	t.Parallel()
	var err error
	within(t, 2*time.Second, func() {
		err = describe(t, Options{
			Brokers: []string{"10.0.0.1:9092"}, MetadataTimeout: 500 * time.Millisecond,
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
	})
	wantError(t, err, "broker_unreachable", "10.0.0.1:9092", "does not answer")
}

// listener accepts connections and hands each to serve.
func listener(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

func TestListenersThatAreNoBroker(t *testing.T) {
	t.Parallel()
	hold := func(c net.Conn) { t.Cleanup(func() { _ = c.Close() }) }
	for name, tc := range map[string]struct {
		serve func(net.Conn)
		code  string
		words string
	}{
		"takes connections and says nothing": {hold, "broker_unreachable", "does not answer"},
		"hangs up at once":                   {func(c net.Conn) { _ = c.Close() }, "tls_failed", "may speak TLS"},
		"answers in HTTP":                    {func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")); hold(c) }, "broker_unreachable", "HTTP"},
		"sends a TLS alert":                  {func(c net.Conn) { _, _ = c.Write([]byte{21, 3, 1, 0, 2, 2, 70}); hold(c) }, "tls_failed", "plaintext"},
		"answers nonsense":                   {func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte{0xff}, 100)); hold(c) }, "broker_unreachable", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := listener(t, tc.serve)
			var err error
			within(t, 3*time.Second, func() { err = describe(t, Options{Brokers: []string{addr}, MetadataTimeout: time.Second}) })
			wantError(t, err, tc.code, addr, tc.words)
		})
	}
}

// TestAdvertisedAddressUnreachable: the bootstrap address answers and names a broker that cannot be reached.
func TestAdvertisedAddressUnreachable(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	bootstrap := b.cluster.ListenAddrs()[0]
	b.cluster.ControlKey(int16(kmsg.Metadata), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		req := kreq.(*kmsg.MetadataRequest)
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		rb := kmsg.NewMetadataResponseBroker()
		rb.NodeID, rb.Host, rb.Port = 7, "internal.invalid", 9092
		resp.Brokers = append(resp.Brokers, rb)
		rt := kmsg.NewMetadataResponseTopic()
		rt.Topic = kmsg.StringPtr(topicName)
		rp := kmsg.NewMetadataResponseTopicPartition()
		rp.Leader, rp.LeaderEpoch = 7, 0
		rt.Partitions = append(rt.Partitions, rp)
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
	c := b.open(brief)
	topic, err := c.Describe(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	within(t, 3*time.Second, func() { _, err = c.Measure(deadline(t), topic, nil, plan.Start{}) })
	e := wantError(t, err, "broker_unreachable", bootstrap, "internal.invalid:9092")
	if !strings.Contains(e.Hint, "advertised.listeners") {
		t.Errorf("hint %q", e.Hint)
	}
}

func TestSASL(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1, kfake.EnableSASL(), kfake.Superuser(mechanism, user, password))
			o := Options{Brokers: b.cluster.ListenAddrs(), SASL: &SASL{Mechanism: mechanism, Username: user, Password: password}}
			if err := describe(t, o); err != nil {
				t.Fatalf("the right password: %v", err)
			}
			o.SASL = &SASL{Mechanism: mechanism, Username: user, Password: password + "!"}
			var err error
			within(t, 2*time.Second, func() { err = describe(t, o) })
			wantError(t, err, "auth_failed", b.cluster.ListenAddrs()[0], mechanism)
			silentAbout(t, err, o.SASL)

			o.SASL = nil
			within(t, 2*time.Second, func() { err = describe(t, o) })
			wantError(t, err, "auth_failed", "closed the connection at the first request")
		})
	}
}

func silentAbout(t *testing.T, err error, s *SASL) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	for _, secret := range []string{s.Username, s.Password} {
		if strings.Contains(e.Message+e.Hint, secret) {
			t.Errorf("a credential in %q or %q", e.Message, e.Hint)
		}
	}
}

// TestBrokersWordsOnRefusal: a real broker refuses with an error code and words of its own, which may quote the user.
func TestBrokersWordsOnRefusal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		handshake, authenticate *kerr.Error
		said                    string
		words                   []string
	}{
		"a wrong password":    {nil, kerr.SaslAuthenticationFailed, "Authentication failed: Invalid username or password for " + user, []string{"PLAIN", "Invalid username or password"}},
		"no SASL there":       {kerr.IllegalSaslState, nil, "", []string{"PLAIN", "ILLEGAL_SASL_STATE"}},
		"another mechanism":   {kerr.UnsupportedSaslMechanism, nil, "", []string{"PLAIN", "UNSUPPORTED_SASL_MECHANISM"}},
		"an error of its own": {nil, kerr.UnknownServerError, "", []string{"UNKNOWN_SERVER_ERROR"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1, kfake.EnableSASL(), kfake.Superuser("PLAIN", user, password))
			b.cluster.ControlKey(int16(kmsg.SASLHandshake), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
				b.cluster.KeepControl()
				resp := kreq.ResponseKind().(*kmsg.SASLHandshakeResponse)
				if tc.handshake == nil {
					return nil, nil, false
				}
				resp.ErrorCode = tc.handshake.Code
				return resp, nil, true
			})
			b.cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
				b.cluster.KeepControl()
				resp := kreq.ResponseKind().(*kmsg.SASLAuthenticateResponse)
				if tc.authenticate == nil {
					return nil, nil, false
				}
				resp.ErrorCode, resp.ErrorMessage = tc.authenticate.Code, kmsg.StringPtr(tc.said)
				return resp, nil, true
			})
			s := &SASL{Mechanism: "PLAIN", Username: user, Password: password}
			var err error
			within(t, 3*time.Second, func() {
				err = describe(t, Options{Brokers: b.cluster.ListenAddrs(), SASL: s, MetadataTimeout: time.Second})
			})
			code := "auth_failed"
			if tc.authenticate == kerr.UnknownServerError {
				code = "broker_unreachable"
			}
			wantError(t, err, code, append(tc.words, b.cluster.ListenAddrs()[0])...)
			silentAbout(t, err, s)
		})
	}
}

func TestListenerWithoutSASL(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	s := &SASL{Mechanism: "PLAIN", Username: user, Password: password}
	wantError(t, describe(t, Options{Brokers: b.cluster.ListenAddrs(), SASL: s}), "auth_failed", "PLAIN")
}

func TestUnknownMechanismAndBadAddressesAreRefusedAtOpen(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"mechanism":     {Brokers: []string{"a:1"}, Topic: "t", SASL: &SASL{Mechanism: "GSSAPI", Username: user, Password: password}},
		"no broker":     {Topic: "t"},
		"no topic":      {Brokers: []string{"a:1"}},
		"no port":       {Brokers: []string{"a"}, Topic: "t"},
		"port too long": {Brokers: []string{"a:99999999999999"}, Topic: "t"},
	} {
		if c, err := Open(o); err == nil {
			c.Close()
			t.Errorf("%s: opened", name)
		} else if strings.Contains(err.Error(), password) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// authority makes a certificate for 127.0.0.1 and the pool that trusts it.
func authority(t *testing.T, until time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"broker.example"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	t.Parallel()
	good, pool := authority(t, time.Now().Add(24*time.Hour))
	expired, expiredPool := authority(t, time.Now().Add(-time.Hour))
	server := func(c tls.Certificate) *bench {
		return setup(t, 1, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS12}))
	}
	secure, stale, plain := server(good), server(expired), setup(t, 1)
	mutual := setup(t, 1, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAnyClientCert}))
	for name, tc := range map[string]struct {
		to    *bench
		tls   *tls.Config
		words string // empty: it works
	}{
		"trusted":                       {secure, &tls.Config{RootCAs: pool}, ""},
		"trusted under another name":    {secure, &tls.Config{RootCAs: pool, ServerName: "broker.example"}, ""},
		"an authority that is unknown":  {secure, &tls.Config{RootCAs: x509.NewCertPool()}, "does not verify"},
		"a wrong name":                  {secure, &tls.Config{RootCAs: pool, ServerName: "other.example"}, "does not verify"},
		"an expired certificate":        {stale, &tls.Config{RootCAs: expiredPool}, "does not verify"},
		"plaintext to a TLS listener":   {secure, nil, "TLS"},
		"TLS to a plaintext listener":   {plain, &tls.Config{RootCAs: pool}, "may speak plaintext"},
		"a client certificate is asked": {mutual, &tls.Config{RootCAs: pool}, "TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var err error
			within(t, 10*time.Second, func() {
				err = describe(t, Options{Brokers: tc.to.cluster.ListenAddrs(), TLS: tc.tls, MetadataTimeout: 2 * time.Second})
			})
			if tc.words == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantError(t, err, "tls_failed", tc.to.cluster.ListenAddrs()[0], tc.words)
		})
	}
}

// TestCredentialsStayOutOfTheLog: whatever this package logs, the credentials are not in it.
func TestCredentialsStayOutOfTheLog(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, kfake.NumBrokers(2), kfake.EnableSASL(), kfake.Superuser("PLAIN", user, password))
	var log bytes.Buffer
	c := b.open(slow, func(o *Options) {
		o.SASL = &SASL{Mechanism: "PLAIN", Username: user, Password: password}
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	topic, err := c.Describe(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	b.cluster.ShufflePartitionLeaders()
	if _, err := c.Drain(deadline(t), topic, []plan.Span{{Partition: 0, Target: 1, Epoch: 0}}, func(Batch) error { return nil }); err != nil {
		t.Log(err)
	}
	if s := log.String(); strings.Contains(s, user) || strings.Contains(s, password) {
		t.Errorf("a credential in the log: %s", s)
	}
}
