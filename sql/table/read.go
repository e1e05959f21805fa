package table

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"highwater/sql/stmt"
)

// Errors of [Read] and [Check]; what they wrap names the table.
var (
	// ErrMissing is returned where schema connector has no relation of that name.
	ErrMissing = errors.New("the table does not exist")
	// ErrNotOurs is returned where a relation of that name is not a connector's table.
	ErrNotOurs = errors.New("the table is not a connector's")
	// ErrNotOrdinary is returned where it is not an ordinary, logged table: positions could then outlive their rows.
	ErrNotOrdinary = errors.New("only ordinary, logged tables are written to")
)

// Querier sends statements; a connection, a transaction and a pool all do.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Read gives the shape of the table of that name in schema connector. The name is taken exactly, without quotes.
// It returns [ErrMissing], [ErrNotOurs] or [ErrNotOrdinary] where it is no table that a connector may write to.
//
// The session's search_path should hold nothing but pg_catalog, else a type that people made is named without its schema.
func Read(ctx context.Context, q Querier, name string) (*Shape, error) {
	rows, err := q.Query(ctx, stmt.TableRead, name)
	if err != nil {
		return nil, fmt.Errorf("reading the shape of %s: %w", Quoted(name), err)
	}
	s := &Shape{Name: name}
	var state State
	state.version, err = s.scan(rows, &state)
	if err != nil {
		return nil, fmt.Errorf("reading the shape of %s: %w", Quoted(name), err)
	}
	if err := state.judge(name); err != nil {
		return nil, err
	}
	s.OID, s.version = state.oid, state.version
	s.index()
	return s, s.recognise()
}

// scan reads every column of the relation; what it says of the relation itself is the same in every row.
func (s *Shape) scan(rows pgx.Rows, state *State) (version int64, err error) {
	defer rows.Close()
	for rows.Next() {
		var (
			c       Column
			dropped bool
		)
		err = rows.Scan(&state.oid, &state.kind, &state.persistence, &state.owned, &version, &s.hashIndex, &s.keyIndex, &s.sequence,
			&c.Name, &dropped, &c.SQLType, &c.base, &c.NotNull, &c.HasDefault, &c.Generated, &c.Identity)
		if err != nil {
			return 0, err
		}
		s.attributes++
		if dropped {
			continue
		}
		if c.base == "" {
			c.base = c.SQLType
		}
		c.classify()
		s.Columns = append(s.Columns, c)
	}
	return version, rows.Err()
}

// recognise says whether a table is one of ours by what it must have: the seven columns in their types, a sequence behind
// id and a unique index on _row_hash, without which equal messages would land twice.
func (s *Shape) recognise() error {
	for _, want := range System {
		switch c, ok := s.Column(want.Name); {
		case !ok:
			return fmt.Errorf("%s: %w: it has no column %s", Quoted(s.Name), ErrNotOurs, want.Name)
		case c.SQLType != want.SQLType:
			return fmt.Errorf("%s: %w: its column %s is %s, not %s", Quoted(s.Name), ErrNotOurs, want.Name, c.SQLType, want.SQLType)
		case c.Generated:
			return fmt.Errorf("%s: %w: its column %s is generated", Quoted(s.Name), ErrNotOurs, want.Name)
		}
	}
	switch {
	case s.hashIndex == "":
		return fmt.Errorf("%s: %w: it has no unique index on _row_hash", Quoted(s.Name), ErrNotOurs)
	case s.sequence == 0:
		return fmt.Errorf("%s: %w: no sequence belongs to its column id", Quoted(s.Name), ErrNotOurs)
	}
	return nil
}

// State is what must be true of a relation at every chunk, and tells whether a shape in hand still holds.
type State struct {
	oid               uint32
	kind, persistence string
	owned             bool
	version           int64
}

// Scan reads the row of stmt.TableCheck.
func (st *State) Scan(row pgx.Row) error {
	return row.Scan(&st.oid, &st.kind, &st.persistence, &st.owned, &st.version)
}

// Same says whether the relation is the one that s was read from, unchanged since.
func (st State) Same(s *Shape) bool {
	return s != nil && st.kind == "r" && st.persistence == "p" && st.owned && st.oid == s.OID && st.version == s.version
}

func (st State) judge(name string) error {
	kinds := map[string]string{
		"v": "a view", "m": "a materialized view", "f": "a foreign table", "p": "a partitioned table", "i": "an index", "I": "an index",
		"S": "a sequence", "c": "a composite type", "t": "a TOAST table",
	}
	switch {
	case st.oid == 0:
		return fmt.Errorf("%s: %w", Quoted(name), ErrMissing)
	case st.kind != "r":
		return fmt.Errorf("%s is %s: %w", Quoted(name), kinds[st.kind], ErrNotOrdinary)
	case st.persistence == "u":
		return fmt.Errorf("%s is an unlogged table: %w", Quoted(name), ErrNotOrdinary)
	case st.persistence != "p":
		return fmt.Errorf("%s is a temporary table: %w", Quoted(name), ErrNotOrdinary)
	case !st.owned:
		return fmt.Errorf("%s: %w: it does not belong to %s", Quoted(name), ErrNotOurs, Owner)
	}
	return nil
}

// Quoted gives the table's full name as SQL writes it. It is the one place where a table's name is quoted.
func Quoted(name string) string { return pgx.Identifier{Schema, name}.Sanitize() }

// Sequence is the OID of the sequence behind id.
func (s *Shape) Sequence() uint32 { return s.sequence }

// HashIndex is the name of the unique index on _row_hash, which a refused duplicate names.
func (s *Shape) HashIndex() string { return s.hashIndex }

// KeyIndex is the name of the index of the key on id, empty where there is none.
func (s *Shape) KeyIndex() string { return s.keyIndex }
