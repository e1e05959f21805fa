// Package listen keeps one connection to the database on which the sidecar says that it lives and hears that it is
// wanted.
//
// Once a second, or at once when somebody notifies the channel, it renews the leases of the runs in hand, learns which
// of them are to stop, and gives the runs of dead sidecars back to the queue. Jobs themselves are announced by River's own
// notifier. **A notification is only a hint to look**: any role can send one and none can be relied on, so everything
// that is heard here would also be found by the next look.
package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"highwater/sql/store"
)

// Channel is notified, with a run's id, when a run is to be looked at (cancel).
const Channel = "highwater"

const (
	// interval is the time between two looks; a tenth of the lease, so that several may fail.
	interval = store.LeaseTTL / 10
	// lookWait bounds one look. A look that takes longer has lost its server.
	lookWait = store.LeaseTTL / 2
	// orphanEvery is how many looks pass between two searches for orphaned runs.
	orphanEvery = 2
	// retryWait is the pause before a lost connection is made again.
	retryWait = 200 * time.Millisecond
	// looksASecondMax bounds what a flood of notifications can cost.
	looksASecondMax = 20
)

// Runs are the runs in this sidecar's hands.
type Runs interface {
	IDs() []uuid.UUID
	Act(runID uuid.UUID, state string)
}

// Options say who is listening and to what.
type Options struct {
	Config  *pgx.ConnConfig // how to connect; copied
	Store   *store.Store
	Runs    Runs
	Host    string
	Version string
	Logger  *slog.Logger
}

// Service is the connection. Make it with [New].
type Service struct {
	o      Options
	up     atomic.Bool
	cancel context.CancelFunc
	done   chan struct{}
}

// New makes a service; nothing runs before [Service.Start].
func New(o Options) *Service { return &Service{o: o} }

// Start connects and registers the sidecar once, so that a run requested afterwards sees it, then goes on in the
// background until [Service.Stop].
func (s *Service) Start(ctx context.Context) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	if err := s.look(ctx, conn, true); err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel, s.done = cancel, make(chan struct{})
	go s.loop(run, conn)
	return nil
}

// Stop ends the service and waits for it.
func (s *Service) Stop() {
	if s.cancel != nil {
		s.cancel()
		<-s.done
	}
}

// Up tells whether the last look reached the database.
func (s *Service) Up() bool { return s.up.Load() }

func (s *Service) loop(ctx context.Context, conn *pgx.Conn) {
	defer close(s.done)
	for ctx.Err() == nil {
		err := s.serve(ctx, conn)
		s.up.Store(false)
		_ = conn.Close(context.WithoutCancel(ctx)) // broken or no longer wanted
		if ctx.Err() != nil {
			return
		}
		s.o.Logger.Warn("the listening connection was lost; connecting again", "error", err)
		if conn = s.reconnect(ctx); conn == nil {
			return
		}
	}
}

func (s *Service) reconnect(ctx context.Context) *pgx.Conn {
	for ctx.Err() == nil {
		if conn, err := s.connect(ctx); err == nil {
			return conn
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryWait):
		}
	}
	return nil
}

func (s *Service) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.o.Config.Copy())
	if err != nil {
		return nil, fmt.Errorf("connecting to listen: %w", err)
	}
	if _, err := conn.Exec(ctx, "LISTEN "+Channel); err != nil {
		return nil, errors.Join(fmt.Errorf("listening: %w", err), conn.Close(ctx))
	}
	return conn, nil
}

// serve looks and waits in turn until the connection fails.
func (s *Service) serve(ctx context.Context, conn *pgx.Conn) error {
	for n := 0; ; n++ {
		begun := time.Now()
		if err := s.look(ctx, conn, n%orphanEvery == 0); err != nil {
			return err
		}
		wait, cancel := context.WithTimeout(ctx, interval)
		_, err := conn.WaitForNotification(wait)
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("waiting for a notification: %w", err)
		}
		if rest := time.Second/looksASecondMax - time.Since(begun); rest > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(rest):
			}
		}
	}
}

func (s *Service) look(ctx context.Context, conn *pgx.Conn, orphans bool) error {
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	acts, err := s.o.Store.Heartbeat(ctx, conn, s.o.Host, s.o.Version, s.o.Runs.IDs())
	if err != nil {
		return err //nolint:wrapcheck // store names the call
	}
	s.up.Store(true)
	for _, a := range acts {
		s.o.Runs.Act(a.RunID, a.State)
	}
	if !orphans {
		return nil
	}
	n, err := s.o.Store.RequeueOrphans(ctx)
	if err != nil {
		// The pool's connection failed, not ours: the next look tries again.
		s.o.Logger.Warn("could not look for orphaned runs", "error", err)
	} else if n > 0 {
		s.o.Logger.Info("gave runs of lost sidecars back to the queue", "runs", n)
	}
	return nil
}
