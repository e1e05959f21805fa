package harness

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Listeners bear the name of their security protocol; only the controller's has a name of its own.
const (
	plaintext     = "PLAINTEXT"
	controller    = "CONTROLLER"
	saslPlaintext = "SASL_PLAINTEXT"
	ssl           = "SSL"
	saslSSL       = "SASL_SSL"
)

func (b *Broker) dataDir() string      { return filepath.Join(b.dir, "data") }
func (b *Broker) logPath() string      { return filepath.Join(b.dir, "server.log") }
func (b *Broker) settingsPath() string { return filepath.Join(b.dir, "server.properties") }

// listeners are the names of those that the options ask for.
func (b *Broker) listeners() []string {
	names := []string{plaintext, controller}
	if b.options.SASL {
		names = append(names, saslPlaintext)
	}
	if b.options.TLS {
		names = append(names, ssl)
	}
	if b.options.SASL && b.options.TLS {
		names = append(names, saslSSL)
	}
	return names
}

// properties are the whole server.properties: one node that is broker and controller, small, and quick to answer.
func (b *Broker) properties() map[string]string {
	all := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        "1",
		"controller.quorum.voters":       fmt.Sprintf("1@%s:%d", loopback, b.ports[controller]),
		"controller.listener.names":      controller,
		"inter.broker.listener.name":     plaintext,
		"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
		"log.dirs":                       b.dataDir(),

		// On, as Kafka has it by default: what reads a missing topic must not make it, and only such a broker can show it.
		"auto.create.topics.enable": "true",
		"delete.topic.enable":       "true",
		"num.partitions":            "1",

		"offsets.topic.num.partitions":             "2",
		"offsets.topic.replication.factor":         "1",
		"transaction.state.log.num.partitions":     "2",
		"transaction.state.log.replication.factor": "1",
		"transaction.state.log.min.isr":            "1",
		"group.initial.rebalance.delay.ms":         "0",

		// Records may bear any time, so none may fall to retention.
		"log.retention.hours": "-1",
		// The cleaner looks twice a second for a compacted topic with anything to clean; topics are not compacted by default.
		"log.cleaner.enable":              "true",
		"log.cleaner.backoff.ms":          "500",
		"log.cleaner.min.cleanable.ratio": "0.001",
		"log.cleaner.dedupe.buffer.size":  "8388608", // of the 128 MB by default, which would be half the heap
	}
	var bound []string
	for _, name := range b.listeners() {
		bound = append(bound, fmt.Sprintf("%s://%s:%d", name, loopback, b.ports[name]))
	}
	all["listeners"] = strings.Join(bound, ",")
	if b.options.SASL {
		b.addSASL(all)
	}
	if b.options.TLS {
		b.addTLS(all)
	}
	if b.killed {
		// The controller lets nobody take the place of a broker that did not sign off until its session is over, after 9 s
		// by default. A short session has its price, a busy machine may miss it, so only a killed broker's successor has one.
		all["broker.session.timeout.ms"] = "2000"
		all["broker.heartbeat.interval.ms"] = "250"
	}
	maps.Copy(all, b.options.Properties)
	return all
}

// addSASL lets one user in, by a password that lies in the settings (PLAIN) or that format has stored (SCRAM).
func (b *Broker) addSASL(all map[string]string) {
	const security = "org.apache.kafka.common.security"
	all["sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
	for _, listener := range []string{"sasl_plaintext", "sasl_ssl"} {
		prefix := "listener.name." + listener
		all[prefix+".plain.sasl.jaas.config"] = fmt.Sprintf("%s.plain.PlainLoginModule required user_%s=%q;", security, KafkaUser, KafkaPassword)
		all[prefix+".scram-sha-256.sasl.jaas.config"] = security + ".scram.ScramLoginModule required;"
		all[prefix+".scram-sha-512.sasl.jaas.config"] = security + ".scram.ScramLoginModule required;"
	}
}

func (b *Broker) addTLS(all map[string]string) {
	all["ssl.keystore.type"] = "PEM"
	all["ssl.keystore.location"] = b.certificate.keystore
	all["ssl.truststore.type"] = "PEM"
	all["ssl.truststore.location"] = b.certificate.truststore
}

// writeSettings writes what the broker and its format tool read: the properties and how to log.
func (b *Broker) writeSettings() error {
	all := b.properties()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s=%s\n", name, strings.ReplaceAll(all[name], `\`, `\\`))
	}
	if err := os.WriteFile(b.settingsPath(), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("writing the broker's settings: %w", err)
	}
	binding := bindingOf(b.options.Version)
	if err := os.WriteFile(filepath.Join(b.dir, binding.file), []byte(binding.settings), 0o600); err != nil {
		return fmt.Errorf("writing the broker's log settings: %w", err)
	}
	return nil
}

// flags are the JVM's. A test's broker is short-lived: the optimizing compiler and a concurrent collector would cost a
// machine with few cores more than they give.
func (b *Broker) flags(heap string) []string {
	if heap == "" {
		heap = defaultHeap
	}
	binding := bindingOf(b.options.Version)
	return []string{
		"-Xmx" + heap,
		"-XX:TieredStopAtLevel=1",
		"-XX:+UseSerialGC",
		"-Xshare:auto",
		"-XX:-UsePerfData",
		"-Djava.awt.headless=true",
		"-D" + binding.property + "=file:" + filepath.Join(b.dir, binding.file),
		"-cp", filepath.Join(b.jars, "*"),
	}
}
