package land

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// wantError checks the code and the SQLSTATE of an error that ends a run.
func wantError(tb testing.TB, err error, code, state string) *Error {
	tb.Helper()
	var e *Error
	if !errors.As(err, &e) {
		tb.Fatalf("got %v, want an error with code %s", err, code)
	}
	if e.Code != code || e.SQLState != state {
		tb.Errorf("got code %s, SQLSTATE %q (%s), want %s, %q", e.Code, e.SQLState, e.Message, code, state)
	}
	if e.Message == "" || e.Code != "table_missing" && e.Hint == "" {
		tb.Errorf("message %q, hint %q", e.Message, e.Hint)
	}
	return e
}

func pgError(code, where string) *pgconn.PgError {
	return &pgconn.PgError{Severity: "ERROR", Code: code, Message: "words", Where: where}
}
