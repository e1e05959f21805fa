// Package app is the composition root: the only place that opens a database pool, makes the queue's client and hands
// both down. Nothing else opens a connection or reads the environment.
//
// [Serve] is `highwater serve` from start to stop; tests and the demo start the same thing with [Start].
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"highwater/migrations"
	"highwater/queue/job"
	"highwater/queue/land"
	"highwater/queue/schedule"
	"highwater/queue/worker"
	"highwater/reader/kafka"
	"highwater/sidecar/config"
	"highwater/sidecar/health"
	"highwater/sidecar/listen"
	"highwater/sql/store"
)

const (
	// stopWait is what runs get to commit or roll back the chunk in hand before they are cut off.
	stopWait = 8 * time.Second
	// hardStopWait bounds what is left of the stop after that.
	hardStopWait = 2 * time.Second
	// connectWait bounds the first connection to the database.
	connectWait = 15 * time.Second
	// fetchCooldown is the least time between two fetches of jobs: what a burst of requests is spread by.
	fetchCooldown = 5 * time.Millisecond
	// pollInterval is how long a job waits whose notification was lost.
	pollInterval = time.Second
	// connsARun is how many connections a run can hold at once: one landing, one for its words in the ledger.
	connsARun = 2
	// connsOwn are the connections of the queue and of everything that is no run.
	connsOwn = 6
	// rescueAfter is after how long River takes a job for stuck; above the worker's own limit.
	rescueAfter = 15 * time.Minute
	// memoryTenths of the memory allowed are the Go heap's soft limit; the rest is for stacks and the runtime.
	memoryTenths = 9
	// readAheadShare of the memory allowed is what all runs together may read ahead.
	readAheadShare = 8
)

// Version is set at link time.
var Version = "dev"

// Options are what differs between the program, the demo and a test.
type Options struct {
	Config    config.Config
	Environ   func(string) (string, bool) // where *_env names are looked up; nil: the process's environment
	Logger    *slog.Logger
	Failpoint func(step string) // nil outside tests
}

// Sidecar is a running sidecar.
type Sidecar struct {
	o        Options
	name     string
	pool     *pgxpool.Pool
	held     *worker.Held
	listen   *listen.Service
	schedule *schedule.Service
	queue    *river.Client[pgxTx]
	health   *health.Server
	keys     *keyring

	stop    sync.Once
	stopErr error
}

// Serve runs a sidecar until ctx ends, then stops it.
func Serve(ctx context.Context, o Options) error {
	debug.SetMemoryLimit(int64(o.Config.MemoryMiB) << 20 / 10 * memoryTenths)
	s, err := Start(ctx, o)
	if err != nil {
		return err
	}
	<-ctx.Done()
	o.Logger.Info("stopping")
	return s.Stop(ctx)
}

// Start applies the migrations unless told not to, registers the sidecar and begins to serve. When it returns, a run
// that is requested is heard.
func Start(ctx context.Context, o Options) (*Sidecar, error) {
	if o.Environ == nil {
		o.Environ = os.LookupEnv
	}
	s := &Sidecar{o: o, held: worker.NewHeld()}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop(ctx))
	}
	o.Logger.Info("serving", "sidecar", s.name, "version", Version, "max_runs", o.Config.MaxRuns)
	return s, nil
}

func (s *Sidecar) start(ctx context.Context) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	s.name = fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:8])
	st := store.New(s.pool, s.name)
	s.warnOfPower(ctx)
	s.keys = &keyring{path: s.o.Config.KeyFile, named: s.o.Config.KeyFileNamed, store: st, log: s.o.Logger}
	if err := s.keys.start(ctx); err != nil {
		return err
	}
	metrics := health.NewMetrics(st.Gauges)
	if err := s.serveQueue(ctx, st, metrics, host); err != nil {
		return err
	}
	if s.o.Config.HTTPAddr == "" {
		return nil
	}
	s.health, err = health.Start(ctx, s.o.Config.HTTPAddr, metrics, s.ready(st))
	if err != nil {
		return &Error{Exit: ExitConfiguration, Err: err}
	}
	return nil
}

func (s *Sidecar) connect(ctx context.Context) error {
	pc, err := poolConfig(s.o.Config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	if s.pool, err = pgxpool.NewWithConfig(ctx, pc); err != nil {
		return &Error{Exit: ExitDatabase, Err: fmt.Errorf("opening the pool: %w", err)}
	}
	if err := s.pool.Ping(ctx); err != nil {
		return &Error{Exit: ExitDatabase, Err: fmt.Errorf("connecting to the database: %w", err)}
	}
	return nil
}

func (s *Sidecar) migrate(ctx context.Context) error {
	if s.o.Config.NoMigrate {
		if err := migrations.Check(ctx, s.pool.Config().ConnConfig); err != nil {
			return &Error{Exit: ExitMigration, Err: err}
		}
		return nil
	}
	if err := migrations.Apply(ctx, s.pool.Config().ConnConfig, migrations.Options{Logger: s.o.Logger}); err != nil {
		return &Error{Exit: ExitMigration, Err: err}
	}
	return nil
}

// warnOfPower says once that a superuser needs no policy and asks no grant: fit for the demo and for trials.
func (s *Sidecar) warnOfPower(ctx context.Context) {
	var power bool
	err := s.pool.QueryRow(ctx, "SELECT r.rolsuper OR r.rolbypassrls FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user").Scan(&power)
	if err == nil && power {
		s.o.Logger.Warn("the sidecar's role is a superuser or bypasses row security; give it a role of its own (docs/privileges.md)")
	}
}

// serveQueue registers the sidecar, so that whoever asks for a run sees one, and then takes jobs.
func (s *Sidecar) serveQueue(ctx context.Context, st *store.Store, metrics *health.Metrics, host string) error {
	s.listen = listen.New(listen.Options{Config: s.pool.Config().ConnConfig, Store: st, Runs: s.held, Host: host, Version: Version, Logger: s.o.Logger})
	if err := s.listen.Start(ctx); err != nil {
		return &Error{Exit: ExitDatabase, Err: err}
	}
	s.schedule = schedule.New(st, s.o.Logger)
	if err := s.schedule.Start(ctx); err != nil {
		return &Error{Exit: ExitDatabase, Err: err}
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, worker.New(worker.Options{
		Store: st, Lander: land.New(s.pool, land.Options{Failpoint: s.o.Failpoint, Logger: s.o.Logger}), Held: s.held, Meter: metrics, Environ: s.o.Environ,
		Secrets: s.keys.lookup, Logger: s.o.Logger, BufferBytes: s.readAhead(), Kafka: kafka.Open, Failpoint: s.o.Failpoint,
	}))
	client, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{
		ID: s.name, Schema: job.Schema, Workers: workers, Logger: quiet(s.o.Logger),
		Queues:        map[string]river.QueueConfig{job.Queue: {MaxWorkers: s.o.Config.MaxRuns}},
		FetchCooldown: fetchCooldown, FetchPollInterval: pollInterval, RescueStuckJobsAfter: rescueAfter, FetchOnlyKnownKinds: true,
	})
	if err != nil {
		return &Error{Exit: ExitConfiguration, Err: fmt.Errorf("making the queue's client: %w", err)}
	}
	// The queue outlives ctx until Stop, so that runs can hand back what they hold.
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return &Error{Exit: ExitDatabase, Err: fmt.Errorf("starting the queue: %w", err)}
	}
	s.queue = client
	return nil
}

// readAhead is how many bytes each run may read ahead of landing.
func (s *Sidecar) readAhead() int64 {
	const leastMiB, mostMiB = 4, 32
	each := s.o.Config.MemoryMiB / readAheadShare / s.o.Config.MaxRuns
	return int64(min(max(each, leastMiB), mostMiB)) << 20
}

func (s *Sidecar) ready(st *store.Store) func(context.Context) error {
	return func(ctx context.Context) error {
		if !s.listen.Up() {
			return errors.New("the listening connection is down")
		}
		return st.Ping(ctx)
	}
}

// Name is the sidecar's name in the ledger.
func (s *Sidecar) Name() string { return s.name }

// HTTPAddr is where the health endpoint listens, empty where it is off.
func (s *Sidecar) HTTPAddr() string {
	if s.health == nil {
		return ""
	}
	return s.health.Addr()
}

// Stop lets every run commit or roll back the chunk in hand, hands the runs back and closes everything; ten seconds at
// most. It is safe after a start that failed half way, and may be called again.
func (s *Sidecar) Stop(ctx context.Context) error {
	s.stop.Do(func() { s.stopErr = s.stopAll(context.WithoutCancel(ctx)) })
	return s.stopErr
}

func (s *Sidecar) stopAll(ctx context.Context) error {
	var errs []error
	if s.schedule != nil {
		s.schedule.Stop(ctx)
	}
	s.held.HandBack()
	if s.queue != nil {
		errs = append(errs, s.stopQueue(ctx))
	}
	if s.listen != nil {
		s.listen.Stop()
	}
	if s.health != nil {
		errs = append(errs, s.health.Stop(ctx))
	}
	if s.pool != nil {
		s.pool.Close()
	}
	return errors.Join(errs...)
}

func (s *Sidecar) stopQueue(ctx context.Context) error {
	soft, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	if err := s.queue.Stop(soft); err == nil {
		return nil
	}
	hard, cancelHard := context.WithTimeout(ctx, hardStopWait)
	defer cancelHard()
	if err := s.queue.StopAndCancel(hard); err != nil {
		return fmt.Errorf("stopping the queue: %w", err)
	}
	return nil
}
