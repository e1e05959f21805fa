package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"highwater/reader/plan"
)

// Drained is the account of a drain: what was read, and what could not be although nothing failed.
type Drained struct {
	Records   int64 // handed on
	NotProved []NotProved
}

// NotProved is a partition whose broker answers without an error and without progress: whether anything lies between
// Position and Target is not known.
type NotProved struct {
	Partition     int32
	Position      int64
	Target        int64
	HighWatermark int64 // as last answered
	Message       string
}

// piecesAhead is how many decoded batches may wait for the receiver; their bytes are bounded by the budget.
const piecesAhead = 8

// Drain reads every span from its From to its Target and hands the batches to emit, one at a time: those of a partition in
// order and without gaps, those of different partitions as they come. Reading goes on while emit works, until BufferBytes
// are held; an emit that blocks holds everything up and never lets a partition count as silent.
//
// It returns when every partition stands at its target or is given up. An *Error names the first partition that failed;
// what was read before it has been emitted, and where one partition is stalled, damaged or without its broker, the others
// are read to their targets first. NotProved partitions are no error. An error of emit and the end of ctx are returned as
// they are, promptly. No goroutine of this package outlives the call.
func (c *Client) Drain(ctx context.Context, topic Topic, spans []plan.Span, emit func(Batch) error) (Drained, error) {
	r := newReader(c, topic, spans)
	if r.open == 0 {
		return Drained{}, nil
	}
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	pieces := make(chan piece, piecesAhead)
	var stages sync.WaitGroup
	stages.Go(func() {
		defer r.answers.close()
		r.run(work)
	})
	stages.Go(func() {
		defer close(pieces)
		r.decode(work, pieces)
	})
	records, emitErr := r.deliver(pieces, emit, cancel)
	stages.Wait()
	drained := Drained{Records: records, NotProved: r.notProved}
	switch {
	case emitErr != nil:
		return drained, emitErr
	case ctx.Err() != nil:
		return drained, ctx.Err()
	}
	return drained, r.verdict()
}

// deliver calls emit for every piece. After an error of emit it only frees what still comes.
func (r *reader) deliver(pieces <-chan piece, emit func(Batch) error, cancel func()) (records int64, err error) {
	for p := range pieces {
		if p.Next > p.From && err == nil {
			if err = emit(p.Batch); err != nil {
				cancel()
			} else {
				records += int64(len(p.Records))
			}
		}
		r.decoded.give(p.cost)
		r.room.give(p.freed)
	}
	return records, err
}

// decode turns answers into pieces until there are no more. What is broken in a partition ends that partition only.
func (r *reader) decode(ctx context.Context, pieces chan<- piece) {
	d := decoder{
		topic: r.c.o.Topic, connector: r.c.o.Connector, committed: r.c.o.ReadCommitted, valueMax: r.c.o.MaxMessageBytes,
		decompress: r.c.decompress,
		hand: func(ctx context.Context, p piece) bool {
			if !r.decoded.take(ctx, p.cost) {
				return false
			}
			select {
			case pieces <- p:
				return true
			case <-ctx.Done():
				return false
			}
		},
	}
	broken := map[int32]bool{}
	for {
		a, ok := r.answers.pop(ctx)
		if !ok {
			return
		}
		if !broken[a.partition] {
			stop, err := d.guarded(ctx, a)
			if stop {
				return
			}
			if err != nil {
				broken[a.partition] = true
				r.damaged <- damage{a.partition, err}
			}
		}
		if a.bytes > 0 && !d.hand(ctx, piece{freed: a.bytes}) {
			return
		}
	}
}

// guarded decodes one answer; a panic, which only bytes that nobody foresaw can cause, becomes an error of the partition.
func (d *decoder) guarded(ctx context.Context, a answer) (stop bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			stop, err = false, d.corrupt(d.pos, fmt.Errorf("decoding panicked: %v", p))
		}
	}()
	return d.answer(ctx, a)
}

// damage is what the decoder found wrong with a partition.
type damage struct {
	partition int32
	err       error
}

// verdict is the error that the drain ends with: what stopped all of it, else the failure of the lowest partition.
func (r *reader) verdict() error {
	if r.fatal != nil {
		return r.fatal
	}
	close(r.damaged)
	for d := range r.damaged {
		r.blame(d)
	}
	if len(r.failures) == 0 {
		return nil
	}
	slices.SortFunc(r.failures, func(a, b *Error) int { return int(a.Partition) - int(b.Partition) })
	first := r.failures[0]
	if more := len(r.failures) - 1; more > 0 {
		first.Message += fmt.Sprintf(" (and %d more partitions failed)", more)
	}
	return first
}

// blame takes the decoder's finding over as the partition's failure.
func (r *reader) blame(d damage) {
	var e *Error
	if !errors.As(d.err, &e) {
		e = r.c.fail(codeInternal, d.err.Error(), "", true)
		e.Partition = d.partition
	}
	p := r.parts[d.partition]
	if !p.settled {
		r.settle(p)
	}
	r.failures = append(r.failures, e)
}
