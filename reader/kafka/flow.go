package kafka

import (
	"context"
	"sync"
)

// budget bounds bytes that are held at once. One holder is always let in, so that what is larger than the whole budget
// goes through alone instead of never.
type budget struct {
	max int64

	mu    sync.Mutex
	used  int64
	freed chan struct{} // holds a token after a release
}

func newBudget(most int64) *budget {
	return &budget{max: most, freed: make(chan struct{}, 1)}
}

// try takes n bytes if there is room.
func (b *budget) try(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used > 0 && b.used+n > b.max {
		return false
	}
	b.used += n
	return true
}

// take waits for room for n bytes; it reports false when ctx ends first. Only one goroutine may wait.
func (b *budget) take(ctx context.Context, n int64) bool {
	for !b.try(n) {
		select {
		case <-ctx.Done():
			return false
		case <-b.freed:
		}
	}
	return true
}

// give returns n bytes; a negative n takes them whether there is room or not.
func (b *budget) give(n int64) {
	b.mu.Lock()
	b.used -= n
	b.mu.Unlock()
	if n <= 0 {
		return
	}
	select {
	case b.freed <- struct{}{}:
	default:
	}
}

// backlog hands answers from the reader to the decoder without ever making the reader wait: what may be in it is bounded
// by the reader's budget.
type backlog struct {
	mu     sync.Mutex
	items  []answer
	closed bool
	more   chan struct{}
}

func newBacklog() *backlog { return &backlog{more: make(chan struct{}, 1)} }

func (q *backlog) push(a answer) {
	q.mu.Lock()
	q.items = append(q.items, a)
	q.mu.Unlock()
	q.wake()
}

// close says that nothing follows what is in it.
func (q *backlog) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wake()
}

func (q *backlog) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// pop waits for the next answer; ok is false when there is none and never will be, or ctx ends.
func (q *backlog) pop(ctx context.Context) (a answer, ok bool) {
	for {
		q.mu.Lock()
		if len(q.items) > 0 {
			a = q.items[0]
			q.items[0] = answer{} // its bytes must not be kept alive by the slice
			q.items = q.items[1:]
			q.mu.Unlock()
			return a, true
		}
		done := q.closed
		q.mu.Unlock()
		if done {
			return answer{}, false
		}
		select {
		case <-ctx.Done():
			return answer{}, false
		case <-q.more:
		}
	}
}
