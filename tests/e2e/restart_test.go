package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"highwater/migrations"
	"highwater/sidecar/demo/postgres"
	"highwater/tests/harness"
)

// ownServer starts a PostgreSQL of the test's own, with one migrated database.
func ownServer(t *testing.T, database string) *postgres.Server {
	t.Helper()
	s, err := postgres.Start(t.Context(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	conn, err := pgx.Connect(t.Context(), s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE "+database); err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(s.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Apply(t.Context(), config, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// PostgreSQL goes away in the middle of a run and comes back: the same run goes on by itself, from what was committed, and
// ends well. Three ways to go away, each at another step of a chunk.
func TestPostgreSQLRestartsMidRun(t *testing.T) {
	t.Parallel()
	server := ownServer(t, "restart")
	addr := harness.Fake(t).ListenAddrs()[0]
	f := newFixtureIn(t, server.URL("restart"), addr)
	steps := &relay{}
	s := f.sidecar(steps.pass)
	for i, c := range []struct {
		name, step string
		mode       postgres.Mode
	}{{"fast", "copied", postgres.Fast}, {"immediate", "commit-sent", postgres.Immediate}, {"killed", "committed", postgres.Sigkill}} {
		t.Run(c.name, func(t *testing.T) {
			f.TB = t
			name := fmt.Sprintf("crash%d", i)
			f.long(name)
			g := steps.gate(c.step, 5)
			runID := f.held(name, g)
			if err := server.Halt(c.mode); err != nil {
				t.Fatal(err)
			}
			g.open()
			if err := server.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.pool.Reset()
			back := time.Now()
			f.until("SELECT chunks > 6 FROM connector.runs WHERE run_id = $1", runID)
			t.Logf("the run went on %s after the server was back", time.Since(back).Round(time.Millisecond))
			if took := time.Since(back); took > 30*time.Second {
				t.Errorf("the run went on %s after the server was back", took)
			}
			e := f.wait(runID)
			if e.Status != "Completed" || e.RecordsIn != longMessages || e.RecordsOut != longMessages || e.Duplicates != 0 {
				t.Errorf("after the restart: %+v", e)
			}
			f.whole(name)
			f.want(s.Name(), "SELECT sidecar FROM connector.runs WHERE run_id = $1", runID)
			f.until("SELECT last_seen_at > clock_timestamp() - interval '2 seconds' FROM connector.sidecars")
		})
	}
	f.TB = t
}

// relay is a failpoint whose gate changes from test to test.
type relay struct {
	mu  sync.Mutex
	now *gate
}

func (r *relay) gate(step string, nth int64) *gate {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = newGate(step, nth)
	return r.now
}

func (r *relay) pass(step string) {
	r.mu.Lock()
	g := r.now
	r.mu.Unlock()
	if g != nil {
		g.pass(step)
	}
}
