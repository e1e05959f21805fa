package land

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"highwater/sql/table"
)

// conflictsMax bounds how often one COPY may meet rows that the table has although it was just asked for them: another
// session would have to insert the same hashes again and again.
const conflictsMax = 5

// refusal is a row that the database refused, and its words.
type refusal struct {
	row int32
	err *pgconn.PgError
}

// write brings the chunk's rows into the table: one COPY where all goes well. It finds the rows that the table has already and
// those that it refuses, and leaves them out.
func (a *attempt) write(ctx context.Context) error {
	a.scratch.arrange(a.c.Rows)
	order, found := a.scratch.order, false
	if a.memory.lookFirst {
		missing, err := a.absent(ctx, order)
		if err != nil {
			return err
		}
		found, order = len(missing) < len(order), missing
	}
	a.memory.lookFirst = found // put sets it where it meets a conflict
	if len(order) == 0 {
		return nil
	}
	if err := a.prepare(ctx); err != nil {
		return err
	}
	for g := range a.c.Columns {
		a.group = int32(g)
		if err := a.put(ctx, a.grouped(order)); err != nil {
			return err
		}
	}
	return a.secondChance(ctx)
}

// grouped gives those of the rows that are of the group being copied.
func (a *attempt) grouped(order []int32) []int32 {
	if len(a.c.Columns) == 1 {
		return order
	}
	of := make([]int32, 0, len(order))
	for _, row := range order {
		if a.c.Rows[row].Group == a.group {
			of = append(of, row)
		}
	}
	return of
}

// put copies rows, in order of their hash. When the server objects, the rows before the one that it names are copied alone,
// then that one, then the rest; where it names none, halves do the same. What was copied stays: a row that is refused
// because of another of its chunk is the later one.
func (a *attempt) put(ctx context.Context, order []int32) error {
	for conflicts := 0; len(order) > 0; {
		err := a.copy(ctx, order)
		if err == nil {
			return nil
		}
		pe, conflict, err := a.rowsFault(err)
		if err != nil {
			return err
		}
		if _, err := a.conn.Exec(ctx, "ROLLBACK TO SAVEPOINT rows"); err != nil {
			return err
		}
		a.l.o.Failpoint("rolled-back")
		if conflict {
			if conflicts++; conflicts > conflictsMax {
				return fmt.Errorf("another session writes the same rows: %w", pe)
			}
			a.memory.lookFirst = true
			if order, err = a.absent(ctx, order); err != nil {
				return err
			}
			continue
		}
		if len(order) == 1 {
			return a.refuse(order[0], pe)
		}
		if order, err = a.around(ctx, order, pe); err != nil {
			return err
		}
	}
	return nil
}

// rowsFault tells a fault of rows from one of the environment, which it gives back as the error. A hash that the table has is
// no fault but a conflict.
func (a *attempt) rowsFault(err error) (pe *pgconn.PgError, conflict bool, _ error) {
	if !errors.As(err, &pe) || a.conn.IsClosed() {
		return nil, false, err
	}
	if pe.Code == "23505" && pe.SchemaName == table.Schema && pe.TableName == a.run.Table {
		switch pe.ConstraintName {
		case a.shape.HashIndex():
			return pe, true, nil
		case a.shape.KeyIndex():
			return nil, false, &Error{
				Code: "database_error", SQLState: pe.Code, err: err,
				Message: fmt.Sprintf("%s: the ids that the table's sequence gives are taken already: %s (SQLSTATE %s)", where(a.run, a.c), primary(pe), pe.Code),
				Hint: fmt.Sprintf("SELECT setval('%s'::regclass, (SELECT max(id) FROM %s));",
					strings.ReplaceAll(pgx.Identifier{table.Schema, a.run.Table + "_id_seq"}.Sanitize(), "'", "''"), table.Quoted(a.run.Table)),
			}
		}
	}
	if Fate(err).Do != RefuseRow {
		return nil, false, err
	}
	return pe, false, nil
}

// around copies what lies before the row at fault, then that row, and gives what is left to copy.
//
// The line that COPY names is taken at its word only as far as the rows before it prove it right: a row that is too big for a
// page is found late, and COPY then names the last line that it had read.
func (a *attempt) around(ctx context.Context, order []int32, pe *pgconn.PgError) ([]int32, error) {
	if a.sure > 0 {
		a.distrust = true
	}
	n := lineOf(pe, a.run.Table)
	if a.distrust || n < 1 || n > len(order) {
		half := len(order) / 2
		return order[half:], a.put(ctx, order[:half])
	}
	a.sure++
	err := a.put(ctx, order[:n-1])
	a.sure--
	if err != nil {
		return nil, err
	}
	return order[n:], a.put(ctx, order[n-1:n])
}

var copyLine = regexp.MustCompile(`(?m)^COPY (.+), line (\d+)`)

// lineOf reads the line that COPY into the table says it was at, 0 where it says none. A trigger may run a COPY of its own;
// ours is the outermost, which PostgreSQL names last.
func lineOf(pe *pgconn.PgError, name string) int {
	all := copyLine.FindAllStringSubmatch(pe.Where, -1)
	if len(all) == 0 || all[len(all)-1][1] != name {
		return 0
	}
	n, err := strconv.Atoi(all[len(all)-1][2])
	if err != nil {
		return 0
	}
	return n
}

// refuse leaves a row out, for a dead letter.
func (a *attempt) refuse(row int32, pe *pgconn.PgError) error {
	a.scratch.state[row] = notTaken
	a.refused = append(a.refused, refusal{row: row, err: pe})
	if len(a.refused) > a.l.o.RefusalsMax && !a.unlimited {
		return &tooMany{hopeless: a.copied <= len(a.refused)}
	}
	return nil
}

// secondChance tries rows again that lacked a row they refer to: it may have been one of their own chunk, copied after them.
func (a *attempt) secondChance(ctx context.Context) error {
	for progress := true; progress; {
		progress = false
		for _, r := range a.refused {
			if r.err.Code != "23503" || a.scratch.state[r.row] != notTaken {
				continue
			}
			a.group = a.c.Rows[r.row].Group
			err := a.copy(ctx, []int32{r.row})
			if err == nil {
				a.scratch.state[r.row], progress = written, true
				continue
			}
			if _, _, err = a.rowsFault(err); err != nil {
				return err
			}
			if _, err := a.conn.Exec(ctx, "ROLLBACK TO SAVEPOINT rows"); err != nil {
				return err
			}
		}
	}
	return nil
}

// absent marks the rows whose hash the table has as duplicates and gives the others, in their order.
func (a *attempt) absent(ctx context.Context, order []int32) ([]int32, error) {
	hashes := make([]string, len(order))
	for i, row := range order {
		hashes[i] = a.c.Rows[row].Hash
	}
	rows, err := a.conn.Query(ctx, fmt.Sprintf(`SELECT _row_hash FROM ONLY %s WHERE _row_hash = ANY ($1::text[]) ORDER BY _row_hash COLLATE "C"`,
		table.Quoted(a.run.Table)), hashes)
	if err != nil {
		return nil, err
	}
	missing := make([]int32, 0, len(order))
	var has string
	i := 0
	_, err = pgx.ForEachRow(rows, []any{&has}, func() error { // both sides are sorted alike
		for ; i < len(order) && hashes[i] < has; i++ {
			missing = append(missing, order[i])
		}
		if i < len(order) && hashes[i] == has {
			a.scratch.state[order[i]] = duplicate
			i++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return append(missing, order[i:]...), nil
}

// count says what became of the chunk's rows, partition by partition.
func (a *attempt) count() {
	parts := make([]Counts, len(a.c.Advances))
	for i, adv := range a.c.Advances {
		parts[i].Partition = adv.Partition
	}
	for i := range a.c.Rows {
		p, _ := a.c.advance(a.c.Rows[i].Partition)
		switch a.scratch.state[i] {
		case written:
			parts[p].Written++
		case duplicate:
			parts[p].Duplicates++
		case notTaken:
			parts[p].Letters++
		}
	}
	for i := range a.c.Letters {
		p, _ := a.c.advance(a.c.Letters[i].Partition)
		parts[p].Letters++
	}
	a.landed.Partitions = parts
	for _, p := range parts {
		a.landed.Written += p.Written
		a.landed.Duplicates += p.Duplicates
		a.landed.Letters += p.Letters
	}
}
