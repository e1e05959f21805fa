package api_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"highwater/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// session is one connection and what the server said on it besides results.
type session struct {
	*pgx.Conn
	tb      testing.TB
	notices []*pgconn.Notice
}

// connect opens a session as superuser, which owns nothing of ours and passes row security.
func connect(tb testing.TB, url string) *session {
	tb.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	s := &session{tb: tb}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { s.notices = append(s.notices, n) }
	if s.Conn, err = pgx.ConnectConfig(tb.Context(), config); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close(tb.Context()) })
	return s
}

var roles atomic.Int64 // roles belong to the server, which tests share

// newRole makes a login role that is a member of the given groups, gone when the test ends, and gives its name.
func newRole(tb testing.TB, s *session, groups ...string) string {
	tb.Helper()
	name := fmt.Sprintf("role_%d", roles.Add(1))
	s.must("CREATE ROLE " + name + " LOGIN")
	for _, g := range groups {
		s.must("GRANT " + g + " TO " + name)
	}
	return name
}

// as opens a session whose session_user is the role, as if it had logged in.
func as(tb testing.TB, url, role string) *session {
	tb.Helper()
	s := connect(tb, url)
	s.must("SET SESSION AUTHORIZATION " + role)
	return s
}

func (s *session) must(sql string, args ...any) {
	s.tb.Helper()
	if _, err := s.Exec(s.tb.Context(), sql, args...); err != nil {
		s.tb.Fatalf("%s: %v", sql, err)
	}
}

// fails runs a statement that must be refused with the SQLSTATE and gives the error.
func (s *session) fails(state, sql string, args ...any) *pgconn.PgError {
	s.tb.Helper()
	_, err := s.Exec(s.tb.Context(), sql, args...)
	pg := pgError(s.tb, err)
	if pg.Code != state {
		s.tb.Fatalf("%s: SQLSTATE %s (%s), want %s", sql, pg.Code, pg.Message, state)
	}
	return pg
}

// get reads one value.
func get[T any](s *session, sql string, args ...any) T {
	s.tb.Helper()
	var v T
	if err := s.QueryRow(s.tb.Context(), sql, args...).Scan(&v); err != nil {
		s.tb.Fatalf("%s: %v", sql, err)
	}
	return v
}

// warnings gives the WARNINGs since the last call.
func (s *session) warnings() []*pgconn.Notice {
	var out []*pgconn.Notice
	for _, n := range s.notices {
		if n.Severity == "WARNING" {
			out = append(out, n)
		}
	}
	s.notices = nil
	return out
}

func pgError(tb testing.TB, err error) *pgconn.PgError {
	tb.Helper()
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		tb.Fatalf("no refusal by the server: %v", err)
	}
	return pg
}

// declare stores a connector; spec is what differs from the least one.
func declare(s *session, name, spec string) {
	s.tb.Helper()
	s.must("INSERT INTO connector.manifest (name, scopes, spec) VALUES ($1, '{billing}', $2::jsonb || $3::jsonb)", name, least, spec)
}

// least is the smallest spec that is right in everything.
const least = `{"name": "partners", "brokers": "broker-1:9092", "topic": "acme.partners"}`

func contains(tb testing.TB, what, text string, parts ...string) {
	tb.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			tb.Errorf("%s is %q, want %q in it", what, text, p)
		}
	}
}
