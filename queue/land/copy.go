package land

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"highwater/sql/stmt"
	"highwater/sql/table"
)

// scratch is memory that the chunks of a lander use one after the other, so that a row costs no allocation.
type scratch struct {
	keys  []sortKey
	order []int32 // indexes into Chunk.Rows, sorted by hash, each hash once
	state []state // what became of each row
	head  []byte
}

// What becomes of a row.
const (
	written state = iota // unless something else is said
	duplicate
	notTaken // refused by the database
)

type state uint8

// sortKey spares most comparisons of whole hashes.
type sortKey struct {
	prefix uint64
	row    int32
}

// arrange sorts the rows by hash, byte by byte as the unique index does, and takes out those whose hash an earlier row has.
// Sorted rows meet the index page by page; in the order of arrival every row would need a page of its own.
func (s *scratch) arrange(rows []Row) {
	s.keys, s.order = s.keys[:0], s.order[:0]
	s.state = append(s.state[:0], make([]state, len(rows))...)
	for i := range rows {
		s.keys = append(s.keys, sortKey{prefix: prefix(rows[i].Hash), row: int32(i)})
	}
	slices.SortFunc(s.keys, func(a, b sortKey) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		if c := strings.Compare(rows[a.row].Hash, rows[b.row].Hash); c != 0 {
			return c
		}
		return cmp.Compare(a.row, b.row) // the first by offset stays
	})
	for i, k := range s.keys {
		if i > 0 && rows[k.row].Hash == rows[s.keys[i-1].row].Hash {
			s.state[k.row] = duplicate
			continue
		}
		s.order = append(s.order, k.row)
	}
}

func prefix(hash string) uint64 {
	var b [8]byte
	copy(b[:], hash)
	return binary.BigEndian.Uint64(b[:])
}

// ids gives every row of a chunk its id: in the order of the rows, whatever order they are copied in. Rows that are not
// written leave a gap.
type ids struct {
	asked bool
	first int64
	list  []int64 // where the sequence gives no block
}

func (d ids) of(row int32) int64 {
	if d.list != nil {
		return d.list[row]
	}
	return d.first + int64(row)
}

// queueIDs takes the ids of a chunk's rows and sets the savepoint, unless rows are looked up first: then it may need none.
func (a *attempt) queueIDs(b *pgx.Batch) {
	if !a.memory.lookFirst {
		a.takeIDs(b)
	}
}

// takeIDs sends SET CONSTRAINTS first, so that what is deferred is judged by the very COPY that brought it. Ids are taken
// under the positions' lock: they rise with the offsets from chunk to chunk.
func (a *attempt) takeIDs(b *pgx.Batch) {
	n := int64(len(a.c.Rows))
	b.Queue("SET CONSTRAINTS ALL IMMEDIATE")
	b.Queue("SAVEPOINT rows")
	b.Queue(stmt.LandIDs, a.shape.Sequence(), n).QueryRow(func(row pgx.Row) error {
		var last int64
		if err := row.Scan(&a.ids.first, &last); err != nil {
			return err
		}
		a.ids.asked = true
		if last-a.ids.first+1 != n {
			a.ids.first = 0
		}
		return nil
	})
}

// prepare sees to it that the savepoint is set and every row has an id.
func (a *attempt) prepare(ctx context.Context) error {
	if !a.ids.asked {
		b := &pgx.Batch{}
		a.takeIDs(b)
		if err := a.send(ctx, b); err != nil {
			return err
		}
	}
	if a.ids.first == 0 && a.ids.list == nil {
		// The sequence has a cache or another increment, or somebody else takes from it too.
		err := a.conn.QueryRow(ctx, stmt.LandIDList, a.shape.Sequence(), int64(len(a.c.Rows))).Scan(&a.ids.list)
		return err
	}
	return nil
}

// copy sends rows in one COPY. A server that took fewer than it was sent has a trigger or a policy that swallows rows: then
// nothing of the chunk may stay.
func (a *attempt) copy(ctx context.Context, order []int32) error {
	if a.dirty {
		if _, err := a.conn.Exec(ctx, "RELEASE SAVEPOINT rows; SAVEPOINT rows"); err != nil {
			return err
		}
		a.dirty = false
	}
	a.l.o.Failpoint("copying")
	r := &reader{a: a, order: order, tail: a.tail()}
	tag, err := a.conn.PgConn().CopyFrom(ctx, r, a.copySQL())
	if err != nil {
		return err
	}
	if tag.RowsAffected() != int64(len(order)) {
		return &Error{
			Code: "rows_vanished",
			Message: fmt.Sprintf("%s: the server took %d of the %d rows it was sent; a trigger or policy on the table swallowed the others",
				where(a.run, a.c), tag.RowsAffected(), len(order)),
			Hint: fmt.Sprintf("SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = '%s'::regclass AND NOT tgisinternal; and DISABLE or DROP the one that returns NULL.",
				strings.ReplaceAll(table.Quoted(a.run.Table), "'", "''")),
		}
	}
	a.dirty = true
	a.copied += len(order)
	return nil
}

func (a *attempt) copySQL() string {
	var b strings.Builder
	fmt.Fprintf(&b, "COPY %s (id, _row_hash, _source, _run_id, _mapping_version, tenant_id", table.Quoted(a.run.Table))
	for _, c := range a.c.Columns[a.group] {
		b.WriteString(", ")
		b.WriteString(pgx.Identifier{c}.Sanitize())
	}
	b.WriteString(") FROM STDIN")
	return b.String()
}

// tail is what every line has between its source and its message's columns.
func (a *attempt) tail() []byte {
	return fmt.Appendf(nil, "\t%s\t%d\t%d", a.run.ID, a.run.MappingVersion, a.run.TenantID)
}

// reader writes COPY lines as they are asked for; at no time is there a second copy of a chunk.
type reader struct {
	a     *attempt
	order []int32
	tail  []byte
	line  [3][]byte // what is left of the line begun: its head, its text, its end
}

var newline = []byte{'\n'}

// Read fills p; it gives fewer bytes only when the rows are at their end.
func (r *reader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.line[2]) == 0 {
			if len(r.order) == 0 {
				return n, io.EOF
			}
			r.next()
		}
		for i := range r.line {
			m := copy(p[n:], r.line[i])
			r.line[i] = r.line[i][m:]
			n += m
		}
	}
	return n, nil
}

// next begins a line.
func (r *reader) next() {
	row := &r.a.c.Rows[r.order[0]]
	h := strconv.AppendInt(r.a.scratch.head[:0], r.a.ids.of(r.order[0]), 10)
	h = append(append(h, '\t'), row.Hash...)
	h = append(append(h, "\tkafka:"...), r.a.run.Topic...)
	h = strconv.AppendInt(append(h, ':'), int64(row.Partition), 10)
	h = strconv.AppendInt(append(h, ':'), row.Offset, 10)
	h = append(h, r.tail...)
	r.a.scratch.head = h
	r.line = [3][]byte{h, row.Text, newline}
	r.order = r.order[1:]
}
