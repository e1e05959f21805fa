package migrations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// owner is the role that owns everything of ours; nobody logs in as it.
const owner = "highwater_owner"

// begin opens the transaction of the repeatable files. Replacing a view waits for its readers, and everybody else then waits
// behind us: rather fail and be started again.
const begin = "BEGIN; SET LOCAL lock_timeout = '10s';"

// runner is one connection that holds the lock.
type runner struct {
	conn   *pgx.Conn
	log    *slog.Logger
	bundle *bundle
}

func (r *runner) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	_ = r.conn.Close(ctx) // the session ends, and its lock with it
}

func (r *runner) apply(ctx context.Context, config *pgx.ConnConfig) error {
	if err := r.lock(ctx); err != nil {
		return err
	}
	if err := r.rights(ctx); err != nil {
		return err
	}
	if err := r.run(ctx, "bootstrap.sql", r.bundle.bootstrap); err != nil {
		return err
	}
	if err := r.run(ctx, "taking the owner's role", "SET ROLE "+owner); err != nil {
		return err
	}
	pending, err := r.pending(ctx) // before River's steps, so that a newer database is left alone
	if err != nil {
		return err
	}
	if err := r.river(ctx, config); err != nil {
		return err
	}
	for _, s := range pending {
		r.log.Info("migrating", "step", s.name)
		// No new line after BEGIN: an error tells the line of the file.
		if err := r.run(ctx, s.name, "BEGIN; "+s.sql+"\n"+s.record()+"\nCOMMIT;"); err != nil {
			return err
		}
	}
	return r.repeat(ctx)
}

// check is what apply would do, told and not done.
func (r *runner) check(ctx context.Context) error {
	const remedy = "run highwater migrate, or start without -no-migrate"
	var there bool
	if err := r.conn.QueryRow(ctx, "SELECT to_regclass('connector._migration') IS NOT NULL").Scan(&there); err != nil {
		return fmt.Errorf("looking at the schema: %w", err)
	}
	if !there {
		return errors.New("the database has no schema of ours; " + remedy)
	}
	pending, err := r.pending(ctx)
	if err != nil {
		return err
	}
	if len(pending) > 0 {
		return fmt.Errorf("the database lacks %s; %s", pending[0].name, remedy)
	}
	version, err := r.riverAt(ctx)
	if err != nil {
		return err
	}
	if version < riverVersion {
		return fmt.Errorf("the queue's tables are at River's step %d, not %d; %s", version, riverVersion, remedy)
	}
	same, err := r.repeated(ctx)
	if err == nil && !same {
		return errors.New("the database has functions and views of another version than this program; " + remedy)
	}
	return err
}

func (r *runner) lock(ctx context.Context) error {
	sql := fmt.Sprintf("SET lock_timeout = %d; SELECT pg_advisory_lock(%d, %d); SET lock_timeout = 0", lockWait.Milliseconds(), lockClass, lockKey)
	err := r.run(ctx, "waiting for another runner", sql)
	var pe *pgconn.PgError
	if errors.As(err, &pe) && pe.Code == "55P03" {
		return fmt.Errorf("another runner has been migrating this database for %s: %w", lockWait, err)
	}
	return err
}

// pending gives the steps that the database lacks. A step that was changed after it was applied, and a database that knows
// more steps than we do, are errors.
func (r *runner) pending(ctx context.Context) ([]step, error) {
	rows, err := r.conn.Query(ctx, "SELECT m.number, m.name, m.sha256 FROM connector._migration AS m ORDER BY m.number")
	if err != nil {
		return nil, fmt.Errorf("reading which migrations were applied: %w", err)
	}
	applied, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s step, err error) {
		err = row.Scan(&s.number, &s.name, &s.digest)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading which migrations were applied: %w", err)
	}
	all := r.bundle.steps
	if len(applied) > len(all) {
		return nil, fmt.Errorf("%w (it knows %s)", ErrNewer, applied[len(applied)-1].name)
	}
	for i, a := range applied {
		if a.number != all[i].number || a.digest != all[i].digest {
			return nil, fmt.Errorf("migration %s was changed after it was applied as %s; undo a step by a new one", all[i].name, a.name)
		}
	}
	return all[len(applied):], nil
}

// repeated tells whether the repeatable files were applied last as they are now.
func (r *runner) repeated(ctx context.Context) (same bool, err error) {
	err = r.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM connector._repeatable AS x WHERE x.sha256 = $1)", r.bundle.digest).Scan(&same)
	if err != nil {
		return false, fmt.Errorf("reading the digest of the repeatable SQL: %w", err)
	}
	return same, nil
}

func (r *runner) repeat(ctx context.Context) error {
	same, err := r.repeated(ctx)
	if err != nil || same {
		return err
	}
	r.log.Info("applying functions, views and grants")
	if err := r.run(ctx, "sql/api", begin); err != nil {
		return err
	}
	for _, f := range r.bundle.repeatable {
		if err := r.run(ctx, "sql/api/"+f.name, f.sql); err != nil {
			return err
		}
	}
	return r.run(ctx, "sql/api", r.bundle.record()+" COMMIT;")
}

// run sends a script as it stands. After an error nothing of an open transaction stays, because the connection is closed.
func (r *runner) run(ctx context.Context, what, sql string) error {
	_, err := r.conn.PgConn().Exec(ctx, sql).ReadAll()
	if err == nil {
		return nil
	}
	var pe *pgconn.PgError
	if errors.As(err, &pe) && pe.Position > 0 {
		before := []rune(sql) // the server counts characters
		before = before[:min(int(pe.Position), len(before))]
		return fmt.Errorf("%s: line %d: %w", what, 1+strings.Count(string(before), "\n"), err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
