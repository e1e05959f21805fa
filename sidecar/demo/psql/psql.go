// Package psql runs a statement the way psql does and shows the answer the way psql does: every value in the server's own
// text form, one table aligned under its column names.
//
// It is for the demo, which shows an operator what their own terminal would; it reads whole answers into memory, so it is
// for small ones.
package psql

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// rowsMax bounds an answer, in rows.
const rowsMax = 10000

// Database is what a statement is run on: a pool or a connection of pgx.
type Database interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Table is an answer. A null is an empty text, as psql shows it.
type Table struct {
	Columns []string
	Rows    [][]string
	right   []bool // columns of numbers
}

// Query runs one statement by the simple protocol, outside a transaction of ours, so that a procedure may commit. A
// statement without an answer gives an empty table. An error of the server is a *pgconn.PgError in the chain.
func Query(ctx context.Context, db Database, sql string) (Table, error) {
	rows, err := db.Query(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return Table{}, fmt.Errorf("running %q: %w", Brief(sql), err)
	}
	defer rows.Close()
	var t Table
	for rows.Next() {
		if len(t.Rows) == rowsMax {
			return Table{}, fmt.Errorf("running %q: more than %d rows", Brief(sql), rowsMax)
		}
		if t.Columns == nil {
			t.head(rows.FieldDescriptions())
		}
		row := make([]string, len(t.Columns))
		for i, value := range rows.RawValues() {
			row[i] = string(value)
		}
		t.Rows = append(t.Rows, row)
	}
	if err := rows.Err(); err != nil {
		return Table{}, fmt.Errorf("running %q: %w", Brief(sql), err)
	}
	if t.Columns == nil {
		t.head(rows.FieldDescriptions())
	}
	return t, nil
}

func (t *Table) head(fields []pgconn.FieldDescription) {
	// Types of which psql sets the values to the right: int8, int2, int4, oid, float4, float8, money, numeric.
	numbers := map[uint32]bool{20: true, 21: true, 23: true, 26: true, 700: true, 701: true, 790: true, 1700: true}
	t.Columns, t.right = make([]string, len(fields)), make([]bool, len(fields))
	for i, f := range fields {
		t.Columns[i], t.right[i] = f.Name, numbers[f.DataTypeOID]
	}
}

// Brief is the first line of a statement, for messages.
func Brief(sql string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(sql), "\n")
	if rest != "" {
		line += " …"
	}
	return line
}

// Unaligned is the answer as `psql -At` prints it, without the last line's end: columns parted by |, rows by a new line.
func (t Table) Unaligned() string {
	lines := make([]string, len(t.Rows))
	for i, row := range t.Rows {
		lines[i] = strings.Join(row, "|")
	}
	return strings.Join(lines, "\n")
}

// Print writes the answer as an aligned table with the number of its rows, and an empty line behind it.
func (t Table) Print(w io.Writer) error {
	widths := make([]int, len(t.Columns))
	for i, name := range t.Columns {
		widths[i] = utf8.RuneCountInString(name)
		for _, row := range t.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(oneLine(row[i])))
		}
	}
	var b strings.Builder
	line(&b, t.Columns, func(cell string, i int) string { return centre(cell, widths[i]) })
	for i, width := range widths {
		if i > 0 {
			b.WriteByte('+')
		}
		b.WriteString(strings.Repeat("-", width+2))
	}
	b.WriteByte('\n')
	for _, row := range t.Rows {
		line(&b, row, func(cell string, i int) string { return pad(oneLine(cell), widths[i], t.right[i]) })
	}
	if len(t.Rows) == 1 {
		b.WriteString("(1 row)\n\n")
	} else {
		fmt.Fprintf(&b, "(%d rows)\n\n", len(t.Rows))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// line writes one line of cells, without the spaces at its end that psql writes: they only trouble who compares.
func line(b *strings.Builder, cells []string, shape func(cell string, i int) string) {
	shaped := make([]string, len(cells))
	for i, cell := range cells {
		shaped[i] = " " + shape(cell, i) + " "
	}
	b.WriteString(strings.TrimRight(strings.Join(shaped, "|"), " ") + "\n")
}

// oneLine shows line ends as the escape that an E” literal would have, so that the table keeps its shape.
func oneLine(cell string) string {
	return strings.NewReplacer("\r", `\r`, "\n", `\n`, "\t", `\t`).Replace(cell)
}

func pad(cell string, width int, right bool) string {
	space := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
	if right {
		return space + cell
	}
	return cell + space
}

func centre(cell string, width int) string {
	space := width - utf8.RuneCountInString(cell)
	return strings.Repeat(" ", space/2) + cell + strings.Repeat(" ", space-space/2)
}
