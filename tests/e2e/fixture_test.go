// Package e2e runs the product end to end: a real PostgreSQL, a real or an embedded broker, a sidecar in process or as a
// process of its own, and SQL as the only handle.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"highwater/sidecar/app"
	"highwater/sidecar/config"
	"highwater/tests/harness"
)

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
	case "command":
		os.Exit(app.ExitCode(command()))
	default:
		child()
		return
	}
	// Most of a test's time is waiting for processes and leases, so more of them than there are processors run at once,
	// unless the command line says otherwise.
	_ = flag.Set("test.parallel", strconv.Itoa(parallel))
	harness.Main(m)
}

// parallel is how many tests run at once: as many as two processors carry without one test's work making another's late.
const parallel = 6

// brokers are the two kinds of broker that every test of the main job runs against. Only the embedded one is also at hand
// as a value.
var brokers = []struct {
	name  string
	start func(testing.TB) (addr string, fake *kfake.Cluster)
}{
	{"embedded", func(tb testing.TB) (string, *kfake.Cluster) {
		c := harness.Fake(tb)
		return c.ListenAddrs()[0], c
	}},
	{"kafka", func(tb testing.TB) (string, *kfake.Cluster) { return harness.Kafka(tb).Addr(), nil }},
}

// onBothBrokers runs a test once on the embedded broker and once on real Apache Kafka.
func onBothBrokers(t *testing.T, run func(t *testing.T, f *fixture)) {
	t.Helper()
	for _, b := range brokers {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			addr, fake := b.start(t)
			f := newFixture(t, addr)
			f.fake = fake
			run(t, f)
		})
	}
}

// fixture is one database with a broker beside it. Topics bear the test's own prefix.
type fixture struct {
	testing.TB
	url     string
	pool    *pgxpool.Pool
	brokers string
	fake    *kfake.Cluster // the embedded broker, nil where the broker is a real one
	admin   *kadm.Client
	kafka   *kgo.Client
	prefix  string
	topics  map[string]bool             // what the broker held when the test had set up
	lookup  func(string) (string, bool) // the sidecar's environment
	keyFile string                      // the sidecar's key for secrets; empty: none
	log     io.Writer                   // the sidecar's log at debug level; nil: none is kept
}

// onFake makes a fixture with an embedded broker of its own, for what no broker has a say in.
func onFake(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	c := harness.Fake(t)
	f := newFixture(t, c.ListenAddrs()[0])
	f.fake = c
	return f
}

// newFixture makes the database; when the test ends it checks what must hold after every run: no identity is broken,
// and the broker holds no group and no topic that the test did not make.
func newFixture(t *testing.T, addr string) *fixture {
	t.Helper()
	return newFixtureIn(t, harness.Database(t), addr)
}

// newFixtureIn is newFixture in a database of the caller's.
func newFixtureIn(t *testing.T, url, addr string) *fixture {
	t.Helper()
	f := &fixture{TB: t, url: url, brokers: addr, prefix: prefix(t), topics: map[string]bool{}, lookup: func(string) (string, bool) { return "", false }}
	f.pool = harness.Pool(t, f.url)
	f.connect()
	t.Cleanup(func() { f.kafka.Close() })
	t.Cleanup(f.checkAfter)
	return f
}

// connect makes the test's own client, a new one where a test has changed what the old one knows of its topics.
func (f *fixture) connect() {
	f.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(f.brokers), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		f.Fatal(err)
	}
	if f.kafka != nil {
		f.kafka.Close()
	}
	f.kafka, f.admin = cl, kadm.NewClient(cl)
}

func prefix(t *testing.T) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name())
	return fmt.Sprintf("%s-%d.", clean[:min(len(clean), 80)], time.Now().UnixNano()%1_000_000)
}

func (f *fixture) checkAfter() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	rows, err := f.pool.Query(ctx, "SELECT to_jsonb(v)::text FROM connector.verify() AS v")
	if err != nil {
		f.Errorf("verify: %v", err)
		return
	}
	broken, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(broken) > 0 {
		f.Errorf("verify() returns %v, %v", broken, err)
	}
	groups, err := f.admin.ListGroups(ctx)
	if err != nil || len(groups.Groups()) > 0 {
		f.Errorf("groups on the broker: %v, %v", groups.Groups(), err)
	}
	topics, err := f.admin.ListTopics(ctx)
	if err != nil {
		f.Errorf("listing topics: %v", err)
		return
	}
	for name := range maps.Keys(topics) {
		if strings.HasPrefix(name, f.prefix) && !f.topics[name] {
			f.Errorf("topic %s was made on the broker", name)
		}
	}
	if _, ok := topics["__consumer_offsets"]; ok {
		f.Errorf("offsets were committed on the broker")
	}
}

// topic makes a topic of the test's own and gives its full name.
func (f *fixture) topic(name string, partitions int32, configs map[string]*string) string {
	f.Helper()
	full := f.prefix + name
	if _, err := f.admin.CreateTopic(f.Context(), partitions, 1, configs, full); err != nil {
		f.Fatal(err)
	}
	f.topics[full] = true
	return full
}

// produce writes one record a value to a partition, in order.
func (f *fixture) produce(topic string, partition int32, values ...string) {
	f.Helper()
	recs := make([]*kgo.Record, len(values))
	for i, v := range values {
		recs[i] = &kgo.Record{Topic: topic, Partition: partition, Key: fmt.Appendf(nil, "k%d", i), Value: []byte(v)}
	}
	if err := f.kafka.ProduceSync(f.Context(), recs...).FirstErr(); err != nil {
		f.Fatal(err)
	}
}

// partners gives n values of the ACME shape, from the i-th on.
func partners(from, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`{"partner_id":%d,"name":"Hydraulique Lyon %d","city":"Lyon","credit_limit":%d}`, 1000+from+i, 1000+from+i, 500+i%97)
	}
	return out
}

// sidecar starts a sidecar in this process, stopped when the test ends.
func (f *fixture) sidecar(failpoint func(string)) *app.Sidecar {
	f.Helper()
	s, err := app.Start(f.Context(), app.Options{
		Config:    f.config(f.keyFile),
		Environ:   f.lookup,
		Logger:    f.logger(),
		Failpoint: failpoint,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			f.Errorf("stopping the sidecar: %v", err)
		}
	})
	return s
}

// sidecarRole is what a sidecar logs in as, with no more rights than an installation gives it (docs/privileges.md).
const sidecarRole = "e2e_sidecar"

// asSidecar gives the database's URL for the sidecar's role, which it makes if need be: roles are the whole server's.
func (f *fixture) asSidecar() string {
	f.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, f.url)
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, "DO $$ BEGIN CREATE ROLE "+sidecarRole+" LOGIN IN ROLE highwater_owner; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$")
	if err != nil {
		f.Fatal(err)
	}
	u, err := url.Parse(f.url)
	if err != nil {
		f.Fatal(err)
	}
	u.User = url.User(sidecarRole)
	return u.String()
}

func (f *fixture) config(keyFile string) config.Config {
	return config.Config{DatabaseURL: f.asSidecar(), HTTPAddr: "127.0.0.1:0", KeyFile: keyFile, MaxRuns: 4, MemoryMiB: 256}
}

// logger gives the sidecar's log to whoever wants it: the test, or a verbose run.
func (f *fixture) logger() *slog.Logger {
	switch {
	case f.log != nil:
		return slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	case testing.Verbose():
		return slog.New(slog.NewTextHandler(f.Output(), nil))
	}
	return slog.New(slog.DiscardHandler)
}

// declare stores a manifest; extra is JSON members of the spec, with a leading comma, or empty.
func (f *fixture) declare(name, topic, extra string) {
	f.Helper()
	spec := fmt.Sprintf(`{"name":%q,"brokers":%q,"topic":%q%s}`, strings.ReplaceAll(name, "-", "_"), f.brokers, topic, extra)
	f.exec("INSERT INTO connector.manifest (name, scopes, spec) VALUES ($1, '{billing}', $2::jsonb)", name, spec)
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	if _, err := f.pool.Exec(f.Context(), sql, args...); err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
}

// text gives the one value of a query as text; NULL is <null>.
func (f *fixture) text(sql string, args ...any) string {
	f.Helper()
	var v *string
	if err := f.pool.QueryRow(f.Context(), "SELECT ("+sql+")::text", args...).Scan(&v); err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
	if v == nil {
		return "<null>"
	}
	return *v
}

// want compares the one value of a query, as text.
func (f *fixture) want(want, sql string, args ...any) {
	f.Helper()
	if got := f.text(sql, args...); got != want {
		f.Errorf("%s = %s, want %s", sql, got, want)
	}
}

// ended is a finished row of the ledger.
type ended struct {
	RunID                                                           string
	Status, Code, Message, Hint                                     string
	RecordsIn, RecordsOut, Skipped, DeadLetters, Duplicates, Chunks int64
}

// run asks for a run and waits for its end.
func (f *fixture) run(name string) ended {
	f.Helper()
	return f.wait(f.text("connector.run($1)", name))
}

// wait waits for the end of a run.
func (f *fixture) wait(runID string) (e ended) {
	f.Helper()
	err := f.pool.QueryRow(f.Context(), `SELECT w.run_id::text, w.status, coalesce(w.code, ''), coalesce(w.message, ''), coalesce(w.hint, ''), w.records_in, w.records_out, w.skipped, w.dead_letters, w.duplicates, w.chunks
		FROM connector.wait($1, '90 seconds') AS w`, runID).Scan(&e.RunID, &e.Status, &e.Code, &e.Message, &e.Hint, &e.RecordsIn, &e.RecordsOut, &e.Skipped, &e.DeadLetters, &e.Duplicates, &e.Chunks)
	if err != nil {
		f.Fatalf("waiting for %s: %v", runID, err)
	}
	return e
}

// completed runs a connector and expects it to end well with so many records in and out.
func (f *fixture) completed(name string, in, out int64) ended {
	f.Helper()
	e := f.run(name)
	if e.Status != "Completed" || e.RecordsIn != in || e.RecordsOut != out {
		f.Errorf("run of %s: %+v, want Completed %d in %d out", name, e, in, out)
	}
	return e
}

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}
