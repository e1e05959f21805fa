package demo_test

import (
	"context"
	"errors"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"highwater/sidecar/demo"
	"highwater/sidecar/demo/broker"
	"highwater/sidecar/demo/postgres"
)

// stub is as much of the product's schema as the demo shows.
const stub = `
CREATE SCHEMA connector;
CREATE TABLE connector.manifest (name text PRIMARY KEY, scopes text[], spec jsonb);
CREATE TABLE connector.t_acme_partners (id bigserial, partner_id bigint, name text, city text, credit_limit bigint, updated_at text);
CREATE TABLE connector.runs (connector text, status text, records_in bigint, records_out bigint, skipped bigint, dead_letters bigint,
    chunks int, duration interval, scheduled_at timestamptz);
CREATE PROCEDURE connector.catch_up(name text) LANGUAGE sql AS $$
    INSERT INTO connector.t_acme_partners (partner_id, name) VALUES (1000, 'Hydraulique Lyon 1000');
    INSERT INTO connector.runs VALUES (name, 'Completed', 2400, 2400, 0, 0, 3, '1 second', now());
$$;`

// sidecar is a stand-in that lays the stub down; it notes the database and that it was stopped.
type sidecar struct {
	url     string
	stopped bool
	lookup  func(string) (string, bool)
	err     error
}

func (s *sidecar) start(ctx context.Context, url string, lookup func(string) (string, bool)) (func(), error) {
	s.url, s.lookup = url, lookup
	if s.err != nil {
		return nil, s.err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, stub)
	return func() { s.stopped = true }, errors.Join(err, conn.Close(ctx))
}

func options(s *sidecar, out *strings.Builder) demo.Options {
	return demo.Options{
		Out: out, BrokerAddr: "127.0.0.1:0", StartSidecar: s.start,
		Postgres:  postgres.Options{Settings: map[string]string{"fsync": "off"}},
		LookupEnv: func(name string) (string, bool) { return "from below", name == "BELOW" },
	}
}

// gone tells whether the database has stopped answering.
func gone(t *testing.T, url string) bool {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err == nil {
		_ = conn.Close(t.Context())
	}
	return err != nil
}

func TestWithoutATerminalItShowsAndEnds(t *testing.T) {
	var s sidecar
	var out strings.Builder
	if err := demo.Run(t.Context(), options(&s, &out)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-partners'",
		"CALL connector.catch_up('acme-kafka-partners');",
		" acme-kafka-partners | {billing} | {",
		"       1000 | Hydraulique Lyon 1000 |",
		" Completed |       2400 |        2400 |       0 |            0 |      3 | 00:00:01",
		`psql "` + s.url + `"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not shown:\n%s", want, out.String())
		}
	}
	if regexp.MustCompile(`"brokers": "127\.0\.0\.1:(0|29092)"`).MatchString(out.String()) {
		t.Error("the manifest names a broker that is not the demo's")
	}
	if !s.stopped || !gone(t, s.url) {
		t.Errorf("sidecar stopped: %t; the database must be gone", s.stopped)
	}
	if value, ok := s.lookup("BELOW"); !ok || value != "from below" {
		t.Errorf("the sidecar's environment gives %q, %t", value, ok)
	}
}

// watcher ends the demo when it has been shown to the end.
type watcher struct {
	strings.Builder
	end func()
}

func (w *watcher) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "Ctrl-C") {
		w.end()
	}
	return w.Builder.Write(b)
}

func TestOnATerminalItStaysUntilItIsToldToEnd(t *testing.T) {
	var s sidecar
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	running := false
	out := &watcher{end: func() { running = !gone(t, s.url); cancel() }}
	o := options(&s, nil)
	o.Out, o.Terminal = out, true
	if err := demo.Run(ctx, o); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(context.Cause(ctx), context.Canceled) || !running || !gone(t, s.url) {
		t.Errorf("ended by %v; running when shown: %t; it must be gone now", context.Cause(ctx), running)
	}
}

func TestWithAPortThatIsTakenItUsesAnother(t *testing.T) {
	// Whoever holds the port, this test or somebody else, the demo cannot have it.
	if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", broker.DefaultAddr); err == nil {
		defer l.Close()
	}
	var s sidecar
	var out strings.Builder
	o := options(&s, &out)
	o.BrokerAddr = ""
	if err := demo.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "and not on 127.0.0.1:29092") || strings.Contains(out.String(), `"127.0.0.1:29092"`) {
		t.Errorf("shown:\n%s", out.String())
	}
}

func TestASidecarThatDoesNotStartLeavesNothingRunning(t *testing.T) {
	s := sidecar{err: errors.New("no migrations")}
	var out strings.Builder
	if err := demo.Run(t.Context(), options(&s, &out)); !errors.Is(err, s.err) {
		t.Errorf("error %v, want %v", err, s.err)
	}
	if !gone(t, s.url) {
		t.Error("the database is still there")
	}
}
