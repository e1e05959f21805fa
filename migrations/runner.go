package migrations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// owner is the role that owns everything of ours; nobody logs in as it.
const owner = "highwater_owner"

// queueSchema is where River's tables live. River does not make it.
const queueSchema = "connector_queue"

// riverConns is what River's steps need at once.
const riverConns = 2

// runner is one connection that holds the lock.
type runner struct {
	conn *pgx.Conn
	log  *slog.Logger
}

func (r *runner) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	_ = r.conn.Close(ctx) // the session ends, and its lock with it
}

func (r *runner) apply(ctx context.Context, config *pgx.ConnConfig, from fs.FS) error {
	if err := r.lock(ctx); err != nil {
		return err
	}
	if err := r.rights(ctx); err != nil {
		return err
	}
	bootstrap, err := fs.ReadFile(from, "bootstrap.sql")
	if err != nil {
		return fmt.Errorf("reading bootstrap.sql: %w", err)
	}
	if err := r.run(ctx, "bootstrap.sql", string(bootstrap)); err != nil {
		return err
	}
	if err := r.run(ctx, "taking the owner's role", "SET ROLE "+owner); err != nil {
		return err
	}
	all, err := steps(from)
	if err != nil {
		return err
	}
	pending, err := r.pending(ctx, all) // before River's steps, so that a newer database is left alone
	if err != nil {
		return err
	}
	if err := river(ctx, config); err != nil {
		return err
	}
	for _, s := range pending {
		r.log.Info("migrating", "step", s.name)
		if err := r.run(ctx, s.name, "BEGIN;\n"+s.sql+"\n"+s.record()+"\nCOMMIT;"); err != nil {
			return err
		}
	}
	return r.repeat(ctx)
}

// record is the statement that remembers a step as applied.
func (s step) record() string {
	return fmt.Sprintf("INSERT INTO connector._migration (number, name, sha256) VALUES (%d, '%s', '%s');", s.number, s.name, s.digest)
}

// recordRepeatable remembers the digest of the repeatable files.
func recordRepeatable(digest string) string {
	return fmt.Sprintf("INSERT INTO connector._repeatable (sha256) VALUES ('%s') ON CONFLICT (one) DO UPDATE SET sha256 = EXCLUDED.sha256, applied_at = now();", digest)
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

// rights names, before anything is tried, what the role would need and lacks.
func (r *runner) rights(ctx context.Context) error {
	var role, database string
	var roles, schemas, create, createRole, member bool
	err := r.conn.QueryRow(ctx, `
		SELECT current_user, current_database(),
			(SELECT count(*) = 3 FROM pg_catalog.pg_roles AS x WHERE x.rolname IN ('highwater_owner', 'highwater_operator', 'highwater_reader')),
			(SELECT count(*) = 2 FROM pg_catalog.pg_namespace AS n WHERE n.nspname IN ('connector', 'connector_queue')),
			has_database_privilege(current_database(), 'CREATE'), u.rolcreaterole OR u.rolsuper,
			COALESCE((SELECT pg_has_role(o.oid, 'MEMBER') FROM pg_catalog.pg_roles AS o WHERE o.rolname = 'highwater_owner'), false)
		FROM pg_catalog.pg_roles AS u WHERE u.rolname = current_user`).Scan(&role, &database, &roles, &schemas, &create, &createRole, &member)
	if err != nil {
		return fmt.Errorf("looking at the rights of the role: %w", err)
	}
	var lack []string
	as := pgx.Identifier{role}.Sanitize()
	if !roles && !createRole {
		lack = append(lack, "CREATE ROLE highwater_owner NOLOGIN;", "CREATE ROLE highwater_operator NOLOGIN;", "CREATE ROLE highwater_reader NOLOGIN;")
	}
	if !member && !createRole {
		lack = append(lack, "GRANT highwater_owner TO "+as+";")
	}
	if !schemas && !create {
		lack = append(lack, "GRANT CREATE ON DATABASE "+pgx.Identifier{database}.Sanitize()+" TO "+as+";")
	}
	if len(lack) > 0 {
		return fmt.Errorf("role %s lacks rights for the first migration; a superuser runs:\n  %s\n(or the whole of it once: highwater migrate --print | psql)", as, strings.Join(lack, "\n  "))
	}
	return nil
}

// pending gives the steps that the database lacks. A step that was changed after it was applied, and a database that knows
// more steps than we do, are errors.
func (r *runner) pending(ctx context.Context, all []step) ([]step, error) {
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

func (r *runner) repeat(ctx context.Context) error {
	text, err := repeatable()
	if err != nil {
		return err
	}
	var same bool
	if err := r.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM connector._repeatable AS x WHERE x.sha256 = $1)", digest(text)).Scan(&same); err != nil {
		return fmt.Errorf("reading the digest of the repeatable SQL: %w", err)
	}
	if same {
		return nil
	}
	r.log.Info("applying functions, views and grants")
	return r.run(ctx, "sql/api", "BEGIN;\n"+text+recordRepeatable(digest(text))+"\nCOMMIT;")
}

// run sends a script as it stands. After an error nothing of an open transaction stays.
func (r *runner) run(ctx context.Context, what, sql string) error {
	_, err := r.conn.PgConn().Exec(ctx, sql).ReadAll()
	if err == nil {
		return nil
	}
	var pe *pgconn.PgError
	if errors.As(err, &pe) && pe.Position > 0 {
		return fmt.Errorf("%s: line %d: %w", what, 1+strings.Count(sql[:min(int(pe.Position), len(sql))], "\n"), err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// river applies River's own steps; they cannot share a transaction with ours or with each other.
func river(ctx context.Context, config *pgx.ConnConfig) error {
	pc, err := pgxpool.ParseConfig(config.ConnString())
	if err != nil {
		return fmt.Errorf("reading the database URL: %w", err)
	}
	pc.ConnConfig, pc.MaxConns = config.Copy(), riverConns
	pc.ConnConfig.RuntimeParams["role"] = owner
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return fmt.Errorf("connecting for the queue's migrations: %w", err)
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: queueSchema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("preparing the queue's migrations: %w", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrating the queue: %w", err)
	}
	return nil
}
