// Package land writes one chunk of a run in one transaction: new columns, rows, dead letters, counters and the cursor
// commit together or not at all.
//
// It decides nothing about Kafka and nothing about JSON: a [Chunk] comes in finished. Types to know: [Lander] lands chunks for
// a [Run] and says what was [Landed]; [Fate] says what an error means, and nobody else does. **The cursor moves only by
// compare-and-set on the position the chunk was read from and on the run's fence**, so a sidecar that lost its lease,
// slept, or does not know whether its last commit went through can write nothing twice and nothing out of order.
package land

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"highwater/reader/kafka"
	"highwater/sql/table"
)

// Chunk is a value: everything that must commit together is in it, nothing else is.
//
// Its invariant, checked by [Chunk.Check]: for every partition, To − From = rows + letters + filtered + tombstones
// applied + no_record.
type Chunk struct {
	ID       uuid.UUID
	Advances []Advance // in partition order, at least one
	Alters   []table.Alter
	// Columns are the payload columns of the rows' text, by name and in the order of the text: one list for each
	// [Row.Group]. There is one group, unless some rows lack a column that has a default: those leave it out of their
	// COPY, so that the default applies. A list may be empty. A table that does not exist is made if there are Rows.
	Columns  [][]string
	Rows     []Row // in the order read, whatever their group
	Letters  []Letter
	Findings []Finding // for connector.log, once the chunk has committed
	Bytes    int       // bytes of values, for the budget
	// Replay is the dead letter that this chunk, of one message, decodes again: then its one advance says where the message
	// came from, and no position moves. Zero for every other chunk.
	Replay uuid.UUID
}

// Advance moves one partition's cursor from From to To and says what lay between.
type Advance struct {
	Partition  int32
	From, To   int64
	Epoch      int32 // leader epoch to store, -1 when unknown
	Filtered   int64
	Tombstones int64 // applied
	NoRecord   int64 // offsets that hold no readable record
}

// Finding is a sentence that a run says once.
type Finding struct {
	Warn    bool // else INFO
	Message string
}

// Row is one table row ready for COPY. Duplicates within the chunk are still in it.
type Row struct {
	Hash      string // text of _row_hash; only characters that COPY's text format leaves alone
	Partition int32
	Group     int32 // index into Chunk.Columns
	Offset    int64
	Text      []byte // COPY text of the payload columns: tab before each value, no newline
	Raw       Source // for the dead letter it becomes if the database refuses it
}

// Source is the message a row or letter came from; its slices alias the fetched buffer.
type Source struct {
	Key, Value []byte
	Headers    []Header
}

// Header is one message header, as the reader hands it on.
type Header = kafka.Header

// Letter is one message that could not be landed.
type Letter struct {
	Partition int32
	Offset    int64
	Reason    string // MalformedSource, TypeConflict, TooLarge, Refused
	Message   string // why, without coordinates; printable
	SQLState  string // only for Refused
	Raw       Source
	Size      int // bytes of a value of which Raw may hold only the beginning; else 0
	Tombstone bool
}

// Check tells the first way in which the chunk breaks its invariant, nil when it holds. A chunk that breaks it is a fault
// of the program and must not be landed: its counters would be untrue.
func (c *Chunk) Check() error {
	if len(c.Advances) == 0 {
		return errors.New("a chunk moves no partition")
	}
	covered := make([]int64, len(c.Advances))
	for i, a := range c.Advances {
		if i > 0 && c.Advances[i-1].Partition >= a.Partition {
			return fmt.Errorf("a chunk's advances are out of order at partition %d", a.Partition)
		}
		covered[i] = a.Filtered + a.Tombstones + a.NoRecord
	}
	for _, r := range c.Rows {
		if r.Group < 0 || int(r.Group) >= len(c.Columns) {
			return fmt.Errorf("a chunk's row at partition %d offset %d is of column group %d, there are %d", r.Partition, r.Offset, r.Group, len(c.Columns))
		}
		if !c.cover(covered, r.Partition, r.Offset) {
			return fmt.Errorf("a chunk's row at partition %d offset %d lies outside its advances", r.Partition, r.Offset)
		}
	}
	for _, l := range c.Letters {
		if !c.cover(covered, l.Partition, l.Offset) {
			return fmt.Errorf("a chunk's dead letter at partition %d offset %d lies outside its advances", l.Partition, l.Offset)
		}
	}
	for i, a := range c.Advances {
		if a.To-a.From != covered[i] {
			return fmt.Errorf("a chunk accounts for %d of partition %d's %d offsets [%d,%d)", covered[i], a.Partition, a.To-a.From, a.From, a.To)
		}
	}
	return nil
}

func (c *Chunk) cover(covered []int64, partition int32, offset int64) bool {
	i, ok := c.advance(partition)
	if !ok || offset < c.Advances[i].From || offset >= c.Advances[i].To {
		return false
	}
	covered[i]++
	return true
}

// advance finds a partition's place in Advances.
func (c *Chunk) advance(partition int32) (int, bool) {
	if len(c.Advances) == 1 { // the common case, asked for every row
		return 0, c.Advances[0].Partition == partition
	}
	return slices.BinarySearchFunc(c.Advances, partition, func(a Advance, p int32) int { return cmp.Compare(a.Partition, p) })
}
