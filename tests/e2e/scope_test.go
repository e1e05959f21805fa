package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Goal: data_as_of never says more than a reader of the same snapshot finds. Method: somebody produces and notes when how much
// was acknowledged, somebody else asks for one run after the other, and a reader looks at the moment and counts the rows in one
// statement: every message that was acknowledged before the moment must be among them.
func TestAReaderFindsEverythingUpToTheMomentItIsTold(t *testing.T) {
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		const runs, batch = 12, 20
		topic := f.topic("partners", 2, nil)
		f.declare("acme", topic, "")
		f.sidecar(nil)
		f.produce(topic, 0, partners(0, batch)...)
		book := &acknowledged{at: []time.Time{time.Now()}, total: []int{batch}}
		f.completed("acme", batch, batch)

		ctx, cancel := context.WithCancel(t.Context())
		var hands sync.WaitGroup
		defer hands.Wait()
		defer cancel()
		hands.Go(func() {
			pace := time.NewTicker(5 * time.Millisecond) // enough to race with every run, and no flood
			defer pace.Stop()
			for n := batch; ctx.Err() == nil; n += batch {
				select {
				case <-pace.C:
				case <-ctx.Done():
				}
				var recs []*kgo.Record
				for _, v := range partners(n, batch) {
					recs = append(recs, &kgo.Record{Topic: topic, Partition: int32(n / batch % 2), Value: []byte(v)})
				}
				if f.kafka.ProduceSync(ctx, recs...).FirstErr() == nil {
					book.add(n + batch)
				}
			}
		})
		done := make(chan error, 1)
		hands.Go(func() {
			for range runs {
				if _, err := f.pool.Exec(ctx, "CALL connector.catch_up('acme')"); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		})
		moments := map[time.Time]bool{}
		for ended := false; !ended; {
			select {
			case err := <-done:
				if ended = true; err != nil {
					t.Fatal(err)
				}
			default:
			}
			var (
				asOf time.Time
				rows int
			)
			if err := f.pool.QueryRow(ctx, "SELECT data_as_of, (SELECT count(*) FROM connector.t_acme) FROM connector.connectors").Scan(&asOf, &rows); err != nil {
				t.Fatal(err)
			}
			if owed := book.before(asOf); rows < owed {
				t.Fatalf("as of %s the table should hold %d rows, and holds %d", asOf, owed, rows)
			}
			moments[asOf] = true
		}
		if len(moments) < runs/2 {
			t.Errorf("only %d moments were seen", len(moments))
		}
	})
}

// acknowledged remembers how many messages were acknowledged by when.
type acknowledged struct {
	mu    sync.Mutex
	at    []time.Time
	total []int
}

func (a *acknowledged) add(total int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at, a.total = append(a.at, time.Now()), append(a.total, total)
}

func (a *acknowledged) before(moment time.Time) (total int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(a.at) - 1; i >= 0; i-- {
		if a.at[i].Before(moment) {
			return a.total[i]
		}
	}
	return 0
}

// A role that a scope lets in reads the table from the chunk that makes it on: there is no moment at which it is not granted.
func TestAScopedRoleReadsTheTableOnceItIsMade(t *testing.T) {
	f := onFake(t)
	topic := f.topic("partners", 1, nil)
	f.declare("acme", topic, "")
	role := fmt.Sprintf("analyst_%d", time.Now().UnixNano())
	f.exec("CREATE ROLE " + role)
	f.exec("INSERT INTO connector.scope_roles (scope, role) VALUES ('billing', $1)", role)
	f.produce(topic, 0, partners(0, 7)...)
	f.sidecar(nil)
	f.completed("acme", 7, 7)
	f.want("true", "SELECT has_table_privilege($1, 'connector.t_acme', 'SELECT')", role)
	f.want("false", "SELECT has_table_privilege($1, 'connector.t_acme', 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')", role)
	tx, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // only read
	if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE "+role); err != nil {
		t.Fatal(err)
	}
	var n int
	var card string
	if err := tx.QueryRow(t.Context(), "SELECT count(*), connector.card('billing') FROM connector.t_acme").Scan(&n, &card); err != nil || n != 7 {
		t.Errorf("%d rows, %v; the card is %s", n, err, card)
	}
}
