package e2e

import (
	"sync"
	"testing"

	"highwater/sidecar/demo/broker"
	"highwater/sidecar/demo/corpus"
	"highwater/sidecar/demo/manifests"
	"highwater/tests/harness"
)

// demoBrokers are the demo's own embedded broker, which refuses SASL as a real one does, and a real one; both filled.
var demoBrokers = []struct {
	name string
	addr func(*testing.T) string
}{
	{"embedded", func(t *testing.T) string {
		b, err := broker.Start(t.Context(), broker.Options{Addr: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Stop)
		return b.Addr()
	}},
	{"kafka", func(t *testing.T) string { return harness.Kafka(t).Addr() }},
}

// Each demo manifest gives what its header says, on both brokers.
func TestDemoManifests(t *testing.T) {
	for _, b := range demoBrokers {
		t.Run(b.name, func(t *testing.T) {
			addr := b.addr(t)
			if err := corpus.Fill(t.Context(), addr); err != nil {
				t.Fatal(err)
			}
			f := newFixture(t, addr)
			env := &environ{values: map[string]string{}}
			f.lookup = env.lookup
			f.sidecar(nil)
			r := manifests.Runner{Pool: f.pool, Brokers: addr, SetEnv: env.set}
			for _, m := range manifests.All() {
				t.Run(m.File, func(t *testing.T) {
					for _, d := range r.Check(t.Context(), m) {
						t.Error(d)
					}
				})
			}
		})
	}
}

// environ is a sidecar's environment that a test can change while the sidecar runs.
type environ struct {
	mu     sync.Mutex
	values map[string]string
}

func (e *environ) lookup(name string) (string, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v, ok := e.values[name]
	return v, ok
}

func (e *environ) set(name, value string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if value == "" {
		delete(e.values, name)
		return
	}
	e.values[name] = value
}
