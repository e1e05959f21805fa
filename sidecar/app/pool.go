package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"highwater/sidecar/config"
)

// pgxTx is the transaction type of the queue's client.
type pgxTx = pgx.Tx

// Exit codes of the program.
const (
	ExitOK            = 0
	ExitUsage         = 1
	ExitConfiguration = 2
	ExitDatabase      = 3
	ExitMigration     = 4
)

// Error is an error with the exit code that it means for the program.
type Error struct {
	Exit int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode gives the exit code of an error: 0 for nil, that of an [Error] in its chain, else usage.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Exit
	}
	return ExitUsage
}

// sessionSettings hold for every connection of the sidecar, whatever the role or database says.
//
// A transaction that sits idle for ten seconds belongs to a process that is paused or gone: the server ends it, so that
// its locks pass on. Statements of the sidecar bring their own limits where they need one.
var sessionSettings = map[string]string{
	"application_name":                    "highwater",
	"search_path":                         "pg_catalog",
	"TimeZone":                            "UTC",
	"DateStyle":                           "ISO",
	"default_transaction_isolation":       "read committed",
	"statement_timeout":                   "0",
	"lock_timeout":                        "0",
	"idle_in_transaction_session_timeout": "10s",
	"client_connection_check_interval":    "5s",
	"bytea_output":                        "hex",
	"extra_float_digits":                  "1",
	"client_encoding":                     "UTF8", // else COPY would store every character that is not ASCII as another one
	"quote_all_identifiers":               "off",  // the names of types are compared as they are written without it
	"idle_session_timeout":                "0",    // an idle connection of the pool is no forgotten one
}

func poolConfig(c config.Config) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(c.DatabaseURL)
	if err != nil {
		return nil, &Error{Exit: ExitConfiguration, Err: fmt.Errorf("reading the database URL: %w", err)}
	}
	for k, v := range sessionSettings {
		pc.ConnConfig.RuntimeParams[k] = v
	}
	pc.MaxConns = int32(c.MaxRuns*connsARun + connsOwn)
	pc.MaxConnIdleTime = 5 * time.Minute
	return pc, nil
}

// quiet drops River's routine lines: what it does for us is told by our own words.
func quiet(l *slog.Logger) *slog.Logger { return slog.New(from{l.Handler(), slog.LevelWarn}) }

// from is a handler that lets only lines of a level and above through.
type from struct {
	slog.Handler
	least slog.Level
}

func (f from) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= f.least && f.Handler.Enabled(ctx, l)
}

func (f from) WithAttrs(a []slog.Attr) slog.Handler { return from{f.Handler.WithAttrs(a), f.least} }
func (f from) WithGroup(n string) slog.Handler      { return from{f.Handler.WithGroup(n), f.least} }
