// Package migrations brings a database to the version of this program: the roles and schemas, River's tables, our numbered
// steps, and the repeatable SQL of sql/api.
//
// It never goes back, and never changes what somebody else owns. One advisory lock keeps two runners apart, River's own
// steps included, because River takes none. **A step and the record that it was applied commit together.**
//
// A numbered file runs once and may not change afterwards: its digest is stored and compared. A repeatable file (functions,
// views, grants) runs again whenever any of them has changed, all in one transaction.
package migrations

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"highwater/sql/api"
)

//go:embed *.sql
var files embed.FS

// lockClass and lockKey name the advisory lock that keeps two runners apart.
const (
	lockClass = 1751742327 // our own namespace among advisory locks
	lockKey   = 1
)

const (
	// lockWait bounds the wait for another runner, or for whoever else holds the lock.
	lockWait = 60 * time.Second
	// closeWait bounds the goodbye to the server.
	closeWait = 2 * time.Second
)

// ErrNewer is returned for a database that a newer program has migrated.
var ErrNewer = errors.New("the database is of a newer version than this program; upgrade the program")

// Options are what a runner may be given.
type Options struct {
	Logger *slog.Logger // nil: silent
}

// Apply migrates the database that config names. It opens connections of its own and closes them. Where another runner is
// at work it waits for it, at most a minute.
//
// Errors: [ErrNewer]; a file that was changed after it was applied, by name; a [*RightsError] with the statements for a
// superuser to run where the role may not do what is wanted.
func Apply(ctx context.Context, config *pgx.ConnConfig, o Options) error {
	return apply(ctx, config, o, files, api.FS)
}

// apply is Apply with the files given: bootstrap.sql and the numbered ones, and the repeatable ones.
func apply(ctx context.Context, config *pgx.ConnConfig, o Options, numbered, repeatable fs.FS) error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	bundle, err := load(numbered, repeatable)
	if err != nil {
		return err
	}
	config = settled(config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connecting to migrate: %w", err)
	}
	r := &runner{conn: conn, log: o.Logger, bundle: bundle}
	defer r.close(ctx)
	return r.apply(ctx, config)
}

// settled is the configuration with the session's settings that the role or the database may have set otherwise: names are
// those of the system, whatever search_path would find first, no timeout for queries ends a long step, and our files are UTF-8.
func settled(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	for name, value := range sessionSettings {
		config.RuntimeParams[name] = value
	}
	return config
}

// sessionSettings hold for a runner's connections, and in the printed script.
var sessionSettings = map[string]string{"client_encoding": "UTF8", "search_path": "pg_catalog, pg_temp", "statement_timeout": "0"}

// Check tells whether the database is at this program's version, without changing anything: nil, [ErrNewer], or what is
// missing.
func Check(ctx context.Context, config *pgx.ConnConfig) error {
	bundle, err := load(files, api.FS)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, settled(config))
	if err != nil {
		return fmt.Errorf("connecting to look at the schema: %w", err)
	}
	r := &runner{conn: conn, log: slog.New(slog.DiscardHandler), bundle: bundle}
	defer r.close(ctx)
	return r.check(ctx)
}
