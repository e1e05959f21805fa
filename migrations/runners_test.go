package migrations_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"highwater/migrations"
	"highwater/sidecar/demo/postgres"
	"highwater/tests/harness"
)

// signalWait bounds the wait for what a test expects to happen within milliseconds.
const signalWait = 20 * time.Second

// until asks the server again and again until the answer is yes; the pause is the server's.
func until(t *testing.T, conn *pgx.Conn, what, sql string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), signalWait)
	defer cancel()
	for {
		var yes bool
		if err := conn.QueryRow(ctx, "SELECT ("+sql+") AS yes FROM pg_sleep(0.005)", args...).Scan(&yes); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if yes {
			return
		}
	}
}

// holdLock takes the runners' lock on a connection of its own and gives the function that lets it go.
func holdLock(t *testing.T, url string) (release func()) {
	t.Helper()
	conn := connect(t, url)
	do(t, conn, "SELECT pg_advisory_lock($1, $2)", migrations.LockClass, migrations.LockKey)
	return func() { do(t, conn, "SELECT pg_advisory_unlock($1, $2)", migrations.LockClass, migrations.LockKey) }
}

const waiting = `SELECT count(*) = $1 FROM pg_locks AS l
	WHERE l.locktype = 'advisory' AND NOT l.granted AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())`

// All runners stand before the same door when it opens; each finds the work done or does it, and none fails.
func TestRunnersWaitForEachOther(t *testing.T) {
	url := harness.EmptyDatabase(t)
	conn := connect(t, url)
	release := holdLock(t, url)
	const runners = 4
	results := make(chan error, runners)
	for range runners {
		go func() { results <- migrations.Apply(t.Context(), config(t, url), migrations.Options{}) }()
	}
	until(t, conn, "the runners to wait", waiting, runners)
	if one[bool](t, conn, "SELECT to_regnamespace('connector') IS NOT NULL") {
		t.Error("a runner went to work without the lock")
	}
	release()
	for range runners {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	same(t, snapshot(t, connect(t, harness.Database(t)), false), snapshot(t, conn, false))
}

// The script for a DBA holds the same lock as the program.
func TestTheScriptWaitsForARunner(t *testing.T) {
	url := harness.EmptyDatabase(t)
	conn := connect(t, url)
	run := psql(t)
	release := holdLock(t, url)
	done := make(chan error, 1)
	go func() { done <- run(url) }()
	until(t, conn, "the script to wait", waiting, 1)
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	until(t, conn, "the script to give the lock back", "SELECT NOT EXISTS (SELECT FROM pg_locks AS l WHERE l.locktype = 'advisory')")
}

func TestAWaitingRunnerEndsWithItsContext(t *testing.T) {
	url := harness.EmptyDatabase(t)
	holdLock(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- migrations.Apply(ctx, config(t, url), migrations.Options{}) }()
	until(t, connect(t, url), "the runner to wait", waiting, 1)
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
	case <-time.After(signalWait):
		t.Error("it still waits")
	}
}

// A role or a database may have a statement_timeout for its queries; neither the wait for another runner nor a long step is one.
func TestATimeoutForQueriesIsNoneForMigrations(t *testing.T) {
	url := harness.EmptyDatabase(t)
	conn := connect(t, url)
	do(t, conn, "ALTER DATABASE "+pgx.Identifier{conn.Config().Database}.Sanitize()+" SET statement_timeout = '100ms'")
	for name, run := range map[string]func(url string) error{
		"Apply":      func(url string) error { return migrations.Apply(t.Context(), config(t, url), migrations.Options{}) },
		"the script": psql(t),
	} {
		release := holdLock(t, url)
		done := make(chan error, 1)
		go func() { done <- run(url) }()
		until(t, conn, name+" to wait", waiting, 1)
		do(t, conn, "SET statement_timeout = 0; SELECT pg_sleep(0.3)")
		release()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A database may ask its clients for another encoding than ours; what our files say comes in as it was written.
func TestAnotherClientEncodingMakesNoOtherText(t *testing.T) {
	for name, run := range map[string]func(url string) error{
		"Apply":      func(url string) error { return migrations.Apply(t.Context(), config(t, url), migrations.Options{}) },
		"the script": psql(t),
	} {
		url := harness.EmptyDatabase(t)
		conn := connect(t, url)
		do(t, conn, "ALTER DATABASE "+pgx.Identifier{conn.Config().Database}.Sanitize()+" SET client_encoding = 'LATIN1'")
		if err := run(url); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var whole, broken int
		err := conn.QueryRow(t.Context(), "SELECT count(*) FILTER (WHERE p.prosrc LIKE '%' || chr(8230) || '%'), count(*) FILTER (WHERE p.prosrc LIKE '%' || chr(226) || '%') FROM pg_proc AS p").Scan(&whole, &broken)
		if err != nil || whole == 0 || broken > 0 {
			t.Errorf("%s: an ellipsis is kept in %d functions and broken in %d, %v", name, whole, broken, err)
		}
	}
}

// Roles belong to the server, and a lock to one database: runners in two databases meet at the roles.
func TestARoleThatSomebodyElseIsJustMakingIsTaken(t *testing.T) {
	onEach(t, func(t *testing.T, server *postgres.Server) {
		super := connect(t, server.URL("postgres"))
		do(t, super, "CREATE DATABASE other")
		do(t, super, "BEGIN")
		for _, role := range []string{"highwater_owner", "highwater_operator", "highwater_reader"} {
			do(t, super, "CREATE ROLE "+role)
		}
		done := make(chan error, 1)
		go func() { done <- migrations.Apply(t.Context(), config(t, server.URL("other")), migrations.Options{}) }()
		until(t, connect(t, server.URL("postgres")), "the runner to meet the other's role",
			"SELECT EXISTS (SELECT FROM pg_locks AS l WHERE l.locktype = 'transactionid' AND NOT l.granted)")
		do(t, super, "COMMIT")
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Several databases of one server are migrated at once where several sidecars start with it.
func TestManyDatabasesOfOneServerAreMigratedAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, server *postgres.Server) {
		super := connect(t, server.URL("postgres"))
		do(t, super, "CREATE ROLE sidecar LOGIN CREATEROLE CREATEDB")
		sidecar := connect(t, as(t, server, "sidecar"))
		names := []string{"one", "two", "three", "four"}
		for _, name := range names {
			do(t, sidecar, "CREATE DATABASE "+name)
		}
		results := make(chan error, len(names))
		for _, name := range names {
			c := config(t, as(t, server, "sidecar"))
			c.Database = name
			go func() { results <- migrations.Apply(t.Context(), c, migrations.Options{}) }()
		}
		for range names {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
}
