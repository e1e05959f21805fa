package land

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"highwater/sql/stmt"
	"highwater/sql/table"
)

// change makes or alters the table, right after the positions are locked. Nobody may read the table from here to the commit,
// so the lock is asked for with a short limit, and a chunk that alters is small.
func (a *attempt) change(ctx context.Context) (err error) {
	a.altering = true
	if a.makes() {
		err = a.make(ctx)
	} else {
		err = a.alter(ctx)
	}
	if err != nil {
		return a.refusedAlter(ctx, err)
	}
	a.altering = false
	a.shape = a.shape.Refusing(a.memory.refused)
	if err := table.History(ctx, a.conn, a.run.ConnectorID, a.run.TenantID, a.run.ID, a.c.Alters); err != nil {
		return err //nolint:wrapcheck // table names the column
	}
	if len(a.c.Rows) == 0 {
		return nil
	}
	b := &pgx.Batch{}
	a.queueIDs(b)
	return a.send(ctx, b)
}

func (a *attempt) make(ctx context.Context) error {
	shape, err := table.Create(ctx, a.conn, a.run.Table, a.c.Alters, a.run.Connector, a.run.Topic)
	var pe *pgconn.PgError
	if errors.As(err, &pe) && pe.Code == "42P07" {
		// A relation of that name is there, from another hand; or it is an index's or the sequence's name that is taken.
		if verr := a.reread(ctx, err); !errors.Is(verr, table.ErrMissing) {
			return verr
		}
	}
	if err != nil {
		return err //nolint:wrapcheck // table names the table
	}
	if _, err := a.conn.Exec(ctx, stmt.TableScopes, a.run.ConnectorID); err != nil {
		return fmt.Errorf("granting table %s to the roles of its scopes: %w", table.Quoted(a.run.Table), err)
	}
	a.shape, a.landed.NewColumns = shape, a.c.Alters
	a.landed.Said = append(a.landed.Said, fmt.Sprintf("made table %s with the columns %s", table.Quoted(a.run.Table), listed(a.c.Alters)))
	return nil
}

func (a *attempt) alter(ctx context.Context) error {
	var state table.State
	b := &pgx.Batch{}
	b.Queue("SELECT pg_catalog.set_config('lock_timeout', $1, true)", ms(a.l.o.DDLTimeout))
	a.queueLock(b, "ACCESS EXCLUSIVE", &state)
	if err := a.send(ctx, b); err != nil {
		return a.vanished(ctx, err)
	}
	if !state.Same(a.shape) {
		if err := a.adopt(ctx); err != nil {
			return err
		}
	}
	shape, widened, err := table.Change(ctx, a.conn, a.shape, a.c.Alters, a.l.o.RewriteRowsMax)
	if err != nil {
		return err //nolint:wrapcheck // table names the column
	}
	a.shape, a.landed.Widened = shape, widened
	for _, alter := range a.c.Alters {
		if !alter.Widen {
			a.landed.NewColumns = append(a.landed.NewColumns, alter)
		}
	}
	if len(a.landed.NewColumns) > 0 {
		a.landed.Said = append(a.landed.Said, "new columns: "+listed(a.landed.NewColumns))
	}
	for _, w := range widened {
		a.landed.Said = append(a.landed.Said, fmt.Sprintf("widened column %s from %s to %s in %s",
			pgx.Identifier{w.Alter.Column}.Sanitize(), w.From, w.Alter.Type, w.Took.Round(time.Millisecond)))
	}
	return nil
}

// refusedAlter keeps in mind what the server will not do to the table, so that the chunk is built anew without it.
func (a *attempt) refusedAlter(ctx context.Context, err error) error {
	var r *table.Refused
	if !errors.As(err, &r) {
		return err
	}
	if a.shape == nil {
		return fmt.Errorf("making table %s: %w", table.Quoted(a.run.Table), err)
	}
	a.altering = false
	a.memory.refused = append(a.memory.refused, r)
	a.shape = a.shape.Refusing(a.memory.refused)
	a.l.o.Logger.InfoContext(ctx, "a column cannot be changed", "connector", a.run.Connector, "run_id", a.run.ID, "column", r.Alter.Column, "error", r.Message)
	return ErrShapeChanged
}

// listed names columns with their types.
func listed(alters []table.Alter) string {
	if len(alters) == 0 {
		return "(none of its own)"
	}
	parts := make([]string, len(alters))
	for i, a := range alters {
		parts[i] = pgx.Identifier{a.Column}.Sanitize() + " " + a.Type
	}
	return strings.Join(parts, ", ")
}
