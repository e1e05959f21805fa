package health

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"highwater/sql/store"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestEndpoints(t *testing.T) {
	var down error
	m := NewMetrics(func(context.Context) (store.Gauges, error) { return store.Gauges{Lag: 7, DeadLetters: 3}, down })
	s, err := Start(t.Context(), "127.0.0.1:0", m, func(context.Context) error { return down })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	m.Chunk(10, 2, 1, 3*time.Millisecond)
	m.RunEnded("Completed", "ok")
	for _, c := range []struct {
		name, path string
		down       error
		code       int
		has, lacks string
	}{
		{"alive", "/healthz", nil, 200, "ok", ""},
		{"alive though the database is away", "/healthz", errors.New("gone"), 200, "ok", ""},
		{"ready", "/readyz", nil, 200, "ready", ""},
		{"not ready, and the reason stays inside", "/readyz", errors.New("password wrong"), 503, "not ready", "password"},
		{"rows by result", "/metrics", nil, 200, `highwater_rows_total{result="duplicate"} 2`, ""},
		{"runs by outcome", "/metrics", nil, 200, `highwater_runs_total{code="ok",status="Completed"} 1`, ""},
		{"lag", "/metrics", nil, 200, "highwater_lag_messages 7", ""},
		{"counters answer without the database", "/metrics", errors.New("gone"), 200, "highwater_dead_letters_total 1", "highwater_lag_messages 7"},
		{"no profiler", "/debug/pprof/", nil, 404, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			down = c.down
			code, body := get(t, "http://"+s.Addr()+c.path)
			if code != c.code || !strings.Contains(body, c.has) || (c.lacks != "" && strings.Contains(body, c.lacks)) {
				t.Fatalf("%d %s", code, body)
			}
		})
	}
}

func TestAnAddressInUseIsNamed(t *testing.T) {
	m := NewMetrics(func(context.Context) (store.Gauges, error) { return store.Gauges{}, nil })
	ok := func(context.Context) error { return nil }
	s, err := Start(t.Context(), "127.0.0.1:0", m, ok)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop(context.Background()) }()
	if _, err := Start(t.Context(), s.Addr(), m, ok); err == nil || !strings.Contains(err.Error(), s.Addr()) {
		t.Fatalf("error %v does not name %s", err, s.Addr())
	}
}
