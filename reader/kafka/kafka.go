// Package kafka reads one topic of a Kafka cluster between two known offsets a partition, and proves that it did.
//
// It keeps no position, joins no group and writes nothing to the broker: no commit, no topic creation. Where a run
// begins and ends is decided by package plan; what the bytes mean by package decode.
//
// Types to know: [Options] describe the connection, [Client] asks and reads, [Batch] is a stretch of one partition's
// log. **A batch covers its half-open range completely: every offset in it is one of its records, or holds none that
// this isolation level may see.** Reading is by raw fetch requests (KIP-516, KIP-320), because a consumer that hands out
// only records cannot say whether the rest of a log is empty.
//
// A run is [Client.Describe], [Client.Measure], a plan, [Client.Drain]. Inside Drain three stages work at once, joined by
// queues that are bounded in bytes: one request in flight for each leader (reader), record batches into records (decoder),
// and the caller's emit. One goroutine owns all positions and decides everything; requests only bring answers to it.
//
// What to know of Kafka first: a fetch answer is a row of record batches, each with a header that says which offsets it
// covers, also those whose records were compacted away, aborted, or are transaction markers
// (https://kafka.apache.org/documentation/#recordbatch). Positions move by headers, never by records.
package kafka

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"
)

// Options describe one connection. Durations and byte limits of zero mean the package's defaults.
type Options struct {
	Brokers         []string // host:port
	ClientID        string
	Connector       string // the connector's name, for the statements in hints; may be empty
	Topic           string
	ReadCommitted   bool
	PollTimeout     time.Duration // silence after which an end is to be proved
	StallTimeout    time.Duration // silence after which a partition is given up as not proved
	MetadataTimeout time.Duration // the one wait for a broker that does not answer; at most 45 s
	MaxMessageBytes int           // of values above it at most the first MiB is handed on, Record.TooLarge set
	FetchBytes      int32         // most bytes of one fetch response; a larger single batch still comes whole
	ReadBytes       int32         // most bytes of one response that are read at all; a batch above it cannot be read
	BufferBytes     int64         // most bytes read ahead of the receiver
	SASL            *SASL         // nil: no handshake
	TLS             *tls.Config   // nil: plaintext
	Dial            func(ctx context.Context, network, host string) (net.Conn, error)
	Logger          *slog.Logger
}

// SASL holds resolved credentials; they are never logged and never part of an error.
type SASL struct {
	Mechanism string // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
	Username  string
	Password  string
}

// Record is one message. Value nil is a tombstone; an empty value is not nil. Key, Value and header values point into the
// buffer that the batch was read into: they stay valid, and keep that buffer alive, as long as they are held.
type Record struct {
	Offset    int64
	Timestamp int64 // milliseconds since 1970, -1 when the broker has none
	Key       []byte
	Value     []byte
	Headers   []Header
	TooLarge  int // bytes of a value above MaxMessageBytes, of which Value holds the first MiB; else 0
}

// Header is one of a record's headers, in the record's order, repeats kept.
type Header struct {
	Key   string
	Value []byte
}

// Batch is the stretch [From, Next) of one partition: its records in offset order, and nothing else readable in it.
type Batch struct {
	Partition int32
	From      int64
	Next      int64
	Epoch     int32 // leader epoch of the last batch in the stretch, of the proof where there was none; -1 when unknown
	Records   []Record
	Bytes     int  // sum of key and value lengths
	Proved    bool // reached Next by proof of emptiness, not by a record or a batch header at Next-1
}

// Error is what ends a run on the reader's side. Code is out of the closed list of spec 1.3.
type Error struct {
	Code      string
	Partition int32 // -1 when it concerns no single partition
	Offset    int64 // -1 when it concerns no offset
	LostFrom  int64 // with offsets_expired: the first lost offset, else -1
	LostTo    int64 // with offsets_expired: the last lost offset (inclusive), else -1
	Message   string
	Hint      string
	Retryable bool
	Err       error // the cause, may be nil
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
