package land

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"highwater/sql/stmt"
	"highwater/sql/table"
)

// Lander lands chunks. It keeps no connection between two of them and is safe for concurrent use, but the chunks of one
// run are to be handed to it one after the other, in the order in which their positions follow each other.
type Lander struct {
	pool    *pgxpool.Pool
	o       Options
	scratch sync.Pool // *scratch

	mu   sync.Mutex
	runs map[uuid.UUID]*memory // by connector
}

// Options are what a Lander may be given; the zero value is fit for use.
type Options struct {
	Failpoint       func(step string) // called at each of [Steps]; nil outside tests
	Logger          *slog.Logger      // default: none
	LockTimeout     time.Duration     // for locks of rows and tables, 5 s
	DDLTimeout      time.Duration     // for the lock of a chunk that alters the table, 1 s
	IdleTimeout     time.Duration     // after which the server ends a transaction of a paused sidecar, 10 s
	WaitMax         time.Duration     // cuts short how long any fault is waited for; 0 leaves every kind its own bound
	RewriteRowsMax  int64             // rows up to which a column is widened by a rewrite, table.RewriteRowsMax
	RefusalsMax     int               // refused rows in one transaction before the chunk is halved, 32
	letterBytesHold int               // bytes of dead letters in one statement; tests lower it
}

const (
	lockTimeout = 5 * time.Second
	ddlTimeout  = time.Second
	idleTimeout = 10 * time.Second
	// statementTimeout ends a statement that hangs in the server; the longest honest one rewrites a table of a million rows.
	statementTimeout = 5 * time.Minute
	// commitWait bounds the wait for COMMIT's answer; after it the outcome counts as unknown and is looked up.
	commitWait = 30 * time.Second
	// rollbackWait bounds the courtesy of telling the server that a transaction is over; else the connection is closed.
	rollbackWait = 2 * time.Second
	// refusalsMax keeps a transaction's savepoints below the 64 that a backend reports cheaply (PGPROC_MAX_CACHED_SUBXIDS).
	refusalsMax = 32
	// letterBytesHold bounds what one statement with dead letters carries.
	letterBytesHold = 8 << 20
)

// Steps are the places in a chunk's transaction at which a failpoint is called, in their order; a chunk passes "altered" only
// where it makes or alters the table, "rolled-back" only where rows were refused or had landed before.
var Steps = []string{"begin", "locked", "altered", "copying", "rolled-back", "copied", "advanced", "commit-sent", "committed"}

// New makes a lander on a pool whose role is an inheriting member of table.Owner.
func New(pool *pgxpool.Pool, o Options) *Lander {
	def(&o.LockTimeout, lockTimeout)
	def(&o.DDLTimeout, ddlTimeout)
	def(&o.IdleTimeout, idleTimeout)
	def(&o.RewriteRowsMax, table.RewriteRowsMax)
	def(&o.RefusalsMax, refusalsMax)
	def(&o.letterBytesHold, letterBytesHold)
	if o.Failpoint == nil {
		o.Failpoint = func(string) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Lander{pool: pool, o: o, runs: map[uuid.UUID]*memory{}}
	l.scratch.New = func() any { return &scratch{} }
	return l
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Run says for whom chunks are landed. It is the same for all chunks of a run.
type Run struct {
	ID             uuid.UUID
	Connector      string
	ConnectorID    uuid.UUID
	TenantID       int64
	Table          string // name of the table in schema connector
	Fence          int64
	Topic          string
	TopicID        uuid.UUID // zero where the broker has no topic ids
	MappingVersion int32
	Made           bool            // the table was made before; it is not made again
	Stop           <-chan struct{} // closed when the run is to stop: then no fault is waited for, see ErrStopped; may be nil
}

// Landed says what became of a chunk. Written, Duplicates and Letters add up to its rows and letters.
type Landed struct {
	Written, Duplicates, Letters int64
	Partitions                   []Counts      // in partition order
	Cancelled                    bool          // somebody asked for the run to be cancelled
	Said                         []string      // lines for the run's log, level INFO: what was made or widened
	Shape                        *table.Shape  // the table after the chunk; nil while there is none
	NewColumns                   []table.Alter // columns that were added
	Widened                      []table.Widening
}

// Counts says what became of one partition's rows and letters.
type Counts struct {
	Partition                    int32
	Written, Duplicates, Letters int64
}

// Land commits a chunk: its new columns, rows, dead letters and counters, and the moved positions; or nothing of it. shape is
// the table that the chunk was built for, nil for one that is yet to be made.
//
// Rows whose hash the table has already count as duplicates. A row that the database refuses becomes a dead letter; a chunk
// with many of them is committed in parts, and an error may then come with a Landed that tells what the parts before it did.
// Faults of the environment are waited for within their bounds.
//
// Its errors are [ErrFenced], [ErrShapeChanged] (with Landed.Shape), [ErrLetterClosed], [ErrStopped], [*Error], and the context's own; after the
// last two what became of the chunk is for the stored positions to say.
func (l *Lander) Land(ctx context.Context, run Run, c *Chunk, shape *table.Shape) (Landed, error) {
	if err := c.Check(); err != nil {
		return Landed{}, &Error{Code: "internal", Message: err.Error(), Hint: "This is a defect of the sidecar: its log has the details.", err: err}
	}
	landed, err := l.whole(ctx, run, c, shape, false)
	var many *tooMany
	if errors.As(err, &many) {
		return l.parts(ctx, run, c, shape, many.hopeless)
	}
	return landed, err
}

// whole lands a chunk in one transaction, trying again for as long as its faults are waited for. unlimited: any number of rows
// may be refused.
func (l *Lander) whole(ctx context.Context, run Run, c *Chunk, shape *table.Shape, unlimited bool) (Landed, error) {
	s, _ := l.scratch.Get().(*scratch)
	defer l.scratch.Put(s)
	var w waiting
	for {
		a := &attempt{l: l, run: run, c: c, shape: shape, scratch: s, memory: l.remember(run), unlimited: unlimited}
		err := a.land(ctx)
		if errors.Is(err, errUnknown) {
			// Where it was not committed, the positions are where they were: this attempt never happened.
			if a.committed, err = l.resolve(ctx, run, c, err); err == nil && !a.committed {
				continue
			}
		}
		var many *tooMany
		switch {
		case err == nil:
			return a.landed, nil
		case ctx.Err() != nil:
			return Landed{}, fmt.Errorf("%s: %w", where(run, c), ctx.Err())
		case errors.Is(err, ErrShapeChanged):
			return Landed{Shape: a.shape}, err
		case errors.As(err, &many), errors.Is(err, ErrStopped), errors.Is(err, ErrLetterClosed):
			return Landed{}, err
		}
		v := a.verdict(err)
		if !w.again(ctx, run, v, l.o.WaitMax) {
			return Landed{}, l.failed(run, where(run, c), v, w.gaveUp(err))
		}
		l.o.Logger.Info("a chunk is tried again", "connector", run.Connector, "run_id", run.ID, "error", clean(plain(err)))
		if v.Lost {
			l.pool.Reset() // the other idle connections are no better
		}
	}
}

// Shape reads the table of a run as it is now, nil where it is yet to be made. A table that was made before and is gone is an
// [*Error] with code table_missing; it is never made anew under stored positions.
func (l *Lander) Shape(ctx context.Context, run Run) (*table.Shape, error) {
	var w waiting
	what := "looking at " + table.Quoted(run.Table)
	for {
		shape, err := l.look(ctx, run)
		switch {
		case err == nil:
			return shape.Refusing(l.remember(run).refused), nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%s: %w", what, ctx.Err())
		case !w.again(ctx, run, Fate(err), l.o.WaitMax):
			return nil, l.failed(run, what, Fate(err), w.gaveUp(err))
		}
	}
}

func (l *Lander) look(ctx context.Context, run Run) (shape *table.Shape, err error) {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	a := &attempt{l: l, run: run, conn: conn.Conn()}
	defer a.release(ctx, conn)
	made := run.Made
	b := a.begin()
	b.Queue(stmt.TableWasMade, run.ConnectorID).QueryRow(func(row pgx.Row) error {
		return ignoreNoRows(row.Scan(&made))
	})
	if err := a.send(ctx, b); err != nil {
		return nil, err
	}
	shape, err = table.Read(ctx, a.conn, run.Table)
	if errors.Is(err, table.ErrMissing) && !made && !run.Made {
		return nil, nil //nolint:nilnil // a nil shape is the shape of a table that is yet to be made
	}
	return shape, err //nolint:wrapcheck // table names the table
}

// waiting keeps account of how long faults have been waited for.
type waiting struct {
	since   time.Time
	pause   time.Duration
	stopped bool // by the run's Stop
}

// gaveUp is err, as one that was given up because the run is to stop where that was so.
func (w *waiting) gaveUp(err error) error {
	if w.stopped {
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	return err
}

// again waits out a fault and says whether to try once more: not where the fault is none to wait for, where its time is up,
// or where the run is to stop.
func (w *waiting) again(ctx context.Context, run Run, v Verdict, most time.Duration) bool {
	if v.Do != RetryChunk {
		return false
	}
	total := v.Wait.Total
	if most > 0 {
		total = min(total, most)
	}
	if w.since.IsZero() {
		w.since = time.Now()
	}
	if time.Since(w.since) > total {
		return false
	}
	w.pause = min(max(2*w.pause, v.Wait.Min), v.Wait.Max)
	// Jittered, so that two that met each other do not meet again.
	timer := time.NewTimer(w.pause/2 + rand.N(w.pause/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-run.Stop:
		w.stopped = true
		return false
	}
}

// memory is what a lander keeps of a run between two of its chunks.
type memory struct {
	run       uuid.UUID
	lookFirst bool             // the last chunk met rows that the table had: look them up before copying
	refused   []*table.Refused // alters that the server will not do
}

func (l *Lander) remember(run Run) *memory {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.runs[run.ConnectorID]
	if m == nil || m.run != run.ID {
		m = &memory{run: run.ID}
		l.runs[run.ConnectorID] = m
	}
	return m
}
