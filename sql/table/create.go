package table

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"highwater/sql/stmt"
)

// Create makes a connector's table with the seven system columns and then adds, in the order given, and gives its shape.
// It must run in a transaction; the table belongs to [Owner] whatever the session's role is, and nobody else has any right
// on it, default privileges or not.
//
// connector and topic go into the table's comment. A relation that exists is PostgreSQL's error 42P07.
func Create(ctx context.Context, tx Querier, name string, adds []Alter, connector, topic string) (*Shape, error) {
	ddl, err := createSQL(name, adds, connector, topic)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, ddl); err != nil {
		return nil, fmt.Errorf("making table %s: %w", Quoted(name), err)
	}
	s, err := Read(ctx, tx, name)
	if err != nil {
		return nil, err
	}
	return s, revoke(ctx, tx, s)
}

// createSQL writes the statements that make a table, to be sent in one message.
func createSQL(name string, adds []Alter, connector, topic string) (string, error) {
	t, c := Quoted(name), func(s string) string { return pgx.Identifier{s}.Sanitize() }
	var b strings.Builder
	fmt.Fprintf(&b, "SET LOCAL ROLE %s;\nCREATE TABLE %s (\n", c(Owner), t)
	fmt.Fprintf(&b, "    id bigserial CONSTRAINT %s PRIMARY KEY,\n", c(name+"_pkey"))
	// Compared byte by byte: rows are sorted by hash before they are written, and only then does that order keep the index local.
	fmt.Fprintf(&b, "    _row_hash text COLLATE \"C\" NOT NULL CONSTRAINT %s UNIQUE,\n", c(name+"__row_hash_key"))
	b.WriteString("    _ingested_at timestamptz NOT NULL DEFAULT now(),\n    _source text,\n    _run_id uuid,\n" +
		"    _mapping_version integer,\n    tenant_id bigint NOT NULL")
	for _, a := range adds {
		typ, err := a.sqlType()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, ",\n    %s %s", c(a.Column), typ)
	}
	fmt.Fprintf(&b, "\n);\nCREATE INDEX %s ON %s (tenant_id);\n", c(name+"_idx_tenant_id"), t)
	fmt.Fprintf(&b, "ALTER TABLE %s ENABLE ROW LEVEL SECURITY;\n", t)
	fmt.Fprintf(&b, "CREATE POLICY tenant_isolation ON %s USING (tenant_id = (SELECT connector.current_tenant()));\n", t)
	fmt.Fprintf(&b, "COMMENT ON TABLE %s IS %s;\n", t, literal(fmt.Sprintf("Rows of connector %s, read from Kafka topic %s.", connector, topic)))
	for _, d := range descriptions {
		fmt.Fprintf(&b, "COMMENT ON COLUMN %s.%s IS %s;\n", t, c(d.column), literal(d.text))
	}
	b.WriteString("RESET ROLE")
	return b.String(), nil
}

var descriptions = []struct{ column, text string }{
	{"id", "Number of the row; follows offset order within a partition."},
	{"_row_hash", "Identity of the row's content (or of its offset, by the manifest's dedup); unique."},
	{"_ingested_at", "When the transaction that landed the row began."},
	{"_source", "Where the row came from: kafka:topic:partition:offset."},
	{"_run_id", "The run that landed the row; see connector.runs."},
	{"_mapping_version", "The configuration of the connector under which the row was made."},
	{"tenant_id", "The tenant of the connector; row-level security compares it."},
}

// literal writes a string constant that reads the same whatever standard_conforming_strings says.
func literal(s string) string {
	quoted := "'" + strings.ReplaceAll(strings.ReplaceAll(s, "\x00", ""), "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// sqlType gives the alter's type for DDL, or an error for one outside the closed list.
func (a Alter) sqlType() (string, error) {
	typ := canonical(a.Type)
	if !makable.MatchString(typ) {
		return "", fmt.Errorf("column %q cannot become %q: a message's column is one of bigint, numeric, text, boolean, jsonb or a type that types declares",
			a.Column, a.Type)
	}
	return typ, nil
}

// revoke takes back what default privileges granted: a role with TRIGGER on the table could run code as the sidecar.
func revoke(ctx context.Context, tx Querier, s *Shape) error {
	rows, err := tx.Query(ctx, stmt.TableGrants, s.OID)
	if err != nil {
		return fmt.Errorf("reading the privileges of %s: %w", Quoted(s.Name), err)
	}
	roles, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("reading the privileges of %s: %w", Quoted(s.Name), err)
	}
	for _, role := range roles {
		if _, err := tx.Exec(ctx, fmt.Sprintf("REVOKE ALL ON TABLE %s FROM %s", Quoted(s.Name), role)); err != nil {
			return fmt.Errorf("revoking default privileges on %s: %w", Quoted(s.Name), err)
		}
	}
	return nil
}
