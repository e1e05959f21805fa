package demo

import "sync"

// environment is what the demo's sidecar takes for its environment: the process's own, and what a manifest asks for on
// top of it. Setting it aside here keeps the demo from changing its own process.
type environment struct {
	below func(string) (string, bool)

	mu  sync.Mutex
	set map[string]string
}

func newEnvironment(below func(string) (string, bool)) *environment {
	if below == nil {
		below = func(string) (string, bool) { return "", false }
	}
	return &environment{below: below, set: map[string]string{}}
}

// put lets lookup find value under name; an empty one takes it away again.
func (e *environment) put(name, value string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if value == "" {
		delete(e.set, name)
		return
	}
	e.set[name] = value
}

func (e *environment) lookup(name string) (string, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if value, ok := e.set[name]; ok {
		return value, true
	}
	return e.below(name)
}
