package harness

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"highwater/sidecar/demo/child"
)

const (
	loopback = "127.0.0.1"
	// portTries is how many sets of free ports a start tries; each is lost only to a race with another process.
	portTries = 5
	// pollFirst and pollMost are the pauses between two looks at a broker that does not answer yet.
	pollFirst = 10 * time.Millisecond
	pollMost  = 200 * time.Millisecond
	// logTailBytes is how much of a log an error shows.
	logTailBytes = 3000
)

// errPortTaken says that another process got one of the broker's ports first.
var errPortTaken = errors.New("a port is taken by another process")

// startKafka returns a broker that answers. ctx bounds the start only.
func startKafka(ctx context.Context, options KafkaOptions) (*Broker, error) {
	b := &Broker{options: options}
	if b.options.Version == "" {
		b.options.Version = os.Getenv("HIGHWATER_TEST_KAFKA")
	}
	if b.options.Version == "" {
		b.options.Version = defaultKafka
	}
	var err error
	if b.java, err = findProgram("java"); err != nil {
		return nil, err
	}
	if b.jars, err = kafkaJars(ctx, b.options.Version); err != nil {
		return nil, err
	}
	if err := b.startOnPorts(ctx, freePorts); err != nil {
		b.Stop()
		return nil, fmt.Errorf("version %s: %w", b.options.Version, err)
	}
	return b, nil
}

// startOnPorts makes the folder and starts the broker on free ports, with another try when one was taken meanwhile.
func (b *Broker) startOnPorts(ctx context.Context, free func(context.Context, int) ([]int, error)) (err error) {
	ctx, cancel := context.WithTimeout(ctx, kafkaStartWait)
	defer cancel()
	if b.dir, err = os.MkdirTemp("", "highwater-kafka-*"); err != nil {
		return fmt.Errorf("making the broker's folder: %w", err)
	}
	if b.options.TLS {
		if b.certificate, err = newCertificate(b.dir); err != nil {
			return err
		}
	}
	names := b.listeners()
	for range portTries {
		ports, err := free(ctx, len(names))
		if err != nil {
			return err
		}
		b.ports = make(map[string]int, len(names))
		for i, name := range names {
			b.ports[name] = ports[i]
		}
		if err = b.format(ctx); err != nil {
			return err
		}
		if err = b.launch(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return fmt.Errorf("%d tries: %w", portTries, errPortTaken)
}

// format writes the settings and an empty log folder, whose cluster is a new one.
func (b *Broker) format(ctx context.Context) error {
	if err := os.RemoveAll(b.dataDir()); err != nil {
		return fmt.Errorf("removing an earlier try's data: %w", err)
	}
	if err := b.writeSettings(); err != nil {
		return err
	}
	id := uuid.New()
	b.clusterID = base64.RawURLEncoding.EncodeToString(id[:])
	// One word, because the tool's command line would take an id that begins with a dash for an option.
	args := append(b.flags("128m"), "kafka.tools.StorageTool", "format", "--cluster-id="+b.clusterID, "--config", b.settingsPath())
	if b.options.SASL {
		for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, KafkaUser, KafkaPassword))
		}
	}
	if err := run(ctx, filepath.Join(b.dir, "format.log"), child.Spec{Path: b.java, Args: args, Dir: b.dir}); err != nil {
		return fmt.Errorf("formatting the broker's data: %w", err)
	}
	return nil
}

// relaunch is launch for a broker that had its ports already: they are fixed, so a process that borrows one is waited for.
func (b *Broker) relaunch(ctx context.Context) error {
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		err := b.launch(ctx)
		if !errors.Is(err, errPortTaken) {
			return err
		}
		if wait(ctx, pause) != nil {
			return err
		}
	}
}

// launch starts the program and returns when it answers; after an error nothing runs.
func (b *Broker) launch(ctx context.Context) error {
	log, err := os.Create(b.logPath())
	if err != nil {
		return fmt.Errorf("making the broker's log: %w", err)
	}
	defer log.Close()
	process, err := child.Start(child.Spec{
		Path:  b.java,
		Args:  append(b.flags(b.options.Heap), "kafka.Kafka", b.settingsPath()),
		Dir:   b.dir,
		Log:   log,
		Death: syscall.SIGKILL, // a clean shutdown would save data that nobody looks for
	})
	if err != nil {
		return err
	}
	if err := b.waitReady(ctx, process); err != nil {
		_ = process.Stop() // it has ended already, or does not answer: nothing to save
		if text, _ := os.ReadFile(b.logPath()); bytes.Contains(text, []byte("Address already in use")) {
			return errPortTaken
		}
		return fmt.Errorf("the broker did not start on %s: %w; its log ends: %s", b.Addr(), err, tail(b.logPath()))
	}
	b.process = process
	return nil
}

// waitReady asks until the broker answers, the broker ends or ctx is over.
func (b *Broker) waitReady(ctx context.Context, process *child.Process) error {
	// A request can hang on a foreign listener that took the port, so the broker's end cancels it too.
	attempt, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-process.Exited():
			cancel()
		case <-attempt.Done():
		}
	}()
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		err := b.answers(attempt)
		if err == nil {
			return nil
		}
		if wait(attempt, pause) == nil {
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("it did not answer in time: %w (last answer: %w)", context.Cause(ctx), err)
		}
		return fmt.Errorf("it ended at once: %v", process.Err()) //nolint:errorlint // a clean exit (nil) is a failure too
	}
}

// answers asks once whether a broker of our cluster serves. The client asks for the versions of the protocol first, which
// a broker answers once it has caught up with its controller.
func (b *Broker) answers(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer client.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // no topic; nil would ask for all
	res, err := req.RequestWith(ctx, client)
	switch {
	case err != nil:
		return err
	case res.ClusterID == nil || *res.ClusterID != b.clusterID:
		return fmt.Errorf("another cluster answers: %w", errPortTaken)
	case len(res.Brokers) != 1:
		return fmt.Errorf("the cluster has %d brokers, want 1", len(res.Brokers))
	}
	return nil
}

// freePorts asks the kernel for n different loopback ports that nobody uses. Another process may take one before the broker does.
func freePorts(ctx context.Context, n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(loopback, "0"))
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer listener.Close()
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// wait pauses for d or until ctx is over.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// tail is the end of a log, for an error.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	text = bytes.TrimSpace(text)
	if len(text) > logTailBytes {
		return "..." + string(text[len(text)-logTailBytes:])
	}
	return string(text)
}
