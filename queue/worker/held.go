package worker

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// Why reading stops before a run is done. Each is a cause of the reading context.
var (
	errCancelled = errors.New("the run was cancelled")
	errLost      = errors.New("the run's lease has passed on, or its connector is gone")
	errHandBack  = errors.New("the sidecar is stopping")
	errSlice     = errors.New("the run's slice of time is over")
)

// Held is the set of runs in this sidecar's hands. It is safe for concurrent use.
type Held struct {
	mu       sync.Mutex
	stops    map[uuid.UUID]context.CancelCauseFunc
	stopping bool
}

// NewHeld makes an empty set.
func NewHeld() *Held { return &Held{stops: map[uuid.UUID]context.CancelCauseFunc{}} }

// IDs gives the runs in hand, in no order.
func (h *Held) IDs() []uuid.UUID {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := make([]uuid.UUID, 0, len(h.stops))
	for id := range h.stops {
		ids = append(ids, id)
	}
	return slices.Clip(ids)
}

// Act tells a run what the database says of it: cancel or lost. A run that is not in hand is passed over.
func (h *Held) Act(runID uuid.UUID, state string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	stop, ok := h.stops[runID]
	if !ok {
		return
	}
	if state == "cancel" {
		stop(errCancelled)
		return
	}
	stop(errLost)
}

// HandBack makes every run, and every one still to come, stop after the chunk in hand so that another sidecar can go on.
func (h *Held) HandBack() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopping = true
	for _, stop := range h.stops {
		stop(errHandBack)
	}
}

// hold puts a run into the set and gives the context under which it may read; drop takes it out again.
func (h *Held) hold(ctx context.Context, runID uuid.UUID) (reading context.Context, stop context.CancelCauseFunc, drop func()) {
	reading, stop = context.WithCancelCause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stops[runID] = stop
	if h.stopping {
		stop(errHandBack)
	}
	return reading, stop, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.stops, runID)
		stop(context.Canceled)
	}
}
