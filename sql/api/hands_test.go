package api_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
)

// Goal: no deadlock and no wrong figure, whatever operators and sidecars do at the same moment. Method: sidecars that work,
// die and look for orphans, operators that ask, cancel and move positions, all on two connectors for a while; then the books.
func TestManyHandsAtOnce(t *testing.T) {
	s, _ := stage(t)
	declare(s, "other", `{"name": "other"}`)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Second)
	defer cancel()
	var hands []func() error
	for i := range 4 {
		w := newWorker(t, s.Config().ConnString(), string(rune('a'+i)))
		w.beat()
		hands = append(hands, background(t, func() error { return w.labour(ctx, rand.New(rand.NewPCG(uint64(i), 1))) }))
	}
	for i := range 4 {
		o := connect(t, s.Config().ConnString())
		hands = append(hands, background(t, func() error { return o.meddle(ctx, rand.New(rand.NewPCG(uint64(i), 2))) }))
	}
	for _, done := range hands {
		if err := done(); err != nil {
			t.Error(err)
		}
	}
	if n := get[int](s, "SELECT count(*) FROM connector.runs WHERE status = 'Completed'"); n < 20 {
		t.Errorf("only %d runs were completed", n)
	}
	verified(t, s)
}

// tolerable is what such calls may answer: refusals, never a deadlock or a crash.
func tolerable(err error) error {
	var pg *pgconn.PgError
	if err == nil || (errors.As(err, &pg) && (pg.Code == "55006" || pg.Code == "KC010" || pg.Code == "KC011")) {
		return nil
	}
	return err
}

// labour works on whatever run is there, and now and then drops it half way.
func (w worker) labour(ctx context.Context, r *rand.Rand) error {
	for ctx.Err() == nil {
		bg := context.WithoutCancel(ctx)
		if _, err := w.Exec(bg, "SELECT connector._requeue_orphans(), connector._heartbeat($1, 'h', 'v', '{}', $2)", w.name, ttl); err != nil {
			return err
		}
		var run, connectorID uuid.UUID
		err := w.QueryRow(bg, "SELECT run_id, connector_id FROM connector._run WHERE ended_at IS NULL ORDER BY random() LIMIT 1").Scan(&run, &connectorID)
		if err != nil {
			continue // nothing to do just now
		}
		c, err := w.tryClaim(bg, run)
		if err != nil {
			return err
		}
		if c.outcome != "claimed" {
			continue
		}
		if err := w.work(bg, run, connectorID, c, r); tolerable(err) != nil {
			return err
		} else if err != nil {
			continue
		}
		if r.IntN(5) == 0 { // the lease of this one runs out
			if _, err := w.Exec(bg, "UPDATE connector._endpoint SET lease_until = '-infinity' WHERE lease_run = $1", run); err != nil {
				return err
			}
			continue
		}
		if _, err := w.Exec(bg, "SELECT connector._end($1, $2, 'Completed', 'ok', NULL, NULL, false, '{}')", run, c.fence); err != nil {
			return err
		}
	}
	return nil
}

// work plans a run and lands it in two chunks, or in more attempts. It returns KC010 where the lease has passed on.
func (w worker) work(ctx context.Context, run, connectorID uuid.UUID, c claimed, r *rand.Rand) error {
	if !c.planned {
		var next int64
		_ = w.QueryRow(ctx, "SELECT next_offset FROM connector._cursor WHERE connector_id = $1 AND partition = 0", connectorID).Scan(&next)
		p := thePlan(span{Start: next, Target: next + 4, HighWatermark: next + 4}, span{Partition: 1})
		if _, err := w.Exec(ctx, "SELECT connector._save_plan($1, $2, $3)", run, c.fence, p); err != nil {
			return err
		}
	}
	for {
		var from, target int64
		if err := w.QueryRow(ctx, "SELECT next_offset, target_offset FROM connector._run_partition WHERE run_id = $1 AND partition = 0", run).Scan(&from, &target); err != nil {
			return err
		}
		to := min(from+2, target)
		if to == from {
			return nil
		}
		tx, err := w.Begin(ctx)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, advanceSQL, run, c.fence, uuid.New(), []advance{{From: from, To: to, Written: to - from}, {Partition: 1}})
		if err != nil || r.IntN(4) == 0 {
			if err := errors.Join(err, tx.Rollback(ctx)); err != nil {
				return err
			}
			continue
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
	}
}

// meddle is an operator who asks, cancels, seeks and resets without looking.
func (s *session) meddle(ctx context.Context, r *rand.Rand) error {
	gestures := []string{
		"SELECT connector.run('acme', 'wait')", "SELECT connector.run('other', 'wait')", "SELECT connector.run('acme')", "SELECT connector.run('other')",
		"SELECT connector.cancel(run_id) FROM connector.runs WHERE ended_at IS NULL ORDER BY random() LIMIT 1",
		"SELECT connector.seek('acme', 0, 2)", "SELECT connector.reset_cursor('other')",
		"SELECT 1 / (count(*) - 1) FROM connector.verify() WHERE identity LIKE 'advanced%'",
		"BEGIN; SELECT connector.run('acme', 'wait'); SELECT connector.run('other', 'wait'); COMMIT",
	}
	for ctx.Err() == nil {
		if _, err := s.Exec(context.WithoutCancel(ctx), gestures[r.IntN(len(gestures))]); tolerable(err) != nil {
			return err
		}
	}
	return nil
}
