package table

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"highwater/sql/stmt"
)

// RewriteRowsMax is up to how many rows a column is widened where that rewrites the table: readers wait as long as it takes.
const RewriteRowsMax = 1_000_000

// Refused says that a column cannot be added or widened while the table is as it is. The messages that need it become dead
// letters with Message; nothing else about the run is at fault.
type Refused struct {
	Alter    Alter
	Message  string // PostgreSQL's words, or the statement for an operator to run
	SQLState string // empty where it was not PostgreSQL that refused
}

func (r *Refused) Error() string { return r.Message }

// Widening is a column that was given a wider type, and how long the server took.
type Widening struct {
	Alter Alter
	From  string
	Took  time.Duration
}

// Change carries out alters on the table of shape s, in the caller's transaction and under its lock_timeout: first all new
// columns in one statement and in their order, then one statement a widening. It gives the table's new shape and what was widened.
//
// A [Refused] error says that one alter cannot be had; the transaction is then of no further use. A widening that rewrites
// more than rewriteRowsMax rows is refused without asking the server.
func Change(ctx context.Context, tx Querier, s *Shape, alters []Alter, rewriteRowsMax int64) (*Shape, []Widening, error) {
	var adds []Alter
	var widened []Widening
	for _, a := range alters {
		if !a.Widen {
			adds = append(adds, a)
		}
	}
	if err := add(ctx, tx, s.Name, adds); err != nil {
		return nil, nil, err
	}
	for _, a := range alters {
		if !a.Widen {
			continue
		}
		w, err := widen(ctx, tx, s, a, rewriteRowsMax)
		if err != nil {
			return nil, nil, err
		}
		widened = append(widened, w)
	}
	next, err := Read(ctx, tx, s.Name)
	return next, widened, err
}

func add(ctx context.Context, tx Querier, name string, adds []Alter) error {
	if len(adds) == 0 {
		return nil
	}
	clauses := make([]string, len(adds))
	for i, a := range adds {
		typ, err := a.sqlType()
		if err != nil {
			return err
		}
		clauses[i] = fmt.Sprintf("ADD COLUMN %s %s", pgx.Identifier{a.Column}.Sanitize(), typ)
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf("ALTER TABLE %s %s", Quoted(name), strings.Join(clauses, ", "))); err != nil {
		return refused(adds[0], fmt.Errorf("adding %d columns to %s: %w", len(adds), Quoted(name), err))
	}
	return nil
}

func widen(ctx context.Context, tx Querier, s *Shape, a Alter, rewriteRowsMax int64) (Widening, error) {
	typ, err := a.sqlType()
	if err != nil {
		return Widening{}, err
	}
	w := Widening{Alter: a}
	if c, ok := s.Column(a.Column); ok {
		w.From = c.SQLType
	}
	sql := widenSQL(s.Name, a.Column, typ)
	if !rewriteFree(w.From, typ) {
		n, err := estimate(ctx, tx, s.Name, rewriteRowsMax)
		if err != nil {
			return w, err
		}
		if n > rewriteRowsMax {
			return w, &Refused{Alter: a, Message: fmt.Sprintf("the column is %s and would have to become %s, which rewrites the table's about %d rows while readers wait (limit %d); to allow it, run: %s",
				w.From, typ, n, rewriteRowsMax, sql)}
		}
	}
	begun := time.Now()
	if _, err := tx.Exec(ctx, sql); err != nil {
		return w, refused(a, fmt.Errorf("widening column %q of %s: %w", a.Column, Quoted(s.Name), err))
	}
	w.Took = time.Since(begun)
	return w, nil
}

func widenSQL(name, column, typ string) string {
	c := pgx.Identifier{column}.Sanitize()
	return fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE %s USING %s::%s", Quoted(name), c, typ, c, typ)
}

// rewriteFree knows the widenings for which PostgreSQL only changes the catalog: a numeric that loses its limits.
func rewriteFree(from, to string) bool {
	return to == "numeric" && strings.HasPrefix(from, "numeric(")
}

// estimate tells about how many rows a rewrite would touch. A table that was never analyzed is counted, to just above the limit.
func estimate(ctx context.Context, tx Querier, name string, limit int64) (n int64, err error) {
	if n, err = one[int64](ctx, tx, stmt.TableRows, name); err == nil && n < 0 {
		n, err = one[int64](ctx, tx, fmt.Sprintf("SELECT pg_catalog.count(*) FROM (SELECT FROM ONLY %s LIMIT $1) AS s", Quoted(name)), limit+1)
	}
	if err != nil {
		return 0, fmt.Errorf("estimating the rows of %s: %w", Quoted(name), err)
	}
	return n, nil
}

func one[T any](ctx context.Context, tx Querier, sql string, args ...any) (v T, err error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return v, err //nolint:wrapcheck // the caller names the table
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
}

// refused turns the server's answer to an ALTER into a [Refused] where it is about what was asked: a view, a policy, a check
// or a trigger that depends on the column, a value that does not cast, a full table. Locks, rights, disks and connections are
// not, and neither is a column that appeared or went since the shape was read.
func refused(a Alter, err error) error {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || len(pe.Code) != 5 || pe.Severity == "FATAL" {
		return err
	}
	switch pe.Code {
	case "42501", "42P01", "42701", "42703":
		return err
	}
	switch pe.Code[:2] {
	case "0A", "22", "23", "2B", "42", "54", "P0":
		return &Refused{Alter: a, SQLState: pe.Code, Message: fmt.Sprintf("PostgreSQL refused to change the table: %s (SQLSTATE %s)", pe.Message, pe.Code)}
	}
	return err
}

// History notes added and widened columns in connector._column, in the transaction that made them.
func History(ctx context.Context, tx Querier, connector uuid.UUID, tenant int64, run uuid.UUID, alters []Alter) error {
	var columns, fields, types []string
	for _, a := range alters {
		if a.Widen {
			if _, err := tx.Exec(ctx, stmt.TableWidened, connector, a.Column, canonical(a.Type)); err != nil {
				return fmt.Errorf("noting column %q: %w", a.Column, err)
			}
			continue
		}
		columns, fields, types = append(columns, a.Column), append(fields, a.Field), append(types, canonical(a.Type))
	}
	if len(columns) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, stmt.TableAdded, connector, tenant, run, columns, fields, types); err != nil {
		return fmt.Errorf("noting %d new columns: %w", len(columns), err)
	}
	return nil
}
