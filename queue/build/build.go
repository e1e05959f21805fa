// Package build turns batches of a topic into chunks: every message becomes a row, a dead letter or a message passed
// over, and what a chunk needs of the table's shape is said in its alters.
//
// It is pure: no broker, no database, no clock. What a value is, package decode says; what it means for a column and what
// a new field becomes, package table; how a chunk commits, package land.
//
// Types to know: [Builder] takes batches and cuts chunks, [Options] are what the manifest says about messages.
// **Every offset of every batch is in exactly one chunk, and there it is a row, a letter, filtered or without record.**
//
// A chunk is read through once: each message is decoded, hashed and written as COPY text at once. Only a chunk that alters
// the table is read twice, first to learn the columns and their types from all of it, then to write; it is at most 500
// messages long, because readers of the table wait for it.
package build

import (
	"sync/atomic"

	"github.com/google/uuid"

	"highwater/queue/land"
	"highwater/reader/decode"
	"highwater/reader/kafka"
	"highwater/sql/table"
)

// Values of the options, as the manifest writes them; the first of each is its default.
const (
	FormatJSON = "json"
	FormatRaw  = "raw"

	LayoutColumns  = "columns"
	LayoutDocument = "document"

	TypeChangeLetter = "dead-letter"
	TypeChangeWiden  = "widen"
	TypeChangeFail   = "fail"

	DedupContent = "content"
	DedupOffset  = "offset"
	DedupNone    = "none"
)

// Bounds of a chunk, in messages and bytes of values.
const (
	sampleRows = 500   // the first chunk of "auto", and the longest chunk that alters the table
	rowsMax    = 10000 // where "auto" stops doubling
	chunkBytes = 16 << 20
)

// Options are what the manifest says about messages, and whose they are. A zero value means the manifest's default.
type Options struct {
	Format     string
	Layout     string
	Include    []string          // transport columns: topic, partition, offset, timestamp, key, headers, tombstone
	Rename     map[string]string // field → column
	Exclude    []string
	Only       []string // nil: all fields
	Types      map[string]string
	Strict     bool // the first message fixes the columns
	TypeChange string
	Dedup      string
	Filter     *Filter

	Topic     string
	TopicID   uuid.UUID // zero where the broker has no topic ids
	ClusterID string
	RunID     uuid.UUID

	ChunkRows       int // messages a chunk; 0: auto
	ChunkBytes      int // bytes of values a chunk; one message may exceed it
	MaxMessageBytes int // larger values are letters; 0: no limit here
}

// Filter says which messages are taken; those that fail any part of it are counted and passed over.
type Filter struct {
	Headers   map[string][]string // a header of each name must bear one of its values
	KeyPrefix string
}

// Builder turns the batches of one run into chunks. It is for one goroutine, but for [Builder.Landed].
type Builder struct {
	o    Options
	rows atomic.Int64 // messages a chunk

	batches  []kafka.Batch // not yet wholly cut
	at       place
	messages int // records not yet cut
	bytes    int // their keys and values

	naming     naming
	transports []transport
	hasher     hasher
	decoder    *decode.Decoder
	fields     []decode.Field
	whole      decode.Field    // the document of the message in hand
	said       map[string]bool // findings of this builder's life, by column
	findings   []land.Finding  // of the next chunk
	rowBytes   int             // COPY text of a row, as the last chunk had it

	verdicts []verdict // of the messages of a chunk that alters, as they were learnt

	view    view
	draft   draft
	scratch []byte
}

// place is a record of a batch, counted from the first batch that is still held.
type place struct{ batch, record int }

// New makes a builder. Nothing of o is kept but the maps and slices themselves, which must not change.
func New(o Options) *Builder {
	def(&o.Format, FormatJSON)
	def(&o.Layout, LayoutColumns)
	def(&o.TypeChange, TypeChangeLetter)
	def(&o.Dedup, DedupContent)
	def(&o.ChunkBytes, chunkBytes)
	b := &Builder{o: o, decoder: decode.New(), said: map[string]bool{}}
	b.rows.Store(int64(o.ChunkRows))
	if o.ChunkRows == 0 {
		b.rows.Store(sampleRows)
	}
	b.transports = transportsOf(o.Include)
	b.naming = namingOf(o)
	b.hasher = hasherOf(o)
	return b
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Add takes one batch. Batches of a partition must come in order and without gaps, each beginning where the one before
// ended; the builder keeps their buffers until every chunk cut from them is dropped.
func (b *Builder) Add(batch kafka.Batch) {
	if batch.From == batch.Next && len(batch.Records) == 0 {
		return
	}
	b.batches = append(b.batches, batch)
	b.messages += len(batch.Records)
	for i := range batch.Records {
		b.bytes += len(batch.Records[i].Key) + len(batch.Records[i].Value)
	}
}

// Pending tells whether anything added is not yet in a chunk.
func (b *Builder) Pending() bool { return len(b.batches) > 0 }

// Full tells whether what is pending fills a chunk.
func (b *Builder) Full() bool {
	return b.messages >= int(b.rows.Load()) || b.bytes >= b.o.ChunkBytes
}

// Landed tells the builder that a chunk has landed: rows it held that are now in the table, and whether the run is still
// behind. With chunk_rows auto that doubles the chunks to come; a chunk without a row, which may be poison, does not. It may
// be called from another goroutine.
func (b *Builder) Landed(rows int, behind bool) {
	if b.o.ChunkRows != 0 || rows == 0 || !behind {
		return
	}
	b.rows.Store(min(2*b.rows.Load(), rowsMax))
}

// kindOf puts a value's kind into the words of package table, which does not know JSON.
func kindOf(k decode.Kind) table.Kind {
	switch k {
	case decode.Null:
		return table.Null
	case decode.Bool:
		return table.Bool
	case decode.Int:
		return table.Int
	case decode.Number:
		return table.Number
	case decode.String:
		return table.String
	default:
		return table.JSON
	}
}
