package migrations

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	// queueSchema is where River's tables live. River does not make it.
	queueSchema = "connector_queue"
	// riverVersion is the step of River's own migrations that this program is written for. It is pinned, so that a newer
	// River in go.mod changes no database before somebody has looked at what its steps do.
	riverVersion = 8
	// riverConns is what River's steps need at once.
	riverConns = 2
)

// riverAt gives the last of River's steps that the database has, 0 for none; [ErrNewer] for one that we do not know.
func (r *runner) riverAt(ctx context.Context) (int, error) {
	var there bool
	if err := r.conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", queueSchema+".river_migration").Scan(&there); err != nil || !there {
		return 0, wrapRiver(err)
	}
	var version int
	if err := r.conn.QueryRow(ctx, "SELECT COALESCE(max(version), 0) FROM "+queueSchema+".river_migration").Scan(&version); err != nil {
		return 0, wrapRiver(err)
	}
	if version > riverVersion {
		return version, fmt.Errorf("%w (its queue is at River's step %d, not %d)", ErrNewer, version, riverVersion)
	}
	return version, nil
}

func wrapRiver(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("reading which of River's steps were applied: %w", err)
}

// river applies River's own steps; they cannot share a transaction with ours or with each other.
func (r *runner) river(ctx context.Context, config *pgx.ConnConfig) error {
	version, err := r.riverAt(ctx)
	if err != nil || version == riverVersion {
		return err
	}
	r.log.Info("migrating the queue", "from", version, "to", riverVersion)
	pc, err := pgxpool.ParseConfig(config.ConnString())
	if err != nil {
		return fmt.Errorf("reading the database URL: %w", err)
	}
	pc.ConnConfig, pc.MaxConns, pc.MinConns = config.Copy(), riverConns, 0
	pc.ConnConfig.RuntimeParams["role"] = owner
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return fmt.Errorf("connecting for the queue's migrations: %w", err)
	}
	defer pool.Close()
	m, err := riverSteps(pool)
	if err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{TargetVersion: riverVersion}); err != nil {
		return fmt.Errorf("migrating the queue: %w", err)
	}
	return nil
}

// riverSteps are River's migrations; without a pool they can be read and not applied.
func riverSteps(pool *pgxpool.Pool) (*rivermigrate.Migrator[pgx.Tx], error) {
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: queueSchema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("preparing the queue's migrations: %w", err)
	}
	return m, nil
}
