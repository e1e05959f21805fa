package store

import (
	"context"
	"fmt"

	"highwater/sql/stmt"
)

// SlotsMax is how many slots one call of [Store.FireSchedules] deals with at most.
const SlotsMax = 100

// Fired tells what a look at the schedules did.
type Fired struct {
	Held    bool // the database is a copy that nobody has adopted: nothing is fired
	Leads   bool // this sidecar is the one that fires the slots
	Taken   int  // slots dealt with; SlotsMax says that there may be more
	Started int  // those that became runs
}

// FireSchedules starts the runs of the slots that are due, if this sidecar is or becomes the leader of all. It waits for
// no lock: what somebody else holds is left for the next call.
func (s *Store) FireSchedules(ctx context.Context) (f Fired, err error) {
	if err := s.pool.QueryRow(ctx, stmt.FireSchedules, s.sidecar).Scan(&f.Held, &f.Leads, &f.Taken, &f.Started); err != nil {
		return Fired{}, fmt.Errorf("looking at the schedules: %w", err)
	}
	return f, nil
}

// Resign lets another sidecar lead at once; without it, that takes as long as the lease lasts.
func (s *Store) Resign(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, stmt.Resign, s.sidecar); err != nil {
		return fmt.Errorf("giving up the lead of the schedules: %w", err)
	}
	return nil
}
