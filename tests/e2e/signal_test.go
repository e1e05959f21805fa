package e2e

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"highwater/sidecar/app"
)

const (
	// signalWait bounds the wait for a signal: far above what any takes, so that only a hang reaches it.
	signalWait = 60 * time.Second
	// lookEvery is the pause between two looks at the database's state.
	lookEvery = 10 * time.Millisecond
)

// until waits for a query to give true.
func (f *fixture) until(sql string, args ...any) {
	f.Helper()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for deadline := time.Now().Add(signalWait); ; {
		if f.text(sql, args...) == "true" {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("%s (%v) did not come true within %s", sql, args, signalWait)
		}
		select {
		case <-f.Context().Done():
			f.Fatalf("waiting for %s: %v", sql, f.Context().Err())
		case <-tick.C:
		}
	}
}

// receive waits for a channel to be closed or to give a value.
func receive[T any](f *fixture, what string, c <-chan T) (v T) {
	f.Helper()
	select {
	case v = <-c:
	case <-time.After(signalWait):
		f.Fatalf("%s did not happen within %s", what, signalWait)
	}
	return v
}

// gate holds a run at the nth call of a step until it is opened.
type gate struct {
	step    string
	nth     int64
	calls   atomic.Int64
	reached chan struct{}
	closed  chan struct{}
	once    sync.Once
}

func newGate(step string, nth int64) *gate {
	return &gate{step: step, nth: nth, reached: make(chan struct{}), closed: make(chan struct{})}
}

// pass is the failpoint.
func (g *gate) pass(step string) {
	if step == g.step && g.calls.Add(1) == g.nth {
		close(g.reached)
		<-g.closed
	}
}

// open lets the run go on; it may be called twice.
func (g *gate) open() { g.once.Do(func() { close(g.closed) }) }

// heldSidecar starts a sidecar that holds the first run to come to the nth call of a step, until the gate is opened, at
// the latest when the test ends.
func (f *fixture) heldSidecar(step string, nth int64) (*app.Sidecar, *gate) {
	f.Helper()
	g := newGate(step, nth)
	s := f.sidecar(g.pass)
	f.Cleanup(g.open)
	return s, g
}

// ask asks for a run and gives its id.
func (f *fixture) ask(name string) string {
	f.Helper()
	return f.text("connector.run($1)", name)
}

// held asks for a run and returns when it stands at the gate.
func (f *fixture) held(name string, g *gate) (runID string) {
	f.Helper()
	runID = f.ask(name)
	receive(f, "reaching "+g.step, g.reached)
	return runID
}

// padded gives n partners of 10 KB each, which no codec makes smaller: 400 of them are more than one fetch brings.
func padded(from, n int) []string {
	out := partners(from, n)
	for i, v := range out {
		noise := make([]byte, 5_000)
		_, _ = rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(noise) // never fails
		out[i] = fmt.Sprintf(`{"pad":"%x",%s`, noise, v[1:])
	}
	return out
}

// record is one record for partition 0.
func record(topic, key string, value []byte, headers ...kgo.RecordHeader) *kgo.Record {
	return &kgo.Record{Topic: topic, Key: []byte(key), Value: value, Headers: headers}
}
