// Package harness starts what tests need: one PostgreSQL and one real broker a test process, embedded brokers at will.
//
// Every test gets a database of its own, cloned from one that has all migrations. Everything ends with the process.
package harness

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"highwater/migrations"
	"highwater/sidecar/demo/postgres"
)

const (
	// template is the database that has the migrations; it is cloned for each test.
	template = "highwater_template"
	// startWait bounds the start of a server, which may have to be fetched first, and the migration of the template.
	startWait = 5 * time.Minute
)

// Main runs a package's tests and stops what they started. Call it from TestMain.
func Main(m *testing.M) {
	code := m.Run()
	stops.Range(func(stop, _ any) bool {
		(*stop.(*func()))()
		return true
	})
	os.Exit(code)
}

// stops holds a *func() for each thing that lives as long as the process.
var stops sync.Map

// atExit has a function called by [Main].
func atExit(stop func()) { stops.Store(&stop, true) }

var server = sync.OnceValues(func() (*postgres.Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	major := 0
	if named := os.Getenv("HIGHWATER_TEST_POSTGRES"); named != "" {
		var err error
		if major, err = strconv.Atoi(named); err != nil {
			return nil, fmt.Errorf("HIGHWATER_TEST_POSTGRES is %q, not a major such as 17", named)
		}
	}
	s, err := postgres.Start(ctx, postgres.Options{
		Major:    major,
		Settings: map[string]string{"fsync": "off", "max_connections": "300", "full_page_writes": "off"},
	})
	if err == nil {
		atExit(s.Stop)
	}
	return s, err
})

// Server is the PostgreSQL of this test process: the machine's own, or the major that HIGHWATER_TEST_POSTGRES names.
// Its durability is off: a test that kills the server starts one of its own.
func Server(tb testing.TB) *postgres.Server {
	tb.Helper()
	s, err := server()
	if err != nil {
		tb.Fatalf("starting PostgreSQL: %v", err)
	}
	return s
}

var migrated = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	s, err := server()
	if err != nil {
		return err
	}
	if err := admin(ctx, s, "CREATE DATABASE "+template); err != nil {
		return err
	}
	config, err := pgx.ParseConfig(s.URL(template))
	if err != nil {
		return err
	}
	return migrations.Apply(ctx, config, migrations.Options{})
})

// Database gives the URL of a fresh database with all migrations, dropped when the test ends.
func Database(tb testing.TB) string {
	tb.Helper()
	if err := migrated(); err != nil {
		tb.Fatalf("migrating the template: %v", err)
	}
	return create(tb, " TEMPLATE "+template)
}

// EmptyDatabase gives the URL of a fresh database without anything of ours, dropped when the test ends.
func EmptyDatabase(tb testing.TB) string {
	tb.Helper()
	return create(tb, "")
}

var (
	numbered atomic.Int64
	cloning  sync.Mutex // a template can be cloned by one session at a time
)

func create(tb testing.TB, how string) string {
	tb.Helper()
	s := Server(tb)
	name := fmt.Sprintf("test_%d", numbered.Add(1))
	cloning.Lock()
	err := admin(tb.Context(), s, "CREATE DATABASE "+name+how)
	cloning.Unlock()
	if err != nil {
		tb.Fatalf("making a database: %v", err)
	}
	tb.Cleanup(func() {
		if err := admin(context.Background(), s, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Errorf("dropping the database: %v", err)
		}
		if tb.Failed() {
			tb.Logf("the database was %s", s.URL(name))
		}
	})
	return s.URL(name)
}

// admin runs one statement as superuser, outside any test's database.
func admin(ctx context.Context, s *postgres.Server, sql string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

// Pool opens a pool on a database, closed when the test ends.
func Pool(tb testing.TB, url string) *pgxpool.Pool {
	tb.Helper()
	pool, err := pgxpool.New(tb.Context(), url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}
