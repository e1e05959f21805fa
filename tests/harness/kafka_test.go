package harness

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	// answerWait bounds every exchange with a broker, on a machine that does other things too.
	answerWait = 30 * time.Second
	// cleanWait is less than the 15 s between two looks of Kafka's cleaner as it is by default.
	cleanWait = 10 * time.Second
	// heldEnv makes this test binary the victim of TestABrokerDiesWithItsProcess, and held is what that one says.
	heldEnv = "HIGHWATER_HARNESS_HELD"
	held    = "the broker runs"
)

// connect opens a client, closed when the test ends.
func connect(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// soon is the test's context with the bound of one exchange.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerWait)
	t.Cleanup(cancel)
	return ctx
}

func makeTopic(t *testing.T, client *kgo.Client, topic string, configs map[string]string) {
	t.Helper()
	pointers := make(map[string]*string, len(configs))
	for name, value := range configs {
		pointers[name] = kadm.StringPtr(value)
	}
	if _, err := kadm.NewClient(client).CreateTopic(soon(t), 1, 1, pointers, topic); err != nil {
		t.Fatal(err)
	}
}

func produce(t *testing.T, client *kgo.Client, topic, key, value string) {
	t.Helper()
	record := &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value)}
	if err := client.ProduceSync(soon(t), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// values reads a topic of one partition from its start to its end.
func values(t *testing.T, addr, topic string) []string {
	t.Helper()
	reader := connect(t, addr, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ends, err := kadm.NewClient(reader).ListEndOffsets(soon(t), topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	var all []string
	for next := int64(0); next < end.Offset; {
		fetched := reader.PollFetches(soon(t))
		if err := fetched.Err(); err != nil {
			t.Fatal(err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			all = append(all, string(r.Value))
			next = r.Offset + 1
		})
	}
	return all
}

func TestARealBrokerKeepsWhatIsProduced(t *testing.T) {
	b := Kafka(t)
	if Kafka(t) != b {
		t.Error("a second call gave another broker")
	}
	client := connect(t, b.Addr())
	makeTopic(t, client, "kept", nil)
	produce(t, client, "kept", "k", "one")
	produce(t, client, "kept", "k", "two")
	if got := values(t, b.Addr(), "kept"); strings.Join(got, ",") != "one,two" {
		t.Errorf("read %q, want one and two", got)
	}
}

func TestTheBrokerMakesATopicForAClientThatAllowsIt(t *testing.T) {
	addr := Kafka(t).Addr()
	has := func(topic string) bool {
		t.Helper()
		topics, err := kadm.NewClient(connect(t, addr)).ListTopics(soon(t)) // asks for all, which makes none
		if err != nil {
			t.Fatal(err)
		}
		return topics.Has(topic)
	}
	ask := func(topic string, allow bool) {
		t.Helper()
		req := kmsg.NewPtrMetadataRequest()
		req.AllowAutoTopicCreation = allow
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr(topic)}}
		if _, err := req.RequestWith(soon(t), connect(t, addr)); err != nil {
			t.Fatal(err)
		}
	}
	// In this order, so that a topic that the first request makes after its answer is there by the time of the look.
	ask("not-made", false)
	ask("made", true)
	for deadline := time.Now().Add(answerWait); !has("made"); {
		if time.Now().After(deadline) {
			t.Fatal("auto.create.topics.enable is off")
		}
		_ = wait(t.Context(), pollMost)
	}
	if has("not-made") {
		t.Error("a client that does not allow it made a topic")
	}
}

func TestACompactedTopicIsCleanedSoon(t *testing.T) {
	addr := Kafka(t).Addr()
	client := connect(t, addr)
	makeTopic(t, client, "compacted", map[string]string{"cleanup.policy": "compact", "segment.ms": "100"})
	makeTopic(t, client, "plain", map[string]string{"segment.ms": "100"})
	// Only closed segments are cleaned, and a segment closes with the first record after its time: so there is one more each look.
	deadline := time.Now().Add(cleanWait)
	for written := 1; ; written++ {
		for _, topic := range []string{"compacted", "plain"} {
			produce(t, client, topic, "same", strconv.Itoa(written))
		}
		got := values(t, addr, "compacted")
		if len(got) < written && got[len(got)-1] == strconv.Itoa(written) {
			if kept := values(t, addr, "plain"); len(kept) != written {
				t.Errorf("the topic that is not compacted kept %d of %d", len(kept), written)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing was cleaned: %d of %d records are there", len(got), written)
		}
		_ = wait(t.Context(), 200*time.Millisecond)
	}
}

func TestSecureListenersLetOnlyTheirUserIn(t *testing.T) {
	t.Parallel()
	b := StartKafka(t, KafkaOptions{SASL: true, TLS: true})
	certPEM, _ := b.Certificate()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(certPEM) {
		t.Fatal("the certificate is no PEM")
	}
	secure, stranger := kgo.DialTLSConfig(&tls.Config{RootCAs: roots}), kgo.DialTLSConfig(&tls.Config{})
	good, bad := scram.Auth{User: KafkaUser, Pass: KafkaPassword}, scram.Auth{User: KafkaUser, Pass: "wrong"}
	with := func(mechanisms ...sasl.Mechanism) kgo.Opt { return kgo.SASL(mechanisms...) }

	for _, c := range []struct {
		name, protocol string
		opts           []kgo.Opt
		refused        error // nil: let in
	}{
		{"plain", saslPlaintext, []kgo.Opt{with(plain.Auth{User: KafkaUser, Pass: KafkaPassword}.AsMechanism())}, nil},
		{"plain, wrong password", saslPlaintext, []kgo.Opt{with(plain.Auth{User: KafkaUser, Pass: "wrong"}.AsMechanism())}, kerr.SaslAuthenticationFailed},
		{"scram 256", saslPlaintext, []kgo.Opt{with(good.AsSha256Mechanism())}, nil},
		{"scram 256, wrong password", saslPlaintext, []kgo.Opt{with(bad.AsSha256Mechanism())}, kerr.SaslAuthenticationFailed},
		{"scram 512 in tls", saslSSL, []kgo.Opt{secure, with(good.AsSha512Mechanism())}, nil},
		{"plain in tls, wrong password", saslSSL, []kgo.Opt{secure, with(plain.Auth{User: KafkaUser, Pass: "wrong"}.AsMechanism())}, kerr.SaslAuthenticationFailed},
		{"tls", ssl, []kgo.Opt{secure}, nil},
		{"tls, unknown authority", ssl, []kgo.Opt{stranger}, x509.UnknownAuthorityError{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := connect(t, b.SecureAddr(c.protocol), append(c.opts, kgo.RequestRetries(0))...)
			err := client.Ping(soon(t))
			var unknown x509.UnknownAuthorityError
			switch {
			case c.refused == nil && err != nil:
				t.Errorf("refused: %v", err)
			case c.refused == nil:
			case errors.As(c.refused, &unknown) && errors.As(err, &unknown):
			case !errors.Is(err, c.refused):
				t.Errorf("error %v, want %v", err, c.refused)
			}
		})
	}
}

func TestABrokerKeepsItsDataOverKillAndRestart(t *testing.T) {
	t.Parallel()
	b := StartKafka(t, KafkaOptions{Properties: map[string]string{"num.partitions": "3"}})
	client := connect(t, b.Addr(), kgo.AllowAutoTopicCreation())
	makeTopic(t, client, "kept", nil)
	produce(t, client, "kept", "k", "before")
	addr, first := b.Addr(), b.PID()

	b.Kill()
	if b.PID() != 0 || alive(first) {
		t.Fatalf("process %d lives after Kill", first)
	}
	if err := b.Restart(); err != nil {
		t.Fatal(err)
	}
	if b.Addr() != addr || b.PID() == first {
		t.Errorf("now %s in process %d, was %s in %d", b.Addr(), b.PID(), addr, first)
	}
	produce(t, client, "kept", "k", "between")
	if err := b.Restart(); err != nil { // of a running broker
		t.Fatal(err)
	}
	if got := values(t, addr, "kept"); strings.Join(got, ",") != "before,between" {
		t.Errorf("read %q, want before and between", got)
	}

	produce(t, client, "wide", "", "x")
	topics, err := kadm.NewClient(client).ListTopics(soon(t), "wide")
	if err != nil || len(topics["wide"].Partitions) != 3 {
		t.Errorf("%d partitions, %v; want the 3 of Properties", len(topics["wide"].Partitions), err)
	}
	dir, last := b.dir, b.PID()
	b.Stop()
	b.Stop()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) || alive(last) {
		t.Errorf("after Stop: folder %v, process alive %v", err, alive(last))
	}
}

func TestALostRaceForAPortIsRunAgain(t *testing.T) {
	t.Parallel()
	b := &Broker{options: KafkaOptions{Version: Kafka(t).options.Version}, java: Kafka(t).java, jars: Kafka(t).jars}
	t.Cleanup(b.Stop)
	tries := 0
	var taken net.Listener
	err := b.startOnPorts(t.Context(), func(ctx context.Context, n int) ([]int, error) {
		ports, err := freePorts(ctx, n)
		if tries++; tries == 1 && err == nil {
			taken, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(ports[0])))
		}
		return ports, err
	})
	if taken != nil {
		defer func() { _ = taken.Close() }()
	}
	if err != nil || tries != 2 {
		t.Errorf("%d tries, %v; want the second to start", tries, err)
	}
}

// Each major logs in its own way, and what a broker logs is all that tells why it did not start.
func TestABrokerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	Kafka(t) // skips where there is none
	for _, property := range []struct{ name, value, phase string }{
		{"num.partitions", "many", "formatting"},
		{"metric.reporters", "no.such.Reporter", "did not start"},
	} {
		_, err := startKafka(t.Context(), KafkaOptions{Properties: map[string]string{property.name: property.value}})
		if err == nil || !strings.Contains(err.Error(), property.value) || !strings.Contains(err.Error(), property.phase) {
			t.Errorf("%s=%s: error %v, want its value and the phase", property.name, property.value, err)
		}
	}
}

func TestAVersionThatIsNoReleaseIsRefused(t *testing.T) {
	for _, version := range []string{"latest", "4", "../4.3.1", "2.8.2"} {
		if _, err := kafkaJars(t.Context(), version); err == nil {
			t.Errorf("version %q was accepted", version)
		}
	}
}

func TestAMissingProgramIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var missing *missingError
	for _, program := range []string{"java", "mvn"} {
		_, err := findProgram(program)
		if !errors.As(err, &missing) || missing.program != program {
			t.Errorf("error %v, want %s missing", err, program)
		}
	}
	if _, err := startKafka(t.Context(), KafkaOptions{}); !errors.As(err, &missing) {
		t.Errorf("error %v, want a missing program", err)
	}
}

// hold is what TestABrokerDiesWithItsProcess runs and kills: this test binary with nothing but a broker. It writes the
// broker's process id to the file named note.
func hold(note string) error {
	b, err := startKafka(context.Background(), KafkaOptions{})
	if err != nil {
		return err
	}
	if err := os.WriteFile(note, []byte(strconv.Itoa(b.PID())), 0o600); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, held)
	_, err = io.Copy(io.Discard, os.Stdin) // the parent holds the other end, and kills this process first
	return err
}

func TestABrokerDiesWithItsProcess(t *testing.T) {
	t.Parallel()
	Kafka(t) // skips where there is none
	dir := t.TempDir()
	note := filepath.Join(dir, "pid")
	victim := exec.CommandContext(t.Context(), os.Args[0])
	victim.Env = append(os.Environ(), heldEnv+"="+note, "TMPDIR="+dir) // nobody tidies up after a kill: the test's folder does
	if _, err := victim.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := victim.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(output); lines.Scan() && lines.Text() != held; {
		said = append(said, lines.Text())
	}
	text, err := os.ReadFile(note)
	if err != nil {
		t.Fatalf("the child started no broker: %v; it said %q", err, said)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil || !alive(pid) {
		t.Fatalf("process %q does not run: %v", text, err)
	}

	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	for deadline := time.Now().Add(answerWait); alive(pid); {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it is ours, left over
			t.Fatalf("the broker, process %d, outlives its process", pid)
		}
		_ = wait(t.Context(), pollFirst)
	}
}

// alive tells whether a process runs. A dead one that its new parent has not collected yet does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || !strings.Contains(string(status), "State:\tZ")
}
