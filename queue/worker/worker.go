// Package worker carries out runs: it takes the lease of a connector, measures the topic's end once, reads up to it,
// lands what it read chunk by chunk, and writes how the run ended.
//
// It opens no database connection and reads no environment: the composition root hands everything down. The transaction
// that writes is package land's; the lease, the plan and the ledger are package store's; offsets are package plan's.
//
// Types to know: [Worker] is River's worker for [highwater/queue/job.Run]; [Held] is the set of runs in this sidecar's
// hands. **A run ends Completed only where every partition stands at the target that was measured at its start.**
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/riverqueue/river"

	"highwater/queue/job"
	"highwater/queue/land"
	"highwater/reader/kafka"
	"highwater/sql/store"
)

const (
	// slice is how long one job works on a run before it hands it on, so that no job is ever taken for stuck.
	slice = 5 * time.Minute
	// sliceSlack is what a job may take beyond its slice to finish the chunk in hand.
	sliceSlack = 2 * time.Minute
	// waitSnooze is how long a run that waits for the active one sleeps; the end of the active one wakes it earlier.
	waitSnooze = time.Second
	// claimSnooze is how long a job sleeps when the database could not be asked for the lease.
	claimSnooze = time.Second
	// endWait bounds the writing of a run's end, also when the sidecar is stopping.
	endWait = 8 * time.Second
)

// Meter counts what runs do; the health endpoint shows it.
type Meter interface {
	Chunk(written, duplicates, letters int64, took time.Duration)
	RunEnded(status, code string)
}

// Options are what a worker needs; only Failpoint may be left out.
type Options struct {
	Store       *store.Store
	Lander      *land.Lander
	Held        *Held
	Meter       Meter
	Environ     func(name string) (string, bool) // the sidecar's environment
	Secrets     func(ctx context.Context, tenant int64, names []string) (Found, error)
	Logger      *slog.Logger
	BufferBytes int64 // bytes a run may read ahead of landing
	Kafka       func(kafka.Options) (*kafka.Client, error)
	Failpoint   func(step string) // called at each of [Steps]; does nothing outside tests
}

// Steps are the places between the steps of a run's life where a failpoint is called, in their order; those within a
// chunk are land.Steps.
var Steps = []string{"run-claimed", "run-measured", "run-planned", "run-drained", "run-ended"}

// Worker carries out catch-up runs. Make it with [New].
type Worker struct {
	river.WorkerDefaults[job.Run]
	o Options
}

// New makes a worker.
func New(o Options) *Worker {
	if o.Failpoint == nil {
		o.Failpoint = func(string) {}
	}
	return &Worker{o: o}
}

// Timeout is finite, so that River's own rescue is a second net behind our leases.
func (w *Worker) Timeout(*river.Job[job.Run]) time.Duration { return slice + sliceSlack }

// Work carries a run on until it ends, is handed back, or turns out to be another's. It never returns an error that
// would make River retry by its own rules: whether a run goes on is for the ledger to say.
func (w *Worker) Work(ctx context.Context, j *river.Job[job.Run]) error {
	c, err := w.o.Store.Claim(ctx, j.Args.RunID)
	if err != nil {
		w.o.Logger.Warn("could not take the lease", "run_id", j.Args.RunID, "error", err)
		return river.JobSnooze(claimSnooze)
	}
	switch c.Outcome {
	case store.Claimed:
	case store.Wait:
		return river.JobSnooze(waitSnooze)
	default:
		w.o.Logger.Info("nothing to do for this run", "run_id", j.Args.RunID, "outcome", c.Outcome)
		return nil
	}
	if w.carry(ctx, c) {
		return river.JobSnooze(0)
	}
	return nil
}

// carry works on a claimed run and tells whether it is to be handed on.
func (w *Worker) carry(ctx context.Context, c store.Claim) (handOn bool) {
	reading, stopReading, drop := w.o.Held.hold(ctx, c.RunID)
	defer drop()
	hiding := &mask{}
	r := &run{
		mask: hiding, w: w, c: c, reading: reading, stopReading: stopReading, begun: time.Now(), poison: int(c.PoisonChunks),
		log: slog.New(maskedLog{w.o.Logger.Handler(), hiding}).With("connector", c.Connector, "run_id", c.RunID),
	}
	w.o.Failpoint("run-claimed")
	end, err := r.recovered(ctx)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
	defer cancel()
	switch {
	case errors.Is(err, errHandBack), errors.Is(err, errSlice):
		return w.handBack(closing, r, err)
	case errors.Is(err, errLost), errors.Is(err, store.ErrFenced), errors.Is(err, land.ErrFenced):
		r.log.Warn("fenced: this sidecar no longer holds the run and wrote nothing more for it")
		return false
	}
	w.finish(closing, r, end)
	return false
}

func (w *Worker) handBack(ctx context.Context, r *run, why error) bool {
	r.log.Info("handing the run back", "reason", why.Error())
	if err := w.o.Store.Release(ctx, r.c.RunID); err != nil {
		r.log.Warn("could not hand the run back; its lease will expire", "error", err)
	}
	return true
}

func (w *Worker) finish(ctx context.Context, r *run, end store.End) {
	end.Message, end.Hint = r.mask.text(safe(end.Message)), r.mask.text(safe(end.Hint))
	end.Reached = r.reached(ctx)
	level := slog.LevelInfo
	if end.Status == "Failed" || end.Status == "Partial" {
		level = slog.LevelWarn
		r.say(ctx, map[string]string{"Failed": "ERROR", "Partial": "WARN"}[end.Status], end.Message)
	}
	err := w.o.Store.End(ctx, r.c.RunID, r.c.Fence, end)
	if err != nil {
		r.log.Warn("could not write the run's end; whoever takes it over will", "error", err)
		return
	}
	w.o.Failpoint("run-ended")
	w.o.Meter.RunEnded(end.Status, end.Code)
	r.log.Log(ctx, level, "run ended", "status", end.Status, "code", end.Code, "message", end.Message, "duration", time.Since(r.begun))
}

// recovered turns a panic anywhere in the run into its end, so that one message cannot take the process down.
func (r *run) recovered(ctx context.Context) (end store.End, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("panic in a run", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			end, err = failed("internal", "the sidecar met a defect while working on this run", "The sidecar's log has the details."), nil
		}
	}()
	end, err = r.do(ctx)
	if err == nil {
		return end, nil
	}
	for _, leave := range []error{errHandBack, errSlice, errLost, store.ErrFenced, land.ErrFenced} {
		if errors.Is(err, leave) {
			return store.End{}, err
		}
	}
	if ctx.Err() != nil {
		// The queue ended the job, not the ledger the run: any role can send River a cancel. Whoever comes next goes on.
		return store.End{}, errHandBack
	}
	return endOf(err, r.m.OnLost == "fail"), nil
}
