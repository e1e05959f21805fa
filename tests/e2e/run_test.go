package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// refused runs a statement that must fail, with the SQLSTATE given and every word in its message.
func (f *fixture) refused(state string, words []string, sql string, args ...any) {
	f.Helper()
	_, err := f.pool.Exec(f.Context(), sql, args...)
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || pe.Code != state {
		f.Errorf("%s: %v, want SQLSTATE %s", sql, err, state)
		return
	}
	f.says(pe.Message, words...)
}

// says checks that a text has every word.
func (f *fixture) says(text string, words ...string) {
	f.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			f.Errorf("%q does not say %q", text, w)
		}
	}
}

// ends checks how a run ended, and that its message has every word.
func (f *fixture) ends(e ended, status, code string, words ...string) {
	f.Helper()
	if e.Status != status || e.Code != code {
		f.Errorf("the run ended %+v, want %s, %s", e, status, code)
	}
	f.says(e.Message, words...)
}

// A run that finds nothing new asks for no record, and is over before anybody waits.
func TestNothingNewIsNothingToDo(t *testing.T) {
	t.Parallel()
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic := f.topic("still", 3, nil)
		for p := range int32(3) {
			f.produce(topic, p, partners(100*int(p), 100)...)
		}
		f.sidecar(nil)
		f.declare("still", topic, "")
		f.completed("still", 300, 300)
		var fetches *kfake.FaultHandle
		if f.fake != nil {
			fetches = f.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1})
			defer fetches.Remove()
		}
		const runs = 30
		took := make([]time.Duration, runs)
		for i := range took {
			e := f.completed("still", 0, 0)
			if e.Chunks != 0 {
				t.Errorf("a run with nothing to do landed %d chunks", e.Chunks)
			}
			if err := f.pool.QueryRow(t.Context(), "SELECT ended_at - scheduled_at FROM connector.runs WHERE run_id = $1", e.RunID).Scan(&took[i]); err != nil {
				t.Fatal(err)
			}
		}
		if fetches != nil && fetches.Hits() > 0 {
			t.Errorf("%d runs with nothing to do made %d fetches", runs, fetches.Hits())
		}
		t.Logf("from connector.run to the end of a run with nothing to do: median %s of %d", median(took), runs)
	})
}

// What a transaction asks for happens when it commits, and not at all when it does not.
func TestARunBelongsToItsTransaction(t *testing.T) {
	f := onFake(t)
	topic := f.topic("tx", 1, nil)
	f.produce(topic, 0, partners(0, 10)...)
	f.sidecar(nil)
	f.declare("tx", topic, "")
	undo := errors.New("rolled back")
	err := pgx.BeginFunc(t.Context(), f.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SELECT connector.run('tx')"); err != nil {
			return err
		}
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	f.want("0", "SELECT count(*) FROM connector.runs")
	f.want("0", "SELECT count(*) FROM connector_queue.river_job")

	var runID string
	err = pgx.BeginFunc(t.Context(), f.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(t.Context(), "SELECT connector.run('tx')::text").Scan(&runID); err != nil {
			return err
		}
		// Waiting for it here would wait for ever: the run is not there for anybody yet.
		_, err := tx.Exec(t.Context(), "SAVEPOINT s; SELECT connector.wait('"+runID+"')")
		var pe *pgconn.PgError
		if !errors.As(err, &pe) || pe.Code != "55000" {
			return fmt.Errorf("waiting in the transaction of the run: %w", err)
		}
		f.want("0", "SELECT count(*) FROM connector.runs") // another session
		_, err = tx.Exec(t.Context(), "ROLLBACK TO s")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.ends(f.wait(runID), "Completed", "ok")
	f.want("10", "SELECT count(*) FROM connector.t_tx")
}

// An application's own INSERT starts a run, many statements of one transaction start one, and a rollback starts none.
func TestATriggerOfTheApplicationStartsARun(t *testing.T) {
	f := onFake(t)
	topic := f.topic("trigger", 1, nil)
	f.produce(topic, 0, partners(0, 10)...)
	f.sidecar(nil)
	f.declare("trig", topic, "")
	f.exec(`CREATE TABLE public.orders (id int); CREATE TRIGGER pull AFTER INSERT ON public.orders FOR EACH STATEMENT EXECUTE FUNCTION connector.run_on_change('trig')`)
	f.exec("BEGIN; INSERT INTO public.orders VALUES (1); ROLLBACK")
	f.want("0", "SELECT count(*) FROM connector.runs")
	err := pgx.BeginFunc(t.Context(), f.pool, func(tx pgx.Tx) error {
		for range 5 {
			if _, err := tx.Exec(t.Context(), "INSERT INTO public.orders SELECT generate_series(1, 100)"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f.want("1", "SELECT count(*) FROM connector.runs")
	e := f.wait(f.text("SELECT run_id FROM connector.runs"))
	f.ends(e, "Completed", "ok")
	f.want("trigger", "SELECT started_by FROM connector.runs")
	f.want("10", "SELECT count(*) FROM connector.t_trig")
}

// While a run is active another is skipped, or waits; those that wait are one; positions cannot be moved.
func TestWhatAnActiveRunMeansForOthers(t *testing.T) {
	f := onFake(t)
	topic := f.topic("active", 1, nil)
	f.produce(topic, 0, partners(0, 1000)...)
	_, g := f.heldSidecar("begin", 3)
	f.declare("active", topic, `,"chunk_rows":100`)
	first := f.held("active", g)

	f.ends(f.run("active"), "Cancelled", "skipped_active", "skipped", first, "active")
	waiting := f.text("connector.run('active', 'wait')")
	if again := f.text("connector.run('active', 'wait')"); again != waiting {
		t.Errorf("a second waiting run is %s, want the first, %s", again, waiting)
	}
	for _, sql := range []string{
		"SELECT connector.reset_cursor('active')", "SELECT connector.reset_cursor('active/default')",
		"SELECT connector.seek('active', 0, 5)", "SELECT connector.seek('active', now())",
	} {
		f.refused("55006", []string{"active", "busy", first}, sql)
	}
	f.refused("KC001", []string{"Running", "200 of 1000"}, "SELECT connector.wait($1, '50 milliseconds')", first)
	f.want("active|200|1000|20.0", "SELECT concat_ws('|', connector, done, target, percent) FROM connector.progress")
	f.produce(topic, 0, partners(1000, 7)...)
	g.open()
	if e := f.wait(first); e.RecordsIn != 1000 || e.Chunks != 10 {
		t.Errorf("the first run read beyond its target, or short of it: %+v", e)
	}
	if e := f.wait(waiting); e.Status != "Completed" || e.RecordsIn != 7 {
		t.Errorf("the waiting run: %+v", e)
	}
	f.want("1007", "SELECT count(*) FROM connector.t_active")
	f.want("4", "SELECT connector.reset_cursor('active') + 3")
}

// Waiting runs that sessions could not see of each other are folded: one works, wait() follows the others to it.
func TestWaitingRunsAreFolded(t *testing.T) {
	f := onFake(t)
	topic := f.topic("fold", 1, nil)
	f.produce(topic, 0, partners(0, 10)...)
	_, g := f.heldSidecar("begin", 1)
	f.declare("fold", topic, "")
	first := f.held("fold", g)
	const sessions = 3
	runs := make([]string, sessions)
	txs := make([]pgx.Tx, sessions)
	for i := range runs { // none has committed when the next one asks
		tx, err := f.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		txs[i] = tx
		defer func() { _ = tx.Rollback(context.Background()) }()
		if err := tx.QueryRow(t.Context(), "SELECT connector.run('fold', 'wait')::text").Scan(&runs[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, tx := range txs {
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	g.open()
	f.ends(f.wait(first), "Completed", "ok")
	worker := map[string]bool{}
	for _, r := range runs {
		e := f.wait(r)
		f.ends(e, "Completed", "ok")
		worker[e.RunID] = true
	}
	f.until("SELECT NOT EXISTS (SELECT FROM connector.runs WHERE ended_at IS NULL)")
	f.want("2", "SELECT count(*) FROM connector.runs WHERE status = 'Cancelled' AND code = 'joined' AND message LIKE 'joined run %'")
	if len(worker) != 1 {
		t.Errorf("%d runs did the work of %d", len(worker), sessions)
	}
}
