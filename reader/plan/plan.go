// Package plan decides, once a run, what is to be read: for every partition the half-open span of offsets
// between the stored position and the end that the broker had when the run measured it.
//
// It is arithmetic only: it asks no broker and no database. What the broker said comes in as [Ends], what the
// database holds as [Stored]; out come spans, findings to log, or a refusal that ends the run before a record is read.
// [Decide] is the only way in.
//
// **A target is measured once and never moves.** Offsets are Kafka's: a next offset is the first one not yet read,
// and every range is half-open.
package plan

import "time"

// Earliest, Latest and AtTime are the kinds of [Start].
const (
	Earliest StartKind = iota
	Latest
	AtTime
)

// StartKind says where a connector without any stored position begins.
type StartKind uint8

// Start is the manifest's start_position, or a sought time.
type Start struct {
	Kind StartKind
	At   time.Time // only for AtTime
}

// Stored is one partition's position as the database holds it.
type Stored struct {
	Partition int32
	Next      int64 // first offset not yet read
	Epoch     int32 // leader epoch of the last record read; -1 when unknown
	Sought    bool  // set by connector.seek and not yet judged
}

// Identity says which log is meant: one incarnation of a topic on one cluster. Empty fields are unknown.
type Identity struct {
	Cluster string
	Topic   string
	TopicID [16]byte // zero where the broker has no topic ids
}

// Ends is what the broker said of one partition at the moment of measuring.
type Ends struct {
	Partition        int32
	LeaderEpoch      int32 // -1 when unknown
	LogStartOffset   int64
	HighWatermark    int64
	LastStableOffset int64 // equal to HighWatermark where the broker knows no transactions
	AtTimeOffset     int64 // first offset at or after Start.At, -1 when not asked; HighWatermark when there is none
	EpochEndOffset   int64 // end offset of the stored epoch (KIP-320), -1 when not asked or unknown
	EpochEndEpoch    int32 // the epoch that EpochEndOffset belongs to, -1 when unknown
}

// Input is all that [Decide] looks at.
type Input struct {
	Connector     string
	Stored        []Stored // in partition order; empty: never read, or a time was sought
	StoredID      Identity // what the positions belong to; zero when never read
	BrokerID      Identity // what answered
	Ends          []Ends   // in partition order, one for every partition of the topic
	Start         Start    // for a connector without any stored position
	ReadCommitted bool     // the target is the last stable offset, else the high watermark
	FailOnLost    bool     // on_lost: fail
}

// Span is one partition's share of a run: read [From, Target).
type Span struct {
	Partition int32
	From      int64
	Target    int64
	Epoch     int32 // leader epoch to hold the broker to; -1 when unknown
	LostFrom  int64 // first lost offset, -1 when nothing was lost
	LostTo    int64 // last lost offset (inclusive, as spec 1.3 shows it), -1 when nothing was lost
}

// Finding is a sentence for the run's log.
type Finding struct {
	Warn    bool // WARN, else INFO
	Message string
}

// Plan is what a run is to do. Spans holds every partition, those with nothing to read too (From == Target).
type Plan struct {
	Spans    []Span
	Findings []Finding
	Lost     []string // one sentence for each lost range, for the message of a Partial run
	Expired  []string // one sentence for each partition whose oldest offsets left before it was ever read (expired_before_first_read)
}

// Refusal ends a run before a record is read.
type Refusal struct {
	Code    string // out of the closed list of spec 1.3
	Message string
	Hint    string
}

func (r *Refusal) Error() string { return r.Message }
