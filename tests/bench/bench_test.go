// Package bench measures whole runs, from connector.run to Completed, as ratios to what one connection needs to COPY the
// same number of ready-made rows into a table of the same shape in one transaction, in the same sitting.
//
// Rates differ from machine to machine and from hour to hour; ratios travel. `make bench` prints them.
package bench

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"highwater/migrations"
	"highwater/sidecar/demo/postgres"
	"highwater/tests/harness"
)

// messages is how many messages a whole run reads; HIGHWATER_BENCH_MESSAGES sets another number.
var messages = fromEnv("HIGHWATER_BENCH_MESSAGES", 1_000_000)

// runs is how often each figure is taken; the median is shown.
var runs = fromEnv("HIGHWATER_BENCH_RUNS", 3)

func fromEnv(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

func TestMain(m *testing.M) { harness.Main(m) }

// bench is one server, one broker and one sidecar process, shared by all figures of a sitting.
type bench struct {
	url    string
	pool   *pgxpool.Pool
	broker string
	pid    int
	limit  float64 // rows a second of COPY
}

func acme(b []byte, i int) []byte {
	return fmt.Appendf(b, `{"partner_id":%d,"name":"Hydraulique Lyon %d","city":"Lyon","country":"FR","credit_limit":500,"updated_at":"2026-01-01T00:00:00Z"}`, 1000+i, 1000+i)
}

func start(b *testing.B) *bench {
	b.Helper()
	server, err := postgres.Start(b.Context(), postgres.Options{Settings: map[string]string{"shared_buffers": "1GB", "max_wal_size": "4GB"}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Stop)
	x := &bench{url: server.URL("postgres"), broker: harness.Kafka(b).Addr()}
	cc, err := pgx.ParseConfig(x.url)
	if err != nil {
		b.Fatal(err)
	}
	if err := migrations.Apply(b.Context(), cc, migrations.Options{}); err != nil {
		b.Fatal(err)
	}
	if x.pool, err = pgxpool.New(b.Context(), x.url); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(x.pool.Close)
	x.pid = serve(b, x.url)
	return x
}

// serve builds the program and starts it, so that its memory can be told from the benchmark's own.
func serve(b *testing.B, url string) int {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "highwater")
	if out, err := exec.Command("go", "build", "-o", bin, "highwater/sidecar").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(bin, "serve", "-http-addr", "")
	cmd.Env = append(os.Environ(), "HIGHWATER_DATABASE_URL="+url)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	cmd.Stderr = os.Stderr
	if os.Getenv("HIGHWATER_BENCH_LOG") == "" {
		cmd.Stderr = nil
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

func (x *bench) exec(b *testing.B, sql string, args ...any) {
	b.Helper()
	if _, err := x.pool.Exec(b.Context(), sql, args...); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
}

// fill makes a topic of so many messages.
func (x *bench) fill(b *testing.B, topic string, partitions int) {
	b.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(x.broker), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(100_000), kgo.ProducerLinger(20*time.Millisecond))
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(b.Context(), int32(partitions), 1, nil, topic); err != nil {
		b.Fatal(err)
	}
	var once sync.Once
	for i := range messages {
		r := &kgo.Record{Topic: topic, Partition: int32(i % partitions), Key: strconv.AppendInt(nil, int64(1000+i), 10), Value: acme(nil, i)}
		cl.Produce(b.Context(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { b.Errorf("producing: %v", err) })
			}
		})
	}
	if err := cl.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// copyLimit measures COPY of rows made on the way, all in one transaction, into a table of the same shape with the
// obvious hash: 64 hex digits. This is the ratio 1.00.
func (x *bench) copyLimit(b *testing.B) float64 {
	b.Helper()
	var rates []float64
	var buf []byte
	for range runs {
		x.exec(b, `DROP TABLE IF EXISTS bench_copy; CREATE TABLE bench_copy (id bigserial PRIMARY KEY, _row_hash text UNIQUE NOT NULL, _ingested_at timestamptz NOT NULL DEFAULT now(),
			_source text, _run_id uuid, _mapping_version integer, tenant_id bigint NOT NULL, partner_id bigint, name text, city text, country text, credit_limit bigint, updated_at text);
			CREATE INDEX ON bench_copy (tenant_id)`)
		x.exec(b, "CHECKPOINT")
		conn, err := x.pool.Acquire(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		begun := time.Now()
		buf = buf[:0]
		var msg []byte
		for i := range messages {
			msg = acme(msg[:0], i)
			h := sha256.Sum256(msg)
			buf = hex.AppendEncode(buf, h[:])
			buf = fmt.Appendf(buf, "\tkafka:bench:0:%d\t0197a1de-0000-7000-8000-000000000001\t1\t1\t%d\tHydraulique Lyon %d\tLyon\tFR\t500\t2026-01-01T00:00:00Z\n", i, 1000+i, 1000+i)
		}
		_, err = conn.Conn().PgConn().CopyFrom(b.Context(), bytes.NewReader(buf), "COPY bench_copy (_row_hash, _source, _run_id, _mapping_version, tenant_id, partner_id, name, city, country, credit_limit, updated_at) FROM STDIN")
		took := time.Since(begun)
		conn.Release()
		if err != nil {
			b.Fatal(err)
		}
		rates = append(rates, float64(messages)/took.Seconds())
	}
	x.exec(b, "DROP TABLE bench_copy")
	slices.Sort(rates)
	return rates[len(rates)/2]
}

// wholeRun declares a fresh connector, runs it and gives rows a second from the commit of run to Completed.
func (x *bench) wholeRun(b *testing.B, topic, extra string) float64 {
	b.Helper()
	x.exec(b, "DELETE FROM connector.manifest WHERE name = 'bench'")
	x.exec(b, "INSERT INTO connector.manifest (name, scopes, spec) VALUES ('bench', '{b}', $1::jsonb)", fmt.Sprintf(`{"name":"bench","brokers":%q,"topic":%q%s}`, x.broker, topic, extra))
	x.exec(b, "CHECKPOINT")
	status, seconds, rows := x.run(b)
	if status != "Completed" || rows != int64(messages) {
		b.Fatalf("the run ended %s with %d rows", status, rows)
	}
	return float64(messages) / seconds
}

func (x *bench) run(b *testing.B) (status string, seconds float64, rows int64) {
	b.Helper()
	var id string
	if err := x.pool.QueryRow(b.Context(), "SELECT connector.run('bench')::text").Scan(&id); err != nil {
		b.Fatal(err)
	}
	err := x.pool.QueryRow(b.Context(), "SELECT w.status, extract(epoch FROM w.ended_at - w.scheduled_at)::float8, w.records_out FROM connector.wait($1, '10 minutes') AS w", id).Scan(&status, &seconds, &rows)
	if err != nil {
		b.Fatal(err)
	}
	return status, seconds, rows
}

// peak is the sidecar's largest resident set so far, in MiB.
func (x *bench) peak() float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", x.pid))
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

// cpu is the sidecar's processor time so far.
func (x *bench) cpu() time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", x.pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * time.Second / 100
}

// measure takes the median rate of several whole runs and reports it as a ratio to the limit.
func (x *bench) measure(b *testing.B, name string, each func(b *testing.B) float64) {
	b.Run(name, func(b *testing.B) {
		var rates []float64
		before := x.cpu()
		for range runs {
			rates = append(rates, each(b))
		}
		slices.Sort(rates)
		rate := rates[len(rates)/2]
		b.ReportMetric(rate, "rows/s")
		b.ReportMetric(rate/x.limit, "ratio")
		b.ReportMetric((x.cpu()-before).Seconds()/float64(runs)*1e6/float64(messages), "cpu-s/M")
		b.ReportMetric(x.peak(), "peak-MiB")
		b.ReportMetric(0, "ns/op")
	})
}

// again reads a topic once more after its positions were forgotten: every row is a duplicate.
func (x *bench) again(b *testing.B) float64 {
	b.Helper()
	x.exec(b, "SELECT connector.reset_cursor('bench')")
	x.exec(b, "CHECKPOINT")
	status, seconds, rows := x.run(b)
	if status != "Completed" || rows != int64(messages) {
		b.Fatalf("the run ended %s with %d rows", status, rows)
	}
	return float64(messages) / seconds
}

func BenchmarkWholeRun(b *testing.B) {
	x := start(b)
	x.limit = x.copyLimit(b)
	b.Logf("limit: %.0f rows a second (COPY, one transaction, median of %d)", x.limit, runs)
	for _, partitions := range []int{1, 6} {
		topic := fmt.Sprintf("bench.p%d", partitions)
		x.fill(b, topic, partitions)
		for _, c := range []struct{ name, extra string }{
			{"content", ""},
			{"offset", `,"dedup":"offset"`},
			{"small-chunks", `,"max_poll_records":500`},
		} {
			x.measure(b, fmt.Sprintf("%s/%d", c.name, partitions), func(b *testing.B) float64 { return x.wholeRun(b, topic, c.extra) })
		}
	}
	x.wholeRun(b, "bench.p1", "")
	x.measure(b, "all-duplicates/1", x.again)
	b.Run("nothing-new", func(b *testing.B) {
		var took []time.Duration
		for range 50 {
			status, seconds, rows := x.run(b)
			if status != "Completed" || rows != 0 {
				b.Fatalf("%s with %d rows", status, rows)
			}
			took = append(took, time.Duration(seconds*float64(time.Second)))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
		b.ReportMetric(float64(took[len(took)*9/10].Microseconds())/1000, "ms-p90")
		b.ReportMetric(0, "ns/op")
	})
}
