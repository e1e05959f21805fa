// Package store sends the sidecar's statements about runs: leases, plans, positions, the ledger and the log.
//
// It knows nothing of Kafka or of the rows of a table (package table, package land). Every method is one round trip and
// one transaction of the server. **Nothing here decides who may write: the server does, by the fence of a lease.**
//
// Types to know: [Store], [Claim], [Plan].
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"highwater/sql/stmt"
)

// LeaseTTL is how long a lease lasts without a heartbeat; a run whose sidecar went silent is taken over after it.
const LeaseTTL = 10 * time.Second

// fencedState is the SQLSTATE by which the server says that a lease is no longer the caller's.
const fencedState = "KC010"

// ErrFenced is returned where the run's lease has passed to another holder: nothing was written, and nothing may be.
var ErrFenced = errors.New("the lease of this run has passed to another sidecar")

// Outcomes of [Store.Claim].
const (
	Claimed = "claimed" // the lease is ours; go on
	Ended   = "ended"   // the run has ended already, or just now as cancelled
	Deleted = "deleted" // the connector is gone; the run was ended as cancelled
	Skipped = "skipped" // another run is active; this one was ended as cancelled
	Wait    = "wait"    // another run is active and this one waits for it
	Busy    = "busy"    // another sidecar is working on this very run
)

// Store is safe for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	sidecar string
}

// New makes the store of one sidecar; sidecar is its name in the ledger.
func New(pool *pgxpool.Pool, sidecar string) *Store {
	return &Store{pool: pool, sidecar: sidecar}
}

// Claim is a run with the lease of its connector. Spec is the manifest as it was when the run first started.
type Claim struct {
	Outcome        string
	RunID          uuid.UUID
	ConnectorID    uuid.UUID
	Connector      string
	TenantID       int64
	TableName      string
	Spec           json.RawMessage
	MappingVersion int32
	Fence          int64
	ClusterID      string    // what the positions belong to; empty when never read
	Topic          string    // likewise
	TopicID        uuid.UUID // likewise; zero where the broker has no topic ids
	SeekTo         *time.Time
	PoisonChunks   int32 // chunks in a row, before this moment, without one good message
	Planned        bool  // the run has targets already: it is being taken over
	TableMade      bool
}

// Claim takes the lease for a run, waiting for a chunk of an earlier holder that is still being committed.
func (s *Store) Claim(ctx context.Context, runID uuid.UUID) (Claim, error) {
	c := Claim{RunID: runID}
	var r claimRow
	err := s.pool.QueryRow(ctx, stmt.Claim, runID, s.sidecar, LeaseTTL).Scan(&c.Outcome, &r.connectorID, &r.connector, &r.tenant, &r.table,
		&r.spec, &r.mapping, &r.fence, &r.cluster, &r.topic, &r.topicID, &c.SeekTo, &r.poison, &r.planned, &r.made)
	if err != nil {
		return Claim{}, fmt.Errorf("taking the lease of run %s: %w", runID, err)
	}
	r.into(&c)
	return c, nil
}

// claimRow holds the columns that are null where nothing was claimed.
type claimRow struct {
	connectorID, topicID *uuid.UUID
	connector, table     *string
	cluster, topic       *string
	tenant, fence        *int64
	mapping, poison      *int32
	spec                 []byte
	planned, made        *bool
}

func (r claimRow) into(c *Claim) {
	c.ConnectorID, c.TopicID = deref(r.connectorID), deref(r.topicID)
	c.Connector, c.TableName = deref(r.connector), deref(r.table)
	c.ClusterID, c.Topic = deref(r.cluster), deref(r.topic)
	c.TenantID, c.Fence, c.MappingVersion, c.PoisonChunks = deref(r.tenant), deref(r.fence), deref(r.mapping), deref(r.poison)
	c.Planned, c.TableMade = deref(r.planned), deref(r.made)
	c.Spec = r.spec
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Release hands a run back: it stays Running and any sidecar may take it up at once.
func (s *Store) Release(ctx context.Context, runID uuid.UUID) error {
	if _, err := s.pool.Exec(ctx, stmt.Release, runID, s.sidecar); err != nil {
		return fmt.Errorf("handing back run %s: %w", runID, err)
	}
	return nil
}

// RequeueOrphans gives runs whose sidecar is gone back to the queue and tells how many.
func (s *Store) RequeueOrphans(ctx context.Context) (n int, err error) {
	if err := s.pool.QueryRow(ctx, stmt.RequeueOrphans).Scan(&n); err != nil {
		return 0, fmt.Errorf("looking for orphaned runs: %w", err)
	}
	return n, nil
}

// End is how a run ends. Reached maps a partition to the words of connector.run_partitions.reached.
type End struct {
	Status, Code, Message, Hint string
	Retryable                   bool
	Reached                     map[int32]string
}

// End writes the end of a run and gives up its lease. It returns [ErrFenced] where the lease is no longer fence's.
func (s *Store) End(ctx context.Context, runID uuid.UUID, fence int64, e End) error {
	if e.Reached == nil {
		e.Reached = map[int32]string{}
	}
	var ours bool
	err := s.pool.QueryRow(ctx, stmt.EndRun, runID, fence, e.Status, e.Code, nullable(e.Message), nullable(e.Hint), e.Retryable, e.Reached).Scan(&ours)
	if err != nil {
		return fmt.Errorf("ending run %s: %w", runID, fenced(err))
	}
	if !ours {
		return ErrFenced
	}
	return nil
}

// Say adds a line to a run's log; level is INFO, WARN or ERROR.
func (s *Store) Say(ctx context.Context, runID uuid.UUID, level, message string) error {
	if _, err := s.pool.Exec(ctx, stmt.Say, runID, level, message); err != nil {
		return fmt.Errorf("logging for run %s: %w", runID, err)
	}
	return nil
}

// Acts is a run that a heartbeat found in need of attention. State is cancel or lost.
type Acts struct {
	RunID uuid.UUID
	State string
}

// Heartbeat says over conn that this sidecar lives, renews the leases of runs, and returns those to act on. It uses the
// caller's own connection, so that a pool that is exhausted does not look like a dead sidecar.
func (s *Store) Heartbeat(ctx context.Context, conn *pgx.Conn, host, version string, runs []uuid.UUID) ([]Acts, error) {
	if runs == nil {
		runs = []uuid.UUID{}
	}
	rows, err := conn.Query(ctx, stmt.Heartbeat, s.sidecar, host, version, runs, LeaseTTL)
	if err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	acts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Acts])
	if err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	return acts, nil
}

// Gauges are figures over all connectors: messages behind the heads as last measured, and dead letters that are open.
type Gauges struct {
	Lag         int64
	DeadLetters int64
}

// Gauges reads the figures of the metrics endpoint.
func (s *Store) Gauges(ctx context.Context) (g Gauges, err error) {
	if err := s.pool.QueryRow(ctx, stmt.Gauges).Scan(&g.Lag, &g.DeadLetters); err != nil {
		return Gauges{}, fmt.Errorf("reading gauges: %w", err)
	}
	return g, nil
}

// Ping asks the server for an answer.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("asking the database for an answer: %w", err)
	}
	return nil
}

func fenced(err error) error {
	var pe *pgconn.PgError
	if errors.As(err, &pe) && pe.Code == fencedState {
		return ErrFenced
	}
	return err
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
