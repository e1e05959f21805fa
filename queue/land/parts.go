package land

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"highwater/sql/table"
)

// parts lands a chunk with many refused rows in two halves, each a transaction that moves the positions itself. hopeless: a
// half is parted again without trying, as long as it has more rows than may be refused in one transaction.
func (l *Lander) parts(ctx context.Context, run Run, c *Chunk, shape *table.Shape, hopeless bool) (Landed, error) {
	first, second := c.halves()
	if first == nil {
		return l.whole(ctx, run, c, shape, true)
	}
	landed, err := l.part(ctx, run, first, shape, hopeless)
	if err != nil {
		return landed, err
	}
	select {
	case <-run.Stop: // a chunk of many parts may take longer than a sidecar has to stop
		return landed, fmt.Errorf("%s: %w", where(run, second), ErrStopped)
	default:
	}
	rest, err := l.part(ctx, run, second, landed.Shape, hopeless)
	landed.add(rest)
	return landed, err
}

func (l *Lander) part(ctx context.Context, run Run, c *Chunk, shape *table.Shape, hopeless bool) (Landed, error) {
	if hopeless && len(c.Rows) > l.o.RefusalsMax {
		return l.parts(ctx, run, c, shape, hopeless)
	}
	return l.Land(ctx, run, c, shape)
}

// add puts what became of a chunk's second half to that of its first.
func (l *Landed) add(o Landed) {
	l.Written, l.Duplicates, l.Letters = l.Written+o.Written, l.Duplicates+o.Duplicates, l.Letters+o.Letters
	l.Cancelled = l.Cancelled || o.Cancelled
	l.Said = append(l.Said, o.Said...)
	l.NewColumns, l.Widened = append(l.NewColumns, o.NewColumns...), append(l.Widened, o.Widened...)
	if o.Shape != nil {
		l.Shape = o.Shape
	}
	for _, p := range o.Partitions {
		if n := len(l.Partitions); n > 0 && l.Partitions[n-1].Partition == p.Partition {
			last := &l.Partitions[n-1]
			last.Written, last.Duplicates, last.Letters = last.Written+p.Written, last.Duplicates+p.Duplicates, last.Letters+p.Letters
			continue
		}
		l.Partitions = append(l.Partitions, p)
	}
}

// halves parts a chunk so that its two halves landed one after the other come to the same as the whole: by partitions where it
// has several, else by offset. It gives nil where it cannot be parted without guessing which of the offsets between held
// what: then counters would be wrong from the first half's commit until the second's.
func (c *Chunk) halves() (first, second *Chunk) {
	if n := len(c.Advances); n > 1 {
		return c.split(c.Advances[:n/2], c.Advances[n/2:])
	}
	if len(c.Rows) < 2 {
		return nil, nil
	}
	whole, cut := c.Advances[0], c.Rows[len(c.Rows)/2].Offset
	before, after := whole, whole
	before.To, after.From = cut, cut
	between := before.To - before.From
	for i := range c.Rows {
		if c.Rows[i].Offset < cut {
			between--
		}
	}
	for i := range c.Letters {
		if c.Letters[i].Offset < cut {
			between--
		}
	}
	if !apportion(whole, &before, &after, between) {
		return nil, nil
	}
	return c.split([]Advance{before}, []Advance{after})
}

// apportion divides what lay between the rows: between offsets of it come before the cut. It can be told which they were where
// all are of one kind or all are on one side.
func apportion(whole Advance, before, after *Advance, between int64) bool {
	all := whole.Filtered + whole.Tombstones + whole.NoRecord
	switch {
	case between == 0:
		before.Filtered, before.Tombstones, before.NoRecord = 0, 0, 0
	case between == all:
		after.Filtered, after.Tombstones, after.NoRecord = 0, 0, 0
	case whole.Filtered == all:
		before.Filtered, after.Filtered = between, all-between
	case whole.Tombstones == all:
		before.Tombstones, after.Tombstones = between, all-between
	case whole.NoRecord == all:
		before.NoRecord, after.NoRecord = between, all-between
	default:
		return false
	}
	return true
}

// split makes the two chunks of the advances given; what alters the table goes with the first.
func (c *Chunk) split(before, after []Advance) (first, second *Chunk) {
	first = &Chunk{ID: uuid.New(), Advances: before, Alters: c.Alters, Columns: c.Columns}
	second = &Chunk{ID: uuid.New(), Advances: after, Columns: c.Columns}
	for _, r := range c.Rows {
		part := second
		if first.covers(r.Partition, r.Offset) {
			part = first
		}
		part.Rows = append(part.Rows, r)
		part.Bytes += len(r.Raw.Value)
	}
	for _, l := range c.Letters {
		part := second
		if first.covers(l.Partition, l.Offset) {
			part = first
		}
		part.Letters = append(part.Letters, l)
		part.Bytes += len(l.Raw.Value)
	}
	return first, second
}

func (c *Chunk) covers(partition int32, offset int64) bool {
	i, ok := c.advance(partition)
	return ok && offset < c.Advances[i].To
}
