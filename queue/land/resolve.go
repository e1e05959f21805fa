package land

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"highwater/sql/stmt"
)

// waitUnknown bounds how long the outcome of a COMMIT is asked for. A transaction that still holds the positions ends by
// itself after IdleTimeout; the rest is for a server that restarts.
var waitUnknown = Wait{Min: 20 * time.Millisecond, Max: time.Second, Total: 60 * time.Second}

// resolve finds out whether a chunk whose COMMIT was not answered was committed. It asks under the positions' lock, for which
// it waits until the old session is done: an answer without the lock could be true now and untrue a moment later.
//
// It returns ErrFenced where the positions have gone on without this chunk.
func (l *Lander) resolve(ctx context.Context, run Run, c *Chunk, cause error) (committed bool, err error) {
	var w waiting
	for {
		committed, err = l.outcome(ctx, run, c)
		if err == nil || errors.Is(err, ErrFenced) || ctx.Err() != nil {
			return committed, err
		}
		v := Fate(err)
		if v.Do == RetryChunk {
			v.Wait = waitUnknown
		}
		if v.Lost {
			l.pool.Reset()
		}
		if !w.again(ctx, run, v, l.o.WaitMax) {
			v.Lost = true // whoever goes on reads the stored positions first, and those know
			return false, l.failed(run, where(run, c)+": whether it was committed could not be found out", v, w.gaveUp(fmt.Errorf("%w, then: %w", cause, err)))
		}
	}
}

// outcome asks once.
func (l *Lander) outcome(ctx context.Context, run Run, c *Chunk) (committed bool, err error) {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	a := &attempt{l: l, run: run, c: c, conn: conn.Conn()}
	defer a.release(ctx, conn)
	b := a.begin()
	here, untouched := 0, 0
	if c.replays() {
		a.queueOutcome(b, &here, &untouched)
	} else {
		a.queueOutcomes(b, &here, &untouched)
	}
	if err := a.send(ctx, b); err != nil {
		return false, err
	}
	switch len(c.Advances) {
	case here:
		return true, nil
	case untouched:
		return false, nil
	}
	return false, ErrFenced
}

// queueOutcomes asks under the lock how many positions this chunk has moved, and how many are as they were.
func (a *attempt) queueOutcomes(b *pgx.Batch, here, untouched *int) {
	b.Queue(stmt.LandLock, a.run.ConnectorID, a.partitions()).Query(func(rows pgx.Rows) error {
		var (
			partition   int32
			next, fence int64
			last        *uuid.UUID
		)
		_, err := pgx.ForEachRow(rows, []any{&partition, &next, &fence, &last}, func() error {
			i, ok := a.c.advance(partition)
			switch {
			case ok && last != nil && *last == a.c.ID:
				*here++
			case ok && next == a.c.Advances[i].From && fence == a.run.Fence:
				*untouched++
			}
			return nil
		})
		return err
	})
}
