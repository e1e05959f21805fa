package land

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"highwater/migrations"
	"highwater/sidecar/demo/postgres"
	"highwater/sql/table"
)

// benchRows is how many rows one round lands; HIGHWATER_BENCH_ROWS changes it.
const benchRows = 300_000

var partnerColumns = []table.Alter{
	{Column: "partner_id", Field: "partner_id", Type: "bigint"},
	{Column: "name", Field: "name", Type: "text"},
	{Column: "city", Field: "city", Type: "text"},
	{Column: "country", Field: "country", Type: "text"},
	{Column: "credit_limit", Field: "credit_limit", Type: "bigint"},
	{Column: "updated_at", Field: "updated_at", Type: "text"},
}

// partners are rows in the shape of the ACME topic.
func partners(n int) (columns []string, rows []Row) {
	for _, c := range partnerColumns {
		columns = append(columns, c.Column)
	}
	trades, cities := []string{"Bakery", "Garage", "Pharmacy", "Florist", "Winery"}, []string{"Lyon", "Gent", "Turin", "Porto", "Graz", "Kraków"}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		city := cities[i%len(cities)]
		rows = append(rows, messageRow(0, int64(i), row(strconv.Itoa(1000+i), fmt.Sprintf("%s %s %d", trades[i%len(trades)], city, i), city, "FR",
			strconv.Itoa(500+137*i%9000), at.Add(time.Duration(i)*time.Minute).Format(time.RFC3339))))
		rows[i].Raw = Source{}
	}
	return columns, rows
}

// BenchmarkLand tells rows a second at several sizes of chunk, and the ratios to one COPY into the same kind of table in the
// same round: of the same rows, and of rows whose hash is the 64 hex digits of SHA-256, which is the reference of the goals.
// It starts a server of its own with shared_buffers and max_wal_size raised, all else as it comes.
func BenchmarkLand(b *testing.B) {
	n := benchRows
	if s := os.Getenv("HIGHWATER_BENCH_ROWS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	columns, rows := partners(n)
	long := slices.Clone(rows)
	for i := range long {
		sum := sha256.Sum256(long[i].Text)
		long[i].Hash = hex.EncodeToString(sum[:])
	}
	bb := benchServer(b)
	for _, size := range []int{500, 2000, 10_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			bb := &benchmark{B: b, pool: bb.pool}
			var landing, copying, reference time.Duration
			for range b.N {
				reference += bb.copy(columns, long)
				copying += bb.copy(columns, rows)
				landing += bb.land(columns, rows, size)
			}
			total := float64(n * b.N)
			b.ReportMetric(total/landing.Seconds(), "rows/s")
			b.ReportMetric(total/copying.Seconds(), "copy-rows/s")
			b.ReportMetric(copying.Seconds()/landing.Seconds(), "of-copy")
			b.ReportMetric(reference.Seconds()/landing.Seconds(), "of-hex-copy")
		})
	}
}

type benchmark struct {
	*testing.B
	pool *pgxpool.Pool
}

func benchServer(b *testing.B) *benchmark {
	ctx := context.Background()
	s, err := postgres.Start(ctx, postgres.Options{Settings: map[string]string{"shared_buffers": "1GB", "max_wal_size": "4GB"}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Stop)
	config, err := pgxpool.ParseConfig(s.URL("postgres"))
	if err != nil {
		b.Fatal(err)
	}
	if err := migrations.Apply(ctx, config.ConnConfig, migrations.Options{}); err != nil {
		b.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return &benchmark{B: b, pool: pool}
}

// fresh plans a run of a connector whose table is made by its first chunk.
func (b *benchmark) fresh() *bundle {
	v := &bundle{TB: b.B, admin: b.pool, pool: b.pool, next: map[int32]int64{}, lander: New(b.pool, Options{})}
	name := "b" + uuid.NewString()[:8]
	v.run = Run{ID: uuid.New(), Connector: name, ConnectorID: uuid.New(), TenantID: 1, Table: "t_" + name, Fence: 1, Topic: "acme.partners", TopicID: uuid.New(), MappingVersion: 1}
	v.plan(1 << 40)
	return v
}

func (b *benchmark) land(columns []string, rows []Row, size int) time.Duration {
	v := b.fresh()
	v.exec("CHECKPOINT")
	begun := time.Now()
	for from := 0; from < len(rows); from += size {
		part := rows[from:min(from+size, len(rows))]
		c := &Chunk{ID: uuid.New(), Columns: [][]string{columns}, Rows: part, Advances: []Advance{{From: int64(from), To: int64(from + len(part)), Epoch: 1}}}
		if from == 0 {
			c.Alters = partnerColumns
		}
		if _, err := v.land(c); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(begun)
	v.exec("DROP TABLE " + table.Quoted(v.run.Table))
	return took
}

// copy sends the same rows as one COPY, in the order of arrival, ready in memory.
func (b *benchmark) copy(columns []string, rows []Row) time.Duration {
	v := b.fresh()
	ctx := context.Background()
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	if _, err := table.Create(ctx, conn, v.run.Table, partnerColumns, v.run.Connector, v.run.Topic); err != nil {
		b.Fatal(err)
	}
	a := &attempt{run: v.run, c: &Chunk{Rows: rows, Columns: [][]string{columns}}, scratch: &scratch{}, ids: ids{first: 1}}
	order := make([]int32, len(rows))
	for i := range order {
		order[i] = int32(i)
	}
	text, err := io.ReadAll(&reader{a: a, order: order, tail: a.tail()})
	if err != nil {
		b.Fatal(err)
	}
	v.exec("CHECKPOINT")
	begun := time.Now()
	if _, err := conn.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(text), a.copySQL()); err != nil {
		b.Fatal(err)
	}
	took := time.Since(begun)
	v.exec("DROP TABLE " + table.Quoted(v.run.Table))
	return took
}

func TestLandingAllocatesNothingARow(t *testing.T) {
	columns, rows := partners(1000)
	a := &attempt{run: Run{Topic: "t"}, c: &Chunk{Rows: rows, Columns: [][]string{columns}}, scratch: &scratch{}, ids: ids{first: 1}}
	buf := make([]byte, 64<<10)
	if n := testing.AllocsPerRun(10, func() {
		a.scratch.arrange(rows)
		r := &reader{a: a, order: a.scratch.order, tail: a.tail()}
		for {
			if _, err := r.Read(buf); err != nil {
				break
			}
		}
	}); n > 20 {
		t.Errorf("%v allocations for 1000 rows", n)
	}
}
