package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"highwater/sql/stmt"
)

// Plan is what a run is to read, as it is stored: one entry for every partition of the topic.
type Plan struct {
	ClusterID  string          `json:"cluster_id,omitempty"`
	Topic      string          `json:"topic"`
	TopicID    *uuid.UUID      `json:"topic_id,omitempty"`
	MeasuredAt time.Time       `json:"measured_at"`
	Partitions []PlanPartition `json:"partitions"`
}

// PlanPartition is one partition's share of a [Plan]. Start and Target are next offsets; LostFrom and LostTo are both
// lost offsets, nil where nothing was lost.
type PlanPartition struct {
	Partition     int32  `json:"partition"`
	Start         int64  `json:"start"`
	Target        int64  `json:"target"`
	Epoch         int32  `json:"epoch"`
	LostFrom      *int64 `json:"lost_from,omitempty"`
	LostTo        *int64 `json:"lost_to,omitempty"`
	LogStart      int64  `json:"log_start"`
	HighWatermark int64  `json:"high_watermark"`
}

// SavePlan stores a run's targets and moves the positions to where it begins, in one transaction. It returns
// [ErrFenced] where the lease is no longer fence's.
func (s *Store) SavePlan(ctx context.Context, runID uuid.UUID, fence int64, p Plan) error {
	if _, err := s.pool.Exec(ctx, stmt.SavePlan, runID, fence, p); err != nil {
		return fmt.Errorf("storing the plan of run %s: %w", runID, fenced(err))
	}
	return nil
}

// Position is one partition's stored position. LeaderEpoch is -1 when unknown.
type Position struct {
	Partition   int32
	NextOffset  int64
	LeaderEpoch int32
	Sought      bool
}

// Positions reads the stored positions of a connector, in partition order; none when it was never read.
func (s *Store) Positions(ctx context.Context, connectorID uuid.UUID) ([]Position, error) {
	rows, err := s.pool.Query(ctx, stmt.Positions, connectorID)
	if err != nil {
		return nil, fmt.Errorf("reading stored positions: %w", err)
	}
	p, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Position])
	if err != nil {
		return nil, fmt.Errorf("reading stored positions: %w", err)
	}
	return p, nil
}

// PlannedPartition is what a run planned for a partition and how far it has come. LostFrom is -1 where nothing was lost.
type PlannedPartition struct {
	Partition           int32
	Start, Target, Next int64
	LostFrom, LostTo    int64
}

// Planned reads the plan of a run that is being taken over, in partition order.
func (s *Store) Planned(ctx context.Context, runID uuid.UUID) ([]PlannedPartition, error) {
	rows, err := s.pool.Query(ctx, stmt.Planned, runID)
	if err != nil {
		return nil, fmt.Errorf("reading the plan of run %s: %w", runID, err)
	}
	p, err := pgx.CollectRows(rows, pgx.RowToStructByPos[PlannedPartition])
	if err != nil {
		return nil, fmt.Errorf("reading the plan of run %s: %w", runID, err)
	}
	return p, nil
}
