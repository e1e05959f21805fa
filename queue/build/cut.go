package build

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"highwater/queue/land"
	"highwater/reader/kafka"
	"highwater/sql/table"
)

// draft is a chunk in the making. Its buffers serve one chunk after the other, but for what the chunk itself keeps.
type draft struct {
	serial   int
	chunk    *land.Chunk
	groups   []*group
	text     []byte // of all rows, one after the other; the chunk keeps it
	ends     []int  // where each row's text ends
	widths   []int32
	hashes   []byte // of all rows, of one width
	advances map[int32]int
	columns  int // of the widest group
	messages int
	size     int // bytes of their keys and values
	limit    int // messages it may have

	plain    []byte // text of a string with escapes
	document []byte // a document that differs from its message
}

// group is rows that fill the same columns. There is more than one only where some rows leave out a column that has a default.
type group struct {
	columns  []*column
	place    map[*column]int32
	defaults []*column
}

// Cut takes the next messages out of what is pending and makes one chunk of them, for a table of the given shape; nil when
// nothing is pending. A nil shape is a table that does not exist yet.
//
// A chunk has at most chunk_rows messages and chunk_bytes bytes, but at least one message. A message that needs another column
// or a wider one begins a chunk of its own, of at most 500 messages, that carries the alters; the next chunk must be cut
// with the shape the table has then. The errors are [*ReservedError] and [*SchemaError], which end the run with nothing of
// the chunk landed, and an error for batches that do not follow each other.
func (b *Builder) Cut(shape *table.Shape) (*land.Chunk, error) {
	if !b.Pending() {
		return nil, nil //nolint:nilnil // nothing pending is no error, and no chunk
	}
	b.use(shape)
	limit := int(b.rows.Load())
	b.begin(limit)
	at, full, err := b.walk(b.put)
	if err != nil {
		return nil, err
	}
	var alters []table.Alter
	if full && b.draft.messages == 0 {
		at, alters, err = b.alter(shape, min(limit, sampleRows))
		if err != nil {
			return nil, err
		}
	}
	b.consume(at)
	return b.finish(alters), nil
}

// consume forgets what the draft holds. A batch stays until it is wholly cut.
func (b *Builder) consume(at place) {
	b.messages -= b.draft.messages
	b.bytes -= b.draft.size
	clear(b.batches[:at.batch]) // their buffers live on in the rows only
	b.batches, b.at = b.batches[at.batch:], place{record: at.record}
	if len(b.batches) == 0 {
		b.batches = nil
	}
}

// alter makes the chunk that begins with a message for which the table must change: once through to learn, once to write.
func (b *Builder) alter(shape *table.Shape, limit int) (place, []table.Alter, error) {
	b.learnFrom(shape)
	b.begin(limit)
	if _, _, err := b.walk(b.learn); err != nil {
		return place{}, nil, err
	}
	alters := b.learnt()
	b.use(shape.With(alters))
	b.begin(limit)
	at, _, err := b.walk(b.again)
	return at, alters, err
}

// begin empties the draft.
func (b *Builder) begin(limit int) {
	d := &b.draft
	d.serial++
	d.chunk = &land.Chunk{ID: uuid.New()}
	d.groups = d.groups[:0]
	d.ends, d.widths, d.hashes = d.ends[:0], d.widths[:0], d.hashes[:0]
	d.columns, d.messages, d.size, d.limit = 0, 0, 0, limit
	if d.advances == nil {
		d.advances = map[int32]int{}
	}
	clear(d.advances)
	d.text = nil
}

// walk hands on the pending messages one by one until the draft is full, and gives where it stopped. put says what became of
// a message; full tells that the chunk ended before one that the chunk cannot take.
func (b *Builder) walk(put func(*message) (sort, error)) (at place, full bool, err error) {
	d := &b.draft
	var m message
	for at = b.at; at.batch < len(b.batches); at = (place{batch: at.batch + 1}) {
		batch := &b.batches[at.batch]
		from := batch.From
		if at.record > 0 {
			from = batch.Records[at.record-1].Offset + 1
		}
		for ; at.record < len(batch.Records); at.record++ {
			r := &batch.Records[at.record]
			if d.full(len(r.Value), b.o.ChunkBytes) {
				return at, false, nil
			}
			m = message{partition: batch.Partition, record: r}
			became, err := put(&m)
			if err != nil || became == wants {
				return at, became == wants, err
			}
			if err := b.advance(batch, from, r.Offset+1, became); err != nil {
				return at, false, err
			}
			from = r.Offset + 1
			d.messages++
			d.chunk.Bytes += len(r.Value)
			d.size += len(r.Key) + len(r.Value)
		}
		if from < batch.Next {
			if err := b.advance(batch, from, batch.Next, nothing); err != nil {
				return at, false, err
			}
		}
	}
	return at, false, nil
}

// full tells whether the chunk takes no further message, of so many bytes. A wide table of which each message fills little
// is bounded, too, by what its nulls cost.
func (d *draft) full(size, most int) bool {
	if d.messages == 0 {
		return false
	}
	return d.messages >= d.limit || d.chunk.Bytes+size > most || len(d.chunk.Rows)*d.columns*nullBytes > most
}

// nullBytes is what a column that a row does not fill costs of its text.
const nullBytes = len("\t\\N")

// advance moves the chunk's position in a partition from from to to; its last offset is a message of that sort, the others
// hold no record.
func (b *Builder) advance(batch *kafka.Batch, from, to int64, last sort) error {
	d := &b.draft
	i, ok := d.advances[batch.Partition]
	if !ok {
		i = len(d.chunk.Advances)
		d.advances[batch.Partition] = i
		d.chunk.Advances = append(d.chunk.Advances, land.Advance{Partition: batch.Partition, From: from, To: from})
	}
	a := &d.chunk.Advances[i]
	if a.To != from || to <= from || to > batch.Next {
		return fmt.Errorf("%s[%d]: offset %d of the batch [%d,%d) does not follow offset %d", b.o.Topic, batch.Partition, to-1, batch.From, batch.Next, a.To)
	}
	a.NoRecord += to - from
	if last != nothing {
		a.NoRecord--
	}
	if last == filtered {
		a.Filtered++
	}
	a.To, a.Epoch = to, batch.Epoch
	return nil
}

// put takes a message into the draft, unless the table must change first.
func (b *Builder) put(m *message) (sort, error) {
	v, err := b.judge(m)
	if err != nil {
		return nothing, err
	}
	b.set(m, v)
	return v.sort, nil
}

// set adds a message to the draft's rows or letters.
func (b *Builder) set(m *message, v verdict) {
	switch v.sort {
	case letter:
		b.draft.chunk.Letters = append(b.draft.chunk.Letters, land.Letter{
			Partition: m.partition, Offset: m.record.Offset, Reason: v.reason, Message: v.why, Raw: source(m.record),
			Tombstone: m.record.Value == nil && m.record.TooLarge == 0, Size: m.record.TooLarge,
		})
	case row:
		b.row(m, v.form)
	default: // filtered, or without record: counted where the chunk's advances are
	}
}

// finish closes the draft: texts and hashes are cut out of their arenas.
func (b *Builder) finish(alters []table.Alter) *land.Chunk {
	d, c := &b.draft, b.draft.chunk
	c.Alters, c.Findings = alters, b.findings
	b.findings = nil
	slices.SortFunc(c.Advances, func(a, b land.Advance) int { return cmp.Compare(a.Partition, b.Partition) })
	c.Columns = make([][]string, len(d.groups))
	for i, g := range d.groups {
		c.Columns[i] = b.names(g)
	}
	d.fill()
	hashes, width, from := string(d.hashes), b.hasher.width, 0
	for i := range c.Rows {
		r := &c.Rows[i]
		r.Hash = hashes[i*width : (i+1)*width]
		r.Text = d.text[from:d.ends[i]:d.ends[i]]
		from = d.ends[i]
	}
	if n := len(c.Rows); n > 0 {
		b.rowBytes = len(d.text)/n + 1
	}
	d.text, d.chunk = nil, nil
	for _, buffer := range []*[]byte{&b.scratch, &d.plain, &d.document, &b.hasher.form} {
		if cap(*buffer) > keptBytes {
			*buffer = nil
		}
	}
	if cap(b.fields) > formFieldsMax {
		b.fields = nil
	}
	return c
}

// keptBytes is up to what size a buffer is kept for the next chunk: one large message must not be paid for ever after.
const keptBytes = 1 << 20
