package land

import (
	"errors"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"highwater/tests/harness"
)

// wire is a proxy in front of PostgreSQL that does something to one COMMIT. It understands the client's messages and hands the
// server's on as bytes.
type wire struct {
	testing.TB
	listener net.Listener
	server   string
	closed   atomic.Bool // refuse new connections
	wg       sync.WaitGroup

	mu    sync.Mutex
	armed func(w *wire, client, server net.Conn, forward func()) // for the next COMMIT
}

// What may happen to a COMMIT; forward hands it to the server.
var (
	cutBefore = func(_ *wire, client, server net.Conn, _ func()) { _, _ = client.Close(), server.Close() }
	cutAfter  = func(_ *wire, client, _ net.Conn, forward func()) { _ = client.Close(); forward() }
	// delayed: the client has given up, and its COMMIT still arrives.
	delayed = func(_ *wire, client, _ net.Conn, forward func()) {
		_ = client.Close()
		<-time.After(400 * time.Millisecond)
		forward()
	}
	// stuck: it never arrives, and the server does not learn that the client is gone.
	stuck = func(w *wire, client, _ net.Conn, _ func()) { _ = client.Close(); <-w.Context().Done() }
)

func newWire(tb testing.TB, target string) (*wire, string) {
	tb.Helper()
	u, err := url.Parse(target)
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	w := &wire{TB: tb, listener: l, server: u.Host}
	u.Host = l.Addr().String()
	tb.Cleanup(func() { _ = l.Close(); w.wg.Wait() })
	w.wg.Go(w.accept)
	return w, u.String()
}

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		if w.closed.Load() {
			_ = client.Close()
			continue
		}
		server, err := net.Dial("tcp", w.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.wg.Go(func() { w.toServer(client, server) })
		w.wg.Go(func() { w.toClient(client, server) })
	}
}

func (w *wire) toClient(client, server net.Conn) {
	buf := make([]byte, 32<<10)
	gone := false
	for {
		n, err := server.Read(buf)
		if err != nil {
			_ = client.Close()
			return
		}
		if !gone {
			_, err = client.Write(buf[:n])
			gone = err != nil // go on reading, so that the server is not held up
		}
	}
}

func (w *wire) toServer(client, server net.Conn) {
	defer func() { _ = server.Close() }()
	backend := pgproto3.NewBackend(client, client)
	hello, err := backend.ReceiveStartupMessage()
	if err != nil {
		return
	}
	send := func(m pgproto3.FrontendMessage) error {
		b, err := m.Encode(nil)
		if err == nil {
			_, err = server.Write(b)
		}
		return err
	}
	if send(hello) != nil {
		return
	}
	for {
		m, err := backend.Receive()
		if err != nil {
			return
		}
		if q, ok := m.(*pgproto3.Query); ok && q.String == "COMMIT" {
			if act := w.take(); act != nil {
				act(w, client, server, func() { _ = send(m) })
				w.drain(server)
				return
			}
		}
		if send(m) != nil {
			return
		}
	}
}

// drain keeps the server's side open until it has answered, or closed.
func (w *wire) drain(server net.Conn) {
	_ = server.SetDeadline(time.Now().Add(200 * time.Millisecond))
	<-time.After(100 * time.Millisecond)
}

func (w *wire) arm(act func(*wire, net.Conn, net.Conn, func())) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = act
}

func (w *wire) take() (act func(*wire, net.Conn, net.Conn, func())) {
	w.mu.Lock()
	defer w.mu.Unlock()
	act, w.armed = w.armed, nil
	return act
}

func TestACommitWithoutAnswerIsLookedUpAndNeverGuessed(t *testing.T) {
	for name, c := range map[string]struct {
		act      func(*wire, net.Conn, net.Conn, func())
		attempts int
		fenced   bool
	}{
		"it never reached the server":           {act: cutBefore, attempts: 2},
		"it was carried out":                    {act: cutAfter, attempts: 1},
		"it arrives while it is looked up":      {act: delayed, attempts: 1},
		"the old session holds on to its locks": {act: stuck, attempts: 2},
		"another holder went on meanwhile":      {act: cutBefore, attempts: 1, fenced: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, Options{IdleTimeout: time.Second})
			w, through := newWire(t, b.as(sidecarRole))
			b.lander = New(harness.Pool(t, through), b.lander.o)
			b.started(2)
			attempts := 0
			b.lander.o.Failpoint = func(step string) {
				if step == "begin" {
					attempts++
				}
			}
			act := c.act
			if c.fenced {
				act = func(w *wire, client, server net.Conn, forward func()) {
					cutBefore(w, client, server, forward)
					b.exec("UPDATE connector._cursor SET fence = fence + 1")
				}
			}
			w.arm(act)
			landed, err := b.land(b.chunk(0, []string{"n", "s"}, numbered(2, 5)))
			if c.fenced {
				if !errors.Is(err, ErrFenced) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			b.audit()
			if landed.Written != 5 || b.rows("true") != 7 || b.position(0) != 7 || one[int](b, "SELECT chunks FROM connector._run") != 2 {
				t.Errorf("landed %+v, %d rows, position %d", landed, b.rows("true"), b.position(0))
			}
			if attempts != c.attempts {
				t.Errorf("%d attempts, want %d", attempts, c.attempts)
			}
		})
	}
}

func TestACommitWhoseOutcomeCannotBeFoundOutIsLost(t *testing.T) {
	b := setup(t, Options{WaitMax: 300 * time.Millisecond})
	w, through := newWire(t, b.as(sidecarRole))
	b.lander = New(harness.Pool(t, through), b.lander.o)
	b.started(2)
	w.arm(func(w *wire, client, server net.Conn, forward func()) {
		w.closed.Store(true)
		cutAfter(w, client, server, forward)
	})
	c := b.chunk(0, []string{"n", "s"}, numbered(2, 5))
	_, err := b.land(c)
	if wantError(t, err, "database_error", ""); !Lost(err) {
		t.Errorf("got %v", err)
	}
	w.closed.Store(false)
	// It had landed: a chunk from the old position is not written again.
	if _, err := b.land(c); !errors.Is(err, ErrFenced) {
		t.Errorf("got %v", err)
	}
	if b.rows("true") != 7 || b.position(0) != 7 {
		t.Errorf("%d rows, position %d", b.rows("true"), b.position(0))
	}
}
