// Package demo is `highwater demo`: a PostgreSQL, a Kafka broker with eleven topics and a sidecar, all in one process
// tree, for whoever wants to see what this program does before giving it anything of their own.
//
// Everything it makes is gone when it ends. The sidecar itself is handed in, because only the composition root may make
// one. **What it shows are the answers of real statements, and they can be typed into psql as they stand.**
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"highwater/sidecar/demo/broker"
	"highwater/sidecar/demo/corpus"
	"highwater/sidecar/demo/postgres"
)

// database is the name of the demo's database.
const database = "acme"

// StartSidecar starts a sidecar on a database and returns when its schema is there and a run that is asked for is heard.
// lookupEnv is what the sidecar is to take for its environment. stop ends it and waits.
type StartSidecar func(ctx context.Context, databaseURL string, lookupEnv func(string) (string, bool)) (stop func(), err error)

// Options say what the demo is to do.
type Options struct {
	Once         bool // do every demo manifest, print the ledger and end
	Terminal     bool // somebody watches: stay until ctx ends; else end after showing
	Out          io.Writer
	Logger       *slog.Logger                // nil is silent
	BrokerAddr   string                      // empty: broker.DefaultAddr, or a free port where that is taken
	Postgres     postgres.Options            // the zero value: what the machine has, in a temporary folder
	LookupEnv    func(string) (string, bool) // the process's environment; nil: none
	StartSidecar StartSidecar
}

// Run starts the parts, shows what they do and stops them. With Once, the error names every manifest that did not come
// out as its header says. An end of ctx while it stays is no error.
func Run(ctx context.Context, o Options) (err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Postgres.Logger == nil {
		o.Postgres.Logger = o.Logger
	}
	p, err := start(ctx, o)
	if err != nil {
		return err
	}
	defer p.stop()
	if o.Once {
		return p.once(ctx)
	}
	if err := p.show(ctx); err != nil {
		return err
	}
	if o.Terminal {
		<-ctx.Done()
	}
	return nil
}

// parts are what runs.
type parts struct {
	o        Options
	postgres *postgres.Server
	broker   *broker.Broker
	env      *environment
	sidecar  func() // stops it
	pool     *pgxpool.Pool
}

// start brings everything up; the database and the broker at the same time. After an error nothing is left running.
func start(ctx context.Context, o Options) (*parts, error) {
	p := &parts{o: o, env: newEnvironment(o.LookupEnv)}
	var group errgroup.Group
	group.Go(func() error { return p.startPostgres(ctx) })
	group.Go(func() error { return p.startBroker(ctx) })
	err := group.Wait()
	if err == nil {
		err = p.startSidecar(ctx)
	}
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *parts) startPostgres(ctx context.Context) error {
	server, err := postgres.Start(ctx, p.o.Postgres)
	if err != nil {
		return err
	}
	p.postgres = server
	conn, err := pgx.Connect(ctx, server.URL("postgres"))
	if err != nil {
		return fmt.Errorf("connecting to the demo's PostgreSQL: %w", err)
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+database)
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return fmt.Errorf("making database %s: %w", database, err)
	}
	return p.addPgcrypto(ctx)
}

// addPgcrypto lets connector.secret_set take plain values, where the server has the extension; without it, it takes what
// highwater seal makes.
func (p *parts) addPgcrypto(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.postgres.URL(database))
	if err != nil {
		return fmt.Errorf("connecting to database %s: %w", database, err)
	}
	_, err = conn.Exec(ctx, `DO $$ BEGIN
		IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pgcrypto') THEN CREATE EXTENSION IF NOT EXISTS pgcrypto; END IF;
	END $$`)
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return fmt.Errorf("adding pgcrypto to database %s: %w", database, err)
	}
	return nil
}

// startBroker listens where the manifests say, if it can: two demos at once are no reason to fail.
func (p *parts) startBroker(ctx context.Context) error {
	b, err := broker.Start(ctx, broker.Options{Addr: p.o.BrokerAddr})
	if p.o.BrokerAddr == "" && errors.Is(err, syscall.EADDRINUSE) {
		b, err = broker.Start(ctx, broker.Options{Addr: "127.0.0.1:0"})
	}
	if err != nil {
		return err
	}
	p.broker = b
	return corpus.Fill(ctx, b.Addr())
}

func (p *parts) startSidecar(ctx context.Context) (err error) {
	url := p.postgres.URL(database)
	if p.sidecar, err = p.o.StartSidecar(ctx, url, p.env.lookup); err != nil {
		return fmt.Errorf("starting the demo's sidecar: %w", err)
	}
	if p.pool, err = pgxpool.New(ctx, url); err != nil {
		return fmt.Errorf("opening the demo's database: %w", err)
	}
	return nil
}

// stop ends what was started, in the opposite order.
func (p *parts) stop() {
	if p.pool != nil {
		p.pool.Close()
	}
	if p.sidecar != nil {
		p.sidecar()
	}
	if p.broker != nil {
		p.broker.Stop()
	}
	if p.postgres != nil {
		p.postgres.Stop()
	}
}
