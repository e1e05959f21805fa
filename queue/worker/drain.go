package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"highwater/queue/build"
	"highwater/queue/land"
	"highwater/reader/kafka"
	"highwater/reader/plan"
	"highwater/sql/table"
)

const (
	// databaseWaitMax bounds how long a run waits in this sidecar for a database that went away, before it leaves the
	// run to whoever comes first after it is back.
	databaseWaitMax = 2 * time.Minute
	// databaseBackoffMin and databaseBackoffMax bound the pause between two tries.
	databaseBackoffMin = 100 * time.Millisecond
	databaseBackoffMax = 2 * time.Second
	// passesMax bounds how often one run begins its reading anew because the table's shape changed under it.
	passesMax = 100
)

// errAgain asks for another pass from the stored positions: nothing is wrong, but what was read ahead is stale.
var errAgain = errors.New("reading begins again from the stored positions")

// drain reads and lands until every partition stands at its target, in as many passes as it takes.
func (r *run) drain(ctx context.Context, client *kafka.Client) error {
	shape, err := r.w.o.Lander.Shape(ctx, r.landing())
	if err != nil {
		return err //nolint:wrapcheck // land names the table
	}
	down := time.Time{}
	for range passesMax {
		if !r.behind() {
			return nil
		}
		err = r.pass(ctx, client, shape)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errAgain):
			down = time.Time{}
		case land.Lost(err):
			if down.IsZero() {
				down = time.Now()
			}
			if time.Since(down) > databaseWaitMax {
				return err
			}
			r.log.Warn("the database went away; the run goes on when it is back", "error", err)
		default:
			return err
		}
		if err := r.again(ctx, !down.IsZero()); err != nil {
			return err
		}
		if shape, err = r.w.o.Lander.Shape(ctx, r.landing()); err != nil && !land.Lost(err) {
			return err //nolint:wrapcheck // land names the table
		}
	}
	return &stop{end: failed("schema_changed", fmt.Sprintf("the table changed its shape %d times during the run", passesMax), "Run the connector again when nobody alters the table.")}
}

// behind tells whether any partition is below its target.
func (r *run) behind() bool {
	for _, s := range r.spans {
		if s.From < s.Target {
			return true
		}
	}
	return false
}

// again sets the spans to what the database has stored, waiting for it where it is away.
func (r *run) again(ctx context.Context, wait bool) error {
	pause := databaseBackoffMin
	for {
		if wait {
			select {
			case <-r.reading.Done():
				return stopped(r.reading)
			case <-time.After(pause/2 + rand.N(pause/2)):
			}
			pause = min(2*pause, databaseBackoffMax)
		}
		planned, err := r.w.o.Store.Planned(ctx, r.c.RunID)
		if err == nil {
			at := make(map[int32]int64, len(planned))
			for _, p := range planned {
				at[p.Partition] = p.Next
			}
			for i := range r.spans {
				r.spans[i].From = at[r.spans[i].Partition]
			}
			return nil
		}
		if time.Since(r.begun) > slice {
			return errSlice
		}
		wait = true
	}
}

// pass runs the three stages at once until all that was asked for is landed, or one of them fails.
func (r *run) pass(ctx context.Context, client *kafka.Client, shape *table.Shape) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reading, stopReading := context.WithCancel(r.reading)
	defer stopReading()
	p := &pipe{run: r, spans: slices.Clone(r.spans), batches: make(chan kafka.Batch), chunks: make(chan cut), shapes: make(chan *table.Shape, 1), done: ctx.Done()}
	p.builder = build.New(r.building())
	read, built := make(chan error, 1), make(chan error, 1)
	go func() { read <- p.read(reading, client) }()
	go func() { built <- p.build(shape) }()
	landErr := p.land(ctx, shape)
	stopReading()
	cancel()
	readErr, buildErr := <-read, <-built
	for _, err := range []error{landErr, stopped(r.reading), buildErr, readErr} {
		if err != nil {
			return err
		}
	}
	return nil
}

// pipe is the three stages of one pass and what they hand over. Only the reader's hand-over is bounded by bytes; the
// other holds one chunk.
type pipe struct {
	run     *run
	spans   []plan.Span // a copy: landing moves the run's own while these are read
	builder *build.Builder
	batches chan kafka.Batch
	chunks  chan cut
	shapes  chan *table.Shape // the shape after a chunk that is a barrier
	done    <-chan struct{}
}

// cut is a chunk on its way to be landed. A barrier changes the table's shape: the next one is built when that is done.
type cut struct {
	*land.Chunk
	barrier bool
}

var errAbandoned = errors.New("the pass was abandoned")

func (p *pipe) read(ctx context.Context, client *kafka.Client) error {
	defer close(p.batches)
	drained, err := client.Drain(ctx, p.run.topic, p.spans, func(b kafka.Batch) error {
		select {
		case p.batches <- b:
			return nil
		case <-p.done:
			return errAbandoned
		}
	})
	p.run.unreached(drained)
	if err != nil {
		return fmt.Errorf("reading %s: %w", p.run.m.Topic, err)
	}
	return nil
}

// build turns batches into chunks.
func (p *pipe) build(shape *table.Shape) error {
	defer close(p.chunks)
	for b := range p.batches {
		p.run.proved[b.Partition] = emptyEnd(b)
		p.builder.Add(b)
		for p.builder.Full() {
			var err error
			if shape, err = p.hand(shape); err != nil {
				return err
			}
		}
	}
	for p.builder.Pending() {
		var err error
		if shape, err = p.hand(shape); err != nil {
			return err
		}
	}
	return nil
}

// emptyEnd tells whether a batch ends with offsets that hold no record: markers, aborted records, a compaction hole.
func emptyEnd(b kafka.Batch) bool {
	return len(b.Records) == 0 || b.Records[len(b.Records)-1].Offset < b.Next-1
}

func (p *pipe) hand(shape *table.Shape) (*table.Shape, error) {
	c, err := p.builder.Cut(shape)
	if err != nil {
		return shape, err //nolint:wrapcheck // build names the message
	}
	made := shape == nil && len(c.Rows) > 0
	next := cut{Chunk: c, barrier: made || len(c.Alters) > 0}
	select {
	case p.chunks <- next:
	case <-p.done:
		return shape, errAbandoned
	}
	if !next.barrier {
		return shape, nil
	}
	select {
	case shape = <-p.shapes:
		return shape, nil
	case <-p.done:
		return shape, errAbandoned
	}
}

// land commits chunks in the order built until there are no more, or the run is to stop after the chunk in hand.
func (p *pipe) land(ctx context.Context, shape *table.Shape) error {
	r := p.run
	for c := range p.chunks {
		if why := stopped(r.reading); why != nil {
			return why
		}
		begun := time.Now()
		landed, err := r.w.o.Lander.Land(ctx, r.landing(), c.Chunk, shape)
		if err != nil {
			switch why := stopped(r.reading); {
			case errors.Is(err, land.ErrShapeChanged):
				return errAgain
			case errors.Is(err, land.ErrStopped) && why != nil:
				return why
			}
			return err //nolint:wrapcheck // land names the chunk
		}
		r.w.o.Meter.Chunk(landed.Written, landed.Duplicates, landed.Letters, time.Since(begun))
		shape = landed.Shape
		r.letters += landed.Letters
		r.moved(c.Chunk)
		p.builder.Landed(int(landed.Written+landed.Duplicates), r.behind())
		if c.barrier {
			p.shapes <- shape
		}
		if err := r.after(ctx, c.Chunk, landed); err != nil {
			return err
		}
	}
	return nil
}

// moved takes the committed positions into the spans.
func (r *run) moved(c *land.Chunk) {
	for _, a := range c.Advances {
		i, ok := slices.BinarySearchFunc(r.spans, a.Partition, func(s plan.Span, p int32) int { return int(s.Partition) - int(p) })
		if ok {
			r.spans[i].From = a.To
		}
	}
}

// after looks at what a committed chunk means for the run: a cancel asked for, the poison budget, the slice of time.
func (r *run) after(ctx context.Context, c *land.Chunk, l land.Landed) error {
	for _, line := range l.Said {
		r.say(ctx, "INFO", line)
	}
	for _, f := range c.Findings {
		r.sayFinding(ctx, plan.Finding(f))
	}
	if l.Cancelled {
		return errCancelled
	}
	good := l.Written + l.Duplicates
	for _, a := range c.Advances {
		good += a.Filtered + a.Tombstones
	}
	switch {
	case good > 0:
		r.poison = 0
	case l.Letters > 0:
		r.poison++
	}
	if r.poison >= r.m.PoisonChunks {
		return &stop{end: partial("poison_budget",
			fmt.Sprintf("%d chunks in a row held not one message that could be read as %s; the run stopped with its positions kept", r.poison, r.m.Format),
			"Look at connector.dlq: where spec.format does not fit the topic, correct it; else the next run goes on.")}
	}
	if time.Since(r.begun) > slice && r.behind() {
		return errSlice
	}
	return nil
}

// unreached keeps a sentence for every partition whose end could not be proved.
func (r *run) unreached(d kafka.Drained) {
	for _, n := range d.NotProved {
		r.notProved[n.Partition] = n.Message
	}
}

// landing says for whom a chunk is landed.
func (r *run) landing() land.Run {
	return land.Run{
		ID: r.c.RunID, Connector: r.c.Connector, ConnectorID: r.c.ConnectorID, TenantID: r.c.TenantID, Table: r.c.TableName,
		Fence: r.c.Fence, Topic: r.m.Topic, TopicID: r.topic.ID.TopicID, MappingVersion: r.c.MappingVersion, Made: r.c.TableMade, Stop: r.reading.Done(),
	}
}

// building says what becomes of the topic's messages.
func (r *run) building() build.Options {
	o := build.Options{
		Format: r.m.Format, Layout: r.m.Layout, Include: r.m.Include, Rename: r.m.Rename, Exclude: r.m.Exclude, Only: r.m.Only,
		Types: r.m.Types, Strict: r.m.Schema == "strict", TypeChange: r.m.TypeChange, Dedup: r.m.Dedup,
		Topic: r.m.Topic, TopicID: r.topic.ID.TopicID, ClusterID: r.topic.ID.Cluster, RunID: r.c.RunID,
		ChunkRows: r.m.rows(), ChunkBytes: int(r.m.ChunkBytes), MaxMessageBytes: int(r.m.MaxMessageBytes),
	}
	if r.m.Filter != nil {
		o.Filter = &build.Filter{Headers: r.m.Filter.Headers, KeyPrefix: r.m.Filter.KeyPrefix}
	}
	return o
}
