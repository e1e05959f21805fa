package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"highwater/sql/stmt"
)

// Letter is a dead letter as it is stored, to be decoded again.
type Letter struct {
	ID        uuid.UUID
	Topic     string
	TopicID   *uuid.UUID // nil where the broker had no topic ids
	Partition int32
	Offset    int64
	Key       *string         // nil where there was none; "base64:" and the bytes where they are no text
	Headers   json.RawMessage // pairs of a name and a value, nil where there were none
	Raw       []byte
}

// Bounds of one call of [Store.RetryLetters].
const (
	lettersMax     = 500
	letterBytesMax = 8 << 20
)

// IsRetry tells whether a run decodes dead letters again, instead of reading its topic.
func (s *Store) IsRetry(ctx context.Context, runID uuid.UUID) (is bool, err error) {
	if err := s.pool.QueryRow(ctx, stmt.RetryIs, runID).Scan(&is); err != nil {
		return false, fmt.Errorf("asking what run %s is: %w", runID, err)
	}
	return is, nil
}

// RetryLetters reads the next open letters that the run is still to decode again, in the order of their offsets; none when it
// is done. At most 500, and 8 MiB of values but for a single one.
func (s *Store) RetryLetters(ctx context.Context, runID uuid.UUID) ([]Letter, error) {
	rows, err := s.pool.Query(ctx, stmt.RetryLetters, runID, lettersMax, letterBytesMax)
	if err != nil {
		return nil, fmt.Errorf("reading the dead letters of run %s: %w", runID, err)
	}
	l, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Letter])
	if err != nil {
		return nil, fmt.Errorf("reading the dead letters of run %s: %w", runID, err)
	}
	return l, nil
}
