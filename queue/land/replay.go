package land

import (
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"highwater/sql/stmt"
)

// ErrLetterClosed is returned where the dead letter that a chunk decodes again was closed meanwhile, or is gone. Nothing was
// written.
var ErrLetterClosed = errors.New("the dead letter is no longer open")

// replays says whether the chunk is a dead letter decoded again.
func (c *Chunk) replays() bool { return c.Replay != uuid.Nil }

// queuePosition locks what the chunk moves on and compares it with what the chunk was made for: the positions, or the letter.
func (a *attempt) queuePosition(b *pgx.Batch) {
	if !a.c.replays() {
		b.Queue(stmt.LandLock, a.run.ConnectorID, a.partitions()).Query(a.compare)
		return
	}
	b.Queue(stmt.RetryLock, a.run.ID, a.c.Replay).QueryRow(func(row pgx.Row) error {
		var l lockedLetter
		switch err := l.scan(row); {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrLetterClosed
		case err != nil:
			return err
		case l.fence != a.run.Fence || l.done:
			return ErrFenced
		case !l.open:
			return ErrLetterClosed
		}
		return nil
	})
}

// queueOutcome asks under the lock whether the letter was settled by this chunk or is as it was.
func (a *attempt) queueOutcome(b *pgx.Batch, here, untouched *int) {
	b.Queue(stmt.RetryLock, a.run.ID, a.c.Replay).QueryRow(func(row pgx.Row) error {
		var l lockedLetter
		if err := l.scan(row); err != nil {
			return ignoreNoRows(err)
		}
		switch {
		case l.done && l.chunk != nil && *l.chunk == a.c.ID:
			*here = 1
		case !l.done && l.fence == a.run.Fence:
			*untouched = 1
		}
		return nil
	})
}

// lockedLetter is a letter's state under its lock.
type lockedLetter struct {
	fence int64
	done  bool
	chunk *uuid.UUID
	open  bool
}

func (l *lockedLetter) scan(row pgx.Row) error { return row.Scan(&l.fence, &l.done, &l.chunk, &l.open) }
