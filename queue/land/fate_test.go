package land

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"highwater/sql/table"
)

func TestFateOfEveryKindOfError(t *testing.T) {
	letters := "22001 22003 22007 22008 22012 22021 22023 22P02 22P03 22P05 23000 23502 23503 23505 23514 23P01 44000 P0001 P0002 P0003 P0004 " +
		"42804 54000 54001 09000 20000 21000 27000 38000 39000 KC099 ACME7 99999 ZZ001 70001"
	for _, state := range strings.Fields(letters) {
		if v := Fate(pgError(state, "")); v.Do != RefuseRow || v.Lost {
			t.Errorf("%s: %+v, want a dead letter", state, v)
		}
	}
	for _, c := range []struct {
		states string
		code   string
		do     Action
		wait   Wait
		lost   bool
	}{
		{"08000 08003 08006 08P01 57P01 57P02 57P03 57P05", "database_error", RetryChunk, waitServer, true},
		{"25006 53300", "database_error", RetryChunk, waitServer, true},
		{"40001 40P01 55P03", "database_error", RetryChunk, waitLock, false},
		{"53000 53100 53200 53400 55000 55006 57014 58000 58030 58P01 XX000 XX001 XX002 25P02 25P03 40002 54023 F0000 HV000 28000", "database_error", RetryChunk, waitFault, false},
		{"42501", "not_authorized", StopRun, Wait{}, false},
		{"42P01 42703 42883 42P07 42601 0A000 2BP01 3F000 26000 2200H 00000", "database_error", StopRun, Wait{}, false},
		{"22P04 KC011", "internal", StopRun, Wait{}, false},
		{"KC010", "fenced", StopRun, Wait{}, false},
	} {
		for _, state := range strings.Fields(c.states) {
			v := Fate(fmt.Errorf("landing: %w", pgError(state, "")))
			if v.Do != c.do || v.Code != c.code || v.Wait != c.wait || v.Lost != c.lost {
				t.Errorf("%s: %+v", state, v)
			}
			if v.Do == RetryChunk && !v.Retryable || v.Do == StopRun && v.Retryable {
				t.Errorf("%s: retryable is %v", state, v.Retryable)
			}
			if v.Hint == "" && v.Code != "fenced" {
				t.Errorf("%s has no hint", state)
			}
		}
	}
	for name, c := range map[string]struct {
		err  error
		code string
		do   Action
		lost bool
	}{
		"a session that was ended":   {&pgconn.PgError{Severity: "FATAL", Code: "25P03"}, "database_error", RetryChunk, true},
		"a panic of the server":      {&pgconn.PgError{Severity: "PANIC", Code: "XX000"}, "database_error", RetryChunk, true},
		"no connection":              {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, "database_error", RetryChunk, true},
		"a cut connection":           {io.ErrUnexpectedEOF, "database_error", RetryChunk, true},
		"a closed connection":        {fmt.Errorf("x: %w", net.ErrClosed), "database_error", RetryChunk, true},
		"a code of no length":        {pgError("", ""), "database_error", StopRun, false},
		"a table that is gone":       {fmt.Errorf("x: %w", table.ErrMissing), "table_missing", StopRun, false},
		"somebody else's table":      {fmt.Errorf("x: %w", table.ErrNotOurs), "table_not_ours", StopRun, false},
		"an unlogged table":          {fmt.Errorf("x: %w", table.ErrNotOrdinary), "table_not_ours", StopRun, false},
		"a lost lease":               {ErrFenced, "fenced", StopRun, false},
		"a stop from outside":        {context.Canceled, "interrupted", StopRun, false},
		"anything that nobody knows": {errors.New("surprise"), "internal", StopRun, false},
	} {
		if v := Fate(c.err); v.Code != c.code || v.Do != c.do || v.Lost != c.lost {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestGrantNamesTheRightThatIsMissing(t *testing.T) {
	trigger := "PL/pgSQL function public.f() line 1 at SQL statement\nCOPY t_orders, line 1"
	for _, c := range []struct{ message, where, want string }{
		{"permission denied for table t_orders", "", `GRANT highwater_owner TO "the role";`},
		{"must be owner of table t_orders", "", `GRANT highwater_owner TO "the role";`},
		{"permission denied for table audit", trigger, `GRANT INSERT ON TABLE audit TO "the role";`},
		{"permission denied for schema app", trigger, `GRANT USAGE ON SCHEMA app TO "the role";`},
		{"permission denied for function f", trigger, `GRANT EXECUTE ON FUNCTION f TO "the role";`},
	} {
		if got := grant(&pgconn.PgError{Code: "42501", Message: c.message, Where: c.where}, "the role"); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.message, got)
		}
	}
}

func TestCleanMakesOneBoundedPrintableLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain é €":                "plain é €",
		"a\nb\tc\rd":               "a b c d",
		"nul\x00 esc\x1b[31m \xff": "nul\uFFFD esc\uFFFD[31m \uFFFD",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
	if got := clean(strings.Repeat("é", 1000)); len(got) > messageMax+len("…") || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes", len(got))
	}
}
