package land

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"highwater/sql/stmt"
	"highwater/sql/table"
)

// attempt is one transaction that tries to land a chunk.
//
// Locks are taken in the order endpoint (only where the table is made), positions by partition, table: the order of everybody
// else who takes more than one of them.
type attempt struct {
	l       *Lander
	run     Run
	c       *Chunk
	shape   *table.Shape // as the chunk was built for; later as the server has it
	scratch *scratch
	memory  *memory
	conn    *pgx.Conn

	altering  bool // between asking for the lock of an ALTER and its end
	committed bool
	unlimited bool // the chunk cannot be parted, so any number of rows may be refused
	landed    Landed

	ids      ids
	group    int32 // of the rows being copied
	dirty    bool  // rows were copied since the savepoint
	sure     int   // depth of copies that ought to succeed by what COPY said of the lines before
	distrust bool  // COPY named a wrong line
	refused  []refusal
	copied   int // rows that the table took
}

// land does everything from BEGIN to COMMIT. errUnknown says that COMMIT was sent and its answer is missing.
func (a *attempt) land(ctx context.Context) error {
	conn, err := a.l.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	a.conn = conn.Conn()
	defer a.release(ctx, conn)
	a.l.o.Failpoint("begin")
	if err := a.open(ctx); err != nil {
		return err
	}
	a.l.o.Failpoint("locked")
	if a.changes() {
		if err := a.change(ctx); err != nil {
			return err
		}
		a.l.o.Failpoint("altered")
	}
	if len(a.c.Rows) > 0 {
		if err := a.write(ctx); err != nil {
			return err
		}
		a.l.o.Failpoint("copied")
	}
	if err := a.close(ctx); err != nil {
		return err
	}
	a.l.o.Failpoint("advanced")
	return a.commit(ctx)
}

// makes says whether the chunk is the one that makes the table.
func (a *attempt) makes() bool { return a.shape == nil && len(a.c.Rows) > 0 }

// changes says whether the chunk makes or alters the table.
func (a *attempt) changes() bool { return a.makes() || a.shape != nil && len(a.c.Alters) > 0 }

// begin starts a batch that starts the transaction. READ COMMITTED is said openly: only there does a lock that was waited for
// show the row as it is now. Whether the transaction may write is left to the server, so that a standby's answer is heard.
func (a *attempt) begin() *pgx.Batch {
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	b.Queue(stmt.LandSettings, ms(a.l.o.LockTimeout), ms(statementTimeout), ms(a.l.o.IdleTimeout))
	return b
}

func ms(d time.Duration) string { return strconv.FormatInt(max(d.Milliseconds(), 1), 10) }

func (a *attempt) send(ctx context.Context, b *pgx.Batch) error {
	return a.conn.SendBatch(ctx, b).Close()
}

// open begins, locks the positions and compares them with the chunk; where the chunk does not change the table, the same round
// trip locks the table, looks whether it is still the one in hand, takes the ids and sets the savepoint.
func (a *attempt) open(ctx context.Context) error {
	if a.makes() && a.run.Made {
		return table.ErrMissing
	}
	b := a.begin()
	if a.makes() {
		b.Queue(stmt.TableMade, a.run.ConnectorID, a.run.Fence).QueryRow(func(row pgx.Row) error {
			var made bool
			return fencedWithoutRow(row.Scan(&made))
		})
	}
	a.queuePosition(b)
	var state table.State
	existing := a.shape != nil && len(a.c.Rows) > 0 && !a.changes()
	if existing {
		a.queueLock(b, "ROW EXCLUSIVE", &state)
		a.queueIDs(b)
	}
	if err := a.send(ctx, b); err != nil {
		return a.vanished(ctx, err)
	}
	if existing && !state.Same(a.shape) {
		return a.adopt(ctx)
	}
	return nil
}

func (a *attempt) partitions() []int32 {
	p := make([]int32, len(a.c.Advances))
	for i, adv := range a.c.Advances {
		p[i] = adv.Partition
	}
	return p
}

// compare holds the locked positions against those that the chunk was read from.
func (a *attempt) compare(rows pgx.Rows) error {
	i, same := 0, true
	var (
		partition   int32
		next, fence int64
		last        *uuid.UUID
	)
	_, err := pgx.ForEachRow(rows, []any{&partition, &next, &fence, &last}, func() error {
		same = same && i < len(a.c.Advances) && a.c.Advances[i].Partition == partition && a.c.Advances[i].From == next && fence == a.run.Fence
		i++
		return nil
	})
	if err != nil {
		return err
	}
	if !same || i != len(a.c.Advances) {
		return ErrFenced
	}
	return nil
}

func fencedWithoutRow(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrFenced
	}
	return err
}

func ignoreNoRows(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// queueLock asks for the table's lock and then for its state, which nobody can change from there on.
func (a *attempt) queueLock(b *pgx.Batch, mode string, state *table.State) {
	b.Queue(fmt.Sprintf("LOCK TABLE ONLY %s IN %s MODE", table.Quoted(a.run.Table), mode))
	b.Queue(stmt.TableCheck, a.run.Table).QueryRow(func(row pgx.Row) error { return ignoreNoRows(state.Scan(row)) })
}

// vanished looks what is behind an error that says that a relation is not there, is none that can be written to, or is not
// ours to write to: somebody may have put another in its place.
func (a *attempt) vanished(ctx context.Context, err error) error {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || a.conn.IsClosed() {
		return err
	}
	switch pe.Code {
	case "42P01", "42703", "42809":
		return a.reread(ctx, err)
	case "42501":
		if found := a.reread(ctx, err); !errors.Is(found, ErrShapeChanged) {
			return found
		}
	}
	return err
}

// reread gives up the transaction and says why a table is not as the chunk expects it; err where that cannot be seen.
func (a *attempt) reread(ctx context.Context, err error) error {
	if _, rerr := a.conn.Exec(ctx, "ROLLBACK"); rerr != nil {
		return err
	}
	if rerr := a.send(ctx, a.begin()); rerr != nil {
		return err
	}
	if rerr := a.adopt(ctx); rerr != nil {
		return rerr
	}
	return ErrShapeChanged
}

// adopt reads the table's shape anew and goes on with it where the chunk fits it; else the chunk has to be built anew.
func (a *attempt) adopt(ctx context.Context) error {
	now, err := table.Read(ctx, a.conn, a.run.Table)
	if err != nil {
		return err //nolint:wrapcheck // table names the table
	}
	fits := a.c.fits(a.shape, now)
	a.shape = now.Refusing(a.memory.refused)
	a.landed.Shape = a.shape
	if !fits {
		return ErrShapeChanged
	}
	a.ids = ids{}
	return nil
}

// fits says whether a chunk that was built for one shape can be landed in another: its columns are there in the same types,
// and what it would alter is still to be altered.
func (c *Chunk) fits(built, now *table.Shape) bool {
	alters := make(map[string]table.Alter, len(c.Alters))
	for _, a := range c.Alters {
		alters[a.Column] = a
		if _, exists := now.Column(a.Column); exists != a.Widen {
			return false
		}
	}
	for _, group := range c.Columns {
		for _, name := range group {
			if a, ok := alters[name]; ok && !a.Widen {
				continue
			}
			was, had := built.Column(name)
			is, has := now.Column(name)
			if !had || !has || is.Generated || is.SQLType != was.SQLType || is.HasDefault != was.HasDefault {
				return false
			}
		}
	}
	return true
}

// close stores the dead letters, counts the chunk and moves the positions.
func (a *attempt) close(ctx context.Context) error {
	a.count()
	a.landed.Shape = a.shape
	b := &pgx.Batch{}
	if err := a.queueLetters(b); err != nil {
		return err
	}
	done := func(row pgx.Row) error { return fencedWithoutRow(row.Scan(&a.landed.Cancelled)) }
	if a.c.replays() {
		b.Queue(stmt.RetryDone, a.run.ID, a.run.Fence, a.c.ID, a.c.Replay, a.advances()).QueryRow(done)
	} else {
		b.Queue(stmt.LandAdvance, a.run.ID, a.run.Fence, a.c.ID, a.advances()).QueryRow(done)
	}
	return a.send(ctx, b)
}

// commit ends the transaction. The caller's context no longer counts: between COMMIT and its answer there is nothing to stop.
func (a *attempt) commit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitWait)
	defer cancel()
	a.l.o.Failpoint("commit-sent")
	tag, err := a.conn.Exec(ctx, "COMMIT")
	var pe *pgconn.PgError
	switch {
	case err == nil && tag.String() == "COMMIT":
		a.committed = true
		a.l.o.Failpoint("committed")
		return nil
	case err == nil:
		return fmt.Errorf("the server answered COMMIT with %s", tag)
	case errors.As(err, &pe) && !a.conn.IsClosed():
		return err
	}
	return fmt.Errorf("%w: %w", errUnknown, err)
}

// release gives the connection back, out of any transaction; one that cannot be brought there is closed.
func (a *attempt) release(ctx context.Context, conn *pgxpool.Conn) {
	if !a.conn.IsClosed() && a.conn.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackWait)
		defer cancel()
		_, _ = a.conn.Exec(ctx, "ROLLBACK") // a failure leaves the connection in no state that the pool keeps
	}
	conn.Release()
}

// verdict is what an error means at the point that the attempt has reached.
func (a *attempt) verdict(err error) Verdict {
	v := Fate(err)
	switch {
	case a.altering && (v.Code == "database_error") && lockState(err):
		v.Wait, v.Code = waitDDL, "ddl_lock_timeout"
		v.Hint = fmt.Sprintf("Somebody reads or holds %s for longer than the lock is waited for: SELECT pid, query FROM pg_stat_activity WHERE pid IN (SELECT pid FROM pg_locks WHERE relation = %s::regclass); %s",
			table.Quoted(a.run.Table), "'"+strings.ReplaceAll(table.Quoted(a.run.Table), "'", "''")+"'", goesOn)
	case v.Do == RefuseRow:
		v = operators // a row's code, but not from copying rows
	case v.Do == StopRun && a.conn != nil && a.conn.IsClosed() && v.Code == "internal":
		v = gone
	}
	return v
}

func lockState(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && (pe.Code == "55P03" || pe.Code == "40P01")
}
