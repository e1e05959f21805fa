package land

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"highwater/sql/table"
)

func TestABackendThatIsKilledAtAnyStepCostsNothingButTime(t *testing.T) {
	for _, step := range Steps {
		t.Run(step, func(t *testing.T) {
			b := setup(t, Options{})
			b.started(3)
			b.exec("ALTER TABLE connector.t_orders ADD CHECK (n <> 5)")
			b.reshape()
			killer := b.session()
			var kills atomic.Int32
			b.lander.o.Failpoint = func(at string) {
				if at == step && kills.Add(1) == 1 {
					do(t, killer, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+sidecarRole+"' AND datname = current_database()")
				}
			}
			c := b.chunk(0, []string{"n", "s", "z"}, [][]string{row("3", "a", "1"), row("5", "a", "1"), row("1", "text 1", "1"), row("3", "a", "1")})
			c.Alters = []table.Alter{{Column: "z", Field: "z", Type: "bigint"}}
			landed, err := b.land(c)
			if err != nil {
				t.Fatal(err)
			}
			b.audit()
			if kills.Load() == 0 {
				t.Error("the step was never passed")
			}
			if b.position(0) != 7 || landed.Letters != 1 || landed.Written != 2 || landed.Duplicates != 1 {
				t.Errorf("landed %+v, position %d", landed, b.position(0))
			}
		})
	}
}

func TestEveryStepOfAChunkIsListed(t *testing.T) {
	b := setup(t, Options{})
	var seen []string
	b.lander.o.Failpoint = func(step string) {
		if !slices.Contains(seen, step) {
			seen = append(seen, step)
		}
	}
	b.started(3)
	b.exec("ALTER TABLE connector.t_orders ADD CHECK (n <> 5)")
	b.reshape()
	b.must(b.chunk(0, []string{"n", "s"}, numbered(3, 5)))
	slices.Sort(seen)
	want := slices.Sorted(slices.Values(Steps))
	if !slices.Equal(seen, want) {
		t.Errorf("steps seen %v, listed %v", seen, want)
	}
}

func TestAServerThatIsGoneIsReportedAsLost(t *testing.T) {
	b := setup(t, Options{WaitMax: 200 * time.Millisecond})
	b.started(1)
	config, err := pgxpool.ParseConfig("postgres://someone:hidden@127.0.0.1:1/secret_db?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	b.lander = New(pool, b.lander.o)
	_, err = b.land(b.chunk(0, []string{"n", "s"}, numbered(1, 1)))
	e := wantError(t, err, "database_error", "")
	if !Lost(err) || !e.Retryable || strings.Contains(e.Message, "someone") || strings.Contains(e.Message, "secret_db") {
		t.Errorf("lost %v, retryable %v, message %s", Lost(err), e.Retryable, e.Message)
	}
	if _, err := b.lander.Shape(t.Context(), b.run); !Lost(err) {
		t.Errorf("the shape's error is %v", err)
	}
}

func TestAStopEndsTheWaiting(t *testing.T) {
	b := setup(t, Options{LockTimeout: 10 * time.Millisecond})
	b.started(1)
	holder := b.session()
	do(t, holder, "BEGIN; SELECT FROM connector._cursor FOR UPDATE")
	stop := make(chan struct{})
	b.run.Stop = stop
	tries := 0
	b.lander.o.Failpoint = func(step string) {
		if tries++; tries == 3 {
			close(stop)
		}
	}
	_, err := b.land(b.chunk(0, []string{"n", "s"}, numbered(1, 1)))
	if !errors.Is(err, ErrStopped) || Lost(err) || tries != 3 {
		t.Errorf("got %v after %d tries", err, tries)
	}
	do(t, holder, "ROLLBACK")
	b.run.Stop = nil
	b.must(b.chunk(0, []string{"n", "s"}, numbered(1, 1)))
}

func TestACallerThatGoesAwayLeavesNothingHalfDone(t *testing.T) {
	for _, step := range Steps {
		t.Run(step, func(t *testing.T) {
			b := setup(t, Options{})
			b.started(2)
			b.exec("ALTER TABLE connector.t_orders ADD CHECK (n <> 5)")
			b.reshape()
			ctx, cancel := context.WithCancel(t.Context())
			b.lander.o.Failpoint = func(at string) {
				if at == step {
					cancel()
				}
			}
			c := b.chunk(0, []string{"n", "s", "z"}, [][]string{row("3", "a", "1"), row("5", "a", "1")})
			c.Alters = []table.Alter{{Column: "z", Field: "z", Type: "bigint"}}
			_, err := b.lander.Land(ctx, b.run, c, b.shape)
			cancel()
			b.lander.o.Failpoint = func(string) {}
			// From COMMIT on there is nothing to stop: then it has landed, and else nothing of it.
			if landed := b.position(0) == 4; landed != (err == nil) {
				t.Errorf("position %d, error %v", b.position(0), err)
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			b.audit()
			if n := b.pool.Stat().AcquiredConns(); n != 0 {
				t.Errorf("%d connections are still held", n)
			}
		})
	}
}
