// Package schedule has the slots of all schedules fired on time.
//
// Every sidecar asks the database once a second; the database picks one of them as the leader, by a lease that it judges
// by its own clock, and fires in that sidecar's transaction what is due. What a schedule says, which slot comes next and
// what becomes of it is SQL (sql/api/fire.sql). **A slot is fired once, however many sidecars ask**, and at most a second
// late while one of them runs; when the leader dies, another takes over within two seconds (its session is gone) or ten
// (it is only silent).
//
// Type to know: [Service].
package schedule

import (
	"context"
	"log/slog"
	"time"

	"highwater/sql/store"
)

const (
	// interval is the time between two looks: how late a slot can be fired.
	interval = time.Second
	// lookWait bounds one look, of half a second where it deals with as many slots as it may; the lease of a leader that
	// is stuck longer passes on.
	lookWait = 5 * time.Second
	// looksMax bounds the looks made at once while more slots are due than one look deals with.
	looksMax = 50
)

// Slots are the schedules of the database.
type Slots interface {
	FireSchedules(ctx context.Context) (store.Fired, error)
	Resign(ctx context.Context) error
}

// Service looks at the schedules. Make it with [New].
type Service struct {
	slots  Slots
	logger *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}

	last   store.Fired // as of the last look that was answered
	failed bool        // the last look was not
}

// New makes a service; nothing happens before [Service.Start].
func New(slots Slots, logger *slog.Logger) *Service { return &Service{slots: slots, logger: logger} }

// Start looks once, then goes on in the background until [Service.Stop]. It must come before jobs are taken: the first
// look finds out whether the database is a copy, and ends the runs that were copied with it.
func (s *Service) Start(ctx context.Context) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel, s.done = cancel, make(chan struct{})
	go s.loop(run)
	return nil
}

// Stop ends the service, waits for it, and lets another sidecar lead at once.
func (s *Service) Stop(ctx context.Context) {
	if s.cancel == nil {
		return
	}
	s.cancel()
	<-s.done
	ctx, cancel := context.WithTimeout(ctx, interval)
	defer cancel()
	if err := s.slots.Resign(ctx); err != nil {
		s.logger.Info("the lead of the schedules runs out by itself", "error", err)
	}
}

func (s *Service) loop(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := s.look(ctx)
		if err != nil && ctx.Err() == nil && !s.failed {
			// Once: the lost connection is told by others too, and every second would be noise.
			s.logger.Warn("could not look at the schedules; trying on", "error", err)
		}
		s.failed = err != nil
	}
}

// look fires what is due, in portions.
func (s *Service) look(ctx context.Context) error {
	for range looksMax {
		bounded, cancel := context.WithTimeout(ctx, lookWait)
		f, err := s.slots.FireSchedules(bounded)
		cancel()
		if err != nil {
			return err //nolint:wrapcheck // store names the call
		}
		s.tell(f)
		if f.Taken < store.SlotsMax {
			return nil
		}
	}
	return nil
}

// tell logs what has changed since the last look.
func (s *Service) tell(f store.Fired) {
	if f.Held && !s.last.Held {
		s.logger.Warn("this database was restored or renamed: its schedules are held until SELECT connector.adopt()")
	}
	if s.last.Held && !f.Held {
		s.logger.Info("the schedules are no longer held")
	}
	if f.Leads != s.last.Leads {
		s.logger.Info("the lead of the schedules has changed", "leads", f.Leads)
	}
	if f.Started > 0 {
		s.logger.Info("started runs by schedule", "runs", f.Started)
	}
	s.last = f
}
