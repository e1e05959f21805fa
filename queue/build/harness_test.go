package build

import (
	"fmt"
	"strings"
	"testing"

	"highwater/queue/land"
	"highwater/reader/kafka"
	"highwater/sql/table"
)

// batchOf makes a batch of values at successive offsets; a value "<null>" is a tombstone with key k<offset>.
func batchOf(partition int32, from int64, values ...string) kafka.Batch {
	b := kafka.Batch{Partition: partition, From: from, Next: from + int64(len(values)), Epoch: 3}
	for i, v := range values {
		r := kafka.Record{Offset: from + int64(i), Timestamp: 1767225600123, Key: fmt.Appendf(nil, "k%d", from+int64(i)), Value: []byte(v)}
		if v == "<null>" {
			r.Value = nil
		}
		b.Records = append(b.Records, r)
		b.Bytes += len(r.Key) + len(r.Value)
	}
	return b
}

// shapeOf makes a table of columns written as name:type.
func shapeOf(columns ...string) *table.Shape {
	var alters []table.Alter
	for _, c := range columns {
		name, typ, _ := strings.Cut(c, ":")
		alters = append(alters, table.Alter{Column: name, Type: typ})
	}
	return (*table.Shape)(nil).With(alters)
}

// cut cuts one chunk and checks its invariant.
func cut(t *testing.T, b *Builder, shape *table.Shape) *land.Chunk {
	t.Helper()
	c, err := b.Cut(shape)
	if err != nil {
		t.Fatal(err)
	}
	if c == nil {
		t.Fatal("no chunk")
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	return c
}

// all cuts everything that is pending, carrying the shape from chunk to chunk as landing would.
func all(t *testing.T, b *Builder, shape *table.Shape) ([]*land.Chunk, *table.Shape) {
	t.Helper()
	var chunks []*land.Chunk
	for b.Pending() {
		c := cut(t, b, shape)
		if len(c.Alters) > 0 || shape == nil && len(c.Rows) > 0 {
			shape = shape.With(c.Alters)
		}
		chunks = append(chunks, c)
	}
	return chunks, shape
}

// shown writes a chunk's alters, rows and letters, one a line: what a test compares.
func shown(chunks ...*land.Chunk) string {
	var b strings.Builder
	for _, c := range chunks {
		for _, a := range c.Alters {
			verb := "add"
			if a.Widen {
				verb = "widen"
			}
			fmt.Fprintf(&b, "%s %s %s\n", verb, a.Column, a.Type)
		}
		for i := range c.Rows {
			fmt.Fprintf(&b, "%d:%d%s\n", c.Rows[i].Partition, c.Rows[i].Offset, rowOf(c, &c.Rows[i]))
		}
		for _, l := range c.Letters {
			fmt.Fprintf(&b, "%d:%d %s: %s\n", l.Partition, l.Offset, l.Reason, l.Message)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// rowOf writes a row as its COPY text, each value behind its column's name.
func rowOf(c *land.Chunk, r *land.Row) string {
	var b strings.Builder
	columns := c.Columns[r.Group]
	values := strings.Split(string(r.Text), "\t")
	if len(values) != len(columns)+1 || values[0] != "" || strings.ContainsAny(string(r.Text), "\n\r\x00") {
		return fmt.Sprintf(" BROKEN TEXT %q for columns %v", r.Text, columns)
	}
	for i, name := range columns {
		fmt.Fprintf(&b, " %s=%s", name, values[i+1])
	}
	return b.String()
}

func lines(s ...string) string { return strings.Join(s, "\n") }

func compare(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
