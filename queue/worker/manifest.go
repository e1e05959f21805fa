package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"highwater/reader/kafka"
	"highwater/reader/plan"
)

// Defaults of the manifest's keys, as connector.describe() tells them; a test compares the two.
const (
	defaultPollTimeout     = 2000 * time.Millisecond
	defaultStallTimeout    = 60000 * time.Millisecond
	defaultChunkBytes      = 16 << 20
	defaultMaxMessageBytes = 32 << 20
	defaultPoisonChunks    = 20
	defaultClientID        = "highwater"
	maxPollRecordsClamp    = 500 // messages; a larger max_poll_records is clamped to it
)

// manifest is a connector's stored spec. SQL has validated it before it was stored, so a value that does not decode is
// a defect or a hand edit, and ends the run.
type manifest struct {
	Name            string            `json:"name"`
	Brokers         string            `json:"brokers"`
	BrokersEnv      string            `json:"brokers_env"`
	Topic           string            `json:"topic"`
	Format          string            `json:"format"`
	PollTimeoutMS   int64             `json:"poll_timeout_ms"`
	StallTimeoutMS  int64             `json:"stall_timeout_ms"`
	MaxPollRecords  int64             `json:"max_poll_records"`
	ChunkRows       chunkRows         `json:"chunk_rows"`
	ChunkBytes      int64             `json:"chunk_bytes"`
	MaxMessageBytes int64             `json:"max_message_bytes"`
	PoisonChunks    int               `json:"poison_chunks"`
	ClientID        string            `json:"client_id"`
	Isolation       string            `json:"isolation"`
	StartPosition   string            `json:"start_position"`
	Read            string            `json:"read"`
	OnLost          string            `json:"on_lost"`
	Auth            *auth             `json:"auth"`
	TLS             *tlsKeys          `json:"tls"`
	Include         []string          `json:"include"`
	Rename          map[string]string `json:"rename"`
	Exclude         []string          `json:"exclude"`
	Only            []string          `json:"only"`
	Types           map[string]string `json:"types"`
	Layout          string            `json:"layout"`
	Schema          string            `json:"schema"`
	TypeChange      string            `json:"type_change"`
	Dedup           string            `json:"dedup"`
	Write           string            `json:"write"`
	Filter          *filter           `json:"filter"`
}

type auth struct {
	Kind             string `json:"kind"`
	UsernameEnv      string `json:"username_env"`
	PasswordEnv      string `json:"password_env"`
	SecurityProtocol string `json:"security_protocol"`
}

type tlsKeys struct {
	Enabled    *bool  `json:"enabled"`
	CAPEMEnv   string `json:"ca_pem_env"`
	CertPEMEnv string `json:"cert_pem_env"`
	KeyPEMEnv  string `json:"key_pem_env"`
	ServerName string `json:"server_name"`
}

type filter struct {
	Headers   map[string][]string `json:"headers"`
	KeyPrefix string              `json:"key_prefix"`
}

// chunkRows is a number of messages, or 0 for "auto".
type chunkRows int

// UnmarshalJSON takes a whole number or the word auto.
func (c *chunkRows) UnmarshalJSON(b []byte) error {
	if string(b) == `"auto"` {
		*c = 0
		return nil
	}
	var n int
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("chunk_rows: %w", err)
	}
	*c = chunkRows(n)
	return nil
}

// parseManifest reads a stored spec and fills in the defaults.
func parseManifest(spec json.RawMessage) (manifest, error) {
	m := manifest{
		Format: "json", PollTimeoutMS: defaultPollTimeout.Milliseconds(), StallTimeoutMS: defaultStallTimeout.Milliseconds(),
		ChunkBytes: defaultChunkBytes, MaxMessageBytes: defaultMaxMessageBytes, PoisonChunks: defaultPoisonChunks,
		ClientID: defaultClientID, Isolation: "read_committed", StartPosition: "earliest", Read: "catch_up", OnLost: "partial",
		Layout: "columns", Schema: "evolve", TypeChange: "dead-letter", Dedup: "content", Write: "append",
	}
	if err := json.Unmarshal(spec, &m); err != nil {
		return manifest{}, &stop{end: failed("internal", "the stored spec does not decode: "+err.Error(), "Store the manifest again, so that it is validated.")}
	}
	return m, nil
}

// rows is how many messages a chunk holds: 0 for auto.
func (m manifest) rows() int {
	if m.MaxPollRecords > 0 {
		return int(min(m.MaxPollRecords, maxPollRecordsClamp))
	}
	return int(m.ChunkRows)
}

func (m manifest) start() (plan.Start, error) {
	switch m.StartPosition {
	case "earliest":
		return plan.Start{Kind: plan.Earliest}, nil
	case "latest":
		return plan.Start{Kind: plan.Latest}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, m.StartPosition)
	if err != nil {
		return plan.Start{}, &stop{end: failed("internal", fmt.Sprintf("start_position %q is no RFC 3339 time", m.StartPosition), "Correct spec.start_position.")}
	}
	return plan.Start{Kind: plan.AtTime, At: at}, nil
}

// connection resolves a manifest's connection keys. It opens nothing.
func (m manifest) connection(r resolver) (kafka.Options, error) {
	o := kafka.Options{
		ClientID: m.ClientID, Topic: m.Topic, ReadCommitted: m.Isolation == "read_committed",
		PollTimeout: time.Duration(m.PollTimeoutMS) * time.Millisecond, StallTimeout: time.Duration(m.StallTimeoutMS) * time.Millisecond,
		MaxMessageBytes: int(m.MaxMessageBytes),
	}
	brokers := m.Brokers
	if m.BrokersEnv != "" {
		v, err := r.value("brokers_env", m.BrokersEnv)
		if err != nil {
			return o, err
		}
		brokers = v
	}
	for b := range strings.SplitSeq(brokers, ",") {
		if b = strings.TrimSpace(b); b != "" {
			o.Brokers = append(o.Brokers, b)
		}
	}
	if len(o.Brokers) == 0 {
		return o, &stop{end: failed("broker_unreachable", "no broker address is given", "Write host:port, comma-separated, in spec.brokers or in what brokers_env names.")}
	}
	if err := m.sasl(r, &o); err != nil {
		return o, err
	}
	return o, m.tls(r, &o)
}

var mechanisms = map[string]string{
	"sasl-plain":         "PLAIN",
	"sasl-scram-sha-256": "SCRAM-SHA-256",
	"sasl-scram-sha-512": "SCRAM-SHA-512",
}

func (m manifest) sasl(r resolver, o *kafka.Options) error {
	if m.Auth == nil || m.Auth.Kind == "" || m.Auth.Kind == "none" {
		return nil
	}
	mechanism, ok := mechanisms[m.Auth.Kind]
	if !ok {
		return &stop{end: failed("internal", fmt.Sprintf("auth.kind %q is not known to this sidecar", m.Auth.Kind), "Upgrade the sidecar, or correct spec.auth.kind.")}
	}
	user, err := r.value("auth.username_env", m.Auth.UsernameEnv)
	if err != nil {
		return err
	}
	password, err := r.value("auth.password_env", m.Auth.PasswordEnv)
	if err != nil {
		return err
	}
	o.SASL = &kafka.SASL{Mechanism: mechanism, Username: user, Password: password}
	return nil
}

// asStop finds the end that an error already carries.
func asStop(err error) (*stop, bool) {
	var s *stop
	ok := errors.As(err, &s)
	return s, ok
}
