package land

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"highwater/sql/table"
	"highwater/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// sidecarRole is a login role as an installation has it: an inheriting member of the owner, and nothing more.
const sidecarRole = "land_test_sidecar"

// bundle is a database with one connector whose run is planned for partitions 0 and 1, and a lander as the sidecar's role.
type bundle struct {
	testing.TB
	url    string        // of the superuser
	admin  *pgxpool.Pool // as superuser
	pool   *pgxpool.Pool // as the sidecar's role
	lander *Lander
	run    Run
	shape  *table.Shape
	next   map[int32]int64 // where the next chunk of a partition begins
}

func setup(tb testing.TB, o Options) *bundle {
	tb.Helper()
	b := &bundle{TB: tb, url: harness.Database(tb), next: map[int32]int64{}}
	b.admin = harness.Pool(tb, b.url)
	b.exec("DO $$ BEGIN CREATE ROLE " + sidecarRole + " LOGIN IN ROLE highwater_owner; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$")
	b.pool = harness.Pool(tb, b.as(sidecarRole))
	b.lander = New(b.pool, o)
	b.run = Run{
		ID: uuid.New(), Connector: "orders", ConnectorID: uuid.New(), TenantID: 1, Table: "t_orders", Fence: 7, Topic: "acme.orders",
		TopicID: uuid.New(), MappingVersion: 3,
	}
	b.plan(1_000_000)
	return b
}

// as gives the database's URL for another role.
func (b *bundle) as(role string) string {
	u, err := url.Parse(b.url)
	if err != nil {
		b.Fatal(err)
	}
	u.User = url.User(role)
	return u.String()
}

// plan stores what a claim and a plan would have stored for b.run.
func (b *bundle) plan(target int64) {
	b.Helper()
	b.exec(`INSERT INTO connector._endpoint (connector_id, connector, tenant_id, table_name, fence, lease_run, lease_sidecar, lease_until)
		VALUES ($1, $2, $3, $4, $5, $6, 'test', clock_timestamp() + interval '1 hour')
		ON CONFLICT (connector_id) DO UPDATE SET fence = excluded.fence, lease_run = excluded.lease_run`,
		b.run.ConnectorID, b.run.Connector, b.run.TenantID, b.run.Table, b.run.Fence, b.run.ID)
	b.exec(`INSERT INTO connector._run (run_id, connector_id, connector, tenant_id, status, started_by, requested_by)
		VALUES ($1, $2, $3, $4, 'Running', 'manual', 'test')`, b.run.ID, b.run.ConnectorID, b.run.Connector, b.run.TenantID)
	for p := range 2 {
		b.exec(`INSERT INTO connector._cursor (connector_id, partition, tenant_id, next_offset, fence) VALUES ($1, $2, $3, 0, $4)
			ON CONFLICT (connector_id, partition) DO UPDATE SET next_offset = 0, fence = excluded.fence`, b.run.ConnectorID, p, b.run.TenantID, b.run.Fence)
		b.exec(`INSERT INTO connector._run_partition (run_id, partition, tenant_id, topic, start_offset, target_offset, next_offset)
			VALUES ($1, $2, $3, $4, 0, $5, 0)`, b.run.ID, p, b.run.TenantID, b.run.Topic, target)
	}
}

// again begins another run of the same connector from offset 0, as after reset_cursor.
func (b *bundle) again() {
	b.Helper()
	b.run.ID, b.run.Fence, b.run.Made, b.next = uuid.New(), b.run.Fence+1, true, map[int32]int64{}
	b.plan(1_000_000)
}

func (b *bundle) exec(sql string, args ...any) {
	b.Helper()
	if _, err := b.admin.Exec(context.Background(), sql, args...); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
}

// one asks for a single value as superuser.
func one[T any](b *bundle, sql string, args ...any) T {
	b.Helper()
	rows, err := b.admin.Query(context.Background(), sql, args...)
	if err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
	return v
}

// columns of the simplest table: a number and a text.
var simple = []table.Alter{{Column: "n", Field: "n", Type: "bigint"}, {Column: "s", Field: "s", Type: "text"}}

// row is one message: its COPY values, in the order of the chunk's columns.
func row(values ...string) []string { return values }

// numbered gives messages n, n+1, … of the simple table.
func numbered(from, n int) (rows [][]string) {
	for i := range n {
		rows = append(rows, row(fmt.Sprint(from+i), fmt.Sprint("text ", from+i)))
	}
	return rows
}

// chunk makes a chunk of one partition that begins where the last one ended; columns by name.
func (b *bundle) chunk(partition int32, columns []string, rows [][]string) *Chunk {
	from := b.next[partition]
	c := &Chunk{ID: uuid.New(), Columns: [][]string{columns}, Advances: []Advance{{Partition: partition, From: from, To: from + int64(len(rows)), Epoch: 4}}}
	for i, values := range rows {
		c.Rows = append(c.Rows, messageRow(partition, from+int64(i), values))
	}
	return c
}

func messageRow(partition int32, offset int64, values []string) Row {
	var text []byte
	for _, v := range values {
		text = append(append(text, '\t'), v...)
	}
	sum := sha256.Sum256(text)
	return Row{
		Hash: base64.RawURLEncoding.EncodeToString(sum[:20]), Partition: partition, Offset: offset, Text: text,
		Raw: Source{Key: []byte("k"), Value: []byte(strings.Join(values, "|"))},
	}
}

// land lands a chunk and takes its shape and position over.
func (b *bundle) land(c *Chunk) (Landed, error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	landed, err := b.lander.Land(ctx, b.run, c, b.shape)
	if landed.Shape != nil {
		b.shape = landed.Shape
	}
	if err == nil {
		for _, a := range c.Advances {
			b.next[a.Partition] = a.To
		}
	}
	return landed, err
}

// must lands a chunk that has to succeed.
func (b *bundle) must(c *Chunk) Landed {
	b.Helper()
	landed, err := b.land(c)
	if err != nil {
		b.Fatalf("landing: %v", err)
	}
	b.audit()
	return landed
}

// started makes the simple table with its first n rows.
func (b *bundle) started(n int) {
	b.Helper()
	c := b.chunk(0, []string{"n", "s"}, numbered(0, n))
	c.Alters = simple
	b.must(c)
}

// audit checks what must be true after every step: each offset below the positions is accounted for once, and the rows and
// letters of this run are as many as were counted.
func (b *bundle) audit() {
	b.Helper()
	if n := one[int64](b, `SELECT count(*) FROM connector._run_partition AS p JOIN connector._cursor AS c USING (partition)
		WHERE p.run_id = $1 AND c.connector_id = $2 AND (c.next_offset <> p.next_offset
			OR p.next_offset - p.start_offset <> p.written + p.duplicates + p.dead_letters + p.filtered + p.tombstones_applied + p.no_record)`,
		b.run.ID, b.run.ConnectorID); n != 0 {
		b.Errorf("%d partitions do not add up", n)
	}
	if got, want := b.rows("_run_id = '"+b.run.ID.String()+"'"), b.counted("written"); got != want {
		b.Errorf("the table has %d rows of the run, counted were %d", got, want)
	}
	if got, want := one[int64](b, "SELECT count(*) FROM connector._dlq WHERE run_id = $1", b.run.ID), b.counted("dead_letters"); got != want {
		b.Errorf("there are %d dead letters of the run, counted were %d", got, want)
	}
}

func (b *bundle) counted(what string) int64 {
	b.Helper()
	return one[int64](b, "SELECT sum("+what+")::bigint FROM connector._run_partition WHERE run_id = $1", b.run.ID)
}

// rows counts rows of the table, 0 where there is none.
func (b *bundle) rows(where string) int64 {
	b.Helper()
	if !one[bool](b, "SELECT to_regclass($1) IS NOT NULL", table.Quoted(b.run.Table)) {
		return 0
	}
	return one[int64](b, "SELECT count(*) FROM "+table.Quoted(b.run.Table)+" WHERE "+where)
}

// position is where a partition's cursor stands.
func (b *bundle) position(partition int32) int64 {
	b.Helper()
	return one[int64](b, "SELECT next_offset FROM connector._cursor WHERE connector_id = $1 AND partition = $2", b.run.ConnectorID, partition)
}

// session opens a session of its own as superuser.
func (b *bundle) session() *pgx.Conn {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), b.url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func do(tb testing.TB, conn *pgx.Conn, sql string) pgconn.CommandTag {
	tb.Helper()
	tag, err := conn.Exec(context.Background(), sql)
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return tag
}
