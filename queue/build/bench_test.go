package build

import (
	"fmt"
	"strings"
	"testing"

	"highwater/reader/kafka"
	"highwater/sql/table"
)

// benchmark cuts chunks of 5,000 messages; figures are per message.
func benchmark(b *testing.B, o Options, shape *table.Shape, value func(i int) string) {
	const rows = 5000
	o.ChunkRows, o.ChunkBytes = rows, 64<<20
	batch := kafka.Batch{Next: rows}
	bytes := 0
	for i := range rows {
		v := value(i)
		bytes += len(v)
		batch.Records = append(batch.Records, kafka.Record{Offset: int64(i), Timestamp: 1767225600000, Key: []byte("k"), Value: []byte(v)})
	}
	builder := New(o)
	b.SetBytes(int64(bytes / rows))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N/rows + 1 {
		builder.Add(batch)
		c, err := builder.Cut(shape)
		if err != nil || len(c.Rows) != rows {
			b.Fatal(err, len(c.Rows))
		}
	}
}

func acme(i int) string {
	return fmt.Sprintf(`{"partner_id":%d,"name":"Hydraulique Lyon %d","city":"Lyon","country":"FR","credit_limit":500,"updated_at":"2026-01-01T00:00:00Z"}`, 1000+i, 1000+i)
}

var acmeShape = []string{"partner_id:bigint", "name:text", "city:text", "country:text", "credit_limit:bigint", "updated_at:text"}

func wide(i int) string {
	var s []string
	for k := range 10 {
		s = append(s, fmt.Sprintf(`"number_%02d":%d,"amount_%02d":%d.%02d,"text_%02d":"a text of some thirty letters %d"`, k, i*103, k, i*77, k, k, i))
	}
	return "{" + strings.Join(s, ",") + "}"
}

func wideShape() *table.Shape {
	var s []string
	for k := range 10 {
		s = append(s, fmt.Sprintf("number_%02d:bigint", k), fmt.Sprintf("amount_%02d:numeric(18,4)", k), fmt.Sprintf("text_%02d:text", k))
	}
	return shapeOf(s...)
}

func BenchmarkACME(b *testing.B) { benchmark(b, Options{}, shapeOf(acmeShape...), acme) }
func BenchmarkACMEOffset(b *testing.B) {
	benchmark(b, Options{Dedup: DedupOffset}, shapeOf(acmeShape...), acme)
}
func BenchmarkWide(b *testing.B) { benchmark(b, Options{}, wideShape(), wide) }

func BenchmarkDocument(b *testing.B) {
	benchmark(b, Options{Layout: LayoutDocument}, shapeOf("payload:jsonb"), acme)
}

func BenchmarkNested(b *testing.B) {
	benchmark(b, Options{}, shapeOf("id_:bigint", "o:jsonb"), func(i int) string { return fmt.Sprintf(`{"id_":%d,"o":%s}`, i, acme(i)) })
}

func BenchmarkEscapes(b *testing.B) {
	benchmark(b, Options{}, shapeOf(acmeShape...), func(i int) string { return strings.ReplaceAll(acme(i), "Hydraulique ", `Hydr\u00e9\n\"x\" `) })
}

// Messages of many forms, none twice in a row.
func BenchmarkForms(b *testing.B) {
	benchmark(b, Options{}, shapeOf(acmeShape...), func(i int) string {
		if i%2 == 0 {
			return acme(i)
		}
		return fmt.Sprintf(`{"city":"Paris","partner_id":%d}`, i)
	})
}

func BenchmarkIncluded(b *testing.B) {
	shape := shapeOf(append([]string{"_partition:integer", "_offset:bigint", "_timestamp:timestamptz", "_key:text"}, acmeShape...)...)
	benchmark(b, Options{Include: []string{"partition", "offset", "timestamp", "key"}}, shape, acme)
}

// Nothing is allocated per message: what a chunk allocates does not depend on how many it has.
func TestAChunkAllocatesNothingPerMessage(t *testing.T) {
	for _, shape := range []*table.Shape{shapeOf(acmeShape...)} {
		allocations := func(rows int) float64 {
			batch := kafka.Batch{Next: int64(rows)}
			for i := range rows {
				batch.Records = append(batch.Records, kafka.Record{Offset: int64(i), Value: []byte(acme(i))})
			}
			builder := New(Options{ChunkRows: rows})
			run := func() {
				builder.Add(batch)
				if c, err := builder.Cut(shape); err != nil || len(c.Rows) != rows {
					t.Fatal(err)
				}
			}
			run()
			return testing.AllocsPerRun(5, run)
		}
		small, large := allocations(1000), allocations(8000)
		if large > small+4 || large > 40 {
			t.Errorf("%v allocations for 1,000 messages, %v for 8,000", small, large)
		}
	}
}
