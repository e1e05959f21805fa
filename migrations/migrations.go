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
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
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

// step is one numbered file.
type step struct {
	number int
	name   string
	sql    string
	digest string
}

var stepName = regexp.MustCompile(`^(\d{4})_[a-z0-9_]+\.sql$`)

// steps gives the numbered files in order; a gap in the numbers is an error.
func steps(from fs.FS) ([]step, error) {
	entries, err := fs.ReadDir(from, ".")
	if err != nil {
		return nil, fmt.Errorf("listing migrations: %w", err)
	}
	var out []step
	for _, e := range entries {
		m := stepName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		text, err := fs.ReadFile(from, e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading migration %s: %w", e.Name(), err)
		}
		n, _ := strconv.Atoi(m[1])
		if n != len(out)+1 {
			return nil, fmt.Errorf("migration %s does not follow number %04d", e.Name(), len(out))
		}
		out = append(out, step{number: n, name: e.Name(), sql: string(text), digest: digest(string(text))})
	}
	return out, nil
}

// repeatable gives the files of sql/api as one text, in the order of ORDER.
func repeatable() (string, error) {
	order, err := api.FS.ReadFile("ORDER")
	if err != nil {
		return "", fmt.Errorf("reading sql/api/ORDER: %w", err)
	}
	var b strings.Builder
	for _, name := range strings.Fields(string(order)) {
		text, err := api.FS.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("reading sql/api/%s: %w", name, err)
		}
		fmt.Fprintf(&b, "-- %s\n%s\n", name, text)
	}
	return b.String(), nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Apply migrates the database that config names. It opens connections of its own and closes them. Where another runner is
// at work it waits for it, at most a minute.
//
// Errors: [ErrNewer]; a file that was changed after it was applied, by name; a right that is missing, with the statements for
// a superuser to run.
func Apply(ctx context.Context, config *pgx.ConnConfig, o Options) error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return fmt.Errorf("connecting to migrate: %w", err)
	}
	r := &runner{conn: conn, log: o.Logger}
	defer r.close(ctx)
	return r.apply(ctx, config, files)
}

// Check tells whether the database is at this program's version, without changing anything: nil, [ErrNewer], or what is
// missing.
func Check(ctx context.Context, config *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return fmt.Errorf("connecting to look at the schema: %w", err)
	}
	r := &runner{conn: conn, log: slog.New(slog.DiscardHandler)}
	defer r.close(ctx)
	var there bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('connector._migration') IS NOT NULL").Scan(&there); err != nil {
		return fmt.Errorf("looking at the schema: %w", err)
	}
	if !there {
		return errors.New("the database has no schema of ours; run highwater migrate, or start without -no-migrate")
	}
	all, err := steps(files)
	if err != nil {
		return err
	}
	pending, err := r.pending(ctx, all)
	if err != nil {
		return err
	}
	if len(pending) > 0 {
		return fmt.Errorf("the database lacks %s; run highwater migrate, or start without -no-migrate", pending[0].name)
	}
	return nil
}
